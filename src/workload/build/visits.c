/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/visits.h"

#include "workload/build/stage.h"

#include <inttypes.h>

/* ---- sizes ---- */

bool pod_circular_is_on(const pod_step_request *request, int32_t stages)
{
    return request->settings.circular.on && stages > 1;
}

pod_visits pod_circular_visits(const pod_step_request *request, int32_t stages)
{
    const pod_circular *asked = &request->settings.circular;
    const pod_model *model = request->model;
    if (!pod_circular_is_on(request, stages)) {
        return (pod_visits){.layers = (int32_t)model->layers / stages, .repeats = 1};
    }
    pod_visits visits = {.layers = asked->layers,
                         .repeats = asked->repeats,
                         .outer = model->experts > 0 ? (int32_t)model->dense_layers : 0};
    const int32_t piped = (int32_t)model->layers - visits.outer;
    if (visits.layers == 0) {
        visits.layers = piped / (stages * visits.repeats);
    } else if (visits.repeats == 0) {
        visits.repeats = piped / (stages * visits.layers);
    }
    return visits;
}

static pod_status layers_check(const pod_step_request *request, int32_t stages, pod_error *err)
{
    const pod_circular *asked = &request->settings.circular;
    const pod_visits visits = pod_circular_visits(request, stages);
    const int64_t piped = request->model->layers - visits.outer;
    if (visits.layers > 0 && visits.repeats > 0
        && (int64_t)visits.layers * visits.repeats * stages == piped) {
        return POD_OK;
    }
    if (asked->layers == 0) {
        return pod_fail(err, POD_E_INVALID,
                        "--pipeline-repeats %d: %" PRId64
                        " layers do not divide into %d rounds of %d stages; use a divisor",
                        (int)asked->repeats, piped, (int)asked->repeats, (int)stages);
    }
    if (asked->repeats == 0) {
        return pod_fail(err, POD_E_INVALID,
                        "num_layers_per_pipeline_stage: %" PRId64
                        " layers do not divide over %d stages of %d; use a divisor",
                        piped, (int)stages, (int)asked->layers);
    }
    return pod_fail(err, POD_E_INVALID,
                    "num_pipeline_repeats: %d rounds of %d stages of %d layers are not the %" PRId64
                    " layers of the pipeline; give -1, or what makes them equal",
                    (int)asked->repeats, (int)stages, (int)asked->layers, piped);
}

static pod_status microbatches_check(const pod_step_request *request, int32_t stages,
                                     pod_error *err)
{
    const bool delayed = request->settings.circular.delayed;
    const int32_t count = request->microbatches;
    if (count % stages != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "%d microbatches go round %d stages; use a multiple of the stages",
                        (int)count, (int)stages);
    }
    if (delayed && count < 2 * stages) {
        return pod_fail(err, POD_E_INVALID,
                        "pipeline_delay_activation_forwarding: %d microbatches come back too soon; "
                        "use %d or more, twice the stages",
                        (int)count, (int)(2 * stages));
    }
    return POD_OK;
}

pod_status pod_circular_check(const pod_step_request *request, const pod_work_layout *layout,
                              pod_error *err)
{
    const pod_axis_list pipeline = {.count = 1, .axis = {POD_MESH_PIPELINE}};
    const pod_circular *asked = &request->settings.circular;
    if (pod_circular_is_on(request, layout->stages)) {
        const pod_status st = layers_check(request, layout->stages, err);
        return st == POD_OK ? microbatches_check(request, layout->stages, err) : st;
    }
    if (asked->on && asked->layers == 0) {
        return pod_fail(err, POD_E_INVALID,
                        "--pipeline-repeats goes round the stages of a pipeline; give --mesh "
                        "pipeline=N, or leave it out");
    }
    return pod_work_divides(layout, "layers", request->model->layers, &pipeline, err);
}

/* ---- layers ---- */

int32_t pod_stage_layer(const pod_stage *stage, int32_t local)
{
    const pod_visits *visits = &stage->visits;
    const int32_t visit = local / visits->layers;
    if (visit >= visits->repeats) {
        return local - visits->repeats * visits->layers;
    }
    return visits->outer + (visit * stage->count + stage->number) * visits->layers
           + local % visits->layers;
}

int32_t pod_stage_local(const pod_stage *stage, int32_t layer)
{
    const pod_visits *visits = &stage->visits;
    const int32_t piped = layer - visits->outer;
    if (piped < 0) {
        return visits->repeats * visits->layers + layer;
    }
    return piped / (stage->count * visits->layers) * visits->layers + piped % visits->layers;
}

int32_t pod_stage_first_layer(const pod_stage *stage)
{
    return stage->outside ? 0 : pod_stage_layer(stage, stage->visit * stage->visits.layers);
}

bool pod_stage_part_is_last(const pod_stage *stage)
{
    const int32_t last = stage->circular ? 0 : stage->request->microbatches - 1;
    return stage->outside || stage->part == last;
}

bool pod_stage_has_input(const pod_stage *stage)
{
    return stage->circular || stage->number == 0;
}

bool pod_stage_has_output(const pod_stage *stage)
{
    return stage->circular || stage->number == stage->count - 1;
}
