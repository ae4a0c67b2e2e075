/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/route.h  Minimal routes between chips of one slice.
 *
 *  Model: a message between two chips goes over all its minimal displacement vectors (a distance of
 *  k/2 on a ring of k has two, a twisted slice up to six) and, for each vector, over the cyclic
 *  orders of the axes it moves along (xy and yx; xyz, yzx and zxy): their first and their last
 *  links differ. The paths share the bytes evenly. So a neighbour has one path, (0,0)→(3,3) of an
 *  open 4x4 has two (scaling book, TPU chapter, question 5: two axes carry half each), and a tie at
 *  k/2 goes both ways (COLLECTIVES.md section 7, point 2).
 *
 *  With even shares an all-to-all loads the axes of a twisted slice equally, links both ways equally:
 *  its busiest link carries mean hops / 6 of what a chip sends (5.73 tenths on 4x4x8).
 *
 *      plain slice     displacement per axis, the shorter way round; closed form
 *      twisted slice   Z^3 over a lattice: minimal vectors of all displacements, found once in
 *                      shells of growing length, one list per displacement
 *      twisted slice with an axis opened by --wrap: not the same from every chip; routes as below
 *
 *  Dead links: paths that cross one are dropped, the others share the bytes. If none is left, the
 *  message takes shortest paths over live links, one for each link that such a path can leave by,
 *  straight on wherever that is shortest. They come from a breadth-first search of the
 *  destination, done when first asked for and kept (one byte a chip).
 *
 *  Limits: a path has at most POD_PATH_SEGMENTS_MAX runs of at most POD_PATH_RUN_MAX hops, as a message carries it
 *  (net/path.h). Only axes of thousands of chips, or a maze of more than three dead cables, can need more:
 *  pod_router_new refuses both. Of slices over 1,024 chips it looks at the routes to chips beside dead cables.
 *
 *  Memory: O(chips) on healthy slices. Threads: a router may be shared; the searches are kept with
 *  one atomic exchange each, and what is kept does not depend on who came first. */
#pragma once

#include "ici/slice.h"

enum {
    POD_PATH_SEGMENTS_MAX = 10,
    POD_PATH_RUN_MAX = 255,
    POD_ROUTE_PATHS_MAX = 32,
    POD_ROUTER_CHIPS_MAX = 1 << 24
};

/** Straight runs: `hops[i]` >= 1 hops in `direction[i]`. Only the first nsegments are set. Without dead links a run is
 *  a whole axis, however long. */
typedef struct pod_path {
    int32_t nsegments;
    int32_t nhops;
    uint8_t direction[POD_PATH_SEGMENTS_MAX];
    int32_t hops[POD_PATH_SEGMENTS_MAX];
} pod_path;

typedef struct pod_router pod_router;

/** Not collective.
 *  @param slice  borrowed for the router's life; its faults must not change
 *  @return POD_E_INVALID if dead links cut the slice into parts (names a chip and the size of two)
 *          or leave only a maze, POD_E_RANGE above POD_ROUTER_CHIPS_MAX chips or where the farthest chips are too
 *          many hops apart, POD_E_NOMEM */
pod_status pod_router_new(const pod_slice *slice, pod_router **router, pod_error *err);
void pod_router_free(pod_router *router);

/** Paths of a message from `src` to `dst`, evenly loaded; 0 paths when src == dst. The order of the
 *  paths is fixed. Not collective.
 *  @param[out] paths  room for POD_ROUTE_PATHS_MAX
 *  @return their number; all have the same nhops */
int pod_router_paths(const pod_router *router, int32_t src, int32_t dst, pod_path *paths);

/** Keep the paths that go in + directions only, in their order; all, where there are none.
 *  @return their number */
static inline int pod_paths_keep_plus(pod_path *paths, int count)
{
    int kept = 0;
    for (int i = 0; i < count; ++i) {
        bool plus = true;
        for (int32_t s = 0; s < paths[i].nsegments; ++s) {
            plus = plus && paths[i].direction[s] % 2 == 0;
        }
        if (plus) {
            paths[kept++] = paths[i];
        }
    }
    return kept > 0 ? kept : count;
}

/** Hops of a minimal route (over live links). */
int32_t pod_router_hops(const pod_router *router, int32_t src, int32_t dst);

/** The chip one hop away over a live link, or -1: pod_slice_neighbor from a table. */
int32_t pod_router_neighbor(const pod_router *router, int32_t chip, int direction);

/** Figures of `podsim slice`. */
typedef struct pod_slice_figures {
    int64_t cables;           /**< live */
    int32_t diameter_hops;    /**< of the farthest pair, over live links */
    double mean_hops;         /**< over all ordered pairs, a chip with itself included */
    int64_t bisection_cables; /**< fewest live cables cut by halving the slice across one axis: two
                                   blocks of adjacent positions, n/2 rounded down and up; 0 for one
                                   chip */
    double bisection_links; /**< least that the live cables of such a cut carry one way, in links of
                                   full rate: a cable that is f times slower counts 1/f */
} pod_slice_figures;

/** Not collective. Slices with dead links, and twisted ones with an open axis, take a search from
 *  every chip: chips squared in time. */
void pod_router_figures(const pod_router *router, pod_slice_figures *figures);

/** Same without a router of the caller's; a plain healthy slice of any size takes no memory.
 *  @return as pod_router_new; *figures untouched on error */
pod_status pod_slice_figures_find(const pod_slice *slice, pod_slice_figures *figures,
                                  pod_error *err);
