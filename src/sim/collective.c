/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective.h"

#include "sim/map.h"
#include "sim/ready.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EARLY_BITS = 32, NOT_QUEUED = -1 };

typedef struct coll_channel {
    int32_t issued;   /* steps whose sends have been issued */
    int32_t received; /* steps whose receives are complete */
    uint32_t early;   /* bit i: the message of step received + i is here (or the step has none) */
    uint16_t far;     /* early ones beyond the bits, kept in the map */
    bool sending;     /* a send has not left the chip */
    bool waits;       /* the next step waits for another channel */
    int32_t steps;
    int8_t direction; /* that the send under way leaves by, in ordered schedules */
    int8_t reserved[3];
} coll_channel;

typedef struct coll_chip {
    pod_coll_place place;
    int32_t group;
    int32_t channels_left;
    int32_t waiting; /* channels whose next step waits for another channel */
    bool started;
    bool woken;   /* a receive completed while waiting channels were looked through */
    uint8_t busy; /* bit d: the link of direction d has a message of this collective (ordered) */
    int32_t ready[POD_DIRECTIONS];
} coll_chip;

/* Sizes of a part's blocks, ready for the hot path. */
typedef struct coll_part {
    int64_t block_elements; /* of the shorter blocks */
    int32_t longer;         /* the first blocks have one element more */
    int32_t plain_slots;    /* slots that have these sizes */
} coll_part;

struct pod_collective {
    pod_collective_options options;
    const pod_coll_schedule *schedule;
    int32_t first;
    int32_t nlocal;
    int32_t nchannels;
    int64_t element_bytes;
    coll_part *parts;
    coll_channel *channels; /* channels[local chip * nchannels + channel] */
    coll_chip *chips;
    void **work;      /* work[local chip * nparts + part] */
    pod_map far;      /* (channel; chip, step) → present */
    pod_map payloads; /* (channel; chip, step) → payload that came early */
    pod_ready_pool pool;
};

static coll_channel *channel_at(pod_collective *coll, int32_t chip, int32_t channel)
{
    return &coll->channels[(size_t)(chip - coll->first) * (size_t)coll->nchannels
                           + (size_t)channel];
}

static uint64_t step_key(int32_t chip, int32_t step)
{
    return (uint64_t)(uint32_t)chip << 32 | (uint32_t)step;
}

/* ---- data ---- */

static unsigned char *slot_address(pod_collective *coll, int32_t chip, int32_t part, int64_t offset)
{
    unsigned char *work = pod_collective_work(coll, chip, part);
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
static pod_payload *slots_snapshot(pod_collective *coll, int32_t chip, const coll_chip *state,
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
            memcpy(to, slot_address(coll, chip, part, offset), run_bytes);
        }
        to += run_bytes;
    }
    return payload;
}

static void payload_place(pod_collective *coll, int32_t chip, const coll_chip *state, int32_t part,
                          int32_t slot, bool reduce, const pod_payload *payload)
{
    int64_t offset = 0;
    int64_t ignored = 0;
    pod_coll_slots(coll->schedule, state->place.rank, part, slot, 0, &offset, &ignored);
    void *to = slot_address(coll, chip, part, offset);
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
static void ordered_next(pod_collective *coll, int32_t chip, coll_chip *state, int direction)
{
    pod_ready ready;
    if (!pod_ready_take(&coll->pool, &state->ready[direction], &ready)) {
        state->busy &= (uint8_t) ~(1U << direction);
        return;
    }
    state->busy |= (uint8_t)(1U << direction);
    pod_net_send(coll->options.net, chip, direction, ready.bytes,
                 tag_make(coll, ready.channel, ready.step), ready.payload);
}

static void ordered_send(pod_collective *coll, int32_t chip, coll_chip *state, int32_t channel,
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
        ordered_next(coll, chip, state, direction);
    }
}

/* ---- steps ---- */

static void send_routed(pod_collective *coll, int32_t chip, const coll_chip *state, int64_t bytes,
                        int32_t channel, const pod_coll_step *step, pod_payload *payload)
{
    const pod_group *group = coll->schedule->group;
    const int32_t to =
        group->chip_of[(size_t)state->group * (size_t)group->size + (size_t)step->send_to];
    pod_net_path paths[POD_NET_PATHS_MAX];
    const int npaths = pod_machine_paths(coll->options.machine, chip, to, paths);
    pod_net_send_paths(coll->options.net, chip, paths, npaths, bytes,
                       tag_make(coll, channel, step->send_step), payload);
}

