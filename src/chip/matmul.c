/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/matmul.h"
#include "chip/tile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const bound_names[] = {"mxu", "hbm", "vmem", "launch", "vpu"};

const char *pod_bound_name(pod_bound bound)
{
    POD_ASSERT((unsigned)bound < sizeof bound_names / sizeof bound_names[0]);
    return bound_names[bound];
}

pod_status pod_matmul_sizes_parse(const char *text, const char *option, const char *form,
                                  int64_t sizes[3], pod_error *err)
{
    char copy[64];
    int64_t read[3] = {0};
    if (strlen(text) >= sizeof copy) {
        return pod_fail(err, POD_E_USAGE, "%s '%.32s…' is too long; write %s", option, text, form);
    }
    (void)snprintf(copy, sizeof copy, "%s", text);
    char *at = copy;
    for (int i = 0; i < 3; i++) {
        char *end = i < 2 ? strchr(at, 'x') : at + strlen(at);
        if (end == NULL) {
            return pod_fail(err, POD_E_USAGE, "%s '%s' is no block; write %s", option, text, form);
        }
        *end = '\0';
        const pod_status st = pod_parse_i64(at, option, 1, INT64_MAX, &read[i], err);
        if (st != POD_OK) {
            return POD_E_USAGE;
        }
        at = end + 1;
    }
    memcpy(sizes, read, sizeof read);
    return POD_OK;
}

pod_status pod_matmul_block_parse(const char *text, pod_matmul_block *block, pod_error *err)
{
    int64_t sizes[3];
    POD_TRY(pod_matmul_sizes_parse(text, "--block", "MxKxN as in 512x1024x1024", sizes, err));
    *block = (pod_matmul_block){.m = sizes[0], .k = sizes[1], .n = sizes[2]};
    return POD_OK;
}

/* What one core does: its part of the product under the best block. Times in seconds. */
struct core_time {
    struct pod_blocking blocking;
    double mxu_s;
    double hbm_s;
    double exposed_s;
    double vmem_s;
    double fill_s;
    double grid_s;  /* what the steps of a given block add to mxu */
    double total_s; /* without launch */
};

/* Row-cycles of the busiest array, times what a row-cycle lasts. */
double pod_matmul_steps_s(const pod_chip_spec *core, pod_dtype dtype, double steps)
{
    const double groups = ceil(steps / core->mxus_per_core);
    const double ops_per_row = 2.0 * (double)core->mxu_dim * (double)core->mxu_dim;
    const double peak = core->peak_ops_per_s[dtype] / core->mxus_per_core;
    return groups * POD_TILE_SUBLANES * ops_per_row / (peak * core->mxu_eff_frac);
}

static double mxu_seconds(const pod_chip_spec *core, const pod_matmul_args *part)
{
    const int64_t dim = core->mxu_dim;
    const double tiles = (double)pod_ceil_div(part->k, dim) * (double)pod_ceil_div(part->n, dim);
    return pod_matmul_steps_s(core, part->dtype,
                              tiles * (double)pod_ceil_div(part->m, POD_TILE_SUBLANES));
}

static struct core_time core_time_of(const pod_chip_spec *core, const pod_matmul_args *part,
                                     const struct pod_blocking *blocking)
{
    const double hbm_rate = core->hbm_bytes_per_s * core->hbm_eff_frac;
    const double gap_s = pod_time_to_s(core->block_step_ps);
    const double between_s = (double)(blocking->steps - 1) * gap_s;
    const bool given = part->block.m > 0;
    struct core_time t = {.blocking = *blocking};
    t.mxu_s = mxu_seconds(core, part);
    t.hbm_s = blocking->hbm_bytes / hbm_rate + (given ? 0 : between_s);
    t.grid_s = given ? between_s : 0;
    t.exposed_s = (blocking->first_bytes + blocking->last_bytes) / hbm_rate;
    t.vmem_s = blocking->vmem_bytes / core->vmem_bytes_per_s;
    t.fill_s = 2.0 * core->mxu_dim / core->clock_hz;
    const double hidden_s = pod_max_f64(t.hbm_s - t.exposed_s, 0);
    t.total_s =
        t.exposed_s + pod_max_f64(pod_max_f64(t.mxu_s + t.grid_s, hidden_s), t.vmem_s) + t.fill_s;
    return t;
}

