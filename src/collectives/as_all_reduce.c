/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast as an all-reduce to which only the root contributes: so it never takes longer than one.
 *
 * The schedule is that of an all-reduce: of each in a list, and the fastest broadcast counts; with many chips, only of
 * the one that is predicted to be the fastest all-reduce; tree where none can be cut down. What the root does not
 * contribute to is left out (masked.h).
 *
 * Example, swing on a closed ring of 4, root 0, whole vectors (dots: messages of the all-reduce that are left out):
 *     step  rank 0   rank 1   rank 2   rank 3
 *       0   to 1     .        .        .
 *       1   to 3     to 2     .        .
 *
 * An all-reduce in two phases becomes a scatter from the root and a gather. What the steps of an all-reduce bring keeps
 * its channels abreast. Here most bring nothing, and the root would finish one channel before it starts the next. Where
 * the all-reduce has its links to itself, they carry what is left in the same order (turns.h). Else what is
 * left out is left out, or sent empty and waited for as before, whichever is faster. */
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/masked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_REDUCE_RANKS_MAX = 512, TURNS_STEPS_MAX = 1 << 24, ALL_TRIED_RANKS_MAX = 64 };

/* tree isn't among them: it broadcasts itself, by trees that grow from the root. */
static const pod_coll_algorithm *const all_reduces[] = {
    &pod_coll_ring,   &pod_coll_line,          &pod_coll_bucket,      &pod_coll_swing,
    &pod_coll_gather, &pod_coll_scatter_relay, &pod_coll_swing_bw_2D, &pod_coll_xla,
};
enum { ALL_REDUCES = sizeof all_reduces / sizeof *all_reduces };

/* How links know what comes next. */
typedef enum form {
    FORM_EARLIEST, /* of what is ready, the earlier step */
    FORM_PACED, /* messages with nothing left are sent empty, so that steps wait as in the all-reduce */
    FORM_TIMED /* the order of the all-reduce, where its links carry one message at a time */
} form;

static pod_status too_large(pod_error *err, int32_t n)
{
    return pod_fail(err, POD_E_INVALID,
                    "as_all_reduce walks through all messages of all chips, and %d chips have too "
                    "many; use tree",
                    (int)n);
}

/* @return POD_E_INVALID where this all-reduce can't be cut down */
static pod_status mask_all_reduce(const pod_coll_request *request,
                                  const pod_coll_algorithm *algorithm,
                                  const pod_coll_prediction *prediction, pod_coll_masked **built,
                                  pod_error *err)
{
    pod_coll_request all = *request;
    all.op = POD_ALL_REDUCE;
    all.predicted = prediction;
    pod_coll_schedule *whole = NULL;
    POD_TRY(algorithm->build(&all, &whole, err));
    POD_TRY(pod_coll_mask(whole, request->root, built, err));
    pod_coll_schedule *base = &(*built)->base;
    (void)snprintf(base->own_name, sizeof base->own_name, "as_all_reduce:%.60s", whole->algorithm);
    base->algorithm = base->own_name;
    return POD_OK;
}

/* The turns of what is left, counted anew. @param order  room for the sends over a link, as (channel, step) */
static void turns_close_up(pod_coll_masked *self, const pod_coll_place *me, int direction,
                           int64_t *order)
{
    const pod_coll_schedule *whole = self->whole;
    int32_t count = 0;
    for (int32_t c = 0; c < whole->nchannels; ++c) {
        const int32_t steps = whole->ops->steps(whole, me, c);
        for (int32_t s = 0; s < steps; ++s) {
            pod_coll_step step;
            whole->ops->step(whole, me, c, s, &step);
            const int32_t turn = *pod_coll_turn_at(&self->turns, me->rank, c, s);
            if (turn >= 0 && step.send_direction == direction) {
                order[turn] = (int64_t)c << 32 | s;
                count = turn + 1 > count ? turn + 1 : count;
            }
        }
    }
    int32_t left = 0;
    for (int32_t i = 0; i < count; ++i) {
        const int32_t channel = (int32_t)(order[i] >> 32);
        const int32_t step = (int32_t)(order[i] & INT32_MAX);
        if (pod_coll_left_at(self, channel, me->rank, step)->send_slots > 0) {
            pod_coll_turn_note(&self->turns, me->rank, channel, step, left++);
        }
    }
}

