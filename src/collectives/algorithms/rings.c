/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/algorithms/rings.h"

#include "collectives/embedding/ring_order.h"
#include "collectives/embedding/ring_walk.h"

#include <stdlib.h>
#include <string.h>

enum { PHASES_MAX = 2 * POD_GROUP_DIMS_MAX, BLOCK_ALIGNED_MIN = 128, PRIORITIES = 256 };
enum { LINE_BYTES = 64, LINE_HOPS = LINE_BYTES / sizeof(pod_coll_hop) };

/* One level in one direction, as one channel sees it. */
typedef struct ring_phase {
    int level;
    bool gather;
    bool closed;
    int32_t length;
    int32_t first; /* step of the channel that starts it */
    pod_ring_leg leg;
    int32_t span; /* slots that travel together */
    int32_t away; /* closed: position sent at its start, from the own one (ring_walk.h) */
    pod_coll_recv recv_op;
    int32_t late;       /* steps by which the receiver's number of a message lags the sender's */
    int32_t twin_first; /* receives of the other direction before this phase */
    uint8_t priority;   /* of its first step, */
    int turns;          /* and how many its steps take up; 0 = all have the same */
    /* of a row: */
    int hop_to;
    int hop_from;
    int digit;
} ring_phase;

/* What all channels of one order, direction and bias do. */
typedef struct program {
    const pod_ring_order *order;
    int bias;
    pod_ring_way way; /* of the stream */
    int sign;         /* +1 or -1: of the channel */
    int nphases;
    int32_t steps;
    ring_phase phases[PHASES_MAX];
    const ring_phase **phase_of; /* [step] */
} program;

typedef struct rings {
    pod_coll_schedule base;
    pod_coll_axes axes;
    bool farthest; /* POD_RING_FARTHEST */
    int norders;
    pod_ring_order *orders;
    int nprograms;
    program *programs;
    const program **program_of;      /* [channel] */
    const pod_ring_order **order_of; /* [part] */
    int32_t *twin;                   /* [channel], -1 = none */
    /* What step() reads of a rank lies together, since a pod's ranks don't fit the caches: a row for each
     * rank, of its hops [axis][+, -], and after them the digits of all orders. */
    pod_coll_hop *rows;
    int nhops;
    int row_size; /* in hops, which are as large as digits */
} rings;
_Static_assert(sizeof(pod_coll_hop) == sizeof(pod_ring_digit), "a row has room for either");

static const pod_coll_hop *row_at(const rings *self, int32_t rank)
{
    return &self->rows[(int64_t)rank * self->row_size];
}

static const pod_ring_digit *row_digits(const rings *self, const pod_coll_hop *row)
{
    return (const pod_ring_digit *)(const void *)(row + self->nhops);
}

/* The slot of a rank's own block. */
static int32_t block_of(const rings *self, const pod_ring_order *order, int32_t rank)
{
    if (order->levels == 0) {
        return 0;
    }
    const pod_ring_digit *first = row_digits(self, row_at(self, rank)) + order->first_digit;
    return first->base + first->digit * order->span[0];
}

static int32_t rings_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

/* Line, seen in the direction of the channel; -1 = nothing to send or receive. */
static void line_digits(const ring_phase *f, int sign, int32_t mine, int32_t t, int32_t *sent,
                        int32_t *received)
{
    const int32_t last = f->length - 1;
    const int32_t at = sign > 0 ? mine : last - mine;
    int32_t out;
    int32_t in;
    if (f->gather) {
        out = at < last ? at - t : -1;
        in = at - t - 1;
    } else {
        out = f->length - t > at && t >= 1 ? f->length - t : -1;
        in = at > 0 && last - t >= at ? last - t : -1;
    }
    *sent = sign > 0 || out < 0 ? out : last - out;
    *received = sign > 0 || in < 0 ? in : last - in;
}

