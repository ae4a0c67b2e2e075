/* SPDX-License-Identifier: Apache-2.0 */
#include "program/exec.h"

#include "chip/kernels.h"
#include "chip/numerics.h"
#include "program/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- matmul ---- */

enum { TILE = 32 };

/* out[columns, rows] = in[rows, columns] transposed, tile by tile. Inline, so that `size` is a
 * constant where the elements are copied. */
static inline void transpose_sized(const unsigned char *in, int64_t rows, int64_t columns,
                                   size_t size, unsigned char *out)
{
    for (int64_t i0 = 0; i0 < rows; i0 += TILE) {
        const int64_t i1 = i0 + TILE < rows ? i0 + TILE : rows;
        for (int64_t j = 0; j < columns; j++) {
            for (int64_t i = i0; i < i1; i++) {
                memcpy(out + (size_t)(j * rows + i) * size, in + (size_t)(i * columns + j) * size,
                       size);
            }
        }
    }
}

static void transpose(const unsigned char *in, int64_t rows, int64_t columns, pod_dtype dtype,
                      unsigned char *out)
{
    switch (pod_dtype_size(dtype)) {
    case 1:
        transpose_sized(in, rows, columns, 1, out);
        break;
    case 2:
        transpose_sized(in, rows, columns, 2, out);
        break;
    default:
        transpose_sized(in, rows, columns, 4, out);
        break;
    }
}

/* An operand as [rows, columns]: itself, or a transposed copy in *copy. NULL when out of memory. */
static const void *operand(const void *data, bool transposed, int64_t rows, int64_t columns,
                           pod_dtype dtype, void **copy)
{
    if (!transposed) {
        return data;
    }
    *copy = malloc((size_t)(rows * columns * pod_dtype_size(dtype)) + 1);
    if (*copy != NULL) {
        transpose(data, columns, rows, dtype, *copy);
    }
    return *copy;
}

static pod_status exec_matmul(const pod_program *program, const pod_op *op, pod_shards *shards,
                              pod_error *err)
{
    const pod_buffer *out = &program->buffers[op->out];
    const pod_dtype dtype = program->buffers[op->in[0]].dtype;
    const pod_gemm_shape shape = {.m = op->m, .k = op->k, .n = op->n};
    const size_t elements = (size_t)(op->m * op->n);
    void *a_copy = NULL;
    void *b_copy = NULL;
    const void *a = operand(shards->data[op->in[0]], op->transpose_a, op->m, op->k, dtype, &a_copy);
    const void *b = operand(shards->data[op->in[1]], op->transpose_b, op->k, op->n, dtype, &b_copy);
    float *sums = malloc(elements * sizeof *sums + 1);
    pod_status st = POD_OK;
    if (a == NULL || b == NULL || sums == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "out of memory for a matmul of %lld x %lld results",
                      (long long)op->m, (long long)op->n);
    } else if (dtype == POD_DTYPE_INT8 || program->buffers[op->in[1]].dtype != dtype) {
        st = pod_fail(err, POD_E_INVALID,
                      "%s has no arithmetic on its inputs' dtypes; use floats of one dtype",
                      op->name);
    } else {
        if (op->accumulate) {
            pod_dtype_to_f32(out->dtype, sums, shards->data[op->out], (int64_t)elements);
        }
        st = pod_gemm_f32(dtype, shape, a, b, op->accumulate, sums, err);
    }
    if (st == POD_OK) {
        pod_dtype_from_f32(out->dtype, shards->data[op->out], sums, (int64_t)elements);
    }
    free(a_copy);
    free(b_copy);
    free(sums);
    return st;
}

/* ---- convolutions ---- */

/* One tap of a convolution: which pixel of X meets a pixel of Y. */
typedef struct conv_tap {
    const pod_conv_shape *shape;
    int64_t oh; /* of Y */
    int64_t ow;
    int64_t y; /* of the tap, less the padding before X */
    int64_t x;
} conv_tap;

static conv_tap tap_of(const pod_conv_shape *s, int64_t tap)
{
    conv_tap t = {
        .shape = s, .oh = pod_conv_out(s->h, s->stride), .ow = pod_conv_out(s->w, s->stride)};
    const int64_t padded_h = (t.oh - 1) * s->stride + s->kh - s->h;
    const int64_t padded_w = (t.ow - 1) * s->stride + s->kw - s->w;
    t.y = tap / s->kw - (padded_h > 0 ? padded_h / 2 : 0);
    t.x = tap % s->kw - (padded_w > 0 ? padded_w / 2 : 0);
    return t;
}

