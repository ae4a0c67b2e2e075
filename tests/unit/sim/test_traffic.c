/* SPDX-License-Identifier: Apache-2.0 */
/* By which routes messages of a pattern go. */
#include "../net/pod_fixture.h"
#include "sim/traffic_packets.h"

static int paths_of(const pod *p, pod_traffic_routing routing, int32_t dst)
{
    const pod_traffic traffic = {.slice = &p->slice, .routing = routing};
    pod_net_path paths[POD_NET_PATHS_MAX];
    return pod_traffic_paths(&traffic, &p->machine, 0, dst, paths);
}

/* A neighbour across has a route along x first and one along y first; to one along an axis there is one only, and two
 * ways round the ring to the one opposite. */
Test(sim_traffic, dimension_order_leaves_the_routes_along_x_first)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    cr_assert_eq(paths_of(p, POD_ROUTING_MINIMAL, SIDE + 1), 2);
    cr_assert_eq(paths_of(p, POD_ROUTING_DIM_ORDER, SIDE + 1), 1);
    cr_assert_eq(paths_of(p, POD_ROUTING_DIM_ORDER, 1), 1);
    cr_assert_eq(paths_of(p, POD_ROUTING_MINIMAL, 2), paths_of(p, POD_ROUTING_DIM_ORDER, 2));
    pod_fini(p);
}

/* ---- who sends what to whom ---- */

static pod_slice open_slice(int naxes, int32_t x, int32_t y, int32_t z)
{
    const int32_t dims[POD_AXES] = {x, y, z};
    const bool wrap[POD_AXES] = {false, false, false};
    pod_slice slice;
    cr_assert_eq(pod_slice_make("v5p", naxes, dims, wrap, false, &slice, NULL), POD_OK);
    return slice;
}

static pod_traffic traffic_of(const pod_slice *slice, pod_traffic_pattern pattern, int64_t bytes)
{
    pod_traffic traffic;
    cr_assert_eq(pod_traffic_init(&traffic, slice, pattern, bytes, 0, 1, 7, NULL), POD_OK);
    return traffic;
}

static int32_t target_of(const pod_traffic *traffic, int32_t chip, int32_t i)
{
    int32_t dst = -1;
    int64_t bytes = -1;
    pod_traffic_message(traffic, chip, i, &dst, &bytes);
    return dst;
}

/* By hand on 4x3x2: chip (3, 2, 1) is number 3 + 4 · 2 + 12. Tornado goes 1, 1 and 0 ahead. */
Test(sim_traffic, targets_of_patterns)
{
    const pod_slice slice = open_slice(3, 4, 3, 2);
    pod_traffic traffic = traffic_of(&slice, POD_TRAFFIC_TRANSPOSE, 1);
    cr_expect_eq(target_of(&traffic, 23, 0), 2 + 4 * 1 + 12, "(2, 1, 3 mod 2)");
    cr_expect_eq(target_of(&traffic, 6, 0), 1, "(2, 1, 0) to (1, 0, 2 mod 2)");
    traffic = traffic_of(&slice, POD_TRAFFIC_TORNADO, 1);
    cr_expect_eq(target_of(&traffic, 23, 0), 12, "(3, 2, 1) to (0, 0, 1)");
    cr_expect_eq(target_of(&traffic, 1, 0), 2 + 4);
    traffic = traffic_of(&slice, POD_TRAFFIC_HOTSPOT, 1);
    cr_expect_eq(pod_traffic_messages(&traffic, 0), 0);
    cr_expect_eq(pod_traffic_messages(&traffic, 9), 1);
    cr_expect_eq(target_of(&traffic, 9, 0), 0);
    traffic = traffic_of(&slice, POD_TRAFFIC_PAIR, 1);
    cr_expect_eq(pod_traffic_messages(&traffic, 0), 1);
    cr_expect_eq(pod_traffic_messages(&traffic, 1), 0);
    cr_expect_eq(target_of(&traffic, 0, 0), 1);
    traffic = traffic_of(&slice, POD_TRAFFIC_NEIGHBOR, 1);
    cr_assert_eq(pod_traffic_messages(&traffic, 0), 3);
    cr_expect_eq(target_of(&traffic, 0, 0), 1);
    cr_expect_eq(target_of(&traffic, 0, 1), 4);
    cr_expect_eq(target_of(&traffic, 0, 2), 12);
    const pod_slice flat = open_slice(2, 4, 4, 1);
    traffic = traffic_of(&flat, POD_TRAFFIC_TRANSPOSE, 1);
    cr_expect_eq(target_of(&traffic, 3 + 4 * 1, 0), 1 + 4 * 3, "(3, 1) to (1, 3)");
}

