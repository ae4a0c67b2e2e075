/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all over several slices: every chip sends to the chip at its place in another slice all that is meant for
 * that slice, which then hands it on inside. S - 1 messages over DCN and n - 1 inside, instead of N - 1
 * small ones. Chunks run at the same time.
 *
 * Slots of a part (N = n · S blocks; the block for, or from, rank r of slice s has number r · S + s):
 *     [0, N)     blocks to send
 *     [N, 2N)    blocks received
 *     [2N, 3N)   on rank r of slice s: slot 2N + t · n + d = block of rank r of slice t for rank d of slice s
 *
 * Example, 2 slices of 2 chips, what rank 0 does (blocks named by their destination):
 *     channel   step   sends                                     gets
 *     cross       0    to itself: blocks 0 1 (own slice)         the same, into row 0
 *                 1    to rank 2: blocks 2 3                     blocks 0 1 of rank 2, into row 1
 *     inside 0    0    to itself: column 0                       its blocks of ranks 0 and 2
 *     inside 1    0    to rank 1: column 1                       its blocks of ranks 1 and 3
 */
#include "collectives/multislice/hier_parts.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>

typedef struct exchange {
    pod_coll_schedule base;
    int32_t n;
    int32_t slices;
    /* channels that hand on: as far as rank d is from rank 0 in channel d mod forwards */
    int32_t forwards;
} exchange;

static int32_t exchange_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const exchange *self = (const exchange *)schedule;
    (void)part;
    return rank % self->n * self->slices + rank / self->n;
}

/* Elements of the first `count` blocks that ranks 0, 1, … of slice s have. */
static int64_t slice_blocks(const exchange *self, const pod_coll_part *part, int32_t s,
                            int32_t count)
{
    const int64_t each = part->elements / part->blocks;
    const int64_t rest = part->elements % part->blocks;
    int64_t longer = rest > s ? (rest - s + self->slices - 1) / self->slices : 0;
    longer = longer < count ? longer : count;
    return count * each + longer;
}

static int64_t exchange_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part_number,
                               int32_t slot)
{
    const exchange *self = (const exchange *)schedule;
    const pod_coll_part *part = &schedule->parts[part_number];
    const int32_t blocks = part->blocks;
    const int64_t each = part->elements / blocks;
    const int64_t rest = part->elements % blocks;
    if (slot <= blocks) {
        return slot * each + (slot < rest ? slot : rest);
    }
    const int32_t s = rank / self->n;
    const int64_t own = each + (exchange_slot(schedule, part_number, rank) < rest ? 1 : 0);
    if (slot <= 2 * blocks) {
        return part->elements + (slot - blocks) * own;
    }
    const int32_t row = (slot - 2 * blocks) / self->n;
    const int32_t column = (slot - 2 * blocks) % self->n;
    return part->elements + blocks * own + row * slice_blocks(self, part, s, self->n)
           + slice_blocks(self, part, s, column);
}

static void cross_step(const exchange *self, int32_t me, int32_t channel, int32_t k,
                       pod_coll_step *out)
{
    out->priority = (uint8_t)(channel / (1 + self->forwards)); /* NICs serve early chunks first */
    const int32_t slice = me / self->n;
    const int32_t to = (slice + k) % self->slices;
    const int32_t from = (slice + self->slices - k) % self->slices;
    out->send_to = to * self->n + me % self->n;
    out->send_slot = to;
    out->send_slots = self->n;
    out->send_gap = self->slices - 1;
    out->recv_from = from * self->n + me % self->n;
    out->recv_slot = 2 * self->n * self->slices + from * self->n;
    out->recv_op = POD_RECV_STORE;
}

static void forward_step(const exchange *self, int32_t me, int32_t distance, int32_t cross,
                         pod_coll_step *out)
{
    const int32_t slice = me / self->n;
    const int32_t rank = me % self->n;
    const pod_group *inside = self->base.group->inside;
    const int32_t to = pod_coll_displaced(inside, rank, distance, 1);
    const int32_t from = pod_coll_displaced(inside, rank, distance, -1);
    const int32_t blocks = self->n * self->slices;
    out->wait[0] = (pod_coll_wait){cross, self->slices};
    out->send_to = slice * self->n + to;
    out->send_slot = 2 * blocks + to;
    out->send_slots = self->slices;
    out->send_gap = self->n - 1;
    out->recv_from = slice * self->n + from;
    out->recv_slot = blocks + from * self->slices;
    out->recv_op = POD_RECV_STORE;
}

/* Channels of a part: the crossing, then those that hand on. */
static int32_t exchange_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                              int32_t channel)
{
    const exchange *self = (const exchange *)schedule;
    const int32_t forward = channel % (1 + self->forwards) - 1;
    (void)me;
    return forward < 0 ? self->slices : (self->n - forward + self->forwards - 1) / self->forwards;
}

static void slices_exchange_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                                 int32_t channel, int32_t step, pod_coll_step *out)
{
    const exchange *self = (const exchange *)schedule;
    const int32_t forward = channel % (1 + self->forwards) - 1;
    *out = pod_coll_step_idle();
    out->send_step = step;
    if (forward < 0) {
        cross_step(self, me->rank, channel, step, out);
    } else {
        forward_step(self, me->rank, forward + step * self->forwards, channel - forward - 1, out);
    }
}

static void exchange_free(pod_coll_schedule *schedule)
{
    pod_coll_frame_fini(schedule);
    free(schedule);
}

static const pod_coll_schedule_ops exchange_ops = {.steps = exchange_steps,
                                                   .step = slices_exchange_step,
                                                   .block_slot = exchange_slot,
                                                   .slot_offset = exchange_offset,
                                                   .free = exchange_free};

/* All ranks do the same: they are as far from others everywhere, and blocks are equal. */
static bool exchange_is_uniform(const exchange *self, const pod_coll_request *request)
{
    const pod_group *inside = request->group->inside;
    bool uniform = inside->ndims > 0 && request->dcn->nfaults == 0 && request->slice->nfaults == 0;
    for (int d = 0; d < inside->ndims; ++d) {
        uniform = uniform && inside->dim[d].closed;
    }
    return uniform && pod_coll_parts_equal(&self->base);
}

pod_status pod_hier_alltoall_build(const pod_coll_request *request, const char *name,
                                   const pod_hier_cut *cut, pod_coll_schedule **schedule,
                                   pod_error *err)
{
    exchange *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->n = request->group->inside->size;
    self->slices = request->group->slices;
    self->forwards = self->n < POD_HIER_SPREADS ? self->n : POD_HIER_SPREADS;
    const int32_t each = 1 + self->forwards;
    const pod_status st = pod_coll_frame_init(&self->base, &exchange_ops, name, request,
                                              cut->nchunks, cut->nchunks * each, err);
    if (st != POD_OK) {
        free(self);
        return st;
    }
    pod_coll_frame_slots(&self->base, request->group->size, 3 * request->group->size);
    for (int32_t ch = 0; ch < self->base.nchannels; ++ch) {
        self->base.channels[ch].part = ch / each;
        self->base.channels[ch].max_steps = exchange_steps(&self->base, NULL, ch);
    }
    self->base.uniform = exchange_is_uniform(self, request);
    pod_coll_frame_repeat(&self->base, request->slice); /* across, all do the same */
    *schedule = &self->base;
    return POD_OK;
}
