/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "program/program.h"

/** A program of one matmul [4, 8] · [8, 2] on buffers 0, 1, 2. */
static pod_program matmul_program(void)
{
    pod_program program;
    pod_program_init(&program, 0);
    const int32_t a =
        pod_program_buffer(&program, "a", POD_MEMORY_INPUT, true, POD_DTYPE_BF16, 4, 8);
    const int32_t b =
        pod_program_buffer(&program, "b", POD_MEMORY_WEIGHTS, true, POD_DTYPE_BF16, 8, 2);
    const int32_t c =
        pod_program_buffer(&program, "c", POD_MEMORY_ACTIVATIONS, false, POD_DTYPE_BF16, 4, 2);
    pod_op op = pod_op_make(POD_OP_MATMUL, "fwd.mm", 0);
    op.in[0] = a;
    op.in[1] = b;
    op.out = c;
    op.m = 4;
    op.k = 8;
    op.n = 2;
    pod_program_op(&program, &op, NULL, 0);
    return program;
}

static pod_status finish(pod_program *program, pod_error *err)
{
    pod_program_group group = {.group = {.size = 4}};
    const pod_programs programs = {.nstages = 1, .stages = program, .ngroups = 1, .groups = &group};
    *err = (pod_error){0};
    return pod_programs_finish(&programs, err);
}

static void expect_refused(pod_program *program, const char *part)
{
    pod_error err;
    cr_assert_eq(finish(program, &err), POD_E_INTERNAL);
    cr_assert(strstr(err.text, part) != NULL, "%s", err.text);
    pod_program_fini(program);
}

Test(program, deps_are_kept_once_and_in_order)
{
    pod_program program;
    pod_program_init(&program, 0);
    const pod_op op = pod_op_make(POD_OP_VECTOR, "v", -1);
    const int32_t first = pod_program_op(&program, &op, NULL, 0);
    const int32_t second = pod_program_op(&program, &op, &first, 1);
    const int32_t deps[] = {second, POD_OP_NONE, first, second};
    const int32_t third = pod_program_op(&program, &op, deps, 4);
    cr_assert_eq(program.ops[third].ndeps, 2);
    cr_assert_eq(program.deps[program.ops[third].first_dep], second);
    cr_assert_eq(program.deps[program.ops[third].first_dep + 1], first);
    pod_program_fini(&program);
}

Test(program, keeps_many_ops_and_buffers_with_their_names)
{
    pod_program program;
    pod_program_init(&program, 0);
    char name[] = "op.0";
    for (int i = 0; i < 100; i++) {
        name[3] = (char)('0' + i % 10);
        const pod_op op = pod_op_make(POD_OP_VECTOR, name, i);
        cr_assert_eq(pod_program_op(&program, &op, NULL, 0), i);
        cr_assert_eq(
            pod_program_buffer(&program, name, POD_MEMORY_CACHE, false, POD_DTYPE_F32, i, 3), i);
    }
    cr_assert_str_eq(program.ops[57].name, "op.7");
    cr_assert_str_eq(program.buffers[57].name, "op.7");
    cr_assert_eq(pod_buffer_bytes(&program.buffers[57]), 57 * 3 * 4);
    pod_program_fini(&program);
}

Test(program, a_matmul_that_fits_its_buffers_passes)
{
    pod_program program = matmul_program();
    pod_error err;
    cr_assert_eq(finish(&program, &err), POD_OK, "%s", err.text);
    pod_program_fini(&program);
}

Test(program, a_dependency_on_a_later_op_is_refused)
{
    pod_program program = matmul_program();
    const pod_op op = pod_op_make(POD_OP_VECTOR, "late", 0);
    const int32_t self = 1;
    pod_program_op(&program, &op, &self, 1);
    expect_refused(&program, "does not come before");
}

Test(program, a_matmul_of_other_sizes_is_refused)
{
    pod_program program = matmul_program();
    program.ops[0].transpose_b = true;
    expect_refused(&program, "sizes of the matmul");
}

