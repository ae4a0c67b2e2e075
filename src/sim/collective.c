/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective.h"

#include "sim/collective_state.h"

enum { ARRIVED_BITS = 32 };

static uint64_t step_key(int32_t cell, int32_t step)
{
    return (uint64_t)(uint32_t)cell << 32 | (uint32_t)step;
}

/* Elements that a step sends; the common case, a run of blocks, without a call. */
static int64_t send_elements(const pod_collective *coll, const coll_chip *state, int32_t channel,
                             const pod_coll_step *step)
{
    const int32_t part = coll->schedule->channels[channel].part;
    const coll_part *sizes = &coll->parts[part];
    const int32_t end = step->send_slot + step->send_slots;
    if (end > sizes->plain_slots || step->send_gap > 0) {
        return pod_coll_send_elements(coll->schedule, state->place.rank, channel, step);
    }
    const int32_t longer_before = step->send_slot < sizes->longer ? step->send_slot : sizes->longer;
    const int32_t longer_end = end < sizes->longer ? end : sizes->longer;
    return step->send_slots * sizes->block_elements + longer_end - longer_before;
}

/* ---- ordered links ---- */

/* One channel of one chip: what the functions below work on. */
typedef struct place {
    pod_collective *coll;
    coll_chip *chip;
    coll_channel *ch;
    int32_t cell;
    int32_t channel;
} place;

static place place_of(pod_collective *coll, int32_t cell, int32_t channel)
{
    return (place){.coll = coll,
                   .chip = chip_at(coll, cell),
                   .ch = &chip_at(coll, cell)->channels[channel],
                   .cell = cell,
                   .channel = channel};
}

/* Another channel of the same chip. */
static place place_beside(const place *at, int32_t channel)
{
    place other = *at;
    other.ch = &at->chip->channels[channel];
    other.channel = channel;
    return other;
}

static coll_rare *rare_of(const place *at)
{
    return &at->coll->rare[channel_number(at->coll, at->cell, at->channel)];
}

static pod_net_tag tag_make(const place *at, int32_t step)
{
    return (pod_net_tag){.kind = POD_TAG_COLLECTIVE,
                         .instance = at->coll->options.instance,
                         .channel = at->channel,
                         .step = step,
                         .shared = at->coll->options.shared};
}

/* The channel whose message waits for the turn that has come on a link of a timed schedule, or -1. */
static int32_t timed_next(const place *here, int direction)
{
    const pod_collective *coll = here->coll;
    const uint64_t *bits = ready_bits(coll, here->chip, direction);
    for (int32_t word = 0; word < coll->nwords; word++) {
        for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
            const place other = place_beside(here, word * 64 + __builtin_ctzll(rest));
            if (rare_of(&other)->turn == here->chip->turn[direction]) {
                return other.channel;
            }
        }
    }
    return -1;
}

static void ordered_start(const place *at, int direction, int32_t step, int64_t bytes)
{
    coll_channel *ch = at->ch;
    at->chip->turn[direction]++;
    pod_payload **held =
        at->coll->held ? &at->coll->held[channel_number(at->coll, at->cell, at->channel)] : NULL;
    ch->queued = false;
    ch->send.left_ps = pod_net_send(at->coll->options.net, at->cell, direction, bytes,
                                    tag_make(at, step), held ? *held : NULL);
    if (!at->coll->exclusive) {
        at->chip->busy |= (uint8_t)(1U << direction);
        return;
    }
    at->chip->serving[direction] = at->channel;
    if (ch->awaits) {
        (void)pod_net_await(at->coll->options.net, at->cell, direction, 0, false);
    }
    const int32_t next = at->coll->schedule->timed ? timed_next(at, direction) : -1;
    if (next >= 0) {
        (void)pod_net_await(at->coll->options.net, at->cell, direction,
                            at->chip->channels[next].send.bytes, at->coll->options.shared);
    }
}

