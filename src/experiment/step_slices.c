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

/* The record of the op over slices that the chips of a stage wait longest for, or NULL. */
static pod_op_record *meeting_of(const pod_programs *programs, const pod_slice *slice,
                                 int32_t stage, pod_op_record *records)
{
    const pod_program *program = &programs->stages[stage];
    pod_op_record *meeting = NULL;
    for (int32_t i = 0; i < program->nops; i++) {
        if (records[i].chips > 0 && (meeting == NULL || records[i].exposed_ps > meeting->exposed_ps)
            && crosses(programs, slice, stage, &program->ops[i])) {
            meeting = &records[i];
        }
    }
    return meeting;
}

void pod_experiment_step_slowest_slice(const pod_chip_spec *chip, const pod_slice *slice,
                                       const pod_programs *programs, pod_step_result *result)
{
    const double frac = chip->slice_jitter_frac * pod_experiment_slowest_of(slice->nslices);
    const pod_time_ps wait_ps = llround((double)result->time_ps * frac);
    result->time_ps += wait_ps;
    result->idle_ps += wait_ps * result->cells;
    for (int32_t s = 0; s < programs->nstages; s++) {
        pod_op_record *meeting = meeting_of(programs, slice, s, result->ops[s]);
        if (meeting != NULL) {
            meeting->exposed_ps += wait_ps * meeting->chips;
            result->exposed_dcn_ps += wait_ps * meeting->chips;
            result->idle_ps -= wait_ps * meeting->chips;
        }
    }
}
