/* SPDX-License-Identifier: Apache-2.0 */
/* All-gather as a reduce-scatter that runs backwards, and the other way round: so the two take the same time.
 *
 * An all-gather brings every block down a tree from its owner, a reduce-scatter sums it up such a tree. Run backwards,
 * over the other ways of the same cables, the one is the other, and each link has as much to carry. But
 * which of two messages that are ready goes first is found anew in each direction, and one of the two searches
 * may end a few per cent later. So both orders are kept (turns.h): that of this operation, and that of the other one,
 * backwards. The longest chain of messages, each of which waits for its link or for what came before, is as long either
 * way.
 *
 * Groups that are closed all round find the same order both ways. Where bucket shares links no order is kept, and it is
 * taken as it is.
 *
 * Example, reduce-scatter on an open axis of 3, blocks a b c; what the links carry in turn (line.c), and the
 * all-gather:
 *     0 to 1   c, then b        1 to 2   c            2 to 1   a, then b       1 to 0   a
 *     1 to 0   b, then c        2 to 1   c            1 to 2   b, then a       0 to 1   a
 *
 * Every part has a channel for each direction: first what a rank receives over the link of that direction,
 * then what it sends. A send waits for all receives of what it sends, which come by up to six channels; where a step
 * has no room for so many waits, steps that only wait go before it. */
#include "collectives/embedding/axes.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"
#include "collectives/schedule/turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIRRORED_RANKS_MAX = 128, MIRRORED_STEPS_MAX = 1 << 18 };

/* What other orders must gain to be worth a schedule of their own. */
static const double mirrored_worth_it = 0.995;

/* A message of the source, or the same one backwards. */
typedef struct message {
    int32_t from;
    int32_t to;
    int32_t part;
    int32_t slot;
    int32_t slots;
    int32_t gap;
    int32_t number; /* among those of its part over the link */
    int8_t direction;
} message;

typedef struct mirrored {
    pod_coll_schedule base;
    pod_coll_schedule *source;
    message *messages; /* by the link, (from, direction), and its turns */
    int32_t *link;     /* link[from * directions + direction]: its first message; one more: all */
    int64_t *first;    /* first[channel * n + rank]: of its steps; one more: all */
    pod_coll_step *steps;
} mirrored;

static int32_t mirrored_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                              int32_t channel)
{
    const mirrored *self = (const mirrored *)schedule;
    const int64_t *first = &self->first[(int64_t)channel * schedule->group->size + me->rank];
    return (int32_t)(first[1] - first[0]);
}

static void mirrored_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel, int32_t step, pod_coll_step *out)
{
    const mirrored *self = (const mirrored *)schedule;
    *out = self->steps[self->first[(int64_t)channel * schedule->group->size + me->rank] + step];
}

static int32_t mirrored_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    return pod_coll_own_slot(((const mirrored *)schedule)->source, part, rank);
}

