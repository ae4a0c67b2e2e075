/* SPDX-License-Identifier: Apache-2.0 */
/* Links that messages share fairly, and routers between them (net.h). */
#include "engine/pages.h"
#include "net/net_state.h"

#include <stdlib.h>
#include <string.h>

static const pod_net_path nothing_left = {
    {0, 0}
};

/* ---- the messages of a link, served by their finish, equals as they joined ---- */

static pod_flow_key key_of(const pod_net *net, int32_t flow)
{
    return (pod_flow_key){
        .finish = net->flows[flow].finish, .number = net->flows[flow].number, .flow = flow};
}

/* A link's queue. @param[in,out] number  of it, -1 = none yet */
static pod_flow_queue *queue_need(pod_net *net, int32_t *number)
{
    if (*number >= 0) {
        return &net->queues[*number];
    }
    if (net->nqueues == net->queues_room) {
        const int64_t room = net->queues_room > 0 ? 2 * net->queues_room : 16;
        pod_flow_queue *queues = pod_pages_new((size_t)room, sizeof *queues);
        POD_NEED(queues, "messages on links");
        if (net->queues) {
            memcpy(queues, net->queues, (size_t)net->nqueues * sizeof *queues);
        }
        free(net->queues);
        net->queues = queues;
        net->queues_room = room;
    }
    *number = (int32_t)net->nqueues++;
    pod_flow_queue_init(&net->queues[*number]);
    return &net->queues[*number];
}

/* When the first of a link's messages has had its service, in virtual time: it has one. */
static pod_time_ps link_finish(const pod_net *net, const net_link *link)
{
    return link->only >= 0 ? net->flows[link->only].finish
                           : net->queues[link->share.first].first.finish;
}

static void link_insert(pod_net *net, net_link *link, int32_t flow)
{
    if (link->share.messages++ == 0) {
        link->only = flow;
        return;
    }
    pod_flow_queue *queue = queue_need(net, &link->share.first);
    bool put = true;
    if (link->only >= 0) {
        put = pod_flow_queue_put(queue, key_of(net, link->only));
        link->only = -1;
    }
    put = put && pod_flow_queue_put(queue, key_of(net, flow));
    POD_NEED(put ? queue : NULL, "messages on links");
}

/* Take off the first message, and have the one after it near by the time it is served. */
static int32_t link_take(const pod_net *net, net_link *link)
{
    const int32_t only = link->only;
    link->share.messages--;
    link->only = -1;
    if (only >= 0) {
        return only;
    }
    pod_flow_queue *queue = &net->queues[link->share.first];
    const int32_t flow = pod_flow_queue_take(queue);
    __builtin_prefetch(&net->flows[queue->first.flow], 1);
    return flow;
}

/* The first message is about to leave: have its next flow near. */
static void link_prefetch(const pod_net *net, const net_link *link)
{
    const int32_t first = link->only >= 0 ? link->only : net->queues[link->share.first].first.flow;
    const int32_t next = net->flows[first].next;
    if (next != NET_NONE) {
        __builtin_prefetch(&net->flows[next], 1);
    }
}

/* ---- links that serve in order: other orders wait in a queue of their own ---- */

static bool others_wait(const pod_net *net, const net_link *link)
{
    return link->waiting >= 0 && net->waiting[link->waiting].count > 0;
}

static void order_wait(pod_net *net, net_link *link, int32_t flow)
{
    if (link->waiting < 0) {
        const bool grown = POD_GROW(net->waiting, net->waiting_room, net->nwaiting + 1);
        POD_NEED(grown ? net->waiting : NULL, "messages on links");
        link->waiting = (int32_t)net->nwaiting++;
        net->waiting[link->waiting] = (pod_link_queue){.keys = NULL};
    }
    pod_link_queue *queue = &net->waiting[link->waiting];
    net->flows[flow].finish -= link->share.virtual_ps;
    const bool put = pod_link_queue_put(queue, (pod_link_key){.finish = net->flows[flow].finish,
                                                              .order = net->flow_order[flow],
                                                              .number = net->flows[flow].number,
                                                              .message = flow});
    POD_NEED(put ? queue->keys : NULL, "messages on links");
}

