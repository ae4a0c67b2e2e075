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

/** Parts of heads. */
enum {
    POD_TF_KEYS = 1U << 0U,
    POD_TF_VALUES = 1U << 1U,
    POD_TF_QUERIES = 1U << 2U,
    POD_TF_GATES = 1U << 3U,
    POD_TF_ALL_HEADS = (1U << 4U) - 1
};

/** Columns of a chip's packed queries, of its keys, and of its values. */
typedef struct pod_tf_head_widths {
    int64_t q;
    int64_t k;
    int64_t v;
} pod_tf_head_widths;

pod_tf_head_widths pod_tf_heads_widths(const pod_tf *tf, const pod_layer *layer);

/** Room for packed numbers of `raw`, those of projections; `raw` itself where both are the same. */
int32_t pod_tf_heads_like(pod_tf *tf, const pod_layer *layer, int32_t raw);
/** These, with the parts of `what` in them, before norms and rotation. */
int32_t pod_tf_heads_packed(pod_tf *tf, const pod_layer *layer, int32_t raw, unsigned what);
/** The way back: parts of packed numbers are added to those of projections. */
void pod_tf_heads_unpack(pod_tf *tf, const pod_layer *layer, const int32_t heads_raw[2],
                         unsigned what);

/** Of the last core op, for `qkv` as projections leave it: packed, with norms of queries and keys, rotated; then it
 *  stands for these. */
void pod_tf_heads_rotate(pod_tf *tf, const pod_layer *layer, int32_t qkv);
/** The way back. @param raw  numbers as projections left them */
void pod_tf_heads_rotate_back(pod_tf *tf, const pod_layer *layer, int32_t dqkv, int32_t raw);
/** Whether the layer under way has the keys and values of another one. */
bool pod_tf_shares_keys(const pod_tf *tf);
/** After rotation: keys and values of that layer come to those packed of this one. */
void pod_tf_heads_share(pod_tf *tf, const pod_layer *layer, int32_t qkv);
/** Derivatives of keys and values are added to those of the layers that share them, or these to the own ones. */
void pod_tf_heads_share_back(pod_tf *tf, const pod_layer *layer, int32_t dqkv);
/** Likewise of numbers of keys and values alone. @return the sum; POD_OP_NONE: another layer will have it */
int32_t pod_tf_heads_share_sum(pod_tf *tf, int32_t dkv);
/** Whether queries and keys have norms. */
bool pod_tf_heads_have_norms(const pod_tf *tf);
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

/** Rotation of the heads of a view; attention with all but its arrays, but for positions. */
void pod_tf_number_turn(pod_tf *tf, const pod_layer *layer, pod_number_view from,
                        pod_number_view to, bool back);
pod_number pod_tf_number_attend_of(pod_tf *tf, const pod_layer *layer,
                                   pod_number_function function);

/* ---- gates ---- */

/** What attention gives comes to: the numbers of `context`, or others that are kept, if it is gated. */
int32_t pod_tf_heads_result(pod_tf *tf, int32_t context);
int32_t pod_tf_heads_plain(pod_tf *tf, int32_t context);
/** If it is gated, the last core op makes `context` of them, or what it waits for does and the `next` one begins so. */
void pod_tf_heads_gate(pod_tf *tf, const pod_layer *layer, const int32_t qkv_context[2], bool next);
/** @param heads  packed; derivatives by the gates come here  @return those by what attention gives */
int32_t pod_tf_heads_gate_back(pod_tf *tf, const pod_layer *layer, const int32_t qkv_dcontext[2],
                               int32_t heads);

/* ---- attention of whole sequences ---- */

void pod_tf_number_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t context);
void pod_tf_number_attend_back(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t dcontext,
                               int32_t dqkv);
