/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/algorithms/pairs.h"

#include "collectives/embedding/axes.h"
#include "collectives/predict/predict.h"
#include "collectives/predict/stepcost.h"
#include "collectives/schedule/frame.h"
#include "ici/route.h"

#include <stdlib.h>

enum { UNITS_MIN = 8 }; /* blocks of a part in which it is cut evenly */

/* Step s of a part goes along this axis, for the sigma-th time. */
typedef struct pair_turn {
    int axis;
    int sigma;
} pair_turn;

typedef struct pairs_schedule {
    pod_coll_schedule base;
    pod_pairs_plan plan;
    pod_coll_axes axes;
    int levels;                        /* log2 of the ranks */
    int gates;                         /* idle steps before each level: see lock_step */
    int32_t pitch[POD_GROUP_DIMS_MAX]; /* of the cells along an axis */
    int32_t *cell_of;                  /* cell_of[rank] = sum of position · pitch */
    int32_t *rank_at;                  /* rank_at[cell] */
    int32_t *slot_of;                  /* slot_of[part · n + rank] */
    pair_turn *turns;                  /* turns[part · levels + step] */
} pairs_schedule;

static int32_t rho(int sigma)
{
    int32_t power = 1;
    for (int i = 0; i <= sigma; ++i) {
        power *= -2;
    }
    return (1 - power) / 3;
}

static bool is_mirrored(const pairs_schedule *self, int32_t part)
{
    return part >= self->axes.naxes;
}

static int32_t partner_position(const pairs_schedule *self, int32_t part, const pair_turn *turn,
                                int32_t position)
{
    const int32_t length = self->axes.axis[turn->axis].length;
    const int32_t mask = length - 1; /* a power of two */
    const bool mirrored = is_mirrored(self, part);
    if (self->plan.swing) {
        const bool forward = ((position & 1) == 0) != mirrored;
        return (position + (forward ? rho(turn->sigma) : -rho(turn->sigma))) & mask;
    }
    if (mirrored) {
        return -((-position & mask) ^ (1 << turn->sigma)) & mask;
    }
    return position ^ (1 << turn->sigma);
}

static int32_t partner_of(const pairs_schedule *self, int32_t part, int step, int32_t rank)
{
    const pair_turn *turn = &self->turns[part * self->levels + step];
    const int32_t position = self->axes.position[rank * self->axes.naxes + turn->axis];
    const int32_t there = partner_position(self, part, turn, position);
    return self->rank_at[self->cell_of[rank] + (there - position) * self->pitch[turn->axis]];
}

/* ---- schedule ---- */

static int32_t pairs_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

static void step_whole(pod_coll_step *out)
{
    out->send_slots = 1;
    out->recv_op = POD_RECV_REDUCE;
}

/* `half` slots change sides at this level: those of the partner's side are sent away in the
 * reduce-scatter and come back in the all-gather. */
static void step_half(const pairs_schedule *self, int32_t part, int level, bool gather,
                      int32_t rank, pod_coll_step *out)
{
    const int32_t half = self->base.group->size >> (level + 1);
    const int32_t slot = self->slot_of[part * self->base.group->size + rank];
    const int32_t mine = slot & ~(half - 1);
    const int32_t theirs = mine ^ half;
    out->send_slots = half;
    out->send_slot = gather ? mine : theirs;
    out->recv_slot = gather ? theirs : mine;
    out->recv_op = gather ? POD_RECV_STORE : POD_RECV_REDUCE;
}

/* In lockstep a step begins when the receives of the last one are complete in all parts: else parts that are
 * early by a nanosecond get a larger share of a link, are earlier still, and drift apart. A step can wait for two
 * other channels, idle steps in front of it for two more each. */
