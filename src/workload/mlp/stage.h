/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/stage.h  Private to workload/: what a model does in one pipeline stage.
 *
 *  Model: workload/mlp/train.c drives every model the same way: microbatches through the layers of a stage in
 *  1F1B order, inputs and targets or messages at its ends, gradients and the update. A model says what
 *  a layer does forward and backward, and which weights it uses, in pod_stage_ops.
 *
 *  Weights: stored cut over fsdp and tensor; `compute` is what products use: the same array, or its
 *  copy in the model's dtype when weights are stored in f32.
 *  Ownership: init/fini. Threads: none. */
#pragma once

#include "workload/build/build.h"
#include "workload/build/product.h"
#include "workload/build/uses.h"
#include "workload/request.h"

typedef struct pod_weight {
    char name[POD_SHARDED_NAME_MAX]; /**< "W1" */
    int32_t layer;
    pod_array stored;
    pod_array compute;
    pod_array partial;  /**< products so far, not summed over chips */
    pod_array gradient; /**< summed over fsdp; complete after the last microbatch */
    pod_array moments[2];
} pod_weight;

typedef struct pod_stage pod_stage;

typedef struct pod_stage_ops {
    int weights_per_layer;
    /** Arrays kept from forward to backward, per layer and microbatch. */
    int (*saved)(const pod_stage *stage);
    /** Sharding and whole size (of one microbatch) of what goes in, and of what comes out. */
    pod_sharding (*input)(const pod_stage *stage, int64_t size[2]);
    pod_sharding (*output)(const pod_stage *stage, int64_t size[2]);
    /** Make weight number `index` of a layer. */
    void (*weight)(pod_stage *stage, int32_t layer, int index, pod_weight *weight);
    /** Which weight use number `use` of a layer is (0 … weights_per_layer). */
    int (*use)(int use, bool backward);
    pod_array (*forward)(pod_stage *stage, int32_t layer, int32_t part, const pod_array *x);
    /** @return the derivative by the layer's input */
    pod_array (*backward)(pod_stage *stage, int32_t layer, int32_t part, const pod_array *dy);
} pod_stage_ops;

extern const pod_stage_ops pod_mlp_ops;
extern const pod_stage_ops pod_mlp_ring_ops; /**< products over tensor piece by piece */
extern const pod_stage_ops pod_matmul_ops;

struct pod_stage {
    const pod_step_request *request;
    const pod_stage_ops *ops;
    pod_build build;
    int32_t number;
    int32_t count;       /**< stages */
    int32_t first_layer; /**< layers are counted over all stages */
    int32_t layers;
    int64_t rows;        /**< of one microbatch, all chips */
    pod_weight *weights; /**< weights[(layer - first_layer) · weights_per_layer + index] */
    pod_array *saved;   /**< saved[(part · layers + layer - first_layer) · saved_per_layer + i] */
    pod_array *scratch; /**< scratch[ops->saved()], of one layer at a time */
    pod_array *ends;    /**< ends[part]: output, then derivative of the loss by it */
};

pod_weight *pod_stage_weight(const pod_stage *stage, int32_t layer, int index);
pod_array *pod_stage_saved(const pod_stage *stage, int32_t layer, int32_t part, int i);
/** Backward of `part` reads the array: it is stacked with those of the other layers. */
void pod_stage_keep(pod_stage *stage, int32_t part, const pod_array *array);

/** Make the arrays of a weight and name its tensors. @param sharding  as stored */
void pod_weight_make(pod_stage *stage, pod_weight *weight, int32_t layer,
                     const pod_sharding *sharding, const int64_t size[2]);
/** Which of the products that add up to a gradient: microbatches, and pieces of each. */
typedef struct pod_gradient_piece {
    int32_t part;
    int32_t piece;
    int32_t pieces;
} pod_gradient_piece;

/** gradient += a · b; the collectives follow the last piece, or the last microbatch. */
void pod_weight_gradient(pod_stage *stage, pod_weight *weight, pod_gradient_piece which,
                         const pod_array *a, const pod_array *b);
void pod_weight_update(pod_stage *stage, pod_weight *weight);

/** A layer of an MLP, shared by both ways of doing it (mlp.c). */
typedef enum pod_mlp_weight { POD_MLP_W1, POD_MLP_W2, POD_MLP_WEIGHTS } pod_mlp_weight;
pod_sharding pod_mlp_activations(const pod_stage *stage, const char *name, bool hidden);
void pod_mlp_weight_make(pod_stage *stage, int32_t layer, int index, pod_weight *weight);
int pod_mlp_use(int use, bool backward);
/** max(h, 0) in place. */
pod_array pod_mlp_relu(pod_stage *stage, int32_t layer, const pod_array *h);
/** (h > 0) · dh, in place of dh. */
pod_array pod_mlp_relu_backward(pod_stage *stage, int32_t layer, const pod_array *h,
                                const pod_array *dh);

/** The ops by which the batch comes in; before all others. */
void pod_stage_input(pod_stage *stage);

/** Something for a microbatch, forward or backward. */
typedef void pod_part_visitor(void *context, int32_t part, bool backward);
/** What a kind of model does in a stage. */
typedef struct pod_stage_driver {
    void *context;
    pod_part_visitor *declare; /**< the uses of weights */
    pod_part_visitor *run;
    void (*update)(void *context); /**< of all weights */
} pod_stage_driver;
/** Everything in order after the input: the uses of all microbatches, the microbatches in 1F1B order, the update.
 *  @param stage  request, build, number and count are looked at */
void pod_stage_drive(pod_stage *stage, const pod_stage_driver *driver);

/** Build the program of one stage. @return build's status */
pod_status pod_stage_program(const pod_step_request *request, pod_step_work *work, int32_t number,
                             pod_error *err);
