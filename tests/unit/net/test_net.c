/* SPDX-License-Identifier: Apache-2.0 */
/* A line of cells joined by links of 1 GB/s and 1 us: port 0 leads up, port 1 down. */
#include "net/net.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 5, SENDS_MAX = 8, UP = 0, DOWN = 1 };

typedef struct send {
    int32_t cell;
    pod_time_ps time_ps;
    int64_t bytes;
    int32_t hops; /* up */
    int paths;    /* the same path so many times */
    bool shared;  /* at half the rate */
} send;

typedef struct scene {
    pod_net *net;
    const send *sends;
    int count;
    pod_time_ps arrived_ps[SENDS_MAX];
    pod_time_ps sent_ps[SENDS_MAX];
    int32_t at[SENDS_MAX];
    int64_t first_link_bytes;
} scene;

static int line_ports(void *context, int32_t cell, pod_net_port *ports)
{
    (void)context;
    const pod_net_port port = {.rate = pod_rate_make(1e9),
                               .shared_rate = pod_rate_make(0.5e9),
                               .latency_ps = POD_PS_PER_US};
    ports[UP] = port;
    ports[UP].peer = cell + 1 < CELLS ? cell + 1 : -1;
    ports[DOWN] = port;
    ports[DOWN].peer = cell - 1;
    return 2;
}

static void on_arrived(void *context, int32_t cell, pod_net_tag tag, pod_payload *payload)
{
    (void)payload;
    scene *s = context;
    cr_assert_eq(s->arrived_ps[tag.step], 0, "arrives once");
    s->arrived_ps[tag.step] = pod_net_now(s->net);
    s->at[tag.step] = cell;
}

static void on_sent(void *context, int32_t cell, pod_net_tag tag)
{
    (void)cell;
    scene *s = context;
    cr_assert_eq(s->sent_ps[tag.step], 0, "leaves once");
    s->sent_ps[tag.step] = pod_net_now(s->net);
}

static void on_woke(void *context, int32_t cell, uint64_t argument)
{
    scene *s = context;
    const send *what = &s->sends[argument];
    const pod_net_tag tag = {.kind = 1,
                             .instance = 70000,
                             .channel = 9,
                             .step = (int32_t)argument,
                             .shared = what->shared};
    pod_net_path paths[4];
    memset(paths, 0, sizeof paths);
    for (int i = 0; i < what->paths; i++) {
        cr_assert(pod_net_path_append(&paths[i], UP, what->hops));
    }
    pod_net_send_paths(s->net, cell, paths, what->paths, what->bytes, tag, NULL);
}

static scene play(const send *sends, int count)
{
    scene s = {.sends = sends, .count = count};
    pod_par *par = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_par_start(NULL, NULL, &par, &err), POD_OK, "%s", err.text);
    const pod_net_client client = {
        .context = &s, .arrived = on_arrived, .sent = on_sent, .woke = on_woke};
    const pod_net_options options = {
        .engine = {.ncells = CELLS, .lookahead_ps = POD_PS_PER_US},
        .ports = line_ports,
        .client = &client,
    };
    cr_assert_eq(pod_net_new(par, &options, &s.net, &err), POD_OK, "%s", err.text);
    for (int i = 0; i < count; i++) {
        pod_net_wake(s.net, sends[i].cell, sends[i].time_ps, (uint64_t)i);
    }
    cr_assert_eq(pod_net_run(s.net, &err), POD_OK, "%s", err.text);
    pod_net_link_record *records = NULL;
    cr_assert_eq(pod_net_records(par, s.net, &records, &err), POD_OK, "%s", err.text);
    s.first_link_bytes = records[UP].bytes;
    for (int i = 0; i < CELLS * POD_NET_PORTS_MAX; i++) {
        cr_assert(i % POD_NET_PORTS_MAX < 2 || records[i].bytes == 0, "a cell has two ports");
    }
    free(records);
    pod_net_free(s.net);
    pod_par_stop(par);
    return s;
}

#define US(x) ((pod_time_ps)((x)*POD_PS_PER_US))

Test(sim_net, one_message_takes_its_hops_and_its_bytes)
{
    const send sends[] = {
        {.cell = 0, .bytes = 5000, .hops = 4, .paths = 1}
    };
    const scene s = play(sends, 1);
    cr_assert_eq(s.arrived_ps[0], US(4 + 5), "cut through: not four times the bytes");
    cr_assert_eq(s.sent_ps[0], US(5));
    cr_assert_eq(s.at[0], 4);
}

Test(sim_net, an_empty_message_takes_its_hops)
{
    const send sends[] = {
        {.cell = 1, .bytes = 0, .hops = 3, .paths = 1}
    };
    cr_assert_eq(play(sends, 1).arrived_ps[0], US(3));
}

Test(sim_net, two_messages_share_a_link_fairly)
{
    const send sends[] = {
        {.cell = 0, .bytes = 4000, .hops = 1, .paths = 1},
        {.cell = 0, .bytes = 2000, .hops = 1, .paths = 1}
    };
    const scene s = play(sends, 2);
    cr_assert_eq(s.arrived_ps[1], US(4 + 1), "2000 bytes at half the rate");
    cr_assert_eq(s.arrived_ps[0], US(6 + 1), "half the rate for 4 us, then all of it");
}

