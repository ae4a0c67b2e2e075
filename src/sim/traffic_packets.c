/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/traffic_packets.h"

#include "base/rng.h"
#include "net/packets.h"

#include <stdlib.h>

enum { STREAM_TIES = 5, TIES = 1 << POD_AXES };

static int32_t axis_hops(const pod_slice *slice, int axis, int32_t from, int32_t to)
{
    const int32_t apart = from < to ? to - from : from - to;
    const int32_t around = slice->dims[axis] - apart;
    const bool closed = ((pod_slice_closed_axes(slice) >> axis) & 1U) != 0;
    return closed && around < apart ? around : apart;
}

static int32_t hops_between(const pod_slice *slice, int32_t src, int32_t dst)
{
    int32_t from[POD_AXES];
    int32_t to[POD_AXES];
    int32_t hops = 0;
    pod_slice_coords(slice, src, from);
    pod_slice_coords(slice, dst, to);
    for (int axis = 0; axis < POD_AXES; axis++) {
        hops += axis_hops(slice, axis, from[axis], to[axis]);
    }
    return hops;
}

static void links_summarize(const pod_packets *packets, const pod_slice *slice, int64_t flit_bytes,
                            pod_time_ps cycle_ps, pod_link_summary *links)
{
    *links = (pod_link_summary){.busiest_chip = -1, .dcn_busiest_slice = -1};
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
            const int64_t carried = pod_packets_carried(packets, chip, direction);
            const int64_t bytes = carried * flit_bytes;
            links->hops += carried;
            links->total_bytes += bytes;
            links->direction_bytes[direction] += bytes;
            if (bytes > links->max_bytes) {
                links->max_bytes = bytes;
                links->busiest_bytes = bytes;
                links->busiest_chip = chip;
                links->busiest_direction = direction;
                links->busy_ps = carried * cycle_ps;
            }
        }
    }
}

pod_status pod_traffic_packets_check(const pod_traffic_packets *how, const pod_traffic *traffic,
                                     double load, pod_error *err)
{
    const pod_slice *slice = traffic->slice;
    const pod_packets_options options = {.slice = slice, .vcs = how->vcs, .buffer = how->buffer};
    const double flits = (double)traffic->bytes / (double)how->flit_bytes * slice->nchips;
    POD_TRY(pod_packets_check(&options, err));
    return load == 0 && flits > POD_TRAFFIC_FLITS_MAX
               ? pod_fail(err, POD_E_RANGE,
                          "%.0f flits are more than the %d that packets are simulated for; give "
                          "fewer --bytes or a larger --flit-bytes",
                          flits, POD_TRAFFIC_FLITS_MAX)
               : POD_OK;
}

/* ---- a burst ---- */

typedef struct burst {
    const pod_traffic *traffic;
    pod_packets *packets;
    int ends;
    int64_t flit_bytes;
    int64_t messages;
    int64_t hops;
    int64_t sent; /* flits */
    int32_t farthest;
} burst;

static void burst_delivered(void *context, int64_t message)
{
    (void)context;
    (void)message;
}

/* The flits of a chip's messages that leave it: the first of each, then the second, and so on. */
static pod_status burst_send(burst *b, int32_t chip, pod_error *err)
{
    const int32_t messages = pod_traffic_messages(b->traffic, chip);
    bool more = true;
    for (int64_t flit = 0; more; flit++) {
        more = false;
        for (int32_t i = 0; i < messages; i++) {
            int32_t dst;
            int64_t bytes;
            pod_traffic_message(b->traffic, chip, i, &dst, &bytes);
            if (dst != chip && flit < pod_ceil_div(bytes, b->flit_bytes)) {
                const unsigned ties =
                    (unsigned)pod_rng_below(0, STREAM_TIES, (uint64_t)b->sent, TIES);
                POD_TRY(pod_packets_send(b->packets, chip, dst, (int)((i + flit) % b->ends), ties,
                                         b->sent++, err));
                more = true;
            }
            if (flit == 0) {
                const int32_t hops = hops_between(b->traffic->slice, chip, dst);
                b->messages++;
                b->hops += hops;
                b->farthest = hops > b->farthest ? hops : b->farthest;
            }
        }
    }
    return POD_OK;
}

