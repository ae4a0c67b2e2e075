/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective_impl.h"

#include "engine/pages.h"

#include <stdio.h>
#include <stdlib.h>

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
    coll->tells_crossing = options->crossing && schedule->group->slices > 1;
    coll->nwords = (coll->nchannels + 63) / 64;
    pod_map_init(&coll->far);
    pod_map_init(&coll->payloads);
    coll->channels =
        pod_pages_new((size_t)coll->nlocal * (size_t)coll->nchannels + 1, sizeof *coll->channels);
    coll->chips = pod_pages_new((size_t)coll->nlocal + 1, sizeof *coll->chips);
    coll->ranks = calloc((size_t)coll->nlocal + 1, sizeof *coll->ranks);
    coll->parts = calloc((size_t)schedule->nparts + 1, sizeof *coll->parts);
    const bool ordered = schedule->ordered;
    if (ordered) {
        coll->ready = calloc((size_t)coll->nlocal * POD_DIRECTIONS * (size_t)coll->nwords + 1,
                             sizeof *coll->ready);
    }
    if (ordered && options->data) {
        coll->held =
            calloc((size_t)coll->nlocal * (size_t)coll->nchannels + 1, sizeof(pod_payload *));
    }
    if ((ordered && (!coll->ready || (options->data && !coll->held))) || !coll->channels
        || !coll->chips || !coll->ranks || !coll->parts) {
        pod_collective_free(coll);
        return pod_fail(err, POD_E_NOMEM,
                        "out of memory for %d channels on every chip; use more ranks",
                        schedule->nchannels);
    }
    parts_fill(coll);
    const size_t nstates = (size_t)coll->nlocal * (size_t)coll->nchannels;
    for (size_t i = 0; i < nstates; i++) {
        coll->channels[i].direction = NOT_QUEUED;
    }
    for (int32_t i = 0; i < coll->nlocal; i++) {
        const int32_t chip = pod_machine_chip(options->machine, coll->first + i);
        pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, chip),
                            &coll->chips[i].place);
        coll->ranks[i] = coll->chips[i].place.rank;
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
    free(coll->held);
    free(coll->ready);
    free(coll->parts);
    free(coll->ranks);
    free(coll->chips);
    free(coll->channels);
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
    const coll_chip *state = &coll->chips[cell - coll->first];
    if (!state->started || state->channels_left == 0) {
        return false;
    }
    for (int32_t channel = 0; channel < coll->nchannels; channel++) {
        const coll_channel *ch =
            &coll->channels[(size_t)(cell - coll->first) * (size_t)coll->nchannels
                            + (size_t)channel];
        if (ch->received == ch->steps && !ch->sending) {
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