/* The row of X that a row of Y meets, -1 = padding. */
static int64_t tap_row(const conv_tap *t, int64_t pixel)
{
    const pod_conv_shape *s = t->shape;
    const int64_t y = pixel / t->ow % t->oh * s->stride + t->y;
    const int64_t x = pixel % t->ow * s->stride + t->x;
    const bool inside = y >= 0 && y < s->h && x >= 0 && x < s->w;
    return inside ? (pixel / (t->oh * t->ow) * s->h + y) * s->w + x : -1;
}

/* Rows of X in the order of Y's: [pixels, cin], or transposed. */
static void tap_gather(const conv_tap *t, int64_t pixels, size_t size, const unsigned char *x,
                       bool transposed, unsigned char *out)
{
    const int64_t cin = t->shape->cin;
    for (int64_t p = 0; p < pixels; p++) {
        const int64_t row = tap_row(t, p);
        for (int64_t c = 0; c < cin; c++) {
            unsigned char *to = out + (size_t)(transposed ? c * pixels + p : p * cin + c) * size;
            if (row < 0) {
                memset(to, 0, size);
            } else {
                memcpy(to, x + (size_t)(row * cin + c) * size, size);
            }
        }
    }
}

/* What the taps of an op read and add to. */
typedef struct conv_arrays {
    pod_conv_shape shape;
    int64_t pixels; /* of Y */
    pod_dtype dtype;
    const unsigned char *a; /* X, of input dY */
    const unsigned char *b; /* F, of weights dY */
    float *sums;            /* of the result */
    unsigned char *rows;    /* room for [pixels, cin] or F's tap transposed */
    float *part;            /* room for a tap of the derivative by the input */
} conv_arrays;

static pod_status forward_tap(const conv_arrays *c, int64_t tap, pod_error *err)
{
    const pod_conv_shape *s = &c->shape;
    const size_t size = (size_t)pod_dtype_size(c->dtype);
    const conv_tap t = tap_of(s, tap);
    const pod_gemm_shape gemm = {.m = c->pixels, .k = s->cin, .n = s->cout};
    tap_gather(&t, c->pixels, size, c->a, false, c->rows);
    return pod_gemm_f32(c->dtype, gemm, c->rows, c->b + (size_t)(tap * s->cin * s->cout) * size,
                        true, c->sums, err);
}

static pod_status weights_tap(const conv_arrays *c, int64_t tap, pod_error *err)
{
    const pod_conv_shape *s = &c->shape;
    const conv_tap t = tap_of(s, tap);
    const pod_gemm_shape gemm = {.m = s->cin, .k = c->pixels, .n = s->cout};
    tap_gather(&t, c->pixels, (size_t)pod_dtype_size(c->dtype), c->a, true, c->rows);
    return pod_gemm_f32(c->dtype, gemm, c->rows, c->b, true, c->sums + tap * s->cin * s->cout, err);
}

static pod_status input_tap(const conv_arrays *c, int64_t tap, pod_error *err)
{
    const pod_conv_shape *s = &c->shape;
    const size_t size = (size_t)pod_dtype_size(c->dtype);
    const conv_tap t = tap_of(s, tap);
    const pod_gemm_shape gemm = {.m = c->pixels, .k = s->cout, .n = s->cin};
    transpose(c->b + (size_t)(tap * s->cin * s->cout) * size, s->cin, s->cout, c->dtype, c->rows);
    POD_TRY(pod_gemm_f32(c->dtype, gemm, c->a, c->rows, false, c->part, err));
    for (int64_t p = 0; p < c->pixels; p++) {
        const int64_t row = tap_row(&t, p);
        for (int64_t i = 0; row >= 0 && i < s->cin; i++) {
            c->sums[row * s->cin + i] += c->part[p * s->cin + i];
        }
    }
    return POD_OK;
}

static pod_status conv_taps(const conv_arrays *c, pod_conv_op op, pod_error *err)
{
    static pod_status (*const taps[])(const conv_arrays *, int64_t,
                                      pod_error *) = {forward_tap, input_tap, weights_tap};
    pod_status st = POD_OK;
    for (int64_t tap = 0; tap < c->shape.kh * c->shape.kw && st == POD_OK; tap++) {
        st = taps[op](c, tap, err);
    }
    return st;
}

