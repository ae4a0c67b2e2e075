/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/search_listener.h  Who hears of a search (experiment/search.h) while it goes on.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/step_outcome.h"

/** Who hears, on rank 0, of outcomes while a search of times goes on. Nobody does with real numbers, and where bounds
 *  don't come first: the best of several placements is asked for. */
typedef struct pod_experiment_search_listener {
    void *context;
    /** Bounds are known. Layouts that can run have the figures of a step that takes what its bound says: none will have
     *  a shorter time or a higher rate.
     *  @param outcomes  outcomes[count] of all candidates, in their order */
    void (*bounded)(void *context, const pod_experiment_step_outcome *outcomes, int count);
    /** The next with figures, as pod_experiment_outcomes_sort puts them at the end. */
    void (*found)(void *context, const pod_experiment_step_outcome *outcome);
} pod_experiment_search_listener;
