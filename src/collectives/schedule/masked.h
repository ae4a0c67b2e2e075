/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/masked.h  What is left of a schedule to which one rank alone contributes.
 *
 *  Model: an all-reduce or a reduce-scatter is walked through once on paper, to see which slots hold the root's
 *  contribution when. A message without it is left out, one with it in some of its slots is cut down to them, and what
 *  was a sum is a copy, as the other summands are nothing. What would be received twice, to be passed on and to be
 *  added, is received into the sum alone and passed on from there. So an all-reduce becomes a broadcast, and a
 *  reduce-scatter a scatter, with no link carrying more than it did.
 *
 *  Ownership: pod_coll_schedule_free(&masked->base) frees all. Threads: none. */
#pragma once

#include "collectives/schedule/turns.h"

/** Of a step's message, seen from either end; slots = 0: nothing. */
typedef struct pod_coll_leftover {
    int32_t send_slot;
    int32_t send_slots;
    int32_t recv_slot;
    bool receives;
} pod_coll_leftover;

typedef struct pod_coll_masked {
    pod_coll_schedule base;   /**< that of the whole but for its op and root */
    pod_coll_schedule *whole; /**< owned */
    int64_t *first;           /**< first[channel]: of its entries, [rank][step] */
    pod_coll_leftover *left;
    pod_coll_turns turns; /**< where base.timed is set: of what is left */
    /** messages with nothing left are sent empty, so that steps wait as in the whole */
    bool paced;
} pod_coll_masked;

/** @param whole  becomes the masked schedule's, also when this fails
 *  @return POD_E_INVALID (messages hold the root's contribution with gaps, or there are too many of them),
 *          POD_E_NOMEM */
pod_status pod_coll_mask(pod_coll_schedule *whole, int32_t root, pod_coll_masked **masked,
                         pod_error *err);

static inline pod_coll_leftover *pod_coll_left_at(const pod_coll_masked *self, int32_t channel,
                                                  int32_t rank, int32_t step)
{
    const int64_t steps = self->base.channels[channel].max_steps;
    return &self->left[self->first[channel] + rank * steps + step];
}
