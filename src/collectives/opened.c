/* SPDX-License-Identifier: Apache-2.0 */
/* Closed axes of two chips as open ones: by one of the two cables between neighbours.
 *
 * Two chips side by side along a closed axis have two cables, which double what can go between them. But a vector cut
 * for four directions has smaller blocks than one cut for three, and trees of more links are not always shallower. What
 * is best on the open axis is best here too now and then, and then a second cable must not slow it down.
 *
 * Example, all-gather of a b on a closed axis of 2:
 *     both cables      0 to 1   half of a over each         one cable      0 to 1   a over the + one
 */
#include "collectives/schedule/algorithm_list.h"

#include <stdio.h>
#include <stdlib.h>

static const pod_coll_algorithm *const tried[] = {
    &pod_coll_ring,         &pod_coll_line, &pod_coll_bucket,      &pod_coll_gather,
    &pod_coll_swing,        &pod_coll_xla,  &pod_coll_swing_bw_2D, &pod_coll_scatter_relay,
    &pod_coll_rarest_first, &pod_coll_tree, &pod_coll_timetable,   &pod_coll_mirrored,
};
enum { TRIED = sizeof tried / sizeof *tried };

/* What the schedule of the opened group says; the group lives as long. */
typedef struct opened_schedule {
    pod_coll_schedule base;
    pod_coll_schedule_ops ops;
    pod_group group; /* borrows the lists of the request's */
    pod_coll_schedule *inner;
} opened_schedule;

static const pod_coll_schedule *inner_of(const pod_coll_schedule *schedule)
{
    return ((const opened_schedule *)schedule)->inner;
}

static int32_t opened_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    const pod_coll_schedule *inner = inner_of(schedule);
    return inner->ops->steps(inner, me, channel);
}

static void opened_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const pod_coll_schedule *inner = inner_of(schedule);
    inner->ops->step(inner, me, channel, step, out);
}

static int32_t opened_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const pod_coll_schedule *inner = inner_of(schedule);
    return inner->ops->block_slot(inner, part, rank);
}

static int64_t opened_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                             int32_t slot)
{
    const pod_coll_schedule *inner = inner_of(schedule);
    return inner->ops->slot_offset(inner, rank, part, slot);
}

static void opened_free(pod_coll_schedule *schedule)
{
    opened_schedule *self = (opened_schedule *)schedule;
    pod_coll_schedule_free(self->inner);
    free(self);
}

/* The request on a group whose closed axes of two are open. @return whether there are any */
static bool opened_request(const pod_coll_request *request, pod_coll_request *asked,
                           pod_group *group)
{
    bool any = false;
    *asked = *request;
    asked->group = group;
    asked->packings = NULL;
    asked->predicted = NULL;
    *group = *request->group;
    for (int d = 0; d < group->ndims; ++d) {
        pod_group_dim *dim = &group->dim[d];
        any = any || (dim->closed && dim->size == 2);
        dim->closed = dim->closed && dim->size != 2;
    }
    return any;
}

/* The fastest on the opened group. @param[out] algorithm  NULL: none is in time */
static pod_status opened_choose(pod_coll_request *asked, const pod_coll_algorithm **algorithm,
                                pod_coll_prediction *prediction, pod_error *err)
{
    *algorithm = NULL;
    *prediction = (pod_coll_prediction){.total_ps = POD_TIME_NEVER};
    for (int i = 0; i < TRIED; ++i) {
        pod_coll_prediction mine;
        if ((tried[i]->ops >> asked->op & 1U) == 0 || tried[i]->applies(asked, NULL) != POD_OK) {
            continue;
        }
        POD_TRY(tried[i]->predict(asked, &mine, err));
        if (mine.total_ps < prediction->total_ps
            && (asked->enough_ps == 0 || mine.total_ps < asked->enough_ps)) {
            asked->enough_ps = mine.total_ps;
            *algorithm = tried[i];
            *prediction = mine;
        }
    }
    return POD_OK;
}

static pod_status opened_applies(const pod_coll_request *request, pod_error *err)
{
    pod_group group;
    pod_coll_request asked;
    return opened_request(request, &asked, &group)
               ? POD_OK
               : pod_fail(err, POD_E_INVALID,
                          "opened needs a closed axis of 2 chips, and this group has none; use "
                          "auto");
}

static pod_status opened_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_group group;
    pod_coll_request asked;
    const pod_coll_algorithm *algorithm;
    (void)opened_request(request, &asked, &group);
    POD_TRY(opened_choose(&asked, &algorithm, prediction, err));
    prediction->planner = NULL;
    return POD_OK;
}

static pod_status opened_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    opened_schedule *self = calloc(1, sizeof *self);
    pod_coll_request asked;
    pod_coll_prediction prediction;
    const pod_coll_algorithm *algorithm;
    if (self == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    (void)opened_request(request, &asked, &self->group);
    asked.enough_ps = 0;
    pod_status st = opened_choose(&asked, &algorithm, &prediction, err);
    POD_ASSERT(st != POD_OK || algorithm != NULL); /* bucket is always one */
    asked.enough_ps = 0;
    asked.predicted = &prediction;
    POD_THEN(st, algorithm->build(&asked, &self->inner, err));
    if (st != POD_OK) {
        free(self);
        return st;
    }
    self->ops = *self->inner->ops;
    self->ops.steps = opened_steps;
    self->ops.step = opened_step;
    self->ops.block_slot = self->ops.block_slot != NULL ? opened_block_slot : NULL;
    self->ops.slot_offset = self->ops.slot_offset != NULL ? opened_offset : NULL;
    self->ops.free = opened_free;
    self->base = *self->inner;
    self->base.ops = &self->ops;
    self->base.group = request->group;
    (void)snprintf(self->base.own_name, sizeof self->base.own_name, "opened:%.60s",
                   self->inner->algorithm);
    self->base.algorithm = self->base.own_name;
    *schedule = &self->base;
    return POD_OK;
}

const pod_coll_algorithm pod_coll_opened = {
    .name = "opened",
    .summary = "closed axes of two chips as open ones, by one of two cables",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER
           | 1U << POD_BROADCAST,
    .auto_ops = POD_COLL_EVERY_OP,
    .last_ops = POD_COLL_EVERY_OP,
    .applies = opened_applies,
    .predict = opened_predict,
    .build = opened_build,
};
