/* SPDX-License-Identifier: Apache-2.0 */
#include "net/net.h"

#include "engine/pages.h"
#include "net/net_state.h"

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
    net->cells = pod_pages_new((size_t)net->ncells, sizeof *net->cells);
    const size_t nlinks = (size_t)net->ncells * (size_t)net->stride;
    bool made = net->cells != NULL && net->discipline->links_new(net);
    if (made && options->client->busy) {
        net->busy_since = calloc(nlinks + 1, sizeof *net->busy_since);
        made = net->busy_since != NULL;
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
        net->discipline->cell_init(net, i);
        for (int port = 0; port < state->links; port++) {
            state->done[port] = POD_TIME_NEVER;
            const int32_t wire = ports[port].peer != -1 ? wire_find(net, &ports[port]) : 0;
            if (wire < 0) {
                return pod_fail(err, POD_E_NOMEM,
                                "out of memory for links; at most %d different rates of links",
                                WIRES_MAX);
            }
            net->discipline->link_init(net, i, port, &ports[port], wire);
        }
    }
    return POD_OK;
}

static bool blocked(void *context, int32_t cell, char *text, size_t size)
{
    const pod_net *net = context;
    return net->client.blocked && net->client.blocked(net->client.context, cell, text, size);
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
    net->free_flow = NET_NONE;
    net->free_message = NET_NONE;
    pod_map_init(&net->transit);
    pod_map_init(&net->arriving);
    pod_map_init(&net->holding);
    pod_map_init(&net->leaving);
    net->discipline = options->exclusive ? &pod_net_exclusive_links : &pod_net_shared_links;
    const pod_engine_model model = {.context = net,
                                    .handle = net->discipline->handle,
                                    .timer = net->discipline->timer,
                                    .soon = net->discipline->soon,
                                    .blocked = blocked};
    st = pod_engine_new(par, &options->engine, &model, &net->engine, err);
    if (st == POD_OK) {
        net->ncells = pod_engine_cells(net->engine, &net->first);
        net->whole = net->ncells == options->engine.ncells;
        st = cells_allocate(net, options, err);
        POD_THEN(st, ports_build(net, options, err));
        st = pod_par_agree(par, st, err);
    }
    if (st != POD_OK) {
        pod_net_free(net);
        return st;
    }
    net->discipline->near_add(net);
    *out = net;
    return POD_OK;
}

void pod_net_free(pod_net *net)
{
    if (!net) {
        return;
    }
    pod_engine_free(net->engine);
    free(net->legs);
    pod_map_fini(&net->leaving);
    pod_map_fini(&net->holding);
    pod_map_fini(&net->arriving);
    pod_map_fini(&net->transit);
    free(net->busy_since);
    net->discipline->links_free(net);
    free(net->wires);
    free(net->cells);
    free(net);
}

pod_engine *pod_net_engine(pod_net *net)
{
    return net->engine;
}

pod_time_ps pod_net_send(pod_net *net, int32_t cell, int port, int64_t bytes, pod_net_tag tag,
                         pod_payload *payload)
{
    return net->discipline->send(net, cell, port, bytes, tag, payload);
}

void pod_net_wake_other(pod_net *net, int32_t from, int32_t cell, pod_time_ps time_ps,
                        uint64_t argument)
{
    const pod_event event = {
        .time_ps = time_ps, .dst = cell, .kind = EVENT_WAKE, .arg = {argument, 0, 0, 0}
    };
    pod_engine_post(net->engine, from, &event);
}

void pod_net_wake(pod_net *net, int32_t cell, pod_time_ps time_ps, uint64_t argument)
{
    pod_net_wake_other(net, cell, cell, time_ps, argument);
}

pod_time_ps pod_net_now(const pod_net *net)
{
    return pod_engine_now(net->engine);
}

pod_status pod_net_run(pod_net *net, pod_error *err)
{
    return pod_engine_run(net->engine, err);
}

void pod_net_record_add(pod_net *net, int32_t cell, int port, const pod_net_link_record *record)
{
    POD_DASSERT(net->links != NULL);
    const int32_t local = cell - net->first;
    if (port < net->cells[local].links) {
        net_link *link = &net->links[local * net->stride + port];
        link->bytes += record->bytes;
        link->share.busy_ps += record->busy_ps;
    }
}

void pod_net_hops_add(pod_net *net, int64_t hops)
{
    net->hops += hops;
}

int64_t pod_net_hops(const pod_net *net)
{
    return net->hops;
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
            own[(size_t)i * POD_NET_PORTS_MAX + (size_t)port] =
                net->discipline->record(net, i, port);
        }
    }
    void *all = NULL;
    size_t total = 0;
    st = pod_par_gather(par, own, count * sizeof *own, &all, &total, err);
    free(own);
    *records = all;
    return st;
}
