/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast as an all-reduce to which only the root contributes: so it never takes longer than one.
 *
 * The schedule is that of an all-reduce: of each in a list, and the fastest broadcast counts; with many chips, only of
 * the one that is predicted to be the fastest all-reduce. It is walked through once on paper, to see which slots
 * hold the root's contribution when. A message without it is left out, one with it in some of its slots is cut
 * down to them, and what was a sum is a copy, as the other summands are nothing. What would be received twice, to be
 * passed on and to be added, is received into the sum alone and passed on from there.
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
#include "collectives/schedule/frame.h"
#include "collectives/schedule/turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_REDUCE_RANKS_MAX = 512, STEPS_MAX = 1 << 24, ALL_TRIED_RANKS_MAX = 64 };

static const pod_coll_algorithm *const all_reduces[] = {
    &pod_coll_ring,          &pod_coll_line,        &pod_coll_bucket,
    &pod_coll_tree,          &pod_coll_swing,       &pod_coll_gather,
    &pod_coll_scatter_relay, &pod_coll_swing_bw_2D, &pod_coll_xla,
};
enum { ALL_REDUCES = sizeof all_reduces / sizeof *all_reduces };

/* What is left of a step's message, seen from either end; slots = 0: nothing. */
typedef struct leftover {
    int32_t send_slot;
    int32_t send_slots;
    int32_t recv_slot;
    bool receives;
} leftover;

/* How links know what comes next. */
typedef enum form {
    FORM_EARLIEST, /* of what is ready, the earlier step */
    FORM_PACED, /* messages with nothing left are sent empty, so that steps wait as in the all-reduce */
    FORM_TIMED /* the order of the all-reduce, where its links carry one message at a time */
} form;

typedef struct masked {
    pod_coll_schedule base;
    pod_coll_schedule *whole; /* the all-reduce */
    int64_t *first;           /* first[channel]: of its entries, [rank][step] */
    leftover *left;
    pod_coll_turns turns; /* timed: of what is left */
    bool paced;
} masked;

static leftover *left_at(const masked *self, int32_t channel, int32_t rank, int32_t step)
{
    const int64_t steps = self->base.channels[channel].max_steps;
    return &self->left[self->first[channel] + rank * steps + step];
}

static int32_t masked_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    const masked *self = (const masked *)schedule;
    return self->whole->ops->steps(self->whole, me, channel);
}

static void masked_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const masked *self = (const masked *)schedule;
    const leftover *left = left_at(self, channel, me->rank, step);
    self->whole->ops->step(self->whole, me, channel, step, out);
    if (left->send_slots > 0) {
        out->send_slot = left->send_slot;
    } else if (!self->paced) {
        out->send_to = -1;
    }
    out->send_slots = left->send_slots;
    out->send_gap = 0;
    if (self->base.timed && out->send_to >= 0 && out->send_to != me->rank) {
        out->turn = *pod_coll_turn_at(&self->turns, me->rank, channel, step);
    } else if (self->whole->sequential && !self->paced) {
        out->priority = (uint8_t)(step * UINT8_MAX / self->base.channels[channel].max_steps);
    }
    out->recv_from = left->receives || self->paced ? out->recv_from : -1;
    out->recv_slot = left->receives ? left->recv_slot : 0;
    out->recv_op = POD_RECV_STORE;
    out->recv_also = -1;
}

static int64_t masked_slot_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                  int32_t slot)
{
    const masked *self = (const masked *)schedule;
    return self->whole->ops->slot_offset(self->whole, rank, part, slot);
}

