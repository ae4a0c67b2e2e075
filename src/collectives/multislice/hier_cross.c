/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange across slices: who waits for what, and who sends which run to whom. */
#include "collectives/multislice/hier_state.h"
#include "collectives/schedule/frame.h"

/* First slot of the run of an inner rank. */
int32_t pod_hier_run(const hier *self, int32_t part, int32_t rank)
{
    const hier_part *p = &self->part[part];
    const pod_hier_inner *inner = self->chunk[p->chunk].inner;
    const pod_coll_schedule *any = inner->gather ? inner->gather : inner->scatter;
    return any ? any->ops->block_slot(any, p->inner, rank) * self->unit : 0;
}

/* Channels of the phase before whose receives a rank's crossing waits for. */
static int32_t phase_waits(const hier *self, int32_t part)
{
    const hier_part *p = &self->part[part];
    const pod_coll_schedule *scatter = self->chunk[p->chunk].inner->scatter;
    int32_t count = 0;
    for (int32_t ch = 0; scatter && ch < scatter->nchannels; ++ch) {
        count += scatter->channels[ch].part == p->inner ? 1 : 0;
    }
    return count;
}

/* Steps before the exchange that only wait: the first step of the exchange waits too. */
static int32_t idle_steps(const hier *self, int32_t part)
{
    const int32_t waits = phase_waits(self, part);
    return waits > POD_COLL_WAITS_MAX ? (waits - 1) / POD_COLL_WAITS_MAX : 0;
}

/* Exchange steps. The root's slice of a broadcast sends to each of the others; another one receives and goes on. */
static int32_t cross_steps(const hier *self, const hier_me *me)
{
    const int32_t others = self->slices - 1;
    switch (self->base.op) {
    case POD_ALL_REDUCE:
        return others == 1 ? 1 : 2 * others;
    case POD_BROADCAST:
        if (self->cut.way == POD_HIER_DIRECT) {
            return pod_hier_scatters(self, me) ? others : 1;
        }
        return self->cut.way == POD_HIER_SLOTS ? others
               : pod_hier_scatters(self, me)   ? 2 * others
                                               : others + 1;
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
    case POD_PERMUTE:
    case POD_COLL_OP_COUNT:
        break;
    }
    return others;
}

int32_t pod_hier_cross_steps(const hier *self, const hier_me *me, int32_t part)
{
    return idle_steps(self, part) + cross_steps(self, me);
}

pod_coll_wait pod_hier_crossed(const hier *self, const hier_me *me, int32_t part)
{
    const bool has = self->base.op == POD_BROADCAST && pod_hier_scatters(self, me);
    return (pod_coll_wait){self->part[part].cross,
                           has ? idle_steps(self, part) + 1 : pod_hier_cross_steps(self, me, part)};
}

static pod_coll_wait wait_at(const hier *self, const hier_me *me, int32_t part, int32_t index)
{
    const hier_part *p = &self->part[part];
    const pod_coll_schedule *scatter = self->chunk[p->chunk].inner->scatter;
    int32_t at = -1;
    for (int32_t found = -1; found < index;) {
        ++at;
        found += scatter->channels[at].part == p->inner ? 1 : 0;
    }
    return (pod_coll_wait){
        self->chunk[p->chunk].first_scatter + at,
        pod_hier_scatters(self, me) ? scatter->ops->steps(scatter, &me->place, at) : 0};
}

/* Rank at my place in slice `slice`. */
static int32_t peer(const hier *self, const hier_me *me, int32_t slice)
{
    return slice * self->n + me->rank;
}

/* What NICs serve first: first legs, as what they bring flies once more, and of those early chunks. */
static uint8_t leg_priority(const hier *self, int32_t part, int leg)
{
    _Static_assert(2 * POD_HIER_CHUNKS_MAX <= POD_COLL_NIC_PRIORITIES, "priorities fit");
    return (uint8_t)(leg * POD_HIER_CHUNKS_MAX + self->part[part].chunk);
}