/* Serve the messages of the lowest order that waits. */
static void order_begin(pod_net *net, net_link *link)
{
    POD_DASSERT(link->share.messages == 0 && others_wait(net, link));
    pod_link_queue *waiting = &net->waiting[link->waiting];
    link->order = waiting->keys[0].order;
    while (waiting->count > 0 && waiting->keys[0].order == link->order) {
        const int32_t flow = pod_link_queue_take(waiting);
        net->flows[flow].finish += link->share.virtual_ps;
        link_insert(net, link, flow);
    }
}

/* A message joins others of another order. Its finish is that of a message which is served at once. Those that are
 * served wait, with the rest of their work, for one of a lower order. */
static void order_join(pod_net *net, net_link *link, int32_t flow)
{
    const bool lower = net->flow_order[flow] < link->order;
    while (lower && link->share.messages > 0) {
        order_wait(net, link, link_take(net, link));
    }
    order_wait(net, link, flow);
    if (lower) {
        order_begin(net, link);
    }
}

/* ---- links ---- */

/* When the first message of the list has had its service. */
static pod_time_ps link_done(const pod_net *net, const net_link *link)
{
    return link->share.messages > 0 ? pod_link_served_ps(&link->share, link_finish(net, link))
                                    : POD_TIME_NEVER;
}

static void link_join(pod_net *net, int32_t local, int port, int32_t flow, int64_t bytes,
                      pod_time_ps now)
{
    net_link *link = &net->links[local * net->stride + port];
    const int shared = (net->flows[flow].flags & FLOW_SHARED) != 0;
    pod_link_advance(&link->share, now);
    const pod_time_ps work = pod_net_time_check(
        net, link->share.virtual_ps, wire_work_ps(&net->wires[link->wire], bytes, shared));
    net->flows[flow].finish = link->share.virtual_ps + work;
    link->bytes += bytes;
    net->hops++;
    net->flows[flow].number = link->joined++;
    if (link->share.messages == 0) { /* most often: the link to itself */
        link_insert(net, link, flow);
        link->order = link->in_order ? net->flow_order[flow] : 0;
        if (net->busy_since) {
            net->busy_since[local * net->stride + port] = now;
        }
        net->cells[local].done[port] = now + work;
        return;
    }
    if (link->in_order && net->flow_order[flow] != link->order) {
        order_join(net, link, flow);
    } else {
        link_insert(net, link, flow);
    }
    net->cells[local].done[port] = link_done(net, link);
}

/* What the next cell knows a flow by. A number may be in use again before its last tail has arrived
 * there, but not on the same link to the same cell, which keeps its order. */
static uint64_t flow_name(int32_t flow, int port)
{
    return (uint64_t)(uint32_t)port << 32 | (uint32_t)flow;
}

static int32_t flow_peer(const pod_net *net, const net_link *link, int32_t flow)
{
    const bool own =
        link->peer == POD_NET_PEER_ADDRESSED || (net->flows[flow].flags & FLOW_CIRCUIT) != 0;
    POD_DASSERT(!own || net->flow_peer != NULL);
    return own ? net->flow_peer[flow] : link->peer;
}

/* Of this rank. Any number may be asked about (on_soon), so the difference is unsigned. */
static bool is_near(const pod_net *net, int32_t cell)
{
    return (uint32_t)cell - (uint32_t)net->first < (uint32_t)net->ncells;
}

/* The tail of a flow goes over its link, which isn't its last, and is with the next cell at time_ps. There it matters
 * from the end of the service on: the next flow keeps it until then. */
static void tail_hand_on(pod_net *net, int32_t cell, int32_t peer, int32_t flow,
                         pod_time_ps time_ps)
{
    const net_flow *left = &net->flows[flow];
    net_flow *next = &net->flows[left->next];
    next->tag = left->tag;
    next->step = left->step;
    next->fragments = left->fragments;
    next->message = left->message;
    next->payload = left->payload;
    if (net->flow_watch) {
        net->flow_watch[left->next].source = net->flow_watch[flow].source;
    }
    if (next->flags & FLOW_SERVED) {
        pod_event *event = pod_engine_post_begin(net->engine, cell, peer, time_ps, NULL);
        event->kind = EVENT_TAIL;
        event->arg[2] = (uint64_t)left->next;
    } else {
        next->tail = pod_engine_place_take(net->engine, cell, time_ps);
    }
}

/* The tail of one of several fragments goes over its last link. All cells are of this rank: when the last tail has set
 * out, it is known which one comes last. */
