/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/step_timeline.h  What the observer of a step saw, kept: when each op ran and each link was busy.
 *
 *  Model: a recorder is an observer (sim/step.h) that keeps what it is told. After the run, pod_step_recorder_finish
 *  puts all ranks' parts together on rank 0, in an order that depends on nothing but the run. A stretch
 *  of a busy link belongs to the collective that had most of its messages leave it in that time.
 *
 *  Ownership: init/fini on the caller's storage. Threads: one per rank. */
#pragma once

#include "sim/step.h"

/** An op on a watched chip. */
typedef struct pod_step_op_time {
    pod_time_ps start_ps;
    pod_time_ps end_ps;
    int32_t watch; /**< index in pod_step_timeline.chips */
    int32_t stage;
    int32_t op;
} pod_step_op_time;

/** A stretch in which a link of a watched chip was busy. */
typedef struct pod_step_link_time {
    pod_time_ps start_ps;
    pod_time_ps end_ps;
    int32_t watch;
    int32_t direction; /**< of ici/slice.h */
    int32_t stage;     /**< of the collective that had most of it; -1: a message between stages */
    int32_t op;        /**< that collective; POD_OP_NONE */
} pod_step_link_time;

typedef struct pod_step_timeline {
    int32_t nchips;
    int32_t *chips; /**< chips[nchips], of all slices */
    int64_t nops;
    pod_step_op_time *ops; /**< by watch, start, op */
    int64_t nlinks;
    pod_step_link_time *links; /**< by watch, direction, start */
    pod_time_ps end_ps;        /**< of the step */
} pod_step_timeline;

void pod_step_timeline_fini(pod_step_timeline *timeline);
typedef struct pod_step_recorder pod_step_recorder;

/** @param chips  chips[nchips] of all slices, copied
 *  @return POD_E_NOMEM */
pod_status pod_step_recorder_new(int32_t nchips, const int32_t *chips, pod_step_recorder **recorder,
                                 pod_error *err);
void pod_step_recorder_free(pod_step_recorder *recorder);
/** For pod_step_args.observer; lives as long as the recorder. */
const pod_step_observer *pod_step_recorder_observer(const pod_step_recorder *recorder);
/** All that was seen since the last call, on rank 0 (elsewhere nothing). Collective.
 *  @return POD_E_NOMEM */
pod_status pod_step_recorder_finish(pod_step_recorder *recorder, pod_par *par, pod_time_ps end_ps,
                                    pod_step_timeline *timeline, pod_error *err);
