/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler: thread blocks to channels (msccl.h), and the proof.
 *
 * Example, all-reduce over 2 chips in 2 chunks, in place; each chip one tb that sends to the other and receives
 * from it:
 *
 *     chip 0                          chip 1                             channels
 *     s    chunk 0                    rrcs chunk 0                       0: from chip 0 to chip 1
 *     rrcs chunk 1 (waits for s)      s … becomes: send in channel 1,    1: from chip 1 to chip 0
 *     r    chunk 0                    after the receive in channel 0
 */
#include "base/grow.h"
#include "collectives/msccl/msccl_program.h"
#include "collectives/schedule/check.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>
#include <string.h>

enum { MSCCL_ORDERS = 16 }; /* of arrival, besides the eager one */
static const double proof_words_max = 1 << 27;

/* The steps of one chip in one channel, and the step of the file that each stands for (-1 = the last copy). */
typedef struct msccl_lane {
    pod_coll_step *steps;
    int32_t *origin;
    int32_t count;
    int64_t room;
    int64_t origin_room;
} msccl_lane;

typedef struct msccl_schedule {
    pod_coll_schedule base;
    char *name;
    msccl_lane *lanes; /* lanes[rank · nchannels + channel] */
} msccl_schedule;

/* When a step is over: so many receives of a channel of its chip are complete. */
typedef struct event {
    int32_t channel; /* -1 = at once */
    int32_t recv;
} event;

typedef struct compiler {
    const pod_msccl *msccl;
    const pod_coll_request *request;
    msccl_schedule *schedule;
    msccl_links links;
    event *over;     /* of every step of the file */
    int32_t *taken;  /* where the message of a sending step is received: step of the channel */
    int32_t scratch; /* first slot of s */
    int32_t spare;   /* first slot of the one per tb for rrs */
    bool no_memory;
    pod_coll_step nowhere; /* what then is written */
} compiler;

/* ---- schedule ---- */

static msccl_lane *lane_at(const msccl_schedule *self, int32_t rank, int32_t channel)
{
    return &self->lanes[(int64_t)rank * self->base.nchannels + channel];
}

static int32_t msccl_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel)
{
    return lane_at((const msccl_schedule *)schedule, me->rank, channel)->count;
}

static void msccl_step_get(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel, int32_t step, pod_coll_step *out)
{
    *out = lane_at((const msccl_schedule *)schedule, me->rank, channel)->steps[step];
}

