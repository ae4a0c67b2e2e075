/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/hlo_what_if.h  The step of a compiled program under other figures.
 *
 *  Errors: what pod_experiment_hlo says. Threads: one per rank; collective. */
#pragma once

#include "experiment/hlo.h"
#include "experiment/step_what_if.h"

/** The step with times of matmuls from the other source: the compiler's instead of shapes, or the other way round. */
pod_status pod_experiment_hlo_other_cost(pod_experiment *experiment,
                                         const pod_experiment_hlo_request *request,
                                         const pod_chip_spec *chip, pod_time_ps *time_ps,
                                         pod_error *err);
/** The step with each resource a tenth faster. @param[out] probe  of each key */
pod_status pod_experiment_hlo_what_if_all(pod_experiment *experiment,
                                          const pod_experiment_hlo_request *request,
                                          pod_time_ps base_ps,
                                          pod_experiment_what_if probe[POD_WHAT_IF_KEYS],
                                          pod_error *err);
