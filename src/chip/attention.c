/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/attention.h"
#include "chip/tile.h"

#include <math.h>

enum {
    BLOCK_ROWS = 2048,
    PIECE_KEYS = 512,
    ATTENTION_MASK_OPS = 3, /* compare twice and select */
    COPY_PASSES = 2,
    QUERY_BLOCKS_MAX = 1 << 18,
};

/* What the fused kernel's operations are more than those of dq and of dkv. */
static const double OPS_OF_DV = 3;
static const double OPS_OF_DQ = 1;

pod_attention_kernel pod_attention_kernel_of(const pod_chip_spec *chip, pod_attention_part part)
{
    pod_attention_kernel kernel = {.qk_products = 1,
                                   .v_products = 1,
                                   .vpu_ops = chip->attention_fwd_ops,
                                   .rescale_ops = chip->attention_rescale_ops,
                                   .hbm_passes = 1};
    if (part == POD_ATTENTION_FORWARD) {
        return kernel;
    }
    kernel.vpu_ops = chip->attention_bwd_ops;
    kernel.backward = true;
    kernel.adds_to_dq = part != POD_ATTENTION_DKV;
    kernel.adds_to_dkv = part != POD_ATTENTION_DQ;
    switch (part) {
    case POD_ATTENTION_FORWARD:
    case POD_ATTENTION_FUSED:
        kernel.qk_products = 3;
        kernel.v_products = 2;
        kernel.hbm_passes = 4;
        break;
    case POD_ATTENTION_DQ:
        kernel.qk_products = 2;
        kernel.vpu_ops = pod_max_f64(kernel.vpu_ops - OPS_OF_DV, 0);
        kernel.hbm_passes = 2;
        break;
    case POD_ATTENTION_DKV:
        kernel.qk_products = 2;
        kernel.v_products = 2;
        kernel.vpu_ops = pod_max_f64(kernel.vpu_ops - OPS_OF_DQ, 0);
        kernel.hbm_passes = 2;
        break;
    }
    return kernel;
}

pod_attention_block pod_attention_block_of(const pod_attention_args *args)
{
    const pod_attention_block *given = &args->block;
    pod_attention_block block = {
        .queries = pod_min_i64(
            given->queries > 0 ? given->queries : BLOCK_ROWS,
            pod_max_i64(pod_round_up(args->queries, POD_TILE_SUBLANES), POD_TILE_SUBLANES)),
        .keys = pod_min_i64(given->keys > 0 ? given->keys : BLOCK_ROWS, pod_max_i64(args->keys, 1)),
    };
    block.compute = pod_min_i64(given->compute > 0 ? given->compute : PIECE_KEYS, block.keys);
    return block;
}

/* ---- one head ---- */

/* Costs of a piece's score and row on one device. */
typedef struct piece_cost {
    double mxu_s;    /* of a score */
    double vpu_s;    /* of a score */
    double mask_s;   /* of a score of a masked block */
    double row_s;    /* of a query's row of the running result */
    double key_s;    /* of a key's rows of the running results */
    double step_s;   /* of a block */
    int64_t compute; /* keys of a piece */
    bool serial;     /* the units alternate */
} piece_cost;

typedef struct grid {
    double mxu_s;
    double vpu_s;
    double step_s;
    double total_s;
    double scores;
    int64_t full;
    int64_t masked;
} grid;

/* `count` blocks of rows x keys. */
static void add_blocks(grid *sum, const piece_cost *cost, int64_t count, int64_t rows, int64_t keys,
                       bool masked)
{
    const double blocks = (double)count;
    const double pieces = (double)pod_ceil_div(keys, cost->compute);
    const double scores = (double)rows * (double)pod_min_i64(cost->compute, keys);
    const double mxu_s = scores * cost->mxu_s;
    const double vpu_s = scores * (cost->vpu_s + (masked ? cost->mask_s : 0))
                         + (double)rows * cost->row_s
                         + (double)pod_min_i64(cost->compute, keys) * cost->key_s;
    const bool by_mxu = mxu_s > vpu_s;
    sum->mxu_s += blocks * pieces * mxu_s;
    sum->vpu_s += blocks * pieces * vpu_s;
    sum->step_s += blocks * cost->step_s;
    const double longer_s = by_mxu ? mxu_s : vpu_s;
    const double shorter_s = by_mxu ? vpu_s : mxu_s;
    sum->total_s +=
        blocks * (pieces * longer_s + (cost->serial ? pieces : 1) * shorter_s + cost->step_s);
    sum->scores += blocks * (double)rows * (double)keys;
    sum->full += masked ? 0 : count;
    sum->masked += masked ? count : 0;
}