/* 4000 bytes at half the rate are 8 us of work, on both links of the way; alone or beside others. */
Test(sim_net, a_shared_message_is_served_as_if_longer_and_recorded_as_it_is)
{
    const send sends[] = {
        {.cell = 0, .bytes = 4000, .hops = 2, .paths = 1, .shared = true},
        {.cell = 1, .bytes = 1,    .hops = 1, .paths = 2, .shared = true}
    };
    const scene s = play(sends, 1);
    cr_assert_eq(s.arrived_ps[0], US(2 + 8));
    cr_assert_eq(s.first_link_bytes, 4000);
    cr_assert_eq(play(sends + 1, 1).arrived_ps[0], US(1) + 2 * POD_PS_PER_NS);
    const send both[] = {
        {.cell = 0, .bytes = 4000, .hops = 1, .paths = 1,            .shared = true},
        {.cell = 0,         .bytes = 2000,              .hops = 1,  .paths = 1}
    };
    const scene fair = play(both, 2);
    cr_assert_eq(fair.arrived_ps[1], US(4 + 1), "half the link for 2 us of work");
    cr_assert_eq(fair.arrived_ps[0], US(10 + 1), "8 us of work beside 2 us");
    cr_assert_eq(fair.first_link_bytes, 6000);
}

Test(sim_net, a_late_message_gets_its_share_at_once)
{
    const send sends[] = {
        {.cell = 0,         .bytes = 8000, .hops = 1, .paths = 1},
        { .cell = 0, .time_ps = US(2), .bytes = 1000, .hops = 1, .paths = 1}
    };
    const scene s = play(sends, 2);
    cr_assert_eq(s.arrived_ps[1], US(2 + 2 + 1));
    cr_assert_eq(s.arrived_ps[0], US(9 + 1));
}

Test(sim_net, a_message_that_passes_through_shares_too)
{
    const send sends[] = {
        {.cell = 0,         .bytes = 6000, .hops = 2, .paths = 1},
        { .cell = 1, .time_ps = US(1), .bytes = 6000, .hops = 1, .paths = 1}
    };
    const scene s = play(sends, 2);
    cr_assert_eq(s.arrived_ps[0], US(1 + 12 + 1));
    cr_assert_eq(s.arrived_ps[1], US(1 + 12 + 1));
}

Test(sim_net, fragments_arrive_as_one_message_and_share_the_bytes)
{
    const send sends[] = {
        {.cell = 0, .bytes = 7001, .hops = 2, .paths = 3},
        {.cell = 2, .bytes = 1,    .hops = 1, .paths = 4},
        {.cell = 3, .bytes = 0,    .hops = 1, .paths = 2}
    };
    const scene s = play(sends, 3);
    cr_assert_eq(s.arrived_ps[0], US(2) + 7001 * POD_PS_PER_NS);
    cr_assert_eq(s.arrived_ps[1], US(1) + POD_PS_PER_NS, "one byte is one fragment");
    cr_assert_eq(s.arrived_ps[2], US(1));
}

/* No link is faster than its rate, whatever shares it: all bytes of the busiest link bound the end. */
Test(sim_net, many_messages_never_beat_the_wire)
{
    const send sends[] = {
        {.cell = 0,         .bytes = 3333, .hops = 4, .paths = 1},
        { .cell = 0,    .time_ps = 17,  .bytes = 777, .hops = 3, .paths = 2},
        { .cell = 1, .time_ps = US(1), .bytes = 5001, .hops = 2, .paths = 1},
        { .cell = 2,   .time_ps = 999,    .bytes = 1, .hops = 1, .paths = 1},
        { .cell = 2, .time_ps = US(3), .bytes = 4099, .hops = 2, .paths = 1}
    };
    const scene s = play(sends, 5);
    pod_time_ps last = 0;
    for (int i = 0; i < 5; i++) {
        const pod_time_ps alone =
            sends[i].time_ps + US(sends[i].hops) + sends[i].bytes / sends[i].paths * POD_PS_PER_NS;
        cr_assert(s.arrived_ps[i] >= alone);
        last = s.arrived_ps[i] > last ? s.arrived_ps[i] : last;
    }
    cr_assert(last >= (3333 + 777 + 5001 + 1 + 4099) * POD_PS_PER_NS, "all of them cross link 2");
}

Test(sim_net, paths_hold_ten_runs_and_long_runs_take_several)
{
    pod_net_path path = {
        {0, 0}
    };
    cr_assert(pod_net_path_append(&path, 3, 2 * POD_NET_RUN_MAX));
    for (int i = 2; i < POD_NET_SEGMENTS_MAX; i++) {
        cr_assert(pod_net_path_append(&path, i % 2, 1));
    }
    cr_assert_not(pod_net_path_append(&path, 0, 1));
}

/* The i-th run leaves i + 1 times by port 3 · i mod 16. */
Test(sim_net, paths_are_gone_as_they_were_put_together)
{
    pod_net_path path = {
        {0, 0}
    };
    for (int i = 0; i < POD_NET_SEGMENTS_MAX; i++) {
        cr_assert(pod_net_path_append(&path, 3 * i % 16, i + 1));
    }
    for (int i = 0; i < POD_NET_SEGMENTS_MAX; i++) {
        for (int hop = 0; hop <= i; hop++) {
            cr_assert_eq(pod_net_path_pop(&path), 3 * i % 16, "hop %d of run %d", hop, i);
        }
    }
    cr_assert(path.word[0] == 0 && path.word[1] == 0);
}
