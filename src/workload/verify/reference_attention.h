/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_attention.h  Private to workload/verify: attention of a layer of the reference.
 *
 *  Ownership: states lie in the arena of the step. Threads: none. */
#pragma once

#include "workload/verify/reference_step.h"

/** state->out from state->xn. */
void pod_reference_attention(pod_reference_step *step, pod_reference_state *state);
/** And back: dxn += the derivative. */
void pod_reference_attention_back(pod_reference_step *step, pod_reference_state *state,
                                  const pod_inexact *dout, const pod_inexact *dxn);
