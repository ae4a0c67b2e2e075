/* SPDX-License-Identifier: Apache-2.0 */
/* podsim matmul: a matmul on one chip, plain, of groups (experts), or of the head with its loss. */
#include "base/names.h"
#include "base/units.h"
#include "chip/grouped.h"
#include "chip/loss.h"
#include "chip/memory.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <string.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip"},
    {.name = "cores", .minor = 5},
    {.name = "m"},
    {.name = "k"},
    {.name = "n"},
    {.name = "dtype", .title = "type"},
    {.name = "block", .minor = 1},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2},
    {.name = "tflops", .title = "rate", .unit = "TFLOP/s", .decimals = 2},
    {.name = "peak_frac", .title = "of peak", .decimals = 4},
    {.name = "bound"},
    {.name = "hbm_bytes", .title = "HBM", .unit = "B", .minor = 2},
    {.name = "intensity_flops_per_byte", .title = "intensity", .unit = "FLOP/B", .decimals = 1, .minor = 4},
    {.name = "op", .minor = 3},
    {.name = "groups", .minor = 3},
    {.name = "tile", .minor = 3},
};
/* clang-format on */
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
    "counts 1 matmul forward, 3 backward. op, groups and tile are - for a plain matmul.\n";

typedef struct matmul_texts {
    const char *chip;
    const char *m;
    const char *k;
    const char *n;
    const char *dtype;
    const char *cores;
    const char *weights;
    const char *block;
    const char *groups;
    const char *op;
    const char *tile;
    const char *group_sizes;
    const char *loss;
    const char *launch;
} matmul_texts;

/* What all kinds of matmuls have. */
typedef struct matmul_request {
    int64_t m;
    int64_t k;
    int64_t n;
    pod_dtype dtype;
    bool one_core;
    bool inside; /* of a program: no launch by the host */
    int cores;   /* of a kernel; 0 = not said */
} matmul_request;

/* A row of the table, of any kind of product. */
typedef struct matmul_row {
    int cores;
    pod_matmul_block block; /* all 0 = there is none */
    pod_time_ps time_ps;
    double ops_per_s;
    double peak_frac;
    pod_bound bound;
    int64_t hbm_bytes;
    int64_t flops;
    const char *op;        /* NULL = a plain matmul */
    int64_t groups;        /* 0 = none */
    pod_matmul_block tile; /* all 0 = there is none */
} matmul_row;

/* ---- what all kinds share ---- */

static pod_status read_size(const char *text, const char *option, int64_t *size, pod_error *err)
{
    pod_status st = pod_cli_require(text, option, "4096", err);
    if (st == POD_OK) {
        st = pod_cli_count_parse(text, option, size, err);
    }
    return st;
}

static pod_status read_request(const matmul_texts *texts, matmul_request *request, pod_error *err)
{
    *request = (matmul_request){.dtype = POD_DTYPE_BF16};
    pod_status st = read_size(texts->m, "--m", &request->m, err);
    if (st == POD_OK) {
        st = read_size(texts->k, "--k", &request->k, err);
    }
    if (st == POD_OK) {
        st = read_size(texts->n, "--n", &request->n, err);
    }
    if (st == POD_OK && texts->dtype != NULL) {
        st = pod_dtype_parse(texts->dtype, &request->dtype, err);
    }
    return st == POD_OK ? pod_cli_launch_parse(texts->launch, &request->inside, err) : st;
}

static pod_status read_cores(const char *text, const pod_chip_spec *chip, matmul_request *request,
                             pod_error *err)
{
    const pod_status st = pod_cli_cores_parse(text, chip, &request->one_core, err);
    const bool said = text != NULL && strcmp(text, "all") != 0;
    request->cores = !said ? 0 : request->one_core ? 1 : chip->cores;
    return st;
}

typedef struct matrix {
    pod_hbm_kind kind;
    int64_t count;
    int64_t rows;
    int64_t columns;
    int size;
} matrix;

