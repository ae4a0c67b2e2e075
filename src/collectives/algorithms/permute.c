/* SPDX-License-Identifier: Apache-2.0 */
/* Permute: every rank's vector to the ranks that name it as their source, over all minimal routes.
 *
 * Example, n = 4, source_of = {3, 0, 1, -1}: a shift by one along a line; rank 3 has no taker but rank 0:
 *
 *     rank 0: sends to 1, receives from 3     rank 2: sends to -, receives from 1
 *     rank 1: sends to 2, receives from 0     rank 3: sends to 0, receives nothing
 *
 * One message a pair, all at once. A source of several ranks sends to them on channels of its own, in the
 * order of their ranks, up to PERMUTE_CHANNELS_MAX at a time. A rank that is its own source copies. */
#include "collectives/predict/stepcost.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>

enum { PERMUTE_CHANNELS_MAX = 8 };

typedef struct permute_schedule {
    pod_coll_schedule base;
    int32_t *first; /* first[source], first[n] = all: its takers in takers[] */
    int32_t *takers;
    int32_t *turn; /* turn[rank]: which taker of its source a rank is */
} permute_schedule;

static int32_t steps_for(const pod_coll_schedule *schedule, int32_t takers, int32_t channel)
{
    return takers > channel ? (takers - channel - 1) / schedule->nchannels + 1 : 0;
}

/* The step in which a rank receives, if it does so on this channel; else -1. It is also the sender's. */
static int32_t permute_recv_step(const permute_schedule *self, int32_t rank, int32_t channel)
{
    const int32_t turn = self->turn[rank];
    const bool here = turn >= 0 && turn % self->base.nchannels == channel;
    return here ? turn / self->base.nchannels : -1;
}

static int32_t permute_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                             int32_t channel)
{
    const permute_schedule *self = (const permute_schedule *)schedule;
    const int32_t takers = self->first[me->rank + 1] - self->first[me->rank];
    const int32_t sends = steps_for(schedule, takers, channel);
    const int32_t receives = permute_recv_step(self, me->rank, channel) + 1;
    return sends > receives ? sends : receives;
}

static void permute_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                         int32_t channel, int32_t step, pod_coll_step *out)
{
    const permute_schedule *self = (const permute_schedule *)schedule;
    const int32_t taker = self->first[me->rank] + channel + step * schedule->nchannels;
    *out = pod_coll_step_idle();
    if (taker < self->first[me->rank + 1]) {
        out->send_to = self->takers[taker];
        out->send_step = step;
        out->send_slots = 1;
    }
    if (permute_recv_step(self, me->rank, channel) == step) {
        out->recv_from = schedule->source_of[me->rank];
        out->recv_slot = 1;
    }
}

static void permute_free(pod_coll_schedule *schedule)
{
    permute_schedule *self = (permute_schedule *)schedule;
    free(self->turn);
    free(self->takers);
    free(self->first);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops permute_ops = {
    .steps = permute_steps, .step = permute_step, .free = permute_free};

/* Takers by source, in the order of their ranks. @return the most that a source has */
static int32_t list_takers(permute_schedule *self)
{
    const int32_t n = self->base.group->size;
    const int32_t *source_of = self->base.source_of;
    int32_t most = 0;
    for (int32_t r = 0; r < n; ++r) {
        self->turn[r] = -1;
        if (source_of[r] >= 0) {
            self->turn[r] = self->first[source_of[r] + 1]++;
            most = self->turn[r] + 1 > most ? self->turn[r] + 1 : most;
        }
    }
    for (int32_t r = 0; r < n; ++r) {
        self->first[r + 1] += self->first[r];
    }
    for (int32_t r = 0; r < n; ++r) {
        if (source_of[r] >= 0) {
            self->takers[self->first[source_of[r]] + self->turn[r]] = r;
        }
    }
    return most;
}

static pod_status permute_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                                pod_error *err)
{
    const size_t n = (size_t)request->group->size;
    permute_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->first = calloc(n + 1, sizeof *self->first);
    self->takers = calloc(n, sizeof *self->takers);
    self->turn = calloc(n, sizeof *self->turn);
    pod_status st = pod_coll_frame_init(&self->base, &permute_ops, "permute", request, 1,
                                        PERMUTE_CHANNELS_MAX, err);
    if (st == POD_OK && (!self->first || !self->takers || !self->turn)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    if (st != POD_OK) {
        permute_free(&self->base);
        return st;
    }
    pod_coll_frame_slots(&self->base, 1, 2);
    const int32_t most = list_takers(self);
    self->base.nchannels = most < PERMUTE_CHANNELS_MAX ? most : PERMUTE_CHANNELS_MAX;
    for (int32_t c = 0; c < self->base.nchannels; ++c) {
        self->base.channels[c] =
            (pod_coll_channel){.part = 0, .max_steps = steps_for(&self->base, most, c)};
    }
    *schedule = &self->base;
    return POD_OK;
}

static pod_status permute_applies(const pod_coll_request *request, pod_error *err)
{
    if (!request->source_of) {
        return pod_fail(
            err, POD_E_INVALID,
            "a permute needs sources; use --pairs with shift:AXIS:N, transpose or a file");
    }
    for (int32_t r = 0; r < request->group->size; ++r) {
        if (request->source_of[r] < -1 || request->source_of[r] >= request->group->size) {
            return pod_fail(err, POD_E_INVALID,
                            "rank %d is to receive from rank %d; sources are -1 (none) or 0 to %d",
                            (int)r, (int)request->source_of[r], (int)request->group->size - 1);
        }
    }
    return POD_OK;
}

static pod_status permute_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                  pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_status st = permute_build(request, &schedule, err);
    if (st == POD_OK) {
        st = pod_coll_predict_steps(request, schedule, prediction, err);
        pod_coll_schedule_free(schedule);
    }
    return st;
}

const pod_coll_algorithm pod_coll_permute = {
    .name = "permute",
    .summary = "every vector straight to its takers over all minimal routes",
    .ops = 1U << POD_PERMUTE,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = permute_applies,
    .predict = permute_predict,
    .build = permute_build,
};