static void rings_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                       int32_t step, pod_coll_step *out)
{
    const rings *self = (const rings *)schedule;
    const program *p = self->program_of[channel];
    const ring_phase *f = p->phase_of[step];
    const pod_coll_hop *row = row_at(self, me->rank);
    const pod_coll_hop *to = &row[f->hop_to];
    const pod_ring_digit *mine = row_digits(self, row) + f->digit;
    const int32_t t = step - f->first;
    int32_t sent;
    int32_t received;
    if (f->closed) {
        pod_ring_digits(f->length, mine->digit, p->sign, f->away - t, &sent, &received);
    } else {
        line_digits(f, p->sign, mine->digit, t, &sent, &received);
    }
    const int32_t span = f->span;
    int32_t base = mine->base;
    int32_t slots = span;
    if (t == f->leg.half_step) {
        base += f->leg.half_first;
        slots = f->leg.half_slots;
    }
    *out = (pod_coll_step){
        .send_to = sent < 0 ? -1 : to->rank,
        .send_step = step - f->late,
        .send_slot = base + sent * span,
        .send_slots = slots,
        .send_direction = to->direction,
        .priority = (uint8_t)(f->priority + t * f->turns / f->leg.steps),
        .wait_recv = step,
        .wait = {{.channel = t <= 1 ? self->twin[channel] : -1, .recv = f->twin_first},
                 {.channel = -1}},
        .recv_from = received < 0 ? -1 : row[f->hop_from].rank,
        .recv_slot = base + received * span,
        .recv_op = f->recv_op,
        .recv_also = -1,
    };
}

static int32_t rings_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const rings *self = (const rings *)schedule;
    return block_of(self, self->order_of[part], rank);
}

static void rings_free(pod_coll_schedule *schedule)
{
    rings *self = (rings *)schedule;
    for (int i = 0; self->programs && i < self->nprograms; ++i) {
        free(self->programs[i].phase_of);
    }
    for (int i = 0; self->orders && i < self->norders; ++i) {
        free(self->orders[i].digits);
    }
    free(self->programs);
    free(self->orders);
    free(self->program_of);
    free(self->order_of);
    free(self->twin);
    free(self->rows);
    free(self->base.parts);
    free(self->base.channels);
    pod_coll_axes_fini(&self->axes);
    free(self);
}

static const pod_coll_schedule_ops rings_ops = {
    .steps = rings_steps, .step = rings_step, .block_slot = rings_block_slot, .free = rings_free};

/* The order with these axes, numbered when it is new; NULL without memory. */
static pod_ring_order *order_find(rings *self, const pod_ring_stream *stream)
{
    const size_t size = (size_t)stream->naxes * sizeof *stream->axis;
    for (int i = 0; i < self->norders; ++i) {
        pod_ring_order *known = &self->orders[i];
        if (known->levels == stream->naxes && memcmp(known->axis, stream->axis, size) == 0) {
            return known;
        }
    }
    pod_ring_order *order = &self->orders[self->norders++];
    order->levels = stream->naxes;
    order->first_digit = self->row_size - self->nhops;
    self->row_size += order->levels;
    memcpy(order->axis, stream->axis, size);
    return pod_ring_order_number(order, &self->axes) ? order : NULL;
}

/* Steps and half step of a phase. */
static pod_ring_leg leg_of(const ring_phase *f, const program *p, int32_t span)
{
    if (!f->closed) {
        return (pod_ring_leg){.steps = f->gather ? f->length - 1 : f->length, .half_step = -1};
    }
    return p->way == POD_RING_BOTH ? pod_ring_leg_make(f->length, span, p->sign, p->bias, f->gather)
                                   : (pod_ring_leg){.steps = f->length - 1, .half_step = -1};
}

static bool program_fill(program *p, const rings *self)
{
    const int levels = p->order->levels;
    const bool scatters = self->base.op != POD_ALL_GATHER;
    const bool gathers = self->base.op != POD_REDUCE_SCATTER;
    p->nphases = levels * (scatters + gathers);
    for (int i = 0; i < p->nphases; ++i) {
        ring_phase *f = &p->phases[i];
        f->gather = !scatters || i >= levels;
        f->level = f->gather ? i % levels : levels - 1 - i;
        f->length = p->order->length[f->level];
        f->closed = self->axes.axis[p->order->axis[f->level]].closed;
        f->first = p->steps;
        f->span = p->order->span[f->level];
        f->recv_op = f->gather ? POD_RECV_STORE : POD_RECV_REDUCE;
        f->late = f->closed || f->gather ? 0 : 1;
        f->hop_to = p->order->axis[f->level] * 2 + (p->sign < 0);
        f->hop_from = p->order->axis[f->level] * 2 + (p->sign > 0);
        f->digit = p->order->first_digit + f->level;
        f->turns = self->farthest && !f->gather ? PRIORITIES / p->nphases : 0;
        f->priority = (uint8_t)(self->farthest ? i * (PRIORITIES / p->nphases) : i);
        f->leg = leg_of(f, p, f->span);
        f->away = f->gather ? 0 : f->leg.steps;
        p->steps += f->leg.steps;
    }
    p->phase_of = malloc(((size_t)p->steps + 1) * sizeof(const ring_phase *));
    for (int i = 0; p->phase_of && i < p->nphases; ++i) {
        for (int32_t t = 0; t < p->phases[i].leg.steps; ++t) {
            p->phase_of[p->phases[i].first + t] = &p->phases[i];
        }
    }
    return p->phase_of != NULL;
}

