/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all, axis after axis: blocks for the same position along an axis travel together.
 *
 * Example, a 2x2, order x y. Block rs goes from rank r to rank s; ranks 0 1 in the first row, 2 3 in the second.
 *
 *     phase    rank 0                  rank 1                  rank 2              rank 3
 *     along x  01 03 to 1              10 12 to 0              21 23 to 3          30 32 to 2
 *     has      00 02 10 12             01 03 11 13             20 22 30 32         21 23 31 33
 *     along y  02 12 to 2              03 13 to 3              20 30 to 0          21 31 to 1
 *     has      00 10 20 30             01 11 21 31             02 12 22 32         03 13 23 33
 *
 * The vector is cut into D parts; part p takes the axes in the order p, p+1, …, p-1, so that all axes work from
 * the start. Fair shares of an axis would let a part whose last axis is the longest delay one that has others to go.
 * Where bytes matter more than hops, parts therefore take turns on every axis: the part that has it as its j-th
 * waits for the one that had it as its (j-1)-th, so that the longest axis is never idle. A phase along
 * an axis of k sends k - 1 messages of 1/k of the part, by the shorter way, half a ring both ways:
 * sum of (k - 1) · D messages per chip where `direct` needs n - 1. On wrapped shapes the longest axis is
 * busy throughout, which is the bound.
 *
 * Slots. With positions c, source s and destination d counted along the part's own order of axes, buffer j
 * (j = 0 the input, j = D the output) holds what a rank has before phase j: destinations with d_l = c_l for l < j and
 * sources with s_l = c_l for l >= j. Its index counts d_j fastest, then d_{j+1}, …, then s_0, …, s_{j-1}.
 * So what goes to position q of phase j is every k_j-th slot from q on, and the receiver puts it into buffer
 * j + 1 as one run, the sender's position counting slowest. A slot has the size of the block of its
 * destination.
 *
 * A channel per part and direction; a phase begins when all receives of the one before are complete. */
#include "collectives/embedding/exchange.h"
#include "collectives/predict/predict.h"
#include "collectives/predict/stepcost.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>

typedef struct axis_schedule {
    pod_coll_schedule base;
    pod_coll_axes axes;
    bool turns;                        /* parts take turns on an axis, else they share it */
    int32_t pitch[POD_GROUP_DIMS_MAX]; /* of the cells along an axis */
    int32_t *cell_of;                  /* cell_of[rank] = sum of position · pitch */
    int32_t *rank_at;                  /* rank_at[cell] */
} axis_schedule;

static int part_axis(const axis_schedule *self, int32_t part, int level)
{
    return (int)(part + level) % self->axes.naxes;
}

static int32_t length_of(const axis_schedule *self, int32_t part, int level)
{
    return self->axes.axis[part_axis(self, part, level)].length;
}

static int32_t position_of(const axis_schedule *self, int32_t part, int level, int32_t rank)
{
    return self->axes.position[rank * self->axes.naxes + part_axis(self, part, level)];
}

/* Displacements that a direction serves: half a ring (a tie goes with +), or a line. */
static int32_t axis_reach(const pod_coll_axis *axis, bool minus)
{
    if (!axis->closed) {
        return axis->length - 1;
    }
    return minus ? (axis->length - 1) / 2 : axis->length / 2;
}

/* Steps of a phase; + opens with the copy of what stays. */
static int32_t axis_phase_steps(const axis_schedule *self, int axis, bool minus)
{
    return axis_reach(&self->axes.axis[axis], minus) + (minus ? 0 : 1);
}

static int32_t axis_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

/* Buffer j starts at this slot. */
static int32_t buffer_slot(const axis_schedule *self, int level)
{
    const int32_t n = self->base.group->size;
    if (level == 0) {
        return 0;
    }
    return level == self->axes.naxes ? n : (level + 1) * n;
}

typedef struct axis_phase {
    int level;
    int axis;
    int32_t first; /* its first step in this channel */
    int32_t other; /* and in the part's other channel */
} axis_phase;

static axis_phase axis_phase_at(const axis_schedule *self, int32_t channel, int32_t step)
{
    const bool minus = channel % 2 != 0;
    axis_phase f = {0};
    for (f.level = 0; f.level < self->axes.naxes; ++f.level) {
        f.axis = part_axis(self, channel / 2, f.level);
        const int32_t steps = axis_phase_steps(self, f.axis, minus);
        if (step < f.first + steps) {
            break;
        }
        f.first += steps;
        f.other += axis_phase_steps(self, f.axis, !minus);
    }
    return f;
}

/* The rank `by` positions further along an axis, or -1 beyond the end of a line. */
static int32_t rank_along(const axis_schedule *self, int32_t rank, int axis, int32_t by)
{
    const int32_t length = self->axes.axis[axis].length;
    const int32_t position = self->axes.position[rank * self->axes.naxes + axis];
    int32_t there = position + by;
    if (self->axes.axis[axis].closed) {
        there = (there + length) % length;
    } else if (there < 0 || there >= length) {
        return -1;
    }
    return self->rank_at[self->cell_of[rank] + (there - position) * self->pitch[axis]];
}