/* 100 bytes over 23 receivers: 8 of them get 5, the others 4. */
Test(sim_traffic, shares_differ_by_a_byte)
{
    const pod_slice slice = open_slice(3, 4, 3, 2);
    const pod_traffic traffic = traffic_of(&slice, POD_TRAFFIC_UNIFORM, 100);
    int64_t sum = 0;
    bool reached[24] = {false};
    cr_assert_eq(pod_traffic_messages(&traffic, 5), 23);
    for (int32_t i = 0; i < 23; i++) {
        int32_t dst = -1;
        int64_t bytes = -1;
        pod_traffic_message(&traffic, 5, i, &dst, &bytes);
        cr_expect_eq(bytes, i < 8 ? 5 : 4, "message %d", (int)i);
        cr_assert(dst >= 0 && dst < 24 && dst != 5 && !reached[dst]);
        reached[dst] = true;
        sum += bytes;
    }
    cr_expect_eq(sum, 100);
}

Test(sim_traffic, a_permutation_reaches_each_chip_once)
{
    const pod_slice slice = open_slice(3, 4, 3, 2);
    pod_traffic traffic = traffic_of(&slice, POD_TRAFFIC_PERMUTATION, 1);
    bool reached[24] = {false};
    for (int32_t chip = 0; chip < 24; chip++) {
        const int32_t dst = target_of(&traffic, chip, 0);
        cr_assert(dst >= 0 && dst < 24 && !reached[dst], "%d", (int)dst);
        reached[dst] = true;
    }
    pod_traffic_fini(&traffic);
}

/* ---- over fluid links ---- */

enum { US_BYTES = 45000 }; /* that a link carries in a microsecond */

static pod_traffic_result burst(pod *p, const pod_traffic *traffic)
{
    pod_traffic_result result = {.time_ps = -1};
    p->machine.launch_ps = 5 * POD_PS_PER_US;
    OK(pod_traffic_run(&p->machine, traffic, NULL, &result, &p->err));
    return result;
}

/* 5 us of launch, 1 us a hop, 1 us for the bytes, half of it where halves go both ways round. */
Test(sim_traffic, a_message_takes_launch_hops_and_bytes)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    pod_traffic traffic = traffic_of(&p->slice, POD_TRAFFIC_PAIR, US_BYTES);
    pod_traffic_result result = burst(p, &traffic);
    cr_expect_eq(result.time_ps, 7 * POD_PS_PER_US);
    cr_expect_eq(result.first_byte_ps, 6 * POD_PS_PER_US);
    cr_expect_eq(result.messages, 1);
    cr_expect_eq(result.mean_hops, 1);
    cr_expect_eq(result.links.total_bytes, US_BYTES);
    cr_expect_eq(result.links.busiest_chip, 0);
    traffic.to = 2;
    result = burst(p, &traffic);
    cr_expect_eq(result.time_ps, 7 * POD_PS_PER_US + POD_PS_PER_US / 2);
    cr_expect_eq(result.links.total_bytes, 2 * US_BYTES);
    cr_expect_eq(result.mean_hops, 2);
    traffic.to = 0;
    result = burst(p, &traffic);
    cr_expect_eq(result.time_ps, 5 * POD_PS_PER_US, "to itself");
    cr_expect_eq(result.links.total_bytes, 0);
    pod_fini(p);
}

