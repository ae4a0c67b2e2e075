/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_slices.h"

#include <math.h>

/* Expected largest of 2^i normal numbers (order statistics of the normal distribution). */
static const double slowest[] = {0, 0.56, 1.03, 1.42, 1.77, 2.07};
enum { LAST = sizeof slowest / sizeof slowest[0] - 1 };

double pod_experiment_slowest_of(int32_t n)
{
    const double doublings = log2(n);
    const int before = doublings < LAST ? (int)doublings : LAST - 1;
    return slowest[before] + (slowest[before + 1] - slowest[before]) * (doublings - before);
}

static bool crosses(const pod_programs *programs, const pod_slice *slice, int32_t stage,
                    const pod_op *op)
{
    if (pod_op_is_collective(op)) {
        return pod_program_group_slices(&programs->groups[op->group]) > 1;
    }
    if (!pod_op_sends(op) && !pod_op_receives(op)) {
        return false;
    }
    int32_t chip = 0;
    while (programs->stage_of[chip] != stage) {
        chip++;
    }
    const int32_t peer = pod_programs_stage_chip(programs, chip, op->to_stage);
    return chip / slice->nchips != peer / slice->nchips;
}

/* Chips of a stage that meet those of other slices. */
static int64_t chips_that_meet(const pod_programs *programs, const pod_slice *slice, int32_t stage,
                               const pod_op_record *records)
{
    const pod_program *program = &programs->stages[stage];
    int64_t chips = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        if (records[i].chips > chips && crosses(programs, slice, stage, &program->ops[i])) {
            chips = records[i].chips;
        }
    }
    return chips;
}

void pod_experiment_step_slowest_slice(const pod_chip_spec *chip, const pod_slice *slice,
                                       const pod_programs *programs, pod_step_result *result)
{
    const double frac = chip->slice_jitter_frac * pod_experiment_slowest_of(slice->nslices);
    const pod_time_ps wait_ps = llround((double)result->time_ps * frac);
    int64_t chips = 0;
    for (int32_t s = 0; s < programs->nstages; s++) {
        chips += chips_that_meet(programs, slice, s, result->ops[s]);
    }
    result->time_ps += wait_ps;
    result->slowest_ps = wait_ps * chips;
    result->slowest_of = result->slowest_ps > 0 ? slice->nslices : 0;
    result->exposed_dcn_ps += result->slowest_ps;
    result->idle_ps += wait_ps * (result->cells - chips);
}
