/* SPDX-License-Identifier: Apache-2.0 */
#include "net/machine.h"

#include "engine/placement.h"
#include "net/dcn_ports.h"

#include <stdlib.h>
#include <string.h>

bool pod_machine_folds(const pod_machine *machine)
{
    for (int a = 0; machine->dcn && a < POD_AXES; a++) {
        const int32_t server = machine->dcn->options.server_dims[a];
        const int32_t period = pod_machine_period(machine, a);
        if (period != machine->slice->dims[a] && period % server != 0 && server % period != 0) {
            return false;
        }
    }
    return true;
}

int pod_machine_hbm_port(const pod_machine *machine)
{
    return machine->dcn ? POD_PORTS_WITH_DCN : POD_DIRECTIONS;
}

static int cell_ports(void *context, int32_t cell, pod_net_port *ports)
{
    const pod_machine *machine = context;
    const int32_t nchips = machine->slice->nchips;
    const int32_t chip = pod_machine_chip(machine, cell);
    const int32_t local = chip % nchips;
    const double shared_frac = machine->shared_frac > 0 ? machine->shared_frac : 1;
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        const double slowness =
            pod_slice_link_slowness_in(machine->slice, chip / nchips, local, direction);
        const int32_t peer = pod_slice_neighbor(machine->slice, local, direction);
        ports[direction] = (pod_net_port){.peer = -1, .latency_ps = machine->hop_latency_ps};
        if (slowness > 0 && peer >= 0) {
            const double rate = machine->link_bytes_per_s / slowness;
            ports[direction].peer = pod_machine_cell(machine, chip - local + peer);
            ports[direction].rate = pod_rate_make(rate);
            ports[direction].shared_rate = pod_rate_make(rate * shared_frac);
        }
    }
    const int count = machine->dcn ? pod_dcn_ports(machine, cell, ports) : POD_DIRECTIONS;
    if (machine->hbm_bytes_per_s <= 0) {
        return count;
    }
    ports[count] = (pod_net_port){.peer = cell, .rate = pod_rate_make(machine->hbm_bytes_per_s)};
    return count + 1;
}

/* ---- the order of cells ---- */

/* The axes of a slice as they are sorted, if that isn't how they are named. */
static bool axes_move(const pod_slice *slice, int axis[POD_AXES])
{
    int last = -1;
    bool moved = false;
    pod_slice_axes_sorted(slice, axis);
    for (int i = 0; i < POD_AXES; i++) {
        moved = moved || (slice->dims[axis[i]] > 1 && axis[i] < last);
        last = slice->dims[axis[i]] > 1 ? axis[i] : last;
    }
    return moved;
}

/* Cells by the places of their chips (pod_slice_place): what happens first in one picosecond doesn't depend on the
 * names of axes. @param[out] order  to be freed; NULL: by their numbers */
static pod_status cells_order(const pod_machine *machine, int32_t ncells, int32_t **order,
                              pod_error *err)
{
    int axis[POD_AXES];
    const pod_slice *slice = machine->slice;
    *order = NULL;
    if (!axes_move(slice, axis)) {
        return POD_OK;
    }
    *order = malloc((size_t)ncells * sizeof **order);
    if (*order == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d cells", (int)ncells);
    }
    for (int32_t cell = 0; cell < ncells; cell++) {
        const int32_t chip = pod_machine_chip(machine, cell);
        const int32_t local = chip % slice->nchips;
        (*order)[cell] = chip - local + pod_slice_place(slice, axis, local);
    }
    return POD_OK;
}

/* ---- ranks ---- */

/* Longer strides gain nothing, and sums of times must not overflow. */
#define LEAST_MAX_PS (1000 * POD_PS_PER_US)

/* Which ranks own cells that ports of this rank lead to, and the smallest latency between. */
typedef struct rank_peers {
    const int32_t *first_cell;
    int rank;
    int size;
    bool *is_peer;
    pod_time_ps latency_ps; /* of the port that is looked at */
    pod_time_ps cross_ps;
    int64_t least_bytes;
    pod_time_ps least_ps; /* that least_bytes take on any port */
} rank_peers;

static void peer_note(void *context, int32_t cell)
{
    rank_peers *peers = context;
    int low = 0;
    int high = peers->size;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (peers->first_cell[middle] <= cell) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (low != peers->rank) {
        peers->is_peer[low] = true;
        peers->cross_ps = peers->latency_ps < peers->cross_ps ? peers->latency_ps : peers->cross_ps;
    }
}

static void peers_note(pod_machine *machine, rank_peers *peers)
{
    const int32_t end = peers->first_cell[peers->rank + 1];
    for (int32_t cell = peers->first_cell[peers->rank]; cell < end; cell++) {
        pod_net_port ports[POD_NET_PORTS_MAX];
        const int nports = cell_ports(machine, cell, ports);
        for (int port = 0; port < nports; port++) {
            peers->latency_ps = ports[port].latency_ps;
            if (ports[port].peer != -1) {
                const pod_time_ps work_ps = pod_rate_time_ps(ports[port].rate, peers->least_bytes);
                peers->least_ps = work_ps < peers->least_ps ? work_ps : peers->least_ps;
            }
            if (ports[port].peer >= 0) {
                peer_note(peers, ports[port].peer);
            } else if (ports[port].peer == POD_NET_PEER_ADDRESSED) {
                pod_dcn_peers(machine, cell, port, peer_note, peers);
            }
        }
    }
}

