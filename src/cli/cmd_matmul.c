/* SPDX-License-Identifier: Apache-2.0 */
/* podsim matmul: a matmul on one chip, plain, of groups (matmul_grouped.c), of the head with its loss
 * (matmul_loss.c), or a convolution (matmul_conv.c). */
#include "cli/command_list.h"
#include "cli/matmul.h"
#include "cli/plot.h"
#include "cli/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) POD_FIELD(pod_matmul_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip", AT(chip)},
    {.name = "cores", .minor = 5, AT(cores)},
    {.name = "m", AT(m)},
    {.name = "k", AT(k)},
    {.name = "n", AT(n)},
    {.name = "dtype", .title = "type", AT(dtype)},
    {.name = "block", .minor = 1, AT(block)},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2, POD_TIME_FIELD(pod_matmul_row, time_ps, US)},
    {.name = "tflops", .title = "rate", .unit = "TFLOP/s", .decimals = 2, AT(tflops)},
    {.name = "peak_frac", .title = "of peak", .decimals = 4, AT(peak_frac)},
    {.name = "bound", AT(bound)},
    {.name = "hbm_bytes", .title = "HBM", .unit = "B", .minor = 2, AT(hbm_bytes)},
    {.name = "intensity_flops_per_byte", .title = "intensity", .unit = "FLOP/B", .decimals = 1, .minor = 4,
     AT(intensity)},
    {.name = "op", .minor = 3, AT(op)},
    {.name = "groups", .minor = 3, AT(groups)},
    {.name = "tile", .minor = 3, AT(tile)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "C[m,n] = A[m,k] B[k,n] with B as the weights. block = the part of the product that is in "
    "VMEM\n"
    "at once; hbm_bytes = what moves between HBM and VMEM with it; tflops = 2 m k n / time;\n"
    "peak_frac = of the peak of the cores that took part; bound = what takes longest: mxu, vpu, "
    "hbm,\n"
    "vmem or launch; intensity = 2 m k n / hbm_bytes.\n"
    "--groups: the m rows of G groups, each times its own k x n weights (forward), or the "
    "derivative\n"
    "by the rows or by the weights. k is contracted by forward and rows (for rows, the layer's "
    "n).\n"
    "--loss: the product of m rows with a head of n columns, its softmax and cross entropy; "
    "tflops\n"
    "counts 1 matmul forward, 3 backward. op, groups and tile are - for a plain matmul.\n"
    "--conv: m, k and n are the rows, the contraction and the columns of the product that it is;\n"
    "FLOPs count all taps, also those that fall on the padding.\n";

/* ---- a plain matmul ---- */

static pod_status run_plain(pod_cli *cli, const pod_matmul_options *own, const pod_chip_spec *chip,
                            pod_matmul_row *row, pod_error *err)
{
    const int in = pod_dtype_size(own->dtype);
    const int out = pod_matmul_output_size(own->dtype);
    const pod_matmul_args args = {.m = own->m,
                                  .k = own->k,
                                  .n = own->n,
                                  .dtype = own->dtype,
                                  .one_core = own->one_core,
                                  .weights_in_vmem = own->in_vmem,
                                  .block = own->block,
                                  .alone = !own->inside};
    const pod_matmul_matrix arrays[] = {
        {POD_HBM_ACTIVATIONS, 1,                    args.m, args.k, in },
        {POD_HBM_WEIGHTS,     own->in_vmem ? 0 : 1, args.k, args.n, in },
        {POD_HBM_ACTIVATIONS, 1,                    args.m, args.n, out},
    };
    pod_matmul_time time;
    char line[512];
    POD_TRY(pod_matmul_fit_check(chip, arrays, 3, err));
    POD_TRY(pod_matmul_time_get(chip, &args, &time, err));
    pod_matmul_explain_compiled(cli, chip, time.peak_ops_per_s, args.dtype, args.alone,
                                pod_matmul_explain(&time, line, sizeof line));
    POD_MATMUL_ROW_FILL(row, &time);
    if (time.steps > 0) {
        pod_matmul_block_print(&time.block, row->block);
    }
    return POD_OK;
}

/* ---- the command ---- */

enum { CROSSOVER_MAX = 1 << 20 };

static pod_status read_block(const char *text, void *field, pod_error *err)
{
    return pod_matmul_block_parse(text, field, err);
}

static pod_status read_tile(const char *text, void *field, pod_error *err)
{
    int64_t sizes[3] = {0};
    const pod_status st =
        pod_matmul_sizes_parse(text, "--tile", "MxKxN as in 512x1024x1024", sizes, err);
    *(pod_matmul_block *)field = (pod_matmul_block){.m = sizes[0], .k = sizes[1], .n = sizes[2]};
    return st;
}

static bool is_said(const pod_matmul_options *own, const char *option)
{
    return pod_cli_said_text(&own->said, option) != NULL;
}

/* What a convolution says itself, or has no use for. */
static pod_status check_conv(const pod_matmul_options *own, pod_error *err)
{
    static const char *const lost[] = {"m",     "k",      "n",    "crossover", "weights",
                                       "block", "groups", "loss", "tile",      "group-sizes"};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        if (is_said(own, lost[i])) {
            return pod_fail(err, POD_E_USAGE,
                            "--conv says all sizes of a convolution; leave out --%s", lost[i]);
        }
    }
    return POD_OK;
}

