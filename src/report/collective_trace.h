/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/collective_trace.h  The timeline of a collective for Perfetto.
 *
 *  Model: a process per watched chip (report/timeline.h), with the whole collective on Steps and a slice for
 *  each message on the row of the link that it leaves by, as long as the link carried it: source, target, blocks, step
 *  and channel are its arguments. Messages that share a link lie on lanes. What leaves the slice lies
 *  on DCN. A message's name says what it carries: "blocks 4-7".
 *
 *  Ownership: borrows all it is given. Threads: none. */
#pragma once

#include "report/trace.h"
#include "sim/run.h"

typedef struct pod_collective_trace_args {
    const pod_slice *slice;
    const pod_coll_schedule *schedule;
    const pod_run_watch *watch;
    pod_time_ps
        start_ps; /**< when this collective begins in the timeline: several sizes follow one another */
    pod_time_ps time_ps; /**< that it takes */
    const char *title;   /**< on Steps, e.g. "all-reduce 1 MiB" */
} pod_collective_trace_args;

/** Add a collective to a trace. Not collective.
 *  @return POD_E_NOMEM */
pod_status pod_collective_trace_add(pod_trace *trace, const pod_collective_trace_args *args,
                                    pod_error *err);
