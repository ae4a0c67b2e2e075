/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over several slices: most of the work on ICI, the least possible over DCN.
 *
 *     all-reduce       reduce-scatter inside · exchange across · all-gather inside
 *     reduce-scatter   reduce-scatter inside · reduce-scatter across
 *     all-gather       all-gather across · all-gather inside
 *     broadcast        what is left of a reduce-scatter in the root's slice (masked.h) · across · all-gather inside
 *
 * Every chip exchanges its own run with the chips at the same place of the other slices, so that all network
 * NICs of a slice work at once and no byte crosses twice. The exchange of an all-reduce is direct:
 * a reduce-scatter, then an all-gather, S - 1 messages each; for two slices both swap their whole runs,
 * which moves as many bytes in half the time of flight. Chunks run at the same time: while one crosses,
 * the next is reduced and the one before is gathered. NICs serve early chunks first.
 *
 * Example, all-reduce over 2 slices of 2 chips, one chunk; run 0 = blocks 0 1, run 1 = blocks 2 3; what
 * rank 0 (slice 0) and rank 2 (slice 1) do:
 *     channel   step   rank 0                        rank 2
 *     scatter     0    send run 1 to 1, add run 0    send run 1 to 3, add run 0     inside the slices
 *     cross       0    swap run 0 with 2, add        swap run 0 with 0, add         over DCN
 *     gather      0    wait for cross                wait for cross
 *                 1    send run 0 to 1, get run 1    send run 0 to 3, get run 1     inside the slices
 */
#include "collectives/multislice/hier_state.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>

/* Links serve early chunks first, so that these cross while the others are reduced; and reducing comes before
 * gathering, so that NICs are never out of work. */
enum { CHUNK_PRIORITIES = 8, GATHER_PRIORITY = 128 };
_Static_assert(POD_HIER_CHUNKS_MAX *CHUNK_PRIORITIES <= GATHER_PRIORITY, "priorities fit");

static uint8_t chunk_priority(int32_t chunk, int phase)
{
    const int last = CHUNK_PRIORITIES - 1;
    return (uint8_t)(chunk * CHUNK_PRIORITIES + (phase < last ? phase : last));
}

/* Where nothing is reduced meanwhile, early phases come before early chunks: the last chunk has all its way before it.
 */
static uint8_t gather_priority(const hier *self, int32_t chunk, int phase)
{
    const int last = CHUNK_PRIORITIES - 1;
    const int early = (phase < last ? phase : last) * POD_HIER_CHUNKS_MAX + chunk;
    return (uint8_t)(GATHER_PRIORITY
                     + (self->base.op == POD_ALL_REDUCE ? chunk_priority(chunk, phase) : early));
}

static hier_me me_of(const hier *self, int32_t rank)
{
    hier_me me = {.slice = rank / self->n, .rank = rank % self->n};
    pod_coll_place_make(self->inside, me.rank, &me.place);
    return me;
}

static int32_t hier_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const hier *self = (const hier *)schedule;
    return pod_hier_run(self, part, rank % self->n) + rank / self->n;
}

/* ---- inside ---- */

/* A step of an inner schedule, in the terms of this one. `shift` = steps put before its own. */
static void inner_step(const hier *self, const hier_me *me, const pod_coll_schedule *inner,
                       int32_t inner_channel, int32_t first_channel, int32_t step, int32_t shift,
                       pod_coll_step *out)
{
    const int32_t runs = self->unit;
    const int32_t base = me->slice * self->n;
    inner->ops->step(inner, &me->place, inner_channel, step, out);
    out->send_to += out->send_to >= 0 ? base : 0;
    out->send_step += shift;
    out->send_slot *= runs;
    out->send_slots *= runs;
    out->wait_recv += shift;
    for (int i = 0; i < POD_COLL_WAITS_MAX; ++i) {
        out->wait[i].recv += shift;
        out->wait[i].channel += out->wait[i].channel >= 0 ? first_channel : 0;
    }
    out->recv_from += out->recv_from >= 0 ? base : 0;
    out->recv_slot *= runs;
    out->recv_also *= out->recv_also >= 0 ? runs : 1;
    POD_DASSERT(out->send_gap == 0);
}

/* All-gathers inside first wait for what comes from other slices. */
static void hier_gather_step(const hier *self, const hier_me *me, const hier_channel *ch,
                             int32_t part, int32_t step, pod_coll_step *out)
{
    const hier_chunk *chunk = &self->chunk[ch->chunk];
    if (step == 0) {
        *out = pod_coll_step_idle();
        out->wait[0] = pod_hier_crossed(self, me, part);
        return;
    }
    inner_step(self, me, chunk->inner->gather, ch->inner, chunk->first_gather, step - 1, 1, out);
    out->priority = gather_priority(self, ch->chunk, out->priority);
}

