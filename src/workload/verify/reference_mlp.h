/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference_mlp.h  Private to workload/verify: the MLP of a layer of the reference, dense or of
 *  experts.
 *
 *  Ownership: states lie in the arena of the step. Threads: none. */
#pragma once

#include "workload/verify/reference_step.h"

/** state->y from state->xn2. */
void pod_reference_mlp(pod_reference_step *step, pod_reference_state *state);
/** And back: dxn += the derivative. */
void pod_reference_mlp_back(pod_reference_step *step, pod_reference_state *state,
                            const pod_inexact *dy, const pod_inexact *dxn);
