/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/stepcost.h  The cost of a schedule whose steps go in lockstep, by counting.
 *
 *  Model: T = launch + sum over steps of (hops of the farthest message · hop latency + bytes on the
 *  busiest link / rate). Step s of all channels and all ranks of all groups counts as one; the bytes of a
 *  routed message are spread over its paths as the router spreads them, and those on a slow
 *  link count slowness times. This is the form in which Swing and its relatives are usually given
 *  (De Sensi et al., NSDI 2024), and exact when no link works ahead of the others.
 *
 *  Time: one route per message, so messages · a fraction of a microsecond. Threads: none. */
#pragma once

#include "collectives/algorithm.h"

/** @return POD_OK, POD_E_NOMEM, or what pod_router_new says of the slice */
pod_status pod_coll_predict_steps(const pod_coll_request *request,
                                  const pod_coll_schedule *schedule,
                                  pod_coll_prediction *prediction, pod_error *err);

/** Make a prediction of three terms: launch, "hop latency" and "busiest link". */
void pod_coll_prediction_make(const pod_coll_request *request, pod_time_ps hops_ps,
                              pod_time_ps link_ps, pod_coll_prediction *prediction);
