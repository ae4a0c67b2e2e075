/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_routes.h  The time of a step on a setup, and on the setup on which it is quickest.
 *
 *  Model: all layers are simulated; what collectives of equal layers do is asked of an oracle (sim/oracle.h). A setup
 *  with slow cables has others beside it, that go round these (experiment/setup.h): the step takes the quickest.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/step_simulate.h"

/** Simulate a case, time only. Collective.
 *  @param chip  rates in force, those of the setup or others for a what-if
 *  @param watch        NULL, or chips whose timeline is kept, that of all layers
 *  @param[out] result  for pod_step_result_fini
 *  @return POD_E_INTERNAL, POD_E_RANGE, POD_E_NOMEM */
pod_status pod_experiment_step_run(pod_experiment *experiment,
                                   const pod_experiment_step_case *run_case,
                                   const pod_chip_spec *chip, pod_experiment_watch *watch,
                                   pod_step_result *result, pod_error *err);

/** The same on the setup on which a case is quickest: its own, or round its slow cables (setup.h). Collective.
 *  @param[out] best    NULL, or that setup, borrowed from the case's */
pod_status pod_experiment_step_time(pod_experiment *experiment,
                                    const pod_experiment_step_case *run_case,
                                    const pod_chip_spec *chip, const pod_experiment_setup **best,
                                    pod_step_result *result, pod_error *err);