/* Options that only one kind of matmul knows. */
static pod_status check_kind(const pod_matmul_options *own, pod_error *err)
{
    if (own->conv_text != NULL) {
        return check_conv(own, err);
    }
    const bool kernel = is_said(own, "groups") || is_said(own, "loss");
    const char *lost = NULL;
    if (is_said(own, "groups") && is_said(own, "loss")) {
        return pod_fail(err, POD_E_USAGE, "--groups and --loss are different kernels; give one");
    }
    if (kernel && is_said(own, "launch") && !own->inside) {
        return pod_fail(err, POD_E_USAGE,
                        "--launch host is for a plain matmul; kernels are timed on the device");
    }
    if (kernel) {
        lost = is_said(own, "block") ? "--block" : is_said(own, "weights") ? "--weights" : NULL;
        if (lost != NULL) {
            return pod_fail(err, POD_E_USAGE,
                            "%s is for a plain matmul; with --groups or --loss give --tile", lost);
        }
    }
    lost = kernel ? NULL : is_said(own, "op") ? "--op" : is_said(own, "tile") ? "--tile" : NULL;
    if (lost != NULL) {
        return pod_fail(err, POD_E_USAGE, "%s is for kernels; give %s, too", lost,
                        is_said(own, "op") ? "--groups, --loss or --conv" : "--groups or --loss");
    }
    return !is_said(own, "groups") && is_said(own, "group-sizes")
               ? pod_fail(err, POD_E_USAGE, "--group-sizes needs groups; give --groups, too")
               : POD_OK;
}

/* The figures of the sizes in `own`. */
static pod_status row_get(pod_cli *cli, const pod_matmul_options *own, const pod_chip_spec *chip,
                          pod_matmul_row *row, pod_error *err)
{
    *row = (pod_matmul_row){.chip = chip->name,
                            .m = own->m,
                            .k = own->k,
                            .n = own->n,
                            .dtype = pod_dtype_name(own->dtype),
                            .groups = INT64_MIN};
    return own->conv_text != NULL   ? pod_matmul_conv(cli, own, chip, row, err)
           : is_said(own, "groups") ? pod_matmul_grouped(cli, own, chip, row, err)
           : is_said(own, "loss")   ? pod_matmul_loss(cli, own, chip, row, err)
                                    : run_plain(cli, own, chip, row, err);
}

