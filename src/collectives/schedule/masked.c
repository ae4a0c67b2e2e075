/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/schedule/masked.h"

#include "collectives/schedule/frame.h"

#include <stdlib.h>
#include <string.h>

enum { MASKED_STEPS_MAX = 1 << 24 };

static int32_t masked_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    const pod_coll_masked *self = (const pod_coll_masked *)schedule;
    return self->whole->ops->steps(self->whole, me, channel);
}

static void masked_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const pod_coll_masked *self = (const pod_coll_masked *)schedule;
    const pod_coll_leftover *left = pod_coll_left_at(self, channel, me->rank, step);
    self->whole->ops->step(self->whole, me, channel, step, out);
    if (left->send_slots > 0) {
        out->send_slot = left->send_slot;
    } else if (!self->paced) {
        out->send_to = -1;
    }
    out->send_slots = left->send_slots;
    out->send_gap = 0;
    if (self->base.timed && out->send_to >= 0 && out->send_to != me->rank) {
        out->turn = *pod_coll_turn_at(&self->turns, me->rank, channel, step);
    } else if (self->whole->sequential && !self->paced) {
        out->priority = (uint8_t)(step * UINT8_MAX / self->base.channels[channel].max_steps);
    }
    out->recv_from = left->receives || self->paced ? out->recv_from : -1;
    out->recv_slot = left->receives ? left->recv_slot : 0;
    out->recv_op = POD_RECV_STORE;
    out->recv_also = -1;
}

static int64_t masked_slot_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                  int32_t slot)
{
    const pod_coll_masked *self = (const pod_coll_masked *)schedule;
    return self->whole->ops->slot_offset(self->whole, rank, part, slot);
}