/* Whose cells send to this rank's: its peers, too. A server without a NIC sends by another one's, and what comes for it
 * comes by a third. Collective. @param named  room for size * size */
static void peers_add_back(const pod_machine *machine, rank_peers *peers, int64_t *named)
{
    const int size = peers->size;
    for (int other = 0; other < size; other++) {
        named[peers->rank * size + other] = peers->is_peer[other] ? 1 : 0;
    }
    pod_par_sum_i64(machine->par, named, size * size);
    for (int other = 0; other < size; other++) {
        peers->is_peer[other] = peers->is_peer[other] || named[other * size + peers->rank] > 0;
    }
}

/* Ranks that own neighbours of this rank's cells, and the times of *peers. Collective.
 * @return their number, -1 when memory is out on some rank */
static int peers_find(pod_machine *machine, rank_peers *peers, int32_t *list)
{
    const int size = peers->size;
    const bool one_sided = size > 1 && machine->dcn != NULL && machine->dcn->nfaults > 0;
    peers->is_peer = calloc((size_t)size, sizeof *peers->is_peer);
    int64_t *named = one_sided ? calloc((size_t)size * (size_t)size, sizeof *named) : NULL;
    int64_t short_of_memory = peers->is_peer == NULL || (one_sided && named == NULL) ? 1 : 0;
    if (one_sided) {
        pod_par_max_i64(machine->par, &short_of_memory, 1);
    }
    if (short_of_memory != 0) {
        free(named);
        free(peers->is_peer);
        return -1;
    }
    peers_note(machine, peers);
    if (one_sided) {
        peers_add_back(machine, peers, named);
    }
    free(named);
    int npeers = 0;
    for (int other = 0; other < size; other++) {
        if (peers->is_peer[other]) {
            list[npeers++] = other;
        }
    }
    free(peers->is_peer);
    return npeers;
}

static pod_status ranks_check(const pod_machine *machine, pod_error *err)
{
    const int size = pod_par_size(machine->par);
    const int32_t ncells = pod_machine_cells(machine);
    return size <= ncells
               ? POD_OK
               : pod_fail(err, POD_E_USAGE, "%d ranks for the %d chips of %s; use at most %d ranks",
                          size, ncells, machine->slice->name, ncells);
}

pod_status pod_machine_net(const pod_machine *machine, const pod_net_client *client,
                           int64_t exclusive_bytes, pod_net **net, pod_error *err)
{
    *net = NULL;
    const int size = pod_par_size(machine->par);
    const int32_t ncells = pod_machine_cells(machine);
    POD_TRY(ranks_check(machine, err));
    POD_ASSERT(pod_machine_folds(machine));
    pod_machine own = *machine;
    const pod_time_ps lookahead_ps =
        machine->dcn ? pod_dcn_near_ps(machine) : machine->hop_latency_ps;
    int32_t *first_cell = calloc((size_t)size + 1, sizeof *first_cell);
    int32_t *peers = calloc((size_t)size + 1, sizeof *peers);
    rank_peers found = {.first_cell = first_cell,
                        .rank = pod_par_rank(machine->par),
                        .size = size,
                        .cross_ps = POD_TIME_NEVER,
                        .least_bytes = exclusive_bytes > 0 ? exclusive_bytes : 0,
                        .least_ps = POD_TIME_NEVER};
    int32_t *order = NULL;
    int npeers = -1;
    pod_status st = first_cell && peers
                        ? POD_OK
                        : pod_fail(err, POD_E_NOMEM, "out of memory for %d ranks", size);
    st = pod_par_agree(machine->par, st, err);
    if (st == POD_OK) {
        pod_placement_blocks(ncells, size, first_cell);
        npeers = peers_find(&own, &found, peers);
    }
    st = st == POD_OK && npeers < 0 ? pod_fail(err, POD_E_NOMEM, "out of memory for %d ranks", size)
                                    : st;
    POD_THEN(st, cells_order(machine, ncells, &order, err));
    st = pod_par_agree(machine->par, st, err);
    int64_t times_ps[] = {found.cross_ps, found.least_ps};
    pod_par_min_i64(machine->par, times_ps, 2);
    const pod_time_ps cross_ps = times_ps[0] == POD_TIME_NEVER ? lookahead_ps : times_ps[0];
    const pod_time_ps least_ps = times_ps[1] < LEAST_MAX_PS ? times_ps[1] : LEAST_MAX_PS;
    if (st == POD_OK) {
        const pod_net_options options = {
            .engine = {.ncells = ncells,
                       .lookahead_ps = lookahead_ps + least_ps,
                       .lookahead_cross_ps = cross_ps + least_ps,
                       .order = order,
                       .first_cell = first_cell,
                       .peers = machine->circuits ? NULL : peers,
                       .npeers = npeers,
                       .part_ps = machine->part_ps,
                       .progress = machine->progress,
                       .progress_context = machine->progress_context},
            .ports = cell_ports,
            .ports_context = &own,
            .route = machine->dcn ? pod_dcn_route : NULL,
            .route_context = machine,
            .client = client,
            .exclusive = exclusive_bytes >= 0,
            .least_ps = least_ps,
        };
        st = pod_net_new(machine->par, &options, net, err);
    }
    free(order);
    free(peers);
    free(first_cell);
    return st;
}

