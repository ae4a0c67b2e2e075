/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/loss.h"
#include "chip/tile.h"

#include <math.h>
#include <stdio.h>

enum {
    F32 = 4,
    BACKWARD_PRODUCTS = 3,
};

static const pod_matmul_block default_tile = {.m = 1024, .k = 512, .n = 2048};

/* ---- sums over steps, in seconds of one device ---- */

typedef struct sums {
    double time_s; /* without steps */
    double mxu_s;
    double vpu_s;
    double bytes;
    double steps;
} sums;

typedef struct rates {
    double mxu;
    double vpu;
    double hbm;
} rates;

/* One kind of step, and how it goes. */
typedef struct kind {
    double flops; /* padded */
    double ops;
    double bytes;         /* copied beside the work */
    double exposed_bytes; /* after it */
} kind;

static void add_steps(sums *sum, const rates *rate, double count, const kind *step)
{
    const double mxu_s = step->flops / rate->mxu;
    const double vpu_s = step->ops / rate->vpu;
    sum->time_s +=
        count
        * (pod_max_f64(mxu_s + vpu_s, step->bytes / rate->hbm) + step->exposed_bytes / rate->hbm);
    sum->mxu_s += count * mxu_s;
    sum->vpu_s += count * vpu_s;
    sum->bytes += count * (step->bytes + step->exposed_bytes);
    sum->steps += count;
}

/* What a kernel does once, without a step of the grid. */
static void add_once(sums *sum, const rates *rate, double count, const kind *what)
{
    const double steps = sum->steps;
    add_steps(sum, rate, count, what);
    sum->steps = steps;
}

/* ---- fused ---- */

/* Elements of the tiles, and how many there are. */
typedef struct tiling {
    double rows_k; /* of rows, of the head and of logits */
    double head;
    double logits;
    double padded_flops; /* of one product */
    double nm;
    double nk;
    double nn;
} tiling;

static tiling tiling_of(const pod_chip_spec *worker, const pod_loss_args *args,
                        const pod_matmul_block *tile, int64_t rows)
{
    const double m = (double)tile->m;
    const double k = (double)tile->k;
    const double n = (double)tile->n;
    return (tiling){
        .rows_k = m * k,
        .head = k * n,
        .logits = m * n,
        .padded_flops = 2 * m * (double)pod_round_up(tile->k, worker->mxu_dim)
                        * (double)pod_round_up(tile->n, worker->mxu_dim),
        .nm = (double)pod_ceil_div(rows, tile->m),
        .nk = (double)pod_ceil_div(args->k, tile->k),
        .nn = (double)pod_ceil_div(args->n, tile->n),
    };
}

static sums fused_sums(const pod_chip_spec *worker, const pod_loss_args *args, const rates *rate,
                       const tiling *t, int64_t rows)
{
    const double size = pod_dtype_size(args->dtype);
    const double tiles = t->nm * t->nn;
    sums sum = {0};
    const kind logits = {
        .flops = t->padded_flops,
        .ops = POD_TILE_ACCUMULATE_OPS * t->logits,
        .bytes = size * (t->head + (t->nk > 1 ? t->rows_k : 0)),
    };
    const kind softmax = {
        .ops = t->logits * (args->backward ? worker->loss_bwd_ops : worker->loss_fwd_ops),
    };
    add_steps(&sum, rate, tiles * t->nk, &logits);
    add_once(&sum, rate, tiles, &softmax);
    if (args->backward) {
        kind gradients = {
            .flops = 2 * t->padded_flops,
            .ops = POD_TILE_ACCUMULATE_OPS * (t->rows_k + t->head),
            .bytes = size * (t->rows_k + t->head) + F32 * t->rows_k,
            .exposed_bytes = F32 * (t->rows_k + t->head),
        };
        add_steps(&sum, rate, t->nn * t->nk, &gradients);
        gradients.bytes += F32 * t->head;
        add_steps(&sum, rate, (t->nm - 1) * t->nn * t->nk, &gradients);
        const kind rounding = {.bytes = (F32 + size) * (double)args->k
                                        * ((double)rows + (double)args->n)};
        add_once(&sum, rate, 1, &rounding);
    }
    return sum;
}

/* ---- chunked ---- */

static sums chunked_sums(const pod_chip_spec *worker, const pod_loss_args *args, const rates *rate,
                         const tiling *t)
{
    const double size = pod_dtype_size(args->dtype);
    const double products = args->backward ? BACKWARD_PRODUCTS : 1;
    const double chunks = t->nm * t->nn;
    sums sum = {0};
    const kind product = {
        .flops = products * t->padded_flops,
        .bytes = t->head * (args->backward ? 2 * size + 2 * F32 : size),
    };
    const kind softmax = {.ops = t->logits * worker->loss_chunk_ops};
    add_steps(&sum, rate, chunks, &product);
    add_once(&sum, rate, chunks, &softmax);
    sum.steps *= products;
    if (args->n % args->tile.n != 0) {
        const kind padding = {.bytes = 2 * size * (double)args->k * (double)args->n};
        add_once(&sum, rate, 1, &padding);
    }
    return sum;
}

/* ---- time ---- */

static pod_status loss_check(const pod_loss_args *args, int64_t *flops, pod_error *err)
{
    const int64_t products = 2 * (args->backward ? BACKWARD_PRODUCTS : 1);
    int64_t mk = 0;
    if (args->m < 1 || args->k < 1 || args->n < 1) {
        return pod_fail(err, POD_E_RANGE, "a loss of %lldx%lldx%lld; sizes must be at least 1",
                        (long long)args->m, (long long)args->k, (long long)args->n);
    }
    if (!pod_mul_i64(args->m, args->k, &mk) || !pod_mul_i64(mk, args->n, flops)
        || !pod_mul_i64(*flops, products, flops)) {
        return pod_fail(err, POD_E_RANGE,
                        "a loss of %lldx%lldx%lld counts over 63 bits; make it smaller",
                        (long long)args->m, (long long)args->k, (long long)args->n);
    }
    return POD_OK;
}

