/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/conv.h"

#include "chip/tile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

pod_status pod_conv_shape_parse(const char *text, pod_conv_shape *shape, pod_error *err)
{
    static const char form[] =
        "N,H,W,Cin,Cout,KH,KW,stride as in 64,56,56,64,64,3,3,1, each 1 or more";
    enum { SIZES = 8, TEXT_MAX = 128 };
    int64_t size[SIZES];
    char copy[TEXT_MAX];
    char *at = copy;
    if (strlen(text) >= sizeof copy) {
        return pod_fail(err, POD_E_USAGE, "--conv '%.32s…' is too long; write %s", text, form);
    }
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (int i = 0; i < SIZES; i++) {
        char *end = i < SIZES - 1 ? strchr(at, ',') : at + strlen(at);
        if (end == NULL) {
            return pod_fail(err, POD_E_USAGE, "--conv '%s' is no convolution; write %s", text,
                            form);
        }
        *end = '\0';
        if (pod_parse_i64(at, "--conv", 1, INT32_MAX, &size[i], NULL) != POD_OK) {
            return pod_fail(err, POD_E_USAGE, "--conv '%s' has the size '%s'; write %s", text, at,
                            form);
        }
        at = end + 1;
    }
    *shape = (pod_conv_shape){.n = size[0],
                              .h = size[1],
                              .w = size[2],
                              .cin = size[3],
                              .cout = size[4],
                              .kh = size[5],
                              .kw = size[6],
                              .stride = size[7]};
    return POD_OK;
}

/* Pixels of the result. */
static double pixels_of(const pod_conv_shape *s)
{
    return (double)s->n * (double)pod_conv_out(s->h, s->stride)
           * (double)pod_conv_out(s->w, s->stride);
}

static double weights_of(const pod_conv_shape *s)
{
    return (double)s->kh * (double)s->kw * (double)s->cin * (double)s->cout;
}

double pod_conv_flops(const pod_conv_shape *shape)
{
    return 2 * pixels_of(shape) * weights_of(shape);
}

void pod_conv_product(pod_conv_op op, const pod_conv_shape *s, int64_t mkn[3])
{
    const int64_t pixels = (int64_t)pixels_of(s);
    const int64_t taps = s->kh * s->kw;
    const bool by_weights = op == POD_CONV_WEIGHTS;
    mkn[0] = by_weights ? taps * s->cin : pixels;
    mkn[1] = by_weights ? pixels : taps * (op == POD_CONV_INPUT ? s->cout : s->cin);
    mkn[2] = op == POD_CONV_INPUT ? s->cin : s->cout;
}

/* ---- the arrays ---- */

/* Steps of 8 rows through a tile, of all arrays together, of [rows, contracted] · [contracted, columns]. */
static double conv_steps_of(const pod_chip_spec *core, double rows, double contracted,
                            double columns)
{
    const double dim = core->mxu_dim;
    return ceil(contracted / dim) * ceil(columns / dim) * ceil(rows / POD_TILE_SUBLANES);
}

/* Channels of a tap as they lie in the contraction. */
static double tap_lanes(int64_t channels)
{
    return (double)pod_round_up(channels, POD_TILE_SUBLANES);
}

/* Taps along one dim that meet the pixels of a phase. */
static double phase_taps(int64_t taps, int64_t stride, int64_t phase)
{
    return phase < taps ? (double)pod_ceil_div(taps - phase, stride) : 0;
}

static double input_steps(const pod_chip_spec *core, const pod_conv_shape *s)
{
    double steps = 0;
    for (int64_t y = 0; y < s->stride && y < s->kh; y++) {
        for (int64_t x = 0; x < s->stride && x < s->kw; x++) {
            const double taps = phase_taps(s->kh, s->stride, y) * phase_taps(s->kw, s->stride, x);
            steps += conv_steps_of(core, pixels_of(s), taps * tap_lanes(s->cout), (double)s->cin);
        }
    }
    return steps;
}

static double op_steps(const pod_chip_spec *core, pod_conv_op op, const pod_conv_shape *s)
{
    const double rows = pixels_of(s);
    const double taps = (double)s->kh * (double)s->kw;
    switch (op) {
    case POD_CONV_FORWARD:
        return conv_steps_of(core, rows, taps * tap_lanes(s->cin), (double)s->cout);
    case POD_CONV_INPUT:
        return input_steps(core, s);
    case POD_CONV_WEIGHTS:
        return conv_steps_of(core, taps * tap_lanes(s->cin), rows, (double)s->cout);
    }
    return 0;
}