/* Receives of a channel in the phases of its part up to a level. */
static int32_t receives_before(const axis_schedule *self, int32_t channel, int level)
{
    int32_t steps = 0;
    for (int l = 0; l < level; ++l) {
        steps += axis_phase_steps(self, part_axis(self, channel / 2, l), channel % 2 != 0);
    }
    return steps;
}

/* A phase begins after the last one of its part in both directions and, in turns, after the part before on
 * this axis. + opens with the copy, which stands for what + waits for when - begins. */
static void wait_for_phase(const axis_schedule *self, int32_t channel, const axis_phase *f,
                           int32_t in_phase, pod_coll_step *out)
{
    const bool minus = channel % 2 != 0;
    const int32_t before = 2 * ((channel / 2 + 1) % self->axes.naxes);
    const bool turns = self->turns && f->level > 0;
    out->wait_recv = f->first;
    if (in_phase == 0) {
        out->wait[0] = (pod_coll_wait){channel ^ 1, f->other + (minus ? 1 : 0)};
    }
    if (turns && in_phase < (minus ? 1 : 2)) {
        const int32_t awaited = before + (minus || in_phase == 1 ? 1 : 0);
        out->wait[1] = (pod_coll_wait){awaited, receives_before(self, awaited, f->level)};
    }
}

/* Where step i of a phase sends; + opens with the copy, which goes nowhere. Then nearest first: all ranks are at
 * the same distance at the same time, so that the busiest link, on a line the one in the middle, never
 * idles. The tie of an even ring comes last; it needs both directions. */
static int32_t displacement(bool minus, int32_t i)
{
    return minus ? -1 - i : i;
}

static void axis_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                      int32_t step, pod_coll_step *out)
{
    const axis_schedule *self = (const axis_schedule *)schedule;
    const int32_t n = schedule->group->size;
    const int32_t part = channel / 2;
    const bool minus = channel % 2 != 0;
    const axis_phase f = axis_phase_at(self, channel, step);
    const int32_t length = self->axes.axis[f.axis].length;
    const int32_t in_phase = step - f.first;
    const int32_t by = displacement(minus, in_phase);
    *out = pod_coll_step_idle();
    wait_for_phase(self, channel, &f, in_phase, out);
    out->send_to = rank_along(self, me->rank, f.axis, by);
    out->recv_from = rank_along(self, me->rank, f.axis, -by);
    out->send_step = step;
    if (out->send_to >= 0) {
        out->send_slot =
            buffer_slot(self, f.level) + position_of(self, part, f.level, out->send_to);
        out->send_slots = n / length;
        out->send_gap = length - 1;
    }
    if (out->recv_from >= 0) {
        out->recv_slot = buffer_slot(self, f.level + 1)
                         + position_of(self, part, f.level, out->recv_from) * (n / length);
    }
}

static int32_t axis_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const axis_schedule *self = (const axis_schedule *)schedule;
    int32_t slot = 0;
    for (int level = self->axes.naxes - 1; level >= 0; --level) {
        slot = slot * length_of(self, part, level) + position_of(self, part, level, rank);
    }
    return slot;
}

/* ---- sizes ---- */

static int64_t block_elements_before(const pod_coll_part *part, int32_t block)
{
    const int64_t longer = part->elements % part->blocks;
    return block * (part->elements / part->blocks) + (block < longer ? block : longer);
}

/* Buffer j on a rank, 0 < j < D: destinations b0, b0 + pitch, …, `rows` of them, once per source. */
typedef struct buffer {
    int32_t first_block;
    int32_t pitch;
    int32_t rows;
} buffer;

static buffer buffer_of(const axis_schedule *self, int32_t part, int32_t rank, int level)
{
    buffer b = {.pitch = 1};
    for (int l = 0; l < level; ++l) {
        b.first_block += position_of(self, part, l, rank) * b.pitch;
        b.pitch *= length_of(self, part, l);
    }
    b.rows = self->base.group->size / b.pitch;
    return b;
}

/* Elements in the first `rows` destinations of a buffer: those below the remainder are one longer. */
static int64_t rows_elements(const pod_coll_part *part, const buffer *b, int32_t rows)
{
    const int64_t longer = part->elements % part->blocks;
    int64_t above = (longer - b->first_block + b->pitch - 1) / b->pitch;
    above = above < 0 || longer <= b->first_block ? 0 : above;
    return rows * (part->elements / part->blocks) + (above < rows ? above : rows);
}

