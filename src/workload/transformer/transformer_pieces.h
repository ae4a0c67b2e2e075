/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_pieces.h
 *  Private to workload/transformer/: matmuls whose rows are gathered, or whose results are summed, over tensor.
 *
 *  Model: a layer's matmuls over tensor come in pairs: the first one's operand is whole on all n chips, the second
 *  one's result is summed. Without collective matmul that is an all-reduce after the second. With it the all-reduce
 *  is its two halves, each taken apart into the pieces of n chips (Wang et al., Overlap Communication with Dependent
 *  Computation via Decomposition, ASPLOS 2023), T tokens:
 *
 *      multiply and scatter   sums of T/n rows travel round the ring, both ways; every chip on the way adds its
 *                             product, the last one has the whole sum of its T/n rows
 *      gather and multiply    pieces of T/n rows travel round, each multiplied when it comes
 *
 *  In between, in norms and residuals, a chip works on its T/n rows. n - 1 permutes of T/n rows are as many bytes
 *  as the half of an all-reduce. What is not a matmul (rows of experts, the embedding, tiles of the vocabulary)
 *  reduce-scatters and gathers in one collective. Rows come from the embedding whole. What backward computes again
 *  begins with the rows that were kept, so they are gathered again.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_turns.h"

/** Rows of a chip between the layers' matmuls: tokens, or their share of tensor. */
int64_t pod_tf_rows(const pod_tf *tf);
/** Room for them. */
int32_t pod_tf_row_buffer(pod_tf *tf, const char *name, int64_t width);
/** Room for all rows that are gathered from a buffer of pod_tf_rows; the same where these are all. */
int32_t pod_tf_whole_buffer(pod_tf *tf, const char *name, int32_t buffer, int64_t width);

/** The products. @param gather  rows are shares of tensor and are gathered as they are multiplied */
void pod_tf_multiply(pod_tf *tf, const pod_tf_products *products, bool gather);
/** The same, and their sum over tensor begins. @param products  borrowed until the end */
pod_tf_summing pod_tf_multiply_sum(pod_tf *tf, const pod_tf_products *products);
/** Derivatives by weights, beside a sum: of each product [k, rows] · [rows, n], in parts between the pieces. */
void pod_tf_multiply_weights(pod_tf *tf, pod_tf_summing *summing, const pod_tf_products *weights);
/** A matmul later. @param by_weights  a derivative as above @param bundle  whose gradient it completes, or NULL */
void pod_tf_put_off(pod_tf *tf, const pod_tf_product *product, bool by_weights,
                    pod_tf_bundle *bundle);
/** All that was put off; nothing is any more. */
void pod_tf_put_off_end(pod_tf *tf);
/** The next core op finds the sum of pod_tf_rows. */
void pod_tf_multiply_sum_end(pod_tf *tf, pod_tf_summing *summing);

/** Gather rows in one collective, if they are shares of tensor; the next core op waits for it. @return it, or NONE */
int32_t pod_tf_gather_rows(pod_tf *tf, const char *name, int32_t buffer);
/** Sum rows over tensor that no matmul makes. @param names  of the reduce-scatter, of the all-reduce */
void pod_tf_sum_rows(pod_tf *tf, const char *const names[2], int32_t buffer);