/* The blocks of keys that the rows from `first` to `last` of the queries see. */
static void add_query_block(grid *sum, const piece_cost *cost, const pod_attention_args *args,
                            const pod_attention_block *block, int64_t first, int64_t last)
{
    const int64_t before = args->keys - args->queries + args->after;
    const int64_t nblocks = pod_ceil_div(args->keys, block->keys);
    const int64_t rows =
        pod_min_i64(pod_round_up(last + 1 - first, POD_TILE_SUBLANES), block->queries);
    const int64_t rest = args->keys - (nblocks - 1) * block->keys; /* keys of the last block */
    int64_t begin = 0;
    int64_t whole_begin = 0;
    int64_t end = nblocks;
    int64_t whole_end = nblocks;
    if (args->causal) {
        end = pod_min_i64(pod_ceil_div(before + last + 1, block->keys), nblocks);
        whole_end = before + first + 1 >= args->keys ? nblocks : (before + first + 1) / block->keys;
    }
    if (args->window > 0) {
        begin = pod_max_i64(before + first + 1 - args->window, 0) / block->keys;
        whole_begin = pod_ceil_div(pod_max_i64(before + last + 1 - args->window, 0), block->keys);
    }
    if (args->chunk > 0) {
        begin = pod_max_i64(begin, (before + first) / args->chunk * args->chunk / block->keys);
        whole_begin = pod_max_i64(
            whole_begin, pod_ceil_div((before + last) / args->chunk * args->chunk, block->keys));
    }
    begin = pod_min_i64(begin, end); /* keys that are too far back aren't looked at */
    const int64_t whole =
        pod_max_i64(pod_min_i64(whole_end, end) - pod_max_i64(whole_begin, begin), 0);
    const int64_t cut = end - begin - whole;
    const bool ragged = end == nblocks && end > begin && rest < block->keys;
    const bool ragged_whole = ragged && whole > 0 && whole_end == nblocks;
    const bool ragged_cut = ragged && !ragged_whole;
    add_blocks(sum, cost, whole - (ragged_whole ? 1 : 0), rows, block->keys, false);
    add_blocks(sum, cost, cut - (ragged_cut ? 1 : 0), rows, block->keys, true);
    if (ragged) {
        add_blocks(sum, cost, 1, rows, rest, ragged_cut);
    }
}

static grid grid_of_head(const piece_cost *cost, const pod_attention_args *args,
                         const pod_attention_block *block)
{
    grid sum = {0};
    if (args->keys == 0) {
        return sum;
    }
    if (!args->causal && args->window == 0) {
        /* all blocks of queries are the same but for the last */
        const int64_t whole = args->queries / block->queries;
        grid one = {0};
        add_query_block(&one, cost, args, block, 0, block->queries - 1);
        sum = (grid){.mxu_s = one.mxu_s * (double)whole,
                     .vpu_s = one.vpu_s * (double)whole,
                     .step_s = one.step_s * (double)whole,
                     .total_s = one.total_s * (double)whole,
                     .scores = one.scores * (double)whole,
                     .full = one.full * whole};
        if (args->queries % block->queries != 0) {
            add_query_block(&sum, cost, args, block, whole * block->queries, args->queries - 1);
        }
        return sum;
    }
    for (int64_t first = 0; first < args->queries; first += block->queries) {
        add_query_block(&sum, cost, args, block, first,
                        pod_min_i64(first + block->queries, args->queries) - 1);
    }
    return sum;
}