/* Both slices of two swap a whole run. */
static void swap_step(const hier *self, const hier_me *me, int32_t run, pod_coll_step *out)
{
    out->send_to = peer(self, me, 1 - me->slice);
    out->send_slot = run;
    out->send_slots = self->unit;
    out->recv_from = out->send_to;
    out->recv_slot = run;
    out->recv_op = POD_RECV_REDUCE;
}

/* Step k of S - 1: to the slice k + 1 ahead, from the one as far back. */
static void exchange_step(const hier *self, const hier_me *me, int32_t run, bool reduce, int32_t k,
                          pod_coll_step *out)
{
    const int32_t to = (me->slice + k + 1) % self->slices;
    const int32_t from = (me->slice + self->slices - k - 1) % self->slices;
    out->send_to = peer(self, me, to);
    out->send_slot = run + (reduce ? to : me->slice);
    out->send_slots = 1;
    out->recv_from = peer(self, me, from);
    out->recv_slot = run + (reduce ? me->slice : from);
    out->recv_op = reduce ? POD_RECV_REDUCE : POD_RECV_STORE;
}

/* The root's slice gives every other one a slot of the run, which they tell each other, and then all of them the slot
 * that it keeps, which is the last one; or all of it. */
static void broadcast_step(const hier *self, const hier_me *me, int32_t part, int32_t k,
                           pod_coll_step *out)
{
    const int32_t run = pod_hier_run(self, part, me->rank);
    const int32_t idle = idle_steps(self, part);
    const int32_t root = self->base.root / self->n;
    const int32_t others = self->slices - 1;
    const int32_t number = (me->slice - root - 1 + self->slices) % self->slices;
    const bool direct = self->cut.way == POD_HIER_DIRECT;
    const int32_t own = direct ? 0 : number; /* slot */
    if (pod_hier_scatters(self, me)) {
        const int32_t slot = k < others ? k : others;
        out->send_to = peer(self, me, (root + 1 + k % others) % self->slices);
        out->send_step = idle + (k < others ? 0 : others);
        out->send_slot = run + (direct ? 0 : slot);
        out->send_slots = direct ? self->unit : 1;
        out->priority = leg_priority(self, part, k / others);
    } else if (k == 0) {
        out->recv_from = peer(self, me, root);
        out->recv_slot = run + own;
    } else if (k == others) {
        out->recv_from = peer(self, me, root);
        out->recv_slot = run + others;
    } else {
        const int32_t from = (own + others - k) % others;
        out->wait_recv = idle + 1;
        out->send_to = peer(self, me, (root + 1 + (own + k) % others) % self->slices);
        out->send_step = idle + k;
        out->send_slot = run + own;
        out->send_slots = 1;
        out->recv_from = peer(self, me, (root + 1 + from) % self->slices);
        out->recv_slot = run + from;
        out->priority = leg_priority(self, part, 1);
    }
}

void pod_hier_cross_step(const hier *self, const hier_me *me, int32_t part, int32_t step,
                         pod_coll_step *out)
{
    const int32_t idle = idle_steps(self, part);
    const int32_t waits = phase_waits(self, part);
    const int32_t others = self->slices - 1;
    const int32_t run = pod_hier_run(self, part, me->rank);
    const int32_t k = step - idle;
    *out = pod_coll_step_idle();
    for (int i = 0; i < POD_COLL_WAITS_MAX; ++i) {
        const int32_t index = step * POD_COLL_WAITS_MAX + i;
        if (index < waits) {
            out->wait[i] = wait_at(self, me, part, index);
        }
    }
    if (k < 0) {
        return;
    }
    out->send_step = step;
    if (self->base.op == POD_BROADCAST) {
        broadcast_step(self, me, part, k, out);
    } else if (self->base.op == POD_ALL_REDUCE && others == 1) {
        swap_step(self, me, run, out);
        out->priority = leg_priority(self, part, 0);
    } else {
        out->priority = leg_priority(self, part, k < others ? 0 : 1);
        const bool reduce = self->base.op != POD_ALL_GATHER && k < others;
        exchange_step(self, me, run, reduce, k % others, out);
        out->wait_recv = k >= others ? idle + others : 0;
    }
}
