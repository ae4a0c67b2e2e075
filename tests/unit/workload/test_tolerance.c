/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of what another order of addition changes, on dense data that bf16 can't hold exactly:
 * Y = relu(X · W1) · W2, the second product in parts that are rounded and added in bf16. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "workload/verify/tolerance.h"

enum { ROWS = 16, D = 8, F = 32, PARTS = 4, BUFFERS = 5 };
enum { BX, BW1, BH, BW2, BY };

static int32_t buffer(pod_program *program, int64_t rows, int64_t columns)
{
    return pod_program_buffer(program, "b", POD_MEMORY_CACHE, true, POD_DTYPE_BF16, rows, columns);
}

static void product(pod_program *program, int32_t a, int32_t b, int32_t out)
{
    pod_op op = pod_op_make(POD_OP_MATMUL, "mm", 0);
    op.in[0] = a;
    op.in[1] = b;
    op.out = out;
    op.m = program->buffers[a].rows;
    op.k = program->buffers[a].columns;
    op.n = program->buffers[b].columns;
    pod_program_op(program, &op, NULL, 0);
}

static pod_program network(void)
{
    pod_program program;
    pod_program_init(&program, 0);
    buffer(&program, ROWS, D);
    buffer(&program, D, F);
    buffer(&program, ROWS, F);
    buffer(&program, F, D);
    buffer(&program, ROWS, D);
    product(&program, BX, BW1, BH);
    pod_op relu = pod_op_make(POD_OP_VECTOR, "relu", 0);
    relu.function = POD_VEC_RELU;
    relu.in[0] = BH;
    relu.out = BH;
    pod_program_op(&program, &relu, NULL, 0);
    product(&program, BH, BW2, BY);
    return program;
}

/** Random numbers in (-1, 1), or whole ones in {-1, 0, 1}. */
static void fill(const pod_program *program, pod_shards *shards, bool whole)
{
    static const int32_t inputs[3] = {BX, BW1, BW2};
    for (int i = 0; i < 3; i++) {
        const pod_buffer *b = &program->buffers[inputs[i]];
        uint16_t *out = shards->data[inputs[i]];
        for (int64_t e = 0; e < b->rows * b->columns; e++) {
            const double unit = pod_rng_unit(3, (uint64_t)i, (uint64_t)e);
            const double value = whole ? rint(2.4 * unit - 1.2) : 2 * unit - 1;
            out[e] = pod_bf16_from_f32((float)value);
        }
    }
}

static float at(const pod_shards *shards, int32_t buffer_index, int64_t element)
{
    return pod_bf16_to_f32(((uint16_t *)shards->data[buffer_index])[element]);
}

/** Row r, column c of Y with the hidden dim in PARTS parts, without part `dropped`. */
static float in_parts(const pod_shards *shards, int r, int c, int dropped)
{
    uint16_t sum = 0;
    for (int p = PARTS - 1; p >= 0; p--) {
        float part = 0;
        for (int k = p * F / PARTS; k < (p + 1) * F / PARTS; k++) {
            part += at(shards, BH, r * F + k) * at(shards, BW2, k * D + c);
        }
        const uint16_t rounded = pod_bf16_from_f32(part);
        if (p != dropped) {
            pod_dtype_add(POD_DTYPE_BF16, &sum, &rounded, 1);
        }
    }
    return pod_bf16_to_f32(sum);
}

/** Elements of Y that are beyond the bound when it is added in parts. */
static int beyond(const pod_bounds *bounds, int dropped)
{
    int count = 0;
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < D; c++) {
            const float *bound = bounds->bound[BY];
            const float allowed = bound != NULL ? bound[r * D + c] : 0;
            const float got = in_parts(bounds->shards, r, c, dropped);
            count += fabsf(got - at(bounds->shards, BY, r * D + c)) > allowed;
        }
    }
    return count;
}

static void check(bool whole)
{
    pod_program program = network();
    pod_shards shards;
    pod_bounds bounds;
    pod_error err = {0};
    cr_assert_eq(pod_shards_init(&shards, &program, &err), POD_OK);
    fill(&program, &shards, whole);
    cr_assert_eq(pod_bounds_init(&bounds, &program, &shards, PARTS + 1, &err), POD_OK);
    for (int32_t op = 0; op < program.nops; op++) {
        cr_assert_eq(pod_bounds_exec(&bounds, op, &err), POD_OK, "%s", err.text);
    }
    cr_assert_eq(bounds.bound[BY] == NULL, whole);
    cr_assert_eq(beyond(&bounds, -1), 0);
    for (int part = 0; part < PARTS; part++) {
        cr_assert_gt(beyond(&bounds, part), 0);
    }
    pod_bounds_fini(&bounds);
    pod_shards_fini(&shards, &program);
    pod_program_fini(&program);
}

Test(bounds, rounding_in_parts_stays_within_them_and_a_missing_part_does_not)
{
    check(false);
}

Test(bounds, whole_numbers_below_256_need_none)
{
    check(true);
}
