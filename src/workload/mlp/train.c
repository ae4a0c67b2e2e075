/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a step in one stage: 1F1B over microbatches (Narayanan et al., PipeDream-Flush).
 * Stage s of S runs min(S - 1 - s, M) forwards ahead, then one forward and one backward alternately:
 *
 *      S = 2, M = 4    stage 0  F0 F1 B0 F2 B1 F3 B2 B3
 *                      stage 1     F0 B0 F1 B1 F2 B2 F3 B3 */
#include "workload/mlp/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the ends of a stage ---- */

static void end_tensor(pod_stage *stage, const char *name, pod_tensor_role role, int32_t part,
                       const pod_array *array)
{
    pod_build *build = &stage->build;
    pod_tensor tensor = {.role = role,
                         .stage = stage->number,
                         .buffer = array->buffer,
                         .rows = array->size[0] * stage->request->microbatches,
                         .columns = array->size[1],
                         .row_first = array->size[0] * part,
                         .row_count = array->size[0],
                         .sharding = array->sharding};
    (void)snprintf(tensor.name, sizeof tensor.name, "%s", name);
    if (build->st == POD_OK) {
        build->st = pod_tensors_add(build->tensors, &tensor, build->err);
    }
}

/** An array shaped like the stage's input or output. Of the batch, the input stays for the step; the
 * target is handed over to the loss. */
static pod_array end_array(pod_stage *stage, bool output, const char *name, pod_memory_kind kind)
{
    int64_t size[2];
    const pod_sharding sharding =
        output ? stage->ops->output(stage, size) : stage->ops->input(stage, size);
    const pod_array array =
        pod_build_array(&stage->build, name, kind, false, stage->build.dtype, &sharding, size);
    if (stage->build.st == POD_OK) {
        pod_buffer *buffer = &stage->build.program->buffers[array.buffer];
        buffer->given = kind == POD_MEMORY_INPUT && output;
        buffer->persistent = kind == POD_MEMORY_INPUT && !output;
    }
    return array;
}

static pod_array part_input(pod_stage *stage, int32_t part)
{
    if (stage->number > 0) {
        const pod_array empty = end_array(stage, false, "x", POD_MEMORY_ACTIVATIONS);
        return pod_build_recv(&stage->build, "fwd.recv", &empty, stage->number - 1, part);
    }
    const pod_array x = end_array(stage, false, "x", POD_MEMORY_INPUT);
    end_tensor(stage, "x", POD_TENSOR_INPUT, part, &x);
    return x;
}

/** Output of the last stage: with its target, the derivative of the loss by it. */
static pod_array part_loss(pod_stage *stage, int32_t part, const pod_array *y)
{
    const pod_array target = end_array(stage, true, "target", POD_MEMORY_INPUT);
    const pod_array empty = end_array(stage, true, "dy", POD_MEMORY_ACTIVATIONS);
    const pod_elementwise loss = {
        .name = "loss",
        .layer = -1,
        .function = POD_VEC_RELU_GRAD,
        .in = {y, &target},
        .flops = 1,
        .bytes = 3 * pod_dtype_size(y->dtype)
    };
    end_tensor(stage, "target", POD_TENSOR_TARGET, part, &target);
    return pod_build_vector(&stage->build, &loss, &empty);
}

static void part_forward(pod_stage *stage, int32_t part)
{
    pod_array x = part_input(stage, part);
    for (int32_t l = 0; l < stage->layers; l++) {
        x = stage->ops->forward(stage, stage->first_layer + l, part, &x);
    }
    stage->ends[part] = x;
    if (stage->number < stage->count - 1) {
        pod_build_send(&stage->build, "fwd.send", &x, stage->number + 1, part);
        return;
    }
    end_tensor(stage, "y", POD_TENSOR_OUTPUT, part, &x);
    if (stage->request->mode == POD_STEP_TRAIN) {
        stage->ends[part] = part_loss(stage, part, &x);
    }
}

static void part_backward(pod_stage *stage, int32_t part)
{
    const int32_t message = stage->request->microbatches + part;
    pod_array dy = stage->ends[part];
    if (stage->number < stage->count - 1) {
        const pod_array empty = end_array(stage, true, "dy", POD_MEMORY_ACTIVATIONS);
        dy = pod_build_recv(&stage->build, "bwd.recv", &empty, stage->number + 1, message);
    }
    for (int32_t l = stage->layers - 1; l >= 0; l--) {
        dy = stage->ops->backward(stage, stage->first_layer + l, part, &dy);
    }
    if (stage->number > 0) {
        pod_build_send(&stage->build, "bwd.send", &dy, stage->number - 1, message);
        return;
    }
    end_tensor(stage, "dx", POD_TENSOR_GRADIENT, part, &dy);
}

/* ---- order ---- */

