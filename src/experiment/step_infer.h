/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_infer.h  Inference with real numbers: prompts, then a token of each sequence after the other,
 *  against a forward pass of one chip over prompts and tokens (workload/verify/transformer_reference.h).
 *
 *  Model: a prefill of what the cache has before the step, then the step; decode goes on for request.decode_steps
 *  tokens, each the largest logit of the step before (the first of equals), the first of the prefill. Each step is a
 *  program of its own; the first one's time counts. The reference goes on with the chips' tokens.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/step_numbers.h"

/** Collective.
 *  @param tamper       of the step that is asked for; NULL: nothing goes wrong
 *  @param[out] result  of the step that is asked for; for pod_step_result_fini
 *  @return POD_E_NOFIT, POD_E_NOMEM, … */
pod_status pod_experiment_step_infer(pod_experiment *experiment,
                                     const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, const pod_experiment_tamper *tamper,
                                     pod_experiment_watch *watch, pod_step_result *result,
                                     pod_experiment_step_numbers *numbers, pod_error *err);