/* The part of a core when `axis` (0 = m, 1 = n) is divided over the cores. */
static pod_matmul_args part_of(const pod_matmul_args *args, int cores, int axis)
{
    pod_matmul_args part = *args;
    if (axis == 0) {
        part.m = pod_ceil_div(args->m, cores);
    } else {
        part.n = pod_ceil_div(args->n, cores);
    }
    return part;
}

static pod_status quickest_split(const pod_chip_spec *core, const pod_matmul_args *args, int cores,
                                 struct core_time *best, pod_error *err)
{
    bool found = false;
    pod_error first = {.status = POD_OK};
    for (int axis = 0; axis < (cores > 1 ? 2 : 1); axis++) {
        const pod_matmul_args part = part_of(args, cores, axis);
        struct pod_blocking blocking;
        const pod_status st = pod_blocking_choose(core, &part, &blocking, &first);
        if (st != POD_OK) {
            continue;
        }
        const struct core_time t = core_time_of(core, &part, &blocking);
        if (!found || t.total_s < best->total_s) {
            *best = t;
        }
        found = true;
    }
    if (!found) {
        return pod_fail(err, first.status, "%s", first.text);
    }
    return POD_OK;
}

/* Nothing to multiply: an empty contraction still writes zeros. */
static struct core_time empty_time(const pod_chip_spec *core, const pod_matmul_args *args,
                                   int cores)
{
    const double bytes =
        (double)args->m * (double)args->n * pod_matmul_output_size(args->dtype) / cores;
    struct core_time t = {
        .blocking = {.hbm_bytes = bytes, .last_bytes = bytes}
    };
    t.hbm_s = bytes / (core->hbm_bytes_per_s * core->hbm_eff_frac);
    t.exposed_s = t.hbm_s;
    t.total_s = t.hbm_s;
    return t;
}

static pod_bound core_bound(const struct core_time *t, double launch_s)
{
    if (launch_s + t->grid_s > pod_max_f64(pod_max_f64(t->mxu_s, t->hbm_s), t->vmem_s)) {
        return POD_BOUND_LAUNCH;
    }
    if (t->vmem_s > pod_max_f64(t->mxu_s, t->hbm_s)) {
        return POD_BOUND_VMEM;
    }
    return t->mxu_s >= t->hbm_s ? POD_BOUND_MXU : POD_BOUND_HBM;
}

static pod_status check_sizes(const pod_matmul_args *args, int64_t *flops, pod_error *err)
{
    if (args->m < 0 || args->k < 0 || args->n < 0) {
        return pod_fail(err, POD_E_RANGE, "a matmul of %lldx%lldx%lld; sizes must not be negative",
                        (long long)args->m, (long long)args->k, (long long)args->n);
    }
    int64_t mk = 0;
    const bool fits = pod_mul_i64(args->m, args->k, &mk) && pod_mul_i64(mk, args->n, flops)
                      && pod_mul_i64(*flops, 2, flops);
    const double mn = (double)args->m * (double)args->n;
    const double kn = (double)args->k * (double)args->n;
    if (!fits
        || pod_max_f64(pod_max_f64(mn, kn), (double)args->m * (double)args->k)
               > POD_TILE_TOTAL_MAX / 16) {
        return pod_fail(err, POD_E_RANGE,
                        "a matmul of %lldx%lldx%lld counts over 63 bits; make it smaller",
                        (long long)args->m, (long long)args->k, (long long)args->n);
    }
    return POD_OK;
}