pod_status pod_traffic_packets_run(const pod_traffic_packets *how, const pod_traffic *traffic,
                                   pod_traffic_result *result, pod_error *err)
{
    const pod_slice *slice = traffic->slice;
    const pod_time_ps cycle_ps = pod_rate_time_ps(how->link_rate, how->flit_bytes);
    burst b = {.traffic = traffic, .ends = 2 * slice->naxes, .flit_bytes = how->flit_bytes};
    const pod_packets_options options = {.slice = slice,
                                         .ends = b.ends,
                                         .vcs = how->vcs,
                                         .buffer = how->buffer,
                                         .delivered = burst_delivered};
    *result = (pod_traffic_result){.time_ps = 0};
    POD_TRY(pod_packets_new(&options, &b.packets, err));
    pod_status st = POD_OK;
    for (int32_t chip = 0; chip < slice->nchips && st == POD_OK; chip++) {
        st = burst_send(&b, chip, err);
    }
    while (st == POD_OK && pod_packets_waiting(b.packets) > 0) {
        pod_packets_step(b.packets);
    }
    if (st == POD_OK) {
        const int64_t first = POD_PACKETS_HOP_CYCLES * (b.farthest + 1) + POD_PACKETS_END_CYCLES;
        /* what arrived in the last cycle arrived before it was counted */
        const int64_t cycles = b.sent > 0 ? pod_packets_now(b.packets) - 1 : 0;
        result->messages = b.messages;
        result->mean_hops = b.messages > 0 ? (double)b.hops / (double)b.messages : 0;
        result->time_ps = b.messages > 0 ? how->launch_ps + cycles * cycle_ps : 0;
        result->first_byte_ps =
            b.messages > 0 ? how->launch_ps + (b.sent > 0 ? first : 0) * cycle_ps : 0;
        links_summarize(b.packets, slice, how->flit_bytes, cycle_ps, &result->links);
    }
    pod_packets_free(b.packets);
    return st;
}

/* ---- open-loop ---- */

typedef struct packet_load {
    const pod_traffic_load *load;
    pod_packets *packets;
    pod_time_ps cycle_ps;
    pod_traffic_tally tally;
} packet_load;

/* A message is named by its cycle and its hops. */
enum { HOPS_MAX = 1 << 16 };

static void packet_delivered(void *context, int64_t message)
{
    packet_load *run = context;
    pod_traffic_tally_add(&run->tally, run->load, message / HOPS_MAX, (int32_t)(message % HOPS_MAX),
                          run->cycle_ps, pod_packets_now(run->packets) * run->cycle_ps);
}

/* The messages that begin in a cycle. */
static pod_status cycle_begin(packet_load *run, int64_t cycle, pod_error *err)
{
    const pod_slice *slice = run->load->traffic->slice;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        int32_t dst;
        if (pod_traffic_load_message(run->load, chip, cycle, &dst)) {
            const uint64_t index = (uint64_t)(cycle * slice->nchips + chip);
            const unsigned ties =
                (unsigned)pod_rng_below(run->load->seed, STREAM_TIES, index, TIES);
            run->tally.begun++;
            POD_TRY(pod_packets_send(run->packets, chip, dst, 0, ties,
                                     cycle * HOPS_MAX + hops_between(slice, chip, dst), err));
        }
    }
    return POD_OK;
}

pod_status pod_traffic_packets_load(const pod_traffic_packets *how, const pod_traffic_load *load,
                                    pod_traffic_load_result *result, pod_error *err)
{
    const pod_slice *slice = load->traffic->slice;
    const int64_t bytes = load->traffic->bytes;
    int64_t from = 0;
    int64_t to = 0;
    const int64_t cycles = pod_traffic_load_cycles(load, &from, &to);
    packet_load run = {.load = load, .cycle_ps = pod_rate_time_ps(how->link_rate, bytes)};
    const pod_packets_options options = {.slice = slice,
                                         .ends = 1,
                                         .vcs = how->vcs,
                                         .buffer = how->buffer,
                                         .context = &run,
                                         .delivered = packet_delivered};
    POD_TRY(pod_packets_new(&options, &run.packets, err));
    pod_status st = POD_OK;
    for (int64_t cycle = 0;
         st == POD_OK && (cycle < cycles || pod_packets_waiting(run.packets) > 0); cycle++) {
        st = cycle < cycles ? cycle_begin(&run, cycle, err) : POD_OK;
        pod_packets_step(run.packets);
    }
    if (st == POD_OK) {
        pod_traffic_tally_result(&run.tally, load, run.cycle_ps, result);
        links_summarize(run.packets, slice, bytes, run.cycle_ps, &result->links);
    }
    pod_packets_free(run.packets);
    return st;
}
