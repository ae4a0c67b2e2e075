/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/machine.h"

#include "engine/placement.h"

#include <stdlib.h>
#include <string.h>

static int chip_ports(void *context, int32_t chip, pod_net_port *ports)
{
    const pod_machine *machine = context;
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        const double slowness = pod_slice_link_slowness(machine->slice, chip, direction);
        const int32_t peer = pod_slice_neighbor(machine->slice, chip, direction);
        ports[direction] = (pod_net_port){.peer = -1, .latency_ps = machine->hop_latency_ps};
        if (slowness > 0 && peer >= 0) {
            ports[direction].peer = peer;
            ports[direction].rate = pod_rate_make(machine->link_bytes_per_s / slowness);
        }
    }
    return POD_DIRECTIONS;
}

/* Ranks that own neighbours of this rank's chips. */
static int peers_find(const pod_machine *machine, const int32_t *first_cell, int32_t *peers)
{
    const int rank = pod_par_rank(machine->par);
    const int size = pod_par_size(machine->par);
    int npeers = 0;
    bool *is_peer = calloc((size_t)size, sizeof *is_peer);
    if (!is_peer) {
        return -1;
    }
    for (int32_t chip = first_cell[rank]; chip < first_cell[rank + 1]; chip++) {
        for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
            const int32_t peer = pod_slice_neighbor(machine->slice, chip, direction);
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
    const int32_t nchips = machine->slice->nchips;
    if (size > nchips) {
        return pod_fail(err, POD_E_USAGE, "%d ranks for the %d chips of %s; use at most %d ranks",
                        size, nchips, machine->slice->name, nchips);
    }
    int32_t *first_cell = calloc((size_t)size + 1, sizeof *first_cell);
    int32_t *peers = calloc((size_t)size + 1, sizeof *peers);
    int npeers = -1;
    if (first_cell && peers) {
        pod_placement_blocks(nchips, size, first_cell);
        npeers = peers_find(machine, first_cell, peers);
    }
    pod_status st =
        npeers >= 0 ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for %d ranks", size);
    st = pod_par_agree(machine->par, st, err);
    if (st == POD_OK) {
        pod_machine ports_context = *machine;
        const pod_net_options options = {
            .engine = {.ncells = nchips,
                       .lookahead_ps = machine->hop_latency_ps,
                       .first_cell = first_cell,
                       .peers = peers,
                       .npeers = npeers,
                       .progress = machine->progress},
            .ports = chip_ports,
            .ports_context = &ports_context,
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
    for (int32_t chip = 0; records && chip < machine->slice->nchips; chip++) {
        for (int port = 0; port < POD_DIRECTIONS; port++) {
            const int64_t bytes = records[(size_t)chip * POD_NET_PORTS_MAX + (size_t)port].bytes;
            summary->total_bytes += bytes;
            if (bytes > summary->max_bytes) {
                summary->max_bytes = bytes;
                summary->busiest_chip = chip;
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
