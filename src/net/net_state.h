/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/net_state.h  What the files of net share: the state of links and cells. Private. */
#pragma once

#include "base/map.h"
#include "ici/link_queue.h"
#include "net/flow_queue.h"
#include "net/net.h"

enum {
    NET_OWN_FLOWS = 8,
    NET_CACHE_LINE = 64,
    NET_KNOWN_BITS = 4,
    NET_KNOWN = 1 << NET_KNOWN_BITS
};
enum { EVENT_ARRIVE, EVENT_HEAD, EVENT_TAIL, EVENT_CIRCUIT, EVENT_WAKE };

enum {
    FLOW_OWN = 1,     /* sent by this cell, not only passing through */
    FLOW_LAST = 2,    /* the link's far end is the destination */
    FLOW_NO_TAIL = 4, /* passing through, and its tail has not come in yet */
    FLOW_SERVED = 8,  /* has had its service, waits for its tail */
    FLOW_SHARED = 16, /* at the shared rate of links */
    FLOW_CIRCUIT = 32 /* one link of a circuit: flow_peer[] is the destination */
};

enum { NET_NONE = -1 };

/* A message (or fragment) on a link until its tail has left: one cache line. The cell before, if it is of the same
 * rank, makes the flow when the message joins its link, and writes here what comes with the tail. */
typedef struct net_flow {
    /* virtual time at which it has had its service; while its order waits: its work */
    _Alignas(NET_CACHE_LINE) pod_time_ps finish;
    uint64_t tag;
    pod_payload *payload;
    pod_engine_place tail; /* when its tail comes in, time_ps = POD_TIME_NEVER: not known yet */
    uint32_t step;
    uint32_t number; /* of those that joined the link */
    int32_t next;    /* on the next link, if that is of this rank, else NET_NONE; among free ones */
    int32_t message; /* net->messages[], or NET_NONE */
    uint16_t fragments;
    uint8_t flags;
    uint8_t port;
} net_flow;
_Static_assert(sizeof(net_flow) == NET_CACHE_LINE, "a flow fills a cache line");

/* A message in fragments. */
typedef struct net_message {
    pod_engine_place last; /* of the fragments that are known to arrive */
    pod_payload *payload;
    int32_t leaving; /* fragments that have not left their sender */
    int32_t coming;  /* that aren't known to arrive, where all cells are of this rank; else 0 */
} net_message;

/* How long a wire is busy with a size. */
typedef struct net_work {
    int64_t bytes;
    pod_time_ps work_ps;
} net_work;

/* Rate and latency of links, of which a net has few different ones. */
typedef struct net_wire {
    pod_rate rate[2]; /* rate[shared] */
    pod_time_ps latency_ps;
    net_work known[2][NET_KNOWN]; /* [shared]: of the latest sizes asked for, as few sizes repeat */
} net_wire;

/* How long a message keeps the wire busy. */
static inline pod_time_ps wire_work_ps(net_wire *wire, int64_t bytes, int shared)
{
    const uint64_t mixed = (uint64_t)bytes * UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / golden ratio */
    net_work *known = &wire->known[shared][mixed >> (64 - NET_KNOWN_BITS)];
    if (bytes != known->bytes) {
        *known = (net_work){.bytes = bytes, .work_ps = pod_rate_time_ps(wire->rate[shared], bytes)};
    }
    return known->work_ps;
}

/* One cache line: what a hop touches lies together, since a pod's links don't fit the caches. */
typedef struct net_link {
    pod_link share; /* `first` is the number of its queue, -1 = none yet */
    int64_t bytes;
    uint32_t joined; /* messages so far */
    int32_t peer;
    int32_t only;    /* its only message; -1: the queue has all */
    uint32_t order;  /* in order: of the messages that it serves */
    int32_t waiting; /* in order: the queue of messages of higher orders, -1 = none yet */
    uint16_t wire;
    bool in_order;
} net_link;
_Static_assert(sizeof(net_link) == NET_CACHE_LINE, "a link fills a cache line");

/* A link that carries one message at a time. */
typedef struct net_exclusive {
    pod_time_ps free_ps; /* when the latest message has left */
    int64_t bytes;
    pod_time_ps busy_ps;
    int32_t peer;
    uint32_t slack_ps; /* awaited: the client may be told so much later than that */
} net_exclusive;

/* The links of a cell, and what the client awaits of them. */
typedef struct net_ports {
    pod_time_ps timer_ps; /* what the engine's timer is set to */
    pod_time_ps latest_ps;
    uint32_t awaited; /* bit i: the link of port i */
    uint16_t wire[POD_NET_PORTS_MAX];
    _Alignas(NET_CACHE_LINE) net_exclusive links[];
} net_ports;

/* The first line holds all that a chip with six ports needs. */
typedef struct net_cell {
    pod_time_ps timer_ps; /* what the engine's timer is set to */
    int32_t links;
    uint32_t free_flows;                 /* bit i: flow i of the cell's own is free */
    pod_time_ps done[POD_NET_PORTS_MAX]; /* when a link's first message has had its service */
    pod_time_ps reserved[6];
} net_cell;
_Static_assert(sizeof(net_cell) % NET_CACHE_LINE == 0, "cells begin at cache lines");

/* What a client that watches is told of a message on a link. */
typedef struct net_watch {
    pod_time_ps joined_ps;
    int32_t source; /* cell that sent it */
} net_watch;

