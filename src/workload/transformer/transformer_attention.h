/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_attention.h
 *  Private to workload/transformer/: attention of a layer, from queries, keys and values to its output.
 *
 *  Ownership: borrows everything. Errors stick in tf->build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** What attention gives (transformer_attention.c). */
typedef struct pod_tf_scores {
    int32_t context;       /**< buffer of its output */
    int32_t probabilities; /**< of plain attention, f32 and bf16; else POD_OP_NONE */
} pod_tf_scores;
/** @param qkv  queries, keys and values of this chip's tokens, rotated */
pod_tf_scores pod_tf_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv);
/** @param of  what pod_tf_attend gave, kept or done again @param dqkv  derivatives come here */
void pod_tf_attend_backward(pod_tf *tf, const pod_layer *layer, int32_t qkv,
                            const pod_tf_scores *of, int32_t dcontext, int32_t dqkv);
