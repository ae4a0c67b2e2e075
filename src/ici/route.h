/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/route.h  Minimal routes between chips of one slice.
 *
 *  Model: a message between two chips goes over all its minimal displacement vectors (a distance of
 *  k/2 on a ring has two, a twisted slice may have more) and, for each vector, over the cyclic
 *  orders of the axes it moves along (x then y, y then z, …: their first and their last links
 *  differ). The paths share the bytes evenly. So a neighbour has one path, (0,0)→(3,3) of an open
 *  4x4 has two (scaling book, TPU chapter, question 5: two axes carry half each), and a tie at k/2
 *  goes both ways (COLLECTIVES.md section 7, point 2).
 *  Where dead links cut such a path, it is replaced by shortest paths over live links.
 *
 *  Memory: O(chips) on healthy slices. Threads: read-only after pod_router_new. */
#pragma once

#include "ici/slice.h"

enum { POD_PATH_SEGMENTS_MAX = 10, POD_ROUTE_PATHS_MAX = 32 };

/** Straight runs: `hops[i]` hops in `direction[i]`. */
typedef struct pod_path {
    int32_t nsegments;
    int32_t nhops;
    uint8_t direction[POD_PATH_SEGMENTS_MAX];
    uint16_t hops[POD_PATH_SEGMENTS_MAX];
} pod_path;

typedef struct pod_router pod_router;

/** @param slice  borrowed for the router's life.
 *  @return POD_E_INVALID if faults cut the slice in two (names the parts: a chip of each and their
 *          sizes), POD_E_NOMEM */
pod_status pod_router_new(const pod_slice *slice, pod_router **router, pod_error *err);
void pod_router_free(pod_router *router);

/** Paths of a message from `src` to `dst`, evenly loaded; 0 paths when src == dst.
 *  @param[out] paths  room for POD_ROUTE_PATHS_MAX
 *  @return their number */
int pod_router_paths(const pod_router *router, int32_t src, int32_t dst, pod_path *paths);

/** Hops of a minimal route (over live links). */
int32_t pod_router_hops(const pod_router *router, int32_t src, int32_t dst);

/** Figures of `podsim slice`. mean_hops counts all ordered pairs, self included. bisection_cables =
 *  fewest live cables cut by halving the slice across one axis. */
typedef struct pod_slice_figures {
    int64_t cables;
    int32_t diameter_hops;
    double mean_hops;
    int64_t bisection_cables;
} pod_slice_figures;
void pod_router_figures(const pod_router *router, pod_slice_figures *figures);
