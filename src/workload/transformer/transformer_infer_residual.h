/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_infer_residual.h
 *  Private to workload/transformer/: numbers of the residual path of inference, its norms and sums
 *  (transformer_infer_numbers.h has the model). Over fsdp each chip has some columns, and norms need sums over it.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Functions with `op` do nothing in a program
 *  without numbers, nor those of fsdp without it. Threads: none. */
#pragma once

#include "workload/transformer/transformer_infer_state.h"

/** Where what goes to the residual path is added up. */
int32_t pod_tf_infer_sum_of(pod_tf *tf, pod_tf_infer_numbers *n);
/** The last core op adds the results of each token's experts, times their shares. */
void pod_tf_infer_results(pod_tf *tf, pod_tf_infer_numbers *n);
/** Results that came back are added up in this op, not in the next norm. */
void pod_tf_infer_return(pod_tf *tf, pod_tf_infer_numbers *n);
/** `op` adds up what is added to the residual path; POD_OP_NONE: no chips to add up over. */
void pod_tf_infer_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op);
/** The last core op adds that, and norms. */
void pod_tf_infer_norm(pod_tf *tf, pod_tf_infer_numbers *n);

/* Over fsdp. */

/** `op` gathers the residual path, or what is added to it, over tensor; POD_OP_NONE: it is whole. */
void pod_tf_infer_gather_x(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op);
/** Sums of each row for its norm, by the last core op; `op` adds them up. */
void pod_tf_infer_squares(pod_tf *tf, pod_tf_infer_numbers *n);
void pod_tf_infer_squares_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op);
/** The last core op takes the last row of each sequence. */
void pod_tf_infer_last(pod_tf *tf, pod_tf_infer_numbers *n);
/** `op` adds up the logits of a router, or of the head, which are taken, without fsdp, too. */
void pod_tf_infer_router_sum(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t op);
void pod_tf_infer_head_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op);
