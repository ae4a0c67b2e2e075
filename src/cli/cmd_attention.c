/* SPDX-License-Identifier: Apache-2.0 */
/* podsim attention: one attention kernel on one chip. */
#include "base/units.h"
#include "chip/attention.h"
#include "chip/memory.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <stdio.h>

typedef struct attention_row {
    const char *chip;
    int32_t cores;
    const char *op;
    pod_attention_args args;
    char blocks[80];
    pod_time_ps time_ps;
    double tflops;
    double peak_frac;
    const char *bound;
    int64_t full_blocks;
    int64_t masked_blocks;
} attention_row;

#define AT(field) POD_FIELD(attention_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip", AT(chip)},
    {.name = "cores", .minor = 5, AT(cores)},
    {.name = "op", .minor = 1, AT(op)},
    {.name = "batch", .minor = 2, AT(args.sequences)},
    {.name = "queries", AT(args.queries)},
    {.name = "keys", .minor = 1, AT(args.keys)},
    {.name = "heads", AT(args.heads)},
    {.name = "kv_heads", .minor = 2, AT(args.kv_heads)},
    {.name = "qk_dim", AT(args.qk_dim)},
    {.name = "v_dim", .minor = 2, AT(args.v_dim)},
    {.name = "causal", .minor = 1, AT(args.causal)},
    {.name = "window", .minor = 5, AT(args.window)},
    {.name = "blocks", .minor = 1, AT(blocks)},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2, POD_TIME_FIELD(attention_row, time_ps, US)},
    {.name = "tflops", .title = "rate", .unit = "TFLOP/s", .decimals = 2, AT(tflops)},
    {.name = "peak_frac", .title = "of peak", .decimals = 4, AT(peak_frac)},
    {.name = "bound", AT(bound)},
    {.name = "full_blocks", .title = "full", .minor = 4, AT(full_blocks)},
    {.name = "masked_blocks", .title = "masked", .minor = 4, AT(masked_blocks)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "A kernel that keeps scores in VMEM (flash attention), alone, its inputs [batch, sequence, "
    "head,\n"
    "dim]. The batch is of the whole chip: devices of one core each (v2, v3, tpu7x) share it, "
    "unless\n"
    "--cores 1. Queries are the last of the keys. tflops = matmuls over the scores that the mask\n"
    "leaves, without padding, over the time; backward has 5 matmuls of one head, 7 if split.\n"
    "full, masked = blocks of one head that are computed; masked ones are cut by the mask's edge.\n"
    "bound = what takes longest: mxu, vpu, hbm (copies into head order too) or launch (of "
    "blocks).\n";

/* What the options say. */
typedef struct attention_options {
    const char *chip;
    const char *cores;
    pod_attention_args args;
} attention_options;

static pod_status read_block(const char *text, void *field, pod_error *err)
{
    return pod_attention_block_parse(text, field, err);
}

/* What follows from other options, and what must go together. */
static pod_status args_complete(pod_attention_args *args, const pod_cli_said *said, pod_error *err)
{
    args->keys = args->keys > 0 ? args->keys : args->queries;
    args->kv_heads = args->kv_heads > 0 ? args->kv_heads : args->heads;
    args->v_dim = args->v_dim > 0 ? args->v_dim : args->qk_dim;
    args->cache = args->dtype;
    if (pod_cli_said_text(said, "backward") != NULL && !args->backward) {
        return pod_fail(err, POD_E_USAGE, "--backward is for --op backward; leave one of them out");
    }
    if (args->heads % args->kv_heads != 0) {
        return pod_fail(err, POD_E_RANGE,
                        "%lld heads don't divide over %lld heads of keys and values; give a "
                        "divisor as --kv-heads",
                        (long long)args->heads, (long long)args->kv_heads);
    }
    return POD_OK;
}

/* Queries, keys, values and the output must be in HBM at once; backward, their gradients too. */
static pod_status check_fit(const pod_chip_spec *chip, const pod_attention_args *args,
                            pod_error *err)
{
    const int64_t rows[][3] = {
        {args->heads,    args->queries, args->qk_dim},
        {args->kv_heads, args->keys,    args->qk_dim},
        {args->kv_heads, args->keys,    args->v_dim },
        {args->heads,    args->queries, args->v_dim },
    };
    const pod_chip_spec device = pod_chip_one_device(chip);
    pod_hbm_ledger ledger;
    pod_hbm_ledger_init(&ledger, args->one_core ? &device : chip);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes = pod_dtype_size(args->dtype) * (args->backward ? 2 : 1);
        if (!pod_mul_i64(bytes, args->sequences, &bytes) || !pod_mul_i64(bytes, rows[i][0], &bytes)
            || !pod_mul_i64(bytes, rows[i][1], &bytes) || !pod_mul_i64(bytes, rows[i][2], &bytes)) {
            return pod_fail(err, POD_E_RANGE, "attention of over 2^63 bytes; give smaller sizes");
        }
        POD_TRY(pod_hbm_ledger_add(&ledger, POD_HBM_ACTIVATIONS, bytes, err));
    }
    return pod_hbm_ledger_check(&ledger, "this attention", err);
}

