/* SPDX-License-Identifier: Apache-2.0 */
#include "net/net_state.h"

#include "engine/pages.h"

#include <stdlib.h>

enum { WIRES_MAX = 4096 };

/* The wire with this rate and latency; -1 when memory is out or there are too many. */
static int32_t wire_find(pod_net *net, const pod_net_port *port)
{
    const pod_rate shared = port->shared_rate.bytes_per_s > 0 ? port->shared_rate : port->rate;
    for (int32_t i = 0; i < net->nwires; i++) {
        if (net->wires[i].rate[0].bytes_per_s == port->rate.bytes_per_s
            && net->wires[i].rate[1].bytes_per_s == shared.bytes_per_s
            && net->wires[i].latency_ps == port->latency_ps) {
            return i;
        }
    }
    net_wire *wires = realloc(net->wires, (size_t)(net->nwires + 1) * sizeof *wires);
    if (!wires || net->nwires == WIRES_MAX) {
        net->wires = wires ? wires : net->wires;
        return -1;
    }
    net->wires = wires;
    wires[net->nwires] = (net_wire){
        .rate = {port->rate, shared},
          .latency_ps = port->latency_ps
    };
    return net->nwires++;
}

static pod_status cells_allocate(pod_net *net, const pod_net_options *options, pod_error *err)
{
    pod_net_port ports[POD_NET_PORTS_MAX];
    for (int32_t i = 0; i < net->ncells; i++) {
        const int count = options->ports(options->ports_context, net->first + i, ports);
        net->stride = count > net->stride ? count : net->stride;
    }
    const size_t ncells = (size_t)net->ncells;
    net->cells = pod_pages_new(ncells, sizeof *net->cells);
    const size_t nlinks = ncells * (size_t)net->stride;
    bool made = net->cells != NULL;
    if (options->alone) {
        const size_t bytes = sizeof(net_dock) + (size_t)net->stride * sizeof(net_lane);
        net->dock_bytes = pod_whole_lines(bytes);
        net->docks = pod_pages_new(ncells, net->dock_bytes);
        made = made && net->docks;
    } else {
        net->links = pod_pages_new(nlinks, sizeof *net->links);
        net->nflows = net->ncells * NET_OWN_FLOWS + 1;
        net->flows = pod_pages_new((size_t)net->nflows, sizeof *net->flows);
        made = made && net->links && net->flows;
    }
    if (made && options->route) {
        net->flow_peer = malloc((size_t)net->nflows * sizeof *net->flow_peer);
        made = net->flow_peer != NULL;
    }
    if (made && options->client->busy) {
        net->busy_since = calloc(nlinks + 1, sizeof *net->busy_since);
        made = net->busy_since != NULL;
    }
    if (made && options->client->left && net->flows) {
        net->flow_watch = calloc((size_t)net->nflows, sizeof *net->flow_watch);
        made = net->flow_watch != NULL;
    }
    if (!made) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d chips; use more ranks",
                        net->ncells);
    }
    return POD_OK;
}

static pod_status ports_build(pod_net *net, const pod_net_options *options, pod_error *err)
{
    for (int32_t i = 0; i < net->ncells; i++) {
        pod_net_port ports[POD_NET_PORTS_MAX];
        net_cell *state = &net->cells[i];
        *state = (net_cell){.timer_ps = POD_TIME_NEVER, .free_flows = (1U << NET_OWN_FLOWS) - 1};
        state->links = options->ports(options->ports_context, net->first + i, ports);
        if (net->docks) {
            *dock_at(net, net->first + i) =
                (net_dock){.timer_ps = POD_TIME_NEVER, .latest_ps = POD_TIME_NEVER};
        }
        for (int port = 0; port < state->links; port++) {
            state->done[port] = POD_TIME_NEVER;
            const int32_t wire = ports[port].peer != -1 ? wire_find(net, &ports[port]) : 0;
            if (wire < 0) {
                return pod_fail(err, POD_E_NOMEM,
                                "out of memory for links; at most %d different rates of links",
                                WIRES_MAX);
            }
            const int32_t peer = ports[port].peer;
            const int32_t at = i * net->stride + port;
            if (net->docks) {
                net_dock *dock = dock_at(net, net->first + i);
                dock->lanes[port] = (net_lane){.peer = peer};
                dock->wire[port] = (uint16_t)wire;
            } else {
                net->links[at] = (net_link){.head = -1, .tail = -1, .peer = peer, .wire = wire};
            }
        }
    }
    return POD_OK;
}

