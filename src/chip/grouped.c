/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/grouped.h"

#include "chip/ragged_tiles.h"
#include "chip/tile.h"

#include <math.h>
#include <stdio.h>

enum {
    ROWS_MAX = 1024,      /* of a tile that is chosen */
    SIZES_MAX = 64,       /* tried of one dimension */
    GROUPED_MASK_OPS = 4, /* of an element of an operand: index, compare, select, convert */
    GROUPED_SCALE_OPS =
        2, /* of an element of the result: the scales of its row and of its column */
};

static const char *const op_names[] = {"forward", "rows", "weights"};

const char *pod_grouped_op_name(pod_grouped_op op)
{
    POD_ASSERT((unsigned)op < sizeof op_names / sizeof op_names[0]);
    return op_names[op];
}

/* ---- tiles ---- */

/* Sizes in elements of the operands' and the result's tile. */
typedef struct tile_sizes {
    double left;  /* rows and, for weights, the other rows */
    double right; /* weights; for weights, the other rows */
    double result;
} tile_sizes;

static tile_sizes sizes_of(pod_grouped_op op, const pod_matmul_block *tile)
{
    const double m = (double)tile->m;
    const double k = (double)tile->k;
    const double n = (double)tile->n;
    return op == POD_GROUPED_WEIGHTS ? (tile_sizes){.left = m * k, .right = m * n, .result = k * n}
                                     : (tile_sizes){.left = m * k, .right = k * n, .result = m * n};
}

static int result_size(const pod_grouped_args *args)
{
    return pod_matmul_output_size(args->dtype);
}

