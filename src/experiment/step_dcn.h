/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_dcn.h  What a step's chips send to other slices, against what they could.
 *
 *      required = bytes a chip / (step - exposed DCN): the rate at which DCN would just be hidden
 *      slack    = available / required
 *
 *  Threads: none. */
#pragma once

#include "experiment/step_simulate.h"

typedef struct pod_experiment_step_dcn {
    int64_t chip_bytes; /**< of a step, mean over chips */
    double rest_s;      /**< the step without what DCN exposes */
    double required_bytes_per_s;
    double available_bytes_per_s; /**< that every chip gets when all send at once */
    double slack;
    double busy_frac; /**< of the busiest host's NICs, of the step */
} pod_experiment_step_dcn;

/** Whether anything leaves a slice while something else goes on. */
bool pod_experiment_step_crosses(const pod_step_result *result);
/** Of a step that does. @param chip  rates that ran */
pod_experiment_step_dcn pod_experiment_step_dcn_get(const pod_experiment_step_case *run_case,
                                                    const pod_chip_spec *chip,
                                                    const pod_step_result *result);
