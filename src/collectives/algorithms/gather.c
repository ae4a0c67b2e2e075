/* SPDX-License-Identifier: Apache-2.0 */
/* Relays along axes (gather.h).
 *
 * Example, all-reduce on a closed ring of 4, vectors a b c d of ranks 0 1 2 3. Slot 0 is the sum so far, slot
 * 1 what goes on in + direction, slot 2 what goes on in - direction:
 *
 *     channel +   rank 0           rank 1           rank 2           rank 3
 *       copy      0 → 1            0 → 1            0 → 1            0 → 1
 *       relay     a to 1, takes d  b to 2, takes a  c to 3, takes b  d to 0, takes c
 *       relay     d to 1, takes c  a to 2, takes d  b to 3, takes a  c to 0, takes b
 *     channel -
 *       copy      0 → 2            0 → 2            0 → 2            0 → 2
 *       relay     a to 3, takes b  b to 0, takes c  c to 1, takes d  d to 2, takes a
 *
 * What is taken is added to slot 0. The copies come before anything is added, and wait for both channels of
 * the axis before. On a line, partial sums are passed on instead: slot 1 = own + all from the left,
 * so that every link carries one vector each way:
 *
 *     channel +   rank 0           rank 1           rank 2           rank 3
 *       copy      0 → 1            0 → 1            0 → 1            0 → 1
 *       take                       a                a + b            a + b + c
 *       pass on   a to 1           a + b to 2       a + b + c to 3
 *
 * With halved axes (scatter_relay.c), an all-reduce first reduce-scatters along these, so that slot 0 becomes
 * the rank's own block, relays that along the others, and all-gathers.
 *
 * All-gather relays the blocks of the axes before as one run. Reduce-scatter is its reversal: the run for
 * the farthest target first. Slots are numbered with the part's first axis fastest, so that the
 * blocks that move together are runs. */
#include "collectives/algorithms/gather.h"

#include "collectives/embedding/axes.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include <math.h>
#include <stdlib.h>

enum { FLOOD_TRIED_RANKS_MAX = 128 };

/* Bytes over the links of a corner, as a multiple of the hops of a diameter, between which larger groups try floods. */
static const double FLOOD_WORK_MIN = 0.02;
static const double FLOOD_WORK_MAX = 8.0;

/* And what a flood must be able to gain, as a part of what it takes at least. */
static const double FLOOD_GAIN_MIN = 0.002;

typedef struct gather_schedule {
    pod_coll_schedule base;
    pod_coll_axes axes;
    int numbered;                                         /* levels that number the blocks */
    int8_t order[POD_GROUP_DIMS_MAX][POD_GROUP_DIMS_MAX]; /* [part][level]: axis */
} gather_schedule;

typedef enum phase_kind { PHASE_SCATTER, PHASE_RELAY, PHASE_GATHER } phase_kind;

/* A channel's share of the work along one axis. */
typedef struct gather_phase {
    phase_kind kind;
    int level; /* in the part's order of axes */
    int axis;
    int32_t first; /* its first step, in this channel */
    int32_t other; /* and in the part's other channel */
    int32_t step;  /* within the phase */
    int32_t length;
    int32_t reach; /* positions that a closed ring serves in this direction */
    int32_t at;    /* my position; counted backwards in - direction */
    bool closed;
    bool minus;
} gather_phase;

static int axis_of(const gather_schedule *self, int32_t part, int level)
{
    return self->order[part][level];
}

static int32_t reach_of(int32_t length, bool minus)
{
    return minus ? (length - 1) / 2 : length / 2;
}

static int32_t phase_steps(const gather_schedule *self, const gather_phase *f, bool minus)
{
    const pod_coll_axis *a = &self->axes.axis[f->axis];
    const int32_t reach = reach_of(a->length, minus);
    switch (f->kind) {
    case PHASE_SCATTER:
        return a->closed ? reach : a->length;
    case PHASE_RELAY:
        return a->closed ? 1 + reach : 3;
    case PHASE_GATHER:
        return a->closed ? reach : a->length - 1;
    }
    return 0;
}

static int phases_of(const gather_schedule *self)
{
    return self->axes.naxes + (self->base.op == POD_ALL_REDUCE ? self->numbered : 0);
}

