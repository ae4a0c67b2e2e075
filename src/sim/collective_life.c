/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective_state.h"

#include "engine/pages.h"

#include <stdio.h>
#include <stdlib.h>

/* What a chip has of more than this is not worth bringing near as a whole. */
enum { NEAR_BYTES = 1024 };

static pod_status work_allocate(pod_collective *coll, pod_error *err)
{
    const int32_t nparts = coll->schedule->nparts;
    coll->work = calloc((size_t)coll->nlocal * (size_t)nparts + 1, sizeof *coll->work);
    if (!coll->work) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for work buffers; use --data none");
    }
    for (int32_t i = 0; i < coll->nlocal; i++) {
        for (int32_t part = 0; part < nparts; part++) {
            const int64_t elements = pod_coll_work_elements(coll->schedule, coll->ranks[i], part);
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

/* Sizes of the parts, ready for the hot path. */
static void parts_fill(pod_collective *coll)
{
    const pod_coll_schedule *schedule = coll->schedule;
    for (int32_t i = 0; i < schedule->nparts; i++) {
        const pod_coll_part *part = &schedule->parts[i];
        coll->parts[i] = (coll_part){
            .block_elements = part->elements / part->blocks,
            .longer = (int32_t)(part->elements % part->blocks),
            .plain_slots = schedule->ops->slot_offset ? 0 : part->blocks,
        };
    }
}

void pod_collective_near(const pod_collective *coll)
{
    pod_engine *engine = pod_net_engine(coll->options.net);
    const size_t bytes = coll->chip_bytes < NEAR_BYTES ? coll->chip_bytes : NEAR_BYTES;
    pod_engine_near_add(engine, (pod_engine_near){.base = coll->chips,
                                                  .stride_bytes = (int32_t)coll->chip_bytes,
                                                  .bytes = (int32_t)bytes});
    const pod_coll_near *near = &coll->schedule->near;
    if (near->base) {
        pod_engine_near_add(engine, (pod_engine_near){.base = near->base,
                                                      .index = coll->ranks,
                                                      .stride_bytes = near->stride_bytes,
                                                      .bytes = near->stride_bytes});
    }
}

/* Whole cache lines for each chip. */
static size_t chip_bytes(const pod_collective *coll)
{
    const size_t sets = coll->schedule->ordered ? 1 + POD_DIRECTIONS : 1;
    const size_t bytes = sizeof(coll_chip) + (size_t)coll->nchannels * sizeof(coll_channel)
                         + sets * (size_t)coll->nwords * sizeof(uint64_t);
    return pod_whole_lines(bytes);
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
    coll->exclusive = schedule->exclusive && pod_net_is_exclusive(options->net);
    coll->tells_crossing = options->crossing && schedule->group->slices > 1;
    coll->nwords = (coll->nchannels + 63) / 64;
    coll->chip_bytes = chip_bytes(coll);
    pod_map_init(&coll->arrived);
    pod_map_init(&coll->payloads);
    const size_t nlocal = (size_t)coll->nlocal;
    const size_t nchannels = nlocal * (size_t)coll->nchannels;
    coll->chips = pod_pages_new(nlocal + 1, coll->chip_bytes);
    coll->rare = calloc(nchannels + 1, sizeof *coll->rare);
    coll->ranks = calloc((size_t)coll->nlocal + 1, sizeof *coll->ranks);
    coll->parts = calloc((size_t)schedule->nparts + 1, sizeof *coll->parts);
    const bool holds = schedule->ordered && options->data;
    coll->held = holds ? calloc(nchannels + 1, sizeof(pod_payload *)) : NULL;
    if (!coll->chips || !coll->rare || !coll->ranks || !coll->parts || (holds && !coll->held)) {
        pod_collective_free(coll);
        return pod_fail(err, POD_E_NOMEM,
                        "out of memory for %d channels on every chip; use more ranks",
                        schedule->nchannels);
    }
    parts_fill(coll);
    for (int32_t i = 0; i < coll->nlocal; i++) {
        coll_chip *state = chip_at(coll, coll->first + i);
        const int32_t chip = pod_machine_chip(options->machine, coll->first + i);
        pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, chip), &state->place);
        coll->ranks[i] = state->place.rank;
        for (int32_t channel = 0; channel < coll->nchannels; channel++) {
            state->channels[channel].direction = NOT_QUEUED;
            coll->rare[(size_t)i * (size_t)coll->nchannels + (size_t)channel].first_watcher = -1;
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
    pod_map_fini(&coll->arrived);
    free(coll->held);
    free(coll->parts);
    free(coll->ranks);
    free(coll->chips);
    free(coll->rare);
    free(coll);
}

void *pod_collective_work(pod_collective *coll, int32_t cell, int32_t part)
{
    return coll->work ? coll->work[(size_t)(cell - coll->first) * (size_t)coll->schedule->nparts
                                   + (size_t)part]
                      : NULL;
}

bool pod_collective_blocked(const pod_collective *coll, int32_t cell, char *text, size_t size)
{
    const coll_chip *state = chip_at(coll, cell);
    if (!state->started || state->channels_left == 0) {
        return false;
    }
    for (int32_t channel = 0; channel < coll->nchannels; channel++) {
        const coll_channel *ch = &state->channels[channel];
        if (ch->received == ch->steps && !is_sending(ch, pod_net_now(coll->options.net))) {
            continue;
        }
        pod_coll_step step;
        coll->schedule->ops->step(coll->schedule, &state->place, channel, ch->received, &step);
        const int32_t chip = pod_machine_chip(coll->options.machine, cell);
        const int32_t from =
            step.recv_from < 0 ? chip : pod_group_chip(coll->schedule->group, chip, step.recv_from);
        (void)snprintf(text, size, "chip %d waits for chip %d in channel %d, step %d of %d", chip,
                       from, channel, ch->received, ch->steps);
        return true;
    }
    return false;
}