static int64_t axis_slot_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                int32_t slot)
{
    const axis_schedule *self = (const axis_schedule *)schedule;
    const pod_coll_part *p = &schedule->parts[part];
    const int32_t n = p->blocks;
    if (slot <= n) {
        return block_elements_before(p, slot);
    }
    const int32_t mine = axis_block_slot(schedule, part, rank);
    const int64_t own = block_elements_before(p, mine + 1) - block_elements_before(p, mine);
    if (slot <= 2 * n) {
        return p->elements + (slot - n) * own;
    }
    int64_t offset = p->elements + n * own;
    slot -= 2 * n;
    for (int level = 1; level < self->axes.naxes; ++level) {
        const buffer b = buffer_of(self, part, rank, level);
        const int32_t inside = slot < n ? slot : n;
        offset +=
            inside / b.rows * rows_elements(p, &b, b.rows) + rows_elements(p, &b, inside % b.rows);
        slot -= inside;
    }
    return offset;
}

static void axis_free(pod_coll_schedule *schedule)
{
    axis_schedule *self = (axis_schedule *)schedule;
    free(self->rank_at);
    free(self->cell_of);
    pod_coll_axes_fini(&self->axes);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops axis_ops = {
    .steps = axis_steps,
    .step = axis_step,
    .block_slot = axis_block_slot,
    .slot_offset = axis_slot_offset,
    .free = axis_free,
};

/* ---- building ---- */

static pod_status axis_cells_number(axis_schedule *self, pod_error *err)
{
    const int32_t n = self->base.group->size;
    self->cell_of = calloc((size_t)n, sizeof *self->cell_of);
    self->rank_at = calloc((size_t)n, sizeof *self->rank_at);
    if (!self->cell_of || !self->rank_at) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    int32_t pitch = 1;
    for (int a = 0; a < self->axes.naxes; ++a) {
        self->pitch[a] = pitch;
        pitch *= self->axes.axis[a].length;
    }
    for (int32_t r = 0; r < n; ++r) {
        for (int a = 0; a < self->axes.naxes; ++a) {
            self->cell_of[r] += self->axes.position[r * self->axes.naxes + a] * self->pitch[a];
        }
        self->rank_at[self->cell_of[r]] = r;
    }
    return POD_OK;
}

static pod_status axis_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    axis_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    pod_status st = pod_coll_axes_init(&self->axes, request, err);
    const int naxes = self->axes.naxes;
    POD_THEN(st, pod_coll_frame_init(&self->base, &axis_ops, "per_axis", request,
                                     naxes > 0 ? naxes : 1, 2 * naxes, err));
    POD_THEN(st, axis_cells_number(self, err));
    if (st == POD_OK && naxes > 1) {
        pod_exchange_time(request, &self->axes, &self->turns);
    }
    if (st != POD_OK) {
        axis_free(&self->base);
        return st;
    }
    self->base.uniform = request->slice->nfaults == 0 && pod_coll_axes_symmetric(&self->axes);
    pod_coll_frame_slots(&self->base, request->group->size,
                         (naxes > 0 ? naxes + 1 : 2) * request->group->size);
    /* along a closed axis all send equally far in a step: positions only choose its slots */
    pod_coll_axes_repeat(&self->axes, request, NULL, &self->base);
    for (int32_t c = 0; c < self->base.nchannels; ++c) {
        self->base.channels[c].part = c / 2;
        for (int axis = 0; axis < naxes; ++axis) {
            self->base.channels[c].max_steps += axis_phase_steps(self, axis, c % 2 != 0);
        }
    }
    *schedule = &self->base;
    return POD_OK;
}

static pod_status axis_applies(const pod_coll_request *request, pod_error *err)
{
    if (request->group->ndims == 0 && request->group->size > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "per_axis needs groups that are grids of chips; use direct");
    }
    if (request->slice->twisted && request->group->size == request->slice->nchips) {
        return pod_fail(
            err, POD_E_INVALID,
            "the axes of a twisted slice don't close, so per_axis is no good; use direct");
    }
    return POD_OK;
}

/* By the work of the busiest links and the hops. */
static pod_status predict_phases(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    double hops_ps = 0.0;
    for (int a = 0; a < axes.naxes; ++a) {
        hops_ps += (double)pod_exchange_hops(&axes.axis[a]) * (double)request->hop_latency_ps;
    }
    bool turns = false;
    const double time_ps = axes.naxes > 0 ? pod_exchange_time(request, &axes, &turns) : 0.0;
    pod_coll_prediction_make(request, (pod_time_ps)hops_ps,
                             time_ps > hops_ps ? (pod_time_ps)(time_ps - hops_ps) : 0, prediction);
    pod_coll_axes_fini(&axes);
    return POD_OK;
}

static pod_status axis_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    bool complete = false;
    pod_status st = axis_build(request, &schedule, err);
    POD_THEN(
        st, pod_coll_predict_schedule(request, schedule, POD_LIKE_ALL, prediction, &complete, err));
    pod_coll_schedule_free(schedule);
    return st == POD_OK && !complete ? predict_phases(request, prediction, err) : st;
}

const pod_coll_algorithm pod_coll_per_axis = {
    .name = "per_axis",
    .summary = "all-to-all axis after axis, one part per cyclic order of the axes",
    .ops = 1U << POD_ALL_TO_ALL,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = axis_applies,
    .predict = axis_predict,
    .build = axis_build,
};
