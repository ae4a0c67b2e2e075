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
