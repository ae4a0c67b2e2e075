/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/search_final.h  Private to experiment/search.c: what of a search is final before it is over.
 *
 *  Model: candidates are simulated in the order of their bounds, those with the same bound in their own order. The
 *  fastest of the simulated ones that has not been handed on is next if nothing that is still to come, or under way,
 *  can go before it: its time is below the lowest bound of those, or the same and it comes first itself.
 *
 *  Ownership: borrows all it is given. Threads: none. */
#pragma once

#include "engine/deal.h"
#include "experiment/search_listener.h"

typedef struct pod_search_final {
    const pod_experiment_search_listener *listener;
    pod_experiment_step_outcome *outcomes;
    const int *order; /* order[n]: candidates by their bounds, the lowest first */
    int n;
    int top;        /* of the best that need figures; 0 = all */
    int64_t *known; /* known[n]: what was told of a piece and has been seen */
    int *timed;     /* timed[ntimed]: candidates with a time, the fastest first */
    int ntimed;
    int next;   /* place in timed of the first that was not handed on */
    int untold; /* the first piece that nothing was told of */
} pod_search_final;

/** @param listener  NULL = nobody waits, and nothing is done */
pod_status pod_search_final_init(pod_search_final *final,
                                 const pod_experiment_search_listener *listener,
                                 pod_experiment_step_outcome *outcomes, const int *order, int n,
                                 int top, pod_error *err);
void pod_search_final_fini(pod_search_final *final);

/** Hand on what has become final. Outcomes of other ranks are fetched from the records of the deal.
 *  @param told_ps  told_ps[n] of pod_deal_read: the time of a piece, 0 = not done, below 0 = it has none */
void pod_search_final_update(pod_search_final *final, const pod_deal *deal, const int64_t *told_ps);
/** All pieces are done. */
bool pod_search_final_is_over(const pod_search_final *final);