static void fragment_hand_on(pod_net *net, int32_t cell, int32_t peer, const net_flow *left,
                             pod_time_ps time_ps)
{
    net_message *m = &net->messages[left->message];
    const pod_engine_place place = pod_engine_place_take(net->engine, cell, time_ps);
    if (pod_engine_place_before(net->engine, &m->last, &place)) {
        m->last = place;
    }
    if (--m->coming == 0) {
        pod_event *event = pod_engine_post_at(net->engine, &m->last, peer, m->payload);
        event->kind = EVENT_ARRIVE;
        event->small = 1;
        event->arg[0] = left->tag;
        event->arg[1] = left->step;
        m->payload = NULL;
        pod_net_message_release(net, left->message);
    }
}

static void event_hand_on(pod_net *net, int32_t cell, const net_link *link, int32_t flow,
                          pod_time_ps time_ps)
{
    const net_flow *left = &net->flows[flow];
    pod_event *event = pod_engine_post_begin(net->engine, cell, flow_peer(net, link, flow), time_ps,
                                             left->payload);
    event->kind = left->flags & FLOW_LAST ? EVENT_ARRIVE : EVENT_TAIL;
    event->small = left->fragments;
    event->arg[0] = left->tag;
    event->arg[1] = left->step;
    event->arg[2] = flow_name(flow, left->port);
    event->arg[3] = net->flow_watch ? (uint64_t)net->flow_watch[flow].source : 0;
}

/* A message, or one of its fragments, has left its sender. @return true if it was the last one */
static bool has_left(pod_net *net, int32_t cell, const net_flow *left)
{
    if (left->message != NET_NONE) {
        const int32_t rest = --net->messages[left->message].leaving;
        pod_net_message_release(net, left->message);
        return rest == 0;
    }
    if (left->fragments == 1) {
        return true;
    }
    const uint64_t key = pod_net_message_key(cell, left->step);
    uint64_t *rest = pod_map_get(&net->leaving, left->tag, key);
    if (--*rest > 0) {
        return false;
    }
    uint64_t value;
    pod_map_take(&net->leaving, left->tag, key, &value);
    return true;
}

/* The tail of a flow leaves this cell: hand it on and tell the sender. */
static void flow_leave(pod_net *net, int32_t cell, const net_link *link, int32_t flow,
                       pod_time_ps now)
{
    const net_flow left = net->flows[flow];
    const pod_time_ps time_ps = now + net->wires[link->wire].latency_ps;
    const bool last = (left.flags & FLOW_LAST) != 0;
    if (!last && left.next != NET_NONE) {
        tail_hand_on(net, cell, flow_peer(net, link, flow), flow, time_ps);
    } else if (last && net->whole && left.message != NET_NONE) {
        fragment_hand_on(net, cell, flow_peer(net, link, flow), &left, time_ps);
    } else {
        event_hand_on(net, cell, link, flow, time_ps);
    }
    flow_release(net, cell - net->first, flow);
    if (net->client.left) {
        net->client.left(net->client.context, cell, left.port,
                         pod_net_tag_unpack(left.tag, left.step), net->flow_watch[flow].source,
                         net->flow_watch[flow].joined_ps);
    }
    if ((left.flags & FLOW_OWN) && has_left(net, cell, &left)) {
        net->client.sent(net->client.context, cell, pod_net_tag_unpack(left.tag, left.step));
    }
}

/* A flow has had its service: it leaves unless its tail is still to come. */
static void flow_served(pod_net *net, int32_t cell, const net_link *link, int32_t flow,
                        pod_time_ps now)
{
    net_flow *served = &net->flows[flow];
    if (!(served->flags & FLOW_NO_TAIL)
        || (served->tail.time_ps <= now && pod_engine_place_is_past(net->engine, &served->tail))) {
        flow_leave(net, cell, link, flow, now);
        return;
    }
    served->flags |= FLOW_SERVED;
    if (served->tail.time_ps != POD_TIME_NEVER) {
        pod_event *event = pod_engine_post_at(net->engine, &served->tail, cell, NULL);
        event->kind = EVENT_TAIL;
        event->arg[2] = (uint64_t)flow;
    }
}

