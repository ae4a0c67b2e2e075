/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "collectives/schedule/check_state.h"

#include <stdlib.h>
#include <string.h>

static pod_check_message **check_box_at(const pod_checker *c, int32_t channel, int32_t rank,
                                        int32_t step)
{
    const int64_t steps = c->schedule->channels[channel].max_steps;
    return &c->box[c->box_base[channel] + rank * steps + step];
}

static pod_check_cursor *check_cursor_at(const pod_checker *c, int32_t channel, int32_t rank)
{
    return &c->cursors[(int64_t)channel * c->n + rank];
}

static pod_status blame(const pod_checker *c, int32_t channel, int32_t step, int32_t rank,
                        const char *what)
{
    *c->where = (pod_coll_fault){channel, step, rank, what};
    return pod_fail(c->err, POD_E_CHECK,
                    "schedule '%s' is wrong in channel %d, step %d of rank %d: %s",
                    c->schedule->algorithm, (int)channel, (int)step, (int)rank, what);
}

static bool range_is_inside(const pod_checker *c, int32_t part, int32_t slot, int32_t slots)
{
    return slot >= 0 && slots >= 0 && slot <= c->schedule->parts[part].slots - slots;
}

static bool check_waits_over(const pod_checker *c, int32_t channel, int32_t rank,
                             const pod_coll_step *step)
{
    if (check_cursor_at(c, channel, rank)->next_recv < step->wait_recv) {
        return false;
    }
    for (int w = 0; w < POD_COLL_WAITS_MAX; ++w) {
        const pod_coll_wait *wait = &step->wait[w];
        if (wait->channel >= 0 && check_cursor_at(c, wait->channel, rank)->next_recv < wait->recv) {
            return false;
        }
    }
    return true;
}

/* Put what is sent into the mailbox of the step that takes it. */
static pod_status check_post(const pod_checker *c, int32_t channel, int32_t rank, int32_t at,
                             const pod_coll_step *step)
{
    const int32_t part = c->schedule->channels[channel].part;
    if (step->send_to >= c->n) {
        return blame(c, channel, at, rank, "it sends to a rank that the group doesn't have");
    }
    const int32_t pitch = step->send_gap + 1;
    const int32_t reach = step->send_slots > 0 ? (step->send_slots - 1) * pitch + 1 : 0;
    if (pitch < 1 || !range_is_inside(c, part, step->send_slot, reach)) {
        return blame(c, channel, at, rank, "it sends slots outside the work buffer");
    }
    if (step->send_step < 0
        || step->send_step >= check_cursor_at(c, channel, step->send_to)->steps) {
        return blame(c, channel, at, rank, "the receiver has no such step");
    }
    pod_check_message **box = check_box_at(c, channel, step->send_to, step->send_step);
    if (*box) {
        return blame(c, channel, at, rank, "the receiver's step gets two messages");
    }
    const size_t size = (size_t)(step->send_slots * c->words) * sizeof(uint64_t);
    pod_check_message *m = malloc(sizeof *m + size);
    if (!m) {
        return pod_fail(c->err, POD_E_NOMEM, "no memory to check a schedule; use fewer chips");
    }
    *m = (pod_check_message){
        .from = rank, .slots = step->send_slots, .first = step->send_slot, .pitch = pitch};
    *box = m;
    for (int32_t i = 0; i < m->slots; ++i) {
        memcpy(&m->content[i * c->words], pod_check_slot(c, part, rank, m->first + i * pitch),
               (size_t)c->words * sizeof(uint64_t));
        if (m->content[i * c->words] == POD_CHECK_NO_BLOCK) {
            return blame(c, channel, at, rank, "it sends a slot that holds nothing yet");
        }
    }
    return POD_OK;
}

static pod_status try_send(const pod_checker *c, int32_t channel, int32_t rank, bool *moved)
{
    const pod_coll_schedule *s = c->schedule;
    pod_check_cursor *cur = check_cursor_at(c, channel, rank);
    pod_coll_step step;
    while (cur->next_send < cur->steps) {
        const int32_t at = cur->next_send;
        s->ops->step(s, &c->places[rank], channel, at, &step);
        if (!check_waits_over(c, channel, rank, &step)) {
            return POD_OK;
        }
        if (step.send_to >= 0) {
            const pod_status st = check_post(c, channel, rank, at, &step);
            if (st != POD_OK) {
                return st;
            }
        }
        ++cur->next_send;
        *moved = true;
    }
    return POD_OK;
}

