/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/stage.h  Private to workload/: the one generator of training and forward programs.
 *
 *  Model: a stage is a run of layers on its chips. Whatever the model, its program is
 *
 *      the batch                   (workload/build/input.h)
 *      weights                     as they are stored
 *      microbatches                in 1F1B order: forward through all layers, backward through all layers
 *      update                      of all weights
 *
 *  The first stage begins with the input and ends with what follows its derivative, the last one has the output and
 *  the loss; between stages activations go on and their derivatives come back as messages. Weights come to their
 *  uses in the order in which pod_stage_ops.declare names them, `gather_ahead` uses ahead (workload/build/uses.h).
 *  A model says in pod_stage_ops what a layer and the ends do.
 *
 *  Ownership: init/fini; borrows request and work. Errors stick in build.st. Threads: none. */
#pragma once

#include "workload/build/build.h"
#include "workload/build/request.h"

typedef struct pod_stage pod_stage;

/** What a model does, of the microbatch stage->part where there is one. Arrays that are passed on are of the
 *  stage's own program; .op is the op that makes them. */
typedef struct pod_stage_ops {
    /** Weights of all layers and ends. */
    void (*weights)(pod_stage *stage);
    /** Declare the uses of a layer's weights, in their order. */
    void (*declare)(pod_stage *stage, int32_t layer, bool backward);
    /** Likewise those of the last stage's output, after the layers forward; NULL: none. */
    void (*declare_output)(pod_stage *stage);
    /** Of the first stage: what goes into its first layer. */
    pod_array (*input)(pod_stage *stage);
    /** Room for what another stage sends: activations, or, backward, the derivative by the output. */
    pod_array (*entry)(pod_stage *stage, bool backward);
    pod_array (*forward)(pod_stage *stage, int32_t layer, const pod_array *x);
    /** Of the last stage: output and loss. @return the derivative by `x` when training */
    pod_array (*output)(pod_stage *stage, const pod_array *x);
    /** @return the derivative by the layer's input */
    pod_array (*backward)(pod_stage *stage, int32_t layer, const pod_array *dy);
    /** Of the first stage: what becomes of the derivative by its input. */
    void (*finish)(pod_stage *stage, const pod_array *dx);
    void (*update)(pod_stage *stage);
} pod_stage_ops;

struct pod_stage {
    const pod_stage_ops *ops;
    const pod_step_request *request;
    pod_build build;
    int32_t number;
    int32_t count;       /**< stages */
    int32_t first_layer; /**< layers are counted over all stages */
    int32_t layers;
    int32_t part;    /**< microbatch under way */
    pod_array *ends; /**< ends[part]: derivative by the output of the last layer */
};

/** @param number  of the stage in work->programs */
void pod_stage_init(pod_stage *stage, const pod_stage_ops *ops, const pod_step_request *request,
                    pod_step_work *work, int32_t number, pod_error *err);
void pod_stage_fini(pod_stage *stage);

/** Everything in order. @return POD_E_NOMEM, or the first error of the model's ops */
pod_status pod_stage_build(pod_stage *stage);

/** Name an array of the stage, for real data (workload/build/tensors.h).
 *  @param of_part  it is the rows of the microbatch under way; else it is whole */
void pod_stage_tensor(pod_stage *stage, const char *name, pod_tensor_role role,
                      const pod_array *array, bool of_part);