/* Give the link of `here`, any channel of the chip, the ready message that comes first, or leave it idle. */
static void ordered_next(const place *here, int direction)
{
    const pod_collective *coll = here->coll;
    const bool timed = coll->schedule->timed;
    uint64_t *bits = ready_bits(coll, here->chip, direction);
    int32_t first = timed ? timed_next(here, direction) : -1;
    int32_t count = 0;
    int64_t least_bytes = INT64_MAX;
    for (int32_t word = 0; word < coll->nwords && !timed; word++) {
        for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1) {
            const int32_t channel = word * 64 + __builtin_ctzll(rest);
            const coll_channel *ch = &here->chip->channels[channel];
            least_bytes = ch->send.bytes < least_bytes ? ch->send.bytes : least_bytes;
            count++;
            if (first < 0 || ch->priority < here->chip->channels[first].priority) {
                first = channel;
            }
        }
    }
    if (first < 0) {
        return;
    }
    bits[first / 64] &= ~(UINT64_C(1) << (first % 64));
    const place at = place_beside(here, first);
    ordered_start(&at, direction, at.ch->ready_step, at.ch->send.bytes);
    if (coll->exclusive && count > 1) {
        (void)pod_net_await(coll->options.net, at.cell, direction, least_bytes,
                            coll->options.shared);
    }
}

/* A channel has at most one message that is ready, so the channel keeps it. */
static void ordered_send(const place *at, const pod_coll_step *step, int64_t bytes,
                         pod_payload *payload)
{
    const int direction = step->send_direction;
    coll_channel *ch = at->ch;
    ch->direction = (int8_t)direction;
    if (at->coll->held) {
        at->coll->held[channel_number(at->coll, at->cell, at->channel)] = payload;
    }
    const bool early = at->coll->schedule->timed && step->turn != at->chip->turn[direction];
    const bool busy = early ? true
                      : at->coll->exclusive
                          ? pod_net_await(at->coll->options.net, at->cell, direction, bytes,
                                          at->coll->options.shared)
                          : ((unsigned)at->chip->busy >> direction & 1U) != 0;
    if (!busy) {
        ordered_start(at, direction, step->send_step, bytes);
        return;
    }
    if (at->coll->schedule->timed) {
        rare_of(at)->turn = step->turn;
    }
    ch->priority = step->priority;
    ch->ready_step = step->send_step;
    ch->queued = true;
    ch->send.bytes = bytes;
    ready_bits(at->coll, at->chip, direction)[at->channel / 64] |= UINT64_C(1)
                                                                   << (at->channel % 64);
}

/* ---- steps ---- */

/* Of a message to another slice: collectives as their chips begin them, in each of them by priority. */
static uint32_t nic_order(const place *at, const pod_coll_step *step)
{
    const uint32_t last = POD_COLL_NIC_PRIORITIES - 1;
    const uint32_t own = step->priority < last ? step->priority : last;
    const uint32_t orders_max = UINT32_MAX / POD_COLL_NIC_PRIORITIES;
    const uint32_t order = at->chip->order < orders_max ? at->chip->order : orders_max;
    return order * POD_COLL_NIC_PRIORITIES + own;
}

static void send_routed(const place *at, const pod_coll_step *step, int64_t bytes,
                        pod_payload *payload)
{
    const pod_machine *machine = at->coll->options.machine;
    const int32_t chip = pod_machine_chip(machine, at->cell);
    const int32_t to = pod_group_chip(at->coll->schedule->group, chip, step->send_to);
    if (at->coll->schedule->circuits) {
        pod_machine_send_circuits(machine, at->coll->options.net, chip, to,
                                  at->coll->schedule->ties_plus, bytes,
                                  tag_make(at, step->send_step), payload);
        return;
    }
    pod_net_path paths[POD_NET_PATHS_MAX];
    const int npaths = pod_machine_paths(machine, chip, to, nic_order(at, step), paths);
    pod_net_send_paths(at->coll->options.net, at->cell, paths, npaths, bytes,
                       tag_make(at, step->send_step), payload);
}