/* From 15 chips of a closed 4x4 it is 1 or 2 along each axis: 32 hops in all, 4 at most. */
Test(sim_traffic, hops_are_counted_over_messages)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    const pod_traffic traffic = traffic_of(&p->slice, POD_TRAFFIC_HOTSPOT, US_BYTES);
    const pod_traffic_result result = burst(p, &traffic);
    cr_expect_eq(result.messages, 15);
    cr_expect_float_eq(result.mean_hops, 32.0 / 15, 1e-12);
    cr_expect_eq(result.first_byte_ps, (5 + 4) * POD_PS_PER_US);
    cr_expect_eq(result.links.total_bytes, 32 * US_BYTES);
    pod_fini(p);
}

/* A byte or none goes in one piece. Two chips opposite each other along both axes have eight ways: each axis both
 * ways round, x or y first. */
Test(sim_traffic, what_a_run_takes_is_counted_before)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    pod_traffic_need need;
    for (int64_t bytes = 0; bytes <= 1; bytes++) {
        const pod_traffic uniform = traffic_of(&p->slice, POD_TRAFFIC_UNIFORM, bytes);
        pod_traffic_need_get(&p->machine, &uniform, &need);
        cr_expect_eq(need.messages, CHIPS * (CHIPS - 1));
        cr_expect_eq(need.fragments, CHIPS * (CHIPS - 1));
    }
    pod_traffic pair = traffic_of(&p->slice, POD_TRAFFIC_PAIR, US_BYTES);
    pair.to = 2 + 2 * SIDE;
    pod_traffic_need_get(&p->machine, &pair, &need);
    cr_expect_eq(need.messages, 1);
    cr_expect_eq(need.fragments, 8);
    cr_expect_eq(need.bytes, pod_traffic_need_bytes(&p->machine, &p->slice, 8));
    const int64_t none = pod_traffic_need_bytes(&p->machine, &p->slice, 0);
    cr_expect_geq(none, INT64_C(16) << 20, "a rank has time slots");
    cr_expect_eq(need.bytes - none, 8 * (pod_traffic_need_bytes(&p->machine, &p->slice, 1) - none));
    pod_fini(p);
}

/* Of two chips the second sends to the first: for as many fragments as if both did. */
Test(sim_traffic, the_last_chip_may_need_most)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    const pod_slice two = open_slice(2, 2, 1, 1);
    pod_router *router = NULL;
    pod_traffic_need need;
    OK(pod_router_new(&two, &router, &p->err));
    pod_machine machine = p->machine;
    machine.slice = &two;
    machine.router = router;
    const pod_traffic hotspot = traffic_of(&two, POD_TRAFFIC_HOTSPOT, US_BYTES);
    pod_traffic_need_get(&machine, &hotspot, &need);
    cr_expect_eq(need.messages, 1);
    cr_expect_eq(need.fragments, 2);
    pod_router_free(router);
    pod_fini(p);
}

/* Every link of a torus carries as much: the first of the lowest chip is named. */
Test(sim_traffic, of_equal_links_the_lowest_is_the_busiest)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    const pod_traffic traffic = traffic_of(&p->slice, POD_TRAFFIC_NEIGHBOR, (int64_t)4 * US_BYTES);
    pod_traffic_result result = burst(p, &traffic);
    cr_expect_eq(result.messages, 4 * CHIPS);
    cr_expect_eq(result.mean_hops, 1);
    cr_expect_eq(result.time_ps, 7 * POD_PS_PER_US, "each link carries one message");
    cr_expect_eq(result.links.max_bytes, US_BYTES);
    cr_expect_eq(result.links.busiest_bytes, US_BYTES);
    cr_expect_eq(result.links.busy_ps, POD_PS_PER_US);
    cr_expect_eq(result.links.busiest_chip, 0);
    cr_expect_eq(result.links.busiest_direction, 0);
    for (int direction = 0; direction < 4; direction++) {
        cr_expect_eq(result.links.direction_bytes[direction], (int64_t)CHIPS * US_BYTES);
    }
    pod_fini(p);
}