static pod_status is_bound_by_mxu(pod_cli *cli, const pod_matmul_options *own,
                                  const pod_chip_spec *chip, bool *yes, pod_error *err)
{
    pod_matmul_row row;
    const bool explain = cli->common.explain;
    cli->common.explain = false; /* of the row that is found, not of those tried */
    const pod_status st = row_get(cli, own, chip, &row, err);
    cli->common.explain = explain;
    POD_TRY(st);
    *yes = strcmp(row.bound, pod_bound_name(POD_BOUND_MXU)) == 0;
    return POD_OK;
}

/* The least of a size that the MXU bounds: between the first power of two that it bounds and the one before. */
static pod_status crossover_find(pod_cli *cli, pod_matmul_options *own, const pod_chip_spec *chip,
                                 pod_error *err)
{
    int64_t *const sizes[] = {NULL, &own->m, &own->k, &own->n};
    int64_t *size = sizes[own->crossover];
    bool yes = false;
    *size = 1;
    POD_TRY(is_bound_by_mxu(cli, own, chip, &yes, err));
    while (!yes) {
        if (*size >= CROSSOVER_MAX) {
            return pod_fail(err, POD_E_NOFIT,
                            "no %c up to %d makes this matmul wait for the MXU; give a larger %s",
                            " mkn"[own->crossover], CROSSOVER_MAX,
                            own -> crossover == POD_MATMUL_M        ? "k or n"
                                   : own->crossover == POD_MATMUL_K ? "m or n"
                                                                    : "m or k");
        }
        *size *= 2;
        POD_TRY(is_bound_by_mxu(cli, own, chip, &yes, err));
    }
    int64_t high = *size;
    int64_t low = high / 2; /* not bound by it, or 0 */
    while (high - low > 1) {
        *size = low + (high - low) / 2;
        POD_TRY(is_bound_by_mxu(cli, own, chip, &yes, err));
        *(yes ? &high : &low) = *size;
    }
    *size = high;
    return POD_OK;
}

/* The size that is to be found must not be given, the others must. */
static pod_status check_sizes(const pod_matmul_options *own, pod_error *err)
{
    static const char *const sizes[] = {NULL, "m", "k", "n"};
    for (int i = POD_MATMUL_M; i <= POD_MATMUL_N; i++) {
        char option[8];
        const char *said = pod_cli_said_text(&own->said, sizes[i]);
        (void)snprintf(option, sizeof option, "--%s", sizes[i]);
        if (i == (int)own->crossover) {
            if (said != NULL) {
                return pod_fail(err, POD_E_USAGE, "--crossover %s finds %s; drop --%s", sizes[i],
                                sizes[i], sizes[i]);
            }
            continue;
        }
        POD_TRY(pod_cli_require(said, option, "4096", err));
    }
    return POD_OK;
}

static pod_status sizes_read(pod_cli *cli, const char *text, const char *option, pod_cli_sizes *ms,
                             pod_error *err)
{
    POD_TRY(pod_cli_sizes_parse(text, option, ms, err));
    return pod_cli_strings_keep(&cli->strings, ms->bytes)
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "no memory for the command line");
}

/* The pictures of a convolution, one number or a range, and its other sizes. */
static pod_status pictures_find(pod_cli *cli, pod_matmul_options *own, pod_cli_sizes *ms,
                                int64_t one[1], pod_error *err)
{
    char range[64];
    char text[160];
    const size_t length = strcspn(own->conv_text, ",");
    *ms = (pod_cli_sizes){.bytes = one, .count = 1};
    if (memchr(own->conv_text, ':', length) == NULL || length >= sizeof range) {
        POD_TRY(pod_conv_shape_parse(own->conv_text, &own->conv, err));
        one[0] = own->conv.n;
        return POD_OK;
    }
    (void)snprintf(range, sizeof range, "%.*s", (int)length, own->conv_text);
    (void)snprintf(text, sizeof text, "1%s", own->conv_text + length);
    POD_TRY(pod_conv_shape_parse(text, &own->conv, err));
    POD_TRY(sizes_read(cli, range, "--conv", ms, err));
    return ms->bytes[0] >= 1
               ? POD_OK
               : pod_fail(err, POD_E_USAGE, "--conv '%s' has no pictures; begin with 1 or more",
                          own->conv_text);
}

