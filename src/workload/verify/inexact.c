/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/inexact.h"

#include "base/status.h"
#include "chip/numerics.h"

#include <math.h>
#include <string.h>

/** Roundoff of sums on chips: f32. */
static const double sum_roundoff = 0x1p-24;

/* ---- arrays ---- */

enum { ALIGNMENT = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void *pod_arena_take(pod_arena *arena, size_t bytes)
{
    void *taken = arena->data + arena->used;
    arena->used += aligned(bytes);
    POD_ASSERT(arena->used <= arena->size);
    arena->most = arena->used > arena->most ? arena->used : arena->most;
    return taken;
}

size_t pod_inexact_bytes(int64_t rows, int64_t columns)
{
    const size_t count = (size_t)(rows * columns);
    return aligned(count * sizeof(double)) + aligned(count * sizeof(float));
}

pod_inexact pod_inexact_make(pod_inexact_context *context, int64_t rows, int64_t columns)
{
    const size_t count = (size_t)(rows * columns);
    return (pod_inexact){.rows = rows,
                         .columns = columns,
                         .stride = columns,
                         .value = pod_arena_take(&context->arena, count * sizeof(double)),
                         .square = pod_arena_take(&context->arena, count * sizeof(float))};
}

void pod_inexact_clear(const pod_inexact *array)
{
    for (int64_t r = 0; r < array->rows; r++) {
        memset(array->value + r * array->stride, 0, (size_t)array->columns * sizeof(double));
        memset(array->square + r * array->stride, 0, (size_t)array->columns * sizeof(float));
    }
}

pod_inexact pod_inexact_part(const pod_inexact *array, int64_t column, int64_t columns)
{
    pod_inexact part = *array;
    part.columns = columns;
    part.value += column;
    part.square = part.square != NULL ? part.square + column : NULL;
    return part;
}

pod_inexact pod_inexact_rows(const pod_inexact *array, int64_t row, int64_t rows)
{
    pod_inexact part = pod_inexact_part(array, row * array->stride, array->columns);
    part.rows = rows;
    return part;
}

static void emulate(const pod_inexact_context *context, const char *site, int64_t piece,
                    const pod_inexact *array)
{
    const pod_emulation *emulation = context->emulation;
    for (int64_t r = 0; emulation != NULL && emulation->stored != NULL && r < array->rows; r++) {
        emulation->stored(emulation->context, site, piece, array->value + r * array->stride,
                          array->columns);
    }
}

void pod_inexact_store(const pod_inexact_context *context, const char *site,
                       const pod_inexact *array, double roundings)
{
    const double each = roundings * pod_square(context->roundoff);
    for (int64_t r = 0; r < array->rows; r++) {
        const double *value = array->value + r * array->stride;
        float *square = array->square + r * array->stride;
        for (int64_t c = 0; c < array->columns; c++) {
            square[c] += (float)(each * pod_square(value[c]));
        }
    }
    emulate(context, site, POD_EMULATE_ALL, array);
}

/* ---- matmuls ---- */

/** Variance of the error of what is rounded to a dtype: relative · x² + absolute. */
typedef struct narrowing {
    double relative;
    double absolute;
} narrowing;

static narrowing narrowing_of(pod_dtype dtype, const pod_inexact *x)
{
    static const double int8_step = 1.0 / 254;    /* half of a step, of the largest */
    static const double fp8_roundoff = 0x1p-4;    /* half of a step, of the value */
    static const double fp8_step = 0x1p-10 / 448; /* likewise below the least normal number */
    static const double even = 3;                 /* of errors anywhere in a step: e²/3 */
    double largest = 0;
    for (int64_t r = 0; r < x->rows && pod_dtype_size(dtype) == 1; r++) {
        for (int64_t c = 0; c < x->columns; c++) {
            largest = fmax(largest, fabs(x->value[r * x->stride + c]));
        }
    }
    if (dtype == POD_DTYPE_INT8) {
        return (narrowing){.absolute = pod_square(int8_step * largest) / even};
    }
    return pod_dtype_size(dtype) > 1 ? (narrowing){0}
                                     : (narrowing){pod_square(fp8_roundoff) / even,
                                                   pod_square(fp8_step * largest) / even};
}

/** x² · factor + s² of all elements + absolute, packed. */
static float *squares(pod_inexact_context *context, const pod_inexact *x, narrowing factor,
                      bool errors)
{
    float *packed = pod_arena_take(&context->arena, (size_t)(x->rows * x->columns) * sizeof(float));
    for (int64_t r = 0; r < x->rows; r++) {
        const double *value = x->value + r * x->stride;
        const float *square = errors && x->square != NULL ? x->square + r * x->stride : NULL;
        float *out = packed + r * x->columns;
        for (int64_t c = 0; c < x->columns; c++) {
            out[c] = (float)(factor.relative * pod_square(value[c]) + factor.absolute)
                     + (square != NULL ? square[c] : 0.0F);
        }
    }
    return packed;
}

static pod_gemm_parts parts_of(const pod_inexact_product *product, const pod_inexact *a,
                               const pod_inexact *b, const pod_inexact *out)
{
    return (pod_gemm_parts){
        .shape = {.m = out->rows,
                  .k = product->transpose_a ? a->rows : a->columns,
                  .n = out->columns},
        .transpose_a = product->transpose_a,
        .transpose_b = product->transpose_b,
        .stride_a = a->stride,
        .stride_b = b->stride,
        .stride_c = out->stride,
        .accumulate = product->accumulate
    };
}

/** The values in partial sums, which are stored and added one after the other. */
static void emulate_partial(pod_inexact_context *context, const pod_inexact_product *product,
                            const pod_inexact *a, const pod_inexact *b, const pod_inexact *out)
{
    const int64_t pieces = context->emulation->pieces;
    pod_gemm_parts parts = parts_of(product, a, b, out);
    const int64_t k = parts.shape.k;
    const size_t mark = context->arena.used;
    const pod_inexact partial = pod_inexact_make(context, out->rows, out->columns);
    parts.accumulate = false;
    parts.stride_c = partial.stride;
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t first = k * p / pieces;
        parts.shape.k = k * (p + 1) / pieces - first;
        pod_gemm_parts_f64(&parts, a->value + first * (product->transpose_a ? a->stride : 1),
                           b->value + first * (product->transpose_b ? 1 : b->stride),
                           partial.value);
        emulate(context, product->site, p, &partial);
        for (int64_t r = 0; r < out->rows; r++) {
            for (int64_t c = 0; c < out->columns; c++) {
                double *at = &out->value[r * out->stride + c];
                const double value = partial.value[r * partial.stride + c];
                *at = p == 0 && !product->accumulate ? value : *at + value;
            }
        }
        emulate(context, product->site, POD_EMULATE_ALL, out);
    }
    context->arena.used = mark;
}

