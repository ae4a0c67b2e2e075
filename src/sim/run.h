/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/run.h  A whole simulated experiment: one collective on a slice.
 *
 *  Model: builds the net of a machine, lets every chip start after the launch cost, runs to the end,
 *  and returns the same result on every rank. With data, contributions follow sim/pattern.h and every
 *  element of every chip's result is compared bit by bit; a folded machine can't move data.
 *
 *  Watching. A pod_run_watch asks for every message that was on a link of chosen chips. Nothing is folded then;
 *  the times are the same.
 *
 *  All functions here are collective. Threads: one per rank. */
#pragma once

#include "collectives/bounds/bound.h"
#include "sim/collective.h"
#include "sim/run_watch.h"

typedef struct pod_run_collective_args {
    const pod_machine *machine;
    const pod_coll_schedule *schedule;
    const int32_t *source_of; /**< permute: source_of[rank], else NULL */
    pod_dtype dtype;
    uint64_t seed;
    bool data;
    /** where all chips do the same (schedule.h: uniform), simulate one for all of them, with
     * several slices those of one host, each rank for itself; not with data or faults. Over
     * slices times may differ by 3e-4, as messages of the same moment go in another order */
    bool fold;
    pod_run_watch *watch; /**< NULL: nobody watches */
} pod_run_collective_args;

typedef struct pod_run_result {
    pod_time_ps time_ps; /**< when the last chip is done */
    int32_t last_chip;   /**< that chip; of several the first */
    int64_t wrong;       /**< elements that differ in any bit, 0 without data */
    int64_t checked;     /**< elements compared */
    pod_link_summary links;
} pod_run_result;

/** True if one chip will be simulated for all. Not collective. */
bool pod_run_folds(const pod_run_collective_args *args);

/** Run a schedule on all its groups at once.
 *  @return POD_E_INTERNAL when chips wait for ever (the schedule is wrong) */
pod_status pod_run_collective(const pod_run_collective_args *args, pod_run_result *result,
                              pod_error *err);

/** Bytes of work buffers that a data run of this schedule needs on all chips of all slices. */
int64_t pod_run_data_bytes(const pod_coll_schedule *schedule, const pod_slice *slice,
                           pod_dtype dtype);
