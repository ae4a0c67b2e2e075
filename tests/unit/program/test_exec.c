/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>

#include "program/exec.h"

enum { M = 5, K = 7, N = 3 };

static float value_at(int64_t i, int64_t j)
{
    return (float)((i * 5 + j * 3) % 7 - 3);
}

/** Fill a buffer with value_at, or with that of the transposed matrix. */
static void fill(const pod_program *program, pod_shards *shards, int32_t buffer, bool transposed)
{
    const pod_buffer *b = &program->buffers[buffer];
    for (int64_t i = 0; i < b->rows; i++) {
        for (int64_t j = 0; j < b->columns; j++) {
            const float value = transposed ? value_at(j, i) : value_at(i, j);
            pod_dtype_from_f32(b->dtype,
                               (char *)shards->data[buffer]
                                   + (i * b->columns + j) * pod_dtype_size(b->dtype),
                               &value, 1);
        }
    }
}

static float element(const pod_program *program, const pod_shards *shards, int32_t buffer,
                     int64_t index)
{
    const pod_dtype dtype = program->buffers[buffer].dtype;
    float value;
    pod_dtype_to_f32(dtype, &value,
                     (const char *)shards->data[buffer] + index * pod_dtype_size(dtype), 1);
    return value;
}

static int32_t buffer_add(pod_program *program, pod_dtype dtype, int64_t rows, int64_t columns)
{
    return pod_program_buffer(program, "b", POD_MEMORY_CACHE, true, dtype, rows, columns);
}

static void matmul_case(pod_dtype dtype, bool transpose_a, bool transpose_b, bool accumulate)
{
    pod_program program;
    pod_shards shards;
    pod_error err = {0};
    pod_program_init(&program, 0);
    pod_op op = pod_op_make(POD_OP_MATMUL, "mm", 0);
    op.in[0] = buffer_add(&program, dtype, transpose_a ? K : M, transpose_a ? M : K);
    op.in[1] = buffer_add(&program, dtype, transpose_b ? N : K, transpose_b ? K : N);
    op.out = buffer_add(&program, POD_DTYPE_BF16, M, N);
    op.m = M;
    op.k = K;
    op.n = N;
    op.dtype = dtype;
    op.transpose_a = transpose_a;
    op.transpose_b = transpose_b;
    op.accumulate = accumulate;
    pod_program_op(&program, &op, NULL, 0);
    cr_assert_eq(pod_shards_init(&shards, &program, &err), POD_OK);
    fill(&program, &shards, op.in[0], transpose_a);
    fill(&program, &shards, op.in[1], transpose_b);
    fill(&program, &shards, op.out, false);
    cr_assert_eq(pod_op_exec(&program, 0, &shards, &err), POD_OK, "%s", err.text);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float want = accumulate ? value_at(i, j) : 0;
            for (int k = 0; k < K; k++) {
                want += value_at(i, k) * value_at(k, j);
            }
            cr_assert_float_eq(element(&program, &shards, op.out, i * N + j), want, 0.0F);
        }
    }
    pod_shards_fini(&shards, &program);
    pod_program_fini(&program);
}

Test(exec, matmuls_transpose_and_accumulate)
{
    for (int i = 0; i < 16; i++) {
        matmul_case(i & 8 ? POD_DTYPE_F32 : POD_DTYPE_BF16, i & 1, i & 2, i & 4);
    }
}

static float vector_case(pod_vector_function function, float a, float b, float c, double rate)
{
    pod_program program;
    pod_shards shards;
    pod_error err = {0};
    pod_program_init(&program, 0);
    pod_op op = pod_op_make(POD_OP_VECTOR, "v", 0);
    enum { LONG = 1500 }; /* more than one chunk */
    for (int i = 0; i < 3; i++) {
        op.in[i] = buffer_add(&program, POD_DTYPE_F32, 1, LONG);
    }
    op.out = buffer_add(&program, POD_DTYPE_F32, 1, LONG);
    op.function = function;
    op.rate = rate;
    pod_program_op(&program, &op, NULL, 0);
    cr_assert_eq(pod_shards_init(&shards, &program, &err), POD_OK);
    ((float *)shards.data[0])[LONG - 1] = a;
    ((float *)shards.data[1])[LONG - 1] = b;
    ((float *)shards.data[2])[LONG - 1] = c;
    cr_assert_eq(pod_op_exec(&program, 0, &shards, &err), POD_OK);
    const float result = ((float *)shards.data[3])[LONG - 1];
    pod_shards_fini(&shards, &program);
    pod_program_fini(&program);
    return result;
}