/* A link has nothing more to serve. */
static void busy_tell(pod_net *net, int32_t cell, int port, pod_time_ps now)
{
    if (net->client.busy) {
        const size_t at = (size_t)(cell - net->first) * (size_t)net->stride + (size_t)port;
        net->client.busy(net->client.context, cell, port, net->busy_since[at], now);
    }
}

/* Messages of this link that have had their service by now: there is one. */
static void link_serve(pod_net *net, int32_t cell, int port, pod_time_ps now)
{
    const int32_t local = cell - net->first;
    net_link *link = &net->links[local * net->stride + port];
    link_prefetch(net, link);
    pod_link_advance(&link->share, now);
    link->share.virtual_ps = link_finish(net, link);
    const bool more = others_wait(net, link);
    if (link->share.messages == 1 && !more) {
        const int32_t only = link_take(net, link);
        net->cells[local].done[port] = POD_TIME_NEVER;
        busy_tell(net, cell, port, now);
        flow_served(net, cell, link, only, now);
        return;
    }
    int64_t served = 0;
    while (link->share.messages > 0 && link_finish(net, link) <= link->share.virtual_ps) {
        const bool grown = POD_GROW(net->served, net->served_room, served + 1);
        POD_NEED(grown ? net->served : NULL, "messages on links");
        net->served[served++] = link_take(net, link);
    }
    if (link->share.messages == 0 && more) {
        order_begin(net, link);
    } else if (link->share.messages == 0) {
        busy_tell(net, cell, port, now);
    }
    net->cells[local].done[port] = link_done(net, link);
    for (int64_t i = 0; i < served; i++) {
        flow_served(net, cell, link, net->served[i], now);
    }
}

/* ---- cells ---- */

static void cell_timer_refresh(pod_net *net, int32_t cell, net_cell *state)
{
    pod_time_ps first = POD_TIME_NEVER;
    for (int32_t i = 0; i < state->links; i++) {
        first = state->done[i] < first ? state->done[i] : first;
    }
    if (first != state->timer_ps) {
        state->timer_ps = first;
        pod_engine_timer_set(net->engine, cell, first);
    }
}

static void shared_on_timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now)
{
    (void)engine;
    pod_net *net = context;
    net_cell *state = &net->cells[cell - net->first];
    state->timer_ps = POD_TIME_NEVER;
    for (int32_t i = 0; i < state->links; i++) {
        if (state->done[i] > now) {
            continue;
        }
        link_serve(net, cell, i, now);
    }
    cell_timer_refresh(net, cell, state);
}

/* The next hop of a message at a cell, taken off its path. */
static pod_net_hop path_next(const pod_net *net, int32_t cell, pod_net_path *path)
{
    if (path->word[1] & POD_NET_PATH_ADDRESSED) {
        return net->route(net->route_context, cell, path);
    }
    return (pod_net_hop){.port = pod_net_path_pop(path), .peer = -1};
}

/* A flow joins the link of `hop`; `path` is what is left after that hop. */
static void flow_start(pod_net *net, int32_t cell, int32_t flow, pod_net_hop hop,
                       const pod_net_path *path, int64_t bytes)
{
    const pod_time_ps now = pod_engine_now(net->engine);
    const int32_t local = cell - net->first;
    POD_DASSERT(hop.port < net->cells[local].links);
    const bool last = path->word[0] == 0;
    net->flows[flow].flags |= last ? FLOW_LAST : 0U;
    net->flows[flow].port = (uint8_t)hop.port;
    net->flows[flow].next = NET_NONE;
    if (net->flow_peer) {
        net->flow_peer[flow] = hop.peer;
    }
    if (net->flow_order) {
        net->flow_order[flow] = hop.order;
    }
    if (net->flow_watch) {
        net->flow_watch[flow].joined_ps = now;
    }
    link_join(net, local, hop.port, flow, bytes, now);
    if (last) {
        return;
    }
    const net_link *link = &net->links[local * net->stride + hop.port];
    const int32_t peer = flow_peer(net, link, flow);
    const unsigned shared = net->flows[flow].flags & FLOW_SHARED;
    uint64_t name = flow_name(flow, hop.port);
    if (is_near(net, peer)) {
        const int32_t next = flow_new(net, peer - net->first, FLOW_NO_TAIL | shared);
        net->flows[flow].next = next;
        name = (uint64_t)next;
    }
    pod_event *head = pod_engine_post_begin(net->engine, cell, peer,
                                            now + net->wires[link->wire].latency_ps, NULL);
    head->kind = EVENT_HEAD;
    head->small = (uint16_t)shared;
    head->arg[0] = name;
    head->arg[1] = (uint64_t)bytes;
    head->arg[2] = path->word[0];
    head->arg[3] = path->word[1];
}