/* Sum of max(0, a + i) over i of [0, count). */
static double sum_of_positive(int64_t a, int64_t count)
{
    const double last = (double)(a + count - 1);
    const double before = (double)(a - 1);
    return (last > 0 ? last * (last + 1) / 2 : 0) - (before > 0 ? before * (before + 1) / 2 : 0);
}

/* Of all rows up to one: each sees those of its chunk that are not after it. */
static double seen_in_chunks(int64_t rows, int64_t chunk)
{
    const double whole = (double)(rows / chunk);
    const double size = (double)chunk;
    const double rest = (double)(rows % chunk);
    return whole * size * (size + 1) / 2 + rest * (rest + 1) / 2;
}

/* Of all queries the keys before one that moves with them, the first query's being `end`. */
static double keys_up_to(const pod_attention_args *args, int64_t end)
{
    return sum_of_positive(end, args->queries) - sum_of_positive(end - args->keys, args->queries);
}

/* Scores of one head that the mask leaves. */
static double seen_of_head(const pod_attention_args *args)
{
    const int64_t before = args->keys - args->queries + args->after;
    if (args->chunk > 0 && args->causal) {
        return seen_in_chunks(args->keys, args->chunk) - seen_in_chunks(before, args->chunk);
    }
    const double ends =
        args->causal ? keys_up_to(args, before + 1) : (double)args->queries * (double)args->keys;
    return args->window > 0 ? ends - keys_up_to(args, before + 1 - args->window) : ends;
}

/* ---- a kernel ---- */

/* What does the work: one core with its share of the HBM, or a device of the chip. Of a device that shares sequences
 * only as many cores as there are of them. @param[out] rounds  sequences, as many for each of its cores */
static pod_chip_spec worker_of(const pod_chip_spec *chip, const pod_attention_args *args,
                               const pod_attention_kernel *kernel, int64_t *rounds)
{
    int devices;
    *rounds = args->sequences;
    if (args->one_core) {
        return pod_chip_one_core(chip);
    }
    const pod_chip_spec device = pod_chip_one_device(chip);
    if (!kernel->backward || args->megacore) {
        return device;
    }
    const int busy = (int)pod_min_i64(device.cores, pod_max_i64(args->sequences, 1));
    *rounds = pod_round_up(args->sequences, busy);
    return pod_chip_kernel_device(chip, chip->devices * busy, &devices);
}

static double hbm_rate(const pod_chip_spec *chip)
{
    return chip->hbm_bytes_per_s * chip->hbm_eff_frac;
}

/* Queries and keys, values and output of all sequences in HBM. */
static double q_bytes(const pod_attention_args *args, int64_t width)
{
    return (double)args->sequences * (double)args->heads * (double)args->queries * (double)width
           * pod_dtype_size(args->dtype);
}

static double kv_bytes(const pod_attention_args *args)
{
    const int64_t width = args->qk_dim + (args->shared_kv ? 0 : args->v_dim);
    return (double)args->sequences * (double)args->kv_heads * (double)args->keys * (double)width
           * pod_dtype_size(args->cache);
}

static piece_cost attention_piece_cost(const pod_chip_spec *worker, const pod_attention_args *args,
                                       const pod_attention_kernel *kernel,
                                       const pod_attention_block *block)
{
    const double padded = kernel->qk_products * (double)pod_round_up(args->qk_dim, worker->mxu_dim)
                          + kernel->v_products * (double)pod_round_up(args->v_dim, worker->mxu_dim);
    const double vpu_rate = worker->vpu_ops_per_s * worker->vpu_eff_frac;
    const double add_s = kernel->rescale_ops / vpu_rate;
    const int64_t of_query = kernel->backward ? (kernel->adds_to_dq ? args->qk_dim : 0)
                                              : (args->max_estimate ? 0 : args->v_dim);
    const int64_t of_key = kernel->adds_to_dkv ? args->qk_dim + args->v_dim : 0;
    return (piece_cost){
        .mxu_s = 2 * padded / (worker->peak_ops_per_s[args->dtype] * worker->mxu_eff_frac),
        .vpu_s = kernel->vpu_ops / vpu_rate,
        .mask_s = ATTENTION_MASK_OPS / vpu_rate,
        .row_s = (double)of_query * add_s,
        .key_s = (double)of_key * add_s,
        .step_s = pod_time_to_s(worker->block_step_ps) / worker->cores,
        .compute = pod_min_i64(block->compute, PIECE_KEYS),
        .serial = args->serial && !kernel->backward,
    };
}

