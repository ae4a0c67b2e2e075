/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/algorithms/tree_schedule.h  Packed trees as a schedule: up to their roots, down from them, chunk
 *  after chunk (tree.c chooses trees and chunks).
 *
 *  Ownership: the schedule owns the packing that it is built of. Threads: none. */
#pragma once

#include "collectives/embedding/packing.h"

/** The schedule of a packing, which becomes its own.
 *  @return POD_E_NOMEM */
pod_status pod_tree_schedule_build(const pod_coll_request *request, pod_coll_packing *packing,
                                   int32_t chunks, pod_coll_schedule **schedule, pod_error *err);
/** Take the packing out of a schedule, which can only be freed afterwards. */
void pod_tree_schedule_give_back(pod_coll_schedule *schedule, pod_coll_packing *packing);
/** Every edge of the trees is one link. */
bool pod_tree_is_linked(const pod_coll_packing *packing);
/** What the busiest link carries, in times of one tree: routed messages load all links of their ways, and chips of
 *  other groups on these, which send as much themselves, count as those of the first group (predict/predict.h).
 *  @return POD_E_NOMEM */
pod_status pod_tree_busiest(const pod_coll_request *request, const pod_coll_packing *packing,
                            double *busiest, pod_error *err);