static void mirrored_free(pod_coll_schedule *schedule)
{
    mirrored *self = (mirrored *)schedule;
    pod_coll_schedule_free(self->source);
    free(self->messages);
    free(self->link);
    free(self->first);
    free(self->steps);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops mirrored_ops = {.steps = mirrored_steps,
                                                   .step = mirrored_step,
                                                   .block_slot = mirrored_block_slot,
                                                   .free = mirrored_free};

/* ---- the messages of the source ---- */

/* Calls `visit` for every send of the source. @return false: one can't be kept, or visit says so */
static bool sends_visit(mirrored *self, const pod_coll_turns *turns, bool backwards,
                        bool (*visit)(mirrored *self, const message *m, int32_t turn))
{
    const pod_coll_schedule *source = self->source;
    for (int32_t rank = 0; rank < source->group->size; rank++) {
        pod_coll_place me;
        pod_coll_place_make(source->group, rank, &me);
        for (int32_t c = 0; c < source->nchannels; c++) {
            const int32_t steps = source->ops->steps(source, &me, c);
            for (int32_t s = 0; s < steps; s++) {
                pod_coll_step step;
                source->ops->step(source, &me, c, s, &step);
                const int32_t turn = *pod_coll_turn_at(turns, rank, c, s);
                if (step.recv_also >= 0 || (step.send_to >= 0 && turn < 0)) {
                    return false;
                }
                if (step.send_to < 0) {
                    continue;
                }
                const message m = {.from = backwards ? step.send_to : rank,
                                   .to = backwards ? rank : step.send_to,
                                   .part = source->channels[c].part,
                                   .slot = step.send_slot,
                                   .slots = step.send_slots,
                                   .gap = step.send_gap,
                                   .direction =
                                       (int8_t)(step.send_direction ^ (backwards ? 1 : 0))};
                if (!visit(self, &m, turn)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool message_count(mirrored *self, const message *m, int32_t turn)
{
    (void)turn;
    self->link[m->from * POD_DIRECTIONS + m->direction + 1]++;
    return true;
}

static bool message_put(mirrored *self, const message *m, int32_t turn)
{
    self->messages[self->link[m->from * POD_DIRECTIONS + m->direction] + turn] = *m;
    return true;
}

static bool message_put_backwards(mirrored *self, const message *m, int32_t turn)
{
    self->messages[self->link[m->from * POD_DIRECTIONS + m->direction + 1] - 1 - turn] = *m;
    return true;
}

/* The messages of every link in the order of their turns. */
static bool messages_list(mirrored *self, const pod_coll_turns *turns, bool backwards)
{
    const int32_t links = self->base.group->size * POD_DIRECTIONS;
    const int32_t parts = self->base.nparts;
    self->link = calloc((size_t)links + 1, sizeof *self->link);
    int32_t *count = calloc((size_t)parts, sizeof *count);
    bool ok =
        self->link != NULL && count != NULL && sends_visit(self, turns, backwards, message_count);
    for (int32_t l = 0; ok && l < links; l++) {
        self->link[l + 1] += self->link[l];
    }
    self->messages = ok ? calloc((size_t)self->link[links] + 1, sizeof *self->messages) : NULL;
    ok = self->messages != NULL
         && sends_visit(self, turns, backwards, backwards ? message_put_backwards : message_put);
    for (int32_t l = 0; ok && l < links; l++) {
        memset(count, 0, (size_t)parts * sizeof *count);
        for (int32_t i = self->link[l]; i < self->link[l + 1]; i++) {
            self->messages[i].number = count[self->messages[i].part]++;
        }
    }
    free(count);
    return ok;
}

/* ---- steps ---- */

/* What a rank receives of every slot, by direction: the receive that brings it last, plus 1; 0 = none. */
typedef struct arrivals {
    int32_t *part_first; /* [part]: of its slots */
    int32_t *last;       /* last[slot * directions + direction] */
    /* link_into[rank * directions + direction]: the link that leads into it, or -1 */
    int32_t *link_into;
} arrivals;

static bool arrivals_init(arrivals *a, const mirrored *self)
{
    const pod_coll_schedule *base = &self->base;
    const int32_t links = base->group->size * POD_DIRECTIONS;
    *a = (arrivals){.part_first = calloc((size_t)base->nparts + 1, sizeof *a->part_first),
                    .link_into = malloc((size_t)links * sizeof *a->link_into)};
    if (a->part_first == NULL || a->link_into == NULL) {
        return false;
    }
    for (int32_t p = 0; p < base->nparts; p++) {
        a->part_first[p + 1] = a->part_first[p] + base->parts[p].slots;
    }
    a->last = malloc((size_t)a->part_first[base->nparts] * POD_DIRECTIONS * sizeof *a->last + 1);
    for (int32_t l = 0; l < links; l++) {
        a->link_into[l] = -1;
    }
    for (int32_t l = 0; l < links; l++) {
        if (self->link[l] < self->link[l + 1]) {
            a->link_into[self->messages[self->link[l]].to * POD_DIRECTIONS + l % POD_DIRECTIONS] =
                l;
        }
    }
    return a->last != NULL;
}

static void arrivals_fini(arrivals *a)
{
    free(a->link_into);
    free(a->last);
    free(a->part_first);
}

static int32_t *arrivals_of(const arrivals *a, const message *m, int32_t slot)
{
    const int32_t at = a->part_first[m->part] + m->slot + slot * (m->gap + 1);
    return &a->last[at * POD_DIRECTIONS];
}

static void arrivals_fill(arrivals *a, const mirrored *self, int32_t rank)
{
    const size_t entries = (size_t)a->part_first[self->base.nparts] * POD_DIRECTIONS;
    memset(a->last, 0, entries * sizeof *a->last);
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        const int32_t l = a->link_into[rank * POD_DIRECTIONS + d];
        for (int32_t i = l >= 0 ? self->link[l] : 0; l >= 0 && i < self->link[l + 1]; i++) {
            const message *m = &self->messages[i];
            for (int32_t slot = 0; slot < m->slots; slot++) {
                arrivals_of(a, m, slot)[d] = m->number + 1;
            }
        }
    }
}

/* Steps of a channel on a rank: into `out`, or only counted where that is NULL. @return how many */
static int32_t channel_steps(const mirrored *self, const arrivals *a, int32_t rank, int32_t channel,
                             pod_coll_step *out)
{
    const int32_t part = channel / POD_DIRECTIONS;
    const int direction = channel % POD_DIRECTIONS;
    const bool sums = self->base.op == POD_REDUCE_SCATTER;
    int32_t steps = 0;
    const int32_t in = a->link_into[rank * POD_DIRECTIONS + direction];
    for (int32_t i = in >= 0 ? self->link[in] : 0; in >= 0 && i < self->link[in + 1]; i++) {
        const message *m = &self->messages[i];
        if (m->part == part && out != NULL) {
            out[steps] = pod_coll_step_idle();
            out[steps].recv_from = m->from;
            out[steps].recv_slot = m->slot;
            out[steps].recv_op = sums ? POD_RECV_REDUCE : POD_RECV_STORE;
        }
        steps += m->part == part ? 1 : 0;
    }
    const int32_t link = rank * POD_DIRECTIONS + direction;
    for (int32_t i = self->link[link]; i < self->link[link + 1]; i++) {
        const message *m = &self->messages[i];
        if (m->part != part) {
            continue;
        }
        int32_t needs[POD_DIRECTIONS] = {0};
        for (int32_t slot = 0; slot < m->slots; slot++) {
            const int32_t *last = arrivals_of(a, m, slot);
            for (int d = 0; d < POD_DIRECTIONS; d++) {
                needs[d] = last[d] > needs[d] ? last[d] : needs[d];
            }
        }
        pod_coll_step step = pod_coll_step_idle();
        int waits = 0;
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            if (d == direction || needs[d] == 0) {
                continue;
            }
            if (waits == POD_COLL_WAITS_MAX) {
                if (out != NULL) {
                    out[steps] = step;
                }
                steps++;
                step = pod_coll_step_idle();
                waits = 0;
            }
            step.wait[waits++] = (pod_coll_wait){part * POD_DIRECTIONS + d, needs[d]};
        }
        step.wait_recv = needs[direction];
        step.send_to = m->to;
        step.send_direction = (int8_t)direction;
        step.send_step = m->number;
        step.send_slot = m->slot;
        step.send_slots = m->slots;
        step.send_gap = m->gap;
        step.turn = i - self->link[link];
        if (out != NULL) {
            out[steps] = step;
        }
        steps++;
    }
    return steps;
}

static bool steps_fill(mirrored *self)
{
    const int32_t n = self->base.group->size;
    const int32_t channels = self->base.nchannels;
    arrivals a = {0};
    bool ok = arrivals_init(&a, self);
    self->first = calloc((size_t)channels * (size_t)n + 1, sizeof *self->first);
    ok = ok && self->first != NULL;
    for (int turn = 0; ok && turn < 2; turn++) {
        for (int32_t rank = 0; rank < n; rank++) {
            arrivals_fill(&a, self, rank);
            for (int32_t c = 0; c < channels; c++) {
                int64_t *first = &self->first[(int64_t)c * n + rank];
                pod_coll_step *out = turn > 0 ? self->steps + first[0] : NULL;
                const int32_t steps = channel_steps(self, &a, rank, c, out);
                if (turn == 0) {
                    first[1] = steps;
                    self->base.channels[c].max_steps = steps > self->base.channels[c].max_steps
                                                           ? steps
                                                           : self->base.channels[c].max_steps;
                }
            }
        }
        for (int64_t i = 0; turn == 0 && i < (int64_t)channels * n; i++) {
            self->first[i + 1] += self->first[i];
        }
        if (turn == 0) {
            const size_t all = (size_t)self->first[(int64_t)channels * n] + 1;
            self->steps = calloc(all, sizeof *self->steps);
            ok = self->steps != NULL;
        }
    }
    arrivals_fini(&a);
    return ok;
}

/* ---- building ---- */

static pod_status mirrored_no_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
}

/* @return POD_E_INVALID where the source can't be kept */
static pod_status mirrored_keep(const pod_coll_request *request, const pod_coll_turns *turns,
                                const char *name, mirrored *self, pod_error *err)
{
    const pod_coll_schedule *source = self->source;
    POD_TRY(pod_coll_frame_init(&self->base, &mirrored_ops, "mirrored", request, source->nparts,
                                source->nparts * POD_DIRECTIONS, err));
    memcpy(self->base.parts, source->parts, (size_t)source->nparts * sizeof *source->parts);
    for (int32_t c = 0; c < self->base.nchannels; c++) {
        self->base.channels[c] = (pod_coll_channel){.part = c / POD_DIRECTIONS};
    }
    (void)snprintf(self->base.own_name, sizeof self->base.own_name, "mirrored:%.60s", name);
    self->base.algorithm = self->base.own_name;
    self->base.ordered = true;
    self->base.exclusive = true;
    self->base.timed = true;
    if (!messages_list(self, turns, source->op != request->op)) {
        return pod_fail(err, POD_E_INVALID, "%s sends what no link carries by itself; use %s", name,
                        name);
    }
    return steps_fill(self) ? POD_OK : mirrored_no_memory(err);
}

/* Follow the source, every rank by itself, and keep in which order its links carry what. */
static pod_status follow_source(const pod_coll_request *request, const pod_coll_schedule *source,
                                pod_coll_turns *turns, pod_error *err)
{
    pod_coll_estimate estimate;
    const pod_coll_fold fold = {
        .cells = source->group->size, .hops_max = MIRRORED_STEPS_MAX, .turns = turns};
    if (!pod_coll_turns_init(turns, source, MIRRORED_STEPS_MAX)) {
        return pod_fail(err, POD_E_INVALID, "%s has too many steps to be kept; use %s",
                        source->algorithm, source->algorithm);
    }
    return pod_coll_estimate_folded(request, source, &fold, &estimate, err);
}

/* The order of a source, of this operation or backwards of the other one.
 * @return POD_E_INVALID where it can't be kept */
static pod_status keep_source(const pod_coll_request *request, const pod_coll_algorithm *algorithm,
                              pod_coll_op op, mirrored **kept, pod_error *err)
{
    pod_coll_request asked = *request;
    asked.op = op;
    asked.enough_ps = 0;
    asked.predicted = NULL;
    pod_coll_turns turns = {.schedule = NULL};
    mirrored *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return mirrored_no_memory(err);
    }
    pod_status st = algorithm->applies(&asked, err);
    POD_THEN(st, algorithm->build(&asked, &self->source, err));
    if (st == POD_OK && (!self->source->exclusive || self->source->ops->slot_offset != NULL)) {
        st = pod_fail(err, POD_E_INVALID, "%s shares links; use %s", algorithm->name,
                      algorithm->name);
    }
    POD_THEN(st, follow_source(&asked, self->source, &turns, err));
    POD_THEN(st, mirrored_keep(request, &turns, algorithm->name, self, err));
    pod_coll_turns_fini(&turns);
    if (st == POD_OK) {
        *kept = self;
    } else {
        mirrored_free(&self->base);
    }
    return st;
}

/* @param[out] fastest  without a schedule where no order can be kept */
static pod_status mirrored_choose(const pod_coll_request *request, pod_coll_fastest *fastest,
                                  pod_error *err)
{
    static const pod_coll_op ops[] = {POD_ALL_GATHER, POD_REDUCE_SCATTER};
    pod_coll_request asked = *request;
    *fastest = (pod_coll_fastest){.schedule = NULL};
    for (int i = 0; i < 2; i++) {
        mirrored *kept = NULL;
        pod_coll_estimate estimate = {0};
        pod_status st = keep_source(request, &pod_coll_bucket, ops[i], &kept, err);
        if (st == POD_E_INVALID) {
            continue; /* the other may be kept */
        }
        POD_THEN(st, pod_coll_estimate_get(&asked, &kept->base, false, &estimate, err));
        if (st != POD_OK) {
            pod_coll_schedule_free(kept != NULL ? &kept->base : NULL);
            pod_coll_schedule_free(fastest->schedule);
            return st;
        }
        pod_coll_fastest_offer(fastest, &kept->base, &estimate, &asked);
    }
    return POD_OK;
}

static pod_status mirror_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    pod_coll_fastest fastest;
    POD_TRY(mirrored_choose(request, &fastest, err));
    *schedule = fastest.schedule;
    return *schedule != NULL ? POD_OK : pod_coll_bucket.build(request, schedule, err);
}

/* bucket must have its links to itself. */
static pod_status mirror_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    const pod_status st = pod_coll_axes_init(&axes, request, err);
    const bool linked = st == POD_OK && axes.nranks <= MIRRORED_RANKS_MAX && !axes.quotient
                        && pod_coll_axes_linked(&axes);
    pod_coll_axes_fini(&axes);
    return linked || st != POD_OK
               ? st
               : pod_fail(
                   err, POD_E_INVALID,
                   "mirrored keeps the order of every message between neighbours, on grids up "
                   "to %d chips without dead links; use bucket",
                   MIRRORED_RANKS_MAX);
}

/* Where no order can be kept, or the kept one is no better than what there is, others are chosen. */
static pod_status mirror_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_coll_fastest fastest;
    pod_coll_request asked = *request;
    asked.enough_ps = (pod_time_ps)(mirrored_worth_it * (double)request->enough_ps);
    POD_TRY(mirrored_choose(&asked, &fastest, err));
    if (asked.enough_ps > 0
        && (fastest.schedule == NULL || fastest.estimate.time_ps >= asked.enough_ps)) {
        *prediction = (pod_coll_prediction){.total_ps = POD_TIME_NEVER};
    } else if (fastest.schedule == NULL) {
        return pod_coll_bucket.predict(request, prediction, err);
    } else {
        pod_coll_prediction_from(request, &fastest.estimate, prediction);
    }
    pod_coll_schedule_free(fastest.schedule);
    return POD_OK;
}

const pod_coll_algorithm pod_coll_mirrored = {
    .name = "mirrored",
    .summary = "all-gather as a reduce-scatter backwards, and the other way round",
    .ops = 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .auto_ops = POD_COLL_EVERY_OP,
    .last_ops = POD_COLL_EVERY_OP,
    .applies = mirror_applies,
    .predict = mirror_predict,
    .build = mirror_build,
};
