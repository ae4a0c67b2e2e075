/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/weight.h  Private to workload/: weights with real data, their gradients and their update.
 *
 *  Model: stored cut over fsdp and tensor; `compute` is what matmuls use: the same array, or its copy in the
 *  model's dtype when weights are stored in f32.
 *
 *  Ownership: plain values. Errors stick in stage->build.st. Threads: none. */
#pragma once

#include "workload/build/stage.h"

typedef struct pod_weight {
    char name[POD_SHARDED_NAME_MAX]; /**< "W1" */
    int32_t layer;
    pod_array stored;
    pod_array compute;
    pod_array partial;  /**< products so far, not summed over chips */
    pod_array gradient; /**< summed over fsdp; complete after the last microbatch */
    pod_array moments[2];
    bool of_conv; /**< a convolution's, by whose derivative its gradient is made */
    pod_conv_shape conv;
} pod_weight;

/** Make the arrays of a weight and name its tensors. @param sharding  as stored */
void pod_weight_make(pod_stage *stage, pod_weight *weight, int32_t layer,
                     const pod_sharding *sharding, const int64_t size[2]);

/** Which of the products that add up to a microbatch's gradient. */
typedef struct pod_gradient_piece {
    int32_t piece;
    int32_t pieces;
} pod_gradient_piece;

/** gradient += a · b; the collectives follow the last piece, or the last microbatch. */
void pod_weight_gradient(pod_stage *stage, pod_weight *weight, pod_gradient_piece which,
                         const pod_array *a, const pod_array *b);
void pod_weight_update(pod_stage *stage, pod_weight *weight);
