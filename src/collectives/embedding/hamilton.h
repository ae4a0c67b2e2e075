/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/hamilton.h  A cycle through all ranks of a group, neighbour to neighbour.
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
 *  Disjoint cycles: a closed grid of D axes has D cycles through all ranks of which no two share an edge
 *  (Foregger 1978 for three axes, Kotzig for two). They are found by swaps (hamilton_disjoint.c). Give every axis a
 *  colour: its rings pass through all ranks. A square with two opposite edges of one colour and two of another
 *  may swap them: every rank keeps two edges of each. Where the edges of a colour were on two rings, these join.
 *
 *      ring  o==o      o  o      Swap what leaves fewer rings, square by square; where that ends too early, now and
 *                  ->  |  |      then what leaves as many or more. 8x8x8 takes 114 swaps.
 *      ring  o==o      o  o */
#pragma once

#include "collectives/embedding/axes.h"

/** The axes of one cycle.
 *  @return POD_E_INVALID where no cycle exists (names the algorithm that works), POD_E_NOMEM */
pod_status pod_coll_hamilton_axes(pod_coll_axes *axes, const pod_coll_request *request,
                                  pod_error *err);

/** The axes of as many disjoint cycles as the group has axes.
 *  @return POD_E_INVALID unless the group has two or more closed axes of at least 3; POD_E_NOMEM */
pod_status pod_coll_hamilton_disjoint_axes(pod_coll_axes *axes, const pod_coll_request *request,
                                           pod_error *err);
