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

#include "workload/transformer/transformer_state.h"

/** Numbers of what is under way. */
typedef struct pod_tf_infer_numbers {
    int64_t sequences; /**< of this chip */
    int64_t queries;   /**< tokens of each in the step, on this chip */
    int64_t keys;      /**< with those of the step, of all chips */
    bool returning;    /**< results of experts are on their way back */
    int32_t brought;   /**< over sequence: keys and values of this chip's tokens, then of all */
    int32_t x;         /**< the residual path, */
    int32_t sum;       /**< and what is added to it next; POD_OP_NONE: nothing */
    bool of_mlp;       /**< the MLP gave that */
    int32_t xn;
    int32_t qkv; /**< as projected */
    int32_t context;
    int32_t wi; /**< before the MLP's function, and after it */
    int32_t h;
    int32_t weights[POD_LAYER_PARTS];
    int32_t key_positions;
    int32_t read; /**< rows of the cache */
    int32_t write;
} pod_tf_infer_numbers;

/** @return POD_E_USAGE, POD_E_INVALID: what has no numbers */
pod_status pod_tf_infer_numbers_check(const pod_step_request *request,
                                      const pod_work_layout *layout, pod_error *err);

/** With sizes set; before the first op. */
void pod_tf_infer_begin(pod_tf *tf, pod_tf_infer_numbers *n);
void pod_tf_infer_layer(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);

/* Of the last core op. */
void pod_tf_infer_norm(pod_tf *tf, pod_tf_infer_numbers *n);
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
/** The router, with the rows of all experts, which `op` exchanges over expert, as later their results; first products;
 *  the second; sums. */
void pod_tf_infer_route(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_experts_in(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_experts_function(pod_tf *tf, const pod_layer *layer);
void pod_tf_infer_experts_out(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
void pod_tf_infer_exchange(pod_tf *tf, const pod_layer *layer, bool results, int32_t op);
/** Results that came back are added up in this op, not in the next norm. */
void pod_tf_infer_return(pod_tf *tf, pod_tf_infer_numbers *n);
void pod_tf_infer_head(pod_tf *tf, pod_tf_infer_numbers *n);

/** `op` adds up what is added to the residual path; POD_OP_NONE: no chips to add up over. */
void pod_tf_infer_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op);
