/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/packing.h  Many spanning trees that load the links of a group evenly.
 *
 *  Model: vertices are the ranks, links the live hops along the group's axes. A tree that reduces to
 *  its root and broadcasts back loads each of its cables both ways; a tree that only broadcasts loads
 *  each of its links away from the root. With K trees of 1/K of the vector each, the busiest link
 *  carries busiest/K of the vector, and that cannot be less than max((n-1)/E, 1/p) (bound.h).
 *
 *  Trees are grown from the root like Prim's: the next rank is the one whose link has the least
 *  4 · load + depth, so that trees avoid busy links and stay shallow. A tree over a slow link loads it as many
 *  times as it is slower. Then every tree in turn is taken out and grown again against the load of the others, for
 *  some rounds, more for few trees; the best round counts. Small groups start several times, unless a round is as
 *  good as links and distances allow. Ties are broken by numbers drawn from a fixed seed. On an open 8x8: 0.95 of what
 *  the cut allows, depth 10.
 *
 *  Disjoint trees for a broadcast on closed axes: 2·D of them, of which no two share a link, one for each axis
 *  and way. The tree of a, +, goes + along a, then from there + along the next axis, and so on round the axes;
 *  ranks that have no distance along a come last, over the wrap of a. At each rank every tree comes in along another
 *  axis: that of an axis without distance along it, that of another axis along the one before it that has
 *  distance. Depth up to 1 + Σ (length - 1).
 *
 *      closed 3x3, depth of (x, y) in the trees of x, + and y, +, and the axis along which they come in:
 *                 x = 0    1    2           x = 0    1    2
 *          y = 0   root   1 x  2 x           root   4 y  5 y
 *          y = 1    4 x   2 y  3 y            1 y   2 x  3 x
 *          y = 2    5 x   3 y  4 y            2 y   3 x  4 x
 *
 *  Ownership: init allocates, fini frees. What remembers copies. Threads: none. */
#pragma once

#include "collectives/embedding/axes.h"

typedef struct pod_coll_packing {
    int32_t nranks;
    int ntrees;
    int32_t *parent; /**< [tree][rank], -1 at the root */
    int8_t *up;      /**< [tree][rank]: direction of the link to the parent, -1 = routed */
    int8_t *down;    /**< [tree][rank]: direction of the parent's link to the rank */
    int32_t *order;  /**< [tree][i]: ranks, parents before children */
    int32_t busiest; /**< trees over the busiest link */
    int32_t depth;   /**< of the deepest tree */
} pod_coll_packing;

/** Trees that were grown before: they depend on sizes only by which of a few rounds is the best. */
typedef struct pod_coll_packings pod_coll_packings;
/** POD_E_NOMEM. */
pod_status pod_coll_packings_new(pod_coll_packings **known, pod_error *err);
void pod_coll_packings_free(pod_coll_packings *known);

typedef struct pod_coll_packing_args {
    pod_coll_packings *known; /**< NULL: remembers nothing */
    int ntrees;
    bool both_ways; /**< trees load cables both ways */
    bool once;      /**< grown from one start, also in small groups */
    int32_t root;   /**< of all trees; -1 = a rank in the middle */
    /** slowness[link]: how many times slower than others, link as in pod_coll_axes.hop; NULL = none is slow. */
    const double *slowness;
    /** trees more over the busiest link that a hop less of depth is worth; 0 = only where the
     * load is the same */
    double hop_load;
} pod_coll_packing_args;

/** @return POD_E_INVALID when dead links leave no spanning tree; POD_E_NOMEM */
pod_status pod_coll_packing_init(pod_coll_packing *packing, const pod_coll_axes *axes,
                                 const pod_coll_packing_args *args, pod_error *err);

/** True when all axes are closed, not twisted, and a link leads to every neighbour. */
bool pod_coll_packing_disjoint_fits(const pod_coll_axes *axes);

/** The disjoint trees from a root; they must fit. @return POD_E_NOMEM */
pod_status pod_coll_packing_disjoint(pod_coll_packing *packing, const pod_coll_axes *axes,
                                     int32_t root, pod_error *err);
void pod_coll_packing_fini(pod_coll_packing *packing);
