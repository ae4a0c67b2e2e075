/* SPDX-License-Identifier: Apache-2.0 */
/* An algorithm as somebody might add it: a broadcast in which the root sends to every rank in turn.
 *
 * Example, n = 4, root 0:   step 0: 0 → 1   step 1: 0 → 2   step 2: 0 → 3 */
#include "collectives/predict/stepcost.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>

/* The step in which a rank receives; -1 for the root. */
static int32_t turn_of(const pod_coll_schedule *schedule, int32_t rank)
{
    const int32_t n = schedule->group->size;
    return (rank - schedule->root + n) % n - 1;
}

static int32_t star_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel)
{
    (void)channel;
    const int32_t turn = turn_of(schedule, me->rank);
    return turn < 0 ? schedule->group->size - 1 : turn + 1;
}

static void star_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                      int32_t step, pod_coll_step *out)
{
    (void)channel;
    *out = pod_coll_step_idle();
    const int32_t turn = turn_of(schedule, me->rank);
    if (turn < 0) {
        out->send_to = (me->rank + 1 + step) % schedule->group->size;
        out->send_step = step;
        out->send_slots = 1;
    } else if (turn == step) {
        out->recv_from = schedule->root;
    }
}

static void star_free(pod_coll_schedule *schedule)
{
    pod_coll_frame_fini(schedule);
    free(schedule);
}

static const pod_coll_schedule_ops star_ops = {
    .steps = star_steps, .step = star_step, .free = star_free};

static pod_status star_applies(const pod_coll_request *request, pod_error *err)
{
    (void)request;
    (void)err;
    return POD_OK;
}

static pod_status star_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    pod_coll_schedule *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    const pod_status st = pod_coll_frame_init(self, &star_ops, "star", request, 1, 1, err);
    if (st != POD_OK) {
        star_free(self);
        return st;
    }
    self->channels[0].max_steps = request->group->size - 1;
    *schedule = self;
    return POD_OK;
}

static pod_status star_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_status st = star_build(request, &schedule, err);
    if (st == POD_OK) {
        st = pod_coll_predict_steps(request, schedule, prediction, err);
        pod_coll_schedule_free(schedule);
    }
    return st;
}

const pod_coll_algorithm pod_coll_star = {
    .name = "star",
    .summary = "the root sends to every rank in turn",
    .ops = 1U << POD_BROADCAST,
    .applies = star_applies,
    .predict = star_predict,
    .build = star_build,
};
