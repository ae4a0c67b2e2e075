/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_infer_cut.h
 *  Private to workload/transformer/: numbers of inference over fsdp, whose chips have pieces of d_model.
 *
 *  Model: each chip has some columns of the residual path, and of each weight the part that multiplies or gives these.
 *  A norm needs sums over fsdp. What products by d_model give is summed and scattered: `heads` pieces of columns (by
 *  heads; of hidden rows likewise) times `rows` of sequences, columns first. What is gathered comes back like that, and
 *  is put together in front of the next product. Between two such collectives a chip works as if tensor cut `heads`
 *  times as many heads, and data the sequences.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. All functions but the first two do nothing in a
 *  program without numbers, or without fsdp. Threads: none. */
#pragma once

#include "workload/transformer/transformer_infer_state.h"

pod_tf_infer_shares pod_tf_infer_shares_of(const pod_layer *layer, const pod_work_layout *layout);
/** @return POD_E_INVALID: what has no numbers over fsdp, or doesn't divide */
pod_status pod_tf_infer_cut_check(const pod_step_request *request, const pod_work_layout *layout,
                                  pod_error *err);

/** `op` sums and scatters what projections give (with hidden rows beside them, in a parallel layer), or hidden rows of
 *  the MLP or of experts. */
void pod_tf_infer_scatter_qkv(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer,
                              int32_t op);
void pod_tf_infer_scatter_hidden(pod_tf *tf, pod_tf_infer_numbers *n, bool of_experts, int32_t op);
/** The last core op takes what a parallel layer scattered together apart. */
void pod_tf_infer_split(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer);
/** `op` gathers the context (of a parallel layer with the MLP's hidden rows), or hidden rows. */
void pod_tf_infer_gather_context(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op);
void pod_tf_infer_gather_hidden(pod_tf *tf, pod_tf_infer_numbers *n, bool of_experts, int32_t op);
/** Columns of what was gathered, put together by the last core op. @param first  piece's column  @return numbers */
int32_t pod_tf_infer_whole(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t gathered,
                           int64_t first, int64_t columns);
