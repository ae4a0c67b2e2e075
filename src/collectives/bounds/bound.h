/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/bounds/bound.h  What no algorithm can beat: physical lower bounds of a collective.
 *
 *  Model. n ranks a group, S bytes per chip, rate b one way, links counted at 1/slowness. The bound is the
 *  largest of four:
 *
 *   latency    hops of the farthest pair that must communicate, times the hop latency
 *   link       bytes that must enter or leave a chip over its live links; and bytes times the distance
 *              of the closest ranks, over all live links:
 *                 all-gather, reduce-scatter  max((S - own) / p, (n-1)·S / L) / b
 *                 all-reduce                  max(S / p, 2·(n-1)·S / L) / b     = S/b · max(1/p, (n-1)/E)
 *                 all-to-all                  max(S - own, (n-1)·own) / (p·b)
 *                 broadcast                   max(S / p, (n-1)·S / L) / b
 *                 permute                     S / (p·b)
 *              p = links of a chip, L = directed links = 2·E, E = cables, own = bytes of a rank's own block
 *   bisection  bytes that must cross a cut of one axis in two, over the links across it, one way
 *   hops       all-to-all and permute: bytes · distance summed over pairs, over all live links
 *
 *  Links that count. The groups of a request lie in *boxes* of adjacent chips: on an axis that a group
 *  spans, the smallest aligned block (or the whole axis) that holds it; on others one chip. Minimal
 *  routes never leave such a box, so only links with both ends in it count; several groups that
 *  share a box (strided ones) share its links. Two exceptions, where routes do leave the box and all
 *  live links count: boxes with dead links inside, and some boxes of twisted slices.
 *
 *  Groups over several slices have bounds of their own (hier_bound.c): a flight over DCN is `latency`, the
 *  cut between a slice and the others `bisection`.
 *
 *  Derivations and worked examples: docs/bounds.md.
 *
 *  Who owns what. All-gather, reduce-scatter and all-to-all depend on how an algorithm cuts the vector
 *  (its parts, schedule.h): pod_coll_bound_schedule uses the very blocks. Without a schedule, a
 *  vector in at most POD_BOUND_PARTS_MAX parts is assumed, which leaves own within that many
 *  elements of S/n: never above the bound of any such schedule.
 *
 *  Times are rounded down. Launch cost is not in them. Zero bytes, or nobody to send to: 0.
 *  Threads: read-only. */
#pragma once

#include "collectives/schedule/algorithm.h"
#include "ici/route.h"

enum { POD_BOUND_PARTS_MAX = 256 };

typedef enum pod_limit {
    POD_LIMIT_LATENCY,
    POD_LIMIT_LINK,
    POD_LIMIT_BISECTION,
    POD_LIMIT_HOPS
} pod_limit;

typedef struct pod_coll_bound {
    pod_time_ps time_ps; /**< the largest of the four */
    pod_limit limit;     /**< which it is; the first of equals */
    pod_time_ps latency_ps;
    pod_time_ps link_ps;
    pod_time_ps bisection_ps;
    pod_time_ps hops_ps;
} pod_coll_bound;

/** "latency", "link", "bisection", "hops", static. */
const char *pod_limit_name(pod_limit limit);

/** Bound for any algorithm. Not collective.
 *  @param router  of the request's slice
 *  @return POD_E_RANGE when a time exceeds int64 picoseconds, POD_E_NOMEM */
pod_status pod_coll_bound_get(const pod_coll_request *request, const pod_router *router,
                              pod_coll_bound *bound, pod_error *err);

/** What single chips of a collective can't be faster than. A bound of the whole collective says when its last chip
 *  ends; the others may end sooner, and begin with what comes next. With b(q) when chip q begins, a chip r ends no
 *  sooner than
 *
 *    first + in_ps[r], first + far_ps[r]   first = the least b(q) of its group
 *    b(r) + out_ps[r]
 *    b(q) + each_ps                        for every chip q of its group
 *
 *  Even groups: all chips are translations of each other (whole closed axes, in even strides, or
 *  axes of two; no faults). There an
 *  all-reduce of podsim gives each chip as much to send as any other, which out_ps counts; and chips that begin
 *  together end together, all of them after time_ps of the whole. */
typedef struct pod_coll_chip_bounds {
    bool even;
    int32_t period
        [POD_AXES]; /**< chips that are such a multiple apart on every axis have the same place in their
                                   groups; 1 = translations, or alone on that axis */
    int32_t nchips;
    pod_time_ps *in_ps;  /**< in_ps[chip of a slice]: bytes that must enter, over its links */
    pod_time_ps *out_ps; /**< bytes that must leave */
    /** what comes from afar: the hops from the farthest chip that it must hear of, and bytes
     * over a cut that has it on one side */
    pod_time_ps *far_ps;
    pod_time_ps each_ps; /**< what any chip must send for the others to end */
    /** all travel over all links that count: of collectives over the same groups, however they
     * overlap, it adds up */
    pod_time_ps links_ps;
} pod_coll_chip_bounds;

/** Bounds of the chips of a request, for pod_coll_chip_bounds_fini. Chips whose group doesn't take part have 0.
 *  Not collective. Same errors. */
pod_status pod_coll_bound_chips(const pod_coll_request *request, const pod_router *router,
                                pod_coll_bound *bound, pod_coll_chip_bounds *chips, pod_error *err);
void pod_coll_chip_bounds_fini(pod_coll_chip_bounds *chips);

/** Bound for one schedule of the request, from the blocks that its ranks own; at least the above.
 *  Not collective. Same errors. */
pod_status pod_coll_bound_schedule(const pod_coll_request *request, const pod_router *router,
                                   const pod_coll_schedule *schedule, pod_coll_bound *bound,
                                   pod_error *err);