void pod_inexact_matmul(pod_inexact_context *context, const pod_inexact_product *product,
                        const pod_inexact *a, const pod_inexact *b, const pod_inexact *out)
{
    pod_gemm_parts parts = parts_of(product, a, b, out);
    const bool several = product->terms > 1;
    const double sums = (double)parts.shape.k * pod_square(sum_roundoff);
    const double stored = several ? (double)product->terms * pod_square(context->roundoff) : 0;
    const size_t mark = context->arena.used;
    if (several && context->emulation != NULL && context->emulation->pieces > 1) {
        emulate_partial(context, product, a, b, out);
    } else {
        pod_gemm_parts_f64(&parts, a->value, b->value, out->value);
    }
    const narrowing value = {.relative = 1};
    const narrowing by_b = product->rounded ? (narrowing){0} : narrowing_of(product->operands, b);
    narrowing by_a = narrowing_of(product->operands, a);
    by_a.relative += sums + stored;
    parts.stride_a = a->columns;
    parts.stride_b = b->columns;
    pod_gemm_parts_f32(&parts, squares(context, a, by_a, true), squares(context, b, value, false),
                       out->square);
    if (b->square != NULL || by_b.relative + by_b.absolute > 0) {
        parts.accumulate = true;
        pod_gemm_parts_f32(&parts, squares(context, a, value, false),
                           squares(context, b, by_b, true), out->square);
    }
    context->arena.used = mark;
    if (!product->accumulate) {
        pod_inexact_store(context, product->site, out,
                          (double)product->terms + sums / pod_square(context->roundoff));
    }
}

/* ---- element by element ---- */