/* The values of m, one or a list. @param[out] ms  ms->bytes belongs to the command line */
static pod_status ms_find(pod_cli *cli, pod_matmul_options *own, const pod_chip_spec *chip,
                          pod_cli_sizes *ms, int64_t one[1], pod_error *err)
{
    if (own->conv_text != NULL) {
        return pictures_find(cli, own, ms, one, err);
    }
    *ms = (pod_cli_sizes){.bytes = one, .count = 1};
    POD_TRY(check_sizes(own, err));
    if (own->m_text != NULL && strpbrk(own->m_text, ":,") != NULL) {
        if (own->crossover != POD_MATMUL_NO_SIZE) {
            return pod_fail(err, POD_E_USAGE, "--crossover is of one matmul; give one --m");
        }
        return sizes_read(cli, own->m_text, "--m", ms, err);
    }
    if (own->m_text != NULL) {
        POD_TRY(pod_parse_i64(own->m_text, "--m", 0, INT64_MAX, &own->m, err));
    }
    if (own->crossover != POD_MATMUL_NO_SIZE) {
        POD_TRY(crossover_find(cli, own, chip, err));
    }
    one[0] = own->m;
    return POD_OK;
}

/* ---- the picture ---- */

typedef struct roofline {
    char title[128];
    pod_plot_roof_row *rows;
    int count;
    double peak_ops_per_s;
    double hbm_bytes_per_s;
} roofline;

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const roofline *shown = figures;
    return pod_plot_roofline(plot, shown->title, shown->rows, shown->count, shown->peak_ops_per_s,
                             shown->hbm_bytes_per_s, err);
}

static pod_status run(pod_cli *cli, pod_matmul_options *own, pod_error *err)
{
    pod_chip_spec chip;
    pod_emit *emit = NULL;
    pod_cli_sizes ms;
    int64_t one[1] = {0};
    POD_TRY(check_kind(own, err));
    POD_TRY(pod_cli_chip_load(cli, own->chip, &chip, err));
    POD_TRY(pod_cli_cores_parse(own->cores_text, &chip, &own->one_core, err));
    const bool said = own->cores_text != NULL && strcmp(own->cores_text, "all") != 0;
    own->cores = !said ? 0 : own->one_core ? 1 : chip.cores;
    POD_TRY(ms_find(cli, own, &chip, &ms, one, err));
    roofline shown = {.rows = calloc((size_t)ms.count, sizeof *shown.rows),
                      .hbm_bytes_per_s = chip.hbm_bytes_per_s};
    pod_status st = shown.rows != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for rows");
    POD_THEN(st, pod_emit_new(cli->common.format, "matmul", columns, NCOLUMNS, &emit, err));
    for (int i = 0; i < ms.count && st == POD_OK; i++) {
        pod_matmul_row row;
        own->m = ms.bytes[i];
        own->conv.n = ms.bytes[i];
        st = row_get(cli, own, &chip, &row, err);
        if (st == POD_OK) {
            pod_emit_fields(emit, &row, NCOLUMNS);
            pod_plot_roof_row *point = &shown.rows[shown.count++];
            *point =
                (pod_plot_roof_row){.intensity = row.intensity, .ops_per_s = row.tflops * 1e12};
            (void)snprintf(point->label, sizeof point->label, "m=%lld", (long long)row.m);
            if (row.peak_frac > 0) {
                shown.peak_ops_per_s = point->ops_per_s / row.peak_frac;
            }
        }
    }
    if (own->conv_text != NULL) {
        (void)snprintf(shown.title, sizeof shown.title, "convolutions %s on %s, %s", own->conv_text,
                       chip.name, pod_dtype_name(own->dtype));
    } else {
        (void)snprintf(shown.title, sizeof shown.title, "matmuls of k=%lld, n=%lld on %s, %s",
                       (long long)own->k, (long long)own->n, chip.name, pod_dtype_name(own->dtype));
    }
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    POD_THEN(st, pod_cli_plot_write(cli, add_plot, &shown, err));
    free(shown.rows);
    pod_emit_free(emit);
    return st;
}

