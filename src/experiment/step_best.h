/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_best.h  A case by its request's placement, also by the fastest of all.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/step_case.h"

/** As pod_experiment_step_case_init; where the request asks for the best placement, every placement is
 *  simulated and the fastest stays. Collective: the same status on every rank.
 *  @param[out] run_case  for pod_experiment_step_case_fini, also after an error */
pod_status pod_experiment_step_lay(pod_experiment *experiment, pod_experiment_step_case *run_case,
                                   const pod_experiment_step_request *request,
                                   const pod_experiment_setup *setup,
                                   const pod_logical_mesh *logical, pod_error *err);
