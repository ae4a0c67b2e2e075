/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective.h"

#include "sim/collective_impl.h"

#include <stdlib.h>
#include <string.h>

enum { EARLY_BITS = 32, APPROACH_BYTES = 256 };

static uint64_t step_key(int32_t cell, int32_t step)
{
    return (uint64_t)(uint32_t)cell << 32 | (uint32_t)step;
}

/* ---- data ---- */

static unsigned char *slot_address(pod_collective *coll, int32_t cell, int32_t part, int64_t offset)
{
    unsigned char *work = pod_collective_work(coll, cell, part);
    return work + offset * coll->element_bytes;
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

/* What the slots of a step hold now, one behind the other. */
static pod_payload *slots_snapshot(pod_collective *coll, int32_t cell, const coll_chip *state,
                                   int32_t part, const pod_coll_step *step, int64_t bytes)
{
    pod_payload *payload = pod_payload_new(bytes);
    POD_ASSERT(payload != NULL);
    unsigned char *to = payload->bytes;
    const int32_t runs = step->send_gap > 0 ? step->send_slots : 1;
    const int32_t run_slots = step->send_gap > 0 ? 1 : step->send_slots;
    for (int32_t i = 0; i < runs; i++) {
        int64_t offset = 0;
        int64_t elements = 0;
        pod_coll_slots(coll->schedule, state->place.rank, part,
                       step->send_slot + i * (step->send_gap + 1), run_slots, &offset, &elements);
        const size_t run_bytes = (size_t)(elements * coll->element_bytes);
        if (run_bytes > 0) {
            memcpy(to, slot_address(coll, cell, part, offset), run_bytes);
        }
        to += run_bytes;
    }
    return payload;
}

static void payload_place(pod_collective *coll, int32_t cell, const coll_chip *state, int32_t part,
                          int32_t slot, bool reduce, const pod_payload *payload)
{
    int64_t offset = 0;
    int64_t ignored = 0;
    pod_coll_slots(coll->schedule, state->place.rank, part, slot, 0, &offset, &ignored);
    void *to = slot_address(coll, cell, part, offset);
    const int64_t elements = payload->size_bytes / coll->element_bytes;
    if (elements == 0) {
        return;
    }
    if (reduce) {
        pod_dtype_add(coll->options.dtype, to, payload->bytes, elements);
    } else {
        memcpy(to, payload->bytes, (size_t)payload->size_bytes);
    }
}

/* ---- ordered links ---- */

static pod_net_tag tag_make(const pod_collective *coll, int32_t channel, int32_t step)
{
    return (pod_net_tag){.kind = POD_TAG_COLLECTIVE,
                         .instance = coll->options.instance,
                         .channel = channel,
                         .step = step};
}

/* Give the link its next message, or leave it idle. */
static void ordered_next(pod_collective *coll, int32_t cell, coll_chip *state, int direction)
{
    pod_ready ready;
    if (!pod_ready_take(&coll->pool, &state->ready[direction], &ready)) {
        state->busy &= (uint8_t) ~(1U << direction);
        return;
    }
    state->busy |= (uint8_t)(1U << direction);
    pod_net_send(coll->options.net, cell, direction, ready.bytes,
                 tag_make(coll, ready.channel, ready.step), ready.payload);
}

static void ordered_send(pod_collective *coll, int32_t cell, coll_chip *state, int32_t channel,
                         const pod_coll_step *step, int64_t bytes, pod_payload *payload)
{
    const int direction = step->send_direction;
    const pod_ready ready = {
        .key = (uint64_t)step->priority << 56 | (uint64_t)(uint32_t)channel << 32
               | (uint32_t)step->send_step,
        .bytes = bytes,
        .payload = payload,
        .channel = channel,
        .step = step->send_step,
    };
    pod_ready_put(&coll->pool, &state->ready[direction], &ready);
    if (!(state->busy & 1U << direction)) {
        ordered_next(coll, cell, state, direction);
    }
}

/* ---- steps ---- */

static void send_routed(pod_collective *coll, int32_t cell, int64_t bytes, int32_t channel,
                        const pod_coll_step *step, pod_payload *payload)
{
    const int32_t chip = pod_machine_chip(coll->options.machine, cell);
    const int32_t to = pod_group_chip(coll->schedule->group, chip, step->send_to);
    pod_net_path paths[POD_NET_PATHS_MAX];
    const int npaths = pod_machine_paths(coll->options.machine, chip, to, paths);
    pod_net_send_paths(coll->options.net, cell, paths, npaths, bytes,
                       tag_make(coll, channel, step->send_step), payload);
}

/* Note that the message of a step is here, or that the step has none. */
static void early_note(pod_collective *coll, int32_t cell, int32_t channel, int32_t step)
{
    coll_channel *state = channel_at(coll, cell, channel);
    const int32_t ahead = step - state->received;
    if (ahead < EARLY_BITS) {
        state->early |= 1U << ahead;
    } else {
        pod_map_put(&coll->far, (uint64_t)channel, step_key(cell, step), 1);
        state->far++;
    }
}

/* Keep a message for the receive that it belongs to. Takes over the payload. */
static void message_note(pod_collective *coll, int32_t cell, pod_net_tag tag, pod_payload *payload)
{
    if (payload) {
        pod_map_put(&coll->payloads, (uint64_t)tag.channel, step_key(cell, tag.step),
                    (uint64_t)(uintptr_t)payload);
    }
    early_note(coll, cell, tag.channel, tag.step);
}

static void step_send(pod_collective *coll, int32_t cell, coll_chip *state, int32_t channel,
                      const pod_coll_step *step)
{
    coll_channel *ch = channel_at(coll, cell, channel);
    const int32_t part = coll->schedule->channels[channel].part;
    const int64_t bytes = send_elements(coll, state, channel, step) * coll->element_bytes;
    pod_payload *payload =
        coll->options.data ? slots_snapshot(coll, cell, state, part, step, bytes) : NULL;
    if (step->send_to == state->place.rank) {
        message_note(coll, cell, tag_make(coll, channel, step->send_step), payload);
        return;
    }
    ch->sending = true;
    if (step->send_direction < 0) {
        send_routed(coll, cell, bytes, channel, step, payload);
        return;
    }
    if (coll->schedule->ordered) {
        ch->direction = step->send_direction;
        ordered_send(coll, cell, state, channel, step, bytes, payload);
        return;
    }
    pod_net_send(coll->options.net, cell, step->send_direction, bytes,
                 tag_make(coll, channel, step->send_step), payload);
}

static void early_shift(pod_collective *coll, int32_t cell, int32_t channel, coll_channel *state)
{
    state->early >>= 1;
    state->received++;
    uint64_t ignored = 0;
    const int32_t entering = state->received + EARLY_BITS - 1;
    if (state->far > 0
        && pod_map_take(&coll->far, (uint64_t)channel, step_key(cell, entering), &ignored)) {
        state->early |= 1U << (EARLY_BITS - 1);
        state->far--;
    }
}

/* Store or reduce what came for the receive that completes now. */
static void receive_data(pod_collective *coll, int32_t cell, coll_chip *state, int32_t channel,
                         int32_t step_number)
{
    uint64_t value = 0;
    if (!pod_map_take(&coll->payloads, (uint64_t)channel, step_key(cell, step_number), &value)) {
        return;
    }
    pod_payload *payload = (pod_payload *)(uintptr_t)value;
    pod_coll_step step;
    coll->schedule->ops->step(coll->schedule, &state->place, channel, step_number, &step);
    const int32_t part = coll->schedule->channels[channel].part;
    payload_place(coll, cell, state, part, step.recv_slot, step.recv_op == POD_RECV_REDUCE,
                  payload);
    if (step.recv_also >= 0) {
        payload_place(coll, cell, state, part, step.recv_also, true, payload);
    }
    pod_payload_release(payload);
}

static bool waits_are_over(pod_collective *coll, int32_t cell, const pod_coll_step *step)
{
    for (int i = 0; i < POD_COLL_WAITS_MAX; i++) {
        const pod_coll_wait *wait = &step->wait[i];
        if (wait->channel >= 0 && channel_at(coll, cell, wait->channel)->received < wait->recv) {
            return false;
        }
    }
    return true;
}

/* Issue the next step's send if it may go. */
static bool step_issue(pod_collective *coll, int32_t cell, coll_chip *state, int32_t channel)
{
    coll_channel *ch = channel_at(coll, cell, channel);
    if (ch->sending || ch->issued >= ch->steps) {
        return false;
    }
    pod_coll_step step;
    coll->schedule->ops->step(coll->schedule, &state->place, channel, ch->issued, &step);
    if (ch->received < step.wait_recv) {
        return false;
    }
    const bool blocked = !waits_are_over(coll, cell, &step);
    if (blocked != ch->waits) {
        ch->waits = blocked;
        state->waiting += blocked ? 1 : -1;
    }
    if (blocked) {
        return false;
    }
    if (step.recv_from < 0) {
        early_note(coll, cell, channel, ch->issued);
    }
    ch->issued++;
    if (step.send_to >= 0) {
        step_send(coll, cell, state, channel, &step);
    }
    return true;
}

static void channel_finish(pod_collective *coll, int32_t cell, coll_chip *state)
{
    state->channels_left--;
    if (state->channels_left == 0 && coll->options.done) {
        coll->options.done(coll->options.context, cell, coll->options.instance);
    }
}

static void channel_advance(pod_collective *coll, int32_t cell, coll_chip *state, int32_t channel)
{
    coll_channel *ch = channel_at(coll, cell, channel);
    if (ch->over) {
        return;
    }
    bool moved = true;
    while (moved) {
        moved = false;
        while (ch->received < ch->issued && (ch->early & 1U)) {
            if (coll->options.data) {
                receive_data(coll, cell, state, channel, ch->received);
            }
            early_shift(coll, cell, channel, ch);
            state->woken = true;
            moved = true;
        }
        moved = step_issue(coll, cell, state, channel) || moved;
    }
    if (ch->received == ch->steps && !ch->sending) {
        ch->over = true;
        channel_finish(coll, cell, state);
    }
}

/* Channels that wait for receives of other channels get another look after one completed. */
static void waiting_advance(pod_collective *coll, int32_t cell, coll_chip *state)
{
    while (state->woken && state->waiting > 0) {
        state->woken = false;
        for (int32_t channel = 0; channel < coll->nchannels; channel++) {
            if (channel_at(coll, cell, channel)->waits) {
                channel_advance(coll, cell, state, channel);
            }
        }
    }
    state->woken = false;
}

void pod_collective_start(pod_collective *coll, int32_t cell)
{
    coll_chip *state = &coll->chips[cell - coll->first];
    state->started = true;
    state->channels_left = coll->nchannels + 1;
    for (int32_t channel = 0; channel < coll->nchannels; channel++) {
        coll_channel *ch = channel_at(coll, cell, channel);
        ch->steps = coll->schedule->ops->steps(coll->schedule, &state->place, channel);
        if (ch->steps == 0) {
            channel_finish(coll, cell, state);
        } else {
            channel_advance(coll, cell, state, channel);
        }
    }
    waiting_advance(coll, cell, state);
    channel_finish(coll, cell, state); /* the one that kept the chip from ending too early */
}

void pod_collective_arrived(pod_collective *coll, int32_t cell, pod_net_tag tag,
                            pod_payload *payload)
{
    coll_chip *state = &coll->chips[cell - coll->first];
    message_note(coll, cell, tag, payload ? pod_payload_retain(payload) : NULL);
    if (state->started) {
        channel_advance(coll, cell, state, tag.channel);
        waiting_advance(coll, cell, state);
    }
}

void pod_collective_sent(pod_collective *coll, int32_t cell, pod_net_tag tag)
{
    coll_chip *state = &coll->chips[cell - coll->first];
    coll_channel *ch = channel_at(coll, cell, tag.channel);
    ch->sending = false;
    if (coll->schedule->ordered && ch->direction >= 0) {
        const int direction = ch->direction;
        ch->direction = NOT_QUEUED;
        ordered_next(coll, cell, state, direction);
    }
    if (ch->received == ch->steps) {
        channel_finish(coll, cell, state); /* this send was all that it waited for */
    } else {
        channel_advance(coll, cell, state, tag.channel);
    }
    waiting_advance(coll, cell, state);
}

void pod_collective_approach(const pod_collective *coll, int32_t cell)
{
    const size_t local = (size_t)(cell - coll->first);
    const char *channels = (const char *)&coll->channels[local * (size_t)coll->nchannels];
    const size_t bytes = (size_t)coll->nchannels * sizeof(coll_channel);
    __builtin_prefetch(&coll->chips[local], 1);
    for (size_t i = 0; i < bytes && i < APPROACH_BYTES; i += 64) {
        __builtin_prefetch(channels + i, 1);
    }
    if (coll->schedule->ops->approach) {
        coll->schedule->ops->approach(coll->schedule, coll->ranks[local]);
    }
}
