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
 *  or, of a circular pipeline, in the order of workload/build/circular.h.
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
#include "workload/build/visits.h"

/** What a model does, of the microbatch stage->part where there is one. Arrays that are passed on are of the
 *  stage's own program; .op is the op that makes them. */
typedef struct pod_stage_ops {
    /** Weights of all layers and ends. */
    void (*weights)(pod_stage *stage);
    /** Declare the uses of a layer's weights, in their order. */
    void (*declare)(pod_stage *stage, int32_t layer, bool backward);
    /** Likewise those of the first stage's input, before the layers forward; NULL: none. */
    void (*declare_input)(pod_stage *stage);
    /** Likewise those of the last stage's output, after the layers forward; NULL: none. */
    void (*declare_output)(pod_stage *stage);
    /** Of the first stage: what goes into its first layer. */
    pod_array (*input)(pod_stage *stage);
    /** Room for what another stage sends: activations, or, backward, the derivative by the output. */
    pod_array (*entry)(pod_stage *stage, bool backward);
    pod_array (*forward)(pod_stage *stage, int32_t layer, const pod_array *x);
    /** The stage now turns to so many microbatches at once. NULL: it always has one. */
    void (*resize)(pod_stage *stage, int32_t parts);
    /** What follows waits for an op, too. NULL: nothing ever does. */
    void (*wait)(pod_stage *stage, int32_t op);
    /** Before the backward pass through some layers, of which this is the last; NULL: nothing. */
    void (*prepare)(pod_stage *stage, int32_t layer);
    /** Of the last stage: output and loss. @return the derivative by `x` when training */
    pod_array (*output)(pod_stage *stage, const pod_array *x);
    /** @return the derivative by the layer's input */
    pod_array (*backward)(pod_stage *stage, int32_t layer, const pod_array *dy);
    /** Of the first stage: what becomes of the derivative by its input. */
    void (*finish)(pod_stage *stage, const pod_array *dx);
    void (*update)(pod_stage *stage);
    /** Of circular pipelines: `part` is rows `i` of `whole`; i < 0: all of them, and then those of this chip as op `op`
     *  sends them. Join: the other way round, done by op `op`, or by what has been added last (POD_OP_NONE). NULL:
     *  arrays have no numbers. */
    void (*rows)(pod_stage *stage, int32_t op, const pod_array *whole, const pod_array *part,
                 int32_t i, bool join);
} pod_stage_ops;

struct pod_stage {
    const pod_stage_ops *ops;
    const pod_step_request *request;
    pod_build build;
    int32_t number;
    int32_t count;       /**< stages */
    int32_t first_layer; /**< layers are counted over all stages */
    int32_t layers;      /**< local ones */
    pod_visits visits;
    void (*order)(pod_stage *stage); /**< of all but weights and update; NULL: 1F1B */
    bool circular;     /**< all stages share what stands before the pipeline and after it */
    bool outside;      /**< the stage is at its share of that */
    int32_t visit;     /**< under way */
    int32_t sent;      /**< circular: op that sends the latest output */
    int32_t part;      /**< microbatch under way */
    pod_array *starts; /**< circular: starts[part]: input of the first layer, then its derivative */
    pod_array *ends;   /**< ends[part]: output of the last layer, then the derivative by it */
};

/** @param number  of the stage in work->programs */
void pod_stage_init(pod_stage *stage, const pod_stage_ops *ops, const pod_step_request *request,
                    pod_step_work *work, int32_t number, pod_error *err);
void pod_stage_fini(pod_stage *stage);

/** Everything in order. @return POD_E_NOMEM, or the first error of the model's ops */
pod_status pod_stage_build(pod_stage *stage);

/** Messages of 1F1B from this number on are free for the model. */
int32_t pod_stage_messages(const pod_stage *stage);

/** Name an array of the stage, for real data (workload/build/tensors.h).
 *  @param of_part  it is the rows of the microbatch under way; else it is whole */
void pod_stage_tensor(pod_stage *stage, const char *name, pod_tensor_role role,
                      const pod_array *array, bool of_part);