static void parts_visit(const pod_stage *stage, void *context, pod_part_visitor *visit)
{
    const int32_t parts = stage->request->microbatches;
    const bool train = stage->request->mode == POD_STEP_TRAIN;
    const int32_t ahead = stage->count - 1 - stage->number;
    const int32_t warm = ahead < parts && train ? ahead : parts;
    for (int32_t part = 0; part < warm; part++) {
        visit(context, part, false);
    }
    for (int32_t part = 0; part < parts && train; part++) {
        if (warm + part < parts) {
            visit(context, warm + part, false);
        }
        visit(context, part, true);
    }
}

void pod_stage_drive(pod_stage *stage, const pod_stage_driver *driver)
{
    parts_visit(stage, driver->context, driver->declare);
    parts_visit(stage, driver->context, driver->run);
    if (stage->request->mode == POD_STEP_TRAIN) {
        driver->update(driver->context);
    }
}

static void part_declare(void *context, int32_t part, bool backward)
{
    pod_stage *stage = context;
    (void)part;
    for (int32_t i = 0; i < stage->layers; i++) {
        const int32_t layer = stage->first_layer + (backward ? stage->layers - 1 - i : i);
        for (int use = 0; use < stage->ops->weights_per_layer; use++) {
            const pod_weight *weight =
                pod_stage_weight(stage, layer, stage->ops->use(use, backward));
            pod_build_use_declare(&stage->build, &weight->compute, backward ? "bwd" : "fwd", layer);
        }
    }
}

static void part_run(void *context, int32_t part, bool backward)
{
    pod_stage *stage = context;
    if (backward) {
        part_backward(stage, part);
    } else {
        part_forward(stage, part);
    }
}

static void weights_visit(pod_stage *stage, bool update)
{
    const int each = stage->ops->weights_per_layer;
    for (int32_t i = 0; i < stage->layers * each; i++) {
        /* gradients are there from the last layer to the first */
        const int32_t number = update ? stage->layers * each - 1 - i : i;
        pod_weight *weight = &stage->weights[number];
        if (update) {
            pod_weight_update(stage, weight);
        } else {
            stage->ops->weight(stage, stage->first_layer + number / each, number % each, weight);
        }
    }
}

static void weights_update(void *context)
{
    weights_visit(context, true);
}

static pod_status stage_alloc(pod_stage *stage)
{
    const size_t layers = (size_t)stage->layers;
    const size_t parts = (size_t)stage->request->microbatches;
    stage->weights =
        calloc(layers * (size_t)stage->ops->weights_per_layer + 1, sizeof *stage->weights);
    stage->saved =
        calloc(layers * parts * (size_t)stage->ops->saved(stage) + 1, sizeof *stage->saved);
    stage->ends = calloc(parts, sizeof *stage->ends);
    stage->scratch = calloc((size_t)stage->ops->saved(stage), sizeof *stage->scratch);
    return stage->weights && stage->saved && stage->ends && stage->scratch
               ? POD_OK
               : pod_fail(stage->build.err, POD_E_NOMEM, "out of memory for %d layers",
                          (int)stage->layers);
}

static const pod_stage_ops *ops_of(const pod_step_request *request, const pod_work_layout *layout)
{
    if (request->model->kind == POD_MODEL_MATMUL) {
        return &pod_matmul_ops;
    }
    const bool ring = request->collective_matmul && layout->tensor.count > 0;
    return ring ? &pod_mlp_ring_ops : &pod_mlp_ops;
}

pod_status pod_stage_program(const pod_step_request *request, pod_step_work *work, int32_t number,
                             pod_error *err)
{
    const int32_t count = work->layout.stages;
    const int32_t layers = (int32_t)request->model->layers / count;
    pod_stage stage = {.request = request,
                       .ops = ops_of(request, &work->layout),
                       .number = number,
                       .count = count,
                       .first_layer = number * layers,
                       .layers = layers,
                       .rows = work->rows / request->microbatches};
    const pod_stage_driver driver = {
        .context = &stage, .declare = part_declare, .run = part_run, .update = weights_update};
    pod_build_init(&stage.build, &work->layout, &work->programs, &work->programs.stages[number],
                   &work->tensors, err);
    stage.build.compute = request->dtype;
    stage.build.dtype = request->dtype == POD_DTYPE_F32 ? POD_DTYPE_F32 : POD_DTYPE_BF16;
    stage.build.ahead = request->gather_ahead;
    stage.build.st = stage_alloc(&stage);
    if (stage.build.st == POD_OK) {
        pod_stage_input(&stage);
        weights_visit(&stage, false);
        pod_stage_drive(&stage, &driver);
    }
    const pod_status st = stage.build.st;
    pod_build_fini(&stage.build);
    free(stage.weights);
    free(stage.saved);
    free(stage.scratch);
    free(stage.ends);
    return st;
}
