/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/net_impl.h  What the files of sim/net share: the state of links and cells. Private. */
#pragma once

#include "sim/map.h"
#include "sim/net.h"

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

/** Take the next hop off a path: its port. */
int pod_net_path_pop(pod_net_path *path);

/** The engine's callbacks (net.c). */
extern const pod_engine_model pod_net_model;