static pod_status attention_check(const pod_attention_args *args, const pod_attention_block *block,
                                  pod_error *err)
{
    if (args->sequences < 0 || args->heads < 0 || args->queries < 0 || args->keys < 0
        || args->window < 0 || args->qk_dim < 0 || args->v_dim < 0) {
        return pod_fail(err, POD_E_RANGE,
                        "attention of %lld queries to %lld keys; sizes must not be negative",
                        (long long)args->queries, (long long)args->keys);
    }
    if ((args->causal || args->window > 0) && args->keys < args->queries) {
        return pod_fail(err, POD_E_RANGE,
                        "attention of %lld queries to %lld keys: a causal mask and a window need "
                        "the queries among the keys; give at least %lld keys",
                        (long long)args->queries, (long long)args->keys, (long long)args->queries);
    }
    if (args->queries / block->queries > QUERY_BLOCKS_MAX) {
        return pod_fail(
            err, POD_E_RANGE,
            "attention of %lld queries in blocks of %lld: more than %d blocks; use larger "
            "blocks or fewer queries",
            (long long)args->queries, (long long)block->queries, QUERY_BLOCKS_MAX);
    }
    return POD_OK;
}

static pod_bound attention_bound(const pod_attention_time *time)
{
    const pod_time_ps moved_ps = time->hbm_ps + time->copies_ps;
    if (time->hbm_ps > time->grid_ps
        || (moved_ps > time->mxu_ps && moved_ps > time->vpu_ps && moved_ps > time->step_ps)) {
        return POD_BOUND_HBM;
    }
    if (time->step_ps > time->mxu_ps && time->step_ps > time->vpu_ps) {
        return POD_BOUND_LAUNCH;
    }
    return time->mxu_ps >= time->vpu_ps ? POD_BOUND_MXU : POD_BOUND_VPU;
}

pod_status pod_attention_kernel_time_get(const pod_chip_spec *chip, const pod_attention_args *args,
                                         const pod_attention_kernel *kernel,
                                         pod_attention_time *out, pod_error *err)
{
    const pod_attention_block block = pod_attention_block_of(args);
    POD_TRY(attention_check(args, &block, err));
    int64_t rounds;
    const pod_chip_spec worker = worker_of(chip, args, kernel, &rounds);
    const int workers = args->one_core ? 1 : chip->devices;
    const piece_cost cost = attention_piece_cost(&worker, args, kernel, &block);
    const grid head = grid_of_head(&cost, args, &block);
    const double heads = (double)args->sequences * (double)args->heads;
    const double share = (double)rounds * (double)args->heads / workers; /* of one device */
    const double kv = kv_bytes(args) / (args->paged ? worker.paged_eff_frac : 1);
    const double passes =
        (q_bytes(args, args->qk_dim + args->v_dim) + kv) / workers * kernel->hbm_passes;
    const double grid_s = share * head.total_s;
    const double hbm_s = passes / hbm_rate(&worker);
    const double seen = heads * seen_of_head(args);
    pod_attention_time time = {
        .time_ps = pod_time_from_s(hypot(grid_s, hbm_s)),
        .cores = worker.cores * workers,
        .mxu_ps = pod_time_from_s(share * head.mxu_s),
        .vpu_ps = pod_time_from_s(share * head.vpu_s),
        .grid_ps = pod_time_from_s(grid_s),
        .step_ps = pod_time_from_s(share * head.step_s),
        .hbm_ps = pod_time_from_s(hbm_s),
        .full_blocks = head.full,
        .masked_blocks = head.masked,
        .scores = heads * head.scores,
        .seen = seen,
        .flops = seen * 2
                 * (kernel->qk_products * (double)args->qk_dim
                    + kernel->v_products * (double)args->v_dim),
        .peak_ops_per_s = worker.peak_ops_per_s[args->dtype] * workers,
    };
    if (time.time_ps == POD_TIME_NEVER) {
        return pod_fail(err, POD_E_RANGE,
                        "attention of %lld queries to %lld keys lasts over 106 days",
                        (long long)args->queries, (long long)args->keys);
    }
    time.bound = attention_bound(&time);
    *out = time;
    return POD_OK;
}

