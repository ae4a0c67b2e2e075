/* SPDX-License-Identifier: Apache-2.0 */
/* podsim matmul: a matrix product on one chip. */
#include "base/names.h"
#include "base/units.h"
#include "chip/matmul.h"
#include "chip/memory.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <string.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip"},
    {.name = "cores"},
    {.name = "m"},
    {.name = "k"},
    {.name = "n"},
    {.name = "dtype", .title = "type"},
    {.name = "block"},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2},
    {.name = "tflops", .title = "rate", .unit = "TFLOP/s", .decimals = 2},
    {.name = "peak_frac", .title = "of peak", .decimals = 4},
    {.name = "bound"},
    {.name = "hbm_bytes", .title = "HBM", .unit = "B"},
    {.name = "intensity_flops_per_byte", .title = "intensity", .unit = "FLOP/B", .decimals = 1},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "C[m,n] = A[m,k] B[k,n] with B as the weights. block = the part of the product that is in "
    "VMEM\n"
    "at once; hbm_bytes = what moves between HBM and VMEM with it; tflops = 2 m k n / time;\n"
    "peak_frac = of the peak of the cores that took part; bound = what takes longest: mxu, hbm,\n"
    "vmem or launch; intensity = 2 m k n / hbm_bytes.\n";

typedef struct matmul_texts {
    const char *chip;
    const char *m;
    const char *k;
    const char *n;
    const char *dtype;
    const char *cores;
    const char *weights;
    const char *block;
} matmul_texts;

static pod_status read_size(const char *text, const char *option, int64_t *size, pod_error *err)
{
    pod_status st = pod_cli_require(text, option, "4096", err);
    if (st == POD_OK) {
        st = pod_cli_count_parse(text, option, size, err);
    }
    return st;
}

static pod_status read_args(const matmul_texts *texts, pod_matmul_args *args, pod_error *err)
{
    static const char *const places[] = {"hbm", "vmem"};
    int in_vmem = 0;
    *args = (pod_matmul_args){.dtype = POD_DTYPE_BF16, .alone = true};
    pod_status st = read_size(texts->m, "--m", &args->m, err);
    if (st == POD_OK) {
        st = read_size(texts->k, "--k", &args->k, err);
    }
    if (st == POD_OK) {
        st = read_size(texts->n, "--n", &args->n, err);
    }
    if (st == POD_OK && texts->dtype != NULL) {
        st = pod_dtype_parse(texts->dtype, &args->dtype, err);
    }
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->weights, "--weights", places, 2, &in_vmem, err);
    }
    if (st == POD_OK && texts->block != NULL) {
        st = pod_matmul_block_parse(texts->block, &args->block, err);
    }
    args->weights_in_vmem = in_vmem == 1;
    return st;
}

/* A, B and C must be in HBM at once (B not when it is in VMEM already). */
static pod_status check_fit(const pod_chip_spec *chip, const pod_matmul_args *args, pod_error *err)
{
    const int in_size = pod_dtype_size(args->dtype);
    /* clang-format off */
    const struct {
        pod_hbm_kind kind;
        int64_t rows;
        int64_t columns;
        int size;
    } arrays[] = {
        {POD_HBM_ACTIVATIONS, args->m,                            args->k, in_size                            },
        {POD_HBM_WEIGHTS,     args->weights_in_vmem ? 0 : args->k, args->n, in_size                            },
        {POD_HBM_ACTIVATIONS, args->m,                            args->n, pod_matmul_output_size(args->dtype)},
    };
    /* clang-format on */
    pod_hbm_ledger ledger;
    pod_hbm_ledger_init(&ledger, chip);
    pod_status st = POD_OK;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0] && st == POD_OK; i++) {
        int64_t bytes = 0;
        if (!pod_mul_i64(arrays[i].rows, arrays[i].columns, &bytes)
            || !pod_mul_i64(bytes, arrays[i].size, &bytes)) {
            return pod_fail(err, POD_E_RANGE,
                            "a matrix of %lld x %lld exceeds 2^63 bytes; give "
                            "smaller sizes",
                            (long long)arrays[i].rows, (long long)arrays[i].columns);
        }
        st = pod_hbm_ledger_add(&ledger, arrays[i].kind, bytes, err);
    }
    return st == POD_OK ? pod_hbm_ledger_check(&ledger, "this matmul", err) : st;
}

static void add_row(pod_emit *emit, const pod_chip_spec *chip, const pod_matmul_args *args,
                    const pod_matmul_time *time)
{
    char block[80];
    (void)snprintf(block, sizeof block, "%lldx%lldx%lld", (long long)time->block.m,
                   (long long)time->block.k, (long long)time->block.n);
    pod_emit_text(emit, chip->name);
    pod_emit_i64(emit, time->cores);
    pod_emit_i64(emit, args->m);
    pod_emit_i64(emit, args->k);
    pod_emit_i64(emit, args->n);
    pod_emit_text(emit, pod_dtype_name(args->dtype));
    if (time->steps > 0) {
        pod_emit_text(emit, block);
    } else {
        pod_emit_none(emit);
    }
    pod_emit_double(emit, pod_time_to_us(time->time_ps));
    pod_emit_double(emit, time->ops_per_s / 1e12);
    pod_emit_double(emit, time->peak_frac);
    pod_emit_text(emit, pod_bound_name(time->bound));
    pod_emit_i64(emit, time->hbm_bytes);
    pod_emit_double(emit, time->hbm_bytes > 0 ? (double)time->flops / (double)time->hbm_bytes : 0);
}

static pod_status run(pod_cli *cli, const matmul_texts *texts, pod_error *err)
{
    pod_matmul_args args;
    pod_chip_spec chip;
    pod_matmul_time time;
    pod_emit *emit = NULL;
    pod_status st = pod_cli_require(texts->chip, "--chip", "v5e", err);
    if (st == POD_OK) {
        st = read_args(texts, &args, err);
    }
    if (st == POD_OK) {
        st = pod_cli_chip_load(cli, texts->chip, &chip, err);
    }
    if (st == POD_OK) {
        st = pod_cli_cores_parse(texts->cores, &chip, &args.one_core, err);
    }
    if (st == POD_OK) {
        st = check_fit(&chip, &args, err);
    }
    if (st == POD_OK) {
        st = pod_matmul_time_get(&chip, &args, &time, err);
    }
    if (st == POD_OK) {
        st = pod_emit_new(cli->common.format, "matmul", columns, NCOLUMNS, &emit, err);
    }
    if (st == POD_OK) {
        char line[512];
        pod_cli_explain(cli, "rates %s: peak %g TFLOP/s (%s), HBM %g GB/s x %g",
                        pod_rates_name(chip.rates), time.peak_ops_per_s / 1e12,
                        pod_dtype_name(args.dtype), chip.hbm_bytes_per_s / 1e9, chip.hbm_eff_frac);
        pod_cli_explain(cli, "%s", pod_matmul_explain(&time, line, sizeof line));
        add_row(emit, &chip, &args, &time);
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
