/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/net.h"

#include "sim/map.h"

#include <stdlib.h>
#include <string.h>

enum { EVENT_ARRIVE, EVENT_HEAD, EVENT_TAIL, EVENT_WAKE };

enum { SEGMENT_BITS = 12, SEGMENTS_PER_WORD = 5 };

enum {
    FLOW_OWN = 1,     /* sent by this cell, not only passing through */
    FLOW_LAST = 2,    /* the link's far end is the destination */
    FLOW_NO_TAIL = 4, /* passing through, and its tail has not come in yet */
    FLOW_SERVED = 8   /* has had its service, waits for its tail */
};

/* A message (or fragment) on a link. On the link's list, sorted by `finish`, until served. */
typedef struct net_flow {
    pod_time_ps finish; /* virtual time at which it has had its service */
    int32_t next;
    int32_t prev;
    uint64_t tag;
    uint32_t step;
    uint16_t fragments;
    uint8_t flags;
    uint8_t port;
    pod_payload *payload;
} net_flow;

typedef struct net_link {
    pod_time_ps virtual_ps; /* service that each message on it has had since the link began */
    pod_time_ps updated_ps; /* when virtual_ps was true */
    int32_t head;
    int32_t tail;
    int32_t flows;
    int32_t peer;
    pod_time_ps latency_ps;
    pod_rate rate;
    int64_t bytes;
    pod_time_ps busy_ps;
} net_link;

typedef struct net_cell {
    int32_t first_link;
    int32_t links;
    pod_time_ps timer_ps; /* what the engine's timer is set to */
} net_cell;

struct pod_net {
    pod_engine *engine;
    pod_net_client client;
    int32_t first;
    int32_t ncells;
    net_cell *cells;
    net_link *links;
    pod_time_ps *done; /* done[link]: when its first message has had its service */
    net_flow *flows;
    int32_t nflows;
    int32_t free_flow;
    int64_t hops;
    pod_map transit;  /* (cell, cell before; flow there) → flow here */
    pod_map arriving; /* (tag; cell, step) → fragments still to come */
    pod_map
        holding; /* (tag; cell, step) → payload of a message whose other fragments are on the way */
    pod_map leaving; /* (tag; cell, step) → fragments that have not left their sender */
};

/* ---- paths ---- */

static int path_segments(const pod_net_path *path)
{
    int segments = 0;
    for (int word = 0; word < 2; word++) {
        for (uint64_t rest = path->word[word]; rest; rest >>= SEGMENT_BITS) {
            segments++;
        }
    }
    return segments;
}

bool pod_net_path_append(pod_net_path *path, int port, int32_t hops)
{
    int at = path_segments(path);
    while (hops > 0) {
        const int32_t run = hops < POD_NET_RUN_MAX ? hops : POD_NET_RUN_MAX;
        if (at == POD_NET_SEGMENTS_MAX) {
            return false;
        }
        const uint64_t segment = (uint64_t)port | (uint64_t)run << 4;
        path->word[at / SEGMENTS_PER_WORD] |= segment << (SEGMENT_BITS * (at % SEGMENTS_PER_WORD));
        hops -= run;
        at++;
    }
    return true;
}

/* Take the next hop off a path. */
static int path_pop(pod_net_path *path)
{
    const int port = (int)(path->word[0] & 15U);
    path->word[0] -= 1U << 4;
    if (((path->word[0] >> 4) & POD_NET_RUN_MAX) == 0) {
        const uint64_t moved = path->word[1] & ((UINT64_C(1) << SEGMENT_BITS) - 1);
        path->word[0] =
            path->word[0] >> SEGMENT_BITS | moved << (SEGMENT_BITS * (SEGMENTS_PER_WORD - 1));
        path->word[1] >>= SEGMENT_BITS;
    }
    return port;
}

/* ---- tags ---- */

static uint64_t tag_pack(pod_net_tag tag)
{
    return (uint64_t)tag.kind << 48 | (uint64_t)tag.instance << 32 | (uint32_t)tag.channel;
}