/* Kind, level and axis of the i-th phase: levels are scattered backwards, relayed and gathered forwards. */
static void phase_turn(const gather_schedule *self, int32_t part, int i, gather_phase *f)
{
    const bool gathers = self->base.op == POD_ALL_GATHER;
    if (!gathers && i < self->numbered) {
        f->kind = PHASE_SCATTER;
        f->level = self->numbered - 1 - i;
    } else if (!gathers && i < self->axes.naxes) {
        f->kind = PHASE_RELAY;
        f->level = i;
    } else {
        f->kind = PHASE_GATHER;
        f->level = gathers ? i : i - self->axes.naxes;
    }
    f->axis = axis_of(self, part, f->level);
}

static int32_t gather_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

/* The phase that a step is in. */
static gather_phase phase_at(const gather_schedule *self, int32_t rank, int32_t channel,
                             int32_t step)
{
    gather_phase f = {.minus = channel % 2 != 0};
    for (int i = 0; i < phases_of(self); ++i) {
        phase_turn(self, channel / 2, i, &f);
        const int32_t steps = phase_steps(self, &f, f.minus);
        if (step < f.first + steps) {
            break;
        }
        f.first += steps;
        f.other += phase_steps(self, &f, !f.minus);
    }
    const pod_coll_axis *a = &self->axes.axis[f.axis];
    const int32_t position = self->axes.position[rank * self->axes.naxes + f.axis];
    f.step = step - f.first;
    f.length = a->length;
    f.closed = a->closed;
    f.reach = reach_of(a->length, f.minus);
    f.at = f.minus ? f.length - 1 - position : position;
    return f;
}

/* ---- sending to the next and receiving from the last, in the direction of the channel ---- */

static void send_on(const gather_schedule *self, const gather_phase *f, int32_t rank,
                    int32_t send_step, pod_coll_step *out)
{
    const pod_coll_hop *next = pod_coll_axes_hop(&self->axes, rank, f->axis, f->minus);
    out->send_to = next->rank;
    out->send_direction = next->direction;
    out->send_step = send_step;
}

static void phase_take(const gather_schedule *self, const gather_phase *f, int32_t rank,
                       pod_coll_step *out)
{
    out->recv_from = pod_coll_axes_hop(&self->axes, rank, f->axis, !f->minus)->rank;
}

/* Slot of a rank's own block: its position along the levels that number blocks, the first fastest. */
static int32_t own_slot(const gather_schedule *self, int32_t part, int32_t rank)
{
    int32_t pitch = 1;
    int32_t slot = 0;
    for (int level = 0; level < self->numbered; ++level) {
        const int axis = axis_of(self, part, level);
        slot += self->axes.position[rank * self->axes.naxes + axis] * pitch;
        pitch *= self->axes.axis[axis].length;
    }
    return slot;
}

/* ---- all-reduce ---- */

static void relay_step(const gather_schedule *self, const gather_phase *f, int32_t rank,
                       int32_t channel, int32_t step, pod_coll_step *out)
{
    const int32_t part = channel / 2;
    const int32_t sum = own_slot(self, part, rank);
    const int32_t relay = self->base.parts[part].blocks + (int32_t)f->minus;
    out->send_slots = 1;
    out->wait_recv = step;
    if (f->step == 0) {
        out->send_to = rank;
        out->send_step = step;
        out->send_slot = sum;
        out->recv_from = rank;
        out->recv_slot = relay;
        out->wait[0] = (pod_coll_wait){channel ^ 1, f->other};
        return;
    }
    if (f->step == 1) { /* the other channel has copied the sum before anything is added to it */
        out->wait[0] = (pod_coll_wait){channel ^ 1, f->other + 1};
    }
    out->send_slot = relay;
    out->recv_slot = relay;
    out->recv_also = sum;
    if (f->closed) {
        send_on(self, f, rank, step, out);
        phase_take(self, f, rank, out);
    } else if (f->step == 1 && f->at > 0) {
        phase_take(self, f, rank, out);
        out->recv_op = POD_RECV_REDUCE;
    } else if (f->step == 2 && f->at < f->length - 1) {
        send_on(self, f, rank, step - 1, out);
    }
}

/* ---- all-gather and reduce-scatter ---- */