/* Note that the message of a step is here, or that the step has none. */
static void arrival_note(const place *at, int32_t step)
{
    const int32_t ahead = step - at->ch->received;
    if (ahead < ARRIVED_BITS) {
        at->ch->arrived |= 1U << ahead;
    } else {
        pod_map_put(&at->coll->arrived, (uint64_t)at->channel, step_key(at->cell, step), 1);
        rare_of(at)->later++;
        at->ch->has_later = true;
    }
}

/* Keep a message for the receive that it belongs to. Takes over the payload. */
static void message_note(const place *at, int32_t step, pod_payload *payload)
{
    if (payload) {
        pod_map_put(&at->coll->payloads, (uint64_t)at->channel, step_key(at->cell, step),
                    (uint64_t)(uintptr_t)payload);
    }
    arrival_note(at, step);
}

static void step_send(const place *at, const pod_coll_step *step)
{
    pod_collective *coll = at->coll;
    const int32_t part = coll->schedule->channels[at->channel].part;
    const int64_t bytes = send_elements(coll, at->chip, at->channel, step) * coll->element_bytes;
    pod_payload *payload =
        coll->options.data ? pod_collective_snapshot(coll, at->cell, at->chip, part, step, bytes)
                           : NULL;
    if (step->send_to == at->chip->place.rank) {
        message_note(at, step->send_step, payload);
        return;
    }
    at->ch->send.left_ps = POD_TIME_NEVER;
    if (step->send_direction < 0) {
        send_routed(at, step, bytes, payload);
    } else if (coll->schedule->ordered) {
        ordered_send(at, step, bytes, payload);
    } else {
        pod_net_send(coll->options.net, at->cell, step->send_direction, bytes,
                     tag_make(at, step->send_step), payload);
    }
}

/* One receive is complete. */
static void arrivals_shift(const place *at)
{
    coll_channel *ch = at->ch;
    ch->arrived >>= 1;
    ch->received++;
    uint64_t ignored = 0;
    if (ch->has_later
        && pod_map_take(&at->coll->arrived, (uint64_t)at->channel,
                        step_key(at->cell, ch->received + ARRIVED_BITS - 1), &ignored)) {
        ch->arrived |= 1U << (ARRIVED_BITS - 1);
        ch->has_later = --rare_of(at)->later > 0;
    }
}

/* Store or reduce what came for the receive that completes now. */
static void receive_data(const place *at)
{
    pod_collective *coll = at->coll;
    uint64_t value = 0;
    if (!pod_map_take(&coll->payloads, (uint64_t)at->channel, step_key(at->cell, at->ch->received),
                      &value)) {
        return;
    }
    pod_payload *payload = (pod_payload *)(uintptr_t)value;
    pod_coll_step step;
    coll->schedule->ops->step(coll->schedule, &at->chip->place, at->channel, at->ch->received,
                              &step);
    const int32_t part = coll->schedule->channels[at->channel].part;
    pod_collective_place(coll, at->cell, at->chip, part, step.recv_slot,
                         step.recv_op == POD_RECV_REDUCE, payload);
    if (step.recv_also >= 0) {
        pod_collective_place(coll, at->cell, at->chip, part, step.recv_also, true, payload);
    }
    pod_payload_release(payload);
}

/* ---- channels that wait for others ---- */

static void due_set(const place *at, int32_t channel)
{
    due_bits(at->coll, at->chip)[channel / 64] |= UINT64_C(1) << (channel % 64);
    at->chip->woken = true;
}

static bool is_due(const place *at)
{
    return (due_bits(at->coll, at->chip)[at->channel / 64] >> (at->channel % 64) & 1U) != 0;
}

/* Wait for receives of another channel. */
static void watch(const place *at, const pod_coll_wait *wait)
{
    const place other = place_beside(at, wait->channel);
    coll_rare *watched = rare_of(&other);
    coll_rare *rare = rare_of(at);
    rare->due_recv = wait->recv;
    rare->next_watcher = watched->first_watcher;
    watched->first_watcher = at->channel;
    watched->watch = other.ch->watched && watched->watch < wait->recv ? watched->watch : wait->recv;
    other.ch->watched = true;
}

