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
 * All-gather relays the blocks of the axes before as one run. Reduce-scatter is its reversal: the run for
 * the farthest target first. Slots are numbered with the part's first axis fastest, so that the
 * blocks that move together are runs. */
#include "collectives/gather.h"

#include "collectives/algorithm_list.h"
#include "collectives/axes.h"
#include "collectives/frame.h"
#include "collectives/predict.h"
#include "collectives/stepcost.h"

#include <stdlib.h>

typedef struct gather_schedule {
    pod_coll_schedule base;
    pod_coll_axes axes;
} gather_schedule;

/* A channel's share of the work along one axis. */
typedef struct phase {
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
} phase;

static int axis_of(const gather_schedule *self, int32_t part, int level)
{
    return (int)(part + level) % self->axes.naxes;
}

static int32_t reach_of(int32_t length, bool minus)
{
    return minus ? (length - 1) / 2 : length / 2;
}

static int32_t phase_steps(const gather_schedule *self, int axis, bool minus)
{
    const pod_coll_axis *a = &self->axes.axis[axis];
    const int32_t reach = reach_of(a->length, minus);
    switch (self->base.op) {
    case POD_ALL_REDUCE:
        return a->closed ? 1 + reach : 3;
    case POD_ALL_GATHER:
        return a->closed ? reach : a->length - 1;
    case POD_REDUCE_SCATTER:
        return a->closed ? reach : a->length;
    case POD_ALL_TO_ALL:
    case POD_PERMUTE:
    case POD_BROADCAST:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0;
}

static int32_t gather_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

/* The phase that a step is in. Reduce-scatter goes through the axes backwards. */
static phase phase_at(const gather_schedule *self, int32_t rank, int32_t channel, int32_t step)
{
    const int32_t part = channel / 2;
    const bool backwards = self->base.op == POD_REDUCE_SCATTER;
    phase f = {.minus = channel % 2 != 0};
    for (int i = 0; i < self->axes.naxes; ++i) {
        f.level = backwards ? self->axes.naxes - 1 - i : i;
        f.axis = axis_of(self, part, f.level);
        const int32_t steps = phase_steps(self, f.axis, f.minus);
        if (step < f.first + steps) {
            break;
        }
        f.first += steps;
        f.other += phase_steps(self, f.axis, !f.minus);
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

static void send_on(const gather_schedule *self, const phase *f, int32_t rank, int32_t send_step,
                    pod_coll_step *out)
{
    const pod_coll_hop *next = pod_coll_axes_hop(&self->axes, rank, f->axis, f->minus);
    out->send_to = next->rank;
    out->send_direction = next->direction;
    out->send_step = send_step;
}

static void take(const gather_schedule *self, const phase *f, int32_t rank, pod_coll_step *out)
{
    out->recv_from = pod_coll_axes_hop(&self->axes, rank, f->axis, !f->minus)->rank;
}

/* ---- all-reduce ---- */

static void reduce_step(const gather_schedule *self, const phase *f, int32_t rank, int32_t channel,
                        int32_t step, pod_coll_step *out)
{
    const int32_t relay = 1 + (int32_t)f->minus;
    out->send_slots = 1;
    out->wait_recv = step;
    if (f->step == 0) {
        out->send_to = rank;
        out->send_step = step;
        out->recv_from = rank;
        out->recv_slot = relay;
        out->wait[0] = (pod_coll_wait){channel ^ 1, f->other};
        return;
    }
    if (f->step == 1) { /* the other channel has copied slot 0 before anything is added to it */
        out->wait[0] = (pod_coll_wait){channel ^ 1, f->other + 1};
    }
    out->send_slot = relay;
    out->recv_slot = relay;
    out->recv_also = 0;
    if (f->closed) {
        send_on(self, f, rank, step, out);
        take(self, f, rank, out);
    } else if (f->step == 1 && f->at > 0) {
        take(self, f, rank, out);
        out->recv_op = POD_RECV_REDUCE;
    } else if (f->step == 2 && f->at < f->length - 1) {
        send_on(self, f, rank, step - 1, out);
    }
}

/* ---- all-gather and reduce-scatter ---- */

/* The run of slots that belongs to a position (counted as phase.at) along the axis of this phase. */
static int32_t run_slot(const gather_schedule *self, const phase *f, int32_t part, int32_t rank,
                        int32_t at, int32_t *slots)
{
    const int32_t wrapped = (at % f->length + f->length) % f->length;
    const int32_t position = f->minus ? f->length - 1 - wrapped : wrapped;
    int32_t pitch = 1;
    int32_t slot = 0;
    for (int level = 0; level < self->axes.naxes; ++level) {
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
static void gather_run(const gather_schedule *self, const phase *f, int32_t part, int32_t rank,
                       int32_t step, pod_coll_step *out)
{
    const int32_t sent = f->at - f->step;
    if (f->closed || (sent >= 0 && f->at < f->length - 1)) {
        send_on(self, f, rank, step, out);
        out->send_slot = run_slot(self, f, part, rank, sent, &out->send_slots);
    }
    if (f->closed || sent > 0) {
        take(self, f, rank, out);
        out->recv_slot = run_slot(self, f, part, rank, sent - 1, &out->send_slots);
    }
}

/* The run for the farthest target first; what is received is passed on in the next step. On a line the
 * first step only receives. */
static void scatter_run(const gather_schedule *self, const phase *f, int32_t part, int32_t rank,
                        int32_t step, pod_coll_step *out)
{
    const int32_t sent = f->closed ? f->at + f->reach - f->step : f->length - f->step;
    out->recv_op = POD_RECV_REDUCE;
    if (f->closed || (f->step > 0 && sent > f->at)) {
        send_on(self, f, rank, f->closed ? step : step - 1, out);
        out->send_slot = run_slot(self, f, part, rank, sent, &out->send_slots);
    }
    if (f->closed || (f->at > 0 && sent - 1 >= f->at)) {
        take(self, f, rank, out);
        out->recv_slot = run_slot(self, f, part, rank, sent - 1, &out->send_slots);
    }
}

static void gather_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const gather_schedule *self = (const gather_schedule *)schedule;
    const phase f = phase_at(self, me->rank, channel, step);
    *out = pod_coll_step_idle();
    if (schedule->op == POD_ALL_REDUCE) {
        reduce_step(self, &f, me->rank, channel, step, out);
        return;
    }
    out->wait_recv = step;
    if (f.step == 0) {
        out->wait[0] = (pod_coll_wait){channel ^ 1, f.other};
    }
    if (schedule->op == POD_ALL_GATHER) {
        gather_run(self, &f, channel / 2, me->rank, step, out);
    } else {
        scatter_run(self, &f, channel / 2, me->rank, step, out);
    }
}

static int32_t gather_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const gather_schedule *self = (const gather_schedule *)schedule;
    int32_t pitch = 1;
    int32_t slot = 0;
    for (int level = 0; level < self->axes.naxes && schedule->op != POD_ALL_REDUCE; ++level) {
        const int axis = axis_of(self, part, level);
        slot += self->axes.position[rank * self->axes.naxes + axis] * pitch;
        pitch *= self->axes.axis[axis].length;
    }
    return slot;
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

/* ---- relay or flood ---- */

/* Axes are not the shortest ways on twisted slices and around dead links. */
static bool should_flood(const pod_coll_request *request)
{
    const pod_slice *slice = request->slice;
    bool dead = false;
    for (int f = 0; f < slice->nfaults; ++f) {
        dead = dead || slice->faults[f].kind == POD_FAULT_LINK_DEAD;
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

static pod_status relay_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                              pod_error *err)
{
    gather_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    pod_status st = pod_coll_axes_init(&self->axes, request, err);
    const int naxes = self->axes.naxes;
    st = st == POD_OK ? pod_coll_frame_init(&self->base, &gather_ops, "gather", request,
                                            naxes > 0 ? naxes : 1, 2 * naxes, err)
                      : st;
    if (st != POD_OK) {
        gather_free(&self->base);
        return st;
    }
    const int32_t n = request->group->size;
    pod_coll_frame_slots(&self->base, request->op == POD_ALL_REDUCE ? 1 : n,
                         request->op == POD_ALL_REDUCE ? 3 : n);
    for (int32_t c = 0; c < self->base.nchannels; ++c) {
        self->base.channels[c].part = c / 2;
        for (int axis = 0; axis < naxes; ++axis) {
            self->base.channels[c].max_steps += phase_steps(self, axis, c % 2 != 0);
        }
    }
    *schedule = &self->base;
    return POD_OK;
}

/* How far one part has come, for the prediction. */
typedef struct progress {
    int level;
    int32_t hops_left;
    double work_ps;    /* of one hop along its axis, alone */
    double started_ps; /* its last hop, */
    int started_axis;  /* along this axis */
    double started_work_ps;
    double next_ps; /* its next hop can start */
} progress;

typedef struct relay_clock {
    const pod_coll_request *request;
    const pod_coll_axes *axes;
    progress parts[POD_GROUP_DIMS_MAX];
} relay_clock;

static int axis_now(const relay_clock *clock, int part)
{
    return (part + clock->parts[part].level) % clock->axes->naxes;
}

/* A part comes to the axis of its level. */
static void begin_axis(relay_clock *clock, int part)
{
    const pod_coll_axes *axes = clock->axes;
    const pod_coll_axis *axis = &axes->axis[axis_now(clock, part)];
    progress *p = &clock->parts[part];
    p->hops_left = axis->closed ? axis->length / 2 : axis->length - 1;
    double bytes = (double)clock->request->elements * (double)clock->request->element_bytes
                   / (double)axes->naxes;
    for (int l = p->level; l < axes->naxes && clock->request->op != POD_ALL_REDUCE; ++l) {
        bytes /= (double)axes->axis[(part + l) % axes->naxes].length;
    }
    p->work_ps =
        (double)axis->stride * bytes * (double)POD_PS_PER_S / clock->request->link_rate.bytes_per_s;
}

/* The part whose next hop starts first; parts that are through with their axis move on. -1 = all done */
static int next_part(relay_clock *clock)
{
    int first = -1;
    for (int p = 0; p < clock->axes->naxes; ++p) {
        progress *part = &clock->parts[p];
        if (part->hops_left == 0 && part->level + 1 < clock->axes->naxes) {
            ++part->level;
            begin_axis(clock, p);
        }
        if (part->hops_left > 0 && (first < 0 || part->next_ps < clock->parts[first].next_ps)) {
            first = p;
        }
    }
    return first;
}

/* Parts that use the same links at the same time get equal shares. On a line the sums of an all-reduce
 * go by once, so that parts meet only at the same hop. */
static double hop_work(const relay_clock *clock, int part)
{
    const progress *mine = &clock->parts[part];
    double work = mine->work_ps;
    for (int p = 0; p < clock->axes->naxes; ++p) {
        const progress *other = &clock->parts[p];
        const int axis = axis_now(clock, part);
        const bool soon = other->hops_left > 0 && axis_now(clock, p) == axis
                          && other->next_ps < mine->next_ps + mine->work_ps;
        const bool still = other->started_axis == axis
                           && other->started_ps + other->started_work_ps > mine->next_ps;
        const bool apart = clock->request->op == POD_ALL_REDUCE && !clock->axes->axis[axis].closed
                           && other->hops_left != mine->hops_left;
        if (p != part && !apart && (soon || still)) {
            work += soon ? other->work_ps : other->started_work_ps;
        }
    }
    return work;
}

static pod_status relay_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                pod_error *err)
{
    pod_coll_axes axes = {0};
    const pod_status st = pod_coll_axes_init(&axes, request, err);
    if (st != POD_OK) {
        return st;
    }
    relay_clock clock = {.request = request, .axes = &axes};
    double hops_ps = 0.0;
    for (int p = 0; p < axes.naxes; ++p) {
        begin_axis(&clock, p);
        clock.parts[p].started_axis = -1;
        hops_ps += (double)clock.parts[p].hops_left * (double)axes.axis[p].stride
                   * (double)request->hop_latency_ps;
    }
    double end = 0.0;
    for (int p = next_part(&clock); p >= 0; p = next_part(&clock)) {
        progress *part = &clock.parts[p];
        const int32_t stride = axes.axis[axis_now(&clock, p)].stride;
        const double work = hop_work(&clock, p);
        part->started_ps = part->next_ps;
        part->started_axis = axis_now(&clock, p);
        part->started_work_ps = part->work_ps;
        part->next_ps += work + (double)stride * (double)request->hop_latency_ps;
        --part->hops_left;
        end = part->next_ps > end ? part->next_ps : end;
    }
    pod_coll_axes_fini(&axes);
    pod_coll_prediction_make(request, (pod_time_ps)hops_ps,
                             end > hops_ps ? (pod_time_ps)(end - hops_ps) : 0, prediction);
    return POD_OK;
}

static pod_status gather_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    return should_flood(request) ? pod_flood_build(request, schedule, err)
                                 : relay_build(request, schedule, err);
}

static pod_status gather_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    const bool floods = should_flood(request);
    const pod_coll_likeness likeness = floods ? POD_LIKE_NONE : POD_LIKE_ALL;
    pod_coll_schedule *schedule = NULL;
    bool complete = false;
    pod_status st = gather_build(request, &schedule, err);
    if (st == POD_OK) {
        st = pod_coll_predict_schedule(request, schedule, likeness, prediction, &complete, err);
    }
    pod_coll_schedule_free(schedule);
    if (st != POD_OK || complete) {
        return st;
    }
    return floods ? pod_flood_predict(request, prediction, err)
                  : relay_predict(request, prediction, err);
}

const pod_coll_algorithm pod_coll_gather = {
    .name = "gather",
    .summary = "one diameter for small vectors: relays along axes both ways, or floods",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .in_auto = true,
    .applies = gather_applies,
    .predict = gather_predict,
    .build = gather_build,
};