static void lock_step(const pairs_schedule *self, int32_t part, int32_t step, pod_coll_step *out)
{
    const int32_t begin = step - step % (self->gates + 1);
    const int32_t parts = self->base.nparts;
    for (int w = 0; w < POD_COLL_WAITS_MAX; ++w) {
        const int32_t later = (step - begin) * POD_COLL_WAITS_MAX + w + 1;
        if (later < parts && begin > 0) {
            out->wait[w] = (pod_coll_wait){(part + later) % parts, begin};
        }
    }
}

static void pairs_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                       int32_t step, pod_coll_step *out)
{
    const pairs_schedule *self = (const pairs_schedule *)schedule;
    const int32_t part = channel;
    const int32_t turn = step / (self->gates + 1);
    const bool gather =
        self->plan.halving && (schedule->op == POD_ALL_GATHER || turn >= self->levels);
    const int32_t last = schedule->op == POD_ALL_GATHER ? self->levels - 1 : 2 * self->levels - 1;
    const int level = (int)(gather ? last - turn : turn);
    *out = pod_coll_step_idle();
    out->wait_recv = step;
    if (self->plan.circuits) {
        lock_step(self, part, step, out);
        if (step % (self->gates + 1) != self->gates) {
            return;
        }
    }
    out->send_to = partner_of(self, part, level, me->rank);
    out->recv_from = out->send_to;
    out->send_step = step;
    if (self->plan.halving) {
        step_half(self, part, level, gather, me->rank, out);
    } else {
        step_whole(out);
    }
}

static int32_t pairs_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const pairs_schedule *self = (const pairs_schedule *)schedule;
    return self->plan.halving ? self->slot_of[part * schedule->group->size + rank] : 0;
}

