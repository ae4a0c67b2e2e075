/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/plan.h  Which slice, and which layout on it.
 *
 *  Model: of each slice every layout of data, fsdp and tensor that JAX places is a candidate, with expert for
 *  models with experts, with sequence where a chip would have less than one sequence, over several slices with
 *  data, fsdp or pipeline across the DCN, and with pipeline inside a slice where nothing else runs; each with as
 *  few microbatches as fit and with twice as many (experiment/step_case.h). Recomputation is the request's;
 *  `auto` keeps what fits. The fastest candidate stands for its slice; the others are simulated only if their
 *  lower bound (sim/step.h) allows them to be faster.
 *
 *  Ownership: plain values. Threads: one per rank. */
#pragma once

#include "experiment/recipe.h"
#include "experiment/search.h"

/** The best of a slice. */
typedef struct pod_experiment_plan_row {
    const pod_experiment_setup *setup;
    int64_t chips;                    /**< of all its slices */
    int64_t batch;                    /**< sequences of a step */
    int64_t candidates;               /**< layouts considered */
    pod_experiment_step_outcome best; /**< status: why none runs, of the layout that lacks least */
    /** the second; not simulated if its bound is above the best */
    pod_experiment_step_outcome next;
} pod_experiment_plan_row;

typedef struct pod_experiment_plan_question {
    /** its global batch is given; microbatches 0 = to be searched */
    const pod_experiment_step_request *request;
    const pod_recipe *recipe; /**< NULL, or its sequences a device are each slice's batch */
    bool split_axes;          /**< mesh axes may share a physical axis */
    bool exhaustive;          /**< simulate every candidate */
} pod_experiment_plan_question;

/** Find the best layout of one slice. Collective.
 *  @return POD_E_NOMEM, POD_E_INTERNAL */
pod_status pod_experiment_plan_slice(pod_experiment *experiment,
                                     const pod_experiment_plan_question *question,
                                     const pod_experiment_setup *setup,
                                     pod_experiment_plan_row *row, pod_error *err);

/** Find the best layout of each of several slices. Collective. Many slices are dealt to the ranks as these become free,
 *  the ones with most candidates first; of few, each is searched by all ranks. Rows are the same either way.
 *  @param setup  setup[count], the same on every rank; @param[out] rows  rows[count]
 *  @return as above */
pod_status pod_experiment_plan_slices(pod_experiment *experiment,
                                      const pod_experiment_plan_question *question,
                                      const pod_experiment_setup *setup, int count,
                                      pod_experiment_plan_row *rows, pod_error *err);

/** Whether any layout fits a slice, without simulating one. Not collective. POD_E_NOMEM. */
pod_status pod_experiment_plan_holds(const pod_experiment_plan_question *question,
                                     const pod_experiment_setup *setup, bool *holds,
                                     pod_error *err);

/** Chip-hours of a million tokens. */
double pod_experiment_plan_chip_hours(const pod_experiment_plan_row *row);