static void add_row(pod_emit *emit, const pod_chip_spec *chip, const pod_attention_args *args,
                    const pod_attention_time *time)
{
    const pod_attention_block block = pod_attention_block_of(args);
    const double seconds = pod_time_to_s(time->time_ps);
    const double flops_per_s = seconds > 0 ? time->flops / seconds : 0;
    attention_row row = {.chip = chip->name,
                         .cores = time->cores,
                         .op = args->backward ? "backward" : "forward",
                         .args = *args,
                         .time_ps = time->time_ps,
                         .tflops = flops_per_s / 1e12,
                         .peak_frac = flops_per_s / time->peak_ops_per_s,
                         .bound = pod_bound_name(time->bound),
                         .full_blocks = time->full_blocks,
                         .masked_blocks = time->masked_blocks};
    (void)snprintf(row.blocks, sizeof row.blocks, "%lldx%lldx%lld", (long long)block.queries,
                   (long long)block.keys, (long long)block.compute);
    pod_emit_fields(emit, &row, NCOLUMNS);
}

static void explain_kernel(const pod_cli *cli, const char *name, const pod_chip_spec *chip,
                           const pod_attention_kernel *kernel)
{
    pod_cli_explain(cli,
                    "%s: matmuls %d of qk_dim + %d of v_dim; %g vector operations a score, 3 more "
                    "if masked, %g a rescaled element; blocks step in %g us; %d passes over HBM",
                    name, kernel->qk_products, kernel->v_products, kernel->vpu_ops,
                    kernel->rescale_ops, pod_time_to_us(chip->block_step_ps), kernel->hbm_passes);
}

static void explain(const pod_cli *cli, const pod_chip_spec *chip, const pod_attention_args *args,
                    const pod_attention_time *time)
{
    static const struct {
        const char *name;
        pod_attention_part part;
        bool backward;
        bool split;
    } kernels[] = {
        {"forward", POD_ATTENTION_FORWARD, false, false},
        {"fused",   POD_ATTENTION_FUSED,   true,  false},
        {"dkv",     POD_ATTENTION_DKV,     true,  true },
        {"dq",      POD_ATTENTION_DQ,      true,  true },
    };
    pod_cli_explain(
        cli, "rates %s: peak %g TFLOP/s x %g, vector unit %g Top/s x %g, HBM %g GB/s x %g",
        pod_rates_name(chip->rates), time->peak_ops_per_s / 1e12, chip->mxu_eff_frac,
        chip->vpu_ops_per_s * time->cores / chip->cores / 1e12, chip->vpu_eff_frac,
        chip->hbm_bytes_per_s / (args->one_core ? chip->cores : 1) / 1e9, chip->hbm_eff_frac);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (kernels[i].backward == args->backward
            && (!args->backward || kernels[i].split == args->split)) {
            const pod_attention_kernel kernel = pod_attention_kernel_of(chip, kernels[i].part);
            explain_kernel(cli, kernels[i].name, chip, &kernel);
        }
    }
    pod_cli_explain(
        cli,
        "time %.3f us = hypot(blocks %.3f, hbm %.3f) + copies into head order and back "
        "%.3f; blocks: mxu %.3f, vpu %.3f, steps %.3f; scores seen %.6g of %.6g computed",
        pod_time_to_us(time->time_ps), pod_time_to_us(time->grid_ps), pod_time_to_us(time->hbm_ps),
        pod_time_to_us(time->copies_ps), pod_time_to_us(time->mxu_ps), pod_time_to_us(time->vpu_ps),
        pod_time_to_us(time->step_ps), time->seen, time->scores);
    static const char *const figures[] = {"mxu_eff_frac", "vpu_eff_frac", "hbm_eff_frac",
                                          "block_step_us", "attention_rescale_ops"};
    pod_cli_explain_origins(cli, chip, figures, (int)(sizeof figures / sizeof figures[0]));
}

