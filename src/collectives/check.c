/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/check.h"

#include <stdlib.h>
#include <string.h>

/* What a slot holds. A block is named by a number (all-to-all: source · n + destination); -1 = nothing.
 * The contributing ranks are a bit set kept beside. */
typedef struct message {
    int32_t from;
    int32_t slots;
    int32_t first; /* slot it was sent from */
    int32_t pitch; /* from one slot sent to the next */
    /* followed by slots · (1 + words) words: block number, bit set */
    uint64_t content[];
} message;

typedef struct cursor {
    int32_t next_send;
    int32_t next_recv;
    int32_t steps;
} cursor;

typedef struct checker {
    const pod_coll_schedule *schedule;
    pod_error *err;
    int32_t n;
    int64_t words;     /* of a slot: 1 + bit set */
    uint64_t **work;   /* [part]: [rank][slot][words] */
    cursor *cursors;   /* [channel][rank] */
    int64_t *box_base; /* [channel]: first of its mailboxes */
    message **box;     /* [channel][rank][step] */
    int64_t boxes;
    pod_coll_place *places;
} checker;

static const uint64_t no_block = UINT64_MAX;

static uint64_t *slot_at(const checker *c, int32_t part, int32_t rank, int32_t slot)
{
    const int64_t slots = c->schedule->parts[part].slots;
    return c->work[part] + (rank * slots + slot) * c->words;
}

static int32_t own_slot(const checker *c, int32_t part, int32_t rank)
{
    const pod_coll_schedule *s = c->schedule;
    return s->ops->block_slot ? s->ops->block_slot(s, part, rank) : rank;
}

static message **box_at(const checker *c, int32_t channel, int32_t rank, int32_t step)
{
    const int64_t steps = c->schedule->channels[channel].max_steps;
    return &c->box[c->box_base[channel] + rank * steps + step];
}

static cursor *cursor_at(const checker *c, int32_t channel, int32_t rank)
{
    return &c->cursors[(int64_t)channel * c->n + rank];
}

static pod_status fault(const checker *c, int32_t channel, int32_t step, int32_t rank,
                        const char *what)
{
    return pod_fail(c->err, POD_E_CHECK,
                    "schedule '%s' is wrong in channel %d, step %d of rank %d: %s",
                    c->schedule->algorithm, (int)channel, (int)step, (int)rank, what);
}

static void hold(const checker *c, int32_t part, int32_t rank, int32_t slot, uint64_t block,
                 int32_t contributor)
{
    uint64_t *at = slot_at(c, part, rank, slot);
    at[0] = block;
    at[1 + contributor / 64] |= UINT64_C(1) << (contributor % 64);
}

static void fill_start(const checker *c, int32_t part, int32_t rank)
{
    const pod_coll_schedule *s = c->schedule;
    const int32_t blocks = s->parts[part].blocks;
    const uint64_t n = (uint64_t)c->n;
    const uint64_t me = (uint64_t)rank;
    switch (s->op) {
    case POD_ALL_GATHER:
        hold(c, part, rank, own_slot(c, part, rank), (uint64_t)own_slot(c, part, rank), rank);
        return;
    case POD_PERMUTE:
        hold(c, part, rank, 0, me, rank);
        return;
    case POD_BROADCAST:
        if (rank != s->root) {
            return;
        }
        break;
    case POD_ALL_TO_ALL:
        hold(c, part, rank, c->n + own_slot(c, part, rank),
             me * n + (uint64_t)own_slot(c, part, rank), rank);
        break;
    case POD_ALL_REDUCE:
    case POD_REDUCE_SCATTER:
    case POD_COLL_OP_COUNT:
        break;
    }
    for (int32_t b = 0; b < blocks; ++b) {
        const uint64_t name = s->op == POD_ALL_TO_ALL ? me * n + (uint64_t)b : (uint64_t)b;
        hold(c, part, rank, b, name, rank);
    }
}

/* A slot must hold this block with `contributor` alone, or with all ranks when it is -1. */
static bool holds(const checker *c, int32_t part, int32_t rank, int32_t slot, uint64_t block,
                  int32_t contributor)
{
    const uint64_t *at = slot_at(c, part, rank, slot);
    if (at[0] != block) {
        return false;
    }
    for (int32_t r = 0; r < c->n; ++r) {
        const bool there = (at[1 + r / 64] >> (r % 64) & 1U) != 0;
        if (there != (contributor < 0 || contributor == r)) {
            return false;
        }
    }
    return true;
}

