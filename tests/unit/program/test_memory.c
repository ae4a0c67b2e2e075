/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "program/memory.h"

static void op_add(pod_program *program, int32_t in0, int32_t in1, int32_t out)
{
    pod_op op = pod_op_make(POD_OP_VECTOR, "v", -1);
    op.in[0] = in0;
    op.in[1] = in1;
    op.out = out;
    pod_program_op(program, &op, NULL, 0);
}

/* Buffers of 8, 16, 32 and 64 bytes:
 *      op 0  w → x         op 1  x → y         op 2  y → z
 * w lives always, x in ops 0 and 1, y in 1 and 2, z in 2. */
Test(memory, buffers_live_from_first_writer_to_last_reader)
{
    pod_program program;
    pod_memory_use use;
    pod_error err = {0};
    pod_program_init(&program, 0);
    const int32_t w =
        pod_program_buffer(&program, "w", POD_MEMORY_WEIGHTS, true, POD_DTYPE_F32, 1, 2);
    const int32_t x =
        pod_program_buffer(&program, "x", POD_MEMORY_ACTIVATIONS, false, POD_DTYPE_F32, 1, 4);
    const int32_t y =
        pod_program_buffer(&program, "y", POD_MEMORY_GATHERED, false, POD_DTYPE_F32, 1, 16);
    const int32_t z =
        pod_program_buffer(&program, "z", POD_MEMORY_GRADIENTS, false, POD_DTYPE_F32, 1, 2);
    pod_program_buffer(&program, "never", POD_MEMORY_CACHE, false, POD_DTYPE_F32, 1, 1000);
    op_add(&program, w, POD_OP_NONE, x);
    op_add(&program, x, POD_OP_NONE, y);
    op_add(&program, y, POD_OP_NONE, z);
    cr_assert_eq(pod_program_memory(&program, &use, &err), POD_OK);
    cr_assert_eq(use.peak_op, 1);
    cr_assert_eq(use.peak_bytes, 8 + 16 + 64);
    cr_assert_eq(use.by_kind[POD_MEMORY_WEIGHTS], 8);
    cr_assert_eq(use.by_kind[POD_MEMORY_ACTIVATIONS], 16);
    cr_assert_eq(use.by_kind[POD_MEMORY_GATHERED], 64);
    cr_assert_eq(use.by_kind[POD_MEMORY_GRADIENTS], 0);
    op_add(&program, x, y, z); /* now x lives on to the end */
    cr_assert_eq(pod_program_memory(&program, &use, &err), POD_OK);
    cr_assert_eq(use.peak_op, 2);
    cr_assert_eq(use.peak_bytes, 8 + 16 + 64 + 8);
    pod_program_fini(&program);
}

Test(memory, a_program_without_ops_needs_what_persists)
{
    pod_program program;
    pod_memory_use use;
    pod_error err = {0};
    pod_program_init(&program, 0);
    cr_assert_eq(pod_program_memory(&program, &use, &err), POD_OK);
    cr_assert_eq(use.peak_bytes, 0);
    pod_program_buffer(&program, "w", POD_MEMORY_OPTIMIZER, true, POD_DTYPE_BF16, 3, 5);
    cr_assert_eq(pod_program_memory(&program, &use, &err), POD_OK);
    cr_assert_eq(use.peak_bytes, 30);
    cr_assert_eq(use.by_kind[POD_MEMORY_OPTIMIZER], 30);
    pod_program_fini(&program);
}
