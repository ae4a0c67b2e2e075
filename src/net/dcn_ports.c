/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dcn_ports.h"

enum { NEAR_PART = 8, NEAR_HOPS = 2, NEAR_HOPS_WITH_UPLINKS = 4 };

static bool has_uplinks(const pod_machine *machine)
{
    return machine->dcn->options.oversubscription > 1.0;
}

pod_time_ps pod_dcn_near_ps(const pod_machine *machine)
{
    const pod_time_ps part = machine->dcn->options.latency_ps / NEAR_PART;
    return part < machine->hop_latency_ps ? part : machine->hop_latency_ps;
}

static pod_time_ps fabric_ps(const pod_machine *machine)
{
    const int near_hops = has_uplinks(machine) ? NEAR_HOPS_WITH_UPLINKS : NEAR_HOPS;
    return machine->dcn->options.latency_ps - near_hops * pod_dcn_near_ps(machine);
}

/* ---- places ---- */

static int32_t slice_of(const pod_machine *machine, int32_t chip)
{
    return chip / machine->slice->nchips;
}

/* The first chip of the server of a chip; both count over all slices. */
static int32_t server_chip(const pod_machine *machine, int32_t chip)
{
    const int32_t local = chip % machine->slice->nchips;
    return chip - local + pod_dcn_server_first(machine->dcn, pod_dcn_server(machine->dcn, local));
}

/* The chip through whose server the messages of a chip leave and come. */
static int32_t exit_chip(const pod_machine *machine, int32_t chip)
{
    const int32_t local = chip % machine->slice->nchips;
    return chip - local + pod_dcn_exit(machine->dcn, slice_of(machine, chip), local);
}

/* ---- ports ---- */

/* The part of a server's chips that have cells of their own, seen from its first chip. */
static double server_part(const pod_machine *machine)
{
    double part = 1.0;
    for (int a = 0; a < POD_AXES; a++) {
        const int32_t server = machine->dcn->options.server_dims[a];
        const int32_t period = machine->period[a];
        part *= period > 0 && period < server ? (double)period / server : 1.0;
    }
    return part;
}

static pod_net_port port_to(int32_t peer, double bytes_per_s, pod_time_ps latency_ps)
{
    return (pod_net_port){
        .peer = peer, .rate = pod_rate_make(bytes_per_s), .latency_ps = latency_ps};
}

/* What messages to other slices share. */
static pod_net_port port_across(double bytes_per_s, pod_time_ps latency_ps)
{
    pod_net_port port = port_to(POD_NET_PEER_ADDRESSED, bytes_per_s, latency_ps);
    port.in_order = true;
    return port;
}

int pod_dcn_ports(const pod_machine *machine, int32_t cell, pod_net_port *ports)
{
    const pod_dcn *dcn = machine->dcn;
    const int32_t chip = pod_machine_chip(machine, cell);
    const int32_t local = chip % machine->slice->nchips;
    const int32_t slice = slice_of(machine, chip);
    const int32_t server = pod_dcn_server(dcn, local);
    const pod_time_ps near_ps = pod_dcn_near_ps(machine);
    const double pcie = pod_dcn_pcie_bytes_per_s(dcn, slice, local);
    for (int port = POD_PORT_PCIE_OUT; port < POD_PORTS_WITH_DCN; port++) {
        ports[port] = (pod_net_port){.peer = -1};
    }
    const int32_t first = pod_machine_cell(machine, server_chip(machine, chip));
    ports[POD_PORT_PCIE_OUT] = port_to(first, pcie, near_ps);
    ports[POD_PORT_PCIE_IN] = port_to(cell, pcie, 0);
    ports[POD_PORT_PCIE_OUT].in_order = true;
    ports[POD_PORT_PCIE_IN].in_order = true;
    if (cell == first && pod_dcn_server_has_path(dcn, slice, server)) {
        const double nic = pod_dcn_nic_bytes_per_s(dcn, slice, server) * server_part(machine);
        ports[POD_PORT_NIC_OUT] =
            port_across(nic, has_uplinks(machine) ? near_ps : fabric_ps(machine));
        ports[POD_PORT_NIC_IN] = port_across(nic, near_ps);
    }
    if (local == 0 && has_uplinks(machine)) {
        const double part = (double)pod_machine_slice_cells(machine) / machine->slice->nchips;
        const double uplink = pod_dcn_uplink_bytes_per_s(dcn, slice) * part;
        ports[POD_PORT_UP] = port_across(uplink, fabric_ps(machine));
        ports[POD_PORT_DOWN] = port_across(uplink, near_ps);
    }
    return POD_PORTS_WITH_DCN;
}

/* ---- peers ---- */

/* First chips of servers (or, with stride, of slices) in a range of slices. */
static void visit_firsts(const pod_machine *machine, int32_t from_slice, int32_t to_slice,
                         bool servers, void (*visit)(void *context, int32_t peer), void *context)
{
    const int32_t nchips = machine->slice->nchips;
    const int32_t count = servers ? machine->dcn->nservers : 1;
    for (int32_t slice = from_slice; slice < to_slice; slice++) {
        for (int32_t server = 0; server < count; server++) {
            const int32_t local = servers ? pod_dcn_server_first(machine->dcn, server) : 0;
            visit(context, pod_machine_cell(machine, slice * nchips + local));
        }
    }
}

/* The same in all slices but one. */
static void visit_others(const pod_machine *machine, int32_t slice, bool servers,
                         void (*visit)(void *context, int32_t peer), void *context)
{
    visit_firsts(machine, 0, slice, servers, visit, context);
    visit_firsts(machine, slice + 1, machine->slice->nslices, servers, visit, context);
}