static pod_net_tag tag_unpack(uint64_t word, uint32_t step)
{
    return (pod_net_tag){.kind = (uint16_t)(word >> 48),
                         .instance = (uint16_t)(word >> 32),
                         .channel = (int32_t)(uint32_t)word,
                         .step = (int32_t)step};
}

static uint64_t message_key(int32_t cell, uint32_t step)
{
    return (uint64_t)(uint32_t)cell << 32 | step;
}

/* ---- flows ---- */

static int32_t flow_new(pod_net *net)
{
    if (net->free_flow < 0) {
        const int32_t count = net->nflows ? 2 * net->nflows : 1024;
        net_flow *flows = realloc(net->flows, (size_t)count * sizeof *flows);
        POD_ASSERT(flows != NULL);
        net->flows = flows;
        for (int32_t i = count - 1; i >= net->nflows; i--) {
            flows[i].next = net->free_flow;
            net->free_flow = i;
        }
        net->nflows = count;
    }
    const int32_t flow = net->free_flow;
    net->free_flow = net->flows[flow].next;
    return flow;
}

static void flow_release(pod_net *net, int32_t flow)
{
    net->flows[flow].next = net->free_flow;
    net->free_flow = flow;
}

/* Put into the list sorted by finish, behind equals. */
static void link_insert(pod_net *net, net_link *link, int32_t flow)
{
    net_flow *flows = net->flows;
    int32_t before = link->tail;
    while (before >= 0 && flows[before].finish > flows[flow].finish) {
        before = flows[before].prev;
    }
    const int32_t after = before >= 0 ? flows[before].next : link->head;
    flows[flow].prev = before;
    flows[flow].next = after;
    if (before >= 0) {
        flows[before].next = flow;
    } else {
        link->head = flow;
    }
    if (after >= 0) {
        flows[after].prev = flow;
    } else {
        link->tail = flow;
    }
}

/* ---- links ---- */

/* Bring the virtual clock to now: each of n messages has had 1/n of the time since. */
static void link_update(net_link *link, pod_time_ps now)
{
    const pod_time_ps elapsed = now - link->updated_ps;
    link->updated_ps = now;
    if (link->flows == 0) {
        return;
    }
    link->busy_ps += elapsed;
    link->virtual_ps += link->flows == 1 ? elapsed : elapsed / link->flows;
}

/* When the first message of the list has had its service. Rounding down the virtual clock and up
 * here means that a link is never faster than its rate. */
static pod_time_ps link_done(const pod_net *net, const net_link *link)
{
    if (link->flows == 0) {
        return POD_TIME_NEVER;
    }
    pod_time_ps rest = net->flows[link->head].finish - link->virtual_ps;
    if (link->flows > 1
        && (__builtin_mul_overflow(rest, (pod_time_ps)link->flows, &rest)
            || rest > POD_TIME_NEVER - 1 - link->updated_ps)) {
        return POD_TIME_NEVER - 1;
    }
    return link->updated_ps + rest;
}

static void link_join(pod_net *net, int32_t at, int32_t flow, int64_t bytes, pod_time_ps now)
{
    net_link *link = &net->links[at];
    const pod_time_ps work = pod_rate_time_ps(link->rate, bytes);
    link_update(link, now);
    if (work > POD_TIME_NEVER / 4 - link->virtual_ps) {
        pod_engine_fail(net->engine, POD_E_RANGE,
                        "simulated time exceeds 26 days; use fewer bytes or faster links");
    }
    net->flows[flow].finish = link->virtual_ps + work;
    link_insert(net, link, flow);
    link->flows++;
    link->bytes += bytes;
    net->hops++;
    net->done[at] = link_done(net, link);
}

