/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/machine.h"

#include "engine/placement.h"

#include <stdlib.h>
#include <string.h>

static int32_t period_of(const pod_machine *machine, int axis)
{
    return machine->period[axis] > 0 ? machine->period[axis] : machine->slice->dims[axis];
}

int32_t pod_machine_cells(const pod_machine *machine)
{
    return period_of(machine, 0) * period_of(machine, 1) * period_of(machine, 2);
}

int32_t pod_machine_chip(const pod_machine *machine, int32_t cell)
{
    const int32_t x = period_of(machine, 0);
    const int32_t y = period_of(machine, 1);
    const int32_t coords[POD_AXES] = {cell % x, cell / x % y, cell / x / y};
    return pod_slice_chip(machine->slice, coords);
}

int32_t pod_machine_cell(const pod_machine *machine, int32_t chip)
{
    int32_t at[POD_AXES];
    pod_slice_coords(machine->slice, chip, at);
    const int32_t x = period_of(machine, 0);
    const int32_t y = period_of(machine, 1);
    return at[0] % x + x * (at[1] % y + y * (at[2] % period_of(machine, 2)));
}

static int cell_ports(void *context, int32_t cell, pod_net_port *ports)
{
    const pod_machine *machine = context;
    const int32_t chip = pod_machine_chip(machine, cell);
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        const double slowness = pod_slice_link_slowness(machine->slice, chip, direction);
        const int32_t peer = pod_slice_neighbor(machine->slice, chip, direction);
        ports[direction] = (pod_net_port){.peer = -1, .latency_ps = machine->hop_latency_ps};
        if (slowness > 0 && peer >= 0) {
            ports[direction].peer = pod_machine_cell(machine, peer);
            ports[direction].rate = pod_rate_make(machine->link_bytes_per_s / slowness);
        }
    }
    return POD_DIRECTIONS;
}

/* Ranks that own neighbours of this rank's chips. */
static int peers_find(pod_machine *machine, const int32_t *first_cell, int32_t *peers)
{
    const int rank = pod_par_rank(machine->par);
    const int size = pod_par_size(machine->par);
    int npeers = 0;
    bool *is_peer = calloc((size_t)size, sizeof *is_peer);
    if (!is_peer) {
        return -1;
    }
    for (int32_t cell = first_cell[rank]; cell < first_cell[rank + 1]; cell++) {
        pod_net_port ports[POD_NET_PORTS_MAX];
        cell_ports(machine, cell, ports);
        for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
            const int32_t peer = ports[direction].peer;
            int low = 0;
            int high = size;
            while (peer >= 0 && high - low > 1) {
                const int middle = (low + high) / 2;
                if (first_cell[middle] <= peer) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            if (peer >= 0 && low != rank) {
                is_peer[low] = true;
            }
        }
    }
    for (int other = 0; other < size; other++) {
        if (is_peer[other]) {
            peers[npeers++] = other;
        }
    }
    free(is_peer);
    return npeers;
}

pod_status pod_machine_net(const pod_machine *machine, const pod_net_client *client, pod_net **net,
                           pod_error *err)
{
    *net = NULL;
    const int size = pod_par_size(machine->par);
    const int32_t ncells = pod_machine_cells(machine);
    if (size > ncells) {
        return pod_fail(err, POD_E_USAGE, "%d ranks for the %d chips of %s; use at most %d ranks",
                        size, ncells, machine->slice->name, ncells);
    }
    pod_machine own = *machine;
    int32_t *first_cell = calloc((size_t)size + 1, sizeof *first_cell);
    int32_t *peers = calloc((size_t)size + 1, sizeof *peers);
    int npeers = -1;
    if (first_cell && peers) {
        pod_placement_blocks(ncells, size, first_cell);
        npeers = peers_find(&own, first_cell, peers);
    }
    pod_status st =
        npeers >= 0 ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for %d ranks", size);
    st = pod_par_agree(machine->par, st, err);
    if (st == POD_OK) {
        const pod_net_options options = {
            .engine = {.ncells = ncells,
                       .lookahead_ps = machine->hop_latency_ps,
                       .first_cell = first_cell,
                       .peers = peers,
                       .npeers = npeers,
                       .progress = machine->progress},
            .ports = cell_ports,
            .ports_context = &own,
            .client = client,
        };
        st = pod_net_new(machine->par, &options, net, err);
    }
    free(peers);
    free(first_cell);
    return st;
}

int pod_machine_paths(const pod_machine *machine, int32_t src, int32_t dst, pod_net_path *paths)
{
    pod_path routes[POD_ROUTE_PATHS_MAX];
    const int count = pod_router_paths(machine->router, src, dst, routes);
    for (int i = 0; i < count; i++) {
        paths[i] = (pod_net_path){
            {0, 0}
        };
        for (int32_t j = 0; j < routes[i].nsegments; j++) {
            const bool fits =
                pod_net_path_append(&paths[i], routes[i].direction[j], routes[i].hops[j]);
            POD_ASSERT(fits);
        }
    }
    return count;
}

pod_status pod_machine_links(const pod_machine *machine, const pod_net *net,
                             pod_link_summary *summary, pod_error *err)
{
    pod_net_link_record *records = NULL;
    const pod_status st = pod_net_records(machine->par, net, &records, err);
    if (st != POD_OK) {
        return st;
    }
    *summary = (pod_link_summary){.busiest_chip = -1, .busiest_direction = -1};
    const int32_t ncells = pod_machine_cells(machine);
    for (int32_t cell = 0; records && cell < ncells; cell++) {
        for (int port = 0; port < POD_DIRECTIONS; port++) {
            const int64_t bytes = records[(size_t)cell * POD_NET_PORTS_MAX + (size_t)port].bytes;
            summary->total_bytes += bytes;
            if (bytes > summary->max_bytes) {
                summary->max_bytes = bytes;
                summary->busiest_chip = pod_machine_chip(machine, cell);
                summary->busiest_direction = port;
            }
        }
    }
    free(records);
    summary->hops = pod_net_hops(net);
    pod_par_bcast(machine->par, &summary->max_bytes, sizeof summary->max_bytes);
    pod_par_bcast(machine->par, &summary->busiest_chip, sizeof summary->busiest_chip);
    pod_par_bcast(machine->par, &summary->busiest_direction, sizeof summary->busiest_direction);
    pod_par_bcast(machine->par, &summary->total_bytes, sizeof summary->total_bytes);
    pod_par_sum_i64(machine->par, &summary->hops, 1);
    return POD_OK;
}
