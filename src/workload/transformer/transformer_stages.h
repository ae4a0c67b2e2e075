/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_stages.h
 *  Private to workload/transformer/: numbers that go round the stages of a pipeline.
 *
 *  Model: see workload/build/circular.h. Microbatches are rows of a stage's share. They are put together by the op that
 *  sends the share, or by the last core op where it stays; and are copied out of it by the first core op that works on
 *  them. Gradients of weights
 *  that several stages have travel in as many pieces as these are: the op that sends a piece copies it, what comes is
 *  added, and the update begins with putting the sums together. Of 1F1B pipelines the first stage and the last one have
 *  a tied table.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** As pod_stage_ops.rows. */
void pod_tf_stages_rows(pod_stage *stage, int32_t op, const pod_array *whole, const pod_array *part,
                        int32_t i, bool join);
/** The next core op works on these rows: it copies them out of a share that they lie in. */
void pod_tf_stages_take(pod_tf *tf, int32_t buffer);

/** The stages that share weights, as one of them sees them. */
typedef struct pod_tf_stages_list {
    int32_t count;
    int32_t place; /**< of this stage among them */
    int32_t next;  /**< stages */
    int32_t before;
} pod_tf_stages_list;

pod_tf_stages_list pod_tf_stages_ring(const pod_tf *tf);

/** Pieces of a gradient before the ring: of `elements` each, which `buffer` stands for one after the other. */
void pod_tf_stages_begin(pod_tf *tf, pod_tf_bundle *bundle, int64_t elements);
/** `op`, the first, sends this stage's own. */
void pod_tf_stages_send(pod_tf *tf, const pod_tf_bundle *bundle, int32_t op, int32_t buffer);
/** `buffer` stands for what comes in a step. */
void pod_tf_stages_receive(pod_tf *tf, const pod_tf_bundle *bundle, int32_t step, int32_t buffer);
/** The last core op adds this stage's own to it. */
void pod_tf_stages_add(pod_tf *tf, const pod_tf_bundle *bundle, int32_t step, int32_t buffer);
/** The gradient stands for all pieces together, by the last core op. */
void pod_tf_stages_end(pod_tf *tf, const pod_tf_bundle *bundle);
