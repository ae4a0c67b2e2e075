/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_attention.h
 *  Private to workload/transformer/: attention of a layer, from queries, keys and values to its output.
 *
 *  Model: by the kernel of chip/attention.h, or plain. Tokens of a sequence may lie on c chips (mesh axis
 *  sequence). Balanced, each has two pieces of S / 2c tokens, one from the front and one from the back, so that all see
 *  equally many keys: the second and the last but one stand for all. Unbalanced the last chip decides, whose S / c
 *  queries see all keys. Per layer, with T tokens of a chip, keys and values of w columns:
 *
 *      all-gather  T·c·w gathered forward, keys beside the projections of values and queries, values then; once
 *                  backward, beside the MLP's backward pass; their gradients reduce-scattered beside derivatives by
 *                  weights and by queries, as XLA's latency-hiding scheduler puts them
 *      ring        transformer_ring.h
 *      ulysses     all-to-all of queries, keys and values, heads against tokens; of the output back; backward both
 *                  again with their gradients. Keys of fewer heads than chips are copied
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** What attention gives. */
typedef struct pod_tf_scores {
    int32_t context;       /**< buffer of its output */
    int32_t probabilities; /**< of plain attention, f32 and bf16; else POD_OP_NONE */
    int32_t gather;        /**< of keys and values of all tokens, under way; else POD_OP_NONE */
    bool gathered;         /**< done again: keys and values of all tokens are at hand */
} pod_tf_scores;

/** What a gated delta rule works on. */
typedef struct pod_tf_delta {
    int64_t sequences;
    int64_t seq; /**< tokens of each, all chips of sequence together */
    bool backward;
} pod_tf_delta;

/** The gated delta rule of a layer, after a convolution: chunk by chunk, C tokens of a head with keys of dk and values
 *  of dv take K·Kᵀ and Q·Kᵀ (C·C·dk each), a triangular system of C rows for dk + dv columns, the scores' product with
 *  the values (C·C·dv), and the state's Q·S, K·S and Kᵀ·V (C·dk·dv each); backward twice that. Chunks follow each
 *  other, and a chip works on those of all its heads. @param names  of the convolution and of the rule */
void pod_tf_delta_rule(pod_tf *tf, const char *const names[2], const pod_layer *layer,
                       const pod_tf_delta *of, const int32_t touch[POD_OP_TOUCHES_MAX]);

/** One kernel, or two for the pieces of a chip. @param args  of all queries of a sequence
 *  @param pieces  chips that a sequence lies on */
void pod_tf_attention_pieces(pod_tf *tf, const char *name, const pod_attention_args *args,
                             int64_t pieces, const int32_t touch[POD_OP_TOUCHES_MAX]);

/** @param qkv  queries, keys and values of this chip's tokens, rotated @param again  in the backward pass */
pod_tf_scores pod_tf_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv, bool again);
/** Whether keys and values of other chips come in one all-gather, and their gradients go in one reduce-scatter. */
bool pod_tf_attend_gathers(const pod_tf *tf, const pod_layer *layer);
/** Keys, values or both (POD_TF_KEYS | POD_TF_VALUES), as projected, of the next attention begin to be gathered, after
 *  those under way. */
void pod_tf_attend_gather_begin(pod_tf *tf, const pod_layer *layer, int32_t qkv, unsigned what,
                                bool backward);
/** What attention waits for: both, rotated, are gathered now unless that has begun.
 *  @return the gather, under way, or POD_OP_NONE */
int32_t pod_tf_attend_gather(pod_tf *tf, const pod_layer *layer, int32_t qkv, bool backward);
/** @param of  what pod_tf_attend gave, kept or done again @param raw  numbers of qkv before norms and rotation
 *  @param dqkv  derivatives come here */
void pod_tf_attend_backward(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t raw,
                            const pod_tf_scores *of, int32_t dcontext, int32_t dqkv);