/* Two buffers of both operands, the logits, and backward the derivatives' tiles. */
static pod_status check_tile(const pod_chip_spec *worker, const pod_loss_args *args,
                             const tiling *t, pod_error *err)
{
    const double mib = 1024.0 * 1024.0;
    const double derivatives = args->backward ? t->rows_k + t->head : 0;
    const double need = POD_TILE_BUFFERS * pod_dtype_size(args->dtype) * (t->rows_k + t->head)
                        + F32 * (t->logits + derivatives);
    if (!args->chunked && need > (double)worker->vmem_bytes) {
        return pod_fail(err, POD_E_NOFIT,
                        "the tile needs %.2f MiB of the %.2f MiB of VMEM that there is; make it "
                        "smaller",
                        need / mib, (double)worker->vmem_bytes / mib);
    }
    return POD_OK;
}

static pod_bound loss_bound(const pod_loss_time *time)
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

/* The tile in force, no larger than the matrices. */
static pod_matmul_block tile_of(const pod_loss_args *args, int64_t rows)
{
    pod_matmul_block tile = args->tile.m > 0 ? args->tile : default_tile;
    tile.m = pod_min_i64(tile.m, pod_round_up(rows, POD_TILE_LANES));
    tile.k = args->chunked ? args->k : pod_min_i64(tile.k, pod_round_up(args->k, POD_TILE_LANES));
    tile.n = pod_min_i64(tile.n, pod_round_up(args->n, POD_TILE_LANES));
    return tile;
}

static pod_status fill(pod_loss_time *time, const sums *sum, const rates *rate, double step_s,
                       int devices, pod_error *err)
{
    time->time_ps = pod_time_from_s(sum->time_s + sum->steps * step_s);
    if (time->time_ps == POD_TIME_NEVER || sum->bytes * devices > POD_TILE_TOTAL_MAX
        || sum->steps > POD_TILE_TOTAL_MAX) {
        return pod_fail(err, POD_E_RANGE,
                        "a loss lasts over 106 days; make it smaller or its tiles larger");
    }
    time->steps = llround(sum->steps);
    time->hbm_bytes = llround(sum->bytes * devices);
    time->mxu_ps = pod_time_from_s(sum->mxu_s);
    time->vpu_ps = pod_time_from_s(sum->vpu_s);
    time->hbm_ps = pod_time_from_s(sum->bytes / rate->hbm);
    time->step_ps = pod_time_from_s(sum->steps * step_s);
    time->bound = loss_bound(time);
    time->ops_per_s = time->time_ps > 0 ? (double)time->flops / pod_time_to_s(time->time_ps) : 0;
    time->peak_frac = time->ops_per_s / time->peak_ops_per_s;
    return POD_OK;
}

pod_status pod_loss_time_get(const pod_chip_spec *chip, const pod_loss_args *args,
                             pod_loss_time *out, pod_error *err)
{
    pod_loss_time time = {0};
    POD_TRY(loss_check(args, &time.flops, err));
    const int every = args->chunked ? chip->cores : 0; /* the compiler uses all cores */
    int devices = 1;
    const pod_chip_spec worker =
        pod_chip_kernel_device(chip, args->cores > 0 ? args->cores : every, &devices);
    const int64_t rows = pod_ceil_div(args->m, devices);
    time.tile = tile_of(args, rows);
    time.cores = worker.cores * devices;
    time.peak_ops_per_s = worker.peak_ops_per_s[args->dtype] * devices;
    const tiling t = tiling_of(&worker, args, &time.tile, rows);
    POD_TRY(check_tile(&worker, args, &t, err));
    const rates rate = {.mxu = worker.peak_ops_per_s[args->dtype] * worker.mxu_eff_frac,
                        .vpu = worker.vpu_ops_per_s * worker.vpu_eff_frac,
                        .hbm = worker.hbm_bytes_per_s * worker.hbm_eff_frac};
    pod_loss_args own = *args;
    own.tile = time.tile;
    const sums sum = args->chunked ? chunked_sums(&worker, &own, &rate, &t)
                                   : fused_sums(&worker, &own, &rate, &t, rows);
    const double step_s = args->chunked ? pod_time_to_s(worker.kernel_start_ps)
                                        : pod_time_to_s(worker.block_step_ps) / worker.cores;
    POD_TRY(fill(&time, &sum, &rate, step_s, devices, err));
    *out = time;
    return POD_OK;
}

const char *pod_loss_explain(const pod_loss_time *time, char *buf, size_t size)
{
    (void)snprintf(
        buf, size,
        "time %.3f us = sum over steps of max(mxu + vpu, hbm beside them) + softmax + hbm after "
        "them + steps %.3f; mxu %.3f, vpu %.3f, hbm %.3f; %lld steps a device of %lldx%lldx%lld, "
        "%d core%s",
        pod_time_to_us(time->time_ps), pod_time_to_us(time->step_ps), pod_time_to_us(time->mxu_ps),
        pod_time_to_us(time->vpu_ps), pod_time_to_us(time->hbm_ps), (long long)time->steps,
        (long long)time->tile.m, (long long)time->tile.k, (long long)time->tile.n, time->cores,
        time->cores > 1 ? "s" : "");
    return buf;
}