/* The same convolution of pixels that are channels. */
static pod_conv_shape space_to_depth(const pod_conv_shape *s)
{
    pod_conv_shape deep = *s;
    deep.h = pod_conv_out(s->h, s->stride);
    deep.w = pod_conv_out(s->w, s->stride);
    deep.kh = pod_ceil_div(s->kh, s->stride);
    deep.kw = pod_ceil_div(s->kw, s->stride);
    deep.cin = s->cin * s->stride * s->stride;
    deep.stride = 1;
    return deep;
}

/* ---- memory ---- */

struct conv_traffic {
    double bytes;
    double first;
    double last;
    double tiles;
    double blocks;
};

static struct conv_traffic conv_traffic_of(const pod_chip_spec *core, pod_conv_op op,
                                           const pod_conv_shape *s, pod_dtype dtype)
{
    const double size = pod_dtype_size(dtype);
    const double budget = (double)core->vmem_block_bytes;
    const double x = (double)s->n * (double)s->h * (double)s->w * (double)s->cin * size;
    const double y = pixels_of(s) * (double)s->cout * pod_matmul_output_size(dtype);
    const double f = weights_of(s) * size;
    const bool by_weights = op == POD_CONV_WEIGHTS;
    const double contracted = op == POD_CONV_INPUT ? y : x;
    const double rest = op == POD_CONV_INPUT ? x : y;
    const double held = by_weights ? weights_of(s) * POD_TILE_ACCUMULATOR_BYTES : f;
    struct conv_traffic t = {.blocks = ceil(held / (budget / 2))};
    /* half of the room: two buffers of a tile of what is read and of what is written beside it */
    t.tiles = ceil((contracted + rest / t.blocks) / (budget / 2 / POD_TILE_BUFFERS));
    const double a_picture = ceil(t.tiles / (double)s->n);
    const double shared = pod_max_f64((double)(s->kh - s->stride), 0) / (double)s->h;
    const double again = 1 + (a_picture - 1) * shared;
    t.bytes = contracted * again * t.blocks + rest + f;
    t.first = contracted / t.tiles + (by_weights ? rest / t.tiles : f / t.blocks);
    t.last = by_weights ? f / t.blocks : rest / t.blocks / t.tiles;
    return t;
}

/* ---- time ---- */

struct conv_core_time {
    struct conv_traffic traffic;
    double mxu_s;
    double hbm_s;
    double exposed_s;
    double total_s;
    bool deep;
};

static struct conv_core_time conv_core_time_of(const pod_chip_spec *core, const pod_conv_args *args,
                                               const pod_conv_shape *part)
{
    const double rate = core->hbm_bytes_per_s * core->hbm_eff_frac;
    const pod_conv_shape deep = space_to_depth(part);
    const double plain_steps = op_steps(core, args->op, part);
    const double deep_steps = op_steps(core, args->op, &deep);
    struct conv_core_time t = {.traffic = conv_traffic_of(core, args->op, part, args->dtype),
                               .deep = args->op != POD_CONV_INPUT && deep_steps < plain_steps};
    t.mxu_s = pod_matmul_steps_s(core, args->dtype, t.deep ? deep_steps : plain_steps);
    t.hbm_s = t.traffic.bytes / rate
              + (t.traffic.tiles * t.traffic.blocks - 1) * pod_time_to_s(core->block_step_ps);
    t.exposed_s = (t.traffic.first + t.traffic.last) / rate;
    t.total_s = t.exposed_s + pod_max_f64(t.mxu_s, pod_max_f64(t.hbm_s - t.exposed_s, 0))
                + pod_matmul_fill_s(core);
    return t;
}

static pod_conv_shape conv_half_of(const pod_conv_args *args, int cores, int axis)
{
    pod_conv_shape part = args->shape;
    int64_t *columns = args->op == POD_CONV_INPUT ? &part.cin : &part.cout;
    int64_t *size = axis == 0 ? &part.n : columns;
    *size = pod_ceil_div(*size, cores);
    return part;
}