/* The run of slots that belongs to a position (counted as phase.at) along the axis of this phase. */
static int32_t run_slot(const gather_schedule *self, const gather_phase *f, int32_t part,
                        int32_t rank, int32_t at, int32_t *slots)
{
    const int32_t wrapped = (at % f->length + f->length) % f->length;
    const int32_t position = f->minus ? f->length - 1 - wrapped : wrapped;
    int32_t pitch = 1;
    int32_t slot = 0;
    for (int level = 0; level < self->numbered; ++level) {
        const int axis = axis_of(self, part, level);
        if (level == f->level) {
            *slots = pitch;
            slot += position * pitch;
        } else if (level > f->level) {
            slot += self->axes.position[rank * self->axes.naxes + axis] * pitch;
        }
        pitch *= self->axes.axis[axis].length;
    }
    return slot;
}

/* Own run first, then what came in the step before. */
static void gather_run(const gather_schedule *self, const gather_phase *f, int32_t part,
                       int32_t rank, int32_t step, pod_coll_step *out)
{
    const int32_t sent = f->at - f->step;
    if (f->closed || (sent >= 0 && f->at < f->length - 1)) {
        send_on(self, f, rank, step, out);
        out->send_slot = run_slot(self, f, part, rank, sent, &out->send_slots);
    }
    if (f->closed || sent > 0) {
        phase_take(self, f, rank, out);
        out->recv_slot = run_slot(self, f, part, rank, sent - 1, &out->send_slots);
    }
}

/* The run for the farthest target first; what is received is passed on in the next step. On a line the
 * first step only receives. */
static void scatter_run(const gather_schedule *self, const gather_phase *f, int32_t part,
                        int32_t rank, int32_t step, pod_coll_step *out)
{
    const int32_t sent = f->closed ? f->at + f->reach - f->step : f->length - f->step;
    out->recv_op = POD_RECV_REDUCE;
    if (f->closed || (f->step > 0 && sent > f->at)) {
        send_on(self, f, rank, f->closed ? step : step - 1, out);
        out->send_slot = run_slot(self, f, part, rank, sent, &out->send_slots);
    }
    if (f->closed || (f->at > 0 && sent - 1 >= f->at)) {
        phase_take(self, f, rank, out);
        out->recv_slot = run_slot(self, f, part, rank, sent - 1, &out->send_slots);
    }
}

static void gather_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const gather_schedule *self = (const gather_schedule *)schedule;
    const gather_phase f = phase_at(self, me->rank, channel, step);
    *out = pod_coll_step_idle();
    if (f.kind == PHASE_RELAY) {
        relay_step(self, &f, me->rank, channel, step, out);
        return;
    }
    out->wait_recv = step;
    if (f.step == 0) {
        out->wait[0] = (pod_coll_wait){channel ^ 1, f.other};
    }
    if (f.kind == PHASE_GATHER) {
        gather_run(self, &f, channel / 2, me->rank, step, out);
    } else {
        scatter_run(self, &f, channel / 2, me->rank, step, out);
    }
}

static int32_t gather_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    return own_slot((const gather_schedule *)schedule, part, rank);
}

/* What goes on in each direction has the size of the rank's own block, and lies after all blocks. */
static int64_t gather_slot_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                  int32_t slot)
{
    const pod_coll_part *p = &schedule->parts[part];
    const int64_t size = p->elements / p->blocks;
    const int64_t longer = p->elements % p->blocks;
    if (slot <= p->blocks) {
        return slot * size + (slot < longer ? slot : longer);
    }
    const int32_t own = own_slot((const gather_schedule *)schedule, part, rank);
    return p->elements + (slot - p->blocks) * (size + (own < longer ? 1 : 0));
}