/* Note that the message of a step is here, or that the step has none. */
static void early_note(pod_collective *coll, int32_t chip, int32_t channel, int32_t step)
{
    coll_channel *state = channel_at(coll, chip, channel);
    const int32_t ahead = step - state->received;
    if (ahead < EARLY_BITS) {
        state->early |= 1U << ahead;
    } else {
        pod_map_put(&coll->far, (uint64_t)channel, step_key(chip, step), 1);
        state->far++;
    }
}

/* Keep a message for the receive that it belongs to. Takes over the payload. */
static void message_note(pod_collective *coll, int32_t chip, pod_net_tag tag, pod_payload *payload)
{
    if (payload) {
        pod_map_put(&coll->payloads, (uint64_t)tag.channel, step_key(chip, tag.step),
                    (uint64_t)(uintptr_t)payload);
    }
    early_note(coll, chip, tag.channel, tag.step);
}

static void step_send(pod_collective *coll, int32_t chip, coll_chip *state, int32_t channel,
                      const pod_coll_step *step)
{
    coll_channel *ch = channel_at(coll, chip, channel);
    const int32_t part = coll->schedule->channels[channel].part;
    const int64_t bytes = send_elements(coll, state, channel, step) * coll->element_bytes;
    pod_payload *payload =
        coll->options.data ? slots_snapshot(coll, chip, state, part, step, bytes) : NULL;
    if (step->send_to == state->place.rank) {
        message_note(coll, chip, tag_make(coll, channel, step->send_step), payload);
        return;
    }
    ch->sending = true;
    if (step->send_direction < 0) {
        send_routed(coll, chip, state, bytes, channel, step, payload);
        return;
    }
    if (coll->schedule->ordered) {
        ch->direction = step->send_direction;
        ordered_send(coll, chip, state, channel, step, bytes, payload);
        return;
    }
    pod_net_send(coll->options.net, chip, step->send_direction, bytes,
                 tag_make(coll, channel, step->send_step), payload);
}

static void early_shift(pod_collective *coll, int32_t chip, int32_t channel, coll_channel *state)
{
    state->early >>= 1;
    state->received++;
    uint64_t ignored = 0;
    const int32_t entering = state->received + EARLY_BITS - 1;
    if (state->far > 0
        && pod_map_take(&coll->far, (uint64_t)channel, step_key(chip, entering), &ignored)) {
        state->early |= 1U << (EARLY_BITS - 1);
        state->far--;
    }
}

/* Store or reduce what came for the receive that completes now. */
static void receive_data(pod_collective *coll, int32_t chip, coll_chip *state, int32_t channel,
                         int32_t step_number)
{
    uint64_t value = 0;
    if (!pod_map_take(&coll->payloads, (uint64_t)channel, step_key(chip, step_number), &value)) {
        return;
    }
    pod_payload *payload = (pod_payload *)(uintptr_t)value;
    pod_coll_step step;
    coll->schedule->ops->step(coll->schedule, &state->place, channel, step_number, &step);
    const int32_t part = coll->schedule->channels[channel].part;
    payload_place(coll, chip, state, part, step.recv_slot, step.recv_op == POD_RECV_REDUCE,
                  payload);
    if (step.recv_also >= 0) {
        payload_place(coll, chip, state, part, step.recv_also, true, payload);
    }
    pod_payload_release(payload);
}

static bool waits_are_over(pod_collective *coll, int32_t chip, const pod_coll_step *step)
{
    for (int i = 0; i < POD_COLL_WAITS_MAX; i++) {
        const pod_coll_wait *wait = &step->wait[i];
        if (wait->channel >= 0 && channel_at(coll, chip, wait->channel)->received < wait->recv) {
            return false;
        }
    }
    return true;
}

/* Issue the next step's send if it may go. */
static bool step_issue(pod_collective *coll, int32_t chip, coll_chip *state, int32_t channel)
{
    coll_channel *ch = channel_at(coll, chip, channel);
    if (ch->sending || ch->issued >= ch->steps) {
        return false;
    }
    pod_coll_step step;
    coll->schedule->ops->step(coll->schedule, &state->place, channel, ch->issued, &step);
    if (ch->received < step.wait_recv) {
        return false;
    }
    const bool blocked = !waits_are_over(coll, chip, &step);
    if (blocked != ch->waits) {
        ch->waits = blocked;
        state->waiting += blocked ? 1 : -1;
    }
    if (blocked) {
        return false;
    }
    if (step.recv_from < 0) {
        early_note(coll, chip, channel, ch->issued);
    }
    ch->issued++;
    if (step.send_to >= 0) {
        step_send(coll, chip, state, channel, &step);
    }
    return true;
}