static pod_status exec_conv(const pod_program *program, const pod_op *op, pod_shards *shards,
                            pod_error *err)
{
    const pod_buffer *out = &program->buffers[op->out];
    const pod_conv_shape *s = &op->conv->shape;
    const int64_t elements = out->rows * out->columns;
    conv_arrays c = {.shape = *s,
                     .pixels = s->n * pod_conv_out(s->h, s->stride) * pod_conv_out(s->w, s->stride),
                     .dtype = program->buffers[op->in[0]].dtype,
                     .a = shards->data[op->in[0]],
                     .b = shards->data[op->in[1]]};
    const int64_t room = c.pixels > s->cout ? c.pixels : s->cout;
    pod_status st = POD_OK;
    c.sums = calloc((size_t)elements + 1, sizeof *c.sums);
    c.rows = malloc((size_t)(room * s->cin * pod_dtype_size(c.dtype)) + 1);
    c.part = malloc((size_t)(c.pixels * s->cin) * sizeof *c.part + 1);
    if (c.sums == NULL || c.rows == NULL || c.part == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "out of memory for a convolution of %lld x %lld results",
                      (long long)out->rows, (long long)out->columns);
    } else {
        if (op->accumulate) {
            pod_dtype_to_f32(out->dtype, c.sums, shards->data[op->out], elements);
        }
        st = conv_taps(&c, op->conv->op, err);
    }
    if (st == POD_OK) {
        pod_dtype_from_f32(out->dtype, shards->data[op->out], c.sums, elements);
    }
    free(c.sums);
    free(c.rows);
    free(c.part);
    return st;
}

/* ---- vectors ---- */

static float vector_value(const pod_op *op, float a, float b, float c)
{
    const float rate = (float)op->rate;
    switch (op->function) {
    case POD_VEC_NONE:
    case POD_VEC_COPY:
        return a;
    case POD_VEC_RELU:
        return a > 0 ? a : 0;
    case POD_VEC_RELU_GRAD:
        return a > 0 ? b : 0;
    case POD_VEC_ADD:
        return a + b;
    case POD_VEC_SUB:
        return a - b;
    case POD_VEC_SGD:
        return a - rate * b;
    case POD_VEC_MOMENTUM:
        return 0.9F * a + b;
    case POD_VEC_ZERO:
        return 0;
    case POD_VEC_ADAM_M:
        return 0.9F * a + 0.1F * b;
    case POD_VEC_ADAM_V:
        return 0.999F * a + 0.001F * b * b;
    case POD_VEC_ADAM_W:
        return pod_kernel_adam(a, b, c, rate);
    }
    return 0;
}

enum { CHUNK = 1024 };

/* Elements [first, first + count) of an input as floats. */
static void chunk_load(const pod_buffer *buffer, const void *data, int64_t first, int64_t count,
                       float *out)
{
    const unsigned char *bytes = data;
    pod_dtype_to_f32(buffer->dtype, out, bytes + first * pod_dtype_size(buffer->dtype), count);
}

static pod_status exec_vector(const pod_program *program, const pod_op *op, pod_shards *shards,
                              pod_error *err)
{
    (void)err;
    if (op->function == POD_VEC_NONE) {
        return POD_OK;
    }
    const pod_buffer *out = &program->buffers[op->out];
    unsigned char *result = shards->data[op->out];
    float in[POD_OP_INPUTS_MAX][CHUNK] = {{0}}; /* what is no input stays 0 */
    float value[CHUNK];
    const int64_t elements = out->rows * out->columns;
    for (int64_t first = 0; first < elements; first += CHUNK) {
        const int64_t count = elements - first < CHUNK ? elements - first : CHUNK;
        for (int k = 0; k < POD_OP_INPUTS_MAX; k++) {
            if (op->in[k] != POD_OP_NONE) {
                chunk_load(&program->buffers[op->in[k]], shards->data[op->in[k]], first, count,
                           in[k]);
            }
        }
        for (int64_t i = 0; i < count; i++) {
            value[i] = vector_value(op, in[0][i], in[1][i], in[2][i]);
        }
        pod_dtype_from_f32(out->dtype, result + first * pod_dtype_size(out->dtype), value, count);
    }
    return POD_OK;
}

#define exec_none NULL

pod_status pod_op_exec(const pod_program *program, int32_t op, pod_shards *shards, pod_error *err)
{
    const pod_op *what = &program->ops[op];
    if (what->numbers != POD_OP_NONE) {
        return pod_numbers_exec(program, what, shards, err);
    }
    if (what->out == POD_OP_NONE) {
        return POD_OK;
    }
#define KIND_EXEC(kind, name, resource, pace, unit, time, flops, check, exec) [kind] = exec_##exec,
    static pod_status (*const exec[])(const pod_program *, const pod_op *, pod_shards *,
                                      pod_error *) = {POD_OP_KIND_LIST(KIND_EXEC)};
#undef KIND_EXEC
    return exec[what->kind] != NULL ? exec[what->kind](program, what, shards, err) : POD_OK;
}
