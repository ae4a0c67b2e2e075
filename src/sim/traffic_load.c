/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/traffic_load.h"

#include "base/rng.h"

#include <stdlib.h>

enum { STREAM_BEGINS = 3, STREAM_RECEIVER = 4 };

int64_t pod_traffic_load_cycles(const pod_traffic_load *load, int64_t *from, int64_t *to)
{
    *from = load->measured / 2;
    *to = *from + load->measured;
    return *to + load->measured / 4;
}

bool pod_traffic_load_message(const pod_traffic_load *load, int32_t chip, int64_t cycle,
                              int32_t *dst)
{
    const pod_traffic *traffic = load->traffic;
    const int32_t receivers = pod_traffic_messages(traffic, chip);
    const uint64_t index = (uint64_t)cycle * (uint64_t)traffic->slice->nchips + (uint64_t)chip;
    int64_t share = 0;
    if (receivers == 0 || pod_rng_unit(load->seed, STREAM_BEGINS, index) >= load->load) {
        return false;
    }
    const uint64_t receiver =
        pod_rng_below(load->seed, STREAM_RECEIVER, index, (uint64_t)receivers);
    pod_traffic_message(traffic, chip, (int32_t)receiver, dst, &share);
    return true;
}

/* ---- figures ---- */

void pod_traffic_tally_add(pod_traffic_tally *tally, const pod_traffic_load *load, int64_t cycle,
                           int32_t hops, pod_time_ps cycle_ps, pod_time_ps now_ps)
{
    int64_t from = 0;
    int64_t to = 0;
    (void)pod_traffic_load_cycles(load, &from, &to);
    const pod_time_ps latency_ps = now_ps - cycle * cycle_ps;
    tally->delivered++;
    tally->last_ps = now_ps > tally->last_ps ? now_ps : tally->last_ps;
    tally->accepted += now_ps >= from * cycle_ps && now_ps < to * cycle_ps;
    if (cycle >= from && cycle < to) {
        tally->messages++;
        tally->hops += hops;
        tally->latency_ps += latency_ps;
        tally->max_latency_ps =
            latency_ps > tally->max_latency_ps ? latency_ps : tally->max_latency_ps;
    }
}

static int64_t senders_count(const pod_traffic *traffic)
{
    int64_t senders = 0;
    for (int32_t chip = 0; chip < traffic->slice->nchips; chip++) {
        senders += pod_traffic_messages(traffic, chip) > 0;
    }
    return senders;
}

void pod_traffic_tally_result(const pod_traffic_tally *tally, const pod_traffic_load *load,
                              pod_time_ps cycle_ps, pod_traffic_load_result *result)
{
    const double messages = tally->messages > 0 ? (double)tally->messages : 1;
    const double room = (double)senders_count(load->traffic) * (double)load->measured;
    *result = (pod_traffic_load_result){.accepted = room > 0 ? (double)tally->accepted / room : 0,
                                        .latency_ps = (double)tally->latency_ps / messages,
                                        .latency_cycles =
                                            (double)tally->latency_ps / messages / (double)cycle_ps,
                                        .max_latency_ps = tally->max_latency_ps,
                                        .mean_hops = (double)tally->hops / messages,
                                        .messages = tally->messages,
                                        .delivered = tally->delivered,
                                        .begun = tally->begun,
                                        .end_ps = tally->last_ps,
                                        .cycle_ps = cycle_ps};
}

/* ---- fluid links ---- */

/* The messages of a chip that wait, by the cycle of the first that has not gone. */
typedef struct sender {
    int64_t next;
    int32_t under_way;
} sender;

typedef struct load_run {
    const pod_machine *machine;
    const pod_traffic_load *load;
    pod_net *net;
    int32_t first;
    int32_t nlocal;
    int64_t cycles;
    pod_time_ps cycle_ps;
    sender *senders; /* senders[local chip] */
    pod_traffic_tally tally;
} load_run;

/* The first cycle from `cycle` on in which a chip begins a message; cycles if none. */
static int64_t begin_find(const load_run *run, int32_t chip, int64_t cycle, int32_t *dst)
{
    while (cycle < run->cycles && !pod_traffic_load_message(run->load, chip, cycle, dst)) {
        cycle++;
    }
    return cycle;
}

/* Those messages go that have begun and have room; the chip wakes when the next one begins. */
static void messages_go(load_run *run, int32_t chip)
{
    sender *from = &run->senders[chip - run->first];
    const pod_time_ps now = pod_net_now(run->net);
    while (from->next < run->cycles && from->under_way < POD_TRAFFIC_LOAD_WINDOW
           && from->next * run->cycle_ps <= now) {
        int32_t dst = 0;
        pod_net_path paths[POD_NET_PATHS_MAX];
        const pod_net_tag tag = {.channel = chip, .step = (int32_t)from->next};
        (void)pod_traffic_load_message(run->load, chip, from->next, &dst);
        const int npaths = pod_traffic_paths(run->load->traffic, run->machine, chip, dst, paths);
        run->tally.begun++;
        if (npaths > 0) {
            from->under_way++;
            pod_net_send_paths(run->net, chip, paths, npaths, run->load->traffic->bytes, tag, NULL);
        } else {
            pod_traffic_tally_add(&run->tally, run->load, from->next, 0, run->cycle_ps, now);
        }
        from->next = begin_find(run, chip, from->next + 1, &dst);
    }
}

