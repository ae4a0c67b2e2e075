/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/hamilton.h  A cycle through all ranks of a group, neighbour to neighbour.
 *
 *  Model: take one axis e of length n and a path through all positions of the other axes (a snake:
 *  reflected mixed-radix counting, R positions). Keep position 0 of e as the way back:
 *
 *      r = 0:  e = 1 → n-1     r = 1:  e = n-1 → 1     …     then e = 0 from r = R-1 down to 0
 *
 *      2 x 4 (e down, R = 4 across):  e=0:  0 ← 7 ← 6 ← 5       order of visit
 *                                     e=1:  1 → 2 → 3 → 4
 *
 *  The last r ends beside position 0 when R is even, when n is 2, or, over the wrap, when e is
 *  closed. A mesh whose axes are all odd and open has no such cycle (an odd bipartite graph).
 *  Groups without grid structure go round in rank order, over routes.
 *
 *  Two edge-disjoint cycles of a closed k x k torus, k >= 3 (Bae & Bose, edge disjoint Hamiltonian cycles in
 *  k-ary n-cubes): position a·k + b of the first is (a, b - a), of the second (b - a, a), mod k. */
#pragma once

#include "collectives/axes.h"

/** The axes of one cycle.
 *  @return POD_E_INVALID where no cycle exists (names the algorithm that works), POD_E_NOMEM */
pod_status pod_coll_hamilton_axes(pod_coll_axes *axes, const pod_coll_request *request,
                                  pod_error *err);

/** The axes of two disjoint cycles.
 *  @return POD_E_INVALID unless the group is a closed square of at least 3x3; POD_E_NOMEM */
pod_status pod_coll_hamilton_disjoint_axes(pod_coll_axes *axes, const pod_coll_request *request,
                                           pod_error *err);
