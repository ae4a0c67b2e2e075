/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_mlp.h
 *  Private to workload/transformer/: the MLP of a layer, dense or of experts.
 *
 *  Ownership: borrows everything. Errors stick in tf->build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** What the backward pass of an MLP starts from, kept or done again. */
typedef struct pod_tf_mlp {
    int32_t wi;    /**< what is before the function */
    bool in_used;  /**< weights before the function are at hand: they were used again */
    bool out_used; /**< likewise those after it */
} pod_tf_mlp;

/** From the normed input `xn` to the output. */
int32_t pod_tf_mlp_forward(pod_tf *tf, const pod_layer *layer, int32_t xn);
/** What isn't kept and backward reads, again. */
pod_tf_mlp pod_tf_mlp_again(pod_tf *tf, const pod_layer *layer, int32_t xn);
/** @return derivative by the normed input */
int32_t pod_tf_mlp_backward(pod_tf *tf, const pod_layer *layer, int32_t xn, const pod_tf_mlp *mlp,
                            int32_t dy);