pod_status pod_matmul_time_get(const pod_chip_spec *chip, const pod_matmul_args *args,
                               pod_matmul_time *out, pod_error *err)
{
    int64_t flops = 0;
    pod_status st = check_sizes(args, &flops, err);
    if (st != POD_OK) {
        return st;
    }
    const pod_chip_spec core = pod_chip_one_core(chip);
    const int cores = args->one_core ? 1 : chip->cores;
    struct core_time t = {0};
    if (flops == 0) {
        t = empty_time(&core, args, cores);
    } else {
        st = quickest_split(&core, args, cores, &t, err);
        if (st != POD_OK) {
            return st;
        }
    }
    const pod_time_ps launch_ps =
        chip->kernel_start_ps + (args->alone ? chip->matmul_launch_ps : 0);
    const double launch_s = pod_time_to_s(launch_ps);
    const double hbm_bytes = t.blocking.hbm_bytes * cores;
    const pod_time_ps time_ps = pod_time_from_s(launch_s + t.total_s);
    if (time_ps == POD_TIME_NEVER || hbm_bytes > POD_TILE_TOTAL_MAX) {
        return pod_fail(err, POD_E_RANGE, "a matmul of %lldx%lldx%lld lasts over 106 days",
                        (long long)args->m, (long long)args->k, (long long)args->n);
    }
    *out = (pod_matmul_time){
        .time_ps = time_ps,
        .bound = core_bound(&t, launch_s),
        .cores = cores,
        .block = t.blocking.block,
        .flops = flops,
        .hbm_bytes = llround(hbm_bytes),
        .peak_ops_per_s = core.peak_ops_per_s[args->dtype] * cores,
        .ops_per_s = time_ps > 0 ? (double)flops / pod_time_to_s(time_ps) : 0,
        .steps = t.blocking.steps,
        .launch_ps = launch_ps,
        .mxu_ps = pod_time_from_s(t.mxu_s),
        .hbm_ps = pod_time_from_s(t.hbm_s),
        .exposed_ps = pod_time_from_s(t.exposed_s),
        .vmem_ps = pod_time_from_s(t.vmem_s),
        .fill_ps = pod_time_from_s(t.fill_s),
        .grid_ps = pod_time_from_s(t.grid_s),
    };
    out->peak_frac = out->ops_per_s / out->peak_ops_per_s;
    return POD_OK;
}

double pod_matmul_mxu_s(const pod_chip_spec *chip, const pod_matmul_args *args)
{
    const pod_chip_spec core = pod_chip_one_core(chip);
    double least_s = -1;
    for (int axis = 0; axis < (chip->cores > 1 ? 2 : 1); axis++) {
        const pod_matmul_args part = part_of(args, chip->cores, axis);
        const double time_s = mxu_seconds(&core, &part);
        least_s = least_s < 0 || time_s < least_s ? time_s : least_s;
    }
    return least_s;
}

double pod_matmul_fill_s(const pod_chip_spec *chip)
{
    return 2.0 * chip->mxu_dim / chip->clock_hz;
}

const char *pod_matmul_explain(const pod_matmul_time *time, char *buf, size_t size)
{
    (void)snprintf(
        buf, size,
        "time %.3f us = launch %.3f + first and last block %.3f + max(mxu %.3f + grid %.3f, hbm "
        "%.3f - %.3f, vmem %.3f) + fill %.3f; block %lldx%lldx%lld, %lld steps a core, %d core%s",
        pod_time_to_us(time->time_ps), pod_time_to_us(time->launch_ps),
        pod_time_to_us(time->exposed_ps), pod_time_to_us(time->mxu_ps),
        pod_time_to_us(time->grid_ps), pod_time_to_us(time->hbm_ps),
        pod_time_to_us(time->exposed_ps), pod_time_to_us(time->vmem_ps),
        pod_time_to_us(time->fill_ps), (long long)time->block.m, (long long)time->block.k,
        (long long)time->block.n, (long long)time->steps, time->cores, time->cores > 1 ? "s" : "");
    return buf;
}
