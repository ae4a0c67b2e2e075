/* SPDX-License-Identifier: Apache-2.0 */
/* podsim matmul --loss: the head with its softmax and cross entropy. */
#include "chip/loss.h"
#include "cli/matmul.h"
#include "cli/tables.h"

static pod_status read_args(const pod_matmul_options *own, pod_loss_args *args, pod_error *err)
{
    static const char *const ops[] = {"forward", "backward"};
    int op = 0;
    POD_TRY(pod_cli_choice_parse(own->op, "--op", ops, 2, &op, err));
    *args = (pod_loss_args){.m = own->m,
                            .k = own->k,
                            .n = own->n,
                            .dtype = own->dtype,
                            .cores = own->cores,
                            .chunked = own->chunked,
                            .backward = op == 1,
                            .tile = own->tile};
    return args->chunked && args->tile.m > 0 && args->tile.k != args->k
               ? pod_fail(err, POD_E_USAGE, "chunks hold all of k; give --tile %lldx%lldx%lld",
                          (long long)args->tile.m, (long long)args->k, (long long)args->tile.n)
               : POD_OK;
}

pod_status pod_matmul_loss(pod_cli *cli, const pod_matmul_options *own, const pod_chip_spec *chip,
                           pod_matmul_row *row, pod_error *err)
{
    pod_loss_args args;
    pod_loss_time time;
    char line[512];
    POD_TRY(read_args(own, &args, err));
    const int in = pod_dtype_size(args.dtype);
    const int all = args.backward ? 2 * in + 4 : in; /* derivatives, in f32 first */
    const pod_matmul_matrix arrays[] = {
        {POD_HBM_ACTIVATIONS, 1, args.m, args.k, all},
        {POD_HBM_WEIGHTS,     1, args.k, args.n, all},
    };
    POD_TRY(pod_matmul_fit_check(chip, arrays, 2, err));
    POD_TRY(pod_loss_time_get(chip, &args, &time, err));
    pod_matmul_kernel_explain(cli, chip, time.peak_ops_per_s, time.cores, args.dtype);
    pod_cli_explain(cli, "%s", pod_loss_explain(&time, line, sizeof line));
    const char *const figures[] = {"mxu_eff_frac", "vpu_eff_frac", "hbm_eff_frac",
                                   args.chunked ? "kernel_start_us" : "block_step_us",
                                   args.chunked    ? "loss_chunk_ops"
                                   : args.backward ? "loss_bwd_ops"
                                                   : "loss_fwd_ops"};
    pod_cli_explain_origins(cli, chip, figures, (int)(sizeof figures / sizeof figures[0]));
    POD_MATMUL_ROW_FILL(row, &time);
    pod_matmul_block_print(&time.tile, row->block);
    pod_matmul_block_print(&time.tile, row->tile);
    row->op = args.backward ? "loss-backward" : "loss-forward";
    return POD_OK;
}