static struct conv_core_time conv_quickest(const pod_chip_spec *core, const pod_conv_args *args,
                                           int cores)
{
    struct conv_core_time best = {.total_s = -1};
    for (int axis = 0; axis < (cores > 1 ? 2 : 1); axis++) {
        const pod_conv_shape part = conv_half_of(args, cores, axis);
        const struct conv_core_time t = conv_core_time_of(core, args, &part);
        best = best.total_s < 0 || t.total_s < best.total_s ? t : best;
    }
    return best;
}

static pod_status product_find(const pod_conv_args *args, pod_conv_time *out, pod_error *err)
{
    const pod_conv_shape *s = &args->shape;
    const double largest = pod_max_f64(pod_conv_flops(s), (double)s->n * (double)s->h * (double)s->w
                                                              * (double)s->cin * 16);
    if (largest > POD_TILE_TOTAL_MAX || pixels_of(s) * (double)s->cout * 16 > POD_TILE_TOTAL_MAX) {
        return pod_fail(err, POD_E_RANGE,
                        "a convolution of so many pixels and channels counts over 63 bits; make "
                        "it smaller");
    }
    int64_t mkn[3];
    pod_conv_product(args->op, s, mkn);
    out->m = mkn[0];
    out->k = mkn[1];
    out->n = mkn[2];
    out->flops = (int64_t)pod_conv_flops(s);
    return POD_OK;
}

pod_status pod_conv_time_get(const pod_chip_spec *chip, const pod_conv_args *args,
                             pod_conv_time *out, pod_error *err)
{
    pod_conv_time time = {.cores = args->one_core ? 1 : chip->cores};
    POD_TRY(product_find(args, &time, err));
    const pod_chip_spec core = pod_chip_one_core(chip);
    const struct conv_core_time t = conv_quickest(&core, args, time.cores);
    time.launch_ps = chip->kernel_start_ps + (args->alone ? chip->matmul_launch_ps : 0);
    const double launch_s = pod_time_to_s(time.launch_ps);
    const double bytes = t.traffic.bytes * time.cores;
    time.time_ps = pod_time_from_s(launch_s + t.total_s);
    if (time.time_ps == POD_TIME_NEVER || bytes > POD_TILE_TOTAL_MAX) {
        return pod_fail(err, POD_E_RANGE,
                        "a convolution that lasts over 106 days; make it smaller");
    }
    time.bound = launch_s > pod_max_f64(t.mxu_s, t.hbm_s) ? POD_BOUND_LAUNCH
                 : t.mxu_s >= t.hbm_s                     ? POD_BOUND_MXU
                                                          : POD_BOUND_HBM;
    time.hbm_bytes = llround(bytes);
    time.peak_ops_per_s = core.peak_ops_per_s[args->dtype] * time.cores;
    time.ops_per_s = (double)time.flops / pod_time_to_s(time.time_ps);
    time.peak_frac = time.ops_per_s / time.peak_ops_per_s;
    time.space_to_depth = t.deep;
    time.tiles = (int64_t)t.traffic.tiles;
    time.blocks = (int64_t)t.traffic.blocks;
    time.mxu_ps = pod_time_from_s(t.mxu_s);
    time.hbm_ps = pod_time_from_s(t.hbm_s);
    time.exposed_ps = pod_time_from_s(t.exposed_s);
    time.fill_ps = pod_time_from_s(pod_matmul_fill_s(chip));
    *out = time;
    return POD_OK;
}

const char *pod_conv_explain(const pod_conv_time *time, char *buf, size_t size)
{
    (void)snprintf(
        buf, size,
        "time %.3f us = launch %.3f + first and last tile %.3f + max(mxu %.3f, hbm %.3f - %.3f) + "
        "fill %.3f; %lldx%lldx%lld%s, %lld tile%s, %lld block%s of columns a core, %d core%s",
        pod_time_to_us(time->time_ps), pod_time_to_us(time->launch_ps),
        pod_time_to_us(time->exposed_ps), pod_time_to_us(time->mxu_ps),
        pod_time_to_us(time->hbm_ps), pod_time_to_us(time->exposed_ps),
        pod_time_to_us(time->fill_ps), (long long)time->m, (long long)time->k, (long long)time->n,
        time->space_to_depth ? ", space to depth" : "", (long long)time->tiles,
        time->tiles > 1 ? "s" : "", (long long)time->blocks, time->blocks > 1 ? "s" : "",
        time->cores, time->cores > 1 ? "s" : "");
    return buf;
}