/* All of them must be in HBM at once. */
static pod_status check_fit(const pod_chip_spec *chip, const matrix *arrays, int narrays,
                            pod_error *err)
{
    pod_hbm_ledger ledger;
    pod_hbm_ledger_init(&ledger, chip);
    pod_status st = POD_OK;
    for (int i = 0; i < narrays && st == POD_OK; i++) {
        int64_t bytes = 0;
        if (!pod_mul_i64(arrays[i].rows, arrays[i].columns, &bytes)
            || !pod_mul_i64(bytes, arrays[i].size, &bytes)
            || !pod_mul_i64(bytes, arrays[i].count, &bytes)) {
            return pod_fail(err, POD_E_RANGE,
                            "a matrix of %lld x %lld exceeds 2^63 bytes; give "
                            "smaller sizes",
                            (long long)arrays[i].rows, (long long)arrays[i].columns);
        }
        st = pod_hbm_ledger_add(&ledger, arrays[i].kind, bytes, err);
    }
    return st == POD_OK ? pod_hbm_ledger_check(&ledger, "this matmul", err) : st;
}

static pod_status read_tile(const char *text, pod_matmul_block *tile, pod_error *err)
{
    int64_t sizes[3] = {0};
    const pod_status st =
        text == NULL
            ? POD_OK
            : pod_matmul_sizes_parse(text, "--tile", "MxKxN as in 512x1024x1024", sizes, err);
    *tile = (pod_matmul_block){.m = sizes[0], .k = sizes[1], .n = sizes[2]};
    return st;
}

/* ---- a plain matmul ---- */

static pod_status run_plain(pod_cli *cli, const matmul_texts *texts, const pod_chip_spec *chip,
                            const matmul_request *request, matmul_row *row, pod_error *err)
{
    static const char *const places[] = {"hbm", "vmem"};
    int in_vmem = 0;
    pod_matmul_time time;
    pod_matmul_args args = {.m = request->m,
                            .k = request->k,
                            .n = request->n,
                            .dtype = request->dtype,
                            .one_core = request->one_core,
                            .alone = !request->inside};
    pod_status st = pod_cli_choice_parse(texts->weights, "--weights", places, 2, &in_vmem, err);
    args.weights_in_vmem = in_vmem == 1;
    if (st == POD_OK && texts->block != NULL) {
        st = pod_matmul_block_parse(texts->block, &args.block, err);
    }
    if (st == POD_OK) {
        const int in = pod_dtype_size(args.dtype);
        const int out = pod_matmul_output_size(args.dtype);
        const matrix arrays[] = {
            {POD_HBM_ACTIVATIONS, 1,                            args.m, args.k, in },
            {POD_HBM_WEIGHTS,     args.weights_in_vmem ? 0 : 1, args.k, args.n, in },
            {POD_HBM_ACTIVATIONS, 1,                            args.m, args.n, out},
        };
        st = check_fit(chip, arrays, 3, err);
    }
    if (st == POD_OK) {
        st = pod_matmul_time_get(chip, &args, &time, err);
    }
    if (st == POD_OK) {
        char line[512];
        pod_cli_explain(cli, "rates %s: peak %g TFLOP/s (%s), HBM %g GB/s x %g",
                        pod_rates_name(chip->rates), time.peak_ops_per_s / 1e12,
                        pod_dtype_name(args.dtype), chip->hbm_bytes_per_s / 1e9,
                        chip->hbm_eff_frac);
        pod_cli_explain(cli, "%s", pod_matmul_explain(&time, line, sizeof line));
        static const char *const figures[] = {"mxu_eff_frac", "hbm_eff_frac", "kernel_start_us",
                                              "block_step_us", "matmul_launch_us"};
        const int named = (int)(sizeof figures / sizeof figures[0]);
        pod_cli_explain_origins(cli, chip, figures,
                                chip->matmul_launch_ps > 0 && args.alone ? named : named - 1);
        *row = (matmul_row){.cores = time.cores,
                            .block = time.steps > 0 ? time.block : (pod_matmul_block){0},
                            .time_ps = time.time_ps,
                            .ops_per_s = time.ops_per_s,
                            .peak_frac = time.peak_frac,
                            .bound = time.bound,
                            .hbm_bytes = time.hbm_bytes,
                            .flops = time.flops};
    }
    return st;
}

/* ---- kernels: grouped matmuls, head and loss ---- */

static void explain_kernel(const pod_cli *cli, const pod_chip_spec *chip, double peak_ops_per_s,
                           int cores, pod_dtype dtype)
{
    const int devices = cores < chip->devices ? cores : chip->devices;
    pod_cli_explain(cli,
                    "rates %s: peak %g TFLOP/s (%s) x %g, vector unit %g Top/s x %g, HBM %g GB/s "
                    "x %g; block step %g us, kernel start %g us",
                    pod_rates_name(chip->rates), peak_ops_per_s / 1e12, pod_dtype_name(dtype),
                    chip->mxu_eff_frac, chip->vpu_ops_per_s * cores / chip->cores / 1e12,
                    chip->vpu_eff_frac, chip->hbm_bytes_per_s * devices / chip->devices / 1e9,
                    chip->hbm_eff_frac, pod_time_to_us(chip->block_step_ps),
                    pod_time_to_us(chip->kernel_start_ps));
}