/* ---- the schedule ---- */

static int32_t hier_steps(const pod_coll_schedule *schedule, const pod_coll_place *place,
                          int32_t channel)
{
    const hier *self = (const hier *)schedule;
    const hier_me me = me_of(self, place->rank);
    const hier_channel *ch = &self->channel[channel];
    const pod_hier_inner *inner = self->chunk[ch->chunk].inner;
    switch (ch->role) {
    case ROLE_SCATTER:
        if (!pod_hier_scatters(self, &me)) {
            return 0;
        }
        return inner->scatter->ops->steps(inner->scatter, &me.place, ch->inner);
    case ROLE_CROSS:
        return pod_hier_cross_steps(self, &me, schedule->channels[channel].part);
    case ROLE_GATHER:
        break;
    }
    return 1 + inner->gather->ops->steps(inner->gather, &me.place, ch->inner);
}

static void hier_step(const pod_coll_schedule *schedule, const pod_coll_place *place,
                      int32_t channel, int32_t step, pod_coll_step *out)
{
    const hier *self = (const hier *)schedule;
    const hier_me me = me_of(self, place->rank);
    const hier_channel *ch = &self->channel[channel];
    const hier_chunk *chunk = &self->chunk[ch->chunk];
    const int32_t part = schedule->channels[channel].part;
    switch (ch->role) {
    case ROLE_SCATTER:
        inner_step(self, &me, chunk->inner->scatter, ch->inner, chunk->first_scatter, step, 0, out);
        if (schedule->op == POD_BROADCAST) { /* what is masked goes by its step, of 256 */
            out->priority = (uint8_t)(out->priority * CHUNK_PRIORITIES / (UINT8_MAX + 1));
        }
        out->priority = chunk_priority(ch->chunk, out->priority);
        return;
    case ROLE_CROSS:
        pod_hier_cross_step(self, &me, part, step, out);
        return;
    case ROLE_GATHER:
        hier_gather_step(self, &me, ch, part, step, out);
        return;
    }
}

