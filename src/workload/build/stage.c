/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a step in one stage: 1F1B over microbatches (Narayanan et al., PipeDream-Flush).
 * Stage s of S runs min(S - 1 - s, M) forwards ahead, then one forward and one backward alternately:
 *
 *      S = 2, M = 4    stage 0  F0 F1 B0 F2 B1 F3 B2 B3
 *                      stage 1     F0 B0 F1 B1 F2 B2 F3 B3 */
#include "workload/build/stage.h"

#include "workload/build/input.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_last(const pod_stage *stage)
{
    return stage->number == stage->count - 1;
}

/* ---- a microbatch ---- */

static void part_declare(pod_stage *stage, bool backward)
{
    if (!backward && stage->number == 0 && stage->ops->declare_input != NULL) {
        stage->ops->declare_input(stage);
    }
    for (int32_t i = 0; i < stage->layers; i++) {
        const int32_t l = backward ? stage->layers - 1 - i : i;
        stage->ops->declare(stage, stage->first_layer + l, backward);
    }
    if (!backward && is_last(stage) && stage->ops->declare_output != NULL) {
        stage->ops->declare_output(stage);
    }
}

/** What the stage before sends of its output, or the one after it of the derivative. */
static pod_array receive(pod_stage *stage, bool backward)
{
    const int32_t parts = stage->request->microbatches;
    const pod_array empty = stage->ops->entry(stage, backward);
    return backward
               ? pod_build_recv(&stage->build, "bwd.recv", &empty, stage->number + 1,
                                parts + stage->part)
               : pod_build_recv(&stage->build, "fwd.recv", &empty, stage->number - 1, stage->part);
}

int32_t pod_stage_messages(const pod_stage *stage)
{
    return 2 * stage->request->microbatches;
}

static void part_forward(pod_stage *stage)
{
    pod_array x = stage->number > 0 ? receive(stage, false) : stage->ops->input(stage);
    for (int32_t l = 0; l < stage->layers; l++) {
        x = stage->ops->forward(stage, stage->first_layer + l, &x);
    }
    if (is_last(stage)) {
        stage->ends[stage->part] = stage->ops->output(stage, &x);
    } else {
        (void)pod_build_send(&stage->build, "fwd.send", &x, stage->number + 1, stage->part);
    }
}

static void part_backward(pod_stage *stage)
{
    const int32_t parts = stage->request->microbatches;
    if (!is_last(stage) && stage->ops->prepare != NULL) {
        stage->ops->prepare(stage, stage->first_layer + stage->layers - 1);
    }
    pod_array dy = is_last(stage) ? stage->ends[stage->part] : receive(stage, true);
    for (int32_t l = stage->layers - 1; l >= 0; l--) {
        dy = stage->ops->backward(stage, stage->first_layer + l, &dy);
    }
    if (stage->number > 0) {
        (void)pod_build_send(&stage->build, "bwd.send", &dy, stage->number - 1,
                             parts + stage->part);
    } else {
        stage->ops->finish(stage, &dy);
    }
}

static void part_run(pod_stage *stage, bool backward)
{
    if (backward) {
        part_backward(stage);
    } else {
        part_forward(stage);
    }
}

/* ---- order ---- */

/** Something for a microbatch, forward or backward. */
typedef void part_visitor(pod_stage *stage, bool backward);

static void visit_part(pod_stage *stage, part_visitor *visit, int32_t part, bool backward)
{
    stage->part = part;
    visit(stage, backward);
}

static void parts_visit(pod_stage *stage, part_visitor *visit)
{
    const int32_t parts = stage->request->microbatches;
    const bool train = stage->request->mode == POD_STEP_TRAIN;
    const int32_t ahead = stage->count - 1 - stage->number;
    const int32_t warm = ahead < parts && train ? ahead : parts;
    for (int32_t part = 0; part < warm; part++) {
        visit_part(stage, visit, part, false);
    }
    for (int32_t part = 0; part < parts && train; part++) {
        if (warm + part < parts) {
            visit_part(stage, visit, warm + part, false);
        }
        visit_part(stage, visit, part, true);
    }
}

void pod_stage_init(pod_stage *stage, const pod_stage_ops *ops, const pod_step_request *request,
                    pod_step_work *work, int32_t number, pod_error *err)
{
    const int32_t count = work->layout.stages;
    const pod_visits visits = pod_circular_visits(request, count);
    *stage = (pod_stage){.ops = ops,
                         .request = request,
                         .number = number,
                         .count = count,
                         .layers = visits.outer + visits.repeats * visits.layers,
                         .visits = visits,
                         .circular = pod_circular_is_on(request, count)};
    stage->first_layer = pod_stage_layer(stage, 0);
    pod_build_init(&stage->build, &work->layout, &work->programs, &work->programs.stages[number],
                   &work->tensors, err);
    stage->build.compute = request->dtype;
    stage->build.ahead = request->gather_ahead;
}

void pod_stage_fini(pod_stage *stage)
{
    pod_build_fini(&stage->build);
    free(stage->starts);
    free(stage->ends);
    stage->starts = NULL;
    stage->ends = NULL;
}

pod_status pod_stage_build(pod_stage *stage)
{
    stage->starts = calloc((size_t)stage->request->microbatches, sizeof *stage->starts);
    stage->ends = calloc((size_t)stage->request->microbatches, sizeof *stage->ends);
    if (stage->starts == NULL || stage->ends == NULL) {
        return pod_fail(stage->build.err, POD_E_NOMEM, "out of memory for %d microbatches",
                        (int)stage->request->microbatches);
    }
    if (pod_stage_has_input(stage)) {
        pod_build_input(&stage->build, &stage->request->input, stage->circular ? stage->count : 1);
    }
    stage->ops->weights(stage);
    if (stage->build.st != POD_OK) {
        return stage->build.st;
    }
    if (stage->order != NULL) {
        stage->order(stage);
    } else {
        parts_visit(stage, part_declare);
        parts_visit(stage, part_run);
    }
    if (stage->request->mode == POD_STEP_TRAIN) {
        stage->ops->update(stage);
    }
    return stage->build.st;
}

void pod_stage_tensor(pod_stage *stage, const char *name, pod_tensor_role role,
                      const pod_array *array, bool of_part)
{
    pod_build *build = &stage->build;
    pod_tensor tensor = {.role = role,
                         .stage = stage->number,
                         .buffer = array->buffer,
                         .rows = array->size[0] * (of_part ? stage->request->microbatches : 1),
                         .columns = array->size[1],
                         .row_first = of_part ? array->size[0] * stage->part : 0,
                         .row_count = array->size[0],
                         .sharding = array->sharding,
                         .shift = array->shift};
    (void)snprintf(tensor.name, sizeof tensor.name, "%s", name);
    if (build->st == POD_OK) {
        build->st = pod_tensors_add(build->tensors, &tensor, build->err);
    }
}