/* ---- kernels of a pass ---- */

/* Into head order and back. */
static double copies_seconds(const pod_chip_spec *chip, const pod_attention_args *args)
{
    const pod_chip_spec worker =
        args->one_core ? pod_chip_one_core(chip) : pod_chip_one_device(chip);
    const int workers = args->one_core ? 1 : chip->devices;
    const double inputs = q_bytes(args, args->qk_dim) + kv_bytes(args);
    const double bytes =
        args->backward ? 2 * (inputs + q_bytes(args, args->v_dim)) : inputs; /* and gradients */
    return args->copies ? COPY_PASSES * bytes / workers / hbm_rate(&worker) : 0;
}

/* No term exceeds the time of its kernel, so if the times add up, so do the terms. */
static bool add_time(pod_attention_time *sum, const pod_attention_time *other)
{
    if (!pod_add_i64(sum->time_ps, other->time_ps, &sum->time_ps)) {
        return false;
    }
    sum->mxu_ps += other->mxu_ps;
    sum->vpu_ps += other->vpu_ps;
    sum->grid_ps += other->grid_ps;
    sum->step_ps += other->step_ps;
    sum->hbm_ps += other->hbm_ps;
    sum->scores += other->scores;
    sum->seen += other->seen;
    sum->flops += other->flops;
    return true;
}

pod_status pod_attention_time_get(const pod_chip_spec *chip, const pod_attention_args *args,
                                  pod_attention_time *out, pod_error *err)
{
    static const pod_attention_part split[] = {POD_ATTENTION_DKV, POD_ATTENTION_DQ};
    const pod_attention_part only = args->backward ? POD_ATTENTION_FUSED : POD_ATTENTION_FORWARD;
    const bool two = args->backward && args->split;
    pod_attention_time time = {0};
    for (int i = 0; i < (two ? 2 : 1); i++) {
        const pod_attention_kernel kernel = pod_attention_kernel_of(chip, two ? split[i] : only);
        pod_attention_time part;
        const pod_status st = pod_attention_kernel_time_get(chip, args, &kernel, &part, err);
        if (st != POD_OK) {
            return st;
        }
        if (i == 0) {
            time = part;
        } else if (!add_time(&time, &part)) {
            return pod_fail(err, POD_E_RANGE,
                            "attention of %lld queries to %lld keys lasts over 106 days",
                            (long long)args->queries, (long long)args->keys);
        }
    }
    time.copies_ps = pod_time_from_s(copies_seconds(chip, args));
    if (time.copies_ps == POD_TIME_NEVER
        || !pod_add_i64(time.time_ps, time.copies_ps, &time.time_ps)) {
        return pod_fail(err, POD_E_RANGE, "attention of %lld sequences lasts over 106 days",
                        (long long)args->sequences);
    }
    time.bound = attention_bound(&time);
    *out = time;
    return POD_OK;
}

pod_status pod_attention_block_parse(const char *text, pod_attention_block *block, pod_error *err)
{
    int64_t sizes[3];
    POD_TRY(
        pod_matmul_sizes_parse(text, "--blocks", "QxKVxCOMPUTE as in 2048x2048x512", sizes, err));
    *block = (pod_attention_block){.queries = sizes[0], .keys = sizes[1], .compute = sizes[2]};
    return POD_OK;
}

double pod_attention_flops(const pod_attention_args *args)
{
    const double qk = args->backward ? 3 : 1;
    const double v = args->backward ? 2 : 1;
    return (double)args->sequences * (double)args->heads * seen_of_head(args) * 2
           * (qk * (double)args->qk_dim + v * (double)args->v_dim);
}
