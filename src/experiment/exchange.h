/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/exchange.h  Steps of programs that others wrote (exchange/): one program a chip.
 *
 *  Threads: one per rank. */
#pragma once

#include "exchange/chakra_program.h"
#include "experiment/setup.h"
#include "experiment/step_what_if.h"
#include "experiment/watch.h"

typedef struct pod_experiment_exchange_options {
    bool one_at_a_time; /**< a chip begins one collective, send or copy after the other */
    bool jitter;        /**< slices wait for the slowest (experiment/step_slices.h) */
    bool over_pcie;     /**< hosts send to their chips */
    const char *file;   /**< that errors name; NULL = none */
} pod_experiment_exchange_options;

/** Simulate programs, every collective held to its bound. Collective.
 *  @param chip         rates in force, those of the setup or others for a what-if
 *  @param[out] result  for pod_step_result_fini, with the parts of its cells
 *  @return POD_E_INVALID if chips wait for each other until nothing is left to happen; what pod_step_run says */
pod_status pod_experiment_exchange_run(pod_experiment *experiment,
                                       const pod_experiment_setup *setup, const pod_chip_spec *chip,
                                       const pod_programs *programs,
                                       const pod_experiment_exchange_options *options,
                                       pod_experiment_watch *watch, pod_step_result *result,
                                       pod_error *err);

/** Traces of a slice, read. */
typedef struct pod_experiment_chakra {
    const pod_experiment_setup *setup;
    int32_t count;
    pod_chakra_graph *graph; /**< graph[count], of all chips */
    pod_chakra_groups groups;
    bool on_chip;
    bool one_at_a_time;
} pod_experiment_chakra;

/** What ran. */
typedef struct pod_experiment_chakra_outcome {
    pod_programs programs;
    pod_chakra_told told;
    pod_step_result result;
} pod_experiment_chakra_outcome;

/** Simulate traces. Collective. @param[out] outcome  for pod_experiment_chakra_outcome_fini, also after an error */
pod_status pod_experiment_chakra_run(pod_experiment *experiment,
                                     const pod_experiment_chakra *chakra, const pod_chip_spec *chip,
                                     pod_experiment_watch *watch,
                                     pod_experiment_chakra_outcome *outcome, pod_error *err);
void pod_experiment_chakra_outcome_fini(pod_experiment_chakra_outcome *outcome);

/** The step with each resource a tenth faster. Collective. @param[out] probe  of each key */
pod_status pod_experiment_chakra_what_if_all(pod_experiment *experiment,
                                             const pod_experiment_chakra *chakra,
                                             pod_time_ps base_ps,
                                             pod_experiment_what_if probe[POD_WHAT_IF_KEYS],
                                             pod_error *err);
