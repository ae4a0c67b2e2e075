/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing to move: one rank, or no elements.
 *
 * Example, n = 4 and 0 elements:  rank 0: no step   rank 1: no step   rank 2: no step   rank 3: no step
 */
#include "collectives/schedule/algorithm_list.h"

#include <stdlib.h>

typedef struct none_schedule {
    pod_coll_schedule base;
    pod_coll_part part;
} none_schedule;

static int32_t none_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel)
{
    (void)schedule;
    (void)me;
    (void)channel;
    return 0;
}

static void none_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                      int32_t step, pod_coll_step *out)
{
    (void)schedule;
    (void)me;
    (void)channel;
    (void)step;
    *out = (pod_coll_step){.send_to = -1, .recv_from = -1};
}

static void none_free(pod_coll_schedule *schedule)
{
    free(schedule);
}

static const pod_coll_schedule_ops none_ops = {
    .steps = none_steps, .step = none_step, .free = none_free};

static pod_status none_applies(const pod_coll_request *request, pod_error *err)
{
    const bool alone = request->group->size == 1 && request->op != POD_PERMUTE;
    if (alone || request->elements == 0) {
        return POD_OK;
    }
    return pod_fail(err, POD_E_INVALID,
                    "algorithm 'none' moves nothing, and here are %d chips with %lld elements; "
                    "use auto",
                    (int)request->group->size, (long long)request->elements);
}

static pod_status none_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    (void)err;
    *prediction = (pod_coll_prediction){.total_ps = request->launch_ps, .nterms = 1};
    prediction->term[0].what = "launch";
    prediction->term[0].time_ps = request->launch_ps;
    return POD_OK;
}

static pod_status none_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    none_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    const int32_t n = request->group->size;
    const bool whole = request->op == POD_BROADCAST || request->op == POD_PERMUTE;
    self->part.elements = request->elements;
    self->part.blocks = whole ? 1 : n;
    self->part.slots = request->op == POD_ALL_TO_ALL ? 2 * n : self->part.blocks + 1;
    self->base = (pod_coll_schedule){.ops = &none_ops,
                                     .algorithm = "none",
                                     .op = request->op,
                                     .group = request->group,
                                     .elements = request->elements,
                                     .root = request->root,
                                     .source_of = request->source_of,
                                     .nparts = 1,
                                     .parts = &self->part};
    *schedule = &self->base;
    return POD_OK;
}

const pod_coll_algorithm pod_coll_none = {
    .name = "none",
    .summary = "nothing to move: one chip or zero bytes",
    .ops = (1U << POD_COLL_OP_COUNT) - 1,
    .applies = none_applies,
    .predict = none_predict,
    .build = none_build,
};