Test(exec, vector_functions_do_what_their_names_say)
{
    cr_assert_float_eq(vector_case(POD_VEC_COPY, 3, 4, 5, 0), 3, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_RELU, -3, 0, 0, 0), 0, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_RELU, 3, 0, 0, 0), 3, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_RELU_GRAD, 0, 7, 0, 0), 0, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_RELU_GRAD, 2, 7, 0, 0), 7, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_ADD, 2, 7, 0, 0), 9, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_SUB, 2, 7, 0, 0), -5, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_SGD, 2, 7, 0, 0.5), -1.5F, 0.0F);
    cr_assert_float_eq(vector_case(POD_VEC_ZERO, 2, 7, 0, 0), 0, 0.0F);
}

/* Kingma and Ba, Adam, algorithm 1: at t = 1 the corrected moments are g and g², so the weight
 * moves by rate · g / (|g| + 1e-8). */
Test(exec, the_first_step_of_adam_moves_a_weight_by_the_rate)
{
    const float m = vector_case(POD_VEC_ADAM_M, 0, -6, 0, 0);
    const float v = vector_case(POD_VEC_ADAM_V, 0, -6, 0, 0);
    cr_assert_float_eq(m, -0.6F, 1e-6F);
    cr_assert_float_eq(v, 0.036F, 1e-6F);
    cr_assert_float_eq(vector_case(POD_VEC_ADAM_W, 1, m, v, 0.25), 1.25F, 1e-5F);
}

Test(exec, results_are_rounded_once_to_their_dtype)
{
    pod_program program;
    pod_shards shards;
    pod_error err = {0};
    pod_program_init(&program, 0);
    pod_op op = pod_op_make(POD_OP_VECTOR, "v", 0);
    op.in[0] = buffer_add(&program, POD_DTYPE_F32, 1, 1);
    op.out = buffer_add(&program, POD_DTYPE_BF16, 1, 1);
    op.function = POD_VEC_COPY;
    pod_program_op(&program, &op, NULL, 0);
    cr_assert_eq(pod_shards_init(&shards, &program, &err), POD_OK);
    *(float *)shards.data[0] = 257.0F; /* between 256 and 258; ties to even */
    cr_assert_eq(pod_op_exec(&program, 0, &shards, &err), POD_OK);
    cr_assert_float_eq(element(&program, &shards, op.out, 0), 256.0F, 0.0F);
    cr_assert_eq(pod_program_data_bytes(&program), 6);
    pod_shards_fini(&shards, &program);
    pod_program_fini(&program);
}

/* ---- convolutions ---- */

/* Two pictures of 5 x 4 pixels, 3 channels to 2, 3 x 2 taps. */
static const pod_conv_shape small = {2, 5, 4, 3, 2, 3, 2, 1};

static int64_t padding(int64_t size, int64_t taps, int64_t stride)
{
    const int64_t padded = (pod_conv_out(size, stride) - 1) * stride + taps - size;
    return padded > 0 ? padded / 2 : 0;
}

/* Adds to one of X, F and Y the products of the other two, pixel by pixel, as the definition says. */
static void direct(const pod_conv_shape *s, pod_conv_op op, double *x, double *f, double *y)
{
    const int64_t oh = pod_conv_out(s->h, s->stride);
    const int64_t ow = pod_conv_out(s->w, s->stride);
    const int64_t each[7] = {s->n, oh, ow, s->kh, s->kw, s->cin, s->cout};
    int64_t all = 1;
    for (int i = 0; i < 7; i++) {
        all *= each[i];
    }
    for (int64_t at = 0; at < all; at++) {
        int64_t i[7];
        int64_t rest = at;
        for (int d = 6; d >= 0; d--) {
            i[d] = rest % each[d];
            rest /= each[d];
        }
        const int64_t py = i[1] * s->stride + i[3] - padding(s->h, s->kh, s->stride);
        const int64_t px = i[2] * s->stride + i[4] - padding(s->w, s->kw, s->stride);
        if (py < 0 || py >= s->h || px < 0 || px >= s->w) {
            continue;
        }
        double *of_x = &x[((i[0] * s->h + py) * s->w + px) * s->cin + i[5]];
        double *of_f = &f[((i[3] * s->kw + i[4]) * s->cin + i[5]) * s->cout + i[6]];
        double *of_y = &y[((i[0] * oh + i[1]) * ow + i[2]) * s->cout + i[6]];
        *(op == POD_CONV_FORWARD ? of_y
          : op == POD_CONV_INPUT ? of_x
                                 : of_f) += op == POD_CONV_FORWARD ? *of_x * *of_f
                                            : op == POD_CONV_INPUT ? *of_y * *of_f
                                                                   : *of_x * *of_y;
    }
}