/* A message that a cell sends, or one of `fragments`, joins its first link. */
static void flow_send(pod_net *net, int32_t cell, pod_net_hop hop, const pod_net_path *path,
                      int64_t bytes, const net_flow *what)
{
    const int32_t flow = flow_new(net, cell - net->first, what->flags);
    net_flow *own = &net->flows[flow];
    own->tag = what->tag;
    own->step = what->step;
    own->fragments = what->fragments;
    own->payload = what->payload;
    own->message = what->message;
    if (net->flow_watch) {
        net->flow_watch[flow].source = cell;
    }
    flow_start(net, cell, flow, hop, path, bytes);
}

static uint64_t transit_key(int32_t cell, int32_t before)
{
    return (uint64_t)(uint32_t)cell << 32 | (uint32_t)before;
}

/* A head from another rank: a flow that goes on under a name that the cell before gave it. */
static int32_t head_from_afar(pod_net *net, int32_t cell, const pod_event *event)
{
    const int32_t flow = flow_new(net, cell - net->first, FLOW_NO_TAIL | event->small);
    pod_map_put(&net->transit, transit_key(cell, event->src), event->arg[0], (uint64_t)flow);
    return flow;
}

static void on_head(pod_net *net, int32_t cell, const pod_event *event)
{
    pod_net_path path = {
        {event->arg[2], event->arg[3]}
    };
    const pod_net_hop hop = path_next(net, cell, &path);
    const int32_t flow = is_near(net, event->src) ? (int32_t)(uint32_t)event->arg[0]
                                                  : head_from_afar(net, cell, event);
    flow_start(net, cell, flow, hop, &path, (int64_t)event->arg[1]);
}

static int32_t tail_from_afar(pod_net *net, int32_t cell, const pod_event *event)
{
    uint64_t found = 0;
    const bool known =
        pod_map_take(&net->transit, transit_key(cell, event->src), event->arg[2], &found);
    POD_ASSERT(known);
    net_flow *flow = &net->flows[found];
    flow->tag = event->arg[0];
    flow->step = (uint32_t)event->arg[1];
    flow->fragments = event->small;
    flow->payload = event->payload ? pod_payload_retain(event->payload) : NULL;
    if (net->flow_watch) {
        net->flow_watch[found].source = (int32_t)event->arg[3];
    }
    return (int32_t)(uint32_t)found;
}

static void on_tail(pod_net *net, int32_t cell, const pod_event *event)
{
    const int32_t found = is_near(net, event->src) ? (int32_t)(uint32_t)event->arg[2]
                                                   : tail_from_afar(net, cell, event);
    net_flow *flow = &net->flows[found];
    flow->flags &= (uint8_t) ~(unsigned)FLOW_NO_TAIL;
    if (flow->flags & FLOW_SERVED) {
        const int32_t at = (cell - net->first) * net->stride + flow->port;
        flow_leave(net, cell, &net->links[at], found, event->time_ps);
    }
}

/* Make room for flow_peer[]. */
static void peers_need(pod_net *net)
{
    if (!net->flow_peer) {
        net->flow_peer = malloc((size_t)net->nflows * sizeof *net->flow_peer);
        POD_NEED(net->flow_peer, "messages on links");
    }
}

/* The link of a circuit begins to serve it. */
static void on_circuit(pod_net *net, int32_t cell, const pod_event *event)
{
    const pod_net_hop hop = {.port = (int)(event->arg[3] & 255U),
                             .peer = (int32_t)(event->arg[3] >> 32)};
    const unsigned flags = (unsigned)(event->arg[3] >> 8) & 255U;
    peers_need(net);
    const int32_t flow = flow_new(net, cell - net->first, flags);
    net->flows[flow].tag = event->arg[0];
    net->flows[flow].step = (uint32_t)event->arg[1];
    net->flows[flow].fragments = event->small;
    net->flows[flow].payload = event->payload ? pod_payload_retain(event->payload) : NULL;
    if (net->flow_watch) {
        net->flow_watch[flow].source = event->src;
    }
    flow_start(net, cell, flow, hop, &nothing_left, (int64_t)event->arg[2]);
}