/* ---- open-loop ---- */

Test(sim_traffic, cycles_of_a_load)
{
    const pod_traffic_load load = {.measured = 9};
    int64_t from = -1;
    int64_t to = -1;
    cr_expect_eq(pod_traffic_load_cycles(&load, &from, &to), 4 + 9 + 2);
    cr_expect_eq(from, 4);
    cr_expect_eq(to, 4 + 9);
}

/* Cycles of 10 ps, 2 to 5 measured: accepted is what arrives from 20 to 59 ps, latencies are of what begins then. */
Test(sim_traffic, what_counts_as_measured)
{
    const pod_slice slice = open_slice(2, 4, 4, 1);
    const pod_traffic traffic = traffic_of(&slice, POD_TRAFFIC_HOTSPOT, 1);
    const pod_traffic_load load = {.traffic = &traffic, .load = 1, .measured = 4};
    static const struct {
        int64_t cycle, now;
        int32_t hops;
    } arrivals[] = {
        {1, 19, 9},
        {1, 20, 9},
        {2, 59, 3},
        {5, 60, 1},
        {6, 61, 9}
    };
    pod_traffic_tally tally = {.messages = 0};
    for (size_t i = 0; i < sizeof arrivals / sizeof *arrivals; i++) {
        pod_traffic_tally_add(&tally, &load, arrivals[i].cycle, arrivals[i].hops, 10,
                              arrivals[i].now);
    }
    pod_traffic_load_result result;
    pod_traffic_tally_result(&tally, &load, 10, &result);
    cr_expect_eq(result.delivered, 5);
    cr_expect_eq(result.messages, 2);
    cr_expect_float_eq(result.accepted, 2.0 / (15 * 4), 1e-12, "15 chips send");
    cr_expect_eq(result.max_latency_ps, 59 - 20);
    cr_expect_eq(result.latency_ps, (39 + 10) / 2.0);
    cr_expect_float_eq(result.latency_cycles, 2.45, 1e-12);
    cr_expect_eq(result.mean_hops, 2);
    cr_expect_eq(result.end_ps, 61);
}

/* Chips that begin a message in a cycle, from one cycle on and before another. */
static int64_t begun_count(const pod_traffic_load *load, int64_t from, int64_t to)
{
    int64_t count = 0;
    for (int64_t cycle = from; cycle < to; cycle++) {
        for (int32_t chip = 0; chip < load->traffic->slice->nchips; chip++) {
            int32_t dst = -1;
            const bool begins = pod_traffic_load_message(load, chip, cycle, &dst);
            cr_assert(!begins || (dst >= 0 && dst != chip));
            count += begins;
        }
    }
    return count;
}

