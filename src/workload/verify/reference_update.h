/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_update.h  Private to workload/verify: how a reference's weights are updated, and how
 *  far from that chips' may be.
 *
 *  Model: first steps, moments 0 before, where nothing else is said. With gradient g, s² its error and b = lambda · s:
 *
 *      sgd                w - rate · g             rate² s²
 *      sgd-momentum       w - rate · (0.9 m + g)   likewise; m, exact, is not 0 after another step
 *      adam               w - rate · u(g)          the largest change of u(g) = g / (|g| + epsilon) within b: it is
 *                                                  monotonic, so at one of the ends
 *      lars               w - rate · eta · t · g   t = |w| / |g|, norms over a part of a layer
 *      lamb               w - rate · t · u(g)      t = |w| / |u|
 *
 *  Errors of a norm are those of its elements all in one direction: |g| changes by no more than b_n, b_n² = Σ b², and
 *  u² of an element whose sign isn't sure by 1. Norms of weights are exact. Errors of updates are those with norms as
 *  they are here: norms that chips found are compared by themselves, and then stand for these (place_check.c).
 *  All in f32, which rounds a few times.
 *  Sources: You et al. 2017 (LARS), 2020 (LAMB).
 *
 *  Ownership: borrows everything. Threads: none. */
#pragma once

#include "workload/verify/reference_step.h"

/** Sums of squares of a part of a layer, or of an end of the model. */
typedef struct pod_reference_norms {
    double weights;
    double directions; /**< gradients, or adam's steps */
    double below;      /**< the least and the most that chips may have instead */
    double above;
} pod_reference_norms;

/** Of all arrays in the part of one of them. */
pod_reference_norms pod_reference_norms_of(const pod_reference_step *step,
                                           const pod_transformer_array *array);

/** |w| / |direction| of sums of squares; 1 where either is 0. */
double pod_reference_trust(double weights, double directions);

/** A weight after the update, and its moments, which hold those before it until then; without value: there are none. */
typedef struct pod_reference_moved {
    pod_inexact weight;
    pod_inexact moment[2];
} pod_reference_moved;

/** @param norms  NULL, or those of its part */
void pod_reference_update(const pod_reference_step *step, const pod_reference_weight *weight,
                          const pod_reference_norms *norms, const pod_reference_moved *moved);
