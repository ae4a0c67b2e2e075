/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast in many chunks, each by a tree of its own: every link that is free takes the chunk that fewest ranks have.
 *
 * Trees that are planned before they are followed know how many of them share a link, and not when: a chunk waits for
 * others, or a link for chunks. Here trees grow as the clock goes (embedding/spread.h), so every link begins as soon
 * as there is something for it and goes on. What no broadcast is faster than is S over the root's links and the hops
 * to the farthest rank, and this comes within a few percent of their sum.
 *
 * Channels are ways: two along each axis. Each holds the messages of a link in their order, so links carry one at a
 * time, and none that is slower makes another one sooner.
 *
 * The number of chunks depends on the slice, and not on the size of a vector unless it is large, or a few bytes more
 * would be faster. Where blocks may not be cut into less than so many bytes, there are as many as trees, or as fit.
 *
 * A worse cable is not to help. On a slice with slow links two plans are followed: one that takes all links for
 * equally fast, as on a slice without faults, and one that does without the slow ones. And small groups of a slice
 * without faults try to do without each cable, since of two cables between the same chips one may be better left
 * alone.
 *
 * Example, 4 in a row (open), root 1, chunks a b:
 *     channel  step   rank 0          rank 1        rank 2                rank 3
 *       +        0    -               send a to 2   a from 1; send a to 3   a from 2
 *                1    -               send b to 2   b from 1; send b to 3   b from 2
 *       -        0    a from 1        send a to 0   -                     -
 *                1    b from 1        send b to 0   -                     -
 */
#include "collectives/embedding/spread.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>

enum {
    RAREST_RANKS_MAX = 512,
    RAREST_FEW_CHUNKS = 512, /* and messages: of vectors of any size, */
    RAREST_FEW_MESSAGES = 1 << 14,
    RAREST_CHUNKS_MAX = 1024, /* and of large ones */
    RAREST_MESSAGES_MAX = 1 << 16,
    RAREST_TRIED_MESSAGES = 1 << 16, /* each cable is left out in turn if that takes no more */
    RAREST_UNCUT_CHUNKS = 36         /* as many as tree has trees */
};

/* Chunks of large vectors take this much of a hop. */
static const double chunk_hops = 0.25;

typedef struct rarest_schedule {
    pod_coll_schedule base;
    pod_coll_axes axes;
    pod_spread spread;
} rarest_schedule;

static int32_t rarest_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    const pod_spread *spread = &((const rarest_schedule *)schedule)->spread;
    const int32_t *first = &spread->first_step[me->rank * spread->nways + channel];
    return first[1] - first[0];
}

static void rarest_send(const rarest_schedule *self, int32_t rank, int32_t channel,
                        const pod_spread_message *message, pod_coll_step *out)
{
    const pod_spread *spread = &self->spread;
    const pod_coll_hop *hop = &self->axes.hop[message->link];
    out->send_to = hop->rank;
    out->send_direction = hop->direction;
    out->send_step = message->recv_step;
    out->send_slot = message->chunk;
    out->send_slots = 1;
    const int32_t brought = spread->brought[(int64_t)rank * spread->chunks + message->chunk];
    if (brought < 0) {
        return;
    }
    const int32_t way = spread->message[brought].link % spread->nways;
    const int32_t receives = spread->message[brought].recv_step + 1;
    if (way == channel) {
        out->wait_recv = receives;
    } else {
        out->wait[0] = (pod_coll_wait){way, receives};
    }
}

static void rarest_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const rarest_schedule *self = (const rarest_schedule *)schedule;
    const pod_spread *spread = &self->spread;
    const int32_t first = spread->first_step[me->rank * spread->nways + channel];
    const pod_spread_step *what = &spread->step[first + step];
    *out = pod_coll_step_idle();
    if (what->sent >= 0) {
        rarest_send(self, me->rank, channel, &spread->message[what->sent], out);
    }
    if (what->received >= 0) {
        const pod_spread_message *message = &spread->message[what->received];
        out->recv_from = message->link / spread->nways;
        out->recv_slot = message->chunk;
    }
}

