/* SPDX-License-Identifier: Apache-2.0 */
/* Links that carry one message at a time (net.h). */
#include "engine/pages.h"
#include "net/net_state.h"

#include <stdlib.h>
#include <string.h>

/* A message's name in two of an event's arguments. */
static void tag_store(uint64_t arg[2], pod_net_tag tag)
{
    _Static_assert(sizeof tag == 2 * sizeof arg[0], "a tag is two words");
    memcpy(arg, &tag, sizeof tag);
}

static pod_net_tag tag_load(const uint64_t arg[2])
{
    pod_net_tag tag;
    memcpy(&tag, arg, sizeof tag);
    return tag;
}

/* Tell the client when the message of a link has left, or up to slack_ps later. */
static void link_arm(const pod_net *net, int32_t cell, int port, uint32_t slack_ps)
{
    net_ports *ports = ports_at(net, cell);
    net_exclusive *link = &ports->links[port];
    link->slack_ps = slack_ps;
    ports->awaited |= 1U << port;
    const pod_time_ps latest = link->free_ps + slack_ps;
    if (link->free_ps < ports->timer_ps || latest < ports->latest_ps) {
        ports->timer_ps = link->free_ps < ports->timer_ps ? link->free_ps : ports->timer_ps;
        ports->latest_ps = latest < ports->latest_ps ? latest : ports->latest_ps;
        pod_engine_timer_set_lazy(net->engine, cell, ports->timer_ps, ports->latest_ps);
    }
}

static pod_time_ps exclusive_link_send(pod_net *net, int32_t cell, int port, int64_t bytes,
                                       pod_net_tag tag, pod_payload *payload)
{
    net_ports *ports = ports_at(net, cell);
    net_exclusive *link = &ports->links[port];
    net_wire *wire = &net->wires[ports->wire[port]];
    const pod_time_ps now = pod_engine_now(net->engine);
    POD_ASSERT(link->free_ps <= now);
    const pod_time_ps work = pod_net_time_check(net, now, wire_work_ps(wire, bytes, tag.shared));
    link->bytes += bytes;
    link->busy_ps += work;
    link->free_ps = now + work;
    net->hops++;
    if (work
        == 0) { /* others may have it when this handler has ended, the first in order of them */
        link_arm(net, cell, port, 0);
    }
    pod_event *event = pod_engine_post_begin(net->engine, cell, link->peer,
                                             now + work + wire->latency_ps, payload);
    event->kind = EVENT_ARRIVE;
    event->small = 1;
    tag_store(event->arg, tag);
    return now + work;
}

bool pod_net_is_exclusive(const pod_net *net)
{
    return net->ports != NULL;
}

/* What the client sends at free_ps arrives one service and one latency later. The engine looks ahead by the
 * shortest of services and a latency; by the rest the client may be told later. */
bool pod_net_await(pod_net *net, int32_t cell, int port, int64_t bytes, bool shared)
{
    const net_ports *ports = ports_at(net, cell);
    const net_exclusive *link = &ports->links[port];
    const bool awaited = (ports->awaited >> port & 1U) != 0;
    if (link->free_ps <= pod_engine_now(net->engine)) {
        return awaited;
    }
    const pod_time_ps work = wire_work_ps(&net->wires[ports->wire[port]], bytes, shared);
    const pod_time_ps spare = work > net->least_ps ? work - net->least_ps : 0;
    const uint32_t slack_ps = spare < UINT32_MAX ? (uint32_t)spare : UINT32_MAX;
    if (awaited && link->slack_ps <= slack_ps) {
        return true;
    }
    link_arm(net, cell, port, slack_ps);
    return true;
}

static void exclusive_on_timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now)
{
    pod_net *net = context;
    net_ports *ports = ports_at(net, cell);
    pod_time_ps timer = POD_TIME_NEVER;
    pod_time_ps latest = POD_TIME_NEVER;
    uint32_t freed = 0;
    for (uint32_t rest = ports->awaited; rest != 0; rest &= rest - 1) {
        const net_exclusive *link = &ports->links[__builtin_ctz(rest)];
        if (link->free_ps <= now) {
            freed |= rest & -rest;
        } else {
            const pod_time_ps late = link->free_ps + link->slack_ps;
            timer = link->free_ps < timer ? link->free_ps : timer;
            latest = late < latest ? late : latest;
        }
    }
    ports->timer_ps = timer;
    ports->latest_ps = latest;
    if (timer != POD_TIME_NEVER) {
        pod_engine_timer_set_lazy(engine, cell, timer, latest);
    }
    for (; freed != 0; freed &= freed - 1) {
        ports->awaited &= ~(freed & -freed);
        net->client.freed(net->client.context, cell, __builtin_ctz(freed));
    }
}

static void exclusive_on_event(void *context, pod_engine *engine, int32_t cell,
                               const pod_event *event)
{
    (void)engine;
    const pod_net *net = context;
    if (event->kind == EVENT_ARRIVE) {
        net->client.arrived(net->client.context, cell, tag_load(event->arg), event->payload);
    } else {
        net->client.woke(net->client.context, cell, event->arg[0]);
    }
}

static bool exclusive_links_new(pod_net *net)
{
    const size_t bytes = sizeof(net_ports) + (size_t)net->stride * sizeof(net_exclusive);
    net->ports_bytes = pod_whole_lines(bytes);
    net->ports = pod_pages_new((size_t)net->ncells, net->ports_bytes);
    return net->ports != NULL;
}

static void exclusive_cell_init(pod_net *net, int32_t local)
{
    *ports_at(net, net->first + local) =
        (net_ports){.timer_ps = POD_TIME_NEVER, .latest_ps = POD_TIME_NEVER};
}

static void exclusive_link_init(pod_net *net, int32_t local, int port, const pod_net_port *made,
                                int32_t wire)
{
    net_ports *ports = ports_at(net, net->first + local);
    ports->links[port] = (net_exclusive){.peer = made->peer};
    ports->wire[port] = (uint16_t)wire;
}

static void exclusive_near_add(pod_net *net)
{
    const int32_t bytes = (int32_t)net->ports_bytes;
    pod_engine_near_add(
        net->engine, (pod_engine_near){.base = net->ports, .stride_bytes = bytes, .bytes = bytes});
}

static void exclusive_links_free(pod_net *net)
{
    free(net->ports);
}

static pod_net_link_record exclusive_record(const pod_net *net, int32_t local, int32_t port)
{
    const net_exclusive *link = &ports_at(net, net->first + local)->links[port];
    return (pod_net_link_record){.bytes = link->bytes, .busy_ps = link->busy_ps};
}

const net_discipline pod_net_exclusive_links = {.links_new = exclusive_links_new,
                                                .cell_init = exclusive_cell_init,
                                                .link_init = exclusive_link_init,
                                                .near_add = exclusive_near_add,
                                                .links_free = exclusive_links_free,
                                                .handle = exclusive_on_event,
                                                .timer = exclusive_on_timer,
                                                .send = exclusive_link_send,
                                                .record = exclusive_record};
