/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_periodic.h  The time of a step, from few of its layers where that is enough.
 *
 *  Model: a transformer's layers are the same; two smaller models are simulated and extrapolated
 *  (workload/transformer/periodic.h). Where only the time is asked for, the two are of one and two periods of layers
 *  first: if every op takes as long in both, and is waited for as long, to the picosecond, then further layers change
 *  nothing in the others and the time is that of more layers, too. Where an op would be waited for less than not at all
 *  if each layer hid what these do, the two have more layers, or all are simulated. With `exact`, with hosts that make
 *  batches, and with few layers, all of the step is simulated.
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

/** The setup on which a case is quickest: its own, or round its slow cables (experiment/setup.h). Collective.
 *  @param[out] best    borrowed from the case's setup
 *  @param[out] result  of it, as of pod_experiment_step_time */
pod_status pod_experiment_step_routes(pod_experiment *experiment,
                                      const pod_experiment_step_case *run_case,
                                      const pod_chip_spec *chip, const pod_experiment_setup **best,
                                      pod_step_result *result, pod_error *err);

/** The same where only times are asked for: records of ops may be those of fewer layers. Collective. */
pod_status pod_experiment_step_time(pod_experiment *experiment,
                                    const pod_experiment_step_case *run_case,
                                    const pod_chip_spec *chip, pod_step_result *result,
                                    pod_error *err);