static pod_status read_grouped(const matmul_texts *texts, const matmul_request *request,
                               pod_grouped_args *args, pod_error *err)
{
    static const char *const ops[] = {"forward", "rows", "weights"};
    static const char *const sizes[] = {"random", "equal"};
    int op = 0;
    int equal = 0;
    *args = (pod_grouped_args){.m = request->m,
                               .k = request->k,
                               .n = request->n,
                               .dtype = request->dtype,
                               .cores = request->cores};
    pod_status st = pod_parse_i64(texts->groups, "--groups", 1, INT64_MAX, &args->groups, err);
    st = st == POD_OK ? POD_OK : POD_E_USAGE;
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->op, "--op", ops, 3, &op, err);
    }
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->group_sizes, "--group-sizes", sizes, 2, &equal, err);
    }
    args->op = (pod_grouped_op)op;
    args->equal = equal == 1;
    return st == POD_OK ? read_tile(texts->tile, &args->tile, err) : st;
}

static pod_status run_grouped(pod_cli *cli, const matmul_texts *texts, const pod_chip_spec *chip,
                              const matmul_request *request, matmul_row *row, pod_error *err)
{
    pod_grouped_args args;
    pod_grouped_time time;
    pod_status st = read_grouped(texts, request, &args, err);
    if (st == POD_OK) {
        const int in = pod_dtype_size(args.dtype);
        const int out = pod_matmul_output_size(args.dtype);
        const bool weights = args.op == POD_GROUPED_WEIGHTS;
        const matrix arrays[] = {
            {POD_HBM_ACTIVATIONS, 1,           args.m, args.k, in                },
            {POD_HBM_WEIGHTS,     args.groups, args.k, args.n, weights ? out : in},
            {POD_HBM_ACTIVATIONS, 1,           args.m, args.n, weights ? in : out},
        };
        st = check_fit(chip, arrays, 3, err);
    }
    if (st == POD_OK) {
        st = pod_grouped_time_get(chip, &args, &time, err);
    }
    if (st == POD_OK) {
        char line[512];
        explain_kernel(cli, chip, time.peak_ops_per_s, time.cores, args.dtype);
        pod_cli_explain(cli, "%s", pod_grouped_explain(&time, line, sizeof line));
        static const char *const figures[] = {"mxu_eff_frac", "vpu_eff_frac", "hbm_eff_frac",
                                              "block_step_us"};
        pod_cli_explain_origins(cli, chip, figures, (int)(sizeof figures / sizeof figures[0]));
        *row = (matmul_row){.cores = time.cores,
                            .block = time.steps > 0 ? time.block : (pod_matmul_block){0},
                            .time_ps = time.time_ps,
                            .ops_per_s = time.ops_per_s,
                            .peak_frac = time.peak_frac,
                            .bound = time.bound,
                            .hbm_bytes = time.hbm_bytes,
                            .flops = time.flops,
                            .op = pod_grouped_op_name(args.op),
                            .groups = args.groups,
                            .tile = time.tile};
    }
    return st;
}

static pod_status read_loss(const matmul_texts *texts, const matmul_request *request,
                            pod_loss_args *args, pod_error *err)
{
    static const char *const kinds[] = {"fused", "chunked"};
    static const char *const ops[] = {"forward", "backward"};
    int kind = 0;
    int op = 0;
    *args = (pod_loss_args){.m = request->m,
                            .k = request->k,
                            .n = request->n,
                            .dtype = request->dtype,
                            .cores = request->cores};
    pod_status st = pod_cli_choice_parse(texts->loss, "--loss", kinds, 2, &kind, err);
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->op, "--op", ops, 2, &op, err);
    }
    args->chunked = kind == 1;
    args->backward = op == 1;
    if (st == POD_OK) {
        st = read_tile(texts->tile, &args->tile, err);
    }
    if (st == POD_OK && args->chunked && args->tile.m > 0 && args->tile.k != args->k) {
        return pod_fail(err, POD_E_USAGE, "chunks hold all of k; give --tile %lldx%lldx%lld",
                        (long long)args->tile.m, (long long)args->k, (long long)args->tile.n);
    }
    return st;
}

