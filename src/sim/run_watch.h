/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/run_watch.h  Collects what a pod_run_watch asks for. Private to sim/run.
 *  Ownership: storage of the caller, {.args} at first, fini at the end. Threads: one per rank. */
#pragma once

#include "sim/run.h"

typedef struct pod_run_watcher {
    const pod_run_collective_args *args;
    pod_run_message *messages; /**< of this rank's chips */
    int64_t count;
    int64_t capacity;
    bool out_of_memory;
} pod_run_watcher;

/** A message has left a link of a cell, from a handler of that cell. */
void pod_run_watcher_note(pod_run_watcher *watcher, int32_t cell, int port, pod_net_tag tag,
                          int32_t source, pod_time_ps joined_ps, pod_time_ps now_ps);
/** Gather all messages in args->watch on rank 0, sorted. Collective. @return POD_E_NOMEM */
pod_status pod_run_watcher_finish(pod_run_watcher *watcher, pod_par *par, pod_error *err);
void pod_run_watcher_fini(pod_run_watcher *watcher);