/* The tail of a flow leaves this cell: hand it on and tell the sender. */
static void flow_leave(pod_net *net, int32_t cell, const net_link *link, int32_t flow,
                       pod_time_ps now)
{
    const net_flow left = net->flows[flow];
    pod_event event = {
        .time_ps = now + link->latency_ps,
        .dst = link->peer,
        .kind = left.flags & FLOW_LAST ? EVENT_ARRIVE : EVENT_TAIL,
        .small = left.fragments,
        .arg = {left.tag, left.step | (uint64_t)(uint32_t)flow << 32, 0, 0},
        .payload = left.payload,
    };
    pod_engine_post(net->engine, cell, &event);
    flow_release(net, flow);
    if (!(left.flags & FLOW_OWN)) {
        return;
    }
    if (left.fragments > 1) {
        const uint64_t key = message_key(cell, left.step);
        uint64_t *rest = pod_map_get(&net->leaving, left.tag, key);
        if (--*rest > 0) {
            return;
        }
        uint64_t value;
        pod_map_take(&net->leaving, left.tag, key, &value);
    }
    net->client.sent(net->client.context, cell, tag_unpack(left.tag, left.step));
}

/* Messages of this link that have had their service by now. */
static void link_serve(pod_net *net, int32_t cell, int32_t at, pod_time_ps now)
{
    net_link *link = &net->links[at];
    link_update(link, now);
    link->virtual_ps = net->flows[link->head].finish;
    int32_t served = -1;
    int32_t *end = &served;
    while (link->head >= 0 && net->flows[link->head].finish <= link->virtual_ps) {
        const int32_t flow = link->head;
        link->head = net->flows[flow].next;
        link->flows--;
        *end = flow;
        end = &net->flows[flow].next;
    }
    *end = -1;
    if (link->head >= 0) {
        net->flows[link->head].prev = -1;
    } else {
        link->tail = -1;
    }
    net->done[at] = link_done(net, link);
    while (served >= 0) {
        const int32_t flow = served;
        served = net->flows[flow].next;
        if (net->flows[flow].flags & FLOW_NO_TAIL) {
            net->flows[flow].flags |= FLOW_SERVED;
        } else {
            flow_leave(net, cell, link, flow, now);
        }
    }
}

/* ---- cells ---- */

static void cell_timer_refresh(pod_net *net, int32_t cell, net_cell *state)
{
    pod_time_ps first = POD_TIME_NEVER;
    const pod_time_ps *done = &net->done[state->first_link];
    for (int32_t i = 0; i < state->links; i++) {
        first = done[i] < first ? done[i] : first;
    }
    if (first != state->timer_ps) {
        state->timer_ps = first;
        pod_engine_timer_set(net->engine, cell, first);
    }
}

static void on_timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now)
{
    (void)engine;
    pod_net *net = context;
    net_cell *state = &net->cells[cell - net->first];
    state->timer_ps = POD_TIME_NEVER;
    for (int32_t i = 0; i < state->links; i++) {
        if (net->done[state->first_link + i] <= now) {
            link_serve(net, cell, state->first_link + i, now);
        }
    }
    cell_timer_refresh(net, cell, state);
}

/* A message joins the link of `port`; `path` is what is left after that hop. */
static int32_t flow_start(pod_net *net, int32_t cell, int port, const pod_net_path *path,
                          int64_t bytes, unsigned flags)
{
    const pod_time_ps now = pod_engine_now(net->engine);
    const int32_t at = net->cells[cell - net->first].first_link + port;
    POD_DASSERT(port < net->cells[cell - net->first].links && net->links[at].peer >= 0);
    const int32_t flow = flow_new(net);
    const bool last = path->word[0] == 0;
    net->flows[flow].flags = (uint8_t)(flags | (last ? FLOW_LAST : 0U));
    net->flows[flow].port = (uint8_t)port;
    net->flows[flow].payload = NULL;
    link_join(net, at, flow, bytes, now);
    if (!last) {
        pod_event head = {
            .time_ps = now + net->links[at].latency_ps,
            .dst = net->links[at].peer,
            .kind = EVENT_HEAD,
            .arg = {(uint32_t)flow, (uint64_t)bytes, path->word[0], path->word[1]},
        };
        pod_engine_post(net->engine, cell, &head);
    }
    return flow;
}

static uint64_t transit_key(int32_t cell, int32_t before)
{
    return (uint64_t)(uint32_t)cell << 32 | (uint32_t)before;
}

