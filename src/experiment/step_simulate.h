/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_simulate.h  The simulation of a step's programs, every collective held to its bound.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/step_case.h"
#include "experiment/watch.h"
#include "sim/step.h"

/** The machine of a case under some rates: borrows itself, so it must not move. */
typedef struct pod_experiment_step_machine {
    pod_machine machine;
    pod_dcn dcn;
} pod_experiment_step_machine;

/** @param chip  rates in force, those of the setup or others for a what-if */
void pod_experiment_step_machine_make(pod_experiment_step_machine *own, pod_experiment *experiment,
                                      const pod_experiment_step_case *run_case,
                                      const pod_chip_spec *chip);

/** Every collective of a run took at least its bound, from its first start to its last end. Not collective.
 *  @param result  with the records of its ops
 *  @return POD_E_INTERNAL, naming the first that did not */
pod_status pod_experiment_step_bounds_check(const pod_programs *programs,
                                            const pod_step_result *result, pod_time_ps launch_ps,
                                            pod_error *err);

/** What a case can't be faster than, without simulating it (pod_step_bound). Not collective. */
pod_status pod_experiment_step_bound(pod_experiment *experiment,
                                     const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, pod_time_ps *bound_ps,
                                     pod_error *err);

/** @return POD_E_INTERNAL: the step took less than its bound. What was folded over DCN may be rounded. */
pod_status pod_experiment_step_bound_hold(pod_time_ps bound_ps, const pod_step_result *result,
                                          pod_error *err);

/** Simulate programs, those of the case or of the same model with fewer layers; time only. Collective.
 *  @param watch        NULL, or chips whose timeline is kept
 *  @param[out] result  for pod_step_result_fini
 *  @return POD_E_INTERNAL (also a collective faster than its bound), POD_E_RANGE, POD_E_NOMEM */
pod_status pod_experiment_step_simulate(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_chip_spec *chip, const pod_programs *programs,
                                        pod_experiment_watch *watch, pod_step_result *result,
                                        pod_error *err);