/* Links are the largest part of a cell's state. */
static void near_add(pod_net *net)
{
    const void *base[] = {net->cells, net->links, net->flows};
    const size_t bytes[] = {NET_CACHE_LINE, (size_t)net->stride * sizeof *net->links,
                            NET_OWN_FLOWS * sizeof *net->flows};
    const size_t stride[] = {sizeof *net->cells, bytes[1], bytes[2]};
    if (net->docks) {
        const int32_t dock_bytes = (int32_t)net->dock_bytes;
        pod_engine_near_add(
            net->engine,
            (pod_engine_near){.base = net->docks, .stride_bytes = dock_bytes, .bytes = dock_bytes});
        return;
    }
    for (int i = 0; i < 3; i++) {
        pod_engine_near_add(net->engine, (pod_engine_near){.base = base[i],
                                                           .stride_bytes = (int32_t)stride[i],
                                                           .bytes = (int32_t)bytes[i]});
    }
}

pod_status pod_net_new(pod_par *par, const pod_net_options *options, pod_net **out, pod_error *err)
{
    *out = NULL;
    pod_net *net = calloc(1, sizeof *net);
    pod_status st = net ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for the network");
    st = pod_par_agree(par, st, err);
    if (st != POD_OK) {
        free(net);
        return st;
    }
    net->client = *options->client;
    net->route = options->route;
    net->route_context = options->route_context;
    net->least_ps = options->least_ps;
    net->free_flow = -1;
    pod_map_init(&net->transit);
    pod_map_init(&net->arriving);
    pod_map_init(&net->holding);
    pod_map_init(&net->leaving);
    pod_engine_model model = options->alone ? pod_net_lane_model : pod_net_model;
    model.context = net;
    st = pod_engine_new(par, &options->engine, &model, &net->engine, err);
    if (st == POD_OK) {
        net->ncells = pod_engine_cells(net->engine, &net->first);
        st = cells_allocate(net, options, err);
        if (st == POD_OK) {
            st = ports_build(net, options, err);
        }
        st = pod_par_agree(par, st, err);
    }
    if (st != POD_OK) {
        pod_net_free(net);
        return st;
    }
    near_add(net);
    *out = net;
    return POD_OK;
}

void pod_net_free(pod_net *net)
{
    if (!net) {
        return;
    }
    pod_engine_free(net->engine);
    pod_map_fini(&net->leaving);
    pod_map_fini(&net->holding);
    pod_map_fini(&net->arriving);
    pod_map_fini(&net->transit);
    free(net->busy_since);
    free(net->flow_watch);
    free(net->flow_peer);
    free(net->flows);
    free(net->wires);
    free(net->docks);
    free(net->links);
    free(net->cells);
    free(net);
}

pod_engine *pod_net_engine(pod_net *net)
{
    return net->engine;
}

void pod_net_wake(pod_net *net, int32_t cell, pod_time_ps time_ps, uint64_t argument)
{
    const pod_event event = {
        .time_ps = time_ps, .dst = cell, .kind = EVENT_WAKE, .arg = {argument, 0, 0, 0}
    };
    pod_engine_post(net->engine, cell, &event);
}

pod_time_ps pod_net_now(const pod_net *net)
{
    return pod_engine_now(net->engine);
}

pod_status pod_net_run(pod_net *net, pod_error *err)
{
    return pod_engine_run(net->engine, err);
}

int64_t pod_net_hops(const pod_net *net)
{
    return net->hops;
}

static pod_net_link_record link_record(const pod_net *net, int32_t local, int32_t port)
{
    if (net->docks) {
        const net_lane *lane = &dock_at(net, net->first + local)->lanes[port];
        return (pod_net_link_record){.bytes = lane->bytes, .busy_ps = lane->busy_ps};
    }
    const net_link *link = &net->links[local * net->stride + port];
    return (pod_net_link_record){.bytes = link->bytes, .busy_ps = link->busy_ps};
}

pod_status pod_net_records(pod_par *par, const pod_net *net, pod_net_link_record **records,
                           pod_error *err)
{
    *records = NULL;
    const size_t count = (size_t)net->ncells * POD_NET_PORTS_MAX;
    pod_net_link_record *own = calloc(count + 1, sizeof *own);
    pod_status st = own ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for link records");
    st = pod_par_agree(par, st, err);
    if (st != POD_OK) {
        free(own);
        return st;
    }
    for (int32_t i = 0; i < net->ncells; i++) {
        for (int32_t port = 0; port < net->cells[i].links; port++) {
            own[(size_t)i * POD_NET_PORTS_MAX + (size_t)port] = link_record(net, i, port);
        }
    }
    void *all = NULL;
    size_t total = 0;
    st = pod_par_gather(par, own, count * sizeof *own, &all, &total, err);
    free(own);
    *records = all;
    return st;
}