static void channel_finish(pod_collective *coll, int32_t chip, coll_chip *state)
{
    state->channels_left--;
    if (state->channels_left == 0 && coll->options.done) {
        coll->options.done(coll->options.context, chip, coll->options.instance);
    }
}

static void channel_advance(pod_collective *coll, int32_t chip, coll_chip *state, int32_t channel)
{
    coll_channel *ch = channel_at(coll, chip, channel);
    if (ch->steps == ch->received && !ch->sending) {
        return;
    }
    bool moved = true;
    while (moved) {
        moved = false;
        while (ch->received < ch->issued && (ch->early & 1U)) {
            if (coll->options.data) {
                receive_data(coll, chip, state, channel, ch->received);
            }
            early_shift(coll, chip, channel, ch);
            state->woken = true;
            moved = true;
        }
        moved = step_issue(coll, chip, state, channel) || moved;
    }
    if (ch->received == ch->steps && !ch->sending) {
        channel_finish(coll, chip, state);
    }
}

/* Channels that wait for receives of other channels get another look after one completed. */
static void waiting_advance(pod_collective *coll, int32_t chip, coll_chip *state)
{
    while (state->woken && state->waiting > 0) {
        state->woken = false;
        for (int32_t channel = 0; channel < coll->nchannels; channel++) {
            if (channel_at(coll, chip, channel)->waits) {
                channel_advance(coll, chip, state, channel);
            }
        }
    }
    state->woken = false;
}

void pod_collective_start(pod_collective *coll, int32_t chip)
{
    coll_chip *state = &coll->chips[chip - coll->first];
    state->started = true;
    state->channels_left = coll->nchannels + 1;
    for (int32_t channel = 0; channel < coll->nchannels; channel++) {
        coll_channel *ch = channel_at(coll, chip, channel);
        ch->steps = coll->schedule->ops->steps(coll->schedule, &state->place, channel);
        if (ch->steps == 0) {
            channel_finish(coll, chip, state);
        } else {
            channel_advance(coll, chip, state, channel);
        }
    }
    waiting_advance(coll, chip, state);
    channel_finish(coll, chip, state); /* the one that kept the chip from ending too early */
}

void pod_collective_arrived(pod_collective *coll, int32_t chip, pod_net_tag tag,
                            pod_payload *payload)
{
    coll_chip *state = &coll->chips[chip - coll->first];
    message_note(coll, chip, tag, payload ? pod_payload_retain(payload) : NULL);
    if (state->started) {
        channel_advance(coll, chip, state, tag.channel);
        waiting_advance(coll, chip, state);
    }
}

void pod_collective_sent(pod_collective *coll, int32_t chip, pod_net_tag tag)
{
    coll_chip *state = &coll->chips[chip - coll->first];
    coll_channel *ch = channel_at(coll, chip, tag.channel);
    ch->sending = false;
    if (coll->schedule->ordered && ch->direction >= 0) {
        const int direction = ch->direction;
        ch->direction = NOT_QUEUED;
        ordered_next(coll, chip, state, direction);
    }
    channel_advance(coll, chip, state, tag.channel);
    waiting_advance(coll, chip, state);
}

bool pod_collective_blocked(const pod_collective *coll, int32_t chip, char *text, size_t size)
{
    const coll_chip *state = &coll->chips[chip - coll->first];
    if (!state->started || state->channels_left == 0) {
        return false;
    }
    for (int32_t channel = 0; channel < coll->nchannels; channel++) {
        const coll_channel *ch =
            &coll->channels[(size_t)(chip - coll->first) * (size_t)coll->nchannels
                            + (size_t)channel];
        if (ch->received == ch->steps && !ch->sending) {
            continue;
        }
        pod_coll_step step;
        coll->schedule->ops->step(coll->schedule, &state->place, channel, ch->received, &step);
        const pod_group *group = coll->schedule->group;
        const int32_t from = step.recv_from < 0
                                 ? chip
                                 : group->chip_of[(size_t)state->group * (size_t)group->size
                                                  + (size_t)step.recv_from];
        snprintf(text, size, "chip %d waits for chip %d in channel %d, step %d of %d", chip, from,
                 channel, ch->received, ch->steps);
        return true;
    }
    return false;
}