/* A neighbour is sent a message of 1 us in every cycle of 1 us, which arrives 1 us of a hop later: two cycles. */
Test(sim_traffic, a_link_takes_a_message_a_cycle)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    const pod_traffic traffic = traffic_of(&p->slice, POD_TRAFFIC_PAIR, US_BYTES);
    pod_traffic_load load = {.traffic = &traffic, .load = 1, .measured = 8};
    pod_traffic_load_result result;
    pod_traffic_need need;
    OK(pod_traffic_load_run(&p->machine, &load, &result, &p->err));
    cr_expect_eq(result.begun, 4 + 8 + 2);
    cr_expect_eq(result.delivered, 14);
    cr_expect_eq(result.messages, 8);
    cr_expect_eq(result.cycle_ps, POD_PS_PER_US);
    cr_expect_eq(result.latency_cycles, 2);
    cr_expect_eq(result.max_latency_ps, 2 * POD_PS_PER_US);
    cr_expect_eq(result.accepted, 1);
    cr_expect_eq(result.mean_hops, 1);
    cr_expect_eq(result.end_ps, 15 * POD_PS_PER_US);
    pod_traffic_load_need_get(&p->machine, &load, &need);
    cr_expect_eq(need.messages, 14);
    cr_expect_eq(need.bytes, pod_traffic_need_bytes(&p->machine, &p->slice, need.fragments));
    load.load = 0.5;
    load.measured = 64;
    OK(pod_traffic_load_run(&p->machine, &load, &result, &p->err));
    cr_expect_eq(result.begun, begun_count(&load, 0, 32 + 64 + 16));
    cr_expect_eq(result.messages, begun_count(&load, 32, 32 + 64));
    cr_expect_eq(result.latency_cycles, 2);
    pod_fini(p);
}

/* Two chips of a ring of 4 send through the same link: what one link can't carry waits, up to a window at once. */
Test(sim_traffic, what_a_link_cannot_carry_waits)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    const pod_traffic traffic = traffic_of(&p->slice, POD_TRAFFIC_HOTSPOT, US_BYTES);
    const pod_traffic_load load = {.traffic = &traffic, .load = 1, .measured = 64};
    pod_traffic_load_result result;
    OK(pod_traffic_load_run(&p->machine, &load, &result, &p->err));
    cr_expect_eq(result.begun, 15 * (32 + 64 + 16));
    cr_expect_eq(result.delivered, result.begun);
    cr_expect_leq(result.accepted, 4.0 / 15, "four links lead to the chip");
    cr_expect_geq(result.end_ps, result.begun / 4 * POD_PS_PER_US);
    pod_fini(p);
}

/* ---- over packets ---- */

enum { FLIT = 1000 }; /* bytes: at 1 GB/s a cycle of 1 us */

static pod_traffic_packets packets_of(void)
{
    return (pod_traffic_packets){.link_rate = pod_rate_make(1e9),
                                 .launch_ps = 3 * POD_PS_PER_US,
                                 .flit_bytes = FLIT,
                                 .vcs = 2,
                                 .buffer = 8};
}

/* Alone a flit takes 5 cycles a router, and 2 (net/packets.h). */
static void check_flit(const pod_slice *slice, int32_t from, int32_t to, int hops)
{
    const pod_traffic_packets how = packets_of();
    pod_traffic_result result;
    pod_traffic traffic = traffic_of(slice, POD_TRAFFIC_PAIR, FLIT);
    traffic.from = from;
    traffic.to = to;
    cr_assert_eq(pod_traffic_packets_run(&how, &traffic, &result, NULL), POD_OK);
    cr_expect_eq(result.time_ps, (3 + 5 * (hops + 1) + 2) * POD_PS_PER_US, "%d to %d: %lld ps",
                 (int)from, (int)to, (long long)result.time_ps);
    cr_expect_eq(result.first_byte_ps, result.time_ps);
    cr_expect_eq(result.messages, 1);
    cr_expect_eq(result.mean_hops, hops);
    cr_expect_eq(result.links.hops, hops);
    cr_expect_eq(result.links.total_bytes, hops * FLIT);
    cr_expect_eq(result.links.max_bytes, FLIT);
    cr_expect_eq(result.links.busiest_bytes, FLIT);
    cr_expect_eq(result.links.busiest_chip, from < to ? from : to + hops >= from ? to + 1 : from);
    cr_expect_eq(result.links.busy_ps, POD_PS_PER_US);
}