static program *program_find(rings *self, const pod_ring_order *order, pod_ring_way way, int sign,
                             int bias)
{
    for (int i = 0; i < self->nprograms; ++i) {
        program *p = &self->programs[i];
        if (p->order == order && p->way == way && p->sign == sign && p->bias == bias) {
            return p;
        }
    }
    program *p = &self->programs[self->nprograms++];
    *p = (program){.order = order, .bias = bias, .way = way, .sign = sign};
    return program_fill(p, self) ? p : NULL;
}

/* Where each phase of a channel finds the other direction. */
static void join_twins(rings *self, int32_t plus)
{
    program *a = &self->programs[self->program_of[plus] - self->programs];
    program *b = &self->programs[self->program_of[plus + 1] - self->programs];
    self->twin[plus] = plus + 1;
    self->twin[plus + 1] = plus;
    for (int i = 0; i < a->nphases; ++i) {
        a->phases[i].twin_first = b->phases[i].first;
        b->phases[i].twin_first = a->phases[i].first;
    }
}

static bool add_channel(rings *self, int32_t part, const pod_ring_order *order,
                        const pod_ring_stream *stream, int sign)
{
    const int32_t channel = self->base.nchannels++;
    const program *p = program_find(self, order, stream->way, sign, stream->bias);
    if (!p) {
        return false;
    }
    self->program_of[channel] = p;
    self->twin[channel] = -1;
    self->base.channels[channel] = (pod_coll_channel){.part = part, .max_steps = p->steps};
    return true;
}

static bool add_stream(rings *self, int32_t part, const pod_ring_stream *stream)
{
    const pod_ring_order *order = order_find(self, stream);
    if (!order) {
        return false;
    }
    self->order_of[part] = order;
    if (order->levels == 0) {
        return true;
    }
    const int32_t first = self->base.nchannels;
    if (stream->way != POD_RING_MINUS && !add_channel(self, part, order, stream, 1)) {
        return false;
    }
    if (stream->way != POD_RING_PLUS && !add_channel(self, part, order, stream, -1)) {
        return false;
    }
    if (stream->way == POD_RING_BOTH) {
        join_twins(self, first);
    }
    return true;
}

/* The fewest elements that a message has: of the shorter blocks, in half a run where there is one. */
static int64_t least_elements(const rings *self)
{
    int64_t least = INT64_MAX;
    for (int32_t channel = 0; channel < self->base.nchannels; ++channel) {
        const pod_coll_part *part = &self->base.parts[self->base.channels[channel].part];
        const program *p = self->program_of[channel];
        for (int i = 0; i < p->nphases; ++i) {
            const ring_phase *f = &p->phases[i];
            const int32_t slots = f->leg.half_step >= 0 ? f->leg.half_slots : f->span;
            const int64_t elements = part->elements / part->blocks * slots;
            least = elements < least ? elements : least;
        }
    }
    return least < INT64_MAX ? least : 0;
}

static bool rows_fill(rings *self)
{
    const size_t n = (size_t)self->axes.nranks;
    if (self->row_size >= LINE_HOPS) { /* whole cache lines */
        self->row_size = (self->row_size + LINE_HOPS - 1) / LINE_HOPS * LINE_HOPS;
    }
    const size_t bytes = n * (size_t)self->row_size * sizeof *self->rows;
    self->rows = aligned_alloc(LINE_BYTES, (bytes / LINE_BYTES + 1) * LINE_BYTES);
    for (size_t rank = 0; self->rows && rank < n; ++rank) {
        pod_coll_hop *row = &self->rows[rank * (size_t)self->row_size];
        if (self->nhops > 0) {
            memcpy(row, pod_coll_axes_hop(&self->axes, (int32_t)rank, 0, 0),
                   (size_t)self->nhops * sizeof *row);
        }
        for (int i = 0; i < self->norders; ++i) {
            const pod_ring_order *order = &self->orders[i];
            const size_t levels = (size_t)order->levels;
            POD_ASSERT(order->digits != NULL);
            memcpy(row + self->nhops + order->first_digit, order->digits + rank * levels,
                   levels * sizeof *order->digits);
        }
    }
    for (int i = 0; i < self->norders; ++i) {
        free(self->orders[i].digits);
        self->orders[i].digits = NULL;
    }
    self->base.near = (pod_coll_near){.base = self->rows,
                                      .stride_bytes = self->row_size * (int32_t)sizeof *self->rows};
    return self->rows != NULL;
}

