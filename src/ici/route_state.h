/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/route_state.h  What the files of the router share; private to ici/.
 *
 *  route.c makes routers and paths, lattice.c the minimal vectors of twisted slices, search.c
 *  breadth-first searches over live links, figures.c the figures of `podsim slice`. */
#pragma once

#include <stdatomic.h>

#include "ici/route.h"

enum { POD_VECTORS_MAX = 8 };

/** The minimal vectors of one displacement. */
typedef struct pod_minimal {
    int32_t hops;
    int32_t nvectors;
    int32_t vector[POD_VECTORS_MAX][POD_AXES];
} pod_minimal;

typedef enum pod_route_kind { POD_ROUTE_GRID, POD_ROUTE_LATTICE, POD_ROUTE_SEARCH } pod_route_kind;

struct pod_router {
    const pod_slice *slice;
    pod_route_kind kind;
    bool has_dead_links;
    int axis_order[POD_AXES];            /**< in which paths take turns; plain slices: by length */
    int32_t (*coords)[POD_AXES];         /**< coords[chip] */
    int32_t (*neighbor)[POD_DIRECTIONS]; /**< neighbor[chip][direction], -1 if dead or absent */
    pod_minimal *minimal;                /**< lattice: minimal[displacement as a chip number] */
    _Atomic(uint8_t *) *ways;            /**< ways[destination]: NULL until asked for */
};

/** Bring a displacement of a twisted slice into [0, dims): the chip number of dst - src. */
int32_t pod_lattice_displacement(const pod_slice *slice, const int32_t vector[POD_AXES]);
/** Minimal vectors of every displacement. @return NULL without memory */
pod_minimal *pod_lattice_new(const pod_slice *slice);

/** Hops from `chip` to every chip over live links. @param[out] hops  `nchips`, -1 unreached
 *  @param queue  scratch of `nchips`. @return chips reached, itself included */
int32_t pod_search_hops(const pod_router *router, int32_t chip, int32_t *hops, int32_t *queue);
/** One byte a chip: bit d set if direction d is on a shortest path to `dst`. NULL without memory */
uint8_t *pod_search_ways(const pod_router *router, int32_t dst);
/** Paths along ways[]. @return their number; 0 if all have too many segments (or src == dst) */
int pod_search_paths(const pod_router *router, const uint8_t *ways, int32_t src, int32_t dst,
                     pod_path *paths);
/** POD_E_INVALID if dead links cut the slice. */
pod_status pod_search_check_whole(const pod_router *router, pod_error *err);
