/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_layer.h  Private to workload/transformer/: a layer, forward and backward.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** A layer, from the buffer of its input to that of its output; backward, from the derivative by the output
 *  to the one by the input. */
int32_t pod_tf_layer_forward(pod_tf *tf, int32_t x);
int32_t pod_tf_layer_backward(pod_tf *tf, int32_t dy);
/** Declare the uses of weights of a layer, in their order. */
void pod_tf_layer_declare(pod_tf *tf, int32_t layer, bool backward);