static void masked_free(pod_coll_schedule *schedule)
{
    masked *self = (masked *)schedule;
    pod_coll_schedule_free(self->whole);
    pod_coll_turns_fini(&self->turns);
    free(self->left);
    free(self->first);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops masked_ops = {
    .steps = masked_steps, .step = masked_step, .free = masked_free};
static const pod_coll_schedule_ops masked_offset_ops = {.steps = masked_steps,
                                                        .step = masked_step,
                                                        .slot_offset = masked_slot_offset,
                                                        .free = masked_free};

/* ---- the walk_all on paper ---- */

enum { EMPTY = -1 };

/* A message on its way: slots from `first` of the sender's message, `slots` of them, that hold the root's. */
typedef struct parcel {
    bool here;
    int32_t sent; /* slots of the whole message */
    int32_t first;
    int32_t slots;
} parcel;

typedef struct cursor {
    int32_t steps;
    int32_t next_send;
    int32_t next_recv;
} cursor;

typedef struct walker {
    masked *self;
    int32_t n;
    pod_coll_place *places;
    int64_t *part_first; /* [part]: of its entries in holds, [rank][slot] */
    int32_t *holds;      /* the slot that has what this one holds: itself, or a copy; or EMPTY */
    cursor *cursors;     /* [channel][rank] */
    parcel *parcels;     /* as left */
    bool whole;          /* no message held the root's contribution with gaps */
} walker;

static int32_t *holds_at(const walker *w, int32_t part, int32_t rank, int32_t slot)
{
    return &w->holds[w->part_first[part] + (int64_t)rank * w->self->base.parts[part].slots + slot];
}

static cursor *walker_cursor(const walker *w, int32_t channel, int32_t rank)
{
    return &w->cursors[(int64_t)channel * w->n + rank];
}

static bool walker_waits_over(const walker *w, int32_t channel, int32_t rank,
                              const pod_coll_step *step)
{
    bool over = walker_cursor(w, channel, rank)->next_recv >= step->wait_recv;
    for (int i = 0; i < POD_COLL_WAITS_MAX; ++i) {
        const pod_coll_wait *wait = &step->wait[i];
        over = over
               && (wait->channel < 0
                   || walker_cursor(w, wait->channel, rank)->next_recv >= wait->recv);
    }
    return over;
}

/* Cut a message down to what of it holds the root's contribution, which lies in one run or is refused. */
static void walker_post(walker *w, int32_t channel, int32_t rank, int32_t at,
                        const pod_coll_step *step)
{
    const int32_t part = w->self->base.channels[channel].part;
    leftover *left = left_at(w->self, channel, rank, at);
    parcel *to =
        &w->parcels[left_at(w->self, channel, step->send_to, step->send_step) - w->self->left];
    *to = (parcel){.here = true, .sent = step->send_slots};
    for (int32_t i = 0; i < step->send_slots; ++i) {
        const int32_t from = *holds_at(w, part, rank, step->send_slot + i);
        if (from == EMPTY) {
            continue;
        }
        if (to->slots == 0) {
            to->first = i;
            left->send_slot = from;
        }
        w->whole = w->whole && to->first + to->slots == i && left->send_slot + to->slots == from;
        ++to->slots;
    }
    w->whole = w->whole && (step->send_gap == 0 || to->slots == 0);
    left->send_slots = to->slots;
}

static void parcel_take(walker *w, int32_t channel, int32_t rank, int32_t at,
                        const pod_coll_step *step, const parcel *got)
{
    const int32_t part = w->self->base.channels[channel].part;
    leftover *left = left_at(w->self, channel, rank, at);
    const int32_t into = step->recv_also >= 0 ? step->recv_also : step->recv_slot;
    left->receives = got->slots > 0;
    left->recv_slot = into + got->first;
    if (step->recv_op
        == POD_RECV_STORE) { /* what was there is gone, also where nothing takes its place */
        for (int32_t i = 0; i < got->sent; ++i) {
            *holds_at(w, part, rank, step->recv_slot + i) = EMPTY;
        }
    }
    for (int32_t i = got->first; i < got->first + got->slots; ++i) {
        *holds_at(w, part, rank, into + i) = into + i;
        *holds_at(w, part, rank, step->recv_slot + i) = into + i;
    }
}

static bool walker_advance(walker *w, int32_t channel, int32_t rank)
{
    const pod_coll_schedule *s = w->self->whole;
    cursor *cur = walker_cursor(w, channel, rank);
    pod_coll_step step;
    bool moved = false;
    for (; cur->next_send < cur->steps; ++cur->next_send) {
        s->ops->step(s, &w->places[rank], channel, cur->next_send, &step);
        if (!walker_waits_over(w, channel, rank, &step)) {
            break;
        }
        if (step.send_to >= 0) {
            walker_post(w, channel, rank, cur->next_send, &step);
        }
        moved = true;
    }
    for (; cur->next_recv < cur->next_send; ++cur->next_recv) {
        s->ops->step(s, &w->places[rank], channel, cur->next_recv, &step);
        const parcel *got =
            &w->parcels[left_at(w->self, channel, rank, cur->next_recv) - w->self->left];
        if (step.recv_from >= 0 && !got->here) {
            break;
        }
        if (step.recv_from >= 0) {
            parcel_take(w, channel, rank, cur->next_recv, &step, got);
        }
        moved = true;
    }
    return moved;
}

/* Every rank ends with all slots of every part. */
static bool ends_right(const walker *w)
{
    for (int32_t p = 0; p < w->self->base.nparts; ++p) {
        for (int32_t rank = 0; rank < w->n; ++rank) {
            for (int32_t slot = 0; slot < w->self->base.parts[p].blocks; ++slot) {
                if (*holds_at(w, p, rank, slot) != slot) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool walk_all(walker *w)
{
    const pod_coll_schedule *base = &w->self->base;
    for (int32_t p = 0; p < base->nparts; ++p) {
        for (int32_t slot = 0; slot < base->parts[p].blocks; ++slot) {
            *holds_at(w, p, base->root, slot) = slot;
        }
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t c = 0; c < base->nchannels; ++c) {
            for (int32_t rank = 0; rank < w->n; ++rank) {
                moved = walker_advance(w, c, rank) || moved;
            }
        }
    }
    return w->whole && ends_right(w);
}

static bool walker_init(walker *w, masked *self, int64_t entries)
{
    const pod_coll_schedule *whole = self->whole;
    *w = (walker){.self = self, .n = whole->group->size, .whole = true};
    const size_t n = (size_t)w->n;
    w->places = calloc(n, sizeof *w->places);
    w->part_first = calloc((size_t)whole->nparts + 1, sizeof *w->part_first);
    w->cursors = calloc((size_t)whole->nchannels * n + 1, sizeof *w->cursors);
    w->parcels = calloc((size_t)entries + 1, sizeof *w->parcels);
    if (!w->places || !w->part_first || !w->cursors || !w->parcels) {
        return false;
    }
    int64_t slots = 0;
    for (int32_t p = 0; p < whole->nparts; ++p) {
        w->part_first[p] = slots;
        slots += whole->parts[p].slots * (int64_t)w->n;
    }
    w->holds = malloc(((size_t)slots + 1) * sizeof *w->holds);
    for (int64_t i = 0; w->holds && i < slots; ++i) {
        w->holds[i] = EMPTY;
    }
    for (int32_t rank = 0; rank < w->n; ++rank) {
        pod_coll_place_make(whole->group, rank, &w->places[rank]);
        for (int32_t c = 0; c < whole->nchannels; ++c) {
            walker_cursor(w, c, rank)->steps = whole->ops->steps(whole, &w->places[rank], c);
        }
    }
    return w->holds != NULL;
}

static void walker_fini(walker *w)
{
    free(w->holds);
    free(w->parcels);
    free(w->cursors);
    free(w->part_first);
    free(w->places);
}

/* ---- building ---- */

/* Everything but what is left of the messages. @return entries of `left`, 0 without memory, -1 = too many */
static int64_t copy_frame(masked *self, const pod_coll_request *request)
{
    const pod_coll_schedule *whole = self->whole;
    self->base = *whole;
    self->base.ops = whole->ops->slot_offset ? &masked_offset_ops : &masked_ops;
    self->base.op = POD_BROADCAST;
    self->base.root = request->root;
    self->base.uniform = false;
    memset(self->base.repeat, 0, sizeof self->base.repeat);
    self->base.least_elements = 0;
    (void)snprintf(self->base.own_name, sizeof self->base.own_name, "as_all_reduce:%.60s",
                   whole->algorithm);
    self->base.algorithm = self->base.own_name;
    const size_t parts = (size_t)whole->nparts * sizeof *whole->parts;
    const size_t channels = (size_t)whole->nchannels * sizeof *whole->channels;
    self->base.parts = malloc(parts + 1);
    self->base.channels = malloc(channels + 1);
    self->first = calloc((size_t)whole->nchannels + 1, sizeof *self->first);
    if (!self->base.parts || !self->base.channels || !self->first) {
        return 0;
    }
    memcpy(self->base.parts, whole->parts, parts);
    memcpy(self->base.channels, whole->channels, channels);
    int64_t entries = 0;
    for (int32_t c = 0; c < whole->nchannels; ++c) {
        self->first[c] = entries;
        entries += whole->channels[c].max_steps * (int64_t)whole->group->size;
    }
    self->left = entries <= STEPS_MAX ? calloc((size_t)entries + 1, sizeof *self->left) : NULL;
    return entries > STEPS_MAX ? -1 : self->left ? entries : 0;
}

static pod_status too_large(pod_error *err, int32_t n)
{
    return pod_fail(err, POD_E_INVALID,
                    "as_all_reduce walks through all messages of all chips, and %d chips have too "
                    "many; use tree",
                    (int)n);
}

static pod_status walk_all_reduce(const pod_coll_request *request,
                                  const pod_coll_algorithm *algorithm, masked **built,
                                  pod_error *err)
{
    pod_coll_request all = *request;
    all.op = POD_ALL_REDUCE;
    masked *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    pod_status st = algorithm->build(&all, &self->whole, err);
    const int64_t entries = st == POD_OK ? copy_frame(self, request) : 0;
    walker w = {0};
    if (st == POD_OK && entries < 0) {
        st = too_large(err, request->group->size);
    } else if (st == POD_OK && (!self->left || !walker_init(&w, self, entries))) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    } else if (st == POD_OK && !walk_all(&w)) {
        st = pod_fail(err, POD_E_INVALID,
                      "%s has messages that hold the root's part with gaps; use tree",
                      algorithm->name);
    }
    walker_fini(&w);
    if (st != POD_OK) {
        masked_free(&self->base);
        return st;
    }
    *built = self;
    return POD_OK;
}

/* The turns of what is left, counted anew. @param order  room for the sends over a link, as (channel, step) */
static void turns_close_up(masked *self, const pod_coll_place *me, int direction, int64_t *order)
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
        if (left_at(self, channel, me->rank, step)->send_slots > 0) {
            pod_coll_turn_note(&self->turns, me->rank, channel, step, left++);
        }
    }
}

/* Follow the all-reduce, every rank by itself, and keep the order of its links. */
static pod_status turns_find(const pod_coll_request *request, masked *self, pod_error *err)
{
    pod_coll_request all = *request;
    all.op = POD_ALL_REDUCE;
    all.enough_ps = 0;
    const int32_t n = request->group->size;
    const pod_coll_fold fold = {.cells = n, .hops_max = INT64_MAX, .turns = &self->turns};
    pod_coll_estimate estimate;
    if (!pod_coll_turns_init(&self->turns, self->whole, STEPS_MAX)) {
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

static void form_take(masked *self, form f)
{
    self->base.timed = f == FORM_TIMED;
    self->paced = f == FORM_PACED;
}

/* In the order of the all-reduce; else with empty messages or without. POD_E_INVALID when this all-reduce can't be
 * cut down. */
static pod_status masked_follow(const pod_coll_request *request,
                                const pod_coll_algorithm *algorithm, masked **followed,
                                pod_coll_estimate *best, pod_error *err)
{
    masked *self = NULL;
    POD_TRY(walk_all_reduce(request, algorithm, &self, err));
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
        masked_free(&self->base);
        return st;
    }
    form_take(self, fastest);
    *followed = self;
    return POD_OK;
}

/* The fastest all-reduce as predicted, or NULL if none applies. */
static const pod_coll_algorithm *fastest_all_reduce(const pod_coll_request *request)
{
    pod_coll_request all = *request;
    const pod_coll_algorithm *fastest = NULL;
    for (int i = 0; i < ALL_REDUCES; ++i) {
        pod_coll_prediction prediction;
        if (all_reduces[i]->applies(&all, NULL) == POD_OK
            && all_reduces[i]->predict(&all, &prediction, NULL) == POD_OK
            && (fastest == NULL || prediction.total_ps < all.enough_ps)) {
            all.enough_ps = prediction.total_ps;
            fastest = all_reduces[i];
        }
    }
    return fastest;
}

static pod_status masked_choose(const pod_coll_request *request, pod_coll_schedule **schedule,
                                pod_coll_estimate *best, pod_error *err)
{
    pod_coll_request all = *request;
    all.op = POD_ALL_REDUCE;
    all.enough_ps = 0;
    all.predicted = NULL;
    const bool every = request->group->size <= ALL_TRIED_RANKS_MAX;
    const pod_coll_algorithm *fastest = every ? NULL : fastest_all_reduce(&all);
    pod_coll_request asked = *request;
    masked *chosen = NULL;
    pod_status st = POD_OK;
    for (int i = 0; i < (every ? ALL_REDUCES : 1) && st == POD_OK; ++i) {
        const pod_coll_algorithm *algorithm = every ? all_reduces[i] : fastest;
        masked *followed = NULL;
        pod_coll_estimate estimate = {0};
        if (algorithm == NULL || (every && algorithm->applies(&all, NULL) != POD_OK)) {
            continue;
        }
        st = masked_follow(&asked, algorithm, &followed, &estimate, err);
        if (st == POD_E_INVALID) {
            st = POD_OK;
        } else if (st == POD_OK && (chosen == NULL || estimate.time_ps < best->time_ps)) {
            masked *slower = chosen;
            chosen = followed;
            followed = slower;
            *best = estimate;
            asked.enough_ps = asked.enough_ps == 0 || estimate.time_ps < asked.enough_ps
                                  ? estimate.time_ps
                                  : asked.enough_ps;
        }
        if (followed != NULL) {
            masked_free(&followed->base);
        }
    }
    if (st != POD_OK && chosen != NULL) {
        masked_free(&chosen->base);
    } else if (st == POD_OK && chosen == NULL) {
        st = pod_fail(err, POD_E_INVALID,
                      "no all-reduce of this group can be cut down to a broadcast; use tree");
    } else if (st == POD_OK) {
        *schedule = &chosen->base;
    }
    return st;
}

static pod_status masked_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    pod_coll_estimate estimate;
    return masked_choose(request, schedule, &estimate, err);
}

static pod_status masked_applies(const pod_coll_request *request, pod_error *err)
{
    return request->group->size <= ALL_REDUCE_RANKS_MAX ? POD_OK
                                                        : too_large(err, request->group->size);
}

/* An all-reduce that can't be cut down takes for ever, so that others are chosen. */
static pod_status masked_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_coll_estimate estimate = {0};
    const pod_status st = masked_choose(request, &schedule, &estimate, err);
    if (st == POD_E_INVALID) {
        *prediction = (pod_coll_prediction){.total_ps = POD_TIME_NEVER};
        return POD_OK;
    }
    if (st == POD_OK) {
        pod_coll_prediction_from(request, &estimate, prediction);
    }
    pod_coll_schedule_free(schedule);
    return st;
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
