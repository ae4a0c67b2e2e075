/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/step_trace.h  The timeline of a step for Perfetto.
 *
 *  Model: a process per watched chip (report/timeline.h). Core ops lie on XLA Ops, collectives and messages on
 *  Async XLA Ops, copies on HBM copies, the host's work on Host; phases and layers are nested slices on
 *  Framework Ops. An arrow leads from each collective to the core op that waits for it. Busy stretches of
 *  links, merged where they are less than 1 us apart and belong to one collective, lie on the links' rows. Counters:
 *  HBM bytes that live, and the part of the chip's links that is busy.
 *
 *  Ownership: borrows all it is given. Threads: none. */
#pragma once

#include "program/program.h"
#include "report/trace.h"
#include "sim/step_timeline.h"

typedef struct pod_step_trace_args {
    const pod_slice *slice;
    const pod_programs *programs;
    const pod_step_result *result;
    const pod_step_timeline *timeline;
    const char *title; /**< name of the slice on Steps, e.g. the model */
    /** What a core op belongs to at a level of Framework Ops, 0 the outermost: false if nothing; NULL: its phase and
     *  its layer. */
    bool (*part)(void *context, int32_t stage, int32_t op, int level, char *name, size_t size);
    /** Further arguments of an op; may be NULL. */
    void (*describe)(void *context, int32_t stage, int32_t op, pod_trace_args *args);
    void *context;
} pod_step_trace_args;

/** Add the step to a trace. Not collective.
 *  @return POD_E_NOMEM */
pod_status pod_step_trace_add(pod_trace *trace, const pod_step_trace_args *args, pod_error *err);

/** Of an op of workload/: "forward", "recompute", "backward", "update", or "" for what belongs to none. Static. */
const char *pod_step_trace_phase(const pod_op *op);
/** The same, "step" where no phase has it. */
static inline const char *pod_step_phase(const pod_op *op)
{
    const char *phase = pod_step_trace_phase(op);
    return phase[0] != '\0' ? phase : "step";
}