/* Two buffers of the operands, one of the result beside its accumulator. */
static double grouped_vmem_need(const pod_grouped_args *args, const pod_matmul_block *tile)
{
    const tile_sizes sizes = sizes_of(args->op, tile);
    return POD_TILE_BUFFERS * pod_dtype_size(args->dtype) * (sizes.left + sizes.right)
           + (POD_TILE_ACCUMULATOR_BYTES + result_size(args)) * sizes.result;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Groups that have rows. */
static int64_t taken_groups(const pod_grouped_args *args, int64_t rows)
{
    return args->sizes == POD_GROUPS_ONE ? 1 : pod_min_i64(args->groups, rows);
}

/* Tiles of rows that are visited, again for every group that begins inside one. */
static int64_t tiles_of(const pod_grouped_args *args, int64_t rows, int64_t tile_m)
{
    const int64_t boundaries = taken_groups(args, rows) - 1;
    int64_t aligned = 0;
    if (args->sizes == POD_GROUPS_EQUAL) {
        const int64_t group = rows / args->groups;
        aligned = boundaries / (tile_m / greatest_divisor(group, tile_m));
    }
    return pod_ceil_div(rows, tile_m) + boundaries - aligned;
}

/* ---- time ---- */

typedef struct step_cost {
    double mxu_s;
    double vpu_s;
    double left_bytes;
    double right_bytes;
    double result_bytes;
    double hbm_rate;
} step_cost;

typedef struct grouped_sums {
    double time_s;
    double bytes;
    double zeros; /* steps that only write a tile of zeros */
} grouped_sums;

/* `count` steps that copy `bytes` each. */
static void grouped_sums_add(grouped_sums *sum, const step_cost *cost, double count, double bytes)
{
    sum->time_s += count * pod_max_f64(cost->mxu_s + cost->vpu_s, bytes / cost->hbm_rate);
    sum->bytes += count * bytes;
}

/* Whether a tile takes all of a width that is no multiple of 128: what is beyond it has to be masked. */
static bool is_ragged(int64_t width, int64_t tile)
{
    return width % POD_TILE_LANES != 0 && tile >= width;
}

/* Vector operations of the masks of ragged tiles: one an element and ragged side. */
static double ragged_ops(const pod_grouped_args *args, const pod_matmul_block *tile,
                         const tile_sizes *sizes)
{
    const int k = is_ragged(args->k, tile->k);
    const int n = is_ragged(args->n, tile->n);
    return args->op == POD_GROUPED_WEIGHTS
               ? k * sizes->left + n * sizes->right + (k + n) * sizes->result
               : k * sizes->left + (k + n) * sizes->right + n * sizes->result;
}

static step_cost grouped_step_cost(const pod_chip_spec *worker, const pod_grouped_args *args,
                                   const pod_grouped_time *time)
{
    const pod_matmul_block *tile = &time->block;
    const tile_sizes sizes = sizes_of(args->op, tile);
    const int64_t dim = worker->mxu_dim;
    const bool masked =
        args->op == POD_GROUPED_WEIGHTS ? args->megablox : args->k % time->tile.k != 0;
    const bool scaled = pod_dtype_size(args->dtype) == 1;
    const double ops = (POD_TILE_ACCUMULATE_OPS + (scaled ? GROUPED_SCALE_OPS : 0)) * sizes.result
                       + (masked ? GROUPED_MASK_OPS * (sizes.left + sizes.right) : 0)
                       + ragged_ops(args, tile, &sizes);
    return (step_cost){
        .mxu_s = 2.0 * (double)tile->m * (double)pod_round_up(tile->k, dim)
                 * (double)pod_round_up(tile->n, dim)
                 / (worker->peak_ops_per_s[args->dtype] * worker->mxu_eff_frac),
        .vpu_s = ops / (worker->vpu_ops_per_s * worker->vpu_eff_frac),
        .left_bytes = sizes.left * pod_dtype_size(args->dtype),
        .right_bytes = sizes.right * pod_dtype_size(args->dtype),
        .result_bytes = sizes.result * result_size(args),
        .hbm_rate = worker->hbm_bytes_per_s * worker->hbm_eff_frac,
    };
}

/* All steps of a device with `rows` rows. */
static grouped_sums steps_sum(const pod_grouped_args *args, const step_cost *cost, int64_t rows,
                              pod_grouped_time *time)
{
    const double nk = (double)pod_ceil_div(args->k, time->block.k);
    const double nn = (double)pod_ceil_div(args->n, time->block.n);
    const double operands = cost->left_bytes + cost->right_bytes;
    time->tiles = tiles_of(args, rows, time->block.m);
    const double tiles = (double)time->tiles;
    const double steps = tiles * nk * nn;
    grouped_sums sum = {0};
    const double taken = (double)taken_groups(args, rows);
    if (args->op == POD_GROUPED_WEIGHTS) {
        const double ends = fmin(taken * nk * nn, steps);
        const double zeros = ((double)args->groups - taken) * nk * nn;
        grouped_sums_add(&sum, cost, steps - ends, operands);
        grouped_sums_add(&sum, cost, ends, operands + cost->result_bytes);
        sum.time_s += zeros * cost->result_bytes / cost->hbm_rate;
        sum.bytes += zeros * cost->result_bytes;
        sum.zeros = zeros;
    } else if (nk == 1) {
        const double loads = fmin(taken * nn, steps);
        grouped_sums_add(&sum, cost, steps - loads, cost->left_bytes + cost->result_bytes);
        grouped_sums_add(&sum, cost, loads, operands + cost->result_bytes);
    } else {
        grouped_sums_add(&sum, cost, tiles * nn * (nk - 1), operands);
        grouped_sums_add(&sum, cost, tiles * nn, operands + cost->result_bytes);
    }
    return sum;
}

static pod_matmul_block block_of(const pod_grouped_args *args, const pod_matmul_block *tile)
{
    return (pod_matmul_block){.m = pod_min_i64(tile->m, pod_round_up(args->m, POD_TILE_LANES)),
                              .k = pod_min_i64(tile->k, pod_round_up(args->k, POD_TILE_LANES)),
                              .n = pod_min_i64(tile->n, pod_round_up(args->n, POD_TILE_LANES))};
}

/* What a device with `rows` rows needs for its steps with time->tile, and to begin them. */
typedef struct device_sum {
    step_cost cost;
    grouped_sums sum;
    double steps;  /* those that multiply */
    double step_s; /* of all block steps */
} device_sum;

static device_sum device_of(const pod_chip_spec *worker, const pod_grouped_args *args, int64_t rows,
                            pod_grouped_time *time)
{
    time->block = block_of(args, &time->tile);
    device_sum device = {.cost = grouped_step_cost(worker, args, time)};
    const int64_t columns = pod_ceil_div(args->n, time->block.n);
    if (args->megablox) {
        const double uneven =
            (double)(pod_ceil_div(columns, worker->cores) * worker->cores) / (double)columns;
        device.cost.mxu_s *= uneven;
        device.cost.vpu_s *= uneven;
    }
    device.sum = steps_sum(args, &device.cost, rows, time);
    device.steps = (double)time->tiles * (double)pod_ceil_div(args->k, time->block.k)
                   * (double)pod_ceil_div(args->n, time->block.n);
    device.step_s =
        (device.steps + device.sum.zeros) * pod_time_to_s(worker->block_step_ps) / worker->cores;
    return device;
}

/* Sizes of a tile along a dimension: for each number of pieces the least multiple of 128. Larger ones of as many
 * pieces need more work, bytes and VMEM. @return how many */
static int sizes_find(int64_t dim, int64_t sizes[SIZES_MAX])
{
    int n = 0;
    for (int64_t size = POD_TILE_LANES; size < dim && n < SIZES_MAX - 1; size += POD_TILE_LANES) {
        if (n == 0 || pod_ceil_div(dim, size) < pod_ceil_div(dim, sizes[n - 1])) {
            sizes[n++] = size;
        }
    }
    sizes[n++] = pod_round_up(dim, POD_TILE_LANES);
    return n;
}

static pod_status grouped_check_tile(const pod_chip_spec *worker, const pod_grouped_args *args,
                                     pod_error *err)
{
    const double mib = 1024.0 * 1024.0;
    const pod_matmul_block block = block_of(args, &args->tile);
    const double need = grouped_vmem_need(args, &block);
    return need <= (double)worker->vmem_bytes
               ? POD_OK
               : pod_fail(err, POD_E_NOFIT,
                          "the tile needs %.2f MiB of the %.2f MiB of VMEM that there is; make it "
                          "smaller",
                          need / mib, (double)worker->vmem_bytes / mib);
}

/* The tile with the least time of those that VMEM holds; the smallest of equal ones. */
static pod_matmul_block choose_tile(const pod_chip_spec *worker, const pod_grouped_args *args,
                                    int64_t rows)
{
    int64_t k[SIZES_MAX];
    int64_t n[SIZES_MAX];
    const int nm = (int)pod_ceil_div(pod_min_i64(args->m, ROWS_MAX), POD_TILE_LANES);
    const int nk = sizes_find(args->k, k);
    const int nn = sizes_find(args->n, n);
    pod_matmul_block best = {.m = POD_TILE_LANES, .k = POD_TILE_LANES, .n = POD_TILE_LANES};
    double best_s = INFINITY;
    pod_grouped_time time = {0};
    for (int i = 0; i < nm * nk * nn; i++) {
        time.tile = (pod_matmul_block){
            .m = (i / (nk * nn) + 1) * POD_TILE_LANES, .k = k[i / nn % nk], .n = n[i % nn]};
        if (grouped_vmem_need(args, &time.tile) > (double)worker->vmem_bytes) {
            continue;
        }
        const device_sum device = device_of(worker, args, rows, &time);
        if (device.sum.time_s + device.step_s < best_s) {
            best_s = device.sum.time_s + device.step_s;
            best = time.tile;
        }
    }
    return best;
}

/* Where none is given: tokamax's own in bf16, if it has the shape and VMEM holds it. */
static pod_matmul_block tile_unless_given(const pod_chip_spec *worker, const pod_grouped_args *args,
                                          int64_t rows)
{
    const bool back = args->op == POD_GROUPED_ROWS;
    const int64_t kn[2] = {back ? args->n : args->k, back ? args->k : args->n};
    pod_matmul_block own = {0};
    if (!args->megablox && !args->split_groups && args->dtype == POD_DTYPE_BF16) {
        own = pod_ragged_tile_find((int)args->op, args->groups, rows, kn);
    }
    return own.m > 0 && grouped_vmem_need(args, &own) <= (double)worker->vmem_bytes
               ? own
               : choose_tile(worker, args, rows);
}

static pod_status grouped_check(const pod_grouped_args *args, int64_t *flops, pod_error *err)
{
    if (args->m < 0 || args->k < 0 || args->n < 0 || args->groups < 1) {
        return pod_fail(err, POD_E_RANGE,
                        "a grouped matmul of %lldx%lldx%lld in %lld groups; sizes must not be "
                        "negative, and there is at least one group",
                        (long long)args->m, (long long)args->k, (long long)args->n,
                        (long long)args->groups);
    }
    if (args->sizes == POD_GROUPS_EQUAL && args->m % args->groups != 0) {
        return pod_fail(err, POD_E_RANGE,
                        "%lld rows don't divide into %lld equal groups; give a multiple",
                        (long long)args->m, (long long)args->groups);
    }
    int64_t mk = 0;
    const double weights = (double)args->k * (double)args->n * (double)args->groups;
    const double most = pod_max_f64(pod_max_f64((double)args->m * (double)args->n, weights),
                                    (double)args->m * (double)args->k);
    if (!pod_mul_i64(args->m, args->k, &mk) || !pod_mul_i64(mk, args->n, flops)
        || !pod_mul_i64(*flops, 2, flops) || most > POD_TILE_TOTAL_MAX / 16) {
        return pod_fail(err, POD_E_RANGE,
                        "a grouped matmul of %lldx%lldx%lld counts over 63 bits; make it smaller",
                        (long long)args->m, (long long)args->k, (long long)args->n);
    }
    return POD_OK;
}

static pod_bound grouped_bound(const pod_grouped_time *time)
{
    const pod_time_ps most = time->mxu_ps > time->vpu_ps ? time->mxu_ps : time->vpu_ps;
    if (time->step_ps > most && time->step_ps > time->hbm_ps) {
        return POD_BOUND_LAUNCH;
    }
    if (time->hbm_ps > most) {
        return POD_BOUND_HBM;
    }
    return time->mxu_ps >= time->vpu_ps ? POD_BOUND_MXU : POD_BOUND_VPU;
}

pod_status pod_grouped_time_get(const pod_chip_spec *chip, const pod_grouped_args *args,
                                pod_grouped_time *out, pod_error *err)
{
    pod_grouped_time time = {.bound = POD_BOUND_HBM};
    POD_TRY(grouped_check(args, &time.flops, err));
    int devices = 1;
    const pod_chip_spec worker = pod_chip_kernel_device(chip, args->cores, &devices);
    POD_TRY(grouped_check_tile(&worker, args, err));
    time.cores = worker.cores * devices;
    time.peak_ops_per_s = worker.peak_ops_per_s[args->dtype] * devices;
    pod_grouped_args own = *args;
    int64_t rows = pod_ceil_div(args->m, devices);
    if (args->split_groups && args->groups >= devices) {
        own.groups = pod_ceil_div(args->groups, devices);
        rows = args->m / args->groups * own.groups
               + pod_ceil_div(args->m % args->groups * own.groups, args->groups);
    }
    if (time.flops > 0) {
        time.tile = args->tile.m > 0 ? args->tile : tile_unless_given(&worker, &own, rows);
        const device_sum device = device_of(&worker, &own, rows, &time);
        const step_cost cost = device.cost;
        const grouped_sums sum = device.sum;
        const double steps = device.steps;
        time.time_ps = pod_time_from_s(sum.time_s + device.step_s);
        if (time.time_ps == POD_TIME_NEVER || sum.bytes * devices > POD_TILE_TOTAL_MAX
            || steps + sum.zeros > POD_TILE_TOTAL_MAX) {
            return pod_fail(err, POD_E_RANGE,
                            "a grouped matmul of %lldx%lldx%lld lasts over 106 days; make it "
                            "smaller or its tiles larger",
                            (long long)args->m, (long long)args->k, (long long)args->n);
        }
        time.steps = llround(steps + sum.zeros);
        time.hbm_bytes = llround(sum.bytes * devices);
        time.mxu_ps = pod_time_from_s(steps * cost.mxu_s);
        time.vpu_ps = pod_time_from_s(steps * cost.vpu_s);
        time.hbm_ps = pod_time_from_s(sum.bytes / cost.hbm_rate);
        time.step_ps = pod_time_from_s(device.step_s);
        time.bound = grouped_bound(&time);
        time.ops_per_s = time.time_ps > 0 ? (double)time.flops / pod_time_to_s(time.time_ps) : 0;
        time.peak_frac = time.ops_per_s / time.peak_ops_per_s;
    }
    *out = time;
    return POD_OK;
}

const char *pod_grouped_explain(const pod_grouped_time *time, char *buf, size_t size)
{
    (void)snprintf(
        buf, size,
        "time %.3f us = sum over steps of max(mxu + vpu, hbm) + block steps %.3f; mxu %.3f, vpu "
        "%.3f, hbm %.3f; %lld steps a device of %lldx%lldx%lld, %lld tiles of rows, %d core%s",
        pod_time_to_us(time->time_ps), pod_time_to_us(time->step_ps), pod_time_to_us(time->mxu_ps),
        pod_time_to_us(time->vpu_ps), pod_time_to_us(time->hbm_ps), (long long)time->steps,
        (long long)time->block.m, (long long)time->block.k, (long long)time->block.n,
        (long long)time->tiles, time->cores, time->cores > 1 ? "s" : "");
    return buf;
}
