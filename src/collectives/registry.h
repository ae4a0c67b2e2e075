/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/registry.h  The table of algorithms, and the choice among them.
 *
 *  Model: `auto` is the cheapest prediction over all rows that apply; ties go to the earlier row
 *  (schedule/algorithm_list.h has their order). Threads: read-only. */
#pragma once

#include "collectives/schedule/algorithm.h"

int pod_coll_algorithm_count(void);
const pod_coll_algorithm *pod_coll_algorithm_at(int index);
/** POD_E_USAGE with the nearest name. */
pod_status pod_coll_algorithm_find(const char *name, const pod_coll_algorithm **algorithm,
                                   pod_error *err);
/** POD_OK if the algorithm does this op on this request: POD_E_USAGE for the op, POD_E_INVALID for a
 *  group over several slices that it can't serve (or one slice, if it serves only several), and
 *  what its own `applies` says. */
pod_status pod_coll_algorithm_applies(const pod_coll_algorithm *algorithm,
                                      const pod_coll_request *request, pod_error *err);
/** True when it does. */
bool pod_coll_algorithm_fits(const pod_coll_algorithm *algorithm, const pod_coll_request *request);

/** The cheapest predicted. Groups of one rank and zero bytes get an empty schedule ("none"). */
pod_status pod_coll_choose(const pod_coll_request *request, const pod_coll_algorithm **algorithm,
                           pod_coll_prediction *prediction, pod_error *err);

/** The one candidate of `auto` for a request, which needs no prediction to be chosen.
 *  @param[out] only  NULL: there is none, there are several, or building wants a prediction
 *  @return POD_E_NOMEM */
pod_status pod_coll_only_candidate(const pod_coll_request *request, const pod_coll_algorithm **only,
                                   pod_error *err);
