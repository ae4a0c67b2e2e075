/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a message to another slice, port by port. */
#include "pod_fixture.h"

#include "net/dcn_ports.h"

enum { HOPS_MAX = 16 };

typedef struct trip {
    int ports[HOPS_MAX];
    int count;
    pod_time_ps latency_ps;
    int32_t end; /* cell */
} trip;

/* Follow an address from its chip; the latency of each port on the way adds up. */
static void follow(pod *p, int32_t src, int32_t dst, trip *way)
{
    pod_net_path path = pod_dcn_address(&p->machine, src, dst, 7);
    int32_t cell = pod_machine_cell(&p->machine, src);
    *way = (trip){.count = 0};
    while (path.word[0] != 0 || path.word[1] != 0) {
        pod_net_port ports[POD_NET_PORTS_MAX] = {{0}};
        cr_assert_eq(pod_dcn_ports(&p->machine, cell, ports), POD_PORTS_WITH_DCN);
        const pod_net_hop hop = pod_dcn_route(&p->machine, cell, &path);
        cr_assert_lt(way->count, HOPS_MAX);
        way->ports[way->count++] = hop.port;
        if (hop.port < POD_DIRECTIONS) {
            const int32_t chip = pod_machine_chip(&p->machine, cell);
            const int32_t local = pod_slice_neighbor(&p->slice, chip % CHIPS, hop.port);
            cell = pod_machine_cell(&p->machine, chip - chip % CHIPS + local);
            way->latency_ps += p->machine.hop_latency_ps;
            continue;
        }
        cr_assert_neq(ports[hop.port].peer, -1, "port %d of cell %d leads nowhere", hop.port,
                      (int)cell);
        way->latency_ps += ports[hop.port].latency_ps;
        if (ports[hop.port].peer == POD_NET_PEER_ADDRESSED) {
            cr_assert_eq(hop.order, 7);
            cell = hop.peer;
        } else {
            cell = ports[hop.port].peer;
        }
    }
    way->end = cell;
}

static void expect_ports(const trip *way, const int *ports, int count)
{
    cr_expect_eq(way->count, count);
    for (int i = 0; i < count && i < way->count; i++) {
        cr_expect_eq(way->ports[i], ports[i], "hop %d: port %d, not %d", i, way->ports[i],
                     ports[i]);
    }
}

/* An empty message takes the DCN's latency between any two chips of different slices. */
Test(dcn_ports, every_pair_of_chips_takes_the_same_latency)
{
    static const int near[] = {POD_PORT_PCIE_OUT, POD_PORT_NIC_OUT, POD_PORT_NIC_IN,
                               POD_PORT_PCIE_IN};
    static const int over[] = {POD_PORT_PCIE_OUT, POD_PORT_NIC_OUT, POD_PORT_UP,
                               POD_PORT_DOWN,     POD_PORT_NIC_IN,  POD_PORT_PCIE_IN};
    for (int uplinks = 0; uplinks < 2; uplinks++) {
        pod pod_, *p = &pod_;
        pod_init(p, 3, uplinks == 1 ? 2.0 : 1.0);
        for (int32_t src = 0; src < CHIPS; src++) {
            for (int32_t dst = CHIPS; dst < 3 * CHIPS; dst++) {
                trip way;
                follow(p, src, dst, &way);
                expect_ports(&way, uplinks == 1 ? over : near, uplinks == 1 ? 6 : 4);
                cr_expect_eq(way.latency_ps, 50 * POD_PS_PER_US);
                cr_expect_eq(way.end, dst);
            }
        }
        pod_fini(p);
    }
}

