/* SPDX-License-Identifier: Apache-2.0 */
/* podsim attention: one attention kernel on one chip. */
#include "base/units.h"
#include "chip/attention.h"
#include "chip/memory.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <stdio.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip"},
    {.name = "cores", .minor = 5},
    {.name = "op", .minor = 1},
    {.name = "batch", .minor = 2},
    {.name = "queries"},
    {.name = "keys", .minor = 1},
    {.name = "heads"},
    {.name = "kv_heads", .minor = 2},
    {.name = "qk_dim"},
    {.name = "v_dim", .minor = 2},
    {.name = "causal", .minor = 1},
    {.name = "window", .minor = 5},
    {.name = "blocks", .minor = 1},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2},
    {.name = "tflops", .title = "rate", .unit = "TFLOP/s", .decimals = 2},
    {.name = "peak_frac", .title = "of peak", .decimals = 4},
    {.name = "bound"},
    {.name = "full_blocks", .title = "full", .minor = 4},
    {.name = "masked_blocks", .title = "masked", .minor = 4},
};
/* clang-format on */
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

typedef struct attention_texts {
    const char *chip;
    const char *op;
    const char *batch;
    const char *queries;
    const char *keys;
    const char *heads;
    const char *kv_heads;
    const char *qk_dim;
    const char *v_dim;
    const char *window;
    const char *blocks;
    const char *backward;
    const char *cores;
    const char *dtype;
    bool causal;
} attention_texts;

static pod_status read_sizes(const attention_texts *texts, pod_attention_args *args, pod_error *err)
{
    static const int64_t one = 1;
    const pod_cli_size sizes[] = {
        {texts->batch,    "--batch",    "8",    &args->sequences, &one          },
        {texts->queries,  "--queries",  "4096", &args->queries,   NULL          },
        {texts->keys,     "--keys",     "4096", &args->keys,      &args->queries},
        {texts->heads,    "--heads",    "32",   &args->heads,     NULL          },
        {texts->kv_heads, "--kv-heads", "8",    &args->kv_heads,  &args->heads  },
        {texts->qk_dim,   "--qk-dim",   "128",  &args->qk_dim,    NULL          },
        {texts->v_dim,    "--v-dim",    "128",  &args->v_dim,     &args->qk_dim },
    };
    const pod_status st =
        pod_cli_sizes_at_least_one(sizes, (int)(sizeof sizes / sizeof sizes[0]), err);
    if (st == POD_OK && args->heads % args->kv_heads != 0) {
        return pod_fail(err, POD_E_RANGE,
                        "%lld heads don't divide over %lld heads of keys and values; give a "
                        "divisor as --kv-heads",
                        (long long)args->heads, (long long)args->kv_heads);
    }
    return st;
}

static pod_status read_args(const attention_texts *texts, pod_attention_args *args, pod_error *err)
{
    static const char *const ops[] = {"forward", "backward"};
    static const char *const backwards[] = {"fused", "split"};
    int op = 0;
    int split = 0;
    *args = (pod_attention_args){.dtype = POD_DTYPE_BF16, .causal = texts->causal, .copies = true};
    pod_status st = pod_cli_choice_parse(texts->op, "--op", ops, 2, &op, err);
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->backward, "--backward", backwards, 2, &split, err);
    }
    args->backward = op == 1;
    args->split = split == 1;
    if (st == POD_OK && texts->backward != NULL && !args->backward) {
        st = pod_fail(err, POD_E_USAGE, "--backward is for --op backward; leave one of them out");
    }
    if (st == POD_OK) {
        st = read_sizes(texts, args, err);
    }
    if (st == POD_OK && texts->window != NULL) {
        st = pod_parse_i64(texts->window, "--window", 1, INT64_MAX, &args->window, err);
        st = st == POD_OK ? POD_OK : POD_E_USAGE;
    }
    if (st == POD_OK && texts->blocks != NULL) {
        st = pod_attention_block_parse(texts->blocks, &args->block, err);
    }
    if (st == POD_OK && texts->dtype != NULL) {
        st = pod_dtype_parse(texts->dtype, &args->dtype, err);
    }
    args->cache = args->dtype;
    return st;
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
    pod_status st = POD_OK;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && st == POD_OK; i++) {
        int64_t bytes = pod_dtype_size(args->dtype) * (args->backward ? 2 : 1);
        if (!pod_mul_i64(bytes, args->sequences, &bytes) || !pod_mul_i64(bytes, rows[i][0], &bytes)
            || !pod_mul_i64(bytes, rows[i][1], &bytes) || !pod_mul_i64(bytes, rows[i][2], &bytes)) {
            return pod_fail(err, POD_E_RANGE, "attention of over 2^63 bytes; give smaller sizes");
        }
        st = pod_hbm_ledger_add(&ledger, POD_HBM_ACTIVATIONS, bytes, err);
    }
    return st == POD_OK ? pod_hbm_ledger_check(&ledger, "this attention", err) : st;
}