static void load_woke(void *context, int32_t chip, uint64_t cycle)
{
    load_run *run = context;
    int32_t dst = 0;
    messages_go(run, chip);
    const int64_t next = begin_find(run, chip, (int64_t)cycle + 1, &dst);
    if (next < run->cycles) {
        pod_net_wake(run->net, chip, next * run->cycle_ps, (uint64_t)next);
    }
}

static void load_sent(void *context, int32_t chip, pod_net_tag tag)
{
    load_run *run = context;
    (void)tag;
    run->senders[chip - run->first].under_way--;
    messages_go(run, chip);
}

static void load_arrived(void *context, int32_t chip, pod_net_tag tag, pod_payload *payload)
{
    load_run *run = context;
    (void)payload;
    pod_traffic_tally_add(&run->tally, run->load, tag.step,
                          pod_router_hops(run->machine->router, tag.channel, chip), run->cycle_ps,
                          pod_net_now(run->net));
}

static pod_status load_start(load_run *run, pod_error *err)
{
    run->nlocal = pod_engine_cells(pod_net_engine(run->net), &run->first);
    run->senders = calloc((size_t)run->nlocal + 1, sizeof *run->senders);
    if (run->senders == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d chips; use more ranks",
                        run->nlocal);
    }
    for (int32_t chip = run->first; chip < run->first + run->nlocal; chip++) {
        int32_t dst = 0;
        const int64_t begin = begin_find(run, chip, 0, &dst);
        run->senders[chip - run->first].next = begin;
        if (begin < run->cycles) {
            pod_net_wake(run->net, chip, begin * run->cycle_ps, (uint64_t)begin);
        }
    }
    return POD_OK;
}

/* Of all ranks. */
static void tally_sum(pod_par *par, pod_traffic_tally *tally)
{
    int64_t sums[] = {tally->messages,  tally->hops,  tally->accepted,
                      tally->delivered, tally->begun, tally->latency_ps};
    int64_t most[] = {tally->max_latency_ps, tally->last_ps};
    pod_par_sum_i64(par, sums, sizeof sums / sizeof *sums);
    pod_par_max_i64(par, most, sizeof most / sizeof *most);
    *tally = (pod_traffic_tally){.messages = sums[0],
                                 .hops = sums[1],
                                 .accepted = sums[2],
                                 .delivered = sums[3],
                                 .begun = sums[4],
                                 .latency_ps = sums[5],
                                 .max_latency_ps = most[0],
                                 .last_ps = most[1]};
}

void pod_traffic_load_need_get(const pod_machine *machine, const pod_traffic_load *load,
                               pod_traffic_need *need)
{
    enum { PATHS = 3 }; /* of a message, in the mean of large slices */
    int64_t from = 0;
    int64_t to = 0;
    const int64_t cycles = pod_traffic_load_cycles(load, &from, &to);
    need->messages = (int64_t)((double)senders_count(load->traffic) * (double)cycles * load->load);
    need->fragments = need->messages * PATHS;
    need->bytes = pod_traffic_need_bytes(machine, load->traffic->slice, need->fragments);
}

pod_status pod_traffic_load_run(const pod_machine *machine, const pod_traffic_load *load,
                                pod_traffic_load_result *result, pod_error *err)
{
    int64_t from = 0;
    int64_t to = 0;
    load_run run = {.machine = machine, .load = load};
    pod_link_summary links;
    const pod_net_client client = {
        .context = &run, .arrived = load_arrived, .sent = load_sent, .woke = load_woke};
    run.cycles = pod_traffic_load_cycles(load, &from, &to);
    run.cycle_ps = pod_rate_time_ps(pod_rate_make(machine->link_bytes_per_s), load->traffic->bytes);
    POD_TRY(pod_machine_net(machine, &client, -1, &run.net, err));
    pod_status st = pod_par_agree(machine->par, load_start(&run, err), err);
    POD_THEN(st, pod_net_run(run.net, err));
    POD_THEN(st, pod_machine_links(machine, run.net, &links, err));
    if (st == POD_OK) {
        tally_sum(machine->par, &run.tally);
        pod_traffic_tally_result(&run.tally, load, run.cycle_ps, result);
        result->links = links;
    }
    free(run.senders);
    pod_net_free(run.net);
    return st;
}
