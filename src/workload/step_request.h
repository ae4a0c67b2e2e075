/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/step_request.h  From a model and a layout to programs, memory and figures: the
 *  door to workload/ for `podsim step` and `podsim compare`.
 *
 *  Use: fill a request, pod_step_build, check pod_step_fits (workload/fit.h), run work.programs (sim/step.h), and
 *  turn the time into the columns of the command line with pod_step_figures_get.
 *
 *  What a training step does:
 *   - rows (tokens) are cut over data, fsdp and sequence; weights over fsdp and tensor; layers over
 *     pipeline (workload/build/layout.h);
 *   - weights cut over fsdp are gathered before each use, forward and backward, `gather_ahead` uses
 *     ahead; their gradients are reduce-scattered over fsdp, then all-reduced over data and sequence;
 *   - activations are all-reduced over tensor after each pair of products, forward and backward;
 *   - microbatches: the batch in so many parts one after another, gradients added up; sums over data
 *     wait for the last part;
 *   - pipeline: stages exchange activations and their gradients; microbatches in 1F1B order, so that
 *     stage s of S idles (S - 1) of (microbatches + S - 1) slots;
 *   - the optimizer updates all weights at the end.
 *  The loss is the sum of target · relu(output), whose derivative is (output > 0) · target.
 *
 *  Optimizers: sgd, weights in the model's dtype: w - w' = rate · gradient; the others (POD_OPTIMIZER_LIST): f32
 *  weights and moments, cast to the model's dtype before use. fp8 and int8 set the speed of matmuls; activations,
 *  gradients and sgd's weights are bf16 then.
 *
 *  Ownership: a work owns its parts until pod_step_work_fini. Threads: none. */
#pragma once

#include "workload/build/request.h"

/** "train", "forward", "prefill", "decode"; "sgd", "adam", … Static. */
const char *pod_step_mode_name(pod_step_mode mode);
const char *pod_optimizer_name(pod_optimizer optimizer);
/** @return POD_E_USAGE with the nearest name */
pod_status pod_step_mode_parse(const char *text, pod_step_mode *mode, pod_error *err);

/** Programs of all stages, checked. Not collective.
 *  @param[out] work  to be finished with pod_step_work_fini, also after an error
 *  @return POD_E_INVALID: something doesn't divide (naming it and its divisors), an axis has no
 *          use; POD_E_USAGE: batch missing or at odds with m; POD_E_RANGE; POD_E_NOMEM */
pod_status pod_step_build(const pod_step_request *request, pod_step_work *work, pod_error *err);

/** The same in two parts. First what the step keeps and the memory it needs, for pod_step_fits: of most transformers
 *  without their programs, which cost more. Parameters as above. */
pod_status pod_step_measure(const pod_step_request *request, pod_step_work *work, pod_error *err);
/** Then its programs. */
pod_status pod_step_finish(const pod_step_request *request, pod_step_work *work, pod_error *err);

void pod_step_work_fini(pod_step_work *work);

/** Columns of `podsim step` that follow from the time of a step. */
typedef struct pod_step_figures {
    double step_time_s;
    double tokens_per_s_per_chip;
    double model_tflops_per_chip;
    double mfu_frac; /**< of the chip's peak in the request's dtype; 0 if it has none */
    int64_t hbm_bytes_per_chip;
    double hbm_frac; /**< of what a program may use */
} pod_step_figures;

void pod_step_figures_get(const pod_step_request *request, const pod_step_work *work,
                          const pod_chip_spec *chip, pod_time_ps time_ps,
                          pod_step_figures *figures);
