/* SPDX-License-Identifier: Apache-2.0 */
/* Ends and weights of models of sharded arrays; the order is workload/build/stage.c's. */
#include "workload/mlp/mlp_program.h"

#include "workload/build/uses.h"
#include "workload/mlp/conv.h"
#include "workload/mlp/matmul.h"
#include "workload/mlp/mlp.h"
#include "workload/mlp/mlp_pieces.h"
#include "workload/mlp/mlp_ring.h"

#include <stdlib.h>

static pod_mlp *of_stage(pod_stage *stage)
{
    return (pod_mlp *)stage; /* its first member */
}

/* ---- the ends of a stage ---- */

/** An array shaped like the stage's input or output. Of the batch, the input stays for the step; the
 * target is handed over to the loss. */
static pod_array end_array(pod_mlp *mlp, bool output, const char *name, pod_memory_kind kind)
{
    pod_build *build = &mlp->stage.build;
    int64_t size[2];
    const pod_sharding sharding = output ? mlp->ops->output(mlp, size) : mlp->ops->input(mlp, size);
    const pod_array array =
        pod_build_array(build, name, kind, false, build->dtype, &sharding, size);
    if (build->st == POD_OK) {
        pod_buffer *buffer = &build->program->buffers[array.buffer];
        buffer->given = kind == POD_MEMORY_INPUT && output;
        buffer->persistent = kind == POD_MEMORY_INPUT && !output;
    }
    return array;
}

static pod_array stage_input(pod_stage *stage)
{
    const pod_array x = end_array(of_stage(stage), false, "x", POD_MEMORY_INPUT);
    pod_stage_tensor(stage, "x", POD_TENSOR_INPUT, &x, true);
    return x;
}

static pod_array mlp_entry(pod_stage *stage, bool backward)
{
    return end_array(of_stage(stage), backward, backward ? "dy" : "x", POD_MEMORY_ACTIVATIONS);
}

/** The derivative of the loss by the output, or by a piece of it.
 *  @param y      what chips hold
 *  @param whole  the array whose shards that is */
static pod_array output_loss(pod_mlp *mlp, const pod_array *y, const pod_array *whole)
{
    pod_stage *stage = &mlp->stage;
    pod_stage_tensor(stage, "y", POD_TENSOR_OUTPUT, whole, true);
    if (stage->request->mode != POD_STEP_TRAIN) {
        return *y;
    }
    const pod_array target = end_array(mlp, true, "target", POD_MEMORY_INPUT);
    const pod_array empty = end_array(mlp, true, "dy", POD_MEMORY_ACTIVATIONS);
    const pod_elementwise loss = {
        .name = "loss",
        .layer = -1,
        .function = POD_VEC_RELU_GRAD,
        .in = {y, &target},
        .flops = 1,
        .bytes = 3 * pod_dtype_size(y->dtype)
    };
    pod_array whole_target = *whole;
    whole_target.buffer = target.buffer;
    pod_stage_tensor(stage, "target", POD_TENSOR_TARGET, &whole_target, true);
    return pod_build_vector(&stage->build, &loss, &empty);
}

static pod_array mlp_output(pod_stage *stage, const pod_array *y)
{
    pod_mlp *mlp = of_stage(stage);
    if (mlp->ops->output_pieces == NULL) {
        return output_loss(mlp, y, y);
    }
    pod_array *piece = mlp->ops->output_pieces(mlp);
    const int32_t count = pod_pieces_of(mlp).ring.n;
    for (int32_t s = 0; s < count; s++) {
        const pod_array whole = pod_pieces_back(mlp, &piece[s], s, &piece[s].sharding);
        piece[s] = output_loss(mlp, &piece[s], &whole);
    }
    return piece[0];
}

static void mlp_finish(pod_stage *stage, const pod_array *dx)
{
    pod_stage_tensor(stage, "dx", POD_TENSOR_GRADIENT, dx, true);
}

/* ---- layers and weights ---- */