static bool ends_right(const checker *c, int32_t part, int32_t rank)
{
    const pod_coll_schedule *s = c->schedule;
    const int32_t blocks = s->parts[part].blocks;
    const uint64_t n = (uint64_t)c->n;
    bool right = true;
    switch (s->op) {
    case POD_ALL_REDUCE:
        for (int32_t b = 0; b < blocks; ++b) {
            right = right && holds(c, part, rank, b, (uint64_t)b, -1);
        }
        return right;
    case POD_ALL_GATHER:
        for (int32_t r = 0; r < c->n; ++r) {
            const int32_t slot = own_slot(c, part, r);
            right = right && holds(c, part, rank, slot, (uint64_t)slot, r);
        }
        return right;
    case POD_REDUCE_SCATTER: {
        const int32_t slot = own_slot(c, part, rank);
        return holds(c, part, rank, slot, (uint64_t)slot, -1);
    }
    case POD_BROADCAST:
        for (int32_t b = 0; b < blocks; ++b) {
            right = right && holds(c, part, rank, b, (uint64_t)b, s->root);
        }
        return right;
    case POD_ALL_TO_ALL:
        for (int32_t r = 0; r < c->n; ++r) {
            const uint64_t name = (uint64_t)r * n + (uint64_t)own_slot(c, part, rank);
            right = right && holds(c, part, rank, c->n + own_slot(c, part, r), name, r);
        }
        return right;
    case POD_PERMUTE: {
        const int32_t source = s->source_of ? s->source_of[rank] : -1;
        return source < 0 || holds(c, part, rank, 1, (uint64_t)source, source);
    }
    case POD_COLL_OP_COUNT:
        break;
    }
    return false;
}

static bool range_is_inside(const checker *c, int32_t part, int32_t slot, int32_t slots)
{
    return slot >= 0 && slots >= 0 && slot <= c->schedule->parts[part].slots - slots;
}

static bool waits_over(const checker *c, int32_t channel, int32_t rank, const pod_coll_step *step)
{
    if (cursor_at(c, channel, rank)->next_recv < step->wait_recv) {
        return false;
    }
    for (int w = 0; w < POD_COLL_WAITS_MAX; ++w) {
        const pod_coll_wait *wait = &step->wait[w];
        if (wait->channel >= 0 && cursor_at(c, wait->channel, rank)->next_recv < wait->recv) {
            return false;
        }
    }
    return true;
}

/* Put what is sent into the mailbox of the step that takes it. */
static pod_status post(const checker *c, int32_t channel, int32_t rank, int32_t at,
                       const pod_coll_step *step)
{
    const int32_t part = c->schedule->channels[channel].part;
    if (step->send_to >= c->n) {
        return fault(c, channel, at, rank, "it sends to a rank that the group doesn't have");
    }
    const int32_t pitch = step->send_gap + 1;
    const int32_t reach = step->send_slots > 0 ? (step->send_slots - 1) * pitch + 1 : 0;
    if (pitch < 1 || !range_is_inside(c, part, step->send_slot, reach)) {
        return fault(c, channel, at, rank, "it sends slots outside the work buffer");
    }
    if (step->send_step < 0 || step->send_step >= cursor_at(c, channel, step->send_to)->steps) {
        return fault(c, channel, at, rank, "the receiver has no such step");
    }
    message **box = box_at(c, channel, step->send_to, step->send_step);
    if (*box) {
        return fault(c, channel, at, rank, "the receiver's step gets two messages");
    }
    const size_t size = (size_t)(step->send_slots * c->words) * sizeof(uint64_t);
    message *m = malloc(sizeof *m + size);
    if (!m) {
        return pod_fail(c->err, POD_E_NOMEM, "no memory to check a schedule; use fewer chips");
    }
    *m = (message){
        .from = rank, .slots = step->send_slots, .first = step->send_slot, .pitch = pitch};
    *box = m;
    for (int32_t i = 0; i < m->slots; ++i) {
        memcpy(&m->content[i * c->words], slot_at(c, part, rank, m->first + i * pitch),
               (size_t)c->words * sizeof(uint64_t));
        if (m->content[i * c->words] == no_block) {
            return fault(c, channel, at, rank, "it sends a slot that holds nothing yet");
        }
    }
    return POD_OK;
}

