/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_layer.h  Private to workload/verify: one layer of the reference, forward and
 *  backward, for some sequences.
 *
 *  Ownership: states lie in the arena of the step. Threads: none. */
#pragma once

#include "workload/verify/reference_step.h"

/** What layer `number` gives for x. */
pod_inexact pod_reference_layer(pod_reference_step *step, pod_reference_state *state,
                                int64_t number, const pod_inexact *x);
/** The derivative by x, in place of dy. */
void pod_reference_layer_back(pod_reference_step *step, pod_reference_state *state,
                              const pod_inexact *dy);

/** Bytes of an arena for a layer: what it keeps, and what its way back takes at most beside. */
size_t pod_reference_layer_bytes(const pod_reference_step *step, int64_t number);
