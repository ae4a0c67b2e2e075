/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/exchange.h  What an all-to-all puts on the links of one axis.
 *
 *  Model: k positions, each sends S/k to every other one by the shorter way, ties both ways. Bytes on the
 *  busiest link, over S: k/8 on a closed ring of even k, (k - 1/k)/8 of odd k, floor(k²/4)/k in the middle of
 *  a line. An all-to-all over several axes loads each as if it were alone, because what crosses an axis
 *  does not depend on the others. Positions `stride` hops apart share their links with the groups
 *  between: stride times as much. */
#pragma once

#include "collectives/embedding/axes.h"

static inline double pod_exchange_load(const pod_coll_axis *axis)
{
    const double k = (double)axis->length;
    const int64_t squared = (int64_t)axis->length * axis->length;
    double load = (double)(squared / 4) / k;
    if (axis->closed) {
        load = axis->length % 2 == 0 ? k / 8.0 : (double)(squared - 1) / (8.0 * k);
    }
    return load * (double)axis->stride;
}

/** Messages that a rank sends each way along the axis in turn, at most. */
static inline int32_t pod_exchange_messages(const pod_coll_axis *axis)
{
    return axis->closed ? axis->length / 2 : axis->length - 1;
}

/** Hops of the farthest pair along the axis. */
static inline int32_t pod_exchange_hops(const pod_coll_axis *axis)
{
    return (axis->closed ? axis->length / 2 : axis->length - 1) * axis->stride;
}

/** Time of an all-to-all axis after axis in D parts, part p in the order p, p+1, …, p-1, without launch.
 *
 *  A phase alone on its axis takes the longer of two: the work of the busiest link and a hop; or, while links are
 *  mostly idle, a rank's messages one by one and the hops of the farthest. Parts share an axis as fluid
 *  flows, or take turns on it: then a phase waits for its part's last one and for the phase that the
 *  part before has on its axis.
 *  @param axes  at least one
 *  @param[out] turns  which of the two is faster
 *  @return the faster one's time in picoseconds */
double pod_exchange_time(const pod_coll_request *request, const pod_coll_axes *axes, bool *turns);