static pod_status try_send(const checker *c, int32_t channel, int32_t rank, bool *moved)
{
    const pod_coll_schedule *s = c->schedule;
    cursor *cur = cursor_at(c, channel, rank);
    pod_coll_step step;
    while (cur->next_send < cur->steps) {
        const int32_t at = cur->next_send;
        s->ops->step(s, &c->places[rank], channel, at, &step);
        if (!waits_over(c, channel, rank, &step)) {
            return POD_OK;
        }
        if (step.send_to >= 0) {
            const pod_status st = post(c, channel, rank, at, &step);
            if (st != POD_OK) {
                return st;
            }
        }
        ++cur->next_send;
        *moved = true;
    }
    return POD_OK;
}

static pod_status reduce_into(const checker *c, uint64_t *into, const uint64_t *from,
                              int32_t channel, int32_t at, int32_t rank)
{
    if (into[0] != from[0]) {
        return fault(c, channel, at, rank, "it reduces one block into another");
    }
    for (int64_t w = 1; w < c->words; ++w) {
        if ((into[w] & from[w]) != 0) {
            return fault(c, channel, at, rank, "it reduces a contribution twice");
        }
        into[w] |= from[w];
    }
    return POD_OK;
}

static int64_t slot_elements(const checker *c, int32_t part, int32_t rank, int32_t slot)
{
    int64_t offset;
    int64_t elements;
    pod_coll_slots(c->schedule, rank, part, slot, 1, &offset, &elements);
    return elements;
}

