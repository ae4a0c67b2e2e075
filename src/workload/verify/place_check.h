/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/place_check.h  The numbers that chips start from in a step of a transformer, and the
 *  check of what they end with (workload/verify/transformer_reference.h).
 *
 *  Model: programs say what their buffers of numbers are (pod_place). Here each is a set of patches of whole arrays:
 *  a chip's piece of a bundle is cut into the matrices that it has parts of. Logits, the loss, gradients and updated
 *  weights of all chips are compared, copies too; the loss is the sum over chips that have different tokens, in units
 *  of 2^-24, so that no order matters.
 *
 *  Where matmuls are in a byte, what comes into layers is taken for a reference that follows it, and compared in a
 *  second run. It isn't in the digest.
 *
 *  Use: as pod_step_check, with pod_place_check_load and _store as the callbacks of sim/step.h; afterwards add
 *  `found.wrong`, `found.checked` and `loss` over the ranks, take the largest errors, and call pod_place_check_loss.
 *
 *  Ownership: init/fini; borrows request, work and reference. Threads: none. */
#pragma once

#include "workload/verify/place_chip.h"

/** What the programs of a step that is compared take from its model. */
pod_step_form pod_place_form(const pod_model *model, pod_optimizer optimizer);

/** POD_E_NOMEM; fini is fine then, too. */
pod_status pod_place_check_init(pod_place_check *check, const pod_step_request *request,
                                const pod_step_work *work, uint64_t seed,
                                const pod_transformer_reference *reference, pod_error *err);
void pod_place_check_fini(pod_place_check *check);

/** Callbacks of pod_step_args; context is a pod_place_check. */
void pod_place_check_load(void *context, int32_t chip, const pod_program *program, void **buffers);
void pod_place_check_store(void *context, int32_t chip, const pod_program *program, void **buffers);

/** Compare the loss, when it is that of all chips. */
void pod_place_check_loss(pod_place_check *check);
