/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/transformer_reference.h  A step of a transformer on one chip, in f64, and how far from it the
 *  chips of any layout may be.
 *
 *  Model: the arrays and definitions of transformer_data.h, forward, backward and update, sequence by sequence. It
 *  shares no code with the programs that chips execute, but BLAS.
 *
 *  Each value x has a bound beside it: lambda · s(x), where s² adds up the squares of what the rounding errors of all
 *  stored values on the way to x change in it, to first order (docs/transformer.md, "Real numbers", op by op).
 *  A worst case would be larger than the values after two bf16 matmuls. A stored value is rounded by up to u of its
 *  magnitude, u = 2^-8 (bf16) or 2^-24 (f32). If these errors are independent with mean 0, |error| <= lambda · s but
 *  for a share 2·exp(-lambda²/2) of the elements (Hoeffding 1963; Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
 *
 *  Use: pod_transformer_reference_new, _compute (on one rank), _find each array and compare. Other ranks: _new, then
 *  broadcast the block of pod_transformer_reference_block into theirs.
 *
 *  Ownership: new/free; it copies the model, borrows choices, tokens and emulation until compute returns. Threads:
 *  none. */
#pragma once

#include "workload/verify/reference_request.h"

typedef struct pod_transformer_reference pod_transformer_reference;

/** @return POD_E_INVALID: a model or dtype that has no real numbers (the text says which part); POD_E_NOMEM */
pod_status pod_transformer_reference_new(const pod_transformer_reference_args *args,
                                         pod_transformer_reference **reference, pod_error *err);
void pod_transformer_reference_free(pod_transformer_reference *reference);

/** Bytes that compute needs at most, what is kept afterwards included; INT64_MAX if too many. */
int64_t pod_transformer_reference_bytes(const pod_transformer_reference *reference);

/** Execute the step. @return POD_E_NOMEM; POD_E_CHECK: choices that differ where the reference is sure, or more than
 *  1 % of all tokens' choices are nearer than their error */
pod_status pod_transformer_reference_compute(pod_transformer_reference *reference, pod_error *err);

/** Tokens, all layers together, whose choice of experts was nearer than its error. */
int64_t pod_transformer_reference_near(const pod_transformer_reference *reference);

/** The results as one block of memory, the same size on every rank; borrowed. @return POD_E_NOMEM */
pod_status pod_transformer_reference_block(pod_transformer_reference *reference, void **data,
                                           size_t *size, pod_error *err);

/** An array of the results; borrowed. */
typedef struct pod_transformer_values {
    const double *value; /**< [rows, columns] */
    const float *bound;  /**< likewise, >= 0 */
    int64_t rows;
    int64_t columns;
    double largest; /**< |value| */
} pod_transformer_values;

/** Names, with NAME of pod_transformer_array (rows: of all groups):
 *
 *      "loss"                 [1, 1], train        "logits"           [batch · seq, vocab], if not train
 *      "hidden.L"             [batch · seq, d_model], what layer L gives, -1 the embedding; if asked for
 *      "squares.N"            [batch · seq, 1 or 2] if asked for: of each row that a norm reads the sum of squares, of
 *                             layer norms the sum, then that. N = 2 L of layer L's before attention, 2 L + 1 of
 *                             its MLP's (not in a parallel layer), 2 · layers of the last one
 *      "input.L", "derivative.L"  [batch · seq, d_model], what layer L starts from and, in train, the derivative by
 *                             what it gives, if it follows chips (args.followed)
 *      "newton0.NAME", … "newton5.NAME"  muon, if it follows chips: matrices of norm 1, and after each step
 *      "gradient.NAME"        train                "weight.NAME"      train: after the update
 *      "moment1.NAME", "moment2.NAME"              train, with optimizers that have them: after the update
 *      "norms.NAME"           [1, 2], lars, lamb: sums of the squares of weights, and of gradients or adam's steps, of
 *                             the part of a layer that the array is in
 *
 *  @return false: there is none of that name */
bool pod_transformer_reference_find(const pod_transformer_reference *reference, const char *name,
                                    pod_transformer_values *values);

/** Comparison of parts of arrays with the reference; adds up. */
typedef struct pod_transformer_check {
    int64_t checked;
    int64_t wrong; /**< elements beyond their bound; NaN is */
    double error;  /**< largest |difference| / |largest value of its array| */
    double share;  /**< largest |difference| / bound */
} pod_transformer_check;

/** @param got  the patch, row-major, of dtype */
void pod_transformer_compare(pod_transformer_check *check, const pod_transformer_values *values,
                             const pod_patch *patch, pod_dtype dtype, const void *got);

typedef enum pod_transformer_verdict {
    POD_TOKEN_SAME, /**< no logit of the reference is larger */
    POD_TOKEN_NEAR, /**< its logit is nearer to the largest than their error: as right */
    POD_TOKEN_WRONG
} pod_transformer_verdict;

/** What to think of a token that chips decoded. The reference goes on with it: it is computed for prompts and decoded
 * tokens together (args.tokens), and `row` is that of the token before.
 *  @param logits   of the reference
 *  @param classes  it was to be one of those that are the same modulo this; 1: any */
pod_transformer_verdict pod_transformer_judge(const pod_transformer_values *logits, int64_t row,
                                              int32_t token, int64_t classes);