static void hier_free(pod_coll_schedule *schedule)
{
    hier *self = (hier *)schedule;
    for (int i = 0; i < self->ninner; ++i) {
        pod_hier_inner_fini(&self->inner[i]);
    }
    free(self->part);
    free(self->channel);
    free(self->chunk);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops hier_ops = {
    .steps = hier_steps, .step = hier_step, .block_slot = hier_block_slot, .free = hier_free};

static int32_t channel_add(hier *self, hier_role role, int32_t chunk, int32_t inner, int32_t part,
                           int32_t max_steps)
{
    const int32_t channel = self->base.nchannels++;
    self->base.channels[channel] = (pod_coll_channel){.part = part, .max_steps = max_steps};
    self->channel[channel] = (hier_channel){.role = role, .chunk = chunk, .inner = inner};
    return channel;
}

/* Channels of one chunk, those of early phases first. */
static void chunk_channels(hier *self, int32_t number, int32_t nparts)
{
    hier_chunk *chunk = &self->chunk[number];
    const pod_coll_schedule *scatter = chunk->inner->scatter;
    const pod_coll_schedule *gather = chunk->inner->gather;
    chunk->first_scatter = self->base.nchannels;
    for (int32_t ch = 0; scatter && ch < scatter->nchannels; ++ch) {
        channel_add(self, ROLE_SCATTER, number, ch, chunk->first_part + scatter->channels[ch].part,
                    scatter->channels[ch].max_steps);
    }
    for (int32_t p = 0; p < nparts; ++p) {
        self->part[chunk->first_part + p].cross =
            channel_add(self, ROLE_CROSS, number, 0, chunk->first_part + p, 4 * self->slices);
    }
    chunk->first_gather = self->base.nchannels;
    for (int32_t ch = 0; gather && ch < gather->nchannels; ++ch) {
        channel_add(self, ROLE_GATHER, number, ch, chunk->first_part + gather->channels[ch].part,
                    gather->channels[ch].max_steps + 1);
    }
}

/* Which inner schedules do these many elements; ninner = none yet. */
static int inner_find(const hier *self, int64_t elements)
{
    int i = 0;
    while (i < self->ninner && self->inner[i].elements != elements) {
        ++i;
    }
    return i;
}

static pod_status inners_build(hier *self, const pod_coll_request *request, pod_error *err)
{
    for (int c = 0; c < self->cut.nchunks; ++c) {
        const int64_t elements = pod_hier_chunk_elements(request, &self->cut, c);
        if (inner_find(self, elements) == self->ninner) {
            POD_ASSERT(self->ninner < POD_HIER_CHUNK_SIZES);
            POD_TRY(pod_hier_inner_init(&self->inner[self->ninner++], request, elements, self->unit,
                                        err));
        }
    }
    return POD_OK;
}

static void chunks_fill(hier *self, const pod_coll_request *request, int32_t nparts)
{
    for (int32_t c = 0; c < self->cut.nchunks; ++c) {
        hier_chunk *chunk = &self->chunk[c];
        const int64_t elements = pod_hier_chunk_elements(request, &self->cut, c);
        chunk->inner = &self->inner[inner_find(self, elements)];
        chunk->first_part = c * nparts;
        const pod_coll_schedule *any =
            chunk->inner->gather ? chunk->inner->gather : chunk->inner->scatter;
        for (int32_t p = 0; p < nparts; ++p) {
            self->part[chunk->first_part + p] = (hier_part){.inner = p, .chunk = c};
            self->base.parts[chunk->first_part + p] =
                (pod_coll_part){.elements = any ? any->parts[p].elements : elements,
                                .blocks = self->n * self->unit,
                                .slots = self->n * self->unit};
        }
        chunk_channels(self, c, nparts);
    }
}

static pod_status hier_allocate(hier *self, const pod_coll_request *request, const char *name,
                                pod_error *err)
{
    const pod_hier_inner *inner = &self->inner[0];
    const pod_coll_schedule *any = inner->gather ? inner->gather : inner->scatter;
    const int32_t nparts = any ? any->nparts : 1;
    const int32_t channels = (inner->scatter ? inner->scatter->nchannels : 0)
                             + (inner->gather ? inner->gather->nchannels : 0) + nparts;
    POD_TRY(pod_coll_frame_init(&self->base, &hier_ops, name, request, self->cut.nchunks * nparts,
                                self->cut.nchunks * channels, err));
    self->chunk = calloc((size_t)self->cut.nchunks, sizeof *self->chunk);
    self->part = calloc((size_t)self->cut.nchunks * (size_t)nparts, sizeof *self->part);
    self->channel = calloc((size_t)self->cut.nchunks * (size_t)channels, sizeof *self->channel);
    if (!self->chunk || !self->part || !self->channel) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->base.nchannels = 0;
    self->base.ordered = true;
    chunks_fill(self, request, nparts);
    return POD_OK;
}

/* All ranks of all slices do the same: what they do inside, and across slices as many runs of as many elements. */
static bool is_uniform(const hier *self, const pod_coll_request *request)
{
    bool uniform = request->op != POD_BROADCAST && request->dcn->nfaults == 0;
    for (int i = 0; uniform && i < self->ninner; ++i) {
        const pod_hier_inner *inner = &self->inner[i];
        uniform = (inner->scatter == NULL || inner->scatter->uniform)
                  && (inner->gather == NULL || inner->gather->uniform);
    }
    return uniform && request->slice->nfaults == 0 && pod_coll_parts_equal(&self->base);
}

/* As far apart as chips do the same in all inner schedules; crossing, they differ in the size of their runs alone. */
static void hier_repeat_fill(hier *self, const pod_coll_request *request)
{
    const bool known = request->op != POD_BROADCAST && pod_coll_parts_equal(&self->base);
    for (int axis = 0; axis < POD_AXES && known; ++axis) {
        int32_t apart = self->n == 1 ? 0 : 1;
        for (int i = 0; i < 2 * self->ninner && apart > 0; ++i) {
            const pod_hier_inner *inner = &self->inner[i / 2];
            const pod_coll_schedule *phase = i % 2 == 0 ? inner->scatter : inner->gather;
            const int32_t own = phase != NULL ? phase->repeat[axis] : apart;
            apart = own > apart || own == 0 ? own : apart;
        }
        self->base.repeat[axis] = apart;
    }
}

pod_status pod_hier_build(const pod_coll_request *request, const char *name,
                          const pod_hier_cut *cut, pod_coll_schedule **schedule, pod_error *err)
{
    hier *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->base.ops = &hier_ops;
    self->base.elements = request->elements;
    self->inside = request->group->inside;
    self->n = self->inside->size;
    self->slices = request->group->slices;
    self->unit = pod_hier_unit(request, cut);
    self->cut = *cut;
    pod_status st = inners_build(self, request, err);
    POD_THEN(st, hier_allocate(self, request, name, err));
    if (st != POD_OK) {
        hier_free(&self->base);
        return st;
    }
    self->base.uniform = is_uniform(self, request);
    hier_repeat_fill(self, request);
    *schedule = &self->base;
    return POD_OK;
}
