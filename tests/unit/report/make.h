/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/report/make.h  A small program and a record of its run, made by hand.
 *
 *  One stage, two cells, step 100 us. Per cell:
 *      matmul   30 us   64 x 96 x 128, of which k and n fill tiles of 128 to 3/4 and to 1
 *      vector   10 us
 *      sum.X    all-reduce over tensor, twice: 20 us each, 15 us of them exposed
 *      sum.dW   all-reduce over data, once: 50 us, 25 us of them exposed
 *      idle      5 us */
#pragma once

#include <criterion/criterion.h>

#include "report/breakdown.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct small_step {
    pod_programs programs;
    pod_step_result result;
} small_step;

enum { CELLS = 2 };

static inline void small_record(small_step *s, int32_t op, int64_t time_us, int64_t exposed_us)
{
    s->result.ops[0][op] = (pod_op_record){.chips = CELLS,
                                           .time_ps = CELLS * time_us * 1000000,
                                           .exposed_ps = CELLS * exposed_us * 1000000};
}

static inline int32_t small_sum(small_step *s, const char *name, int32_t layer, int32_t group,
                                int64_t bytes)
{
    pod_op op = pod_op_make(POD_OP_COLLECTIVE, name, layer);
    op.op = POD_ALL_REDUCE;
    op.group = group;
    op.bytes = bytes;
    return pod_program_op(&s->programs.stages[0], &op, NULL, 0);
}

static inline void small_make(small_step *s)
{
    *s = (small_step){
        .programs = {.nstages = 1, .ngroups = 2}
    };
    s->programs.stages = calloc(1, sizeof *s->programs.stages);
    s->programs.groups = calloc(2, sizeof *s->programs.groups);
    (void)snprintf(s->programs.groups[0].axes, POD_PROGRAM_AXES_MAX, "tensor");
    s->programs.groups[0].group.size = 4;
    (void)snprintf(s->programs.groups[1].axes, POD_PROGRAM_AXES_MAX, "data");
    s->programs.groups[1].group.size = 16;
    pod_program *program = &s->programs.stages[0];
    pod_program_init(program, 0);
    pod_op matmul = pod_op_make(POD_OP_MATMUL, "mm", 0);
    matmul.m = 64;
    matmul.k = 96;
    matmul.n = 128;
    const pod_op vector = pod_op_make(POD_OP_VECTOR, "relu", 0);
    s->result = (pod_step_result){.time_ps = 100000000, .cells = CELLS, .nstages = 1};
    s->result.compute_ps = CELLS * INT64_C(40000000);
    s->result.exposed_ici_ps = CELLS * INT64_C(55000000);
    s->result.idle_ps = CELLS * INT64_C(5000000);
    s->result.hbm_bound_ps = CELLS * INT64_C(10000000);
    s->result.ops = calloc(1, sizeof *s->result.ops);
    s->result.ops[0] = calloc(8, sizeof *s->result.ops[0]);
    small_record(s, pod_program_op(program, &matmul, NULL, 0), 30, 0);
    small_record(s, pod_program_op(program, &vector, NULL, 0), 10, 0);
    small_record(s, small_sum(s, "sum.X", 0, 0, 1024), 20, 15);
    small_record(s, small_sum(s, "sum.dW", 0, 1, 4096), 50, 25);
    small_record(s, small_sum(s, "sum.X", 1, 0, 1024), 20, 15);
}

static inline void small_free(small_step *s)
{
    pod_step_result_fini(&s->result);
    pod_program_fini(&s->programs.stages[0]);
    free(s->programs.stages);
    free(s->programs.groups);
}
