/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/predict.h  How long a schedule takes on an otherwise idle slice.
 *
 *  Model: the links and channels of schedule.h, without data, faults or other traffic. A link serves the
 *  messages on it at once in equal shares (fluid processor sharing), or one at a time when the
 *  schedule is ordered; a message leaves its sender when its service ends and arrives one hop
 *  latency later.
 *
 *  Every rank of a closed group does the same at the same moment, so one rank that sends to itself
 *  stands for all: a prediction then costs one chip's messages instead of all chips'. On open
 *  groups every rank is followed.
 *
 *  Messages that must be routed (positions `stride` chips apart) share their links with those of the interleaved
 *  groups: they count as `stride` times their bytes and take `stride` hops.
 *
 *  Threads: none; no state between calls. */
#pragma once

#include "collectives/algorithm.h"

typedef struct pod_coll_estimate {
    pod_time_ps time_ps; /**< from launch to the last rank's end */
    pod_time_ps link_ps; /**< busy time of the busiest link */
    int64_t messages;    /**< of one rank, the mean */
} pod_coll_estimate;

/** Follow a schedule on cells that stand for all ranks that do the same at the same moment.
 *  @param like   [rank]: its cell, in [0, cells); the lowest rank of a cell is followed. NULL = every
 *                rank is its own
 *  @return POD_E_NOMEM; POD_E_INTERNAL when the schedule gets stuck */
pod_status pod_coll_estimate_folded(const pod_coll_request *request,
                                    const pod_coll_schedule *schedule, const int32_t *like,
                                    int32_t cells, pod_coll_estimate *estimate, pod_error *err);

/** Follow a schedule.
 *  @param symmetric  every rank does the same: follow rank 0 only
 *  @return POD_E_NOMEM; POD_E_INTERNAL when the schedule gets stuck */
pod_status pod_coll_estimate_get(const pod_coll_request *request, const pod_coll_schedule *schedule,
                                 bool symmetric, pod_coll_estimate *estimate, pod_error *err);

/** An estimate as a prediction: launch, busy time of the busiest link, and what is left: hops and
 *  waiting for them. */
void pod_coll_prediction_from(const pod_coll_request *request, const pod_coll_estimate *estimate,
                              pod_coll_prediction *prediction);

/** Build an algorithm's schedule and follow it. */
pod_status
pod_coll_predict_by_running(const pod_coll_request *request,
                            pod_status (*build)(const pod_coll_request *request,
                                                pod_coll_schedule **schedule, pod_error *err),
                            bool symmetric, pod_coll_prediction *prediction, pod_error *err);
