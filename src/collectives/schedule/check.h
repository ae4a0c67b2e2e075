/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/check.h  Proof on paper that a schedule is right, without running the engine.
 *
 *  Model: executes a schedule symbolically by the semantics of schedule.h. Each slot of each rank
 *  holds (block, set of contributing ranks). Checked: every message sent is received by a step that
 *  names its sender and has room for it; nothing is sent that is not owned; no contribution is
 *  reduced twice; no step waits for ever; at the end every slot that the operation names holds
 *  what it must. Runs in O(ranks² · blocks / 64 · steps) time: meant for groups up to a few hundred. */
#pragma once

#include "collectives/schedule/schedule.h"

/** @return POD_OK; POD_E_CHECK with channel, step and rank of the first fault; POD_E_NOMEM. */
pod_status pod_coll_check(const pod_coll_schedule *schedule, pod_error *err);

/** Where a schedule is wrong, for callers that can say it in the words of a file. */
typedef struct pod_coll_fault {
    int32_t channel; /**< -1: no step is to blame, the rank ends without its result */
    int32_t step;
    int32_t rank;
    const char *what; /**< static, "it …"; NULL when there is no fault */
} pod_coll_fault;
/** The same with the place, and also with messages held back and let in one at a time, in `orders` random
 *  orders: for schedules of which it isn't known that they wait for all that they need.
 *  @param[out] fault  set when POD_E_CHECK is returned */
pod_status pod_coll_check_orders(const pod_coll_schedule *schedule, int orders,
                                 pod_coll_fault *fault, pod_error *err);

/** What a schedule moves, counted without running it. */
typedef struct pod_coll_counts {
    int64_t messages;          /**< of one group */
    int64_t elements;          /**< sum over messages */
    int64_t max_link_elements; /**< busiest directed link of single-hop messages */
    int32_t max_steps;         /**< longest channel */
} pod_coll_counts;
pod_status pod_coll_count(const pod_coll_schedule *schedule, pod_coll_counts *counts,
                          pod_error *err);
