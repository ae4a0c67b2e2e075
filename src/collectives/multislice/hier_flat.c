/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives over several slices cost without regard to slices.
 *
 * flat: two rings through all ranks in their order, one each way, half of the vector each, as on one
 * slice without wrap. Where slices meet, one chip's PCIe carries all that crosses, and every step waits for
 * the DCN's latency. All-gather, reduce-scatter: N - 1 steps; all-reduce: 2 (N - 1); a broadcast
 * passes N blocks down a line from the root. On a ring of 4, all-reduce, what rank 0 does in the first
 * half's channel (block b is rank b's):
 *     step  0 send 3 get 2   1 send 2 get 1   2 send 1 get 0   | sums: own block is whole
 *           3 send 0 get 3   4 send 3 get 2   5 send 2 get 1   | copies
 *
 * routed: every pair by itself, over ICI or DCN: permute, and all-to-all, whose small messages make it
 * slow to simulate beyond ROUTED_RANKS_MAX ranks; the hierarchical one bundles them. At a time all ranks send as many
 * slices ahead and as far inside, own slice and others alternately, so that all chips do the same.
 */
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include <math.h>
#include <stdlib.h>

enum { ROUTED_RANKS_MAX = 1024, ROUTED_CHANNELS = 8, RINGS = 2 };

static pod_status network_applies(const pod_coll_request *request, pod_error *err)
{
    return request->dcn ? POD_OK
                        : pod_fail(err, POD_E_INVALID,
                                   "a group over %d slices needs a network between them; give one",
                                   (int)request->group->slices);
}

static void schedule_free(pod_coll_schedule *schedule)
{
    pod_coll_frame_fini(schedule);
    free(schedule);
}

static pod_status frame_new(const pod_coll_request *request, const pod_coll_schedule_ops *ops,
                            const char *name, int32_t nparts, int32_t nchannels,
                            pod_coll_schedule **schedule, pod_error *err)
{
    *schedule = calloc(1, sizeof **schedule);
    if (!*schedule) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    const pod_status st =
        pod_coll_frame_init(*schedule, ops, name, request, nparts, nchannels, err);
    if (st != POD_OK) {
        free(*schedule);
        *schedule = NULL;
    }
    return st;
}

/* ---- flat ---- */

static int32_t wrapped(int64_t rank, int32_t n)
{
    return (int32_t)((rank % n + n) % n);
}

static int32_t flat_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel)
{
    const int32_t n = schedule->group->size;
    if (schedule->op != POD_BROADCAST) {
        return schedule->op == POD_ALL_REDUCE ? 2 * (n - 1) : n - 1;
    }
    (void)me;
    (void)channel;
    return n + 1;
}

/* Place of a rank down the line from the root, along the channel's way. */
static void flat_broadcast_step(const pod_coll_schedule *schedule, int32_t place, int32_t next,
                                int32_t previous, int32_t step, pod_coll_step *out)
{
    const int32_t n = schedule->group->size;
    if (place > 0 && step < n) {
        out->recv_from = previous;
        out->recv_slot = step;
    }
    if (place < n - 1 && step > 0) {
        out->send_to = next;
        out->send_step = step - 1;
        out->send_slot = step - 1;
        out->send_slots = 1;
        out->wait_recv = place > 0 ? step : 0;
    }
}

static void flat_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                      int32_t step, pod_coll_step *out)
{
    const int32_t n = schedule->group->size;
    const int way = channel == 0 ? 1 : -1;
    const int32_t next = wrapped(me->rank + way, n);
    const int32_t previous = wrapped(me->rank - way, n);
    *out = pod_coll_step_idle();
    if (schedule->op == POD_BROADCAST) {
        const int32_t place = wrapped((int64_t)way * (me->rank - schedule->root), n);
        flat_broadcast_step(schedule, place, next, previous, step, out);
        return;
    }
    const bool scatters = schedule->op != POD_ALL_GATHER && step < n - 1;
    const int32_t k = step % (n - 1);
    /* scattering, the block that leaves now still has k + 1 ranks before its own to pass */
    const int64_t sent = scatters ? me->rank - (int64_t)way * (k + 1) : me->rank - (int64_t)way * k;
    out->send_to = next;
    out->send_step = step;
    out->send_slot = wrapped(sent, n);
    out->send_slots = 1;
    out->wait_recv = step;
    out->recv_from = previous;
    out->recv_slot = wrapped(sent - way, n);
    out->recv_op = scatters ? POD_RECV_REDUCE : POD_RECV_STORE;
}

static const pod_coll_schedule_ops flat_ops = {
    .steps = flat_steps, .step = flat_step, .free = schedule_free};

static pod_status flat_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    POD_TRY(frame_new(request, &flat_ops, "flat", RINGS, RINGS, schedule, err));
    const int32_t n = request->group->size;
    pod_coll_frame_slots(*schedule, n, n);
    for (int32_t channel = 0; channel < RINGS; ++channel) {
        (*schedule)->channels[channel].max_steps = flat_steps(*schedule, NULL, channel);
    }
    return POD_OK;
}

/* A step takes the slowest pair: the one that crosses between slices. */
static pod_status flat_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    (void)err;
    const int32_t n = request->group->size;
    const double rate =
        fmin(request->dcn->options.pcie_bytes_per_s, pod_dcn_nic_bytes_per_s(request->dcn, 0, 0));
    const double block = (double)request->elements * request->element_bytes / RINGS / n;
    const int32_t steps = request->op == POD_ALL_REDUCE ? 2 * (n - 1) : n - 1;
    *prediction = (pod_coll_prediction){
        .nterms = 3,
        .term = {{"launch", request->launch_ps},
                 {"latency across slices", steps * request->dcn->options.latency_ps},
                 {"bytes across slices", pod_time_from_s(steps * block / rate)}},
    };
    for (int i = 0; i < prediction->nterms; ++i) {
        prediction->total_ps += prediction->term[i].time_ps;
    }
    return POD_OK;
}

