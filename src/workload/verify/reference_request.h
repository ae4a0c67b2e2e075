/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_request.h  What the reference of a transformer is asked to be.
 *
 *  Ownership: borrows what it points to. Threads: none. */
#pragma once

#include "workload/verify/inexact.h"
#include "workload/verify/place_state.h"

/** The experts that chips chose, of one layer: taken where the reference's own choice is nearer than its error. */
typedef struct pod_transformer_choices {
    const int32_t *expert; /**< [batch · seq, top_k] */
} pod_transformer_choices;

/** Matrices of muon: of norm 1, and after each step of Newton and Schulz. */
enum { POD_TRANSFORMER_NEWTON = 6 };

/** What chips had on the way: between layers, of all tokens, layer by layer [batch · seq, d_model]; and in the update.
 *  NULL: isn't followed. */
typedef struct pod_transformer_followed {
    const float *input;      /**< what the layer starts from */
    const float *derivative; /**< by what it gives */
    /** With muon: arrays of layers one after the other, step by step. */
    const float *newton;
    int64_t newton_elements; /**< of a step */
} pod_transformer_followed;

typedef struct pod_transformer_reference_args {
    const pod_model *model;
    int64_t batch; /**< sequences */
    int64_t seq;
    pod_dtype dtype;    /**< of stored activations, gradients and collectives: bf16 or f32 */
    pod_dtype operands; /**< of layers' matmuls: of one byte, or as they are stored */
    pod_step_mode mode; /**< train; others: forward */
    pod_optimizer optimizer;
    double rate;
    uint64_t seed;
    /** Most partial sums that chips add up for an element of an activation or of its derivative: chips of tensor. */
    int64_t activation_terms;
    int64_t
        input_terms; /**< likewise of what products by d_model give: chips of fsdp in inference; 0 as 1 */
    int64_t context_terms; /**< likewise of derivatives by keys and values: chips of sequence */
    /** Chips that a sequence is cut over, each of which gives experts a capacity for its own tokens; 0 as 1. */
    int64_t capacity_chips;
    bool front_and_back; /**< they have a piece of its front and one of its back, else one piece */
    int64_t gradient_terms; /**< likewise for a gradient of weights: chips · microbatches */
    /** Chips of tensor: each rounds its part of a weight to `operands` with a scale of its own. 0: of several layouts,
     *  whose weights are rounded with other scales. */
    int64_t weight_pieces;
    /** Of keys and values; of one byte: each head's of a token with a scale of its own (inference). */
    pod_dtype cache;
    bool hidden;  /**< keep what each layer gives, and logits, to find where a layout differs */
    bool squares; /**< keep sums of the rows that norms read: of inference */
    const pod_transformer_choices *choices; /**< of each layer; NULL: the reference's own */
    /** What each layer starts from, forward and backward, once its own is kept to be compared; NULL: its own */
    const pod_transformer_followed *followed;
    /** Weights and moments before the step, after others; sgd, sgd-momentum. NULL: those of the seed, and zeros. */
    const pod_place_state *before;
    const int32_t *tokens; /**< [batch · seq], as after decode steps; NULL: pod_transformer_token */
    const pod_emulation *emulation; /**< of tests; else NULL */
} pod_transformer_reference_args;