/* One of several fragments; true when it was the last to come. The first fragment sent has the
 * payload. */
static bool fragment_take(pod_net *net, int32_t cell, const pod_event *event, pod_payload **payload)
{
    const uint64_t key = pod_net_message_key(cell, (uint32_t)event->arg[1]);
    const uint64_t tag = event->arg[0];
    const uint64_t *before = pod_map_get(&net->arriving, tag, key);
    const uint64_t rest = (before ? *before : event->small) - 1;
    uint64_t value = 0;
    if (rest > 0) {
        pod_map_put(&net->arriving, tag, key, rest);
        if (event->payload) {
            pod_map_put(&net->holding, tag, key,
                        (uint64_t)(uintptr_t)pod_payload_retain(event->payload));
        }
        return false;
    }
    pod_map_take(&net->arriving, tag, key, &value);
    if (!event->payload && pod_map_take(&net->holding, tag, key, &value)) {
        *payload = (pod_payload *)(uintptr_t)value;
    }
    return true;
}

static void on_arrive(pod_net *net, int32_t cell, const pod_event *event)
{
    pod_payload *held = NULL;
    if (event->small > 1 && !fragment_take(net, cell, event, &held)) {
        return;
    }
    net->client.arrived(net->client.context, cell,
                        pod_net_tag_unpack(event->arg[0], (uint32_t)event->arg[1]),
                        held ? held : event->payload);
    if (held) {
        pod_payload_release(held);
    }
}

static void shared_on_event(void *context, pod_engine *engine, int32_t cell, const pod_event *event)
{
    (void)engine;
    pod_net *net = context;
    switch (event->kind) {
    case EVENT_ARRIVE:
        on_arrive(net, cell, event);
        break;
    case EVENT_HEAD:
        on_head(net, cell, event);
        break;
    case EVENT_TAIL:
        on_tail(net, cell, event);
        break;
    case EVENT_CIRCUIT:
        on_circuit(net, cell, event);
        break;
    default:
        net->client.woke(net->client.context, cell, event->arg[0]);
        break;
    }
    cell_timer_refresh(net, cell, &net->cells[cell - net->first]);
}

/* A head's flow is as old as a hop, and its link's queue has waited for as long. */
static void on_soon(void *context, const pod_event *event)
{
    const pod_net *net = context;
    if (event->kind != EVENT_HEAD || !is_near(net, event->src)) {
        return;
    }
    __builtin_prefetch(&net->flows[(uint32_t)event->arg[0]], 1);
    const int32_t port = (int32_t)(event->arg[2] & 15U); /* unless it is addressed */
    if (is_near(net, event->dst) && port < net->stride) {
        const net_link *link = &net->links[(event->dst - net->first) * net->stride + port];
        if (link->share.first >= 0) {
            const pod_flow_queue *queue = &net->queues[link->share.first];
            __builtin_prefetch(queue, 1);
            __builtin_prefetch(queue->run_last, 1);
        }
    }
}

/* ---- sending ---- */

static pod_time_ps shared_link_send(pod_net *net, int32_t cell, int port, int64_t bytes,
                                    pod_net_tag tag, pod_payload *payload)
{
    /* over PCIe after what comes from other slices, which NICs make slower */
    const pod_net_hop hop = {.port = port, .peer = -1, .order = UINT32_MAX};
    const net_flow what = {.tag = pod_net_tag_pack(tag),
                           .step = (uint32_t)tag.step,
                           .fragments = 1,
                           .payload = payload,
                           .message = NET_NONE,
                           .flags = tag.shared ? FLOW_OWN | FLOW_SHARED : FLOW_OWN};
    flow_send(net, cell, hop, &nothing_left, bytes, &what);
    return POD_TIME_NEVER;
}