/* Parts of whole multiples of the ranks have equal blocks, so that ranks that see the same graph stay in step to the
 * picosecond; the last part takes the rest. Small vectors keep exact shares instead, unless blocks must be equal. */
static bool add_streams(rings *self, const pod_rings_plan *plan, bool equal_blocks)
{
    const int64_t n = (int64_t)self->axes.nranks * (plan->unit > 0 ? plan->unit : 1);
    const bool aligned =
        equal_blocks || self->base.elements / n / plan->nstreams >= BLOCK_ALIGNED_MIN;
    const int64_t unit = aligned ? n : 1;
    double before = 0.0;
    int64_t first = 0;
    for (int32_t i = 0; i < plan->nstreams; ++i) {
        before += plan->stream[i].share;
        int64_t end = (int64_t)(before * (double)(self->base.elements / unit) + 0.5) * unit;
        end = i == plan->nstreams - 1 || end > self->base.elements ? self->base.elements : end;
        self->base.parts[i] = (pod_coll_part){
            .elements = end - first, .blocks = self->axes.nranks, .slots = self->axes.nranks};
        first = end;
        if (!add_stream(self, i, &plan->stream[i])) {
            return false;
        }
    }
    return true;
}

/* All ranks do the same: they see the same ways, and blocks are equal. */
static bool rings_are_uniform(const rings *self, const pod_coll_request *request)
{
    bool uniform = request->slice->nfaults == 0 && pod_coll_axes_symmetric(&self->axes);
    for (int axis = 0; uniform && axis < self->axes.naxes; ++axis) {
        for (int minus = 0; minus < 2; ++minus) {
            const int8_t direction = pod_coll_axes_hop(&self->axes, 0, axis, minus)->direction;
            for (int32_t rank = 0; uniform && rank < self->axes.nranks; ++rank) {
                uniform =
                    direction >= 0
                    && pod_coll_axes_hop(&self->axes, rank, axis, minus)->direction == direction;
            }
        }
    }
    return uniform && pod_coll_parts_equal(&self->base);
}

pod_status pod_rings_build(const pod_coll_request *request, pod_coll_axes *axes,
                           const pod_rings_plan *plan, pod_coll_schedule **schedule, pod_error *err)
{
    const size_t streams = (size_t)plan->nstreams;
    rings *self = calloc(1, sizeof *self);
    if (!self) {
        pod_coll_axes_fini(axes);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->axes = *axes;
    *axes = (pod_coll_axes){0};
    self->farthest = plan->rule == POD_RING_FARTHEST;
    self->nhops = self->axes.naxes * 2;
    self->row_size = self->nhops;
    self->base = (pod_coll_schedule){.ops = &rings_ops,
                                     .algorithm = plan->algorithm,
                                     .op = request->op,
                                     .group = request->group,
                                     .elements = request->elements,
                                     .nparts = plan->nstreams,
                                     .sequential = true,
                                     .ordered = plan->rule != POD_RING_FAIR};
    self->base.exclusive = self->base.ordered && pod_coll_axes_linked(&self->axes);
    self->base.parts = calloc(streams, sizeof *self->base.parts);
    self->base.channels = calloc(2 * streams, sizeof *self->base.channels);
    self->orders = calloc(streams, sizeof *self->orders);
    self->programs = calloc(2 * streams, sizeof *self->programs);
    self->program_of = calloc(2 * streams, sizeof *self->program_of);
    self->order_of = calloc(streams, sizeof *self->order_of);
    self->twin = calloc(2 * streams, sizeof *self->twin);
    if (!self->base.parts || !self->base.channels || !self->orders || !self->programs
        || !self->program_of || !self->order_of || !self->twin
        || !add_streams(self, plan, request->equal_blocks) || !rows_fill(self)) {
        rings_free(&self->base);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->base.least_elements = least_elements(self);
    self->base.uniform = rings_are_uniform(self, request);
    /* the digit on a ring only chooses the slots */
    pod_coll_axes_repeat(&self->axes, request, NULL, &self->base);
    *schedule = &self->base;
    return POD_OK;
}
