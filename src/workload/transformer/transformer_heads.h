/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_heads.h  Private to workload/transformer/: numbers of queries, keys and
 *  values, from what projections give to what attention reads, and of attention.
 *
 *  Model: the columns of all projections lie side by side, in the order of pod_layer.matmul. Attention reads heads
 *  *packed*: all queries, then all keys, all values, and the gates. They differ where queries come with gates, where
 *  values are the keys, and with latent attention: a head's key is its part of "kv" and the rotated part of
 *  "kv.latent", which all heads share. What projects a latent reads its norm.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "program/numbers.h"
#include "workload/transformer/transformer_state.h"

/** Of the last core op, for `qkv` as projections leave it: packed, with norms of queries and keys, rotated; then it
 *  stands for these. */
void pod_tf_heads_rotate(pod_tf *tf, const pod_layer *layer, int32_t qkv);
/** The way back. @param raw  numbers as projections left them */
void pod_tf_heads_rotate_back(pod_tf *tf, const pod_layer *layer, int32_t dqkv, int32_t raw);
/** Views of packed queries, keys and values; of the gates, no buffer if there are none. */
void pod_tf_heads_views(const pod_tf *tf, const pod_layer *layer, int32_t number,
                        pod_number_view view[3]);
pod_number_view pod_tf_heads_gates(const pod_tf *tf, const pod_layer *layer, int32_t number);

/** A factor of projection `m`, with the latent that it reads, if it does. @param raw  numbers of all projections */
pod_tf_factor pod_tf_factor_latent(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                                   pod_tf_factor factor, int32_t raw);
/** Whether a projection makes a latent, which all chips of tensor have whole; whether it reads one. */
bool pod_tf_makes_latent(const pod_tf *tf, const pod_layer_matmul *m);
bool pod_tf_reads_latent(const pod_layer *layer, const pod_layer_matmul *m);

/** Attention with all but its arrays, but for positions; rotation of the heads of a view. */
pod_number pod_tf_number_attend_of(pod_tf *tf, const pod_layer *layer,
                                   pod_number_function function);
void pod_tf_number_turn(pod_tf *tf, const pod_layer *layer, pod_number_view from,
                        pod_number_view to, bool back);
void pod_tf_number_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t context);
void pod_tf_number_attend_back(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t dcontext,
                               int32_t dqkv);