void pod_dcn_peers(const pod_machine *machine, int32_t cell, int port,
                   void (*visit)(void *context, int32_t peer), void *context)
{
    const int32_t nchips = machine->slice->nchips;
    const int32_t chip = pod_machine_chip(machine, cell);
    const int32_t slice = slice_of(machine, chip);
    switch (port) {
    case POD_PORT_NIC_OUT:
        if (has_uplinks(machine)) {
            visit_firsts(machine, slice, slice + 1, false, visit, context);
        } else {
            visit_others(machine, slice, true, visit, context);
        }
        break;
    case POD_PORT_NIC_IN:
        for (int32_t other = slice * nchips; other < (slice + 1) * nchips; other++) {
            if (server_chip(machine, other) == chip) {
                visit(context, pod_machine_cell(machine, other));
            }
        }
        break;
    case POD_PORT_UP:
        visit_others(machine, slice, false, visit, context);
        break;
    case POD_PORT_DOWN:
        visit_firsts(machine, slice, slice + 1, true, visit, context);
        break;
    default:
        break;
    }
}

/* ---- the way of a message ---- */

/* Where a message is: at a chip on its way to the exit, at a server, … */
typedef enum way { WAY_LEAVE, WAY_SERVER, WAY_UP, WAY_DOWN, WAY_SERVER_IN, WAY_CHIP, WAY_HOME } way;

enum { ORDER_SHIFT = 32, WAY_SHIFT = 32, WAY_MASK = 15 };

/* word[0] = order, 1 + the exit of the sender; word[1] = way, destination. */
static void way_set(pod_net_path *path, way at, int32_t dst)
{
    path->word[1] = POD_NET_PATH_ADDRESSED | (uint64_t)at << WAY_SHIFT | (uint64_t)(uint32_t)dst;
}

pod_net_path pod_dcn_address(const pod_machine *machine, int32_t src, int32_t dst, uint32_t order)
{
    pod_net_path path = {
        {(uint64_t)order << ORDER_SHIFT | (uint64_t)(1 + exit_chip(machine, src)), 0}
    };
    way_set(&path, WAY_LEAVE, dst);
    return path;
}

/* One hop over ICI towards a chip of the same slice. */
static pod_net_hop ici_hop(const pod_machine *machine, int32_t chip, int32_t to)
{
    const int32_t nchips = machine->slice->nchips;
    pod_path routes[POD_ROUTE_PATHS_MAX];
    const int count = pod_router_paths(machine->router, chip % nchips, to % nchips, routes);
    POD_ASSERT(count > 0);
    return (pod_net_hop){.port = routes[0].direction[0], .peer = -1};
}

static pod_net_hop hop_home(const pod_machine *machine, int32_t chip, int32_t dst,
                            pod_net_path *path)
{
    const int32_t nchips = machine->slice->nchips;
    const pod_net_hop hop = ici_hop(machine, chip, dst);
    if (pod_slice_neighbor(machine->slice, chip % nchips, hop.port) == dst % nchips) {
        *path = (pod_net_path){
            {0, 0}
        };
    }
    return hop;
}

/* Out of a chip: over ICI to the exit, then to its server. */
static pod_net_hop hop_leave(const pod_machine *machine, int32_t chip, int32_t dst,
                             pod_net_path *path)
{
    const int32_t leave_by = (int32_t)((uint32_t)path->word[0] - 1);
    if (chip != leave_by) {
        return ici_hop(machine, chip, leave_by);
    }
    way_set(path, WAY_SERVER, dst);
    return (pod_net_hop){
        .port = POD_PORT_PCIE_OUT, .peer = -1, .order = (uint32_t)(path->word[0] >> ORDER_SHIFT)};
}

pod_net_hop pod_dcn_route(const void *context, int32_t cell, pod_net_path *path)
{
    const pod_machine *machine = context;
    const int32_t nchips = machine->slice->nchips;
    const int32_t dst = (int32_t)(uint32_t)path->word[1];
    const int32_t chip = pod_machine_chip(machine, cell);
    const int32_t enter_by = exit_chip(machine, dst);
    const int32_t server_in = pod_machine_cell(machine, server_chip(machine, enter_by));
    const way at = (way)(path->word[1] >> WAY_SHIFT & WAY_MASK);
    const uint32_t order = (uint32_t)(path->word[0] >> ORDER_SHIFT);
    switch (at) {
    case WAY_LEAVE:
        return hop_leave(machine, chip, dst, path);
    case WAY_SERVER:
        way_set(path, has_uplinks(machine) ? WAY_UP : WAY_SERVER_IN, dst);
        return (pod_net_hop){.port = POD_PORT_NIC_OUT,
                             .peer = has_uplinks(machine)
                                         ? pod_machine_cell(machine, chip - chip % nchips)
                                         : server_in,
                             .order = order};
    case WAY_UP:
        way_set(path, WAY_DOWN, dst);
        return (pod_net_hop){.port = POD_PORT_UP,
                             .peer = pod_machine_cell(machine, dst - dst % nchips),
                             .order = order};
    case WAY_DOWN:
        way_set(path, WAY_SERVER_IN, dst);
        return (pod_net_hop){.port = POD_PORT_DOWN, .peer = server_in, .order = order};
    case WAY_SERVER_IN:
        way_set(path, WAY_CHIP, dst);
        return (pod_net_hop){
            .port = POD_PORT_NIC_IN, .peer = pod_machine_cell(machine, enter_by), .order = order};
    case WAY_CHIP:
        way_set(path, WAY_HOME, dst);
        if (enter_by == dst) {
            *path = (pod_net_path){
                {0, 0}
            };
        }
        return (pod_net_hop){.port = POD_PORT_PCIE_IN, .peer = -1, .order = order};
    case WAY_HOME:
        break;
    }
    return hop_home(machine, chip, dst, path);
}
