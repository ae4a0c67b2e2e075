/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_head.h  Private to workload/verify: from the last layer of the reference to the
 *  logits, and back (workload/verify/transformer_data.h).
 *
 *  Ownership: arrays lie in the arena of the step. Threads: none. */
#pragma once

#include "workload/verify/reference_step.h"

/** What the head keeps for its way back. */
typedef struct pod_reference_head {
    pod_inexact x; /**< rows of the tokens that it reads */
    pod_inexact xn;
    pod_inexact hidden; /**< a dense head: before the function, after it, and after the norm */
    pod_inexact h;
    pod_inexact out;
} pod_reference_head;

/** Tokens of a sequence that it reads: all, or some. */
int64_t pod_reference_head_tokens(const pod_reference_step *step);
/** The row of all tokens of the step that its row `row` reads. */
int64_t pod_reference_head_row(const pod_reference_step *step, int64_t row);

/** Logits of the tokens that it reads, of what the last layer gives. */
pod_inexact pod_reference_head_logits(pod_reference_step *step, const pod_inexact *x,
                                      pod_reference_head *state);
/** The derivative by that, stored, of the one by logits; gradients of the head's weights are added up. */
pod_inexact pod_reference_head_back(pod_reference_step *step, const pod_reference_head *state,
                                    const pod_inexact *dlogits);