static void rarest_free(pod_coll_schedule *schedule)
{
    rarest_schedule *self = (rarest_schedule *)schedule;
    pod_spread_fini(&self->spread);
    pod_coll_axes_fini(&self->axes);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops rarest_ops = {.steps = rarest_steps,
                                                 .step = rarest_step,
                                                 .slot_offset = pod_coll_frame_equal_offset,
                                                 .free = rarest_free};

static int32_t rarest_chunks(const pod_coll_request *request)
{
    const int32_t n = request->group->size;
    const double bytes = (double)request->elements * request->element_bytes;
    const double chunk_bytes =
        chunk_hops * pod_time_to_s(request->hop_latency_ps) * request->link_rate.bytes_per_s;
    const int32_t most = (int32_t)pod_min_i64(RAREST_CHUNKS_MAX, RAREST_MESSAGES_MAX / n);
    const int32_t few = (int32_t)pod_min_i64(RAREST_FEW_CHUNKS, RAREST_FEW_MESSAGES / n);
    const bool large = bytes > few * chunk_bytes;
    const int32_t wanted = !large                       ? few
                           : bytes < most * chunk_bytes ? (int32_t)(bytes / chunk_bytes)
                                                        : most;
    const int32_t uncut = (int32_t)pod_min_i64(wanted, RAREST_UNCUT_CHUNKS);
    const int32_t cut = pod_coll_cuts_max(request, bytes, wanted);
    const int32_t chunks = cut > uncut ? cut : uncut;
    return request->elements >= chunks ? chunks
           : request->elements > 0     ? (int32_t)request->elements
                                       : 1;
}

/* Links that are slow. @param[out] slow  slow[link] @param[out] any  there are some */
static pod_status rarest_slow(const pod_coll_request *request, const pod_coll_axes *axes,
                              bool *slow, bool *any, pod_error *err)
{
    double *slowness = NULL;
    POD_TRY(pod_coll_axes_slowness(axes, request, &slowness, err));
    *any = slowness != NULL;
    for (int32_t link = 0; *any && link < axes->nranks * axes->naxes * 2; ++link) {
        slow[link] = slowness[link] > 1.0;
    }
    free(slowness);
    return POD_OK;
}

/* The spread that is done first, of all links and of all but those of a cable. */
static pod_status rarest_best(const pod_spread_args *args, bool *left_out, pod_spread *best,
                              pod_error *err)
{
    const int32_t ways = 2 * args->axes->naxes;
    const int32_t links = args->axes->nranks * ways;
    pod_spread_args tried = *args;
    tried.left_out = left_out;
    POD_TRY(pod_spread_grow(best, args, err));
    for (int32_t link = 0; link < links; link += 2) { /* + directions */
        const int32_t to = args->axes->hop[link].rank;
        const int32_t back = to * ways + (link % ways ^ 1);
        pod_spread spread;
        if (to < 0) {
            continue;
        }
        left_out[link] = true;
        left_out[back] = true;
        const pod_status st = pod_spread_grow(&spread, &tried, err);
        left_out[link] = false;
        left_out[back] = false;
        if (st != POD_OK) {
            return st;
        }
        if (spread.count == best->count && spread.end_ps < best->end_ps) {
            pod_spread_fini(best);
            *best = spread;
        } else {
            pod_spread_fini(&spread);
        }
    }
    return POD_OK;
}

/* @param around       without slow links
 * @param[out] found  false: there are none, or others don't reach everyone */
static pod_status rarest_spread(const pod_coll_request *request, const pod_coll_axes *axes,
                                bool around, bool *left_out, pod_spread *spread, bool *found,
                                pod_error *err)
{
    const int32_t chunks = rarest_chunks(request);
    const int64_t elements = pod_ceil_div(request->elements, chunks);
    const int64_t tried = (int64_t)axes->nranks * chunks * axes->nranks * axes->naxes;
    const pod_spread_args args = {
        .axes = axes,
        .left_out = around ? left_out : NULL,
        .root = request->root,
        .chunks = chunks,
        .chunk_ps = pod_rate_time_ps(request->link_rate, elements * request->element_bytes),
        .hop_ps = request->hop_latency_ps};
    *found = true;
    if (around) {
        POD_TRY(rarest_slow(request, axes, left_out, found, err));
    }
    if (*found && around) {
        POD_TRY(pod_spread_reaches(&args, found, err));
    }
    if (*found && request->slice->nfaults == 0 && tried <= RAREST_TRIED_MESSAGES) {
        return rarest_best(&args, left_out, spread, err);
    }
    return *found ? pod_spread_grow(spread, &args, err) : POD_OK;
}

/* What the schedule says of itself, once messages are known. */
static void rarest_fill(rarest_schedule *self)
{
    const pod_spread *spread = &self->spread;
    for (int32_t way = 0; way < spread->nways; ++way) {
        pod_coll_channel *channel = &self->base.channels[way];
        channel->part = 0;
        for (int32_t rank = 0; rank < spread->nranks; ++rank) {
            const int32_t *first = &spread->first_step[rank * spread->nways + way];
            const int32_t steps = first[1] - first[0];
            channel->max_steps = steps > channel->max_steps ? steps : channel->max_steps;
        }
    }
    pod_coll_frame_slots(&self->base, spread->chunks, spread->chunks);
    self->base.ordered = true;
    self->base.exclusive = true;
}

/* @param around         without slow links
 * @param[out] schedule  NULL: there are none, or others don't reach everyone */
static pod_status rarest_plan(const pod_coll_request *request, bool around,
                              pod_coll_schedule **schedule, pod_error *err)
{
    rarest_schedule *self = calloc(1, sizeof *self);
    *schedule = NULL;
    if (self == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    bool found = false;
    bool *left_out = NULL;
    pod_status st = pod_coll_axes_init(&self->axes, request, err);
    const int32_t ways = 2 * self->axes.naxes;
    POD_THEN(st,
             pod_coll_frame_init(&self->base, &rarest_ops, "rarest_first", request, 1, ways, err));
    if (st == POD_OK) {
        left_out = calloc((size_t)ways * (size_t)self->axes.nranks + 1, sizeof *left_out);
        st = left_out != NULL
                 ? rarest_spread(request, &self->axes, around, left_out, &self->spread, &found, err)
                 : pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    free(left_out);
    if (st != POD_OK || !found) {
        rarest_free(&self->base);
        return st;
    }
    rarest_fill(self);
    *schedule = &self->base;
    return POD_OK;
}

/* Both plans where links are slow, of which the faster one counts. */
static pod_status rarest_choose(const pod_coll_request *request, pod_coll_fastest *fastest,
                                pod_error *err)
{
    pod_coll_request asked = *request;
    *fastest = (pod_coll_fastest){.schedule = NULL};
    for (int around = 0; around < 2; ++around) {
        pod_coll_schedule *schedule = NULL;
        pod_coll_estimate estimate = {0};
        pod_status st = around == 0 || request->slice->nfaults > 0
                            ? rarest_plan(request, around > 0, &schedule, err)
                            : POD_OK;
        if (st == POD_OK && schedule != NULL) {
            st = pod_coll_estimate_get(&asked, schedule, false, &estimate, err);
        }
        if (st != POD_OK) {
            pod_coll_schedule_free(schedule);
            pod_coll_schedule_free(fastest->schedule);
            return st;
        }
        if (schedule != NULL) {
            pod_coll_fastest_offer(fastest, schedule, &estimate, &asked);
        }
    }
    return POD_OK;
}

static pod_status rarest_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    bool reaches = false;
    const pod_spread_args args = {.axes = &axes, .root = request->root};
    if (request->group->size > RAREST_RANKS_MAX) {
        return pod_fail(
            err, POD_E_INVALID,
            "rarest_first walks through all messages of up to %d chips, not %d; use tree",
            RAREST_RANKS_MAX, (int)request->group->size);
    }
    pod_status st = pod_coll_axes_init(&axes, request, err);
    POD_THEN(st, pod_spread_reaches(&args, &reaches, err));
    pod_coll_axes_fini(&axes);
    return st != POD_OK || reaches
               ? st
               : pod_fail(err, POD_E_INVALID,
                          "rarest_first needs groups whose chips are joined by links of their own; "
                          "use tree");
}

static pod_status rarest_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    pod_coll_fastest fastest;
    POD_TRY(rarest_choose(request, &fastest, err));
    *schedule = fastest.schedule;
    return POD_OK;
}

static pod_status rarest_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_coll_fastest fastest;
    POD_TRY(rarest_choose(request, &fastest, err));
    pod_coll_prediction_from(request, &fastest.estimate, prediction);
    pod_coll_schedule_free(fastest.schedule);
    return POD_OK;
}

const pod_coll_algorithm pod_coll_rarest_first = {
    .name = "rarest_first",
    .summary = "every free link takes the chunk that fewest chips have",
    .ops = 1U << POD_BROADCAST,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = rarest_applies,
    .predict = rarest_predict,
    .build = rarest_build,
};