const pod_coll_algorithm pod_coll_flat = {
    .name = "flat",
    .summary = "several slices as one long ring, for comparison",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER
           | 1U << POD_BROADCAST,
    .across_slices = true,
    .applies = network_applies,
    .predict = flat_predict,
    .build = flat_build,
};

/* ---- routed ---- */

/* A permute has a channel per target, as many as the busiest source has; all-to-all a few. */
static int32_t target_at(const pod_coll_schedule *schedule, int32_t rank, int32_t number)
{
    for (int32_t other = 0; other < schedule->group->size; ++other) {
        if (schedule->source_of[other] == rank && number-- == 0) {
            return other;
        }
    }
    return -1;
}

/* Which of its source's targets a rank is. */
static int32_t target_number(const pod_coll_schedule *schedule, int32_t rank)
{
    int32_t number = 0;
    for (int32_t other = 0; other < rank; ++other) {
        number += schedule->source_of[other] == schedule->source_of[rank] ? 1 : 0;
    }
    return number;
}

static int32_t routed_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    (void)me;
    if (schedule->op == POD_PERMUTE) {
        return 1;
    }
    const int32_t others = schedule->group->size - 1;
    return (others - channel + schedule->nchannels - 1) / schedule->nchannels;
}

static void flat_permute_step(const pod_coll_schedule *schedule, int32_t rank, int32_t channel,
                              pod_coll_step *out)
{
    out->send_to = target_at(schedule, rank, channel);
    out->send_slots = 1;
    const int32_t source = schedule->source_of[rank];
    if (source >= 0 && target_number(schedule, rank) == channel) {
        out->recv_from = source;
        out->recv_slot = 1;
    }
}

/** The rank `distance` of size - 1 away. */
static int32_t routed_displaced(const pod_group *group, int32_t rank, int32_t distance, int sign)
{
    const int32_t n = group->inside->size;
    const int32_t slices = group->slices;
    const int32_t slice = (rank / n + sign * (distance % slices) + slices) % slices;
    return slice * n + pod_coll_displaced(group->inside, rank % n, distance / slices, sign);
}

static void routed_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const int32_t n = schedule->group->size;
    *out = pod_coll_step_idle();
    out->send_step = step;
    if (schedule->op == POD_PERMUTE) {
        flat_permute_step(schedule, me->rank, channel, out);
        return;
    }
    const int32_t distance = 1 + channel + step * schedule->nchannels;
    out->send_to = routed_displaced(schedule->group, me->rank, distance, 1);
    out->send_slot = out->send_to;
    out->send_slots = 1;
    out->recv_from = routed_displaced(schedule->group, me->rank, distance, -1);
    out->recv_slot = n + out->recv_from;
}

static const pod_coll_schedule_ops routed_ops = {
    .steps = routed_steps, .step = routed_step, .free = schedule_free};

static pod_status routed_applies(const pod_coll_request *request, pod_error *err)
{
    if (request->op == POD_ALL_TO_ALL && request->group->size > ROUTED_RANKS_MAX) {
        return pod_fail(
            err, POD_E_INVALID,
            "algorithm 'routed' sends a message per pair, too many for %d chips; use hier",
            (int)request->group->size);
    }
    return network_applies(request, err);
}

static pod_status routed_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    const int32_t n = request->group->size;
    int32_t channels = n - 1 < ROUTED_CHANNELS ? n - 1 : ROUTED_CHANNELS;
    if (request->op == POD_PERMUTE) {
        const pod_coll_schedule probe = {.group = request->group, .source_of = request->source_of};
        channels = 1;
        for (int32_t rank = 0; rank < n; ++rank) {
            const int32_t number =
                request->source_of[rank] < 0 ? 0 : target_number(&probe, rank) + 1;
            channels = number > channels ? number : channels;
        }
    }
    POD_TRY(frame_new(request, &routed_ops, "routed", 1, channels, schedule, err));
    const bool permute = request->op == POD_PERMUTE;
    pod_coll_frame_slots(*schedule, permute ? 1 : n, permute ? 2 : 2 * n);
    for (int32_t channel = 0; channel < channels; ++channel) {
        (*schedule)->channels[channel].max_steps = routed_steps(*schedule, NULL, channel);
    }
    return POD_OK;
}

/* Bytes over DCN at what every chip can send at once, and the latency of a flight. */
static pod_status routed_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    (void)err;
    const double bytes = (double)request->elements * request->element_bytes;
    const double slices = request->group->slices;
    const double crossing = request->op == POD_PERMUTE ? bytes : bytes * (slices - 1.0) / slices;
    const double seconds = crossing / pod_dcn_chip_bytes_per_s(request->dcn);
    *prediction = (pod_coll_prediction){
        .nterms = 3,
        .term = {{"launch", request->launch_ps},
                 {"latency across slices", request->dcn->options.latency_ps},
                 {"bytes across slices", pod_time_from_s(seconds)}},
    };
    for (int i = 0; i < prediction->nterms; ++i) {
        prediction->total_ps += prediction->term[i].time_ps;
    }
    return POD_OK;
}

const pod_coll_algorithm pod_coll_routed = {
    .name = "routed",
    .summary = "several slices: every pair by itself",
    .ops = 1U << POD_PERMUTE | 1U << POD_ALL_TO_ALL,
    .auto_ops = POD_COLL_EVERY_OP,
    .across_slices = true,
    .applies = routed_applies,
    .predict = routed_predict,
    .build = routed_build,
};
