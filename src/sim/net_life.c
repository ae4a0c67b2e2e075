/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/net_impl.h"

#include <stdlib.h>

static pod_status ports_build(pod_net *net, const pod_net_options *options, pod_error *err)
{
    int32_t capacity = 0;
    int32_t used = 0;
    for (int32_t i = 0; i < net->ncells; i++) {
        pod_net_port ports[POD_NET_PORTS_MAX];
        const int count = options->ports(options->ports_context, net->first + i, ports);
        if (used + count > capacity) {
            capacity = 2 * capacity + POD_NET_PORTS_MAX;
            net_link *links = realloc(net->links, (size_t)capacity * sizeof *links);
            if (!links) {
                return pod_fail(err, POD_E_NOMEM, "out of memory for %d links; use more ranks",
                                capacity);
            }
            net->links = links;
        }
        net->cells[i] = (net_cell){.first_link = used, .links = count, .timer_ps = POD_TIME_NEVER};
        for (int port = 0; port < count; port++) {
            net->links[used++] = (net_link){.head = -1,
                                            .tail = -1,
                                            .peer = ports[port].peer,
                                            .latency_ps = ports[port].latency_ps,
                                            .rate = ports[port].rate};
        }
    }
    net->done = malloc(((size_t)used + 1) * sizeof *net->done);
    if (!net->done) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d links; use more ranks", used);
    }
    for (int32_t i = 0; i < used; i++) {
        net->done[i] = POD_TIME_NEVER;
    }
    return POD_OK;
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
    net->free_flow = -1;
    pod_map_init(&net->transit);
    pod_map_init(&net->arriving);
    pod_map_init(&net->holding);
    pod_map_init(&net->leaving);
    pod_engine_model model = pod_net_model;
    model.context = net;
    st = pod_engine_new(par, &options->engine, &model, &net->engine, err);
    if (st == POD_OK) {
        net->ncells = pod_engine_cells(net->engine, &net->first);
        net->cells = calloc((size_t)net->ncells + 1, sizeof *net->cells);
        st = net->cells ? ports_build(net, options, err)
                        : pod_fail(err, POD_E_NOMEM, "out of memory for %d chips; use more ranks",
                                   net->ncells);
        st = pod_par_agree(par, st, err);
    }
    if (st != POD_OK) {
        pod_net_free(net);
        return st;
    }
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
    free(net->flows);
    free(net->done);
    free(net->links);
    free(net->cells);
    free(net);
}

pod_engine *pod_net_engine(pod_net *net)
{
    return net->engine;
}

pod_status pod_net_run(pod_net *net, pod_error *err)
{
    return pod_engine_run(net->engine, err);
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
            const net_link *link = &net->links[net->cells[i].first_link + port];
            own[(size_t)i * POD_NET_PORTS_MAX + (size_t)port] =
                (pod_net_link_record){.bytes = link->bytes, .busy_ps = link->busy_ps};
        }
    }
    void *all = NULL;
    size_t total = 0;
    st = pod_par_gather(par, own, count * sizeof *own, &all, &total, err);
    free(own);
    *records = all;
    return st;
}