static pod_status run(pod_cli *cli, const attention_options *own, pod_error *err)
{
    pod_attention_args args = own->args;
    pod_chip_spec chip;
    pod_attention_time time;
    pod_emit *emit = NULL;
    POD_TRY(pod_cli_chip_load(cli, own->chip, &chip, err));
    POD_TRY(pod_cli_cores_parse(own->cores, &chip, &args.one_core, err));
    POD_TRY(check_fit(&chip, &args, err));
    POD_TRY(pod_attention_time_get(&chip, &args, &time, err));
    POD_TRY(pod_emit_new(cli->common.format, "attention", columns, NCOLUMNS, &emit, err));
    explain(cli, &chip, &args, &time);
    add_row(emit, &chip, &args, &time);
    const pod_status st = pod_cli_finish(cli, emit, err);
    pod_emit_free(emit);
    return st;
}

#define AT(field) POD_CLI_FIELD(attention_options, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"chip", 0, POD_CLI_TEXT, AT(chip), "CHIP",
     "generation: v2, v3, v4, v5e, v5p, v6e or tpu7x", .example = "v5p", .matters = true},
    {"op", 0, POD_CLI_CHOICE, AT(args.backward), "forward|backward",
     "which pass (default: forward)", .matters = true},
    {"batch", 0, POD_CLI_SIZE, AT(args.sequences), "B",
     "sequences of the chip (default: 1)", .matters = true},
    {"queries", 0, POD_CLI_SIZE, AT(args.queries), "Q",
     "queries of a sequence", .example = "4096", .matters = true},
    {"keys", 0, POD_CLI_SIZE, AT(args.keys), "K",
     "keys of a sequence (default: as many as queries)"},
    {"heads", 0, POD_CLI_SIZE, AT(args.heads), "H",
     "heads of queries", .example = "32", .matters = true},
    {"kv-heads", 0, POD_CLI_SIZE, AT(args.kv_heads), "H",
     "heads of keys and values (default: as many as of queries)", .matters = true},
    {"qk-dim", 0, POD_CLI_SIZE, AT(args.qk_dim), "D",
     "size of a query and a key of one head", .example = "128", .matters = true},
    {"v-dim", 0, POD_CLI_SIZE, AT(args.v_dim), "D",
     "size of a value (default: as a key)"},
    {"causal", 0, POD_CLI_FLAG, AT(args.causal), NULL,
     "a query sees the keys up to its own", .matters = true},
    {"window", 0, POD_CLI_SIZE, AT(args.window), "W",
     "and no more than W of them, its own included"},
    {"blocks", 0, POD_CLI_READ, AT(args.block), "QxKVxCOMPUTE",
     "queries and keys of a block, keys computed at once (default: 2048x2048x512)", .read = read_block},
    {"backward", 0, POD_CLI_CHOICE, AT(args.split), "fused|split",
     "one kernel for all gradients, or one for dQ and one for dK and dV (default: fused)"},
    {"kernel", 0, POD_CLI_CHOICE, AT(args.serial), "tokamax|splash",
     "whose: in JAX's splash forward, matmuls and vector work alternate (default: tokamax)"},
    {"cores", 0, POD_CLI_TEXT, AT(cores), "all|N",
     "cores that take part (default: all)"},
    {"dtype", 0, POD_CLI_READ, AT(args.dtype), "TYPE",
     "of queries, keys and values: bf16, f32, int8 or fp8 (default: bf16)", .read = pod_cli_dtype_read},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_attention(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    attention_options own = {
        .args = {.dtype = POD_DTYPE_BF16, .sequences = 1, .copies = true}
    };
    pod_cli_said said;
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP --queries Q --heads H --qk-dim D [--op backward] [--causal]",
        .examples = "--chip v5p --queries 4096 --heads 32 --qk-dim 128 --causal\n"
                    "--chip v6e --queries 8192 --heads 32 --kv-heads 8 --qk-dim 128 --op backward\n"
                    "--chip v5e --queries 1 --keys 8192 --heads 32 --kv-heads 8 --qk-dim 128\n",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_EXPLAIN,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
        .said = &said,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    POD_TRY(args_complete(&own.args, &said, err));
    return run(cli, &own, err);
}