void pod_inexact_row_sums(const pod_inexact *x, const pod_inexact *sums)
{
    const double f32 = (double)x->columns * pod_square(0x1p-24);
    for (int64_t r = 0; r < x->rows; r++) {
        double sum[2] = {0, 0};
        double error[2] = {0, 0};
        double fourth = 0;
        double second = 0; /* of errors' own squares */
        for (int64_t c = 0; c < x->columns; c++) {
            const double value = x->value[r * x->stride + c];
            const double s = (double)x->square[r * x->stride + c];
            sum[0] += value;
            sum[1] += pod_square(value);
            error[0] += s;
            error[1] += pod_square(2 * value) * s;
            fourth += pod_square(pod_square(value));
            second += s;
        }
        error[0] += f32 * (sum[1] + pod_square(sum[0]));
        error[1] += f32 * (fourth + pod_square(sum[1])) + pod_square(second);
        for (int64_t i = 0; i < sums->columns; i++) {
            const int64_t of = i + 2 - sums->columns;
            sums->value[r * sums->stride + i] = sum[of];
            sums->square[r * sums->stride + i] = (float)error[of];
        }
    }
}

void pod_inexact_add(const pod_inexact_context *context, const char *site, const pod_inexact *a,
                     const pod_inexact *b, const pod_inexact *out)
{
    for (int64_t r = 0; r < out->rows; r++) {
        for (int64_t c = 0; c < out->columns; c++) {
            const int64_t at_a = r * a->stride + c;
            const int64_t at_b = r * b->stride + c;
            const int64_t at = r * out->stride + c;
            out->value[at] = a->value[at_a] + b->value[at_b];
            out->square[at] = a->square[at_a] + b->square[at_b];
        }
    }
    pod_inexact_store(context, site, out, 1);
}

void pod_inexact_rotate(const pod_inexact_context *context, const pod_inexact_rotation *rotation,
                        const pod_inexact *x)
{
    const int64_t half = rotation->rotated / 2;
    const int64_t first = rotation->width - rotation->rotated;
    for (int64_t r = 0; r < x->rows; r++) {
        for (int64_t i = 0; i < half; i++) {
            const double angle =
                pod_transformer_angle(rotation->form, r % rotation->seq, i, rotation->rotated);
            const double c = cos(angle);
            const double s = rotation->back ? -sin(angle) : sin(angle);
            for (int64_t h = first; h < x->columns; h += rotation->width) {
                double *value = x->value + r * x->stride + h + i;
                float *square = x->square + r * x->stride + h + i;
                const double a = value[0];
                const double b = value[half];
                const double sa = (double)square[0];
                const double sb = (double)square[half];
                value[0] = c * a - s * b;
                value[half] = s * a + c * b;
                square[0] = (float)(c * c * sa + s * s * sb);
                square[half] = (float)(s * s * sa + c * c * sb);
            }
        }
    }
    pod_inexact_store(context, rotation->site, x, 1);
}

/* ---- norms ---- */

/** Sums over the elements of a normed row. */
typedef struct norm_row {
    double mean;
    double scale; /**< 1 / sqrt(mean square + epsilon) */
} norm_row;

static norm_row norm_of(const pod_transformer_form *form, const double *x, int64_t n)
{
    double sum = 0;
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    const double mean = form->norm == POD_NORM_LAYER ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        square += pod_square(x[i] - mean);
    }
    return (norm_row){.mean = mean, .scale = 1 / sqrt(square / (double)n + form->epsilon)};
}

/* δy = (δx - mean δx - y · mean(y δx)) · scale: the mean only in a layer norm */
static void norm_row_forward(const pod_inexact_norm *norm, const double *x, const float *sx,
                             double *y, float *sy)
{
    const int64_t n = norm->width;
    const norm_row row = norm_of(norm->form, x, n);
    const double part = 1 / pod_square((double)n);
    const double most =
        4 * (double)n / pod_square(pod_transformer_lambda); /* within sqrt(n) of 0 */
    const double of_mean = norm->form->norm == POD_NORM_LAYER ? 1 : 0;
    double weighted = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        y[i] = (x[i] - row.mean) * row.scale;
        weighted += pod_square(y[i]) * (double)sx[i];
        sum += (double)sx[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const double square = (double)sx[i] + part * (of_mean * sum + pod_square(y[i]) * weighted);
        sy[i] = (float)fmin(square * pod_square(row.scale), most);
    }
}

