/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/algorithms/rings.h  Schedules that walk rings and lines, one axis after the other.
 *
 *  Model. An *order* of the axes numbers the blocks of a part: slot = Σ digit[level] · span[level], level 0
 *  is the axis that an all-gather walks first and its digit counts fastest. So what a chip has gathered after the first
 *  levels is one run of slots, and so is what it passes on at the next level.
 *
 *  A *stream* takes one part of the vector through an order: all-gather level 0, 1, …; reduce-scatter
 *  the levels backwards; all-reduce first the one, then the other. It goes one way round each
 *  ring (length - 1 steps, one channel), or both ways at once (two channels: + and -). Both ways round a
 *  ring of L: each direction makes ⌊L/2⌋ steps; when L is even the farthest position gets one half of
 *  the run from each side (`bias` says which side takes the odd slot). On an open axis both directions relay
 *  from end to end.
 *
 *  All-gather both ways round a closed ring of 4, blocks a b c d of ranks 0 1 2 3, run of 2 slots a = (a0, a1):
 *      step   + channel of rank 0 sends  gets     - channel sends  gets
 *        0        a                      d           a             b
 *        1        d0                     c0          b1            c1
 *
 *  Reduce-scatter round the same ring is its time reversal, sums in place of copies:
 *        0        c0                     b0          c1            d1
 *        1        b (with b0 of rank 3)  a           d             a
 *
 *  All-gather both ways on a line of 4 (+ channel; the - channel is its mirror image):
 *      step   rank 0    rank 1    rank 2    rank 3
 *        0    send a    send b    send c    -
 *        1    -         send a    send b    -
 *        2    -         -         send a    -
 *
 *  Channels of several streams run at once. Served one at a time, those in the earliest phase first, the
 *  messages of later streams fill what earlier ones leave idle while theirs fly, and every stream
 *  soon has work for its later axes. That is what makes cutting a vector into streams pay. Gathering, a stream gets
 *  its next run only when it has come; scattering, it has all runs from the start, and the first stream would send
 *  its nearest ones before the farthest of the others, which have the longest way (POD_RING_FARTHEST).
 *
 *  Ownership: the schedule owns all it needs but the request's group. Threads: read-only. */
#pragma once

#include "collectives/embedding/axes.h"

typedef enum pod_ring_way { POD_RING_PLUS, POD_RING_MINUS, POD_RING_BOTH } pod_ring_way;

/** Which message goes first when several want one link. */
typedef enum pod_ring_rule {
    POD_RING_FAIR,     /**< all at once, sharing the link */
    POD_RING_EARLIEST, /**< one at a time: the one in the earliest phase, then the lower stream */
    POD_RING_FARTHEST  /**< the same, but while scattering the farthest target of all streams goes
                            before the lower stream */
} pod_ring_rule;

typedef struct pod_ring_stream {
    int naxes;                    /**< that it walks; together they reach every rank */
    int axis[POD_GROUP_DIMS_MAX]; /**< their order, first to be gathered first */
    pod_ring_way way;             /**< one way needs closed axes */
    int bias;                     /**< 0 or 1 */
    double share;                 /**< of the elements; the shares of all streams add up to 1 */
} pod_ring_stream;

typedef struct pod_rings_plan {
    const char *algorithm; /**< static */
    pod_ring_rule rule;
    int32_t unit; /**< parts of a multiple of the ranks are multiples of unit · ranks; 0 = 1 */
    int nstreams;
    const pod_ring_stream *stream; /**< borrowed for the call */
} pod_rings_plan;

/** Build the schedule of an all-gather, reduce-scatter or all-reduce.
 *  @param axes  taken over: freed with the schedule, or here on error
 *  @return POD_E_NOMEM */
pod_status pod_rings_build(const pod_coll_request *request, pod_coll_axes *axes,
                           const pod_rings_plan *plan, pod_coll_schedule **schedule,
                           pod_error *err);
