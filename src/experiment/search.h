/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/search.h  Many candidates for a step, dealt out to the ranks.
 *
 *  Model: a candidate is a request, a setup and a mesh; candidates may share requests and setups, or differ in
 *  them. Time only, each candidate runs whole on one rank by itself, and at the end all ranks know all outcomes. With
 *  real numbers all ranks work on each together.
 *  First come the lower bounds of all (sim/step.h), which are cheap. Then candidates are simulated in the order of
 *  their bounds, dealt to ranks as they become free (engine/deal.h). Where only the `top` best are asked for, a
 *  candidate whose bound exceeds the time of the last of them is not simulated; its outcome says slower = 1. Whether
 *  it does is settled at the end, so that it depends on the candidates alone.
 *  Who listens hears of the fastest as soon as nothing can go before it any more (experiment/search_final.h).
 *  A candidate that can't run (its mesh doesn't lie, it doesn't fit HBM, its sizes are too large) has
 *  the reason in its outcome; anything else ends the search.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/search_listener.h"

typedef struct pod_experiment_candidate {
    const pod_experiment_step_request *request;
    const pod_experiment_setup *setup;
    pod_logical_mesh mesh;
    bool doubled; /**< the candidate before it with more microbatches (microbatches_doublings) */
} pod_experiment_candidate;

/** What the progress of bounds counts. */
#define POD_SEARCH_BOUNDED "layouts bounded"

/** Time all candidates, without numbers. Collective.
 *  @param candidates     candidates[count], the same on every rank
 *  @param top            how many of the best need figures; 0 = all have them
 *  @param listener       or NULL, on any rank
 *  @param[out] outcomes  outcomes[count] */
pod_status pod_experiment_search_times(pod_experiment *experiment,
                                       const pod_experiment_candidate *candidates, int count,
                                       int top, const pod_experiment_search_listener *listener,
                                       pod_experiment_step_outcome *outcomes, pod_error *err);

/** Run all candidates, of one request: with real numbers or time only, as the experiment says or by the size of
 *  the largest. Collective. Parameters as above; with real numbers all are run. */
pod_status pod_experiment_search(pod_experiment *experiment,
                                 const pod_experiment_candidate *candidates, int count, int top,
                                 const pod_experiment_search_listener *listener,
                                 pod_experiment_step_outcome *outcomes, pod_error *err);

/** Fastest first; the equally fast in their order; then the slower ones by their bounds; those that can't run last,
 *  in their order. */
void pod_experiment_outcomes_sort(pod_experiment_step_outcome *outcomes, int count);
