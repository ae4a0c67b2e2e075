/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/place_check.h  The numbers that chips start from in a step of a transformer, and the
 *  check of what they end with (workload/verify/transformer_reference.h).
 *
 *  Model: programs say what their buffers of numbers are (pod_place). Here each is a set of patches of whole arrays:
 *  a chip's piece of a bundle is cut into the matrices that it has parts of. Logits, the loss, gradients and updated
 *  weights of all chips are compared, copies too; the loss is the sum over chips that have different tokens, in units
 *  of 2^-24, so that no order matters.
 *
 *  Use: as pod_step_check, with pod_place_check_load and _store as the callbacks of sim/step.h; afterwards add
 *  `found.wrong`, `found.checked` and `loss` over the ranks, take the largest errors, and call pod_place_check_loss.
 *
 *  Ownership: init/fini; borrows request, work and reference. Threads: none. */
#pragma once

#include "workload/verify/place_state.h"
#include "workload/verify/transformer_reference.h"

typedef struct pod_place_check {
    const pod_step_request *request;
    const pod_step_work *work;
    const pod_transformer_reference *reference;
    uint64_t seed;
    int64_t narrays;
    pod_transformer_array *arrays; /**< arrays[narrays] */
    pod_transformer_check found;   /**< on this rank's chips */
    int64_t loss;
    bool digests;   /**< wanted: */
    int64_t digest; /**< of all bytes that are compared: a sum over chips and arrays */
    /** 1 + expert: choices[layer][batch · seq · top_k], of this rank's chips, others 0 */
    int32_t *choices;
    int64_t nchoices;              /**< elements of it: 0 without experts */
    const pod_place_state *before; /**< what chips start from; NULL: the first step */
    pod_place_state *after;        /**< takes what they end with; NULL: nobody asks */
    /** Of tests, else NULL: whether a chip's buffer is left as the first step had it. */
    bool (*stale)(const void *context, int32_t chip, int32_t stage, int32_t buffer);
    const void *stale_context;
} pod_place_check;

/** What the programs of a step that is compared take from its model. */
pod_step_form pod_place_form(const pod_model *model, pod_optimizer optimizer);

/** POD_E_NOMEM; fini is fine then, too. */
pod_status pod_place_check_init(pod_place_check *check, const pod_step_request *request,
                                const pod_step_work *work, uint64_t seed,
                                const pod_transformer_reference *reference, pod_error *err);
void pod_place_check_fini(pod_place_check *check);

/** Where token `t` of a sequence, of those that a chip has, is in it. @param piece  of the mesh axis sequence; -1: the
 *  chip's own */
int64_t pod_place_position(const pod_place_check *check, int32_t chip, int32_t piece, int64_t t);

/** Callbacks of pod_step_args; context is a pod_place_check. */
void pod_place_check_load(void *context, int32_t chip, const pod_program *program, void **buffers);
void pod_place_check_store(void *context, int32_t chip, const pod_program *program, void **buffers);

/** Compare the loss, when it is that of all chips. */
void pod_place_check_loss(pod_place_check *check);
