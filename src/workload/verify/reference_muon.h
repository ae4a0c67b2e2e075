/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_muon.h  Private to workload/verify: updates of Muon, step by step.
 *
 *  Model: of a matrix [k, n] with gradient g, moments 0 before, the moment is g and the direction U = 1.95 g in bf16.
 *  X0 = U / |U|, then five steps X = a X + B X (a X + X B where k > n), A = X Xᵀ (Xᵀ X), B = b A + c A A, all stored in
 *  bf16; w - rate · X5. Steps multiply a small singular value by 3.4 each, and by magnitude errors by more, so bounds
 *  through all of them would be wider than values: each step starts from what chips had before it.
 *
 *      X0      s²(U) / |U|² + u² X0²; and X0² Σ s² / |U|², as the errors of |U| are those of its elements all in one
 *              direction
 *      A       as a matmul of t partial sums; B: (|b| s(A) + √2 |c| s(A A))², for all have the errors of A; stored
 *      a X + B X  as a matmul, X exact; stored
 *      w       without chips' matrices: an element of X5 is no larger than its largest singular value, 1.21 and
 *              rounding, as a x + b x³ + c x⁵ is between -1.21 and 1.21 for |x| <= 1.21
 *
 *  Source: Jordan et al. 2024.
 *
 *  Ownership: borrows everything. Threads: none. */
#pragma once

#include "workload/verify/reference_update.h"

/** Of the arena, for an array. */
size_t pod_reference_newton_bytes(const pod_transformer_array *array);
/** X0 of a weight's matrices. */
void pod_reference_newton_begin(const pod_reference_step *step, const pod_reference_weight *weight,
                                const pod_inexact *x);
/** A step. @param before  what chips had before it, exact */
void pod_reference_newton_step(pod_reference_step *step, const pod_transformer_array *array,
                               const float *before, const pod_inexact *x);
/** The weight and its moment. @param last  what chips had after the last step; NULL: any such matrix */
void pod_reference_muon(const pod_reference_step *step, const pod_reference_weight *weight,
                        const float *last, const pod_reference_moved *moved);