static void add_row(pod_emit *emit, const pod_chip_spec *chip, const pod_attention_args *args,
                    const pod_attention_time *time)
{
    char blocks[80];
    const pod_attention_block block = pod_attention_block_of(args);
    const double seconds = pod_time_to_s(time->time_ps);
    const double flops_per_s = seconds > 0 ? time->flops / seconds : 0;
    (void)snprintf(blocks, sizeof blocks, "%lldx%lldx%lld", (long long)block.queries,
                   (long long)block.keys, (long long)block.compute);
    pod_emit_text(emit, chip->name);
    pod_emit_i64(emit, time->cores);
    pod_emit_text(emit, args->backward ? "backward" : "forward");
    pod_emit_i64(emit, args->sequences);
    pod_emit_i64(emit, args->queries);
    pod_emit_i64(emit, args->keys);
    pod_emit_i64(emit, args->heads);
    pod_emit_i64(emit, args->kv_heads);
    pod_emit_i64(emit, args->qk_dim);
    pod_emit_i64(emit, args->v_dim);
    pod_emit_i64(emit, args->causal ? 1 : 0);
    pod_emit_i64(emit, args->window);
    pod_emit_text(emit, blocks);
    pod_emit_double(emit, pod_time_to_us(time->time_ps));
    pod_emit_double(emit, flops_per_s / 1e12);
    pod_emit_double(emit, flops_per_s / time->peak_ops_per_s);
    pod_emit_text(emit, pod_bound_name(time->bound));
    pod_emit_i64(emit, time->full_blocks);
    pod_emit_i64(emit, time->masked_blocks);
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
    pod_cli_explain(cli,
                    "rates %s: peak %g TFLOP/s x %g, vector unit %g Top/s x %g, HBM %g GB/s x %g",
                    pod_rates_name(chip->rates), time->peak_ops_per_s / 1e12, chip->mxu_eff_frac,
                    chip->vpu_ops_per_s * time->cores / chip->cores / 1e12, chip->vpu_eff_frac,
                    chip->hbm_bytes_per_s * time->cores / chip->cores / 1e9, chip->hbm_eff_frac);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (kernels[i].backward == args->backward
            && (!args->backward || kernels[i].split == args->split)) {
            const pod_attention_kernel kernel = pod_attention_kernel_of(chip, kernels[i].part);
            explain_kernel(cli, kernels[i].name, chip, &kernel);
        }
    }
    pod_cli_explain(
        cli,
        "time %.3f us = max(blocks %.3f, hbm %.3f) + copies into head order and back "
        "%.3f; blocks: mxu %.3f, vpu %.3f, steps %.3f; scores seen %.6g of %.6g computed",
        pod_time_to_us(time->time_ps), pod_time_to_us(time->grid_ps), pod_time_to_us(time->hbm_ps),
        pod_time_to_us(time->copies_ps), pod_time_to_us(time->mxu_ps), pod_time_to_us(time->vpu_ps),
        pod_time_to_us(time->step_ps), time->seen, time->scores);
    static const char *const figures[] = {"mxu_eff_frac", "vpu_eff_frac", "hbm_eff_frac",
                                          "block_step_us", "attention_rescale_ops"};
    pod_cli_explain_origins(cli, chip, figures, (int)(sizeof figures / sizeof figures[0]));
}

static pod_status run(pod_cli *cli, const attention_texts *texts, pod_error *err)
{
    pod_attention_args args;
    pod_chip_spec chip;
    pod_attention_time time;
    pod_emit *emit = NULL;
    pod_status st = pod_cli_require(texts->chip, "--chip", "v5p", err);
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
        st = pod_attention_time_get(&chip, &args, &time, err);
    }
    if (st == POD_OK) {
        st = pod_emit_new(cli->common.format, "attention", columns, NCOLUMNS, &emit, err);
    }
    if (st == POD_OK) {
        explain(cli, &chip, &args, &time);
        add_row(emit, &chip, &args, &time);
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    return st;
}

pod_status pod_cmd_attention(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    attention_texts texts = {0};
    /* clang-format off */
    const pod_cli_option own[] = {
        {"chip", 0, POD_CLI_TEXT, &texts.chip, "CHIP",
         "generation: v2, v3, v4, v5e, v5p, v6e or tpu7x"},
        {"op", 0, POD_CLI_TEXT, &texts.op, "forward|backward",
         "which pass (default: forward)"},
        {"batch", 0, POD_CLI_TEXT, &texts.batch, "B",
         "sequences of the chip (default: 1)"},
        {"queries", 0, POD_CLI_TEXT, &texts.queries, "Q",
         "queries of a sequence"},
        {"keys", 0, POD_CLI_TEXT, &texts.keys, "K",
         "keys of a sequence (default: as many as queries)"},
        {"heads", 0, POD_CLI_TEXT, &texts.heads, "H",
         "heads of queries"},
        {"kv-heads", 0, POD_CLI_TEXT, &texts.kv_heads, "H",
         "heads of keys and values (default: as many as of queries)"},
        {"qk-dim", 0, POD_CLI_TEXT, &texts.qk_dim, "D",
         "size of a query and a key of one head"},
        {"v-dim", 0, POD_CLI_TEXT, &texts.v_dim, "D",
         "size of a value (default: as a key)"},
        {"causal", 0, POD_CLI_FLAG, &texts.causal, NULL,
         "a query sees the keys up to its own"},
        {"window", 0, POD_CLI_TEXT, &texts.window, "W",
         "and no more than W of them, its own included"},
        {"blocks", 0, POD_CLI_TEXT, &texts.blocks, "QxKVxCOMPUTE",
         "queries and keys of a block, keys computed at once (default: 2048x2048x512)"},
        {"backward", 0, POD_CLI_TEXT, &texts.backward, "fused|split",
         "one kernel for all gradients, or one for dQ and one for dK and dV (default: fused)"},
        {"cores", 0, POD_CLI_TEXT, &texts.cores, "all|N",
         "cores that take part (default: all)"},
        {"dtype", 0, POD_CLI_TEXT, &texts.dtype, "TYPE",
         "of queries, keys and values: bf16, f32, int8 or fp8 (default: bf16)"},
    };
    /* clang-format on */
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP --queries Q --heads H --qk-dim D [--op backward] [--causal]",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_EXPLAIN,
        .options = own,
        .noptions = (int)(sizeof own / sizeof own[0]),
    };
    const pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    return st != POD_OK || cli->help ? st : run(cli, &texts, err);
}