/* Chips of a server without a path leave over ICI by the same place of the other server: (0, 0) by (0, 2). */
Test(dcn_ports, a_lost_path_is_gone_round_over_ici)
{
    pod pod_, *p = &pod_;
    pod_init(p, 2, 1);
    OK(pod_dcn_fault_insert(&p->dcn, POD_DCN_PATH_LOST, 0, 0, 0, &p->err));
    trip way;
    follow(p, 0, CHIPS + 5, &way);
    cr_expect_eq(way.count, 6, "two hops up y, then as always");
    cr_expect_eq(way.ports[0] / 2, 1);
    cr_expect_eq(way.ports[1] / 2, 1);
    cr_expect_eq(way.ports[2], POD_PORT_PCIE_OUT);
    cr_expect_eq(way.end, CHIPS + 5);
    follow(p, CHIPS + 5, 0, &way);
    cr_expect_eq(way.count, 6, "and back");
    cr_expect_eq(way.ports[3], POD_PORT_PCIE_IN);
    cr_expect_eq(way.ports[5] / 2, 1);
    cr_expect_eq(way.end, 0);
    pod_fini(p);
}

/* Rates: PCIe of a chip 15 GB/s; NICs of a server of 8 chips 25 GB/s; the uplink of 16 chips 50 GB/s / 4. */
Test(dcn_ports, rates_are_those_of_chips_servers_and_slices)
{
    pod pod_, *p = &pod_;
    pod_net_port ports[POD_NET_PORTS_MAX] = {{0}};
    pod_init(p, 2, 4.0);
    (void)pod_dcn_ports(&p->machine, 0, ports);
    cr_expect_eq(pod_rate_time_ps(ports[POD_PORT_PCIE_OUT].rate, 15000), POD_PS_PER_US);
    cr_expect_eq(pod_rate_time_ps(ports[POD_PORT_NIC_OUT].rate, 25000), POD_PS_PER_US);
    cr_expect_eq(pod_rate_time_ps(ports[POD_PORT_UP].rate, 12500), POD_PS_PER_US);
    (void)pod_dcn_ports(&p->machine, 1, ports);
    cr_expect_eq(ports[POD_PORT_NIC_OUT].peer, -1, "kept by the server's first chip");
    cr_expect_eq(ports[POD_PORT_UP].peer, -1, "kept by the slice's first chip");
    pod_fini(p);
}

/* ---- peers ---- */

typedef struct peers {
    int32_t cell[CHIPS];
    int count;
} peers;

static void visit(void *context, int32_t peer)
{
    peers *found = context;
    cr_assert_lt(found->count, CHIPS);
    found->cell[found->count++] = peer;
}

/* @param chips  that a port of a chip leads to, in order */
static void expect_peers(const pod *p, int32_t chip, int port, const int32_t *chips, int count)
{
    peers found = {.count = 0};
    pod_dcn_peers(&p->machine, pod_machine_cell(&p->machine, chip), port, visit, &found);
    cr_expect_eq(found.count, count, "port %d of chip %d leads to %d", port, (int)chip,
                 found.count);
    for (int i = 0; i < count && i < found.count; i++) {
        cr_expect_eq(found.cell[i], pod_machine_cell(&p->machine, chips[i]),
                     "port %d of chip %d, peer %d", port, (int)chip, i);
    }
}

/* Three slices of 16 chips; servers begin at chips 0 and 8 of each. */
Test(dcn_ports, lead_to_all_that_a_message_may_go_to)
{
    static const int32_t servers[] = {0, 8, 32, 40};
    static const int32_t served[] = {24, 25, 26, 27, 28, 29, 30, 31};
    static const int32_t slices[] = {0, 32};
    static const int32_t own[] = {16, 24};
    for (int uplinks = 0; uplinks < 2; uplinks++) {
        pod pod_, *p = &pod_;
        pod_init(p, 3, uplinks == 1 ? 2.0 : 1.0);
        for (int server = 0; server < 2; server++) {
            expect_peers(p, own[server], POD_PORT_NIC_OUT, uplinks == 1 ? own : servers,
                         uplinks == 1 ? 1 : 4);
        }
        expect_peers(p, 24, POD_PORT_NIC_IN, served, 8);
        expect_peers(p, 16, POD_PORT_UP, slices, 2);
        expect_peers(p, 16, POD_PORT_DOWN, own, 2);
        expect_peers(p, 16, POD_PORT_PCIE_OUT, NULL, 0);
        pod_fini(p);
    }
}
