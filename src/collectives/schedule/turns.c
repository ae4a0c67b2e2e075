/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/schedule/turns.h"

#include <stdlib.h>

bool pod_coll_turns_init(pod_coll_turns *turns, const pod_coll_schedule *schedule, int64_t most)
{
    const int32_t channels = schedule->nchannels;
    *turns = (pod_coll_turns){.schedule = schedule,
                              .first = calloc((size_t)channels + 1, sizeof *turns->first)};
    if (turns->first == NULL) {
        return false;
    }
    for (int32_t c = 0; c < channels; c++) {
        turns->first[c + 1] =
            turns->first[c] + schedule->channels[c].max_steps * (int64_t)schedule->group->size;
    }
    const int64_t steps = turns->first[channels];
    turns->turn = steps <= most ? malloc(((size_t)steps + 1) * sizeof *turns->turn) : NULL;
    for (int64_t i = 0; turns->turn != NULL && i < steps; i++) {
        turns->turn[i] = -1;
    }
    return turns->turn != NULL;
}

void pod_coll_turns_fini(pod_coll_turns *turns)
{
    free(turns->turn);
    free(turns->first);
    *turns = (pod_coll_turns){.schedule = NULL};
}
