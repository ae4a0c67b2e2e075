/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/hlo_faults.h  What the faults of a slice cost a compiled program (experiment/faults.h).
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/faults.h"
#include "experiment/hlo.h"

typedef struct pod_experiment_hlo_faults {
    pod_experiment_faults found;
    /** without faults, if there are some: its sums are those of the program */
    pod_experiment_hlo_outcome healthy;
} pod_experiment_hlo_faults;

/** Collective; nothing is simulated for a slice without faults.
 *  @param time_ps  with all faults
 *  @param[out] faults  for pod_experiment_hlo_faults_fini, also after an error */
pod_status pod_experiment_hlo_faults_find(pod_experiment *experiment,
                                          const pod_experiment_hlo_request *request,
                                          const pod_chip_spec *chip, pod_time_ps time_ps,
                                          pod_experiment_hlo_faults *faults, pod_error *err);
void pod_experiment_hlo_faults_fini(pod_experiment_hlo_faults *faults);
