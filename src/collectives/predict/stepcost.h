/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/predict/stepcost.h  The cost of a schedule whose steps go in lockstep, by counting.
 *
 *  Model: step s of all channels and all ranks of all groups counts as one. The bytes of a routed message are
 *  spread over its paths as the router spreads them, and those on a slow link count slowness times.
 *
 *  In the form in which Swing and its relatives are usually given (De Sensi et al., NSDI 2024), T = sum over steps
 *  of (hops of the farthest message · hop latency + bytes on the busiest link / rate). Messages that meet on a
 *  link after different numbers of hops don't come at the same time, though, and cut through while others
 *  are still under way. So a step takes the longer of: the farthest message alone, hops and bytes; and the work of
 *  the busiest link, which begins at once, and one hop.
 *
 *  Time: one route per message, so messages · a fraction of a microsecond. Threads: none. */
#pragma once

#include "collectives/schedule/algorithm.h"

/** Sums over the steps of the usual form. */
typedef struct pod_coll_lockstep {
    int64_t hops;         /**< of the farthest message of each step */
    double busiest_bytes; /**< of the busiest link of each step */
    double time_ps;       /**< with messages that cut through, as above */
} pod_coll_lockstep;

/** @return POD_OK, POD_E_NOMEM, or what pod_router_new says of the slice */
pod_status pod_coll_count_lockstep(const pod_coll_request *request,
                                   const pod_coll_schedule *schedule, pod_coll_lockstep *sums,
                                   pod_error *err);

/** Launch, hops, and the rest of the time as "busiest link". Same errors. */
pod_status pod_coll_predict_steps(const pod_coll_request *request,
                                  const pod_coll_schedule *schedule,
                                  pod_coll_prediction *prediction, pod_error *err);

/** Make a prediction of three terms: launch, "hop latency" and "busiest link". */
void pod_coll_prediction_make(const pod_coll_request *request, pod_time_ps hops_ps,
                              pod_time_ps link_ps, pod_coll_prediction *prediction);
