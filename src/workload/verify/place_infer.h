/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/place_infer.h  What chips start from in steps of inference, one after another, and what they
 *  leave: caches, from step to step, and the logits of each sequence's last token.
 *
 *  Model: tokens of all steps together are known as far as they are decoded. Caches are kept by the position of a
 *  token; in a chip's memory they lie in pages, in another order.
 *
 *  Use: init; for each step set `request` and `work` of `check`, `before`, and clear `logits`; run it with
 *  pod_place_infer_load and _store as the callbacks of sim/step.h; add `logits` over the ranks.
 *
 *  Ownership: init/fini; borrows `tokens`; `check` is the caller's. Threads: none. */
#pragma once

#include "workload/verify/place_check.h"

typedef struct pod_place_infer {
    pod_place_check check;
    int32_t nchips;
    int64_t total;         /**< tokens of a sequence, of all steps together */
    int64_t before;        /**< of them those in the cache */
    const int32_t *tokens; /**< tokens[batch · total] */
    float *logits;         /**< logits[batch · vocab] */
    int32_t *
        choices; /**< 1 + expert: choices[layer][batch · total · top_k], of this rank's chips, others 0 */
    float *squares; /**< squares[norm][batch · total · sums], norms as of the reference, likewise */
    char **kept;    /**< caches and scales: kept[(chip · layers + layer) · 2 + scales] */
} pod_place_infer;

/** Without `check`. @return POD_E_NOMEM; fini is fine then, too */
pod_status pod_place_infer_init(pod_place_infer *infer, const pod_step_request *request,
                                int32_t nchips, int64_t total, const int32_t *tokens,
                                pod_error *err);
void pod_place_infer_fini(pod_place_infer *infer);

/** Elements of `choices`. */
int64_t pod_place_infer_choices(const pod_place_infer *infer, const pod_step_request *request);

/** Elements of `squares` of a norm. */
int64_t pod_place_infer_squares(const pod_place_infer *infer, const pod_step_request *request);

/** Callbacks of pod_step_args; context is a pod_place_infer. */
void pod_place_infer_load(void *context, int32_t chip, const pod_program *program, void **buffers);
void pod_place_infer_store(void *context, int32_t chip, const pod_program *program, void **buffers);