static pod_status deliver(const checker *c, int32_t channel, int32_t at, int32_t rank,
                          const message *m, int32_t slot, bool reduce)
{
    const int32_t part = c->schedule->channels[channel].part;
    if (!range_is_inside(c, part, slot, m->slots)) {
        return fault(c, channel, at, rank, "it receives into slots outside the work buffer");
    }
    for (int32_t i = 0; i < m->slots; ++i) {
        const uint64_t *from = &m->content[i * c->words];
        uint64_t *into = slot_at(c, part, rank, slot + i);
        if (slot_elements(c, part, rank, slot + i)
            != slot_elements(c, part, m->from, m->first + i * m->pitch)) {
            return fault(c, channel, at, rank, "a slot has no room for the block it receives");
        }
        if (!reduce) {
            memcpy(into, from, (size_t)c->words * sizeof *into);
            continue;
        }
        const pod_status st = reduce_into(c, into, from, channel, at, rank);
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

static pod_status try_recv(const checker *c, int32_t channel, int32_t rank, bool *moved)
{
    const pod_coll_schedule *s = c->schedule;
    cursor *cur = cursor_at(c, channel, rank);
    pod_coll_step step;
    while (cur->next_recv < cur->next_send) {
        const int32_t at = cur->next_recv;
        s->ops->step(s, &c->places[rank], channel, at, &step);
        message **box = box_at(c, channel, rank, at);
        if (step.recv_from >= 0 && !*box) {
            return POD_OK;
        }
        if (*box) {
            if ((*box)->from != step.recv_from) {
                return fault(c, channel, at, rank, "a message comes from another rank than named");
            }
            pod_status st = deliver(c, channel, at, rank, *box, step.recv_slot,
                                    step.recv_op == POD_RECV_REDUCE);
            if (st == POD_OK && step.recv_also >= 0) {
                st = deliver(c, channel, at, rank, *box, step.recv_also, true);
            }
            if (st != POD_OK) {
                return st;
            }
            free(*box);
            *box = NULL;
        }
        ++cur->next_recv;
        *moved = true;
    }
    return POD_OK;
}

/* Every rank and channel as far as it goes; backwards in every second round, so that a schedule
 * that is right for one order of arrival only is likely to be caught. */
static pod_status run(const checker *c)
{
    const int64_t cursors = (int64_t)c->schedule->nchannels * c->n;
    bool moved = true;
    for (bool forward = true; moved; forward = !forward) {
        moved = false;
        for (int64_t k = 0; k < cursors; ++k) {
            const int64_t at = forward ? k : cursors - 1 - k;
            const int32_t channel = (int32_t)(at / c->n);
            const int32_t rank = (int32_t)(at % c->n);
            pod_status st = try_send(c, channel, rank, &moved);
            st = st == POD_OK ? try_recv(c, channel, rank, &moved) : st;
            if (st != POD_OK) {
                return st;
            }
        }
    }
    return POD_OK;
}

static pod_status verdict(const checker *c)
{
    const pod_coll_schedule *s = c->schedule;
    for (int32_t ch = 0; ch < s->nchannels; ++ch) {
        for (int32_t r = 0; r < c->n; ++r) {
            const cursor *cur = cursor_at(c, ch, r);
            if (cur->next_recv < cur->steps) {
                return fault(c, ch, cur->next_recv, r,
                             cur->next_send > cur->next_recv ? "it waits for ever for a message"
                                                             : "it waits for ever to send");
            }
        }
    }
    for (int64_t b = 0; b < c->boxes; ++b) {
        if (c->box[b]) {
            return pod_fail(c->err, POD_E_CHECK,
                            "schedule '%s' is wrong: a message of rank %d is never received",
                            s->algorithm, (int)c->box[b]->from);
        }
    }
    for (int32_t p = 0; p < s->nparts && s->elements > 0; ++p) {
        for (int32_t r = 0; r < c->n; ++r) {
            if (!ends_right(c, p, r)) {
                return pod_fail(c->err, POD_E_CHECK,
                                "schedule '%s' is wrong: rank %d ends without its result in part "
                                "%d of %s",
                                s->algorithm, (int)r, (int)p, pod_coll_op_name(s->op));
            }
        }
    }
    return POD_OK;
}

static bool prepare(checker *c)
{
    const pod_coll_schedule *s = c->schedule;
    const size_t n = (size_t)c->n;
    c->work = calloc((size_t)s->nparts + 1, sizeof *c->work);
    c->cursors = calloc((size_t)s->nchannels * n + 1, sizeof *c->cursors);
    c->box_base = calloc((size_t)s->nchannels + 1, sizeof *c->box_base);
    c->places = calloc(n, sizeof *c->places);
    if (!c->work || !c->cursors || !c->box_base || !c->places) {
        return false;
    }
    for (int32_t r = 0; r < c->n; ++r) {
        pod_coll_place_make(s->group, r, &c->places[r]);
    }
    for (int32_t ch = 0; ch < s->nchannels; ++ch) {
        c->box_base[ch] = c->boxes;
        c->boxes += s->channels[ch].max_steps * (int64_t)c->n;
        for (int32_t r = 0; r < c->n; ++r) {
            cursor_at(c, ch, r)->steps = s->ops->steps(s, &c->places[r], ch);
        }
    }
    c->box = calloc((size_t)c->boxes + 1, sizeof *c->box);
    for (int32_t p = 0; p < s->nparts; ++p) {
        const int64_t slots = c->n * (int64_t)s->parts[p].slots;
        c->work[p] = calloc((size_t)(slots * c->words), sizeof **c->work);
        if (!c->work[p]) {
            return false;
        }
        for (int64_t i = 0; i < slots; ++i) {
            c->work[p][i * c->words] = no_block;
        }
        for (int32_t r = 0; r < c->n; ++r) {
            fill_start(c, p, r);
        }
    }
    return c->box != NULL;
}

static void release(checker *c)
{
    for (int64_t b = 0; c->box && b < c->boxes; ++b) {
        free(c->box[b]);
    }
    free(c->box);
    for (int32_t p = 0; c->work && p < c->schedule->nparts; ++p) {
        free(c->work[p]);
    }
    free(c->places);
    free(c->box_base);
    free(c->cursors);
    free(c->work);
}

/* Parts and blocks partition the vector. */
static bool sizes_add_up(const pod_coll_schedule *s)
{
    int64_t sum = 0;
    for (int32_t p = 0; p < s->nparts; ++p) {
        sum += s->parts[p].elements;
        if (s->parts[p].blocks < 1 || s->parts[p].slots < s->parts[p].blocks) {
            return false;
        }
    }
    return sum == s->elements;
}

pod_status pod_coll_check(const pod_coll_schedule *schedule, pod_error *err)
{
    if (!sizes_add_up(schedule)) {
        return pod_fail(err, POD_E_CHECK,
                        "schedule '%s' is wrong: its parts don't make up the vector",
                        schedule->algorithm);
    }
    checker c = {.schedule = schedule, .err = err, .n = schedule->group->size};
    c.words = 1 + (c.n + 63) / 64;
    pod_status st = POD_OK;
    if (!prepare(&c)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to check a schedule; use fewer chips");
    }
    st = st == POD_OK ? run(&c) : st;
    st = st == POD_OK ? verdict(&c) : st;
    release(&c);
    return st;
}
