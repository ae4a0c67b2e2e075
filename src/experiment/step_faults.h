/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_faults.h  What the faults of a slice cost a step (experiment/faults.h).
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/faults.h"
#include "experiment/step_routes.h"

typedef struct pod_experiment_step_faults {
    pod_experiment_faults found;
    pod_step_result healthy; /**< of the step without faults: the same programs */
} pod_experiment_step_faults;

/** Collective; nothing is simulated for a slice without faults.
 *  @param chip    rates that ran
 *  @param time_ps of the case
 *  @param[out] faults  for pod_experiment_step_faults_fini, also after an error */
pod_status pod_experiment_step_faults_find(pod_experiment *experiment,
                                           const pod_experiment_step_case *run_case,
                                           const pod_chip_spec *chip, pod_time_ps time_ps,
                                           pod_experiment_step_faults *faults, pod_error *err);
void pod_experiment_step_faults_fini(pod_experiment_step_faults *faults);