/* How links serve messages: one file each, with one interface. */
typedef struct net_discipline {
    /** Memory of all links and cells, `stride` of them known. POD_E_NOMEM. */
    bool (*links_new)(pod_net *net);
    /** A cell that has no messages yet, and one of its links. */
    void (*cell_init)(pod_net *net, int32_t local);
    void (*link_init)(pod_net *net, int32_t local, int port, const pod_net_port *made,
                      int32_t wire);
    /** Tell the engine what a cell's turn touches. */
    void (*near_add)(pod_net *net);
    void (*links_free)(pod_net *net);
    /** The engine's callbacks. */
    void (*handle)(void *context, pod_engine *engine, int32_t cell, const pod_event *event);
    void (*timer)(void *context, pod_engine *engine, int32_t cell, pod_time_ps now_ps);
    void (*soon)(void *context, const pod_event *event); /**< or NULL */
    /** pod_net_send. */
    pod_time_ps (*send)(pod_net *net, int32_t cell, int port, int64_t bytes, pod_net_tag tag,
                        pod_payload *payload);
    pod_net_link_record (*record)(const pod_net *net, int32_t local, int32_t port);
} net_discipline;

/** shared_link.c: messages on a link share it fairly. */
extern const net_discipline pod_net_shared_links;
/** exclusive_link.c: one message at a time. */
extern const net_discipline pod_net_exclusive_links;

struct pod_net {
    pod_engine *engine;
    const net_discipline *discipline;
    pod_net_client client;
    pod_net_hop (*route)(const void *context, int32_t cell, pod_net_path *path);
    const void *route_context;
    int32_t first;
    int32_t ncells;
    int32_t stride; /* links per cell: links[local cell * stride + port] */
    net_cell *cells;
    net_link *links;      /* NULL if exclusive */
    unsigned char *ports; /* exclusive: a net_ports every ports_bytes; else NULL */
    size_t ports_bytes;
    pod_time_ps *busy_since; /* as links[], if the client watches; else NULL */
    pod_time_ps least_ps;    /* exclusive: of any service */
    net_wire *wires;
    int32_t nwires;
    /* Flow i of local cell c is flows[c * NET_OWN_FLOWS + i]; what a cell needs beyond comes from
     * the free list that follows. */
    net_flow *flows;
    int32_t *flow_peer;    /* flow_peer[flow]: where it goes, if addressed or in a circuit */
    uint32_t *flow_order;  /* flow_order[flow]: its order, if some are addressed; else NULL */
    net_watch *flow_watch; /* flow_watch[flow], if the client watches; else NULL */
    int32_t nflows;
    int32_t free_flow;
    int64_t hops;
    pod_flow_queue *queues; /* queues[nqueues], for links that have needed one */
    int64_t nqueues;
    int64_t queues_room;
    pod_link_queue *waiting; /* waiting[nwaiting], for links that serve in order; as queues[] */
    int64_t nwaiting;
    int64_t waiting_room;
    int32_t *served; /* served[served_room]: of the link that is being served */
    int64_t served_room;
    net_message *messages; /* messages[messages_room], that cells of this rank have sent */
    int64_t messages_room;
    int64_t nmessages;
    int32_t free_message; /* the first, which has the next in `leaving`; NET_NONE */
    bool whole;           /* all cells are of this rank */
    pod_map transit;  /* from other ranks: (cell, cell before; port and flow there) → flow here */
    pod_map arriving; /* (tag; cell, step) → fragments still to come */
    pod_map holding;  /* (tag; cell, step) → payload, while other fragments are on the way */
    pod_net_leg *legs; /* of the message that is being sent: legs[legs_room] */
    int32_t legs_room;
    pod_map leaving; /* circuits: (tag; cell, step) → fragments that have not left their sender */
};

/* More work on a link that has had `before` already: time may not overflow.
 * @return the work, or what keeps sums in range until the engine stops */
static inline pod_time_ps pod_net_time_check(pod_net *net, pod_time_ps before, pod_time_ps work)
{
    const pod_time_ps room = POD_TIME_NEVER / 4 - before;
    if (work <= room) {
        return work;
    }
    pod_engine_fail(net->engine, POD_E_RANGE,
                    "simulated time exceeds 26 days; use fewer bytes or faster links");
    return room > 0 ? room : 0;
}

static inline net_ports *ports_at(const pod_net *net, int32_t cell)
{
    return (net_ports *)(void *)(net->ports + (size_t)(cell - net->first) * net->ports_bytes);
}

/* ---- flows.c: memory of the messages on shared links ---- */

/** A flow beyond those that a cell has of its own. Ends the job when memory is out; flows may move. */
int32_t pod_flow_beyond(pod_net *net);

/** A flow that starts at a cell of this rank, with nothing known but its flags. */
static inline int32_t flow_new(pod_net *net, int32_t local, unsigned flags)
{
    net_cell *state = &net->cells[local];
    int32_t flow = 0;
    if (state->free_flows == 0) {
        flow = pod_flow_beyond(net);
    } else {
        flow = local * NET_OWN_FLOWS + __builtin_ctz(state->free_flows);
        state->free_flows &= state->free_flows - 1;
    }
    net->flows[flow].tail.time_ps = POD_TIME_NEVER;
    net->flows[flow].payload = NULL;
    net->flows[flow].message = NET_NONE;
    net->flows[flow].flags = (uint8_t)flags;
    return flow;
}

/** A flow has left. */
static inline void flow_release(pod_net *net, int32_t local, int32_t flow)
{
    const int32_t own = flow - local * NET_OWN_FLOWS;
    if (own >= 0 && own < NET_OWN_FLOWS) {
        net->cells[local].free_flows |= 1U << own;
        return;
    }
    net->flows[flow].next = net->free_flow;
    net->free_flow = flow;
}

/** The number of a message in fragments, to be filled. Ends the job when memory is out; messages may move. */
int32_t pod_net_message_new(pod_net *net);
/** Give a message back if none of its fragments is to leave or to come. */
void pod_net_message_release(pod_net *net, int32_t message);