static pod_status reduce_into(const pod_checker *c, uint64_t *into, const uint64_t *from,
                              int32_t channel, int32_t at, int32_t rank)
{
    if (into[0] != from[0]) {
        return blame(c, channel, at, rank, "it reduces one block into another");
    }
    for (int64_t w = 1; w < c->words - 1; ++w) {
        if ((into[w] & from[w]) != 0) {
            return blame(c, channel, at, rank, "it reduces a contribution twice");
        }
        into[w] |= from[w];
    }
    return POD_OK;
}

static int64_t slot_elements(const pod_checker *c, int32_t part, int32_t rank, int32_t slot)
{
    int64_t offset;
    int64_t elements;
    pod_coll_slots(c->schedule, rank, part, slot, 1, &offset, &elements);
    return elements;
}

static pod_status deliver(const pod_checker *c, int32_t channel, int32_t at, int32_t rank,
                          const pod_check_message *m, int32_t slot, bool reduce)
{
    const int32_t part = c->schedule->channels[channel].part;
    if (!range_is_inside(c, part, slot, m->slots)) {
        return blame(c, channel, at, rank, "it receives into slots outside the work buffer");
    }
    for (int32_t i = 0; i < m->slots; ++i) {
        const uint64_t *from = &m->content[i * c->words];
        uint64_t *into = pod_check_slot(c, part, rank, slot + i);
        if (slot_elements(c, part, rank, slot + i)
            != slot_elements(c, part, m->from, m->first + i * m->pitch)) {
            return blame(c, channel, at, rank, "a slot has no room for the block it receives");
        }
        if (!reduce) {
            memcpy(into, from, (size_t)c->words * sizeof *into);
        } else {
            const pod_status st = reduce_into(c, into, from, channel, at, rank);
            if (st != POD_OK) {
                return st;
            }
        }
        into[c->words - 1] = (uint64_t)channel << 32 | (uint32_t)(at + 1);
    }
    return POD_OK;
}

/* The next receive of a channel, if its message is here; with `held`, only if it is the rank's own. */
static pod_status recv_one(const pod_checker *c, int32_t channel, int32_t rank, bool held,
                           bool *moved)
{
    const pod_coll_schedule *s = c->schedule;
    pod_check_cursor *cur = check_cursor_at(c, channel, rank);
    if (cur->next_recv >= cur->next_send) {
        return POD_OK;
    }
    pod_coll_step step;
    const int32_t at = cur->next_recv;
    s->ops->step(s, &c->places[rank], channel, at, &step);
    pod_check_message **box = check_box_at(c, channel, rank, at);
    if ((step.recv_from >= 0 && !*box) || (held && *box && (*box)->from != rank)) {
        return POD_OK;
    }
    if (*box) {
        if ((*box)->from != step.recv_from) {
            return blame(c, channel, at, rank, "a message comes from another rank than named");
        }
        pod_status st =
            deliver(c, channel, at, rank, *box, step.recv_slot, step.recv_op == POD_RECV_REDUCE);
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
    return POD_OK;
}

static pod_status try_recv(const pod_checker *c, int32_t channel, int32_t rank, bool *moved)
{
    pod_status st = POD_OK;
    for (bool more = true; more && st == POD_OK;) {
        more = false;
        st = recv_one(c, channel, rank, false, &more);
        *moved = *moved || more;
    }
    return st;
}

/* All that a rank can do without another message. */
static pod_status settle(const pod_checker *c, int32_t rank)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t channel = 0; channel < c->schedule->nchannels; ++channel) {
            POD_TRY(try_send(c, channel, rank, &moved));
            POD_TRY(recv_one(c, channel, rank, true, &moved));
        }
    }
    return POD_OK;
}

/* Messages are held back and let in one at a time, in a random order: what is only right because something
 * happened to come earlier is then caught. */