/* Follow the all-reduce, every rank by itself, and keep the order of its links. */
static pod_status turns_find(const pod_coll_request *request, pod_coll_masked *self, pod_error *err)
{
    pod_coll_request all = *request;
    all.op = POD_ALL_REDUCE;
    all.enough_ps = 0;
    const int32_t n = request->group->size;
    const pod_coll_fold fold = {.cells = n, .hops_max = INT64_MAX, .turns = &self->turns};
    pod_coll_estimate estimate;
    if (!pod_coll_turns_init(&self->turns, self->whole, TURNS_STEPS_MAX)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    POD_TRY(pod_coll_estimate_folded(&all, self->whole, &fold, &estimate, err));
    int64_t most = 0; /* steps of a rank */
    for (int32_t c = 0; c < self->whole->nchannels; ++c) {
        most += self->whole->channels[c].max_steps;
    }
    int64_t *order = malloc(((size_t)most + 1) * sizeof *order);
    for (int32_t rank = 0; order != NULL && rank < n; ++rank) {
        pod_coll_place me;
        pod_coll_place_make(self->whole->group, rank, &me);
        for (int direction = 0; direction < POD_DIRECTIONS; ++direction) {
            turns_close_up(self, &me, direction, order);
        }
    }
    const bool ok = order != NULL;
    free(order);
    return ok ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
}

static void form_take(pod_coll_masked *self, form f)
{
    self->base.timed = f == FORM_TIMED;
    self->paced = f == FORM_PACED;
}

/* In the order of the all-reduce; else with empty messages or without. POD_E_INVALID when this all-reduce can't be
 * cut down. @param prediction  of the all-reduce */
static pod_status masked_follow(const pod_coll_request *request,
                                const pod_coll_algorithm *algorithm,
                                const pod_coll_prediction *prediction, pod_coll_masked **followed,
                                pod_coll_estimate *best, pod_error *err)
{
    pod_coll_masked *self = NULL;
    POD_TRY(mask_all_reduce(request, algorithm, prediction, &self, err));
    POD_ASSERT(self != NULL);
    const bool exclusive = self->whole->exclusive;
    form fastest = FORM_EARLIEST;
    pod_coll_request asked = *request;
    pod_status st = exclusive ? turns_find(request, self, err) : POD_OK;
    for (int turn = 0; st == POD_OK && turn < 2; ++turn) {
        const form second = exclusive ? FORM_TIMED : FORM_PACED;
        pod_coll_estimate estimate = {0};
        form_take(self, turn == 0 ? FORM_EARLIEST : second);
        st = pod_coll_estimate_get(&asked, &self->base, false, &estimate, err);
        if (turn == 0 || estimate.time_ps < best->time_ps) {
            fastest = turn == 0 ? FORM_EARLIEST : second;
            *best = estimate;
            asked.enough_ps = estimate.time_ps;
        }
    }
    if (st != POD_OK) {
        pod_coll_schedule_free(&self->base);
        return st;
    }
    form_take(self, fastest);
    *followed = self;
    return POD_OK;
}

/* What a broadcast is made of takes half of an all-reduce at least, so beyond this an all-reduce is of no use. */
static pod_time_ps all_reduce_enough(const pod_coll_request *request)
{
    return request->enough_ps > 0 ? 2 * request->enough_ps - request->launch_ps : 0;
}

/* The all-reduce that follows number `after` in the list, or with many chips the fastest of all, with its prediction.
 * @return its number, or ALL_REDUCES: there is none */
static int all_reduce_next(const pod_coll_request *request, int after,
                           pod_coll_prediction *prediction)
{
    const bool every = request->group->size <= ALL_TRIED_RANKS_MAX;
    pod_coll_request all = *request;
    int found = ALL_REDUCES;
    all.op = POD_ALL_REDUCE;
    all.enough_ps = all_reduce_enough(request);
    all.predicted = NULL;
    for (int i = after + 1; i < ALL_REDUCES && (!every || found == ALL_REDUCES); ++i) {
        pod_coll_prediction mine;
        if (all_reduces[i]->applies(&all, NULL) == POD_OK
            && all_reduces[i]->predict(&all, &mine, NULL) == POD_OK
            && (all.enough_ps == 0 || mine.total_ps < all.enough_ps)) {
            all.enough_ps = mine.total_ps;
            *prediction = mine;
            found = i;
        }
    }
    return found;
}

/* @param[out] fastest  without a schedule where no all-reduce can be cut down */
static pod_status masked_choose(const pod_coll_request *request, pod_coll_fastest *fastest,
                                pod_error *err)
{
    pod_coll_request asked = *request;
    pod_coll_prediction prediction;
    *fastest = (pod_coll_fastest){.schedule = NULL};
    for (int i = -1; (i = all_reduce_next(&asked, i, &prediction)) < ALL_REDUCES;) {
        pod_coll_masked *followed = NULL;
        pod_coll_estimate estimate = {0};
        const pod_status st =
            masked_follow(&asked, all_reduces[i], &prediction, &followed, &estimate, err);
        if (st == POD_OK) {
            pod_coll_fastest_offer(fastest, &followed->base, &estimate, &asked);
        } else if (st != POD_E_INVALID) {
            pod_coll_schedule_free(fastest->schedule);
            return st;
        }
        if (request->group->size > ALL_TRIED_RANKS_MAX) {
            break;
        }
    }
    return POD_OK;
}

static pod_status masked_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    pod_coll_fastest fastest;
    POD_TRY(masked_choose(request, &fastest, err));
    *schedule = fastest.schedule;
    return *schedule != NULL ? POD_OK : pod_coll_tree.build(request, schedule, err);
}

static pod_status masked_applies(const pod_coll_request *request, pod_error *err)
{
    return request->group->size <= ALL_REDUCE_RANKS_MAX ? POD_OK
                                                        : too_large(err, request->group->size);
}

static pod_status masked_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_coll_fastest fastest;
    POD_TRY(masked_choose(request, &fastest, err));
    if (fastest.schedule != NULL) {
        pod_coll_prediction_from(request, &fastest.estimate, prediction);
    } else if (request->enough_ps > 0) { /* none is worth it */
        *prediction = (pod_coll_prediction){.total_ps = POD_TIME_NEVER};
    } else {
        return pod_coll_tree.predict(request, prediction, err);
    }
    pod_coll_schedule_free(fastest.schedule);
    return POD_OK;
}

const pod_coll_algorithm pod_coll_as_all_reduce = {
    .name = "as_all_reduce",
    .summary = "broadcast as an all-reduce to which only the root contributes",
    .ops = 1U << POD_BROADCAST,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = masked_applies,
    .predict = masked_predict,
    .build = masked_build,
};