static void msccl_schedule_free(pod_coll_schedule *schedule)
{
    msccl_schedule *self = (msccl_schedule *)schedule;
    const int64_t lanes = self->lanes ? (int64_t)schedule->nchannels * schedule->group->size : 0;
    for (int64_t l = 0; l < lanes; ++l) {
        free(self->lanes[l].steps);
        free(self->lanes[l].origin);
    }
    free(self->lanes);
    free(self->name);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops msccl_ops = {
    .steps = msccl_steps, .step = msccl_step_get, .free = msccl_schedule_free};

/* ---- emitting ---- */

static int32_t slot_of(const compiler *c, int32_t rank, msccl_place place)
{
    const pod_msccl *m = c->msccl;
    const int32_t own = rank * msccl_own_chunks(m, m->ngpus);
    if (place.buffer == 's') {
        return c->scratch + place.chunk;
    }
    const bool output = place.buffer == 'o';
    switch (m->op) {
    case POD_ALL_GATHER:
        return output ? place.chunk : own + place.chunk;
    case POD_REDUCE_SCATTER:
        return !output ? place.chunk : (m->in_place ? 0 : m->chunks) + own + place.chunk;
    case POD_ALL_TO_ALL:
        return output ? m->chunks + place.chunk : place.chunk;
    case POD_ALL_REDUCE:
        return output && !m->in_place ? m->chunks + place.chunk : place.chunk;
    case POD_BROADCAST:
    case POD_PERMUTE:
    case POD_COLL_OP_COUNT:
        break;
    }
    return place.chunk;
}

static pod_coll_step *emit(compiler *c, int32_t rank, int32_t channel, int32_t origin)
{
    msccl_lane *l = lane_at(c->schedule, rank, channel);
    if (!POD_GROW(l->steps, l->room, l->count + 1)
        || !POD_GROW(l->origin, l->origin_room, l->count + 1)) {
        c->no_memory = true;
        return &c->nowhere;
    }
    l->origin[l->count] = origin;
    l->steps[l->count] = pod_coll_step_idle();
    return &l->steps[l->count++];
}

static event over_now(const compiler *c, int32_t rank, int32_t channel)
{
    return (event){channel, lane_at(c->schedule, rank, channel)->count};
}

static void wait_for(pod_coll_step *step, event first, event second)
{
    step->wait[0] = (pod_coll_wait){first.channel, first.recv};
    step->wait[1] = (pod_coll_wait){second.channel, second.recv};
}

static event emit_copy(compiler *c, int32_t rank, int32_t channel, int32_t origin, int32_t from,
                       int32_t to, bool reduce, event waits[2])
{
    const int32_t at = lane_at(c->schedule, rank, channel)->count;
    pod_coll_step *step = emit(c, rank, channel, origin);
    step->send_to = rank;
    step->send_step = at;
    step->send_slot = from;
    step->send_slots =
        origin < 0 ? c->schedule->base.parts[0].blocks : c->msccl->steps[origin].chunks;
    step->recv_from = rank;
    step->recv_slot = to;
    step->recv_op = reduce ? POD_RECV_REDUCE : POD_RECV_STORE;
    wait_for(step, waits[0], waits[1]);
    waits[0] = over_now(c, rank, channel);
    waits[1] = (event){-1, 0};
    return waits[0];
}

static int32_t local_channel(const compiler *c, const msccl_tb *tb)
{
    return c->links.channels + tb->id;
}

static void emit_receive(compiler *c, int32_t t, int32_t origin, int32_t to, event waits[2])
{
    const msccl_tb *tb = &c->msccl->tbs[t];
    const msccl_step *in = &c->msccl->steps[origin];
    const bool adds = in->type != MSCCL_R && in->type != MSCCL_RCS;
    const int32_t own = in->type == MSCCL_RRS ? -1 : slot_of(c, tb->gpu, in->dst);
    if (adds && slot_of(c, tb->gpu, in->src) != own) {
        emit_copy(c, tb->gpu, local_channel(c, tb), origin, slot_of(c, tb->gpu, in->src), to, false,
                  waits);
    }
    pod_coll_step *step = emit(c, tb->gpu, c->links.recv_channel[t], origin);
    step->recv_from = tb->recv;
    step->recv_slot = to;
    step->recv_op = adds ? POD_RECV_REDUCE : POD_RECV_STORE;
    wait_for(step, waits[0], waits[1]);
    waits[0] = over_now(c, tb->gpu, c->links.recv_channel[t]);
    waits[1] = (event){-1, 0};
}

static void emit_send(compiler *c, int32_t t, int32_t origin, int32_t from, event waits[2])
{
    const msccl_tb *tb = &c->msccl->tbs[t];
    pod_coll_step *step = emit(c, tb->gpu, c->links.send_channel[t], origin);
    step->send_to = tb->send;
    step->send_step = c->taken[origin];
    step->send_slot = from;
    step->send_slots = c->msccl->steps[origin].chunks;
    wait_for(step, waits[0], waits[1]);
    waits[0] = over_now(c, tb->gpu, c->links.send_channel[t]);
    waits[1] = (event){-1, 0};
}

/* One step of the file. waits[] holds what it waits for, and afterwards when it is over. */
static void emit_step(compiler *c, int32_t t, int32_t origin, event waits[2])
{
    const msccl_tb *tb = &c->msccl->tbs[t];
    const msccl_step *in = &c->msccl->steps[origin];
    const int32_t rank = tb->gpu;
    const int32_t local = local_channel(c, tb);
    int32_t to = in->dst.buffer ? slot_of(c, rank, in->dst) : -1;
    if (in->type == MSCCL_NOP) {
        wait_for(emit(c, rank, local, origin), waits[0], waits[1]);
        waits[0] = over_now(c, rank, local);
        return;
    }
    if (in->type == MSCCL_CPY || in->type == MSCCL_RE) {
        emit_copy(c, rank, local, origin, slot_of(c, rank, in->src), to, in->type == MSCCL_RE,
                  waits);
        return;
    }
    if (in->type == MSCCL_RRS) {
        /* the spare slot of the chunk's own size, as chunks may differ by an element */
        to = c->spare + tb->id * c->msccl->chunks + slot_of(c, rank, in->src) % c->msccl->chunks;
    }
    if (msccl_receives(in->type)) {
        emit_receive(c, t, origin, to, waits);
    }
    if (msccl_sends(in->type)) {
        emit_send(c, t, origin, in->type == MSCCL_S ? slot_of(c, rank, in->src) : to, waits);
    }
}

/* Walk through all steps in the order of the file. Twice: the first time to learn when each is over and where
 * messages are received, the second time to write it down. */
static void emit_all(compiler *c)
{
    const pod_msccl *m = c->msccl;
    for (int32_t t = 0; t < m->ntbs; ++t) {
        const msccl_tb *tb = &m->tbs[t];
        event before = {-1, 0};
        for (int32_t i = 0; i < tb->steps; ++i) {
            const int32_t origin = tb->first_step + i;
            const msccl_step *in = &m->steps[origin];
            event waits[2] = {
                before, {-1, 0}
            };
            if (in->dep_tb >= 0 && in->dep_step >= 0) {
                const msccl_tb *other = &m->tbs[m->gpus[tb->gpu].first_tb + in->dep_tb];
                waits[1] = c->over[other->first_step + in->dep_step];
            }
            emit_step(c, t, origin, waits);
            c->over[origin] = waits[0];
            before = waits[0];
        }
    }
}

static void note_receivers(compiler *c)
{
    const pod_msccl *m = c->msccl;
    for (int32_t t = 0; t < m->ntbs; ++t) {
        if (c->links.receiver[t] < 0) {
            continue;
        }
        /* a receive is the k-th step of its channel: nothing else of that chip is in it */
        int32_t k = 0;
        for (int32_t i = 0; i < m->tbs[t].steps; ++i) {
            if (msccl_sends(m->steps[m->tbs[t].first_step + i].type)) {
                c->taken[m->tbs[t].first_step + i] = k++;
            }
        }
    }
}

/* The result of a collective that isn't in place, from o to where it belongs, when all else is done. */
static void emit_last_copies(compiler *c)
{
    const pod_msccl *m = c->msccl;
    const int32_t last = c->schedule->base.nchannels - 1;
    for (int32_t rank = 0; rank < m->ngpus; ++rank) {
        event waits[2] = {
            {-1, 0},
            {-1, 0}
        };
        for (int32_t channel = 0; channel < last; ++channel) {
            waits[channel % 2] = over_now(c, rank, channel);
            if (channel % 2 == 1) {
                wait_for(emit(c, rank, last, -1), waits[0], waits[1]);
            }
        }
        if (last % 2 == 0) {
            waits[0].channel = -1;
        }
        waits[1].channel = -1;
        const int32_t pieces = msccl_own_chunks(m, m->ngpus);
        const bool sums = m->op == POD_ALL_REDUCE;
        const int32_t to = sums ? 0 : rank * pieces;
        emit_copy(c, rank, last, -1, m->chunks + to, to, false, waits);
        if (!sums) {
            msccl_lane *l = lane_at(c->schedule, rank, last);
            l->steps[l->count - 1].send_slots = pieces;
        }
    }
}

/* ---- building ---- */

static bool uses_scratch(const pod_msccl *m)
{
    for (int32_t s = 0; s < m->nsteps; ++s) {
        const msccl_step *step = &m->steps[s];
        if (step->src.buffer == 's' || step->dst.buffer == 's') {
            return true;
        }
    }
    return false;
}

/* Some chip adds to what it sends on without keeping it. */
static bool adds_on_its_way(const pod_msccl *m)
{
    bool adds = false;
    for (int32_t s = 0; s < m->nsteps; ++s) {
        adds = adds || m->steps[s].type == MSCCL_RRS;
    }
    return adds;
}

pod_status pod_msccl_applies(const pod_msccl *m, const pod_coll_request *request, pod_error *err)
{
    if (m->op != request->op) {
        return pod_fail(err, POD_E_INVALID, "%s is for %s; use --op %s", m->file,
                        pod_coll_op_name(m->op), pod_coll_op_name(m->op));
    }
    if (m->ngpus != request->group->size) {
        return pod_fail(err, POD_E_INVALID, "%s is for %d chips; the groups here have %d", m->file,
                        (int)m->ngpus, (int)request->group->size);
    }
    if (m->op == POD_BROADCAST && request->root != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "%s broadcasts from rank 0, not %d; use the first chip as root", m->file,
                        (int)request->root);
    }
    if (request->elements % m->chunks != 0 && uses_scratch(m)) {
        return pod_fail(
            err, POD_E_INVALID,
            "%lld elements don't make %d equal chunks, and %s uses scratch; use a multiple",
            (long long)request->elements, (int)m->chunks, m->file);
    }
    return POD_OK;
}