void pod_inexact_norm_forward(const pod_inexact_context *context, const pod_inexact_norm *norm,
                              const pod_inexact *x, const pod_inexact *y)
{
    for (int64_t r = 0; r < x->rows; r++) {
        for (int64_t h = 0; h < x->columns; h += norm->width) {
            norm_row_forward(norm, x->value + r * x->stride + h, x->square + r * x->stride + h,
                             y->value + r * y->stride + h, y->square + r * y->stride + h);
        }
    }
    pod_inexact_store(context, norm->site, y, 1);
}

/** One row or head of an array. */
typedef struct segment {
    double *value;
    float *square;
} segment;

static segment segment_of(const pod_inexact *array, int64_t row, int64_t column)
{
    const int64_t at = row * array->stride + column;
    return (segment){.value = array->value + at, .square = array->square + at};
}

/* With y the normed x, k its scale, m = mean(dy) (layer norm) and c = mean(y dy): dx = k (dy - m - y c). Errors of dy
 * come through the same product; those of x through k, y and c:
 * δdx = -dx · mean(y δx) k - k c δy - k y mean(dy δy), δy of norm_row_forward. */
static void norm_row_backward(const pod_inexact_norm *norm, segment x, segment dy, segment dx)
{
    const int64_t n = norm->width;
    const norm_row row = norm_of(norm->form, x.value, n);
    const double part = 1 / pod_square((double)n);
    const double of_mean = norm->form->norm == POD_NORM_LAYER ? 1 : 0;
    double mean = 0;
    double c = 0;
    double from_dy = 0;
    double sum_dy = 0;
    double from_x = 0;
    double from_y = 0;
    for (int64_t i = 0; i < n; i++) {
        const double y = (x.value[i] - row.mean) * row.scale;
        mean += of_mean * dy.value[i] / (double)n;
        c += y * dy.value[i] / (double)n;
        from_dy += pod_square(y) * (double)dy.square[i];
        sum_dy += of_mean * (double)dy.square[i];
        from_x += pod_square(y) * (double)x.square[i];
        from_y += pod_square(dy.value[i]) * (double)x.square[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const double y = (x.value[i] - row.mean) * row.scale;
        const double value = row.scale * (dy.value[i] - mean - y * c);
        const double of_scale = pod_square(value * row.scale) * part * from_x;
        const double of_y = pod_square(row.scale * c) * (double)x.square[i]
                            + part * pod_square(row.scale * y) * from_y;
        const double of_dy = (double)dy.square[i] + part * (sum_dy + pod_square(y) * from_dy);
        dx.value[i] = value;
        dx.square[i] = (float)(of_scale + pod_square(row.scale) * (of_y + of_dy));
    }
}

void pod_inexact_norm_backward(const pod_inexact_context *context, const pod_inexact_norm *norm,
                               const pod_inexact *x, const pod_inexact *dy, const pod_inexact *dx)
{
    (void)context;
    for (int64_t r = 0; r < x->rows; r++) {
        for (int64_t h = 0; h < x->columns; h += norm->width) {
            norm_row_backward(norm, segment_of(x, r, h), segment_of(dy, r, h),
                              segment_of(dx, r, h));
        }
    }
}

/* ---- the function of an MLP ---- */

/** A function's value and its first two derivatives. */
typedef struct curve {
    double value;
    double slope;
    double bend;
} curve;

static curve sigmoid_at(double x)
{
    const double s = 1 / (1 + exp(-x));
    return (curve){.value = s, .slope = s * (1 - s), .bend = s * (1 - s) * (1 - 2 * s)};
}

static const double gelu_rate = 0.7978845608028654; /* sqrt(2/pi) */
static const double gelu_cube = 0.044715;

/** The derivative of what gelu takes tanh of. */
static double gelu_inner_slope(double x)
{
    return gelu_rate * (1 + 3 * gelu_cube * x * x);
}

static curve gelu_at(double x)
{
    const double inner = gelu_rate * (x + gelu_cube * x * x * x);
    const double d1 = gelu_inner_slope(x);
    const double d2 = gelu_rate * 6 * gelu_cube * x;
    const double t = tanh(inner);
    const double q = 1 - t * t;
    return (curve){.value = 0.5 * x * (1 + t),
                   .slope = 0.5 * (1 + t) + 0.5 * x * q * d1,
                   .bend = q * d1 + 0.5 * x * q * (d2 - 2 * t * d1 * d1)};
}

static curve curve_at(pod_transformer_function function, double x)
{
    switch (function) {
    case POD_FUNCTION_SILU: {
        const curve s = sigmoid_at(x);
        return (curve){
            .value = x * s.value, .slope = s.value + x * s.slope, .bend = 2 * s.slope + x * s.bend};
    }
    case POD_FUNCTION_GELU:
        return gelu_at(x);
    case POD_FUNCTION_RELU2:
        return x > 0 ? (curve){.value = x * x, .slope = 2 * x, .bend = 2} : (curve){.value = 0};
    }
    return (curve){.value = 0};
}

/** What an error of `square` of x makes of a function's value and of its slope. */
static curve curve_errors(pod_transformer_function function, curve at, double x, double square)
{
    static const double tanh_error =
        0x1p-23; /* in f32: all there is of gelu where tanh is near -1 */
    const double s = sqrt(square);
    if (function == POD_FUNCTION_GELU) {
        const double of_tanh = tanh_error * fabs(x);
        return (curve){.value = hypot(at.slope * s, of_tanh / 2),
                       .slope = hypot(at.bend * s, tanh_error + of_tanh * gelu_inner_slope(x))};
    }
    if (function == POD_FUNCTION_RELU2) { /* largest at the upper end of what x may be */
        const curve end = curve_at(function, x + pod_transformer_lambda * s);
        return (curve){.value = (end.value - at.value) / pod_transformer_lambda,
                       .slope = (end.slope - at.slope) / pod_transformer_lambda};
    }
    return (curve){.value = at.slope * s, .slope = at.bend * s};
}

void pod_inexact_function(const pod_inexact_context *context, pod_transformer_function function,
                          const pod_inexact *gate, const pod_inexact *up, const pod_inexact *h)
{
    for (int64_t r = 0; r < h->rows; r++) {
        const segment u = segment_of(up, r, 0);
        const segment g = gate->value != NULL ? segment_of(gate, r, 0) : u;
        const segment out = segment_of(h, r, 0);
        for (int64_t c = 0; c < h->columns; c++) {
            const curve f = curve_at(function, g.value[c]);
            const curve error = curve_errors(function, f, g.value[c], (double)g.square[c]);
            const double by = gate->value != NULL ? u.value[c] : 1;
            const double s_by = gate->value != NULL ? (double)u.square[c] : 0;
            out.value[c] = f.value * by;
            out.square[c] = (float)(pod_square(error.value * by) + pod_square(f.value) * s_by);
        }
    }
    pod_inexact_store(context, "fwd.function", h, 1);
}

/** dg = dh · u · f'(g), du = dh · f(g). */
static void function_element(curve f, curve error, const segment *dh_of, segment g, segment u)
{
    const double dh = *dh_of->value;
    const double s_dh = (double)*dh_of->square;
    const double up = *u.value;
    const double s_u = (double)*u.square;
    *g.value = dh * up * f.slope;
    *g.square = (float)(pod_square(up * f.slope) * s_dh + pod_square(dh * f.slope) * s_u
                        + pod_square(dh * up * error.slope));
    *u.value = dh * f.value;
    *u.square = (float)(pod_square(f.value) * s_dh + pod_square(dh * error.value));
}

void pod_inexact_function_backward(const pod_inexact_context *context,
                                   pod_transformer_function function, const pod_inexact *gate,
                                   const pod_inexact *up, const pod_inexact *dh)
{
    for (int64_t r = 0; r < dh->rows; r++) {
        for (int64_t c = 0; c < dh->columns; c++) {
            const segment d = segment_of(dh, r, c);
            const segment u = segment_of(up, r, c);
            const segment g = gate->value != NULL ? segment_of(gate, r, c) : u;
            const curve f = curve_at(function, *g.value);
            const curve error = curve_errors(function, f, *g.value, (double)*g.square);
            if (gate->value != NULL) {
                function_element(f, error, &d, g, u);
            } else {
                *u.square = (float)(pod_square(f.slope) * (double)*d.square
                                    + pod_square(*d.value * error.slope));
                *u.value = *d.value * f.slope;
            }
        }
    }
    if (gate->value != NULL) {
        pod_inexact_store(context, "bwd.function.gate", gate, 1);
    }
    pod_inexact_store(context, "bwd.function.up", up, 1);
}

void pod_inexact_gate(const pod_inexact_context *context, const pod_inexact *x,
                      const pod_inexact *gate, const pod_inexact *y)
{
    for (int64_t r = 0; r < x->rows; r++) {
        const segment a = segment_of(x, r, 0);
        const segment g = segment_of(gate, r, 0);
        const segment out = segment_of(y, r, 0);
        for (int64_t c = 0; c < x->columns; c++) {
            const curve f = sigmoid_at(g.value[c]);
            out.value[c] = a.value[c] * f.value;
            out.square[c] = (float)(pod_square(f.value) * (double)a.square[c]
                                    + pod_square(a.value[c] * f.slope) * (double)g.square[c]);
        }
    }
    pod_inexact_store(context, "fwd.gate", y, 1);
}

void pod_inexact_gate_backward(const pod_inexact_context *context, const pod_inexact *x,
                               const pod_inexact *gate, const pod_inexact *dy)
{
    for (int64_t r = 0; r < x->rows; r++) {
        const segment a = segment_of(x, r, 0);
        for (int64_t c = 0; c < x->columns; c++) {
            const segment g = segment_of(gate, r, c);
            const segment d = segment_of(dy, r, c);
            const segment by = {.value = a.value + c, .square = a.square + c};
            const curve f = sigmoid_at(*g.value);
            const double dh = *d.value;
            const double s_dh = (double)*d.square;
            const double s_g = (double)*g.square;
            *g.value = dh * *by.value * f.slope;
            *g.square = (float)(pod_square(*by.value * f.slope) * s_dh
                                + pod_square(dh * f.slope) * (double)*by.square
                                + pod_square(dh * *by.value * f.bend) * s_g);
            *d.value = dh * f.value;
            *d.square = (float)(pod_square(f.value) * s_dh + pod_square(dh * f.slope) * s_g);
        }
    }
    pod_inexact_store(context, "bwd.gate", gate, 1);
    pod_inexact_store(context, "bwd.gate.context", dy, 1);
}

/* ---- loss ---- */

/** Softmax of a row in place. @return log of the sum of exponentials */
static double softmax(double *z, int64_t n)
{
    double largest = z[0];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = z[i] > largest ? z[i] : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += exp(z[i] - largest);
    }
    const double log_sum = largest + log(sum);
    for (int64_t i = 0; i < n; i++) {
        z[i] = exp(z[i] - log_sum);
    }
    return log_sum;
}

