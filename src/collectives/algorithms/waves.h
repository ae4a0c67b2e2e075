/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/algorithms/waves.h  All-gather and reduce-scatter that stream through one long axis.
 *
 *  Model: on a torus with one very long axis z, an order that gathers z first keeps the other two idle until
 *  z's farthest block has made its ⌊n/2⌋ hops: 122 us of 2 ms on 4x4x244. So z is cut into *segments*,
 *  and the blocks of a segment go on into the other axes, as a *wave*, as soon as the chip has that segment: its own
 *  first, then those next to it. Only orders with z first (in waves) or last (z carries the bulk
 *  while the waves are on the
 *  others) are used. A reduce-scatter is the time reversal: waves of the farthest segment first, and z
 *  passes on a digit when its wave has been reduced.
 *
 *  Blocks are numbered so that every run is one run of slots: segment, then the axis gathered last, then the
 *  other one, then the position within the segment:
 *
 *      slot(z, a, b) = start(g) · la · lb + (z - start(g)) + len(g) · (a + la · b),   g the segment of z
 *
 *  Example, all-gather on a ring of 4 in two segments, chip 0 (+ and - as in rings.h):
 *      z channels       step 0: block 0 both ways     step 1: block 1 on in - direction
 *      wave 0 (0, 1)    starts when block 1 is here (1 receive of the - channel)
 *      wave 1 (2, 3)    starts when 3 (1 receive of the + channel) and 2 (2 of the - channel) are here
 *
 *  Service: z's own messages first, then the short phases, waves in their order, the bulk of z last.
 *  Ownership and threads as in rings.h. */
#pragma once

#include "collectives/embedding/shares.h"

enum { POD_WAVES_SEGMENTS_MAX = 32 };

typedef struct pod_waves_plan {
    const char *algorithm; /**< static */
    int long_axis;
    int segments;                  /**< at most half the axis and POD_WAVES_SEGMENTS_MAX */
    int cuts;                      /**< streams that each share is cut into */
    const pod_coll_shares *shares; /**< of orders with the long axis first or last */
} pod_waves_plan;

/** True for an all-gather or reduce-scatter over three closed axes of neighbours, not twisted. */
bool pod_waves_fit(const pod_coll_axes *axes, pod_coll_op op);

/** @param axes  taken over: freed with the schedule, or here on error
 *  @return POD_E_NOMEM */
pod_status pod_waves_build(const pod_coll_request *request, pod_coll_axes *axes,
                           const pod_waves_plan *plan, pod_coll_schedule **schedule,
                           pod_error *err);