static pod_array stage_forward(pod_stage *stage, int32_t layer, const pod_array *x)
{
    pod_mlp *mlp = of_stage(stage);
    return mlp->ops->forward(mlp, layer, x);
}

static pod_array stage_backward(pod_stage *stage, int32_t layer, const pod_array *dy)
{
    pod_mlp *mlp = of_stage(stage);
    return mlp->ops->backward(mlp, layer, dy);
}

static void mlp_declare(pod_stage *stage, int32_t layer, bool backward)
{
    const pod_mlp *mlp = of_stage(stage);
    for (int use = 0; use < mlp->ops->weights_per_layer; use++) {
        pod_weight *weight = pod_mlp_weight(mlp, layer, mlp->ops->use(use, backward));
        pod_build_use_declare(&stage->build, &weight->compute, backward ? "bwd" : "fwd", layer);
    }
}

static void mlp_weights(pod_stage *stage)
{
    pod_mlp *mlp = of_stage(stage);
    const int each = mlp->ops->weights_per_layer;
    for (int32_t i = 0; i < stage->layers * each; i++) {
        mlp->ops->weight(mlp, stage->first_layer + i / each, i % each, &mlp->weights[i]);
    }
}

/** From the last layer to the first, as gradients are completed. */
static void mlp_update(pod_stage *stage)
{
    const pod_mlp *mlp = of_stage(stage);
    for (int32_t i = stage->layers * mlp->ops->weights_per_layer - 1; i >= 0; i--) {
        pod_weight_update(stage, &mlp->weights[i]);
    }
}

static const pod_stage_ops mlp_stage_ops = {.weights = mlp_weights,
                                            .declare = mlp_declare,
                                            .input = stage_input,
                                            .entry = mlp_entry,
                                            .forward = stage_forward,
                                            .output = mlp_output,
                                            .backward = stage_backward,
                                            .finish = mlp_finish,
                                            .update = mlp_update};

/* ---- the program ---- */

static pod_status mlp_alloc(pod_mlp *mlp)
{
    const size_t layers = (size_t)mlp->stage.layers;
    const size_t parts = (size_t)mlp->stage.request->microbatches;
    const size_t saved = (size_t)mlp->ops->saved(mlp);
    mlp->weights = calloc(layers * (size_t)mlp->ops->weights_per_layer + 1, sizeof *mlp->weights);
    mlp->saved = calloc(layers * parts * saved + 1, sizeof *mlp->saved);
    mlp->scratch = calloc(saved, sizeof *mlp->scratch);
    return mlp->weights && mlp->saved && mlp->scratch
               ? POD_OK
               : pod_fail(mlp->stage.build.err, POD_E_NOMEM, "out of memory for %d layers",
                          (int)mlp->stage.layers);
}

static const pod_mlp_ops *ops_of(const pod_step_request *request, const pod_work_layout *layout)
{
    const bool ring = request->collective_matmul && layout->tensor.count > 0;
    if (request->model->kind == POD_MODEL_CONV) {
        return &pod_conv_ops;
    }
    if (request->model->kind == POD_MODEL_MATMUL) {
        return ring ? &pod_matmul_ring_ops : &pod_matmul_ops;
    }
    return ring ? &pod_mlp_ring_ops : &pod_mlp_whole_ops;
}

pod_status pod_mlp_program(const pod_step_request *request, pod_step_work *work, int32_t number,
                           pod_error *err)
{
    pod_mlp mlp = {.ops = ops_of(request, &work->layout),
                   .rows = work->rows / request->microbatches};
    pod_build *build = &mlp.stage.build;
    pod_stage_init(&mlp.stage, &mlp_stage_ops, request, work, number, err);
    build->dtype = request->dtype == POD_DTYPE_F32 ? POD_DTYPE_F32 : POD_DTYPE_BF16;
    build->st = mlp_alloc(&mlp);
    const pod_status st = build->st == POD_OK ? pod_stage_build(&mlp.stage) : build->st;
    pod_stage_fini(&mlp.stage);
    free(mlp.weights);
    free(mlp.saved);
    free(mlp.scratch);
    return st;
}