static pod_status run_held(const pod_checker *c, uint64_t order)
{
    const uint64_t cursors = (uint64_t)c->schedule->nchannels * (uint64_t)c->n;
    pod_status st = POD_OK;
    for (int32_t rank = 0; rank < c->n && st == POD_OK; ++rank) {
        st = settle(c, rank);
    }
    bool moved = cursors > 0;
    for (uint64_t turn = 0; moved && st == POD_OK; ++turn) {
        const uint64_t first = pod_rng_below(order, 0, turn, cursors);
        moved = false;
        for (uint64_t k = 0; k < cursors && !moved && st == POD_OK; ++k) {
            const uint64_t at = (first + k) % cursors;
            const int32_t rank = (int32_t)(at % (uint64_t)c->n);
            st = recv_one(c, (int32_t)(at / (uint64_t)c->n), rank, false, &moved);
            st = st == POD_OK && moved ? settle(c, rank) : st;
        }
    }
    return st;
}

/* Every rank and channel as far as it goes; backwards in every second round, so that a schedule
 * that is right for one order of arrival only is likely to be caught. */
static pod_status run(const pod_checker *c)
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
            POD_THEN(st, try_recv(c, channel, rank, &moved));
            if (st != POD_OK) {
                return st;
            }
        }
    }
    return POD_OK;
}

static pod_status verdict(const pod_checker *c)
{
    const pod_coll_schedule *s = c->schedule;
    for (int32_t ch = 0; ch < s->nchannels; ++ch) {
        for (int32_t r = 0; r < c->n; ++r) {
            const pod_check_cursor *cur = check_cursor_at(c, ch, r);
            if (cur->next_recv < cur->steps) {
                return blame(c, ch, cur->next_recv, r,
                             cur->next_send > cur->next_recv ? "it waits for ever for a message"
                                                             : "it waits for ever to send");
            }
        }
    }
    for (int64_t b = 0; b < c->boxes; ++b) {
        if (c->box[b]) {
            *c->where = (pod_coll_fault){-1, -1, c->box[b]->from,
                                         "it sends a message that is never received"};
            return pod_fail(c->err, POD_E_CHECK,
                            "schedule '%s' is wrong: a message of rank %d is never received",
                            s->algorithm, (int)c->box[b]->from);
        }
    }
    for (int32_t p = 0; p < s->nparts && s->elements > 0; ++p) {
        for (int32_t r = 0; r < c->n; ++r) {
            if (!pod_check_ends_right(c, p, r)) {
                return pod_fail(c->err, POD_E_CHECK,
                                "schedule '%s' is wrong: rank %d ends without its result in part "
                                "%d of %s",
                                s->algorithm, (int)r, (int)p, pod_coll_op_name(s->op));
            }
        }
    }
    return POD_OK;
}

static bool check_prepare(pod_checker *c)
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
            check_cursor_at(c, ch, r)->steps = s->ops->steps(s, &c->places[r], ch);
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
            c->work[p][i * c->words] = POD_CHECK_NO_BLOCK;
        }
        for (int32_t r = 0; r < c->n; ++r) {
            pod_check_fill(c, p, r);
        }
    }
    return c->box != NULL;
}

static void check_release(pod_checker *c)
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

/* Order 0: everything as soon as it can be. */
static pod_status check_order(const pod_coll_schedule *schedule, uint64_t order,
                              pod_coll_fault *fault, pod_error *err)
{
    pod_checker c = {.schedule = schedule, .err = err, .where = fault, .n = schedule->group->size};
    c.words = 2 + (c.n + 63) / 64;
    pod_status st = POD_OK;
    if (!check_prepare(&c)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to check a schedule; use fewer chips");
    }
    POD_THEN(st, order == 0 ? run(&c) : run_held(&c, order));
    POD_THEN(st, verdict(&c));
    check_release(&c);
    return st;
}

pod_status pod_coll_check(const pod_coll_schedule *schedule, pod_error *err)
{
    pod_coll_fault where;
    return pod_coll_check_orders(schedule, 0, &where, err);
}

pod_status pod_coll_check_orders(const pod_coll_schedule *schedule, int orders,
                                 pod_coll_fault *fault, pod_error *err)
{
    *fault = (pod_coll_fault){-1, -1, -1, NULL};
    if (!sizes_add_up(schedule)) {
        return pod_fail(err, POD_E_CHECK,
                        "schedule '%s' is wrong: its parts don't make up the vector",
                        schedule->algorithm);
    }
    for (int order = 0; order <= orders; ++order) {
        POD_TRY(check_order(schedule, (uint64_t)order, fault, err));
    }
    return POD_OK;
}