_Static_assert((int)POD_PATH_SEGMENTS_MAX <= (int)POD_NET_SEGMENTS_MAX
                   && (int)POD_PATH_RUN_MAX <= (int)POD_NET_RUN_MAX,
               "a message carries every path of the router");

int pod_machine_paths(const pod_machine *machine, int32_t src, int32_t dst, uint32_t order,
                      pod_net_path *paths)
{
    const int32_t nchips = machine->slice->nchips;
    if (src / nchips != dst / nchips) {
        paths[0] = pod_dcn_address(machine, src, dst, order);
        return 1;
    }
    pod_path routes[POD_ROUTE_PATHS_MAX];
    const int count = pod_router_paths(machine->router, src % nchips, dst % nchips, routes);
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

void pod_machine_send_circuits(const pod_machine *machine, pod_net *net, int32_t src, int32_t dst,
                               bool ties_plus, int64_t bytes, pod_net_tag tag, pod_payload *payload)
{
    pod_path routes[POD_ROUTE_PATHS_MAX];
    int32_t nlegs[POD_ROUTE_PATHS_MAX];
    const int32_t base = src - src % machine->slice->nchips;
    int count = pod_router_paths(machine->router, src - base, dst - base, routes);
    count = ties_plus ? pod_paths_keep_plus(routes, count) : count;
    pod_net_leg *legs = pod_net_legs(net, count * routes[0].nhops);
    int32_t n = 0;
    for (int i = 0; i < count; i++) {
        int32_t chip = src - base;
        nlegs[i] = routes[i].nhops;
        for (int32_t j = 0; j < routes[i].nsegments; j++) {
            const int port = routes[i].direction[j];
            for (int32_t hop = 0; hop < routes[i].hops[j]; hop++) {
                legs[n++] = (pod_net_leg){pod_machine_cell(machine, base + chip), port};
                chip = pod_router_neighbor(machine->router, chip, port);
            }
        }
    }
    pod_net_send_circuits(net, pod_machine_cell(machine, src), legs, nlegs, count,
                          pod_machine_cell(machine, dst), bytes, tag, payload);
}

/* What the ports of one cell have carried. */
static void summary_add(const pod_machine *machine, int32_t cell, const pod_net_link_record *record,
                        pod_link_summary *summary)
{
    const int32_t chip = pod_machine_chip(machine, cell);
    for (int port = 0; port < POD_DIRECTIONS; port++) {
        summary->total_bytes += record[port].bytes;
        summary->direction_bytes[port] += record[port].bytes;
        summary->direction_busy_ps[port] += record[port].busy_ps;
        summary->max_bytes = pod_max_i64(summary->max_bytes, record[port].bytes);
        if (record[port].busy_ps > summary->busy_ps
            || (record[port].busy_ps == summary->busy_ps
                && record[port].bytes > summary->busiest_bytes)) {
            summary->busy_ps = record[port].busy_ps;
            summary->busiest_bytes = record[port].bytes;
            summary->busiest_chip = chip;
            summary->busiest_direction = port;
        }
    }
    summary->dcn_bytes += record[POD_PORT_NIC_OUT].bytes;
    for (int port = POD_PORT_NIC_OUT; port <= POD_PORT_NIC_IN; port++) {
        if (record[port].bytes > summary->dcn_max_bytes) {
            const int32_t nchips = machine->slice->nchips;
            summary->dcn_max_bytes = record[port].bytes;
            summary->dcn_busy_ps = record[port].busy_ps;
            summary->dcn_busiest_slice = chip / nchips;
            summary->dcn_busiest_server = pod_dcn_server(machine->dcn, chip % nchips);
        }
    }
}

pod_status pod_machine_links(const pod_machine *machine, const pod_net *net,
                             pod_link_summary *summary, pod_error *err)
{
    pod_net_link_record *records = NULL;
    const pod_status st = pod_net_records(machine->par, net, &records, err);
    if (st != POD_OK) {
        return st;
    }
    *summary = (pod_link_summary){.busiest_chip = -1,
                                  .busiest_direction = -1,
                                  .dcn_busiest_slice = -1,
                                  .dcn_busiest_server = -1};
    const int32_t ncells = pod_machine_cells(machine);
    for (int32_t cell = 0; records && cell < ncells; cell++) {
        summary_add(machine, cell, &records[(size_t)cell * POD_NET_PORTS_MAX], summary);
    }
    free(records);
    summary->hops = 0;
    pod_par_bcast(machine->par, summary, sizeof *summary);
    summary->hops = pod_net_hops(net);
    pod_par_sum_i64(machine->par, &summary->hops, 1);
    return POD_OK;
}
