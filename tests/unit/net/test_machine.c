/* SPDX-License-Identifier: Apache-2.0 */
/* Which chip is which cell, the paths between chips, and what links have carried. */
#include "pod_fixture.h"

#include <string.h>

/* One cell for all chips with the same coordinates modulo the periods. */
Test(machine, folded_cells_stand_for_the_chips_of_their_class)
{
    pod pod_, *p = &pod_;
    pod_init(p, 1, 1);
    p->machine.period[0] = 2;
    p->machine.period[1] = SIDE;
    p->machine.period[2] = 1;
    cr_assert(pod_machine_folds(&p->machine));
    cr_expect_eq(pod_machine_cells(&p->machine), 2 * SIDE);
    cr_expect_eq(pod_machine_chips(&p->machine), CHIPS);
    for (int32_t chip = 0; chip < CHIPS; chip++) {
        const int32_t cell = pod_machine_cell(&p->machine, chip);
        const int32_t stands = pod_machine_chip(&p->machine, cell);
        cr_expect_eq(stands % SIDE, chip % SIDE % 2, "x of chip %d", (int)chip);
        cr_expect_eq(stands / SIDE, chip / SIDE, "y of chip %d", (int)chip);
        cr_expect_eq(pod_machine_cell(&p->machine, stands), cell);
    }
    pod_fini(p);
}

/* A server of 4x2 chips can't be cut by a period of 3, and needs whole periods otherwise. */
Test(machine, periods_must_fit_the_servers)
{
    pod pod_, *p = &pod_;
    pod_init(p, 2, 1);
    for (int a = 0; a < POD_AXES; a++) {
        p->machine.period[a] = p->slice.dims[a];
    }
    cr_expect(pod_machine_folds(&p->machine));
    p->machine.period[1] = 1;
    cr_expect(pod_machine_folds(&p->machine), "1 divides 2");
    p->machine.period[1] = 3;
    cr_expect_not(pod_machine_folds(&p->machine));
    p->machine.period[1] = SIDE;
    p->machine.period[0] = 3;
    cr_expect_not(pod_machine_folds(&p->machine), "nor along x");
    p->machine.dcn = NULL;
    cr_expect(pod_machine_folds(&p->machine), "no servers, no limit");
    pod_fini(p);
}

/* By direction numbers, how a path moves along x and y, in chips. */
static void moves(const pod_net_path *path, int32_t moved[2])
{
    static const int32_t step[] = {1, -1};
    pod_net_path rest = *path;
    moved[0] = 0;
    moved[1] = 0;
    while (rest.word[0] != 0 || rest.word[1] != 0) {
        const int port = pod_net_path_pop(&rest);
        cr_assert(port >= 0 && port < 4);
        moved[port / 2] += step[port % 2];
    }
}

/* From (0, 0) to (2, 1) of a closed 4x4: x both ways round, y forward, x first or y first. */
Test(machine, paths_are_shortest_and_end_at_the_target)
{
    pod pod_, *p = &pod_;
    pod_init(p, 1, 1);
    for (int32_t to = 0; to < CHIPS; to++) {
        pod_net_path paths[POD_NET_PATHS_MAX];
        const int count = pod_machine_paths(&p->machine, 5, to, 0, paths);
        cr_expect_eq(count > 0, to != 5);
        for (int i = 0; i < count; i++) {
            int32_t moved[2];
            moves(&paths[i], moved);
            cr_expect_eq((1 + moved[0] + SIDE) % SIDE, to % SIDE);
            cr_expect_eq((1 + moved[1] + SIDE) % SIDE, to / SIDE);
            cr_expect_leq(moved[0] * moved[0], 4);
            cr_expect_leq(moved[1] * moved[1], 4);
        }
    }
    pod_fini(p);
}

typedef struct client {
    const pod_machine *machine;
    pod_net *net;
    int32_t to;
    pod_time_ps arrived_ps;
} client;