static void pairs_free(pod_coll_schedule *schedule)
{
    pairs_schedule *self = (pairs_schedule *)schedule;
    free(self->turns);
    free(self->slot_of);
    free(self->rank_at);
    free(self->cell_of);
    pod_coll_axes_fini(&self->axes);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops pairs_ops = {
    .steps = pairs_steps,
    .step = pairs_step,
    .block_slot = pairs_block_slot,
    .free = pairs_free,
};

/* ---- building ---- */

static int log2_of(int32_t power)
{
    int log = 0;
    while (1 << log < power) {
        ++log;
    }
    return log;
}

/* The axes take turns, those that are through drop out. */
static void pairs_take_turns(pairs_schedule *self, int32_t part)
{
    const int naxes = self->axes.naxes;
    int sigma[POD_GROUP_DIMS_MAX] = {0};
    int axis = naxes > 0 ? (int)part % naxes : 0;
    for (int step = 0; step < self->levels; ++step) {
        while (1 << sigma[axis] >= self->axes.axis[axis].length) {
            axis = (axis + 1) % naxes;
        }
        self->turns[part * self->levels + step] = (pair_turn){axis, sigma[axis]++};
        axis = (axis + 1) % naxes;
    }
}

/* From the last step backwards: two sets of ranks that a step pairs become one; the set with the smaller
 * first rank is side 0. Bit of step s = side. */
static void number_slots(pairs_schedule *self, int32_t part, int32_t *set)
{
    const int32_t n = self->base.group->size;
    int32_t *slot = &self->slot_of[part * n];
    int32_t *joined = set + n;
    POD_ASSERT(self->levels >= 0 && self->levels < 31); /* 2^levels <= n */
    for (int32_t r = 0; r < n; ++r) {
        set[r] = r;
        slot[r] = 0;
    }
    for (int step = self->levels - 1; step >= 0; --step) {
        const int32_t half = n >> (step + 1);
        for (int32_t r = 0; r < n; ++r) {
            const int32_t other = set[partner_of(self, part, step, r)];
            slot[r] += other < set[r] ? half : 0;
            joined[r] = other < set[r] ? other : set[r];
        }
        for (int32_t r = 0; r < n; ++r) {
            set[r] = joined[r];
        }
    }
}

static pod_status pairs_fill(pairs_schedule *self, pod_error *err)
{
    const int32_t n = self->base.group->size;
    const size_t parts = (size_t)self->base.nparts;
    self->cell_of = calloc((size_t)n, sizeof *self->cell_of);
    self->rank_at = calloc((size_t)n, sizeof *self->rank_at);
    self->slot_of = calloc(parts * (size_t)n, sizeof *self->slot_of);
    self->turns = calloc(parts * (size_t)self->levels + 1, sizeof *self->turns);
    int32_t *sets = calloc(2 * (size_t)n, sizeof *sets);
    if (!self->cell_of || !self->rank_at || !self->slot_of || !self->turns || !sets) {
        free(sets);
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
    for (int32_t p = 0; p < self->base.nparts; ++p) {
        pairs_take_turns(self, p);
        number_slots(self, p, sets);
    }
    free(sets);
    return POD_OK;
}

/* Parts of whole multiples of the ranks, so that all blocks of a part are equal; small vectors stay in equal parts,
 * since nobody is late for the sake of a few elements. */
static void cut_in_blocks(pod_coll_schedule *schedule, int32_t n)
{
    const int32_t parts = schedule->nparts;
    const int64_t units = schedule->elements / n;
    if (units < UNITS_MIN * parts) {
        return;
    }
    for (int32_t p = 0; p < parts; ++p) {
        schedule->parts[p].elements = (units / parts + (p < units % parts ? 1 : 0)) * n;
    }
    schedule->parts[parts - 1].elements += schedule->elements % n;
}

/* Swing goes one way from even positions, as far the other way from odd ones; of a doubling's positions every bit
 * counts. */
static void pairs_repeat_fill(pairs_schedule *self, const pod_coll_request *request)
{
    int32_t every[POD_GROUP_DIMS_MAX];
    for (int a = 0; a < self->axes.naxes; ++a) {
        every[a] = self->plan.swing ? 2 : self->axes.axis[a].length;
    }
    pod_coll_axes_repeat(&self->axes, request, every, &self->base);
}

pod_status pod_pairs_build(const pod_coll_request *request, const pod_pairs_plan *plan,
                           pod_coll_schedule **schedule, pod_error *err)
{
    const int32_t n = request->group->size;
    pairs_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->plan = *plan;
    self->levels = log2_of(n);
    pod_status st = pod_coll_axes_init(&self->axes, request, err);
    const int32_t parts = plan->all_ports && self->axes.naxes > 0 ? 2 * self->axes.naxes : 1;
    POD_THEN(st, pod_coll_frame_init(&self->base, &pairs_ops, plan->algorithm, request, parts,
                                     parts, err));
    POD_THEN(st, pairs_fill(self, err));
    if (st != POD_OK) {
        pairs_free(&self->base);
        return st;
    }
    self->base.circuits = plan->circuits;
    self->base.ties_plus = plan->ties_plus;
    self->gates = plan->circuits ? (parts - 2) / POD_COLL_WAITS_MAX : 0;
    if (plan->halving) {
        pod_coll_frame_slots(&self->base, n, n);
    }
    if (plan->circuits && plan->halving) {
        cut_in_blocks(&self->base, n);
    }
    pairs_repeat_fill(self, request);
    const bool twice = plan->halving && request->op == POD_ALL_REDUCE;
    const int32_t turns = twice ? 2 * self->levels : self->levels;
    for (int32_t c = 0; c < parts; ++c) {
        self->base.channels[c].max_steps = turns * (self->gates + 1);
    }
    *schedule = &self->base;
    return POD_OK;
}

pod_status pod_pairs_apply(const pod_coll_request *request, const char *algorithm,
                           const char *instead, pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    for (int a = 0; a < axes.naxes; ++a) {
        const int32_t length = axes.axis[a].length;
        if ((length & (length - 1)) != 0) {
            pod_coll_axes_fini(&axes);
            return pod_fail(err, POD_E_INVALID,
                            "%s pairs chips up, so it needs axes of 2, 4, 8, … chips, and one here "
                            "has %d; use %s",
                            algorithm, (int)length, instead);
        }
    }
    pod_coll_axes_fini(&axes);
    return POD_OK;
}

/* ---- prediction ---- */

/* Bytes over links of each direction, of all ranks of the first group. @param[in,out] work  work[POD_DIRECTIONS] */
static void add_message(const pod_coll_request *request, const pod_router *router, int32_t from,
                        int32_t to, double bytes, double *work)
{
    pod_path paths[POD_ROUTE_PATHS_MAX];
    const int32_t *chips = request->group->chip_of;
    const int count = pod_router_paths(router, chips[from], chips[to], paths);
    for (int p = 0; p < count; p++) {
        for (int s = 0; s < paths[p].nsegments; s++) {
            work[paths[p].direction[s]] += bytes / count * paths[p].hops[s];
        }
    }
}

/* All messages of the first group, or a little less where blocks differ. On a healthy slice it is as far from one
 * position to another wherever the chip is along the other axes. */
static void group_work(const pod_coll_request *request, const pairs_schedule *self,
                       const pod_router *router, double *work)
{
    const int32_t n = request->group->size;
    const int gathers = self->plan.halving && request->op == POD_ALL_REDUCE ? 2 : 1;
    for (int32_t part = 0; part < self->base.nparts; part++) {
        const int64_t elements = self->base.parts[part].elements;
        for (int step = 0; step < self->levels; step++) {
            const pair_turn *turn = &self->turns[part * self->levels + step];
            const int32_t length = self->axes.axis[turn->axis].length;
            const int64_t sent =
                self->plan.halving ? elements / n * (n >> (step + 1)) * gathers : elements;
            for (int32_t position = 0; position < length; position++) {
                const int32_t rank = self->rank_at[position * self->pitch[turn->axis]];
                add_message(request, router, rank, partner_of(self, part, step, rank),
                            (double)(sent * request->element_bytes * (n / length)), work);
            }
        }
    }
}

/* What no group on a healthy slice can be faster than: the links of its chips in some direction busy all the time. 0
 * where no choice asks (request->enough_ps). */
static pod_status least_time(const pod_coll_request *request, const pod_coll_schedule *schedule,
                             pod_time_ps *least_ps, pod_error *err)
{
    double work[POD_DIRECTIONS] = {0};
    double most = 0;
    pod_router *router = NULL;
    *least_ps = 0;
    if (request->enough_ps == 0 || request->slice->nfaults > 0 || schedule->ties_plus) {
        return POD_OK;
    }
    POD_TRY(pod_router_new(request->slice, &router, err));
    group_work(request, (const pairs_schedule *)schedule, router, work);
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        most = work[direction] > most ? work[direction] : most;
    }
    *least_ps = request->launch_ps
                + pod_rate_time_ps(request->link_rate, (int64_t)(most / request->group->size));
    pod_router_free(router);
    return POD_OK;
}

pod_status pod_pairs_predict(const pod_coll_request *request, const pod_pairs_plan *plan,
                             pod_coll_prediction *prediction, pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_time_ps least_ps = 0;
    pod_status st = pod_pairs_build(request, plan, &schedule, err);
    POD_THEN(st, least_time(request, schedule, &least_ps, err));
    if (st == POD_OK && least_ps > 0 && least_ps >= request->enough_ps) {
        *prediction = (pod_coll_prediction){.total_ps = least_ps};
    } else if (st == POD_OK) {
        const bool by_parity = plan->swing && !request->slice->twisted;
        const pod_coll_likeness likeness = by_parity ? POD_LIKE_PARITY : POD_LIKE_NONE;
        bool complete = false;
        st = pod_coll_predict_schedule(request, schedule, likeness, prediction, &complete, err);
        if (st == POD_OK && !complete) {
            st = pod_coll_predict_steps(request, schedule, prediction, err);
        }
    }
    pod_coll_schedule_free(schedule);
    return st;
}