#define AT(field) POD_CLI_FIELD(pod_matmul_options, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"chip", 0, POD_CLI_TEXT, AT(chip), "CHIP",
     "generation: v2, v3, v4, v5e, v5p, v6e or tpu7x", .example = "v5e", .matters = true},
    {"m", 0, POD_CLI_TEXT, AT(m_text), "M|LIST",
     "rows of A and C; a list gives a row each: 1:4096:2 (from:to:factor)", .matters = true},
    {"k", 0, POD_CLI_COUNT, AT(k), "K",
     "columns of A, rows of B", .matters = true},
    {"n", 0, POD_CLI_COUNT, AT(n), "N",
     "columns of B and C", .matters = true},
    {"crossover", 0, POD_CLI_CHOICE, AT(crossover), "m|k|n",
     "find the least m (k, n) that the MXU bounds, instead of --m (--k, --n)", .words = "none|m|k|n", .matters = true},
    {"dtype", 0, POD_CLI_READ, AT(dtype), "TYPE",
     "of A and B: bf16, f32, int8 or fp8 (default: bf16)", .read = pod_cli_dtype_read, .matters = true},
    {"cores", 0, POD_CLI_TEXT, AT(cores_text), "all|N",
     "cores that take part (default: all)"},
    {"weights", 0, POD_CLI_CHOICE, AT(in_vmem), "hbm|vmem",
     "where B is (default: hbm)"},
    {"block", 0, POD_CLI_READ, AT(block), "MxKxN",
     "the part that is in VMEM at once (default: the one that moves the fewest bytes)", .read = read_block},
    {"groups", 0, POD_CLI_SIZE, AT(groups), "G",
     "a grouped matmul: the m rows are of G groups, each with weights of its own",
     .group = "Kernels", .matters = true},
    {"loss", 0, POD_CLI_CHOICE, AT(chunked), "fused|chunked",
     "head and loss: logits, softmax and cross entropy in one kernel or in the compiler's chunks",
     .group = "Kernels", .matters = true},
    {"conv", 0, POD_CLI_TEXT, AT(conv_text), "N,H,W,Cin,Cout,KH,KW,stride",
     "a convolution of N pictures, padded to H / stride rows; N may be a range, a row each: 8:256:2",
     .group = "Kernels"},
    {"op", 0, POD_CLI_TEXT, AT(op), "OP",
     "forward; grouped: rows or weights, the derivatives; loss: backward; conv: input or weights (default: forward)",
     .group = "Kernels"},
    {"tile", 0, POD_CLI_READ, AT(tile), "MxKxN",
     "of the kernel's grid (default: what fits VMEM; loss: 1024x512x2048)", .read = read_tile, .group = "Kernels"},
    {"group-sizes", 0, POD_CLI_CHOICE, AT(group_sizes), "random|equal|one",
     "sizes of groups; one: one group has all rows (default: random)", .group = "Kernels"},
    {"launch", 0, POD_CLI_CHOICE, AT(inside), "host|device",
     "of a plain matmul or a convolution: run from the host, as benchmarks do, or inside a program (default: host)"},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_matmul(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_matmul_options own = {.dtype = POD_DTYPE_BF16};
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP --m M --k K --n N",
        .examples = "--chip v5e --m 1:4096:2 --k 4096 --n 4096\n"
                    "--chip tpu7x --m 8192 --k 4096 --n 4096 --dtype fp8 --explain\n"
                    "--chip v5p --m 65536 --k 2048 --n 8192 --groups 64\n",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_EXPLAIN | POD_CLI_PLOT,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
        .said = &own.said,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    return cli->help ? POD_OK : run(cli, &own, err);
}
