/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/net.h  Ports, links and routers: how messages get from cell to cell.
 *
 *  Model. Every cell of the engine has ports; a port is the sending end of one link (rate, latency,
 *  the cell at the other end). A message of `bytes` follows a path of ports, hop by hop.
 *
 *  Link service is fair sharing at packet grain, in the fluid limit: n messages on a link get 1/n of
 *  its rate each (processor sharing), kept by a virtual clock (ici/link.h). A port may serve in order: then
 *  only messages of the lowest order on it share it, and the others wait. One that joins with a lower order
 *  interrupts them; what they have been given is not lost.
 *
 *  Routers cut through: the head of a message reaches the next cell one latency after it starts to
 *  be served, and joins the next link at once; its tail leaves a link when it has had its service
 *  there and the tail has come in from the link before. Uncontended: hops · latency + bytes / rate.
 *  No link ever carries more than its rate.
 *
 *  Paths are explicit, or addressed: then the machine says at each cell by which port the message
 *  goes on, and for ports that lead to many cells (a NIC on a fabric) also to which.
 *
 *  What limits a chip that drives many links lies before the links: a message may be marked to get only a link's
 *  shared rate, as if it were longer; what the link is recorded to carry stays its bytes.
 *
 *  A message may be split into fragments over several paths; it has arrived when all have.
 *
 *  Exclusive links. A client that never hands a link a message before the one before has left, and uses no
 *  paths, may say so: messages then never share, so that the end of a service is known when it begins,
 *  and the arrival is posted at once. Nor does the net tell when a message has left: the client knows, and
 *  asks to be told where it has something to do then. The same times for half the work.
 *
 *  All times and works are integer picoseconds, so the order of everything is exact.
 *  Ownership: the net owns ports and messages in flight. Threads: one per rank. */
#pragma once

#include "engine/engine.h"
#include "net/path.h"
#include "net/tag.h"

enum { POD_NET_PEER_ADDRESSED = -2 };
enum { POD_NET_PORTS_MAX = 16 };

/** The sending end of one link. */
typedef struct pod_net_port {
    int32_t peer; /**< cell at the other end; the cell itself for an inner resource; -1 = no link;
                       POD_NET_PEER_ADDRESSED = every message says */
    pod_rate rate;
    pod_rate shared_rate;   /**< what messages with tag.shared get of it, <= rate; 0 = rate */
    pod_time_ps latency_ps; /**< >= the engine's lookahead unless the peer is the cell itself */
    bool in_order;          /**< messages of a lower pod_net_hop.order first */
} pod_net_port;

/** What the net tells the layer above, inside engine handlers. */
typedef struct pod_net_client {
    void *context;
    /** A message for this cell has arrived whole. The payload is borrowed for the call. */
    void (*arrived)(void *context, int32_t cell, pod_net_tag tag, pod_payload *payload);
    /** The tail of a message (all its fragments) has left this cell, which sent it. Not if links are exclusive. */
    void (*sent)(void *context, int32_t cell, pod_net_tag tag);
    /** Exclusive links: a port that the client awaits (pod_net_await) is free. Else NULL. */
    void (*freed)(void *context, int32_t cell, int port);
    /** What the client asked for with pod_net_wake. */
    void (*woke)(void *context, int32_t cell, uint64_t argument);
    /** As in pod_engine_model; may be NULL. */
    bool (*blocked)(void *context, int32_t cell, char *text, size_t size);
    /** Watching, of clients that share links; NULL: nobody does. A link was busy from start to end
     *  without a break; */
    void (*busy)(void *context, int32_t cell, int port, pod_time_ps start_ps, pod_time_ps end_ps);
    /** a message (or fragment), sent by the cell `source`, that joined a link of this cell at `joined_ps` has left
     *  it now. */
    void (*left)(void *context, int32_t cell, int port, pod_net_tag tag, int32_t source,
                 pod_time_ps joined_ps);
} pod_net_client;

typedef struct pod_net pod_net;

typedef struct pod_net_options {
    pod_engine_options engine;
    /** Ports of a cell of this rank: fills ports[POD_NET_PORTS_MAX], returns how many. */
    int (*ports)(void *context, int32_t cell, pod_net_port *ports);
    void *ports_context;
    /** Addressed paths only, else NULL: the next hop from `cell`. Brings *path up to date, to {{0, 0}}
     *  at the last hop. Depends on its arguments only. */
    pod_net_hop (*route)(const void *context, int32_t cell, pod_net_path *path);
    const void *route_context;    /**< borrowed for the net's life */
    const pod_net_client *client; /**< copied */
    bool exclusive;               /**< as above; a promise that is checked (POD_ASSERT) */
    /** exclusive: no service is shorter. The engine's lookaheads may then be so much longer than
     * the latencies */
    pod_time_ps least_ps;
} pod_net_options;