static bool needs_last_copy(const pod_msccl *m)
{
    return !m->in_place && (m->op == POD_ALL_REDUCE || m->op == POD_REDUCE_SCATTER);
}

/* Slots: input, output, scratch, one vector of spare chunks per tb for rrs. */
static void lay_slots(compiler *c)
{
    const pod_msccl *m = c->msccl;
    const int32_t blocks = m->chunks;
    int32_t scratch = 0;
    int32_t tbs = 0;
    for (int32_t g = 0; g < m->ngpus; ++g) {
        scratch = m->gpus[g].scratch > scratch ? m->gpus[g].scratch : scratch;
        tbs = m->gpus[g].tbs > tbs ? m->gpus[g].tbs : tbs;
    }
    c->scratch = m->op == POD_ALL_TO_ALL || needs_last_copy(m) ? 2 * blocks : blocks;
    c->spare = c->scratch + (scratch + blocks - 1) / blocks * blocks;
    pod_coll_frame_slots(&c->schedule->base, blocks,
                         c->spare + (adds_on_its_way(m) ? tbs * blocks : 0));
}

static pod_status new_schedule(compiler *c, pod_error *err)
{
    const pod_msccl *m = c->msccl;
    int32_t tbs = 0;
    for (int32_t g = 0; g < m->ngpus; ++g) {
        tbs = m->gpus[g].tbs > tbs ? m->gpus[g].tbs : tbs;
    }
    msccl_schedule *self = calloc(1, sizeof *self);
    char *name = malloc(strlen(m->name) + 1);
    if (!self || !name) {
        free(self);
        free(name);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    memcpy(name, m->name, strlen(m->name) + 1);
    c->schedule = self;
    self->name = name;
    const int32_t channels = c->links.channels + tbs + (needs_last_copy(m) ? 1 : 0);
    POD_TRY(pod_coll_frame_init(&self->base, &msccl_ops, name, c->request, 1,
                                channels > 0 ? channels : 1, err));
    self->lanes = calloc((size_t)self->base.nchannels * (size_t)m->ngpus, sizeof *self->lanes);
    return self->lanes ? POD_OK
                       : pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
}

static void clear_lanes(msccl_schedule *self)
{
    for (int64_t l = 0; l < (int64_t)self->base.nchannels * self->base.group->size; ++l) {
        self->lanes[l].count = 0;
    }
}

static pod_status compile(compiler *c, pod_error *err)
{
    pod_status st = pod_msccl_connect(c->msccl, &c->links, err);
    POD_THEN(st, new_schedule(c, err));
    if (st != POD_OK) {
        return st;
    }
    lay_slots(c);
    note_receivers(c);
    emit_all(c);
    clear_lanes(c->schedule);
    emit_all(c);
    if (needs_last_copy(c->msccl)) {
        emit_last_copies(c);
    }
    for (int64_t l = 0; l < (int64_t)c->schedule->base.nchannels * c->msccl->ngpus; ++l) {
        pod_coll_channel *channel = &c->schedule->base.channels[l % c->schedule->base.nchannels];
        const int32_t count = c->schedule->lanes[l].count;
        channel->max_steps = count > channel->max_steps ? count : channel->max_steps;
    }
    return c->no_memory ? pod_fail(err, POD_E_NOMEM, "no memory to compile %s", c->msccl->file)
                        : POD_OK;
}

/* Say what the checker found in the words of the file. */
static pod_status prove(const compiler *c, pod_error *err)
{
    const pod_msccl *m = c->msccl;
    const double words = (double)m->ngpus * (double)c->schedule->base.parts[0].slots
                         * (1.0 + (double)m->ngpus / 64.0);
    if (words > proof_words_max) {
        return pod_fail(err, POD_E_INVALID,
                        "%s has too many chips times chunks to be proved right; use fewer chunks",
                        m->file);
    }
    pod_coll_fault fault;
    pod_error detail = {0};
    const pod_status st = pod_coll_check_orders(&c->schedule->base, MSCCL_ORDERS, &fault, &detail);
    if (st != POD_E_CHECK) {
        return st == POD_OK ? st : pod_fail(err, st, "%s", detail.text);
    }
    const msccl_lane *l =
        fault.channel < 0 ? NULL : lane_at(c->schedule, fault.rank, fault.channel);
    const int32_t origin = l && fault.step < l->count ? l->origin[fault.step] : -1;
    for (int32_t t = 0; t < m->ntbs && origin >= 0; ++t) {
        const msccl_tb *tb = &m->tbs[t];
        if (origin >= tb->first_step && origin < tb->first_step + tb->steps) {
            return pod_msccl_blame(m, tb, origin - tb->first_step, fault.what, err);
        }
    }
    return pod_fail_at(err, POD_E_TABLE, m->file, m->gpus[fault.rank].at.line,
                       m->gpus[fault.rank].at.column, "gpu %d: %s", (int)fault.rank,
                       fault.what ? fault.what : detail.text);
}

pod_status pod_msccl_build(const pod_msccl *msccl, const pod_coll_request *request,
                           pod_coll_schedule **schedule, pod_error *err)
{
    pod_status st = pod_msccl_applies(msccl, request, err);
    if (st != POD_OK) {
        return st;
    }
    const size_t steps = (size_t)msccl->nsteps + 1;
    compiler c = {
        .msccl = msccl,
        .request = request,
        .over = calloc(steps, sizeof *c.over),
        .taken = calloc(steps, sizeof *c.taken),
    };
    if (!c.over || !c.taken) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to compile %s", msccl->file);
    }
    POD_THEN(st, compile(&c, err));
    POD_THEN(st, prove(&c, err));
    free(c.taken);
    free(c.over);
    pod_msccl_links_fini(&c.links);
    if (st != POD_OK) {
        if (c.schedule) {
            msccl_schedule_free(&c.schedule->base);
        }
        return st;
    }
    *schedule = &c.schedule->base;
    return POD_OK;
}
