/* SPDX-License-Identifier: Apache-2.0 */
/* podsim matmul --conv: a convolution, or one of its derivatives. */
#include "cli/matmul.h"

pod_status pod_matmul_conv(pod_cli *cli, const pod_matmul_options *own, const pod_chip_spec *chip,
                           pod_matmul_row *row, pod_error *err)
{
    static const char *const ops[] = {"forward", "input", "weights"};
    static const char *const names[] = {"conv-forward", "conv-input", "conv-weights"};
    const pod_conv_shape *s = &own->conv;
    const int in = pod_dtype_size(own->dtype);
    const int64_t lines = s->n * pod_conv_out(s->h, s->stride);
    const int64_t wide = pod_conv_out(s->w, s->stride);
    const int out = pod_matmul_output_size(own->dtype);
    const pod_matmul_matrix arrays[] = {
        {POD_HBM_ACTIVATIONS, s->w,          s->n * s->h, s->cin,  in },
        {POD_HBM_WEIGHTS,     s->kh * s->kw, s->cin,      s->cout, in },
        {POD_HBM_ACTIVATIONS, wide,          lines,       s->cout, out},
    };
    pod_conv_args args = {
        .shape = *s, .dtype = own->dtype, .one_core = own->one_core, .alone = !own->inside};
    int op = 0;
    pod_conv_time time;
    char line[512];
    POD_TRY(pod_cli_choice_parse(own->op, "--op", ops, 3, &op, err));
    args.op = (pod_conv_op)op;
    POD_TRY(pod_matmul_fit_check(chip, arrays, 3, err));
    POD_TRY(pod_conv_time_get(chip, &args, &time, err));
    pod_matmul_explain_compiled(cli, chip, time.peak_ops_per_s, args.dtype, args.alone,
                                pod_conv_explain(&time, line, sizeof line));
    POD_MATMUL_ROW_FILL(row, &time);
    row->m = time.m;
    row->k = time.k;
    row->n = time.n;
    row->op = names[op];
    return POD_OK;
}
