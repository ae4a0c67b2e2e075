/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/axes.h  A group seen as rings and lines: who is next along each axis.
 *
 *  Model: the dims of a group with more than one position become *axes*; dims that split one physical
 *  axis and fit together ({x, 4, 1} and {x, 2, 4} of an axis of 8) become one axis again. Along each
 *  axis every rank has a neighbour in + and in - direction (rank -1 at the ends of an open axis), and the
 *  link that leads there: a direction of the chip, or -1 when the message must be routed (positions more than
 *  a hop apart, or a dead link).
 *
 *  Axes are in the order of their lengths, closed ones before open ones, then by stride: how the chip calls them
 *  makes no difference, so that 2x3x4 and 3x4x2 do the same.
 *
 *  On a twisted slice (where they keep the chip's order) the rings of single axes don't close after dims[axis] hops,
 *  but the slice is the Cayley graph of an abelian group with one generator per axis: the cosets of the axes already
 *  walked form a ring along the next one (rings over quotients). `quotient` says so, and lengths then depend on
 *  the order of the axes (rings.h).
 *
 *  A Hamiltonian cycle is one axis of length n that passes through all ranks; several of them are
 *  alternatives, each of which suffices.
 *
 *  Ownership: init allocates, fini frees. Threads: read-only after init. */
#pragma once

#include "collectives/schedule/algorithm.h"

typedef struct pod_coll_hop {
    int32_t rank;     /**< -1 = no neighbour */
    int8_t direction; /**< of the sender's chip; -1 = routed */
} pod_coll_hop;

typedef struct pod_coll_axis {
    int32_t length;
    bool closed;
    int32_t stride; /**< physical hops between neighbours */
    int physical;   /**< axis of the slice along which they lie, -1 = several */
} pod_coll_axis;

typedef struct pod_coll_axes {
    int32_t nranks;
    int naxes;
    bool quotient;
    pod_coll_axis axis[POD_GROUP_DIMS_MAX];
    int32_t *position; /**< [rank][axis] */
    pod_coll_hop *hop; /**< [rank][axis][+, -] */
} pod_coll_axes;

static inline const pod_coll_hop *pod_coll_axes_hop(const pod_coll_axes *axes, int32_t rank,
                                                    int axis, int minus)
{
    return &axes->hop[((int64_t)rank * axes->naxes + axis) * 2 + minus];
}

/** The axes of the request's group. A group of one rank has none.
 *  @return POD_E_INVALID for a group without grid structure, POD_E_NOMEM */
pod_status pod_coll_axes_init(pod_coll_axes *axes, const pod_coll_request *request, pod_error *err);

/** One closed axis of length n along each of some cycles through all ranks.
 *  @param cycle  ncycles · n: cycle[c · n + i] = rank at position i of cycle c; borrowed for the call */
pod_status pod_coll_axes_init_cycles(pod_coll_axes *axes, const pod_coll_request *request,
                                     const int32_t *cycle, int ncycles, pod_error *err);
void pod_coll_axes_fini(pod_coll_axes *axes);

/** Number of a rank by its positions, the first axis fastest: the same for permuted axes. */
int32_t pod_coll_axes_number(const pod_coll_axes *axes, int32_t rank);

/** True when every rank sees the same graph: all axes closed (or quotients), and no link routed
 *  because it is dead. Then one rank's times are every rank's. */
bool pod_coll_axes_symmetric(const pod_coll_axes *axes);

/** True when a link leads to every neighbour: none is routed. */
bool pod_coll_axes_linked(const pod_coll_axes *axes);

/** How many times slower than a healthy one the link of every hop is, in the group where it is slowest; 1 where a hop
 *  is routed.
 *  @param[out] slowness  slowness[hop], for free; NULL where none is slower
 *  @return POD_E_NOMEM */
pod_status pod_coll_axes_slowness(const pod_coll_axes *axes, const pod_coll_request *request,
                                  double **slowness, pod_error *err);

/** Say how far apart chips do the same (schedule.h, repeat): the algorithm works on these axes, and what a rank does
 *  depends on the graph that it sees and on its positions only as follows.
 *  @param every     every[axis]: along a closed axis, on the position modulo this, which divides the length; NULL =
 *                   not at all; along open axes it may always depend on the position
 *  @param schedule  its parts are final: where blocks differ in size, positions count */
void pod_coll_axes_repeat(const pod_coll_axes *axes, const pod_coll_request *request,
                          const int32_t *every, pod_coll_schedule *schedule);

/** Refuse a group with an open axis. @param name, instead  of algorithms, for the message
 *  @return POD_E_INVALID, POD_E_NOMEM */
pod_status pod_coll_wants_closed(const pod_coll_request *request, const char *name,
                                 const char *instead, pod_error *err);