/** Collective. */
pod_status pod_net_new(pod_par *par, const pod_net_options *options, pod_net **out, pod_error *err);
void pod_net_free(pod_net *net);
pod_engine *pod_net_engine(pod_net *net);

/** Send over one link to the cell at its end. Takes over the payload reference (may be NULL).
 *  From a handler of `cell`.
 *  @return when it will have left if links are exclusive; POD_TIME_NEVER if that depends on what comes */
pod_time_ps pod_net_send(pod_net *net, int32_t cell, int port, int64_t bytes, pod_net_tag tag,
                         pod_payload *payload);
/** True if the net was made for a client that never hands a busy link a message. */
bool pod_net_is_exclusive(const pod_net *net);
/** Exclusive links: unless the port is free, tell client->freed when its latest message has left. From a
 *  handler of `cell`.
 *  @param bytes  the client will send at least that much over this port when told, and nothing over others: the
 *                more, the less of a hurry. 0 if it can't say
 *  @return false if the port is free, and the client doesn't await it already */
bool pod_net_await(pod_net *net, int32_t cell, int port, int64_t bytes, bool shared);
/** Send over paths that share the bytes as evenly as whole bytes allow.
 *  @param paths  paths[npaths], npaths in [1, POD_NET_PATHS_MAX] */
enum { POD_NET_PATHS_MAX = 64 };
void pod_net_send_paths(pod_net *net, int32_t cell, const pod_net_path *paths, int npaths,
                        int64_t bytes, pod_net_tag tag, pod_payload *payload);
/** One link of a circuit: the port of a cell. */
typedef struct pod_net_leg {
    int32_t cell;
    int32_t port;
} pod_net_leg;
/** Room for the links of a message's circuits, for one pod_net_send_circuits: the net's, good until the next call.
 *  @param count  of all its circuits together */
pod_net_leg *pod_net_legs(pod_net *net, int32_t count);
/** Send over paths as circuits: a circuit is set up hop by hop, then all its links serve the message at
 *  once. Uncontended that takes as long as a message that cuts through. But messages of several
 *  steps' distance that share a link all wait for it from the same moment, so that a step of equal
 *  distances takes exactly hops · latency + bytes on the busiest link / rate, the form in which
 *  algorithms are compared on paper. Links need equal latencies.
 *  @param legs   links of the circuits, each from `cell` on, one circuit after the other
 *  @param nlegs  nlegs[ncircuits] >= 1
 *  @param to     cell at the end of all of them */
void pod_net_send_circuits(pod_net *net, int32_t cell, const pod_net_leg *legs,
                           const int32_t *nlegs, int ncircuits, int32_t to, int64_t bytes,
                           pod_net_tag tag, pod_payload *payload);
/** Have client->woke called for this cell at a time >= now. From a handler of the cell, or before
 *  pod_net_run. */
void pod_net_wake(pod_net *net, int32_t cell, pod_time_ps time_ps, uint64_t argument);
/** The same for another cell, from a handler of the cell `from`. @param time_ps  >= pod_engine_soonest_ps */
void pod_net_wake_other(pod_net *net, int32_t from, int32_t cell, pod_time_ps time_ps,
                        uint64_t argument);
pod_time_ps pod_net_now(const pod_net *net);

/** Run to the end. Collective. */
pod_status pod_net_run(pod_net *net, pod_error *err);

/** What a link has carried. */
typedef struct pod_net_link_record {
    int64_t bytes;
    pod_time_ps busy_ps;
} pod_net_link_record;

/** Records of all links on rank 0 (NULL elsewhere): records[cell * POD_NET_PORTS_MAX + port], heap
 *  memory of the caller. Collective. */
pod_status pod_net_records(pod_par *par, const pod_net *net, pod_net_link_record **records,
                           pod_error *err);
/** A link of this rank, which are shared ones, has carried something that was not sent over this net. */
void pod_net_record_add(pod_net *net, int32_t cell, int port, const pod_net_link_record *record);
void pod_net_hops_add(pod_net *net, int64_t hops);
/** Message-hops of this rank: one message (or fragment) at one link counts one. */
int64_t pod_net_hops(const pod_net *net);