static void arrived(void *context, int32_t cell, pod_net_tag tag, pod_payload *payload)
{
    (void)tag;
    (void)payload;
    client *c = context;
    cr_expect_eq(cell, pod_machine_cell(c->machine, c->to));
    c->arrived_ps = pod_net_now(c->net);
}

static void sent(void *context, int32_t cell, pod_net_tag tag)
{
    (void)context;
    (void)cell;
    (void)tag;
}

enum { FROM = 1, BYTES = 90000 };

static void woke(void *context, int32_t cell, uint64_t argument)
{
    (void)argument;
    client *c = context;
    pod_net_path paths[POD_NET_PATHS_MAX];
    const int count = pod_machine_paths(c->machine, FROM, c->to, 0, paths);
    const pod_net_tag tag = {.step = 0};
    pod_net_send_paths(c->net, cell, paths, count, BYTES, tag, NULL);
}

static void send_one(pod *p, int32_t to, client *c, pod_link_summary *links)
{
    *c = (client){.machine = &p->machine, .to = to};
    const pod_net_client calls = {.context = c, .arrived = arrived, .sent = sent, .woke = woke};
    OK(pod_machine_net(&p->machine, &calls, -1, &c->net, &p->err));
    pod_net_wake(c->net, FROM, 0, 0);
    OK(pod_net_run(c->net, &p->err));
    OK(pod_machine_links(&p->machine, c->net, links, &p->err));
    pod_net_free(c->net);
}

/* To the next chip: 90,000 B at 45 GB/s are 2 us, and a hop 1 us. */
Test(machine, what_links_have_carried_is_summed_up)
{
    pod pod_, *p = &pod_;
    client c;
    pod_link_summary links;
    pod_init(p, 1, 1);
    send_one(p, 2, &c, &links);
    cr_expect_eq(c.arrived_ps, 3 * POD_PS_PER_US);
    cr_expect_eq(links.max_bytes, BYTES);
    cr_expect_eq(links.busy_ps, 2 * POD_PS_PER_US);
    cr_expect_eq(links.busiest_chip, FROM);
    cr_expect_eq(links.busiest_direction, 0, "+x");
    cr_expect_eq(links.total_bytes, BYTES);
    cr_expect_eq(links.hops, 1);
    cr_expect_eq(links.dcn_busiest_slice, -1);
    pod_fini(p);
}

/* To another slice: 90,000 B through NICs of 8 chips, 25 GB/s, 3.6 us; PCIe of a chip, 15 GB/s, 6 us; and 50 us. */
Test(machine, what_leaves_a_slice_is_summed_up)
{
    pod pod_, *p = &pod_;
    client c;
    pod_link_summary links;
    pod_init(p, 2, 1);
    send_one(p, CHIPS + 9, &c, &links);
    cr_expect_eq(c.arrived_ps, 56 * POD_PS_PER_US);
    cr_expect_eq(links.dcn_bytes, BYTES);
    cr_expect_eq(links.dcn_max_bytes, BYTES);
    cr_expect_eq(links.dcn_busiest_slice, 0);
    cr_expect_eq(links.total_bytes, 0, "none over ICI");
    pod_fini(p);
}

/* Round a dead link a message takes three hops. */
Test(machine, a_dead_link_has_no_port)
{
    pod pod_, *p = &pod_;
    client c;
    pod_link_summary links;
    pod_init(p, 1, 1);
    p->slice.faults[p->slice.nfaults++] =
        (pod_fault){.kind = POD_FAULT_LINK_DEAD, .chip = FROM, .direction = 0};
    pod_router_free(p->router);
    OK(pod_router_new(&p->slice, &p->router, &p->err));
    p->machine.router = p->router;
    send_one(p, 2, &c, &links);
    cr_expect_eq(links.hops, 9, "three hops on each of three paths");
    cr_expect_eq(c.arrived_ps, 3 * POD_PS_PER_US + 666667, "a third of the bytes on each");
    pod_fini(p);
}
