/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce in many chunks, each up and down a tree of its own that goes where links have time.
 *
 * Packed trees share links evenly, but chunks wait for each other where many trees meet, and not elsewhere. Here every
 * chunk's tree is grown beside those of the chunks before it by when links are free (embedding/timetable.h). On open
 * axes that takes up to 18 % less where hops count as much as bytes (docs/collectives.md); large vectors are left to
 * packed trees.
 *
 * Channels are ways: two along each axis. A channel has what a rank receives over a link, then what it sends over the
 * opposite one, in the order of the timetable. A sum waits for what comes up from all below it, by up to five links;
 * where a step has no room for so many waits, steps that only wait go before it.
 *
 * A worse cable is not to help. With slow links two timetables are made: one as without faults, and one that knows. And
 * small groups of a slice without faults try to do without each cable.
 *
 * Example, 3 in a row (open), chunks a b, root 1:
 *     channel  step   rank 0          rank 1               rank 2
 *       +        0    send a to 1     sum a from 0         a from 1
 *                1    send b to 1     sum b from 0         b from 1
 *                2    -               send a to 2          -
 *                3    -               send b to 2          -
 *     and the other way round; what rank 1 sends waits for the sums of both ways. */
#include "collectives/embedding/timetable.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>

enum {
    TIMETABLE_RANKS_MAX = 512,
    TIMETABLE_CHUNKS_MIN = 64,
    TIMETABLE_CHUNKS_MAX = 256,
    TIMETABLE_MESSAGES_MAX = 1 << 16,
    TIMETABLE_UNCUT_CHUNKS = 36,       /* as many as tree has trees, where blocks aren't cut */
    TIMETABLE_TRIED_MESSAGES = 1 << 19 /* each cable is left out in turn if that takes no more */
};

/* Chunks of a vector that takes a hop. */
static const double chunks_a_hop = 40.0;

/* Plans are varied if the first is at most so much too late. */
static const double timetable_varied = 1.1;

/* What is tried: so many roots, and so much for trees that are spread evenly; with the chunks above or twice as many;
 * slow links as others, or as they are. */
typedef struct timetable_shape {
    int32_t roots;
    int32_t evenness;
} timetable_shape;

static const timetable_shape shapes[] = {
    {4, 2},
    {4, 0},
    {4, 8},
    {1, 0}
};
enum {
    SHAPES = sizeof shapes / sizeof *shapes,
    SIZE_VARIANTS = 2,
    SPEED_VARIANTS = 2,
    PLANS = SHAPES * SIZE_VARIANTS * SPEED_VARIANTS
};

typedef struct timetable_schedule {
    pod_coll_schedule base;
    int64_t *first; /* first[rank * ways + way]: of its steps; one more: all */
    pod_coll_step *steps;
} timetable_schedule;

static int32_t timetable_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                               int32_t channel)
{
    const int64_t *first = &((const timetable_schedule *)schedule)
                                ->first[(int64_t)me->rank * schedule->nchannels + channel];
    return (int32_t)(first[1] - first[0]);
}

static void timetable_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel, int32_t step, pod_coll_step *out)
{
    const timetable_schedule *self = (const timetable_schedule *)schedule;
    *out = self->steps[self->first[(int64_t)me->rank * schedule->nchannels + channel] + step];
}

