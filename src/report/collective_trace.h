/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/collective_trace.h  The timeline of collectives for Perfetto.
 *
 *  Model: a process per watched chip (report/timeline.h), with the whole collective on Steps and a slice for
 *  each message on the row of the link that it leaves by, as long as the link carried it: source, target,
 *  blocks, step and channel are its arguments. Messages that share a link lie on lanes. What leaves the slice
 *  by its host lies on DCN. Several collectives follow one another.
 *
 *  Ownership: init/fini on the caller's storage; borrows the trace and the slice. Threads: none. */
#pragma once

#include "report/timeline.h"
#include "sim/run.h"

typedef struct pod_collective_trace {
    pod_trace *trace;
    const pod_slice *slice;
    int32_t nchips;
    int32_t *numbers;         /**< numbers[nchips]: chips that have a process */
    pod_timeline_chip *chips; /**< chips[nchips] */
    pod_time_ps now_ps;       /**< when the next collective begins */
    pod_trace_args args;      /**< of the message being drawn */
} pod_collective_trace;

void pod_collective_trace_init(pod_collective_trace *lanes, pod_trace *trace,
                               const pod_slice *slice);
void pod_collective_trace_fini(pod_collective_trace *lanes);

/** Add a collective. Not collective.
 *  @param title    on Steps, as "all-reduce 1 MiB by bucket"
 *  @param time_ps  that it takes
 *  @return POD_E_NOMEM */
pod_status pod_collective_trace_add(pod_collective_trace *lanes, const pod_run_watch *watch,
                                    const char *title, pod_time_ps time_ps, pod_error *err);
