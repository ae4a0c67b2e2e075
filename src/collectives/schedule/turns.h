/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/turns.h  In which order links carry the messages of a schedule.
 *
 *  Model: a run of an ordered schedule in which every send is over one link hands each link its messages in some order.
 *  Kept, that order makes the schedule timed (schedule.h, timed): the same time without whatever
 *  else decided who went first. With messages left out it is never longer (as_all_reduce.c), and run backwards it
 *  takes as long (mirrored.c).
 *
 *  Ownership: init allocates, fini frees. Threads: none. */
#pragma once

#include "collectives/schedule/schedule.h"

typedef struct pod_coll_turns {
    const pod_coll_schedule *schedule; /**< borrowed */
    int64_t *first; /**< first[channel]: of its entries, [rank][step]; first[nchannels]: all */
    int32_t *turn;  /**< messages over its link before that of a step; -1 = none is sent */
} pod_coll_turns;

/** Room for the order of a schedule; no turns are known.
 *  @param[out] turns  for pod_coll_turns_fini in any case
 *  @return false: no memory, or more than `most` steps */
bool pod_coll_turns_init(pod_coll_turns *turns, const pod_coll_schedule *schedule, int64_t most);
void pod_coll_turns_fini(pod_coll_turns *turns);

static inline int32_t *pod_coll_turn_at(const pod_coll_turns *turns, int32_t rank, int32_t channel,
                                        int32_t step)
{
    const int64_t steps = turns->schedule->channels[channel].max_steps;
    return &turns->turn[turns->first[channel] + rank * steps + step];
}

static inline void pod_coll_turn_note(const pod_coll_turns *turns, int32_t rank, int32_t channel,
                                      int32_t step, int32_t turn)
{
    *pod_coll_turn_at(turns, rank, channel, step) = turn;
}