static void gather_free(pod_coll_schedule *schedule)
{
    gather_schedule *self = (gather_schedule *)schedule;
    pod_coll_axes_fini(&self->axes);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops gather_ops = {
    .steps = gather_steps,
    .step = gather_step,
    .block_slot = gather_block_slot,
    .free = gather_free,
};

static const pod_coll_schedule_ops halved_ops = {
    .steps = gather_steps,
    .step = gather_step,
    .block_slot = gather_block_slot,
    .slot_offset = gather_slot_offset,
    .free = gather_free,
};

/* ---- relay or flood ---- */

/* Axes are not the shortest ways on twisted slices and around dead links, or slow ones. */
static bool should_flood(const pod_coll_request *request)
{
    const pod_slice *slice = request->slice;
    bool dead = false;
    for (int f = 0; f < slice->nfaults; ++f) {
        const pod_fault *fault = &slice->faults[f];
        dead = dead || fault->kind == POD_FAULT_LINK_DEAD
               || (fault->kind == POD_FAULT_LINK_SLOW && fault->factor > POD_FLOOD_SLOW_MAX);
    }
    const bool twisted = slice->twisted && request->group->size == slice->nchips;
    return (twisted || dead || request->group->ndims == 0)
           && pod_flood_applies(request, NULL) == POD_OK;
}

static pod_status gather_applies(const pod_coll_request *request, pod_error *err)
{
    const pod_group *group = request->group;
    if (should_flood(request) || group->size == 1) {
        return POD_OK;
    }
    if (group->ndims == 0) {
        return pod_flood_applies(request, err);
    }
    if (request->slice->twisted && group->size == request->slice->nchips) {
        return pod_fail(
            err, POD_E_INVALID,
            "gather floods twisted slices up to %d chips, and this one has %d; use bucket",
            POD_FLOOD_RANKS_MAX, (int)group->size);
    }
    return POD_OK;
}

/* Axes by their hops, fewest first: insertion keeps the order of equals. */
static void sort_axes(const pod_coll_axes *axes, int8_t *sorted)
{
    for (int a = 0; a < axes->naxes; ++a) {
        int at = a;
        for (; at > 0 && axes->axis[sorted[at - 1]].length > axes->axis[a].length; --at) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = (int8_t)a;
    }
}

/* Part p begins with the p-th of the axes that take turns, the first `turns` of a list. */
static void take_turns(gather_schedule *self, int turns, const int8_t *axes)
{
    for (int part = 0; part < turns; ++part) {
        for (int level = 0; level < self->axes.naxes; ++level) {
            self->order[part][level] = axes[level < turns ? (part + level) % turns : level];
        }
    }
}

pod_status pod_relay_build(const pod_coll_request *request, const pod_relay_plan *plan,
                           pod_coll_schedule **schedule, pod_error *err)
{
    gather_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    pod_status st = pod_coll_axes_init(&self->axes, request, err);
    const int naxes = self->axes.naxes;
    const int turns = plan->turns > 0 && plan->turns < naxes ? plan->turns : naxes;
    const int parts = naxes > 0 ? turns : 1;
    POD_THEN(st, pod_coll_frame_init(&self->base, plan->halved > 0 ? &halved_ops : &gather_ops,
                                     plan->algorithm, request, parts, 2 * turns, err));
    if (st != POD_OK) {
        gather_free(&self->base);
        return st;
    }
    int8_t axes[POD_GROUP_DIMS_MAX] = {0, 1, 2, 3, 4, 5};
    if (plan->turns > 0) {
        sort_axes(&self->axes, axes);
    }
    take_turns(self, turns, axes);
    const bool reduces = request->op == POD_ALL_REDUCE;
    self->numbered = reduces ? plan->halved : naxes;
    for (int32_t part = 0; part < parts; ++part) {
        int32_t blocks = 1;
        for (int level = 0; level < self->numbered; ++level) {
            blocks *= self->axes.axis[axis_of(self, part, level)].length;
        }
        self->base.parts[part].blocks = blocks;
        self->base.parts[part].slots = blocks + (reduces ? 2 : 0);
    }
    for (int32_t c = 0; c < self->base.nchannels; ++c) {
        self->base.channels[c].part = c / 2;
        for (int i = 0; i < phases_of(self); ++i) {
            gather_phase f = {0};
            phase_turn(self, c / 2, i, &f);
            self->base.channels[c].max_steps += phase_steps(self, &f, c % 2 != 0);
        }
    }
    /* along a closed axis all relay in every step: positions only choose the slots */
    pod_coll_axes_repeat(&self->axes, request, NULL, &self->base);
    *schedule = &self->base;
    return POD_OK;
}

/* ---- the faster form ---- */

static bool may_flood(const pod_coll_request *request)
{
    return request->group->size <= FLOOD_TRIED_RANKS_MAX && request->op != POD_ALL_REDUCE;
}

/* On other grids a flood can be the faster one: its trees are balanced over all links, where relays leave those idle
 * that lie off their axis. A flood costs a message for every pair. Larger groups try it where neither hops nor bytes
 * decide alone; all where its hops, and its bytes over the links of a corner, leave room for a gain.
 * @param best_ps  what there is without */
static bool could_flood(const pod_coll_request *request, pod_time_ps best_ps)
{
    const int32_t n = request->group->size;
    pod_coll_axes axes = {0};
    if (!may_flood(request) || pod_coll_axes_init(&axes, request, NULL) != POD_OK) {
        return false;
    }
    double hops = 0.0;
    int links = 0;
    for (int a = 0; a < axes.naxes; ++a) {
        const pod_coll_axis *axis = &axes.axis[a];
        hops += axis->closed ? axis->length / 2 : axis->length - 1;
        links += axis->closed ? 2 : 1;
    }
    const bool linked = pod_coll_axes_linked(&axes);
    pod_coll_axes_fini(&axes);
    const double hops_s = hops * pod_time_to_s(request->hop_latency_ps);
    const double bytes = (double)request->elements * (double)request->element_bytes;
    const double work_s = bytes / (links > 0 ? links : 1) / request->link_rate.bytes_per_s;
    const double least_s = fmax(hops_s, work_s * (n - 1) / n);
    const double left_s = pod_time_to_s(best_ps - request->launch_ps) - least_s;
    const bool between = work_s > FLOOD_WORK_MIN * hops_s && work_s < FLOOD_WORK_MAX * hops_s;
    return linked && links > 1 && left_s > FLOOD_GAIN_MIN * least_s
           && (between || n <= POD_COLL_SMALL_RANKS);
}

/* What a prediction remembers: PLAN_RELAY, or a flood's plan. */
enum { PLAN_RELAY = 0, PLAN_ORDERS = 8 };

static int32_t flood_plan_write(const pod_flood_plan *plan)
{
    return 1 + plan->order + PLAN_ORDERS * (plan->without + 1);
}

static pod_flood_plan flood_plan_read(int32_t plan)
{
    return (pod_flood_plan){.order = (plan - 1) % PLAN_ORDERS,
                            .without = (plan - 1) / PLAN_ORDERS - 1};
}

static pod_status relay_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                              pod_error *err)
{
    const pod_relay_plan plan = {.algorithm = "gather"};
    return pod_relay_build(request, &plan, schedule, err);
}

