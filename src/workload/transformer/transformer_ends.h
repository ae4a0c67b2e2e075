/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_ends.h
 *  Private to workload/transformer/: what the ops at both ends of a model compute (transformer_numbers.h): the
 *  embedding, the rows that the head reads, the loss.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** The rows of all tokens of the chips of `cut`; backward their derivatives into the table's gradient.
 *  @param words  where the rows of the vocabulary are: the table, or a tied head
 *  @param first  whether nothing has been added to the gradient of either yet */
void pod_tf_number_pick(pod_tf *tf, const pod_tf_bundle *table, const pod_tf_bundle *words,
                        int32_t x);
void pod_tf_number_pick_back(pod_tf *tf, const pod_tf_bundle *table, const pod_tf_bundle *words,
                             int32_t dx, const bool first[2]);
/** x = tokens of pictures: patches times their weights, bias and positions; backward their gradient. */
void pod_tf_number_patches(pod_tf *tf, int32_t weights, int32_t x);
void pod_tf_number_patches_back(pod_tf *tf, int32_t dx, int32_t partial);
/** The rows of x that a head of some tokens reads. @return numbers that name them; and their derivatives in zeros */
int32_t pod_tf_number_head_rows(pod_tf *tf, int32_t x, int32_t rows);
void pod_tf_number_head_rows_back(pod_tf *tf, int32_t names, int32_t drows, int32_t dx);
void pod_tf_number_loss_sums(pod_tf *tf, int32_t sums);
/** Loss and the derivative by the logits, for which these stand from now on.
 *  @param sums  of all chips of tensor  @param again  of logits that were made again: the loss is counted already */
void pod_tf_number_loss(pod_tf *tf, int32_t sums, bool again);
