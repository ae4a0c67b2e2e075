/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_context.h
 *  Private to workload/transformer/: numbers of attention whose sequences lie on the c chips of the mesh axis sequence
 *  (transformer_attention.h has its ops).
 *
 *  Model: a chip's tokens are a front and a back piece of each sequence, or one piece; positions say which, and masks
 *  go by positions. T tokens, q and kv columns of queries and of keys with values:
 *
 *      all-gather  [T, kv] of each chip, keys normed and rotated by the core op before the gather; then [c·T, kv],
 *                  sequence by sequence. Backward [c·T, kv] of derivatives, summed and scattered;
 *                  queries' are rotated back at once, as matmuls that are put off read them
 *      ring        [T, kv] go on and on, of a window as far as it is seen. A step gives the sum of
 *                  exp(score - largest) · value, that largest score and the sum of exp(score - largest), in f32, merged
 *                  with those before; the last merge divides. Backward a step's probabilities are
 *                  exp(score - log of the sum), D is result · derivative by it of each query, and dK and dV travel in
 *                  f32
 *      ulysses     columns of [T, q + kv] in the order of the chips that get them, keys of few heads copied; backward
 *                  derivatives by copies are added
 *
 *  Keys and values are packed ones (transformer_heads.h). Gates stay with their tokens.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** Chips that a sequence lies on. */
int64_t pod_tf_context_chips(const pod_tf *tf);
/** @return POD_E_USAGE, POD_E_INVALID: layers whose attention has no numbers over `sequence` */
pod_status pod_tf_context_check(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err);
/** Positions of other chips' tokens. */
void pod_tf_context_begin(pod_tf *tf);

/* ---- all-gather ---- */

typedef struct pod_tf_gathering {
    unsigned what; /**< POD_TF_KEYS, POD_TF_VALUES or both */
    bool rotated;  /**< keys are, else the last core op does it */
    bool backward;
} pod_tf_gathering;

/** `op` gathers them. */
void pod_tf_context_gather(pod_tf *tf, const pod_layer *layer, int32_t op, int32_t qkv,
                           const pod_tf_gathering *how);
void pod_tf_context_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t context);
/** @return numbers that a reduce-scatter sums: derivatives by all keys and values
 *  @param raw  numbers of queries and keys before norms and rotation */
int32_t pod_tf_context_attend_back(pod_tf *tf, const pod_layer *layer,
                                   const int32_t qkv_dcontext_dqkv[3], int32_t raw);
void pod_tf_context_scatter(pod_tf *tf, const pod_layer *layer, int32_t op, int32_t all);

/* ---- ring ---- */

/** What a step of a ring gives, and what is summed. */
enum { POD_TF_RING_QUERIES, POD_TF_RING_KEYS, POD_TF_RING_VALUES, POD_TF_RING_PARTS };

/** A step of a ring: keys and values of the chip so many places back. */
typedef struct pod_tf_visit {
    int64_t back;
    bool first;
    bool last;
} pod_tf_visit;

/** Keys and values of this chip are at hand. @param touch  as of pod_tf_ring */
void pod_tf_context_ring_begin(pod_tf *tf, const pod_layer *layer,
                               const int32_t touch[POD_OP_TOUCHES_MAX], bool back);
/** `op` passes on what came last of that way, 0 or 1; the core has waited for it. */
void pod_tf_context_ring_pass(pod_tf *tf, int32_t op, int way);
void pod_tf_context_ring_passed(pod_tf *tf, int way);
/** The last core op attends to those at hand. */
void pod_tf_context_ring_attend(pod_tf *tf, const pod_layer *layer, const pod_tf_visit *visit,
                                int32_t qkv, bool back);
/** Forward: merge the step's result. */
void pod_tf_context_ring_merge(pod_tf *tf, const pod_layer *layer, const pod_tf_visit *visit,
                               const int32_t qkv_context[2]);
/** Backward: add the step's derivatives by queries, keys or values. */
void pod_tf_context_ring_add(pod_tf *tf, const pod_tf_visit *visit, int which);
/** `op` passes the sum on. */
void pod_tf_context_ring_pass_back(pod_tf *tf, int32_t op, int which);
/** `op` brings the step's derivatives home. @return their numbers there, which are added when they have come */
int32_t pod_tf_context_ring_home(pod_tf *tf, int32_t op, int which);
void pod_tf_context_ring_came_home(pod_tf *tf, int32_t number, int which);

/** Rows of all chips, chip by chip, to the order of sequences, or back. @return other numbers */
int32_t pod_tf_context_regroup(pod_tf *tf, int32_t from, bool back);

/* ---- ulysses ---- */

void pod_tf_context_exchange(pod_tf *tf, const pod_layer *layer, int32_t op, int32_t qkv);
void pod_tf_context_share_attend(pod_tf *tf, const pod_layer *layer);
void pod_tf_context_exchange_result(pod_tf *tf, const pod_layer *layer, int32_t op,
                                    const int32_t qkv_context[2]);
void pod_tf_context_exchange_back(pod_tf *tf, const pod_layer *layer, int32_t op,
                                  const int32_t qkv_dcontext_dqkv[3]);
void pod_tf_context_share_attend_back(pod_tf *tf, const pod_layer *layer);
void pod_tf_context_exchange_dqkv(pod_tf *tf, const pod_layer *layer, int32_t op);

/** Before queries and keys are rotated back by the last core op: derivatives that have come from other chips.
 *  @return false: all of them are in their place, not rotated; true: nothing is left to do */
bool pod_tf_context_collect(pod_tf *tf, const pod_layer *layer, int32_t dqkv, int32_t raw);