static pod_status run_loss(pod_cli *cli, const matmul_texts *texts, const pod_chip_spec *chip,
                           const matmul_request *request, matmul_row *row, pod_error *err)
{
    pod_loss_args args;
    pod_loss_time time;
    pod_status st = read_loss(texts, request, &args, err);
    if (st == POD_OK) {
        const int in = pod_dtype_size(args.dtype);
        const int all = args.backward ? 2 * in + 4 : in; /* derivatives, in f32 first */
        const matrix arrays[] = {
            {POD_HBM_ACTIVATIONS, 1, args.m, args.k, all},
            {POD_HBM_WEIGHTS,     1, args.k, args.n, all},
        };
        st = check_fit(chip, arrays, 2, err);
    }
    if (st == POD_OK) {
        st = pod_loss_time_get(chip, &args, &time, err);
    }
    if (st == POD_OK) {
        char line[512];
        explain_kernel(cli, chip, time.peak_ops_per_s, time.cores, args.dtype);
        pod_cli_explain(cli, "%s", pod_loss_explain(&time, line, sizeof line));
        const char *const figures[] = {"mxu_eff_frac", "vpu_eff_frac", "hbm_eff_frac",
                                       args.chunked ? "kernel_start_us" : "block_step_us",
                                       args.chunked    ? "loss_chunk_ops"
                                       : args.backward ? "loss_bwd_ops"
                                                       : "loss_fwd_ops"};
        pod_cli_explain_origins(cli, chip, figures, (int)(sizeof figures / sizeof figures[0]));
        *row = (matmul_row){.cores = time.cores,
                            .block = time.tile,
                            .time_ps = time.time_ps,
                            .ops_per_s = time.ops_per_s,
                            .peak_frac = time.peak_frac,
                            .bound = time.bound,
                            .hbm_bytes = time.hbm_bytes,
                            .flops = time.flops,
                            .op = args.backward ? "loss-backward" : "loss-forward",
                            .tile = time.tile};
    }
    return st;
}

/* ---- the command ---- */

static void add_block(pod_emit *emit, const pod_matmul_block *block)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%lldx%lldx%lld", (long long)block->m, (long long)block->k,
                   (long long)block->n);
    if (block->m > 0) {
        pod_emit_text(emit, text);
    } else {
        pod_emit_none(emit);
    }
}

static void add_row(pod_emit *emit, const pod_chip_spec *chip, const matmul_request *request,
                    const matmul_row *row)
{
    pod_emit_text(emit, chip->name);
    pod_emit_i64(emit, row->cores);
    pod_emit_i64(emit, request->m);
    pod_emit_i64(emit, request->k);
    pod_emit_i64(emit, request->n);
    pod_emit_text(emit, pod_dtype_name(request->dtype));
    add_block(emit, &row->block);
    pod_emit_double(emit, pod_time_to_us(row->time_ps));
    pod_emit_double(emit, row->ops_per_s / 1e12);
    pod_emit_double(emit, row->peak_frac);
    pod_emit_text(emit, pod_bound_name(row->bound));
    pod_emit_i64(emit, row->hbm_bytes);
    pod_emit_double(emit, row->hbm_bytes > 0 ? (double)row->flops / (double)row->hbm_bytes : 0);
    if (row->op != NULL) {
        pod_emit_text(emit, row->op);
    } else {
        pod_emit_none(emit);
    }
    if (row->groups > 0) {
        pod_emit_i64(emit, row->groups);
    } else {
        pod_emit_none(emit);
    }
    add_block(emit, &row->tile);
}

/* Options that only one kind of product knows. */
static pod_status check_kind(const matmul_texts *texts, pod_error *err)
{
    const bool kernel = texts->groups != NULL || texts->loss != NULL;
    const char *lost = NULL;
    if (texts->groups != NULL && texts->loss != NULL) {
        return pod_fail(err, POD_E_USAGE, "--groups and --loss are different kernels; give one");
    }
    if (kernel && texts->launch != NULL && strcmp(texts->launch, "host") == 0) {
        return pod_fail(err, POD_E_USAGE,
                        "--launch host is for a plain matmul; kernels are timed on the device");
    }
    if (kernel) {
        lost = texts->block != NULL ? "--block" : texts->weights != NULL ? "--weights" : NULL;
        if (lost != NULL) {
            return pod_fail(err, POD_E_USAGE,
                            "%s is for a plain matmul; with --groups or --loss give --tile", lost);
        }
    }
    lost = !kernel && texts->op != NULL ? "--op" : !kernel && texts->tile != NULL ? "--tile" : NULL;
    if (lost != NULL) {
        return pod_fail(err, POD_E_USAGE, "%s is for kernels; give --groups or --loss, too", lost);
    }
    return texts->groups == NULL && texts->group_sizes != NULL
               ? pod_fail(err, POD_E_USAGE, "--group-sizes needs groups; give --groups, too")
               : POD_OK;
}

