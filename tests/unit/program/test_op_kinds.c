/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "program/op_time.h"

/* The kernels have their tests in unit/chip; here: what the row of a kind says. */
static pod_time_ps time_of(const pod_op *op)
{
    static const pod_chip_spec chip = {.mxu_dim = 0}; /* none of these asks it */
    pod_op_time time;
    cr_assert_eq(pod_op_time_find(&chip, op, &time, NULL), POD_OK);
    return time.time_ps;
}

Test(program_op_kinds, the_core_runs_what_its_rows_say)
{
    static const pod_op_kind core[] = {POD_OP_MATMUL, POD_OP_CONV, POD_OP_VECTOR, POD_OP_ATTENTION,
                                       POD_OP_COMPUTE};
    static const pod_op_kind other[] = {POD_OP_COPY, POD_OP_COLLECTIVE, POD_OP_SEND, POD_OP_RECV,
                                        POD_OP_HOST};
    for (size_t i = 0; i < sizeof core / sizeof *core; i++) {
        const pod_op op = pod_op_make(core[i], "op", -1);
        cr_assert(pod_op_is_core(&op));
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        const pod_op op = pod_op_make(other[i], "op", -1);
        cr_assert_not(pod_op_is_core(&op));
    }
    cr_assert_str_eq(pod_op_row(POD_OP_HOST)->name, "host");
}

Test(program_op_kinds, ops_that_say_their_time_have_it)
{
    pod_op op = pod_op_make(POD_OP_COMPUTE, "op", -1);
    op.start_ps = 2;
    op.unit_ps = 5;
    op.host_ps = 11;
    cr_assert_eq(time_of(&op), 7);
    op.kind = POD_OP_COPY;
    cr_assert_eq(time_of(&op), 2);
    op.kind = POD_OP_HOST;
    cr_assert_eq(time_of(&op), 11);
    op.kind = POD_OP_COLLECTIVE;
    cr_assert_eq(time_of(&op), 0);
}

/* 2 · 3 · 5 · 7 operations, four times; an op of another kind has none, whatever its sizes. */
Test(program_op_kinds, a_matmul_has_2mkn_operations)
{
    pod_op op = pod_op_make(POD_OP_MATMUL, "op", -1);
    op.m = 3;
    op.k = 5;
    op.n = 7;
    op.count = 4;
    cr_assert_eq(pod_op_mxu_flops(&op), 840);
    op.kind = POD_OP_VECTOR;
    cr_assert_eq(pod_op_mxu_flops(&op), 0);
}