static void masked_free(pod_coll_schedule *schedule)
{
    pod_coll_masked *self = (pod_coll_masked *)schedule;
    pod_coll_schedule_free(self->whole);
    pod_coll_turns_fini(&self->turns);
    free(self->left);
    free(self->first);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops masked_ops = {
    .steps = masked_steps, .step = masked_step, .free = masked_free};
static const pod_coll_schedule_ops masked_offset_ops = {.steps = masked_steps,
                                                        .step = masked_step,
                                                        .slot_offset = masked_slot_offset,
                                                        .free = masked_free};

/* ---- the walk_all on paper ---- */

enum { EMPTY = -1 };

/* A message on its way: slots from `first` of the sender's message, `slots` of them, that hold the root's. */
typedef struct parcel {
    bool here;
    int32_t sent; /* slots of the whole message */
    int32_t first;
    int32_t slots;
} parcel;

typedef struct cursor {
    int32_t steps;
    int32_t next_send;
    int32_t next_recv;
} cursor;

typedef struct walker {
    pod_coll_masked *self;
    int32_t n;
    pod_coll_place *places;
    int64_t *part_first; /* [part]: of its entries in holds, [rank][slot] */
    int32_t *holds;      /* the slot that has what this one holds: itself, or a copy; or EMPTY */
    cursor *cursors;     /* [channel][rank] */
    parcel *parcels;     /* as left */
    bool whole;          /* no message held the root's contribution with gaps */
} walker;

static int32_t *holds_at(const walker *w, int32_t part, int32_t rank, int32_t slot)
{
    return &w->holds[w->part_first[part] + (int64_t)rank * w->self->base.parts[part].slots + slot];
}

static cursor *walker_cursor(const walker *w, int32_t channel, int32_t rank)
{
    return &w->cursors[(int64_t)channel * w->n + rank];
}

static bool walker_waits_over(const walker *w, int32_t channel, int32_t rank,
                              const pod_coll_step *step)
{
    bool over = walker_cursor(w, channel, rank)->next_recv >= step->wait_recv;
    for (int i = 0; i < POD_COLL_WAITS_MAX; ++i) {
        const pod_coll_wait *wait = &step->wait[i];
        over = over
               && (wait->channel < 0
                   || walker_cursor(w, wait->channel, rank)->next_recv >= wait->recv);
    }
    return over;
}

/* Cut a message down to what of it holds the root's contribution, which lies in one run or is refused. */
static void walker_post(walker *w, int32_t channel, int32_t rank, int32_t at,
                        const pod_coll_step *step)
{
    const int32_t part = w->self->base.channels[channel].part;
    pod_coll_leftover *left = pod_coll_left_at(w->self, channel, rank, at);
    parcel *to = &w->parcels[pod_coll_left_at(w->self, channel, step->send_to, step->send_step)
                             - w->self->left];
    *to = (parcel){.here = true, .sent = step->send_slots};
    for (int32_t i = 0; i < step->send_slots; ++i) {
        const int32_t from = *holds_at(w, part, rank, step->send_slot + i);
        if (from == EMPTY) {
            continue;
        }
        if (to->slots == 0) {
            to->first = i;
            left->send_slot = from;
        }
        w->whole = w->whole && to->first + to->slots == i && left->send_slot + to->slots == from;
        ++to->slots;
    }
    w->whole = w->whole && (step->send_gap == 0 || to->slots == 0);
    left->send_slots = to->slots;
}

static void parcel_take(walker *w, int32_t channel, int32_t rank, int32_t at,
                        const pod_coll_step *step, const parcel *got)
{
    const int32_t part = w->self->base.channels[channel].part;
    pod_coll_leftover *left = pod_coll_left_at(w->self, channel, rank, at);
    const int32_t into = step->recv_also >= 0 ? step->recv_also : step->recv_slot;
    left->receives = got->slots > 0;
    left->recv_slot = into + got->first;
    if (step->recv_op
        == POD_RECV_STORE) { /* what was there is gone, also where nothing takes its place */
        for (int32_t i = 0; i < got->sent; ++i) {
            *holds_at(w, part, rank, step->recv_slot + i) = EMPTY;
        }
    }
    for (int32_t i = got->first; i < got->first + got->slots; ++i) {
        *holds_at(w, part, rank, into + i) = into + i;
        *holds_at(w, part, rank, step->recv_slot + i) = into + i;
    }
}

static bool walker_advance(walker *w, int32_t channel, int32_t rank)
{
    const pod_coll_schedule *s = w->self->whole;
    cursor *cur = walker_cursor(w, channel, rank);
    pod_coll_step step;
    bool moved = false;
    for (; cur->next_send < cur->steps; ++cur->next_send) {
        s->ops->step(s, &w->places[rank], channel, cur->next_send, &step);
        if (!walker_waits_over(w, channel, rank, &step)) {
            break;
        }
        if (step.send_to >= 0) {
            walker_post(w, channel, rank, cur->next_send, &step);
        }
        moved = true;
    }
    for (; cur->next_recv < cur->next_send; ++cur->next_recv) {
        s->ops->step(s, &w->places[rank], channel, cur->next_recv, &step);
        const parcel *got =
            &w->parcels[pod_coll_left_at(w->self, channel, rank, cur->next_recv) - w->self->left];
        if (step.recv_from >= 0 && !got->here) {
            break;
        }
        if (step.recv_from >= 0) {
            parcel_take(w, channel, rank, cur->next_recv, &step, got);
        }
        moved = true;
    }
    return moved;
}

/* Every rank ends with all slots of every part, or with its own ones. */
static bool ends_right(const walker *w)
{
    const pod_coll_schedule *whole = w->self->whole;
    const bool scatters = whole->op == POD_REDUCE_SCATTER;
    for (int32_t p = 0; p < whole->nparts; ++p) {
        for (int32_t rank = 0; rank < w->n; ++rank) {
            const int32_t first = scatters ? pod_coll_own_slot(whole, p, rank) : 0;
            const int32_t slots = scatters ? pod_coll_own_slots(whole, p) : whole->parts[p].blocks;
            for (int32_t slot = first; slot < first + slots; ++slot) {
                if (*holds_at(w, p, rank, slot) != slot) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool walk_all(walker *w)
{
    const pod_coll_schedule *base = &w->self->base;
    for (int32_t p = 0; p < base->nparts; ++p) {
        for (int32_t slot = 0; slot < base->parts[p].blocks; ++slot) {
            *holds_at(w, p, base->root, slot) = slot;
        }
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t c = 0; c < base->nchannels; ++c) {
            for (int32_t rank = 0; rank < w->n; ++rank) {
                moved = walker_advance(w, c, rank) || moved;
            }
        }
    }
    return w->whole && ends_right(w);
}

static bool walker_init(walker *w, pod_coll_masked *self, int64_t entries)
{
    const pod_coll_schedule *whole = self->whole;
    *w = (walker){.self = self, .n = whole->group->size, .whole = true};
    const size_t n = (size_t)w->n;
    w->places = calloc(n, sizeof *w->places);
    w->part_first = calloc((size_t)whole->nparts + 1, sizeof *w->part_first);
    w->cursors = calloc((size_t)whole->nchannels * n + 1, sizeof *w->cursors);
    w->parcels = calloc((size_t)entries + 1, sizeof *w->parcels);
    if (!w->places || !w->part_first || !w->cursors || !w->parcels) {
        return false;
    }
    int64_t slots = 0;
    for (int32_t p = 0; p < whole->nparts; ++p) {
        w->part_first[p] = slots;
        slots += whole->parts[p].slots * (int64_t)w->n;
    }
    w->holds = malloc(((size_t)slots + 1) * sizeof *w->holds);
    for (int64_t i = 0; w->holds && i < slots; ++i) {
        w->holds[i] = EMPTY;
    }
    for (int32_t rank = 0; rank < w->n; ++rank) {
        pod_coll_place_make(whole->group, rank, &w->places[rank]);
        for (int32_t c = 0; c < whole->nchannels; ++c) {
            walker_cursor(w, c, rank)->steps = whole->ops->steps(whole, &w->places[rank], c);
        }
    }
    return w->holds != NULL;
}

static void walker_fini(walker *w)
{
    free(w->holds);
    free(w->parcels);
    free(w->cursors);
    free(w->part_first);
    free(w->places);
}

/* ---- building ---- */

/* Everything but what is left of the messages. @return entries of `left`, 0 without memory, -1 = too many */
static int64_t copy_frame(pod_coll_masked *self, int32_t root)
{
    const pod_coll_schedule *whole = self->whole;
    self->base = *whole;
    self->base.ops = whole->ops->slot_offset ? &masked_offset_ops : &masked_ops;
    self->base.op = POD_BROADCAST;
    self->base.root = root;
    self->base.uniform = false;
    memset(self->base.repeat, 0, sizeof self->base.repeat);
    self->base.least_elements = 0;
    const size_t parts = (size_t)whole->nparts * sizeof *whole->parts;
    const size_t channels = (size_t)whole->nchannels * sizeof *whole->channels;
    self->base.parts = malloc(parts + 1);
    self->base.channels = malloc(channels + 1);
    self->first = calloc((size_t)whole->nchannels + 1, sizeof *self->first);
    if (!self->base.parts || !self->base.channels || !self->first) {
        return 0;
    }
    memcpy(self->base.parts, whole->parts, parts);
    memcpy(self->base.channels, whole->channels, channels);
    int64_t entries = 0;
    for (int32_t c = 0; c < whole->nchannels; ++c) {
        self->first[c] = entries;
        entries += whole->channels[c].max_steps * (int64_t)whole->group->size;
    }
    self->left =
        entries <= MASKED_STEPS_MAX ? calloc((size_t)entries + 1, sizeof *self->left) : NULL;
    return entries > MASKED_STEPS_MAX ? -1 : self->left ? entries : 0;
}

pod_status pod_coll_mask(pod_coll_schedule *whole, int32_t root, pod_coll_masked **masked,
                         pod_error *err)
{
    *masked = calloc(1, sizeof **masked);
    pod_coll_masked *self = *masked;
    if (self == NULL) {
        pod_coll_schedule_free(whole);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->whole = whole;
    const int64_t entries = copy_frame(self, root);
    walker w = {0};
    pod_status st = POD_OK;
    if (entries < 0) {
        st = pod_fail(err, POD_E_INVALID,
                      "%s on %d chips has too many messages to be walked through; "
                      "use tree",
                      whole->algorithm, (int)whole->group->size);
    } else if (self->left == NULL || !walker_init(&w, self, entries)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    } else if (!walk_all(&w)) {
        st = pod_fail(err, POD_E_INVALID,
                      "%s has messages that hold the root's part with gaps; use tree",
                      whole->algorithm);
    }
    walker_fini(&w);
    if (st != POD_OK) {
        masked_free(&self->base);
        *masked = NULL;
    }
    return st;
}