/* So many receives are complete that one of those that wait for this channel is due. */
static void watchers_tell(const place *at)
{
    coll_rare *watched = rare_of(at);
    int32_t *link = &watched->first_watcher;
    watched->watch = INT32_MAX;
    while (*link >= 0) {
        const place other = place_beside(at, *link);
        coll_rare *rare = rare_of(&other);
        if (rare->due_recv <= at->ch->received) {
            *link = rare->next_watcher;
            due_set(at, other.channel);
        } else {
            watched->watch = rare->due_recv < watched->watch ? rare->due_recv : watched->watch;
            link = &rare->next_watcher;
        }
    }
    at->ch->watched = watched->first_watcher >= 0;
}

/* One of the receives of other channels that a step waits for and that isn't complete, or NULL. */
static const pod_coll_wait *incomplete(const place *at, const pod_coll_step *step)
{
    for (int i = POD_COLL_WAITS_MAX - 1; i >= 0; i--) {
        const pod_coll_wait *wait = &step->wait[i];
        if (wait->channel >= 0 && at->chip->channels[wait->channel].received < wait->recv) {
            return wait;
        }
    }
    return NULL;
}

/* What the next step waits for is complete; else the channel is due when the first of it may be. */
static bool waits_are_over(const place *at, const pod_coll_step *step)
{
    const pod_coll_wait *wait = incomplete(at, step);
    if (at->ch->waits) { /* it was due */
        due_bits(at->coll, at->chip)[at->channel / 64] &= ~(UINT64_C(1) << (at->channel % 64));
    }
    at->ch->waits = wait != NULL;
    if (wait != NULL) {
        watch(at, wait);
    }
    return wait == NULL;
}

/* The next step is known to wait for receives, of this channel or another. */
static bool is_blocked(const place *at)
{
    coll_channel *ch = at->ch;
    if (ch->lacks) {
        ch->lacks = ch->received < rare_of(at)->needs;
        return ch->lacks;
    }
    return ch->waits && !is_due(at);
}

/* ---- other slices ---- */

static bool is_across(const place *at, int32_t rank)
{
    const int32_t n = at->coll->schedule->group->inside->size;
    return rank >= 0 && rank / n != at->chip->place.rank / n;
}

/* A step is issued that may deal with another slice. */
static void across_note(const place *at, const pod_coll_step *step)
{
    coll_rare *rare = rare_of(at);
    rare->sends_across = step->send_to >= 0 ? is_across(at, step->send_to) : rare->sends_across;
    rare->due_across = is_across(at, step->recv_from) ? at->ch->issued : rare->due_across;
}

static void crossing_tell(const place *at)
{
    coll_rare *rare = rare_of(at);
    const pod_collective_options *options = &at->coll->options;
    const bool sending = is_sending(at->ch, pod_net_now(options->net));
    const bool crossing = (sending && rare->sends_across) || rare->due_across > at->ch->received;
    if (crossing != rare->crossing) {
        rare->crossing = crossing;
        options->crossing(options->context, at->cell, options->instance, crossing ? 1 : -1);
    }
}

/* The channel can't go on before its message has left. Where the net doesn't tell by itself, ask. */
static bool must_wait_to_send(const place *at)
{
    coll_channel *ch = at->ch;
    const pod_net *net = at->coll->options.net;
    if (!is_sending(ch, pod_net_now(net))) {
        return false;
    }
    if (at->coll->exclusive && !ch->awaits) {
        ch->awaits = true;
        if (!ch->queued) {
            (void)pod_net_await(at->coll->options.net, at->cell, ch->direction, 0, false);
        }
    }
    return true;
}