void pod_net_send_paths(pod_net *net, int32_t cell, const pod_net_path *paths, int npaths,
                        int64_t bytes, pod_net_tag tag, pod_payload *payload)
{
    POD_ASSERT(npaths >= 1 && npaths <= POD_NET_PATHS_MAX && net->links);
    const int64_t used = bytes < npaths ? (bytes > 0 ? bytes : 1) : npaths;
    const int fragments = (int)used;
    net_flow what = {.tag = pod_net_tag_pack(tag),
                     .step = (uint32_t)tag.step,
                     .fragments = (uint16_t)fragments,
                     .payload = payload,
                     .message = NET_NONE,
                     .flags = tag.shared ? FLOW_OWN | FLOW_SHARED : FLOW_OWN};
    if (fragments > 1) {
        what.message = pod_net_message_new(net);
        net->messages[what.message] = (net_message){.last = {.time_ps = -1},
                                                    .payload = net->whole ? payload : NULL,
                                                    .leaving = fragments,
                                                    .coming = net->whole ? fragments : 0};
        what.payload = net->whole ? NULL : payload;
    }
    for (int i = 0; i < fragments; i++) {
        pod_net_path path = paths[i];
        const pod_net_hop hop = path_next(net, cell, &path);
        const int64_t share = bytes / fragments + (i < bytes % fragments ? 1 : 0);
        flow_send(net, cell, hop, &path, share, &what);
        what.payload = NULL;
    }
}

/* ---- making links ---- */

static bool shared_links_new(pod_net *net)
{
    const size_t ncells = (size_t)net->ncells;
    net->links = pod_pages_new(ncells * (size_t)net->stride, sizeof *net->links);
    net->nflows = net->ncells * NET_OWN_FLOWS + 1;
    net->flows = pod_pages_new((size_t)net->nflows, sizeof *net->flows);
    if (net->route) {
        net->flow_peer = malloc((size_t)net->nflows * sizeof *net->flow_peer);
        net->flow_order = malloc((size_t)net->nflows * sizeof *net->flow_order);
    }
    if (net->client.left) {
        net->flow_watch = calloc((size_t)net->nflows, sizeof *net->flow_watch);
    }
    return net->links && net->flows && (!net->route || (net->flow_peer && net->flow_order))
           && (!net->client.left || net->flow_watch);
}

static void shared_cell_init(pod_net *net, int32_t local)
{
    net->cells[local].free_flows = (1U << NET_OWN_FLOWS) - 1;
}

static void shared_link_init(pod_net *net, int32_t local, int port, const pod_net_port *made,
                             int32_t wire)
{
    net->links[local * net->stride + port] = (net_link){.share = {.first = -1},
                                                        .only = -1,
                                                        .waiting = -1,
                                                        .peer = made->peer,
                                                        .wire = (uint16_t)wire,
                                                        .in_order = made->in_order};
}

/* Links are the largest part of a cell's state. */
static void shared_near_add(pod_net *net)
{
    const void *base[] = {net->cells, net->links, net->flows};
    const size_t bytes[] = {NET_CACHE_LINE, (size_t)net->stride * sizeof *net->links,
                            NET_OWN_FLOWS * sizeof *net->flows};
    const size_t stride[] = {sizeof *net->cells, bytes[1], bytes[2]};
    for (int i = 0; i < 3; i++) {
        pod_engine_near_add(net->engine, (pod_engine_near){.base = base[i],
                                                           .stride_bytes = (int32_t)stride[i],
                                                           .bytes = (int32_t)bytes[i]});
    }
}

static void shared_links_free(pod_net *net)
{
    free(net->flow_watch);
    free(net->flow_order);
    free(net->flow_peer);
    for (int64_t i = 0; i < net->nqueues; i++) {
        pod_flow_queue_fini(&net->queues[i]);
    }
    for (int64_t i = 0; i < net->nwaiting; i++) {
        pod_link_queue_fini(&net->waiting[i]);
    }
    free(net->waiting);
    free(net->queues);
    for (int64_t i = 0; i < net->nmessages; i++) {
        pod_payload_release(net->messages[i].payload);
    }
    free(net->messages);
    free(net->served);
    free(net->flows);
    free(net->links);
}

static pod_net_link_record shared_record(const pod_net *net, int32_t local, int32_t port)
{
    const net_link *link = &net->links[local * net->stride + port];
    return (pod_net_link_record){.bytes = link->bytes, .busy_ps = link->share.busy_ps};
}

const net_discipline pod_net_shared_links = {.links_new = shared_links_new,
                                             .cell_init = shared_cell_init,
                                             .link_init = shared_link_init,
                                             .near_add = shared_near_add,
                                             .links_free = shared_links_free,
                                             .handle = shared_on_event,
                                             .timer = shared_on_timer,
                                             .soon = on_soon,
                                             .send = shared_link_send,
                                             .record = shared_record};
