/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_mlp.h
 *  Private to workload/transformer/: the MLP of a layer, dense or of experts.
 *
 *  Ownership: borrows everything. Errors stick in tf->build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** The MLP of a layer (transformer_mlp.c): from the normed input `xn` to its output. `again`: only as far as
 *  backward needs. */
int32_t pod_tf_mlp_forward(pod_tf *tf, const pod_layer *layer, int32_t xn, bool again);
/** @param wi  what is before the function; @return derivative by the normed input */
int32_t pod_tf_mlp_backward(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t wi, int32_t dy);