/* ---- life ---- */

static pod_status work_allocate(pod_collective *coll, pod_error *err)
{
    const int32_t nparts = coll->schedule->nparts;
    coll->work = calloc((size_t)coll->nlocal * (size_t)nparts + 1, sizeof *coll->work);
    if (!coll->work) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for work buffers; use --data none");
    }
    for (int32_t i = 0; i < coll->nlocal; i++) {
        for (int32_t part = 0; part < nparts; part++) {
            const int64_t elements =
                pod_coll_work_elements(coll->schedule, coll->chips[i].place.rank, part);
            void *buffer = malloc((size_t)(elements * coll->element_bytes) + 1);
            if (!buffer) {
                return pod_fail(err, POD_E_NOMEM,
                                "out of memory for work buffers; use --data none");
            }
            coll->work[(size_t)i * (size_t)nparts + (size_t)part] = buffer;
        }
    }
    return POD_OK;
}

pod_status pod_collective_new(const pod_collective_options *options, pod_collective **out,
                              pod_error *err)
{
    *out = NULL;
    const pod_coll_schedule *schedule = options->schedule;
    pod_collective *coll = calloc(1, sizeof *coll);
    if (!coll) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for a collective");
    }
    coll->options = *options;
    coll->schedule = schedule;
    coll->nlocal = pod_engine_cells(pod_net_engine(options->net), &coll->first);
    coll->nchannels = schedule->nchannels;
    coll->element_bytes = pod_dtype_size(options->dtype);
    pod_ready_init(&coll->pool);
    pod_map_init(&coll->far);
    pod_map_init(&coll->payloads);
    coll->channels =
        calloc((size_t)coll->nlocal * (size_t)coll->nchannels + 1, sizeof *coll->channels);
    coll->chips = calloc((size_t)coll->nlocal + 1, sizeof *coll->chips);
    coll->parts = calloc((size_t)schedule->nparts + 1, sizeof *coll->parts);
    if (!coll->channels || !coll->chips || !coll->parts) {
        pod_collective_free(coll);
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d channels on %d chips",
                        schedule->nchannels, coll->nlocal);
    }
    for (int32_t i = 0; i < schedule->nparts; i++) {
        const pod_coll_part *part = &schedule->parts[i];
        coll->parts[i] = (coll_part){
            .block_elements = part->elements / part->blocks,
            .longer = (int32_t)(part->elements % part->blocks),
            .plain_slots = schedule->ops->slot_offset ? 0 : part->blocks,
        };
    }
    const size_t nstates = (size_t)coll->nlocal * (size_t)coll->nchannels;
    for (size_t i = 0; i < nstates; i++) {
        coll->channels[i].direction = NOT_QUEUED;
    }
    for (int32_t i = 0; i < coll->nlocal; i++) {
        const int32_t chip = coll->first + i;
        pod_coll_place_make(schedule->group, schedule->group->rank_of[chip], &coll->chips[i].place);
        coll->chips[i].group = schedule->group->group_of[chip];
        for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
            coll->chips[i].ready[direction] = -1;
        }
    }
    const pod_status st = options->data ? work_allocate(coll, err) : POD_OK;
    if (st != POD_OK) {
        pod_collective_free(coll);
        return st;
    }
    *out = coll;
    return POD_OK;
}

void pod_collective_free(pod_collective *coll)
{
    if (!coll) {
        return;
    }
    for (size_t i = 0; coll->work && i < (size_t)coll->nlocal * (size_t)coll->schedule->nparts;
         i++) {
        free(coll->work[i]);
    }
    free(coll->work);
    pod_map_fini(&coll->payloads);
    pod_map_fini(&coll->far);
    pod_ready_fini(&coll->pool);
    free(coll->parts);
    free(coll->chips);
    free(coll->channels);
    free(coll);
}

void *pod_collective_work(pod_collective *coll, int32_t chip, int32_t part)
{
    return coll->work ? coll->work[(size_t)(chip - coll->first) * (size_t)coll->schedule->nparts
                                   + (size_t)part]
                      : NULL;
}