/* Issue the next step's send if it may go. */
static bool step_issue(const place *at)
{
    coll_channel *ch = at->ch;
    const pod_coll_schedule *schedule = at->coll->schedule;
    if (ch->issued >= ch->steps || (schedule->sequential && ch->received < ch->issued)
        || must_wait_to_send(at) || is_blocked(at)) {
        return false;
    }
    pod_coll_step step;
    schedule->ops->step(schedule, &at->chip->place, at->channel, ch->issued, &step);
    if (ch->received < step.wait_recv) {
        ch->lacks = true;
        rare_of(at)->needs = step.wait_recv;
        return false;
    }
    if (!waits_are_over(at, &step)) {
        return false;
    }
    if (step.recv_from < 0) {
        arrival_note(at, ch->issued);
    }
    ch->issued++;
    if (at->coll->tells_crossing) {
        across_note(at, &step);
    }
    if (step.send_to >= 0) {
        step_send(at, &step);
    }
    return true;
}

static void channel_finish(const place *at)
{
    const pod_collective *coll = at->coll;
    at->chip->channels_left--;
    if (at->chip->channels_left == 0 && coll->options.done) {
        coll->options.done(coll->options.context, at->cell, coll->options.instance);
    }
}

static void channel_advance(const place *at)
{
    coll_channel *ch = at->ch;
    if (ch->over) {
        return;
    }
    do {
        while (ch->received < ch->issued && (ch->arrived & 1U)) {
            if (at->coll->options.data) {
                receive_data(at);
            }
            arrivals_shift(at);
            if (ch->watched && ch->received >= rare_of(at)->watch) {
                watchers_tell(at);
            }
        }
    } while (step_issue(at));
    if (at->coll->tells_crossing) {
        crossing_tell(at);
    }
    if (ch->received == ch->steps && !must_wait_to_send(at)) {
        ch->over = true;
        channel_finish(at);
    }
}

/* Channels that are due go on, in their order, until none is. */
static void due_advance(const place *at)
{
    uint64_t *due = due_bits(at->coll, at->chip);
    while (at->chip->woken) {
        at->chip->woken = false;
        for (int32_t word = 0; word < at->coll->nwords; word++) {
            uint64_t left = ~UINT64_C(0); /* those of this word that come after the last one */
            while ((due[word] & left) != 0) {
                const int bit = __builtin_ctzll(due[word] & left);
                const place other = place_beside(at, word * 64 + bit);
                left = bit < 63 ? ~UINT64_C(0) << (bit + 1) : 0;
                channel_advance(&other);
            }
        }
    }
}

void pod_collective_start(pod_collective *coll, int32_t cell, uint32_t order)
{
    coll_chip *state = chip_at(coll, cell);
    state->order = order;
    state->started = true;
    state->channels_left = coll->nchannels + 1; /* one too many, so that it doesn't end in here */
    place at = {.coll = coll, .chip = state, .cell = cell};
    for (int32_t channel = 0; channel < coll->nchannels; channel++) {
        at = place_of(coll, cell, channel);
        at.ch->steps = coll->schedule->ops->steps(coll->schedule, &state->place, channel);
        channel_advance(&at);
    }
    due_advance(&at);
    channel_finish(&at);
}

void pod_collective_arrived(pod_collective *coll, int32_t cell, pod_net_tag tag,
                            pod_payload *payload)
{
    const place at = place_of(coll, cell, tag.channel);
    message_note(&at, tag.step, payload ? pod_payload_retain(payload) : NULL);
    if (at.chip->started) {
        channel_advance(&at);
        due_advance(&at);
    }
}

void pod_collective_sent(pod_collective *coll, int32_t cell, pod_net_tag tag)
{
    const place at = place_of(coll, cell, tag.channel);
    at.ch->send.left_ps = 0;
    const int direction = at.ch->direction;
    if (direction >= 0) {
        at.ch->direction = NOT_QUEUED;
        at.chip->busy &= (uint8_t) ~(1U << direction);
        ordered_next(&at, direction);
    }
    channel_advance(&at);
    due_advance(&at);
}

void pod_collective_freed(pod_collective *coll, int32_t cell, int port)
{
    const place at = place_of(coll, cell, chip_at(coll, cell)->serving[port]);
    ordered_next(&at, port);
    if (at.ch->awaits) {
        at.ch->awaits = false;
        channel_advance(&at);
        due_advance(&at);
    }
}