static void conv_case(pod_conv_op op, int64_t stride, bool accumulate)
{
    enum { MOST = 256 };
    pod_conv_shape s = small;
    s.stride = stride;
    const int64_t rows[3] = {s.n * s.h * s.w, s.kh * s.kw * s.cin,
                             s.n * pod_conv_out(s.h, stride) * pod_conv_out(s.w, stride)};
    const int64_t columns[3] = {s.cin, s.cout, s.cout};
    const int result = op == POD_CONV_FORWARD ? 2 : op == POD_CONV_INPUT ? 0 : 1;
    const int inputs[2] = {op == POD_CONV_INPUT ? 2 : 0, op == POD_CONV_WEIGHTS ? 2 : 1};
    double value[3][MOST] = {{0}};
    int32_t buffer[3];
    pod_program program;
    pod_programs programs = {.nstages = 1, .stages = &program};
    pod_shards shards;
    pod_error err = {0};
    pod_program_init(&program, 0);
    for (int i = 0; i < 3; i++) {
        buffer[i] = buffer_add(&program, POD_DTYPE_BF16, rows[i], columns[i]);
    }
    pod_op conv = pod_op_make(POD_OP_CONV, "conv", 0);
    conv.in[0] = buffer[inputs[0]];
    conv.in[1] = buffer[inputs[1]];
    conv.out = buffer[result];
    conv.accumulate = accumulate;
    const pod_conv_args args = {.op = op, .shape = s, .dtype = POD_DTYPE_BF16};
    conv.conv = &args;
    (void)pod_program_op(&program, &conv, NULL, 0);
    cr_assert_eq(pod_program_finish(&programs, &program, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_shards_init(&shards, &program, &err), POD_OK);
    for (int i = 0; i < 3; i++) {
        fill(&program, &shards, buffer[i], false);
        for (int64_t k = 0; k < rows[i] * columns[i]; k++) {
            const bool empty = i == result && !accumulate;
            value[i][k] = empty ? 0 : (double)element(&program, &shards, buffer[i], k);
        }
    }
    cr_assert_eq(pod_op_exec(&program, 0, &shards, &err), POD_OK, "%s", err.text);
    direct(&s, op, value[0], value[1], value[2]);
    for (int64_t k = 0; k < rows[result] * columns[result]; k++) {
        cr_assert_eq((double)element(&program, &shards, buffer[result], k), value[result][k],
                     "op %d, stride %d, element %d", (int)op, (int)stride, (int)k);
    }
    pod_shards_fini(&shards, &program);
    pod_program_fini(&program);
}

Test(exec, convolutions_and_their_derivatives_are_those_of_the_definition)
{
    for (int64_t stride = 1; stride <= 3; stride++) {
        for (int op = POD_CONV_FORWARD; op <= POD_CONV_WEIGHTS; op++) {
            conv_case((pod_conv_op)op, stride, false);
            conv_case((pod_conv_op)op, stride, true);
        }
    }
}

Test(exec, a_convolution_of_other_sizes_than_its_buffers_is_refused)
{
    pod_program program;
    pod_programs programs = {.nstages = 1, .stages = &program};
    pod_error err = {0};
    pod_program_init(&program, 0);
    pod_op conv = pod_op_make(POD_OP_CONV, "conv", 0);
    conv.in[0] = buffer_add(&program, POD_DTYPE_BF16, 40, 3);
    conv.in[1] = buffer_add(&program, POD_DTYPE_BF16, 18, 2);
    conv.out = buffer_add(&program, POD_DTYPE_BF16, 39, 2);
    const pod_conv_args args = {.shape = small, .dtype = POD_DTYPE_BF16};
    conv.conv = &args;
    (void)pod_program_op(&program, &conv, NULL, 0);
    cr_assert_eq(pod_program_finish(&programs, &program, &err), POD_E_INTERNAL);
    pod_program_fini(&program);
}