static pod_status run(pod_cli *cli, const matmul_texts *texts, pod_error *err)
{
    matmul_request request;
    pod_chip_spec chip;
    matmul_row row;
    pod_emit *emit = NULL;
    pod_status st = pod_cli_require(texts->chip, "--chip", "v5e", err);
    if (st == POD_OK) {
        st = check_kind(texts, err);
    }
    if (st == POD_OK) {
        st = read_request(texts, &request, err);
    }
    if (st == POD_OK) {
        st = pod_cli_chip_load(cli, texts->chip, &chip, err);
    }
    if (st == POD_OK) {
        st = read_cores(texts->cores, &chip, &request, err);
    }
    if (st == POD_OK) {
        st = texts->groups != NULL ? run_grouped(cli, texts, &chip, &request, &row, err)
             : texts->loss != NULL ? run_loss(cli, texts, &chip, &request, &row, err)
                                   : run_plain(cli, texts, &chip, &request, &row, err);
    }
    if (st == POD_OK) {
        st = pod_emit_new(cli->common.format, "matmul", columns, NCOLUMNS, &emit, err);
    }
    if (st == POD_OK) {
        add_row(emit, &chip, &request, &row);
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    return st;
}

pod_status pod_cmd_matmul(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    matmul_texts texts = {0};
    /* clang-format off */
    const pod_cli_option own[] = {
        {"chip", 0, POD_CLI_TEXT, &texts.chip, "CHIP",
         "generation: v2, v3, v4, v5e, v5p, v6e or tpu7x"},
        {"m", 0, POD_CLI_TEXT, &texts.m, "M",
         "rows of A and C"},
        {"k", 0, POD_CLI_TEXT, &texts.k, "K",
         "columns of A, rows of B"},
        {"n", 0, POD_CLI_TEXT, &texts.n, "N",
         "columns of B and C"},
        {"dtype", 0, POD_CLI_TEXT, &texts.dtype, "TYPE",
         "of A and B: bf16, f32, int8 or fp8 (default: bf16)"},
        {"cores", 0, POD_CLI_TEXT, &texts.cores, "all|N",
         "cores that take part (default: all)"},
        {"weights", 0, POD_CLI_TEXT, &texts.weights, "hbm|vmem",
         "where B is (default: hbm)"},
        {"block", 0, POD_CLI_TEXT, &texts.block, "MxKxN",
         "the part that is in VMEM at once (default: the one that moves the fewest bytes)"},
        {"groups", 0, POD_CLI_TEXT, &texts.groups, "G",
         "a grouped matmul: the m rows are of G groups, each with weights of its own"},
        {"loss", 0, POD_CLI_TEXT, &texts.loss, "fused|chunked",
         "head and loss: logits, softmax and cross entropy in one kernel or in the compiler's chunks"},
        {"op", 0, POD_CLI_TEXT, &texts.op, "OP",
         "forward; grouped: rows or weights, the derivatives; loss: backward (default: forward)"},
        {"tile", 0, POD_CLI_TEXT, &texts.tile, "MxKxN",
         "of the kernel's grid (default: what fits VMEM; loss: 1024x512x2048)"},
        {"group-sizes", 0, POD_CLI_TEXT, &texts.group_sizes, "random|equal",
         "sizes of groups (default: random)"},
        {"launch", 0, POD_CLI_TEXT, &texts.launch, "host|device",
         "of a plain matmul: run from the host, as benchmarks do, or inside a program (default: host)"},
    };
    /* clang-format on */
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP --m M --k K --n N",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_EXPLAIN,
        .options = own,
        .noptions = (int)(sizeof own / sizeof own[0]),
    };
    const pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    return st != POD_OK || cli->help ? st : run(cli, &texts, err);
}
