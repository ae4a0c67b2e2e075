/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_infer_numbers.h
 *  Private to workload/transformer/: numbers of inference (transformer_infer.c has its ops).
 *
 *  Model: what goes into the first layer is given: the lookup of the embedding has no op. A chip's cache of a layer has
 *  a row for each token of its sequences: keys after norms and rotation, and values; of latent attention the normed
 *  latent and the rotated part of the keys. Sequences lie in pages, which need not follow each other. Attention finds
 *  new tokens in the cache, too. A cache of one byte has a scale for each token's key, and value, of a head.
 *  Latent attention is timed in the latent space, with the weights of "kv" taken to the queries and the context;
 *  numbers make keys and values of all tokens from the latents, the same sums in another order.
 *
 *  Over sequence a chip has the tokens that training gives it; keys and values of a prompt are gathered, and the cache,
 *  which no step reads, has none. Over expert each has as many rows of a chip as of the next.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_infer_state.h"

/** @return POD_E_USAGE, POD_E_INVALID: what has no numbers */
pod_status pod_tf_infer_numbers_check(const pod_step_request *request,
                                      const pod_work_layout *layout, pod_error *err);

/** With sizes set; before the first op. */
void pod_tf_infer_begin(pod_tf *tf, pod_tf_infer_numbers *n);
void pod_tf_infer_layer(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);

/* Of the last core op. */
void pod_tf_infer_project(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer,
                          const pod_layer_matmul *m);
/** @param qkv  a buffer that stands for queries, keys and values */
void pod_tf_infer_rotate(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv);
/** Keys and values for `op`, which gathers them over sequence. */
void pod_tf_infer_bring(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv);
void pod_tf_infer_gather(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op);
void pod_tf_infer_attend(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv);
void pod_tf_infer_out(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_in(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_function(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_down(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
/** The router; the rows of all experts (with one chip of expert by the first products), which `op` exchanges
 *  over expert, as later their results; first products; the second; sums. */
void pod_tf_infer_router(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_route(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_experts_in(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_experts_function(pod_tf *tf, const pod_layer *layer);
void pod_tf_infer_experts_out(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_exchange(pod_tf *tf, const pod_layer *layer, bool results, int32_t op);
void pod_tf_infer_head(pod_tf *tf, pod_tf_infer_numbers *n);