/** By how much more than s exp changes within lambda · s, where that is more than 1 and slopes say too little. */
static double exp_growth(double square)
{
    const double most = pod_transformer_lambda * sqrt(square);
    return most > 1 ? expm1(most) / most : 1;
}

/* loss = log Σ exp z - z[target], its derivative d = p - [target], δp_i = p_i (δz_i - Σ p_j δz_j) */
static void loss_row(segment z, int64_t n, int32_t target, double share, double loss_square[2])
{
    static const double most_growth = 0x1p20; /* any bound */
    static const double wide = 0x1p-24;       /* of differences in f32 */
    const double of_target = z.value[target];
    const double log_sum = softmax(z.value, n);
    const double loss = log_sum - of_target;
    double weighted = 0;
    double of_loss = 0;
    for (int64_t i = 0; i < n; i++) {
        const double p = z.value[i];
        weighted += pod_square(p) * (double)z.square[i];
        of_loss += pod_square(p - (i == target ? 1 : 0)) * (double)z.square[i];
    }
    double largest = 1;
    for (int64_t i = 0; i < n; i++) {
        const double p = z.value[i];
        const double square = weighted + (1 - 2 * p) * (double)z.square[i]; /* (1 - p)² - p² */
        const double growth = exp_growth(square);
        const double moved = p * sqrt(square) * growth; /* p stays between 0 and 1 */
        const double s = share * fmin(moved, 1 / pod_transformer_lambda);
        largest = fmax(largest, growth);
        z.value[i] = share * (p - (i == target ? 1 : 0));
        z.square[i] = (float)(pod_square(s) + pod_square(2 * wide * share));
    }
    loss_square[0] += share * loss;
    loss_square[1] += pod_square(share) * of_loss * pod_square(fmin(largest, most_growth));
    loss_square[1] += pod_square(2 * wide * share * log_sum);
}

void pod_inexact_loss(const pod_inexact_context *context, const pod_inexact *logits,
                      const int32_t *targets, double share, double loss_square[2])
{
    for (int64_t r = 0; r < logits->rows; r++) {
        loss_row(segment_of(logits, r, 0), logits->columns, targets[r], share, loss_square);
    }
    pod_inexact_store(context, "loss", logits, 1);
}
