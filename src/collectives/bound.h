/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/bound.h  What no algorithm can beat: physical lower bounds of a collective.
 *
 *  Model (COLLECTIVES section of docs/collectives.md): the largest of
 *   - latency: hops of the farthest pair that must communicate, times the hop latency;
 *   - link: bytes that must enter or leave any chip over its live links on the group's axes; for
 *     all-reduce S/b · max((n-1)/E, 1/p), E live cables of the group, p the smallest degree;
 *   - bisection: bytes that must cross the worst halving of the group across one axis;
 *   - hops (all-to-all, permute): sum over pairs of bytes · distance over all live links.
 *  All groups of a request have the same bound unless faults tell them apart; the largest counts.
 *  Launch cost is not in it. Threads: read-only. */
#pragma once

#include "collectives/algorithm.h"
#include "ici/route.h"

typedef enum pod_limit { POD_LIMIT_LATENCY, POD_LIMIT_LINK, POD_LIMIT_BISECTION, POD_LIMIT_HOPS } pod_limit;

typedef struct pod_coll_bound {
    pod_time_ps time_ps;       /**< the largest of the four */
    pod_limit limit;
    pod_time_ps latency_ps;
    pod_time_ps link_ps;
    pod_time_ps bisection_ps;
    pod_time_ps hops_ps;
} pod_coll_bound;

/** "latency", "link", "bisection", "hops", static. */
const char *pod_limit_name(pod_limit limit);

pod_status pod_coll_bound_get(const pod_coll_request *request, const pod_router *router,
                              pod_coll_bound *bound, pod_error *err);
