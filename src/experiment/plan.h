/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/plan.h  Which slice, and which layout on it.
 *
 *  Model: of each slice every layout of data, fsdp and tensor that JAX places is a candidate, with expert for
 *  models with experts, with sequence where a chip would have less than one sequence, and over several
 *  slices with data or fsdp across the DCN. Recomputation is the request's; `auto` keeps what fits. The
 *  fastest candidate stands for its slice; the others are simulated only if their lower bound (sim/step.h)
 *  allows them to be faster.
 *
 *  Ownership: plain values. Threads: one per rank. */
#pragma once

#include "experiment/search.h"

/** The best of a slice. */
typedef struct pod_experiment_plan_row {
    const pod_experiment_setup *setup;
    int64_t chips;      /**< of all its slices */
    int64_t candidates; /**< layouts considered */
    pod_experiment_step_outcome
        best; /**< status: why none runs, of the first layout that doesn't */
} pod_experiment_plan_row;

/** Find the best layout of one slice. Collective.
 *  @param request     of the step; its global batch is given
 *  @param split_axes  mesh axes may share a physical axis
 *  @param exhaustive  simulate every candidate
 *  @return POD_E_NOMEM, POD_E_INTERNAL */
pod_status pod_experiment_plan_slice(pod_experiment *experiment,
                                     const pod_experiment_step_request *request,
                                     const pod_experiment_setup *setup, bool split_axes,
                                     bool exhaustive, pod_experiment_plan_row *row, pod_error *err);

/** Chip-hours of a million tokens. */
double pod_experiment_plan_chip_hours(const pod_experiment_plan_row *row);