static void on_head(pod_net *net, int32_t cell, const pod_event *event)
{
    pod_net_path path = {
        {event->arg[2], event->arg[3]}
    };
    const int port = path_pop(&path);
    const int32_t flow = flow_start(net, cell, port, &path, (int64_t)event->arg[1], FLOW_NO_TAIL);
    pod_map_put(&net->transit, transit_key(cell, event->src), event->arg[0], (uint64_t)flow);
}

static void on_tail(pod_net *net, int32_t cell, const pod_event *event)
{
    uint64_t found = 0;
    const bool known =
        pod_map_take(&net->transit, transit_key(cell, event->src), event->arg[1] >> 32, &found);
    POD_ASSERT(known);
    net_flow *flow = &net->flows[found];
    flow->tag = event->arg[0];
    flow->step = (uint32_t)event->arg[1];
    flow->fragments = event->small;
    flow->payload = event->payload ? pod_payload_retain(event->payload) : NULL;
    flow->flags &= (uint8_t) ~(unsigned)FLOW_NO_TAIL;
    if (flow->flags & FLOW_SERVED) {
        const int32_t at = net->cells[cell - net->first].first_link + flow->port;
        flow_leave(net, cell, &net->links[at], (int32_t)found, event->time_ps);
    }
}

/* One of several fragments; true when it was the last to come. The first fragment sent has the
 * payload. */
static bool fragment_take(pod_net *net, int32_t cell, const pod_event *event, pod_payload **payload)
{
    const uint64_t key = message_key(cell, (uint32_t)event->arg[1]);
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
                        tag_unpack(event->arg[0], (uint32_t)event->arg[1]),
                        held ? held : event->payload);
    if (held) {
        pod_payload_release(held);
    }
}

static void on_event(void *context, pod_engine *engine, int32_t cell, const pod_event *event)
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
    default:
        net->client.woke(net->client.context, cell, event->arg[0]);
        break;
    }
    cell_timer_refresh(net, cell, &net->cells[cell - net->first]);
}

static bool on_blocked(void *context, int32_t cell, char *text, size_t size)
{
    const pod_net *net = context;
    return net->client.blocked && net->client.blocked(net->client.context, cell, text, size);
}

/* ---- sending ---- */

void pod_net_send(pod_net *net, int32_t cell, int port, int64_t bytes, pod_net_tag tag,
                  pod_payload *payload)
{
    static const pod_net_path nothing_left = {
        {0, 0}
    };
    const int32_t flow = flow_start(net, cell, port, &nothing_left, bytes, FLOW_OWN);
    net->flows[flow].tag = tag_pack(tag);
    net->flows[flow].step = (uint32_t)tag.step;
    net->flows[flow].fragments = 1;
    net->flows[flow].payload = payload;
}

void pod_net_send_paths(pod_net *net, int32_t cell, const pod_net_path *paths, int npaths,
                        int64_t bytes, pod_net_tag tag, pod_payload *payload)
{
    POD_ASSERT(npaths >= 1 && npaths <= POD_NET_PATHS_MAX);
    const int64_t used = bytes < npaths ? (bytes > 0 ? bytes : 1) : npaths;
    const int fragments = (int)used;
    if (fragments > 1) {
        pod_map_put(&net->leaving, tag_pack(tag), message_key(cell, (uint32_t)tag.step),
                    (uint64_t)fragments);
    }
    for (int i = 0; i < fragments; i++) {
        pod_net_path path = paths[i];
        const int port = path_pop(&path);
        const int64_t share = bytes / fragments + (i < bytes % fragments ? 1 : 0);
        const int32_t flow = flow_start(net, cell, port, &path, share, FLOW_OWN);
        net->flows[flow].tag = tag_pack(tag);
        net->flows[flow].step = (uint32_t)tag.step;
        net->flows[flow].fragments = (uint16_t)fragments;
        net->flows[flow].payload = i == 0 ? payload : NULL;
    }
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

/* ---- life ---- */

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
    const pod_engine_model model = {
        .context = net, .handle = on_event, .timer = on_timer, .blocked = on_blocked};
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
