/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/mlp_state.h  Private to workload/mlp/: what the builder of one stage's program knows.
 *
 *  Model: the stage of a model of sharded arrays with real data: `mlp:` and `matmul:`. How a layer is done forward
 *  and backward, and which weights it uses, is in pod_mlp_ops.
 *
 *  Ownership: mlp_program.c makes and frees it. Errors stick in stage.build.st. Threads: none. */
#pragma once

#include "workload/build/stage.h"
#include "workload/build/weight.h"

typedef struct pod_mlp pod_mlp;

typedef struct pod_mlp_ops {
    int weights_per_layer;
    /** Arrays kept from forward to backward, per layer and microbatch. */
    int (*saved)(const pod_mlp *mlp);
    /** Sharding and whole size (of one microbatch) of what goes in, and of what comes out. */
    pod_sharding (*input)(const pod_mlp *mlp, int64_t size[2]);
    pod_sharding (*output)(const pod_mlp *mlp, int64_t size[2]);
    /** Make weight number `index` of a layer. */
    void (*weight)(pod_mlp *mlp, int32_t layer, int index, pod_weight *weight);
    /** Which weight use number `use` of a layer is (0 … weights_per_layer). */
    int (*use)(int use, bool backward);
    pod_array (*forward)(pod_mlp *mlp, int32_t layer, const pod_array *x);
    /** Where the output lies, if it lies in pieces of rows over tensor (workload/mlp/mlp_pieces.h), each like
     *  `output`; NULL: forward returns it. Backward finds the derivatives in their place. */
    pod_array *(*output_pieces)(const pod_mlp *mlp);
    /** @return the derivative by the layer's input */
    pod_array (*backward)(pod_mlp *mlp, int32_t layer, const pod_array *dy);
} pod_mlp_ops;

struct pod_mlp {
    pod_stage stage; /**< first: pod_stage_ops get it */
    const pod_mlp_ops *ops;
    int64_t rows;        /**< of one microbatch, all chips */
    pod_weight *weights; /**< weights[(layer - first_layer) · weights_per_layer + index] */
    pod_array *saved;   /**< saved[(part · layers + layer - first_layer) · saved_per_layer + i] */
    pod_array *scratch; /**< scratch[ops->saved()], of one layer at a time */
};

pod_weight *pod_mlp_weight(const pod_mlp *mlp, int32_t layer, int index);
/** Array number `i` that a layer keeps of the microbatch under way. */
pod_array *pod_mlp_saved(const pod_mlp *mlp, int32_t layer, int i);
/** Backward of the microbatch reads the array: it is stacked with those of the other layers. */
void pod_mlp_keep(pod_mlp *mlp, const pod_array *array);
