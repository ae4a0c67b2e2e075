/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_mlp.h
 *  Private to workload/transformer/: the MLP of a layer, dense or of experts.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** From the normed input `xn` to the output. @param beside  what is summed with it, not yet over tensor; NONE */
int32_t pod_tf_mlp_forward(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t beside);
/** What isn't kept and backward reads, again. */
pod_tf_mlp pod_tf_mlp_again(pod_tf *tf, const pod_layer *layer, int32_t xn);
/** Whether backward's first matmul, by the output, runs beside the sum over tensor of attention's output that is done
 *  again: it needs nothing of what that leads to. Only of dense parts. */
bool pod_tf_mlp_begins_early(const pod_tf *tf, const pod_layer *layer);
/** That matmul. @param dy  by the output @return what pod_tf_mlp.dh takes; dh_there and out_used say that it is */
int32_t pod_tf_mlp_begin_early(pod_tf *tf, const pod_layer *layer, int32_t dy);
/** @return derivative by the normed input. Derivatives by weights are put off if tf->puts_off says so */
int32_t pod_tf_mlp_backward(pod_tf *tf, const pod_layer *layer, int32_t xn, const pod_tf_mlp *mlp,
                            int32_t dy);