static pod_status relay_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    bool complete = false;
    pod_status st = relay_build(request, &schedule, err);
    POD_THEN(
        st, pod_coll_predict_schedule(request, schedule, POD_LIKE_ALL, prediction, &complete, err));
    pod_coll_schedule_free(schedule);
    return st != POD_OK || complete ? st : pod_relay_predict(request, prediction, err);
}

static pod_status flood_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    bool complete = false;
    pod_status st = pod_flood_build(request, NULL, &schedule, err);
    POD_THEN(st, pod_coll_predict_schedule(request, schedule, POD_LIKE_NONE, prediction, &complete,
                                           err));
    if (st == POD_OK && !complete) {
        st = pod_flood_predict(request, schedule, prediction, err);
    }
    if (st == POD_OK) {
        const pod_flood_plan plan = pod_flood_plan_of(schedule);
        prediction->plan = flood_plan_write(&plan);
    }
    pod_coll_schedule_free(schedule);
    return st;
}

static pod_status gather_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    const bool floods = should_flood(request);
    POD_TRY(floods ? flood_predict(request, prediction, err)
                   : relay_predict(request, prediction, err));
    const pod_time_ps enough_ps = request->enough_ps;
    pod_coll_request asked = *request;
    asked.enough_ps =
        enough_ps > 0 && enough_ps < prediction->total_ps ? enough_ps : prediction->total_ps;
    if (!floods && could_flood(request, asked.enough_ps)) {
        pod_coll_prediction other;
        POD_TRY(flood_predict(&asked, &other, err));
        *prediction = other.total_ps < prediction->total_ps ? other : *prediction;
    }
    prediction->planner = &pod_coll_gather;
    return POD_OK;
}

static pod_status gather_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    const pod_coll_prediction *known = request->predicted;
    pod_coll_prediction mine = {.plan = PLAN_RELAY};
    if (known == NULL || known->planner != &pod_coll_gather) {
        known = &mine;
        if (should_flood(request)) {
            return pod_flood_build(request, NULL, schedule, err);
        }
        if (may_flood(request)) {
            POD_TRY(gather_predict(request, &mine, err));
        }
    }
    if (known->plan == PLAN_RELAY) {
        return relay_build(request, schedule, err);
    }
    const pod_flood_plan plan = flood_plan_read(known->plan);
    return pod_flood_build(request, &plan, schedule, err);
}

const pod_coll_algorithm pod_coll_gather = {
    .name = "gather",
    .summary = "one diameter for small vectors: relays along axes both ways, or floods",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = gather_applies,
    .predict = gather_predict,
    .build = gather_build,
};