static void timetable_free(pod_coll_schedule *schedule)
{
    timetable_schedule *self = (timetable_schedule *)schedule;
    free(self->first);
    free(self->steps);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops timetable_ops = {.steps = timetable_steps,
                                                    .step = timetable_step,
                                                    .slot_offset = pod_coll_frame_equal_offset,
                                                    .free = timetable_free};

/* ---- steps ---- */

/* What comes to every rank: came[(rank * ways + way) * chunks + chunk] = messages over that link up to it, sums as they
 * are, sent down negative; 0 = it doesn't come. */
typedef struct sums_in {
    int32_t *came;
    int32_t *count; /* count[rank * ways + way]: messages that come */
} sums_in;

static void sums_in_note(const pod_timetable *table, const pod_coll_axes *axes, sums_in *a)
{
    for (int32_t i = 0; i < table->count; ++i) {
        const pod_timetable_message *m = &table->message[i];
        const int32_t cell = axes->hop[m->link].rank * table->nways + m->link % table->nways;
        const int32_t number = ++a->count[cell];
        a->came[(int64_t)cell * table->chunks + m->chunk] = m->sums ? number : -number;
    }
}

/* The steps of a send, those that only wait before it: into `out`, or only counted where that is NULL.
 * @return how many */
static int32_t send_steps(const pod_timetable *table, const sums_in *a,
                          const pod_timetable_message *m, pod_coll_step *out)
{
    const int32_t rank = m->link / table->nways;
    const int32_t own = m->link % table->nways;
    const bool sums = m->sums || rank == table->root[m->chunk];
    pod_coll_step step = pod_coll_step_idle();
    int32_t steps = 0;
    int waits = 0;
    for (int32_t way = 0; way < table->nways; ++way) {
        const int32_t came =
            a->came[((int64_t)rank * table->nways + way) * table->chunks + m->chunk];
        if (sums ? came <= 0 : came >= 0) {
            continue;
        }
        if (way == own) {
            step.wait_recv = abs(came);
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
        step.wait[waits++] = (pod_coll_wait){way, abs(came)};
    }
    step.send_slot = m->chunk;
    step.send_slots = 1;
    if (out != NULL) {
        out[steps] = step;
    }
    return steps + 1;
}

/* Where each rank's and way's steps are: receives, then sends. */
static void table_count(timetable_schedule *self, const pod_timetable *table, const sums_in *a)
{
    const int32_t cells = table->nranks * table->nways;
    for (int32_t cell = 0; cell < cells; ++cell) {
        self->first[cell + 1] = a->count[cell];
    }
    for (int32_t i = 0; i < table->count; ++i) {
        const pod_timetable_message *m = &table->message[i];
        self->first[m->link + 1] += send_steps(table, a, m, NULL);
    }
    for (int32_t cell = 0; cell < cells; ++cell) {
        pod_coll_channel *channel = &self->base.channels[cell % table->nways];
        channel->max_steps = (int32_t)pod_max_i64(channel->max_steps, self->first[cell + 1]);
        self->first[cell + 1] += self->first[cell];
    }
}

static void table_write(timetable_schedule *self, const pod_timetable *table,
                        const pod_coll_axes *axes, const sums_in *a, int32_t *sent)
{
    for (int32_t i = 0; i < table->count; ++i) {
        const pod_timetable_message *m = &table->message[i];
        const pod_coll_hop *hop = &axes->hop[m->link];
        const int32_t cell = hop->rank * table->nways + m->link % table->nways;
        const int32_t number = abs(a->came[(int64_t)cell * table->chunks + m->chunk]) - 1;
        pod_coll_step *recv = &self->steps[self->first[cell] + number];
        *recv = pod_coll_step_idle();
        recv->recv_from = m->link / table->nways;
        recv->recv_slot = m->chunk;
        recv->recv_op = m->sums ? POD_RECV_REDUCE : POD_RECV_STORE;
        pod_coll_step *send = &self->steps[self->first[m->link] + a->count[m->link]];
        sent[m->link] += send_steps(table, a, m, send + sent[m->link]);
        send += sent[m->link] - 1;
        send->send_to = hop->rank;
        send->send_direction = hop->direction;
        send->send_step = number;
    }
}

static pod_status table_fill(timetable_schedule *self, const pod_timetable *table,
                             const pod_coll_axes *axes, pod_error *err)
{
    const size_t cells = (size_t)table->nranks * (size_t)table->nways + 1;
    sums_in a = {.came = calloc(cells * (size_t)table->chunks, sizeof *a.came),
                 .count = calloc(cells, sizeof *a.count)};
    int32_t *sent = calloc(cells, sizeof *sent);
    self->first = calloc(cells, sizeof *self->first);
    bool room = a.came != NULL && a.count != NULL && sent != NULL && self->first != NULL;
    if (room) {
        sums_in_note(table, axes, &a);
        table_count(self, table, &a);
        self->steps = malloc(((size_t)self->first[cells - 1] + 1) * sizeof *self->steps);
        room = self->steps != NULL;
    }
    if (room) {
        table_write(self, table, axes, &a, sent);
    }
    free(sent);
    free(a.count);
    free(a.came);
    return room ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
}

/* ---- plans ---- */

/* Powers of two, so that few bytes more don't make other trees. */
static int32_t timetable_chunks(const pod_coll_request *request, int variant)
{
    const double bytes = (double)request->elements * request->element_bytes;
    const double hop_bytes =
        pod_time_to_s(request->hop_latency_ps) * request->link_rate.bytes_per_s;
    const int32_t most = (int32_t)pod_min_i64(
        TIMETABLE_CHUNKS_MAX, TIMETABLE_MESSAGES_MAX / (2 * (int64_t)request->group->size));
    int32_t chunks = TIMETABLE_CHUNKS_MIN << variant;
    while (chunks < most && 2.0 * chunks * hop_bytes <= (1 << variant) * chunks_a_hop * bytes) {
        chunks *= 2;
    }
    chunks = chunks < most ? chunks : most;
    const int32_t uncut = (int32_t)pod_min_i64(chunks, TIMETABLE_UNCUT_CHUNKS);
    const int32_t cut = pod_coll_cuts_max(request, bytes, chunks);
    chunks = cut > uncut ? cut : uncut;
    return request->elements >= chunks ? chunks
           : request->elements > 0     ? (int32_t)request->elements
                                       : 1;
}

/* @param plan       PLANS · (1 + the link of a cable that is left out) more than what is tried
 * @param enough_ps  without the launch; 0 = none */
static pod_status timetable_make(const pod_coll_request *request, const pod_coll_axes *axes,
                                 const double *slowness, int plan, pod_time_ps enough_ps,
                                 pod_timetable *table, bool *found, pod_error *err)
{
    const timetable_shape *shape = &shapes[plan % SHAPES];
    const int32_t chunks = timetable_chunks(request, plan / SHAPES % SIZE_VARIANTS);
    const int64_t elements = pod_ceil_div(request->elements, chunks);
    const pod_timetable_args args = {
        .axes = axes,
        .slowness = slowness,
        .equal_slots = plan % PLANS < SHAPES * SIZE_VARIANTS,
        .left_out = plan / PLANS - 1,
        .chunks = chunks,
        .roots = shape->roots,
        .evenness = shape->evenness,
        .chunk_ps = pod_rate_time_ps(request->link_rate, elements * request->element_bytes),
        .hop_ps = request->hop_latency_ps,
        .enough_ps = enough_ps};
    return pod_timetable_make(table, &args, found, err);
}

/* Whether a plan is another one than those before it. */
static bool plan_is_tried(const pod_coll_request *request, const double *slowness, int plan)
{
    const int variant = plan / SHAPES % SIZE_VARIANTS;
    return (slowness != NULL || plan < SHAPES * SIZE_VARIANTS)
           && (variant == 0 || timetable_chunks(request, variant) != timetable_chunks(request, 0));
}

/* The timetables of a question so far. */
typedef struct timetable_search {
    const pod_coll_request *request;
    const pod_coll_axes *axes;
    double *slowness;
    pod_time_ps enough_ps; /* without the launch; 0 = none */
    pod_timetable best;
    int plan;  /* of the best one; -1 = none is in time */
    bool late; /* the first one is much too late */
} timetable_search;

static pod_status search_try(timetable_search *s, int plan, pod_error *err)
{
    pod_timetable table = {0};
    bool found = false;
    POD_TRY(
        timetable_make(s->request, s->axes, s->slowness, plan, s->enough_ps, &table, &found, err));
    s->late = found && s->plan < 0 && s->slowness == NULL && s->enough_ps > 0
              && (double)table.end_ps > timetable_varied * (double)s->enough_ps;
    if (found && (s->enough_ps == 0 || table.end_ps < s->enough_ps)) {
        pod_timetable_fini(&s->best);
        s->best = table;
        s->plan = plan;
        s->enough_ps = table.end_ps;
    } else {
        pod_timetable_fini(&table);
    }
    return POD_OK;
}

/* Small groups do without each cable in turn, so that the death of one helps less. */
static pod_status search_around(timetable_search *s, pod_error *err)
{
    const pod_coll_axes *axes = s->axes;
    const int64_t links = (int64_t)axes->nranks * axes->naxes * 2;
    const int plan = s->plan;
    pod_status st = POD_OK;
    if (plan < 0 || s->request->slice->nfaults > 0
        || s->best.count * links / 2 > TIMETABLE_TRIED_MESSAGES) {
        return POD_OK;
    }
    for (int link = 0; link < links && st == POD_OK; link += 2) { /* + directions */
        if (axes->hop[link].rank >= 0) {
            st = search_try(s, plan + PLANS * (1 + link), err);
        }
    }
    return st;
}

/* The timetable that ends first, or that of the plan that was predicted. Where the first one is much too late, no
 * others are made. */
static pod_status search_run(timetable_search *s, pod_error *err)
{
    const pod_coll_prediction *predicted = s->request->predicted;
    pod_status st = POD_OK;
    if (predicted != NULL && predicted->planner == &pod_coll_timetable) {
        return search_try(s, predicted->plan, err);
    }
    for (int i = 0; i < PLANS && st == POD_OK && !s->late; ++i) {
        st = plan_is_tried(s->request, s->slowness, i) ? search_try(s, i, err) : POD_OK;
    }
    POD_THEN(st, search_around(s, err));
    return st;
}

static pod_status timetable_schedule_make(const pod_coll_request *request,
                                          const pod_coll_axes *axes, const pod_timetable *table,
                                          pod_coll_schedule **schedule, pod_error *err)
{
    timetable_schedule *self = calloc(1, sizeof *self);
    *schedule = NULL;
    if (self == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    pod_status st = pod_coll_frame_init(&self->base, &timetable_ops, "timetable", request, 1,
                                        table->nways, err);
    if (st == POD_OK) {
        pod_coll_frame_slots(&self->base, table->chunks, table->chunks);
        for (int32_t way = 0; way < table->nways; ++way) {
            self->base.channels[way].part = 0;
        }
        self->base.ordered = true;
        self->base.exclusive = true;
        st = table_fill(self, table, axes, err);
    }
    if (st != POD_OK) {
        timetable_free(&self->base);
        return st;
    }
    *schedule = &self->base;
    return POD_OK;
}

/* Closed all round, rings fill all links and are never slower, so no timetable is made where others are known.
 * @param[out] schedule  NULL: there is none, or none is in time */
static pod_status timetable_find(const pod_coll_request *request, pod_coll_schedule **schedule,
                                 int *plan, pod_error *err)
{
    pod_coll_axes axes = {0};
    timetable_search search = {.request = request, .axes = &axes, .plan = -1};
    search.enough_ps = request->enough_ps > 0 ? request->enough_ps - request->launch_ps : 0;
    *schedule = NULL;
    pod_status st = pod_coll_axes_init(&axes, request, err);
    POD_THEN(st, pod_coll_axes_slowness(&axes, request, &search.slowness, err));
    if (st == POD_OK && (request->enough_ps == 0 || !pod_coll_axes_symmetric(&axes))) {
        st = search_run(&search, err);
    }
    if (st == POD_OK && search.plan >= 0) {
        st = timetable_schedule_make(request, &axes, &search.best, schedule, err);
    }
    *plan = search.plan;
    free(search.slowness);
    pod_timetable_fini(&search.best);
    pod_coll_axes_fini(&axes);
    return st;
}

static pod_status timetable_applies(const pod_coll_request *request, pod_error *err)
{
    if (request->group->size > TIMETABLE_RANKS_MAX) {
        return pod_fail(err, POD_E_INVALID,
                        "timetable plans all messages of up to %d chips, not %d; use tree",
                        TIMETABLE_RANKS_MAX, (int)request->group->size);
    }
    pod_coll_axes axes = {0};
    pod_timetable table = {0};
    bool found = false;
    pod_status st = pod_coll_axes_init(&axes, request, err);
    const pod_timetable_args args = {.axes = &axes, .left_out = -1, .chunks = 1, .roots = 1};
    POD_THEN(st, pod_timetable_make(&table, &args, &found, err));
    pod_timetable_fini(&table);
    pod_coll_axes_fini(&axes);
    return st != POD_OK || found
               ? st
               : pod_fail(err, POD_E_INVALID,
                          "timetable needs groups whose chips are joined by links of their own; "
                          "use tree");
}

static pod_status timetable_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                                  pod_error *err)
{
    int plan;
    POD_TRY(timetable_find(request, schedule, &plan, err));
    return *schedule != NULL ? POD_OK : pod_coll_tree.build(request, schedule, err);
}

static pod_status timetable_predict(const pod_coll_request *request,
                                    pod_coll_prediction *prediction, pod_error *err)
{
    pod_coll_schedule *schedule;
    pod_coll_estimate estimate = {0};
    int plan;
    POD_TRY(timetable_find(request, &schedule, &plan, err));
    if (schedule == NULL && request->enough_ps > 0) { /* none is worth it */
        *prediction = (pod_coll_prediction){.total_ps = POD_TIME_NEVER};
        return POD_OK;
    }
    if (schedule == NULL) {
        return pod_coll_tree.predict(request, prediction, err);
    }
    const pod_status st = pod_coll_estimate_get(request, schedule, false, &estimate, err);
    if (st == POD_OK) {
        pod_coll_prediction_from(request, &estimate, prediction);
        prediction->planner = &pod_coll_timetable;
        prediction->plan = plan;
    }
    pod_coll_schedule_free(schedule);
    return st;
}

const pod_coll_algorithm pod_coll_timetable = {
    .name = "timetable",
    .summary = "each chunk up and down a tree of its own that goes where links have time",
    .ops = 1U << POD_ALL_REDUCE,
    .auto_ops = POD_COLL_EVERY_OP,
    .last_ops = 1U << POD_ALL_REDUCE,
    .plans = true,
    .applies = timetable_applies,
    .predict = timetable_predict,
    .build = timetable_build,
};