Test(program, a_missing_buffer_is_refused)
{
    pod_program program = matmul_program();
    program.ops[0].in[1] = 3;
    expect_refused(&program, "buffer that does not exist");
}

/** A vector op of b [8, 2] in place of c's shape [4, 2], and of c itself. */
Test(program, a_vector_op_wants_inputs_of_the_shape_of_its_result)
{
    for (int32_t input = 1; input <= 2; input++) {
        pod_program program = matmul_program();
        pod_error err;
        pod_op op = pod_op_make(POD_OP_VECTOR, "act", 0);
        op.function = POD_VEC_RELU;
        op.in[0] = input;
        op.out =
            pod_program_buffer(&program, "y", POD_MEMORY_ACTIVATIONS, false, POD_DTYPE_BF16, 4, 2);
        const int32_t dep = 0;
        pod_program_op(&program, &op, &dep, 1);
        if (input == 1) {
            expect_refused(&program, "another shape");
            continue;
        }
        cr_assert_eq(finish(&program, &err), POD_OK, "%s", err.text);
        pod_program_fini(&program);
    }
}

/** Append an all-gather of buffer c along its rows over the group of 4. */
static void add_gather(pod_program *program, int64_t rows, int64_t bytes)
{
    pod_op op = pod_op_make(POD_OP_COLLECTIVE, "gather", 0);
    op.op = POD_ALL_GATHER;
    op.group = 0;
    op.bytes = bytes;
    op.dtype = POD_DTYPE_BF16;
    op.in[0] = 2;
    op.out =
        pod_program_buffer(program, "all", POD_MEMORY_GATHERED, false, POD_DTYPE_BF16, rows, 2);
    const int32_t dep = 0;
    pod_program_op(program, &op, &dep, 1);
}

Test(program, an_all_gather_makes_n_pieces_one)
{
    pod_program program = matmul_program();
    pod_error err;
    add_gather(&program, 16, 64);
    cr_assert_eq(finish(&program, &err), POD_OK, "%s", err.text);
    program.ops[1].dim = 1;
    expect_refused(&program, "collective differ");
    program = matmul_program();
    add_gather(&program, 16, 16);
    expect_refused(&program, "collective differ");
    program = matmul_program();
    add_gather(&program, 16, 64);
    program.ops[1].group = 1;
    expect_refused(&program, "group that does not exist");
}

Test(program, only_all_reduces_work_in_place)
{
    pod_program program = matmul_program();
    pod_error err;
    pod_op op = pod_op_make(POD_OP_COLLECTIVE, "sum", 0);
    op.op = POD_ALL_REDUCE;
    op.group = 0;
    op.bytes = 16;
    op.dtype = POD_DTYPE_BF16;
    op.in[0] = 2;
    op.out = 2;
    pod_program_op(&program, &op, NULL, 0);
    cr_assert_eq(finish(&program, &err), POD_OK, "%s", err.text);
    program.ops[1].op = POD_PERMUTE;
    expect_refused(&program, "only all-reduces work in place");
}

static void add_message(pod_program *program, pod_op_kind kind, int32_t stage, int64_t bytes)
{
    pod_op op = pod_op_make(kind, "message", -1);
    op.to_stage = stage;
    op.message = 5;
    op.bytes = bytes;
    pod_program_op(program, &op, NULL, 0);
}

Test(program, every_message_has_one_sender_and_one_receiver_with_its_bytes)
{
    for (int64_t received = 0; received <= 64; received += 32) {
        pod_program stages[2];
        pod_program_init(&stages[0], 0);
        pod_program_init(&stages[1], 1);
        add_message(&stages[0], POD_OP_SEND, 1, 64);
        if (received > 0) {
            add_message(&stages[1], POD_OP_RECV, 0, received);
        }
        const pod_programs programs = {.nstages = 2, .stages = stages};
        pod_error err = {0};
        cr_assert_eq(pod_programs_finish(&programs, &err),
                     received == 64 ? POD_OK : POD_E_INTERNAL);
        pod_program_fini(&stages[0]);
        pod_program_fini(&stages[1]);
    }
}