Test(sim_traffic, a_flit_alone_takes_five_cycles_a_router_and_two)
{
    const pod_slice line = open_slice(2, 4, 1, 1);
    check_flit(&line, 0, 1, 1);
    check_flit(&line, 0, 3, 3);
    check_flit(&line, 3, 1, 2);
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    check_flit(&p->slice, 0, 3, 1);
    pod_fini(p);
    const pod_traffic_packets how = packets_of();
    pod_traffic traffic = traffic_of(&line, POD_TRAFFIC_PAIR, FLIT);
    pod_traffic_result result;
    traffic.to = 0;
    cr_assert_eq(pod_traffic_packets_run(&how, &traffic, &result, NULL), POD_OK);
    cr_expect_eq(result.time_ps, 3 * POD_PS_PER_US, "to itself");
    cr_expect_eq(result.first_byte_ps, 3 * POD_PS_PER_US);
    cr_expect_eq(result.links.busiest_chip, -1, "no link carries anything");
    cr_expect_eq(result.links.dcn_busiest_slice, -1);
}

/* Flits of 1000 bytes from 15 chips: 2 of each, and they go 32 hops of the chips twice. */
Test(sim_traffic, a_burst_sends_every_flit_once)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    const pod_traffic_packets how = packets_of();
    const pod_traffic traffic = traffic_of(&p->slice, POD_TRAFFIC_HOTSPOT, FLIT + 1);
    pod_traffic_result result;
    OK(pod_traffic_packets_run(&how, &traffic, &result, &p->err));
    cr_expect_eq(result.messages, 15);
    cr_expect_float_eq(result.mean_hops, 32.0 / 15, 1e-12);
    cr_expect_eq(result.links.hops, 2 * 32);
    cr_expect_eq(result.first_byte_ps, (3 + 5 * 5 + 2) * POD_PS_PER_US, "4 hops");
    int64_t sum = 0;
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        sum += result.links.direction_bytes[direction];
    }
    cr_expect_eq(sum, 2 * 32 * FLIT);
    cr_expect_geq(result.time_ps, result.first_byte_ps);
    pod_fini(p);
}

Test(sim_traffic, more_flits_than_the_limit_are_refused)
{
    const pod_slice slice = open_slice(2, 4, 4, 1);
    const pod_traffic_packets how = packets_of();
    pod_traffic traffic =
        traffic_of(&slice, POD_TRAFFIC_TORNADO, (int64_t)POD_TRAFFIC_FLITS_MAX / CHIPS * FLIT);
    pod_error err = {0};
    cr_expect_eq(pod_traffic_packets_check(&how, &traffic, 0, &err), POD_OK, "%s", err.text);
    traffic.bytes += FLIT;
    cr_expect_eq(pod_traffic_packets_check(&how, &traffic, 0, &err), POD_E_RANGE);
    cr_expect_eq(pod_traffic_packets_check(&how, &traffic, 0.5, &err), POD_OK, "an open loop");
}

/* One message in twenty cycles over one link: hardly any waits, none takes less than 12 cycles. */
Test(sim_traffic, packets_of_a_load_are_those_of_fluid_links)
{
    const pod_slice line = open_slice(2, 4, 1, 1);
    const pod_traffic_packets how = packets_of();
    const pod_traffic traffic = traffic_of(&line, POD_TRAFFIC_PAIR, FLIT);
    const pod_traffic_load load = {.traffic = &traffic, .load = 0.05, .measured = 400};
    pod_traffic_load_result result;
    cr_assert_eq(pod_traffic_packets_load(&how, &load, &result, NULL), POD_OK);
    cr_expect_eq(result.begun, begun_count(&load, 0, 200 + 400 + 100));
    cr_expect_eq(result.delivered, result.begun);
    cr_expect_eq(result.messages, begun_count(&load, 200, 200 + 400));
    cr_expect_eq(result.mean_hops, 1);
    cr_expect(result.latency_cycles >= 12 && result.latency_cycles < 12.5, "%f",
              result.latency_cycles);
    cr_expect_eq(result.links.hops, result.begun);
    cr_expect_eq(result.links.total_bytes, result.begun * FLIT);
}
