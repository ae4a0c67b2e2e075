/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/predict/predict_rings.h  How long rings through all ranks of a group take.
 *
 *  Threads: none; no state between calls. */
#pragma once

#include "collectives/predict/predict.h"

/** Predict a schedule of rings. One rank stands for all where their hops are links; where some are several hops,
 *  in groups with a stride, all ranks are followed, or, when these are many, the longest hop counts for all.
 *  @return as pod_coll_predict_by_running */
pod_status pod_coll_predict_rings(const pod_coll_request *request,
                                  pod_status (*build)(const pod_coll_request *request,
                                                      pod_coll_schedule **schedule, pod_error *err),
                                  pod_coll_prediction *prediction, pod_error *err);
