/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_limit.h  What limits a step where two of its parts are about as long.
 *
 *  Model: the largest part of a step limits it. Parts that are shorter by less than 1 % of the step tie with it; of
 *  those the one with the greatest elasticity does (experiment/step_what_if.h: ici, dcn, hbm, mxu; 0 for host and
 *  idle), then the largest.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/step_outcome.h"

/** Settle outcome->limit, simulating a case for each part that ties. Collective.
 *  @param chip  rates that ran
 *  @return as pod_experiment_step_time */
pod_status pod_experiment_step_limit_settle(pod_experiment *experiment,
                                            const pod_experiment_step_case *run_case,
                                            const pod_chip_spec *chip,
                                            pod_experiment_step_outcome *outcome, pod_error *err);
