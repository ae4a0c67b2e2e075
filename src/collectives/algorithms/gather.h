/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/algorithms/gather.h  One diameter for small vectors: relays along axes, and floods.
 *
 *  Both forms below take hops equal to the diameter for all-gather, reduce-scatter and also for all-reduce,
 *  where a reduce-scatter followed by an all-gather takes twice that. The price is bytes.
 *
 *  Relay (gather.c): grids, axis after axis, both directions at once; D parts, each starting along another
 *  axis. All-reduce passes whole vectors on and every chip adds what passes. T = sum over axes of
 *  floor(k/2) · (hop + S/(D·b)) on rings and (k - 1) · (hop + S/(D·b)) on lines.
 *
 *  Flood (flood.c): any connected group up to POD_FLOOD_RANKS_MAX; the vector (or block) of every rank
 *  goes down a shortest-path tree of its own, over links that are not much slower. For twisted slices, where
 *  relays along axes need more hops than the diameter (4x4x8: 8 instead of 6), for dead links and for
 *  groups that are no grids. */
#pragma once

#include "collectives/schedule/algorithm.h"

enum { POD_FLOOD_RANKS_MAX = 512, POD_FLOOD_SLOW_MAX = 2 };

/** POD_E_INVALID when the group is too large or, seen alone, not connected by links that all groups have. */
pod_status pod_flood_applies(const pod_coll_request *request, pod_error *err);

/** How a flood is planned: what takes time to find. */
typedef struct pod_flood_plan {
    int32_t order; /**< of the axes */
    int32_t
        without; /**< rank * POD_DIRECTIONS + direction of a link whose cable is left out; -1 = none is */
} pod_flood_plan;

/** @param known  of a flood of the same request, NULL = the one that is done first is found
 *  @return POD_E_NOMEM */
pod_status pod_flood_build(const pod_coll_request *request, const pod_flood_plan *known,
                           pod_coll_schedule **schedule, pod_error *err);
/** @param schedule  of pod_flood_build */
pod_flood_plan pod_flood_plan_of(const pod_coll_schedule *schedule);
/** By message after message, where they are too many to be followed. @return POD_E_NOMEM */
pod_status pod_flood_predict(const pod_coll_request *request, const pod_coll_schedule *schedule,
                             pod_coll_prediction *prediction, pod_error *err);

typedef struct pod_relay_plan {
    const char *algorithm; /**< static */
    int turns; /**< parts, each of which begins with another of the shortest axes; 0 = all axes, in order */
    int halved; /**< all-reduce: axes at the head of a part, scattered and gathered instead of relayed */
} pod_relay_plan;

/** Relays along the axes of a grid. @return POD_E_NOMEM; POD_E_INVALID for groups that are no grid */
pod_status pod_relay_build(const pod_coll_request *request, const pod_relay_plan *plan,
                           pod_coll_schedule **schedule, pod_error *err);
/** The formula for `gather`, where messages are too many to be followed. Same errors. */
pod_status pod_relay_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                             pod_error *err);
