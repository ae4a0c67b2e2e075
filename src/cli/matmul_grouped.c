/* SPDX-License-Identifier: Apache-2.0 */
/* podsim matmul --groups: the rows of several groups, each times weights of its own. */
#include "cli/matmul.h"
#include "cli/tables.h"

pod_status pod_matmul_grouped(pod_cli *cli, const pod_matmul_options *own,
                              const pod_chip_spec *chip, pod_matmul_row *row, pod_error *err)
{
    static const char *const ops[] = {"forward", "rows", "weights"};
    static const char *const figures[] = {"mxu_eff_frac", "vpu_eff_frac", "hbm_eff_frac",
                                          "block_step_us"};
    const int in = pod_dtype_size(own->dtype);
    const int out = pod_matmul_output_size(own->dtype);
    int op = 0;
    POD_TRY(pod_cli_choice_parse(own->op, "--op", ops, 3, &op, err));
    const pod_grouped_args args = {.m = own->m,
                                   .k = own->k,
                                   .n = own->n,
                                   .dtype = own->dtype,
                                   .cores = own->cores,
                                   .groups = own->groups,
                                   .op = (pod_grouped_op)op,
                                   .sizes = own->group_sizes,
                                   .tile = own->tile};
    const bool weights = args.op == POD_GROUPED_WEIGHTS;
    const pod_matmul_matrix arrays[] = {
        {POD_HBM_ACTIVATIONS, 1,           args.m, args.k, in                },
        {POD_HBM_WEIGHTS,     args.groups, args.k, args.n, weights ? out : in},
        {POD_HBM_ACTIVATIONS, 1,           args.m, args.n, weights ? in : out},
    };
    pod_grouped_time time;
    char line[512];
    POD_TRY(pod_matmul_fit_check(chip, arrays, 3, err));
    POD_TRY(pod_grouped_time_get(chip, &args, &time, err));
    pod_matmul_kernel_explain(cli, chip, time.peak_ops_per_s, time.cores, args.dtype);
    pod_cli_explain(cli, "%s", pod_grouped_explain(&time, line, sizeof line));
    pod_cli_explain_origins(cli, chip, figures, (int)(sizeof figures / sizeof figures[0]));
    POD_MATMUL_ROW_FILL(row, &time);
    if (time.steps > 0) {
        pod_matmul_block_print(&time.block, row->block);
    }
    pod_matmul_block_print(&time.tile, row->tile);
    row->op = pod_grouped_op_name(args.op);
    row->groups = args.groups;
    return POD_OK;
}
