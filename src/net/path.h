/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/path.h  The way of a message, packed for travel.
 *
 *  Ownership: plain values. Threads: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { POD_NET_SEGMENTS_MAX = 10, POD_NET_RUN_MAX = 255 };

/** A path packed for travel: up to POD_NET_SEGMENTS_MAX runs of (port, hops), first run first. Or an
 *  address: word[0] != 0, and word[1] with its highest bit set; the other bits are the machine's. */
typedef struct pod_net_path {
    uint64_t word[2];
} pod_net_path;
#define POD_NET_PATH_ADDRESSED (UINT64_C(1) << 63)

/** The next hop of an addressed message. */
typedef struct pod_net_hop {
    int port;
    int32_t peer;   /**< for ports with POD_NET_PEER_ADDRESSED: the cell that it goes to */
    uint32_t order; /**< for ports that serve in order */
} pod_net_hop;

/** Append `hops` >= 1 hops through `port` to a path (which starts as {{0, 0}}).
 *  @return false when it would need too many segments; the path is then undefined */
bool pod_net_path_append(pod_net_path *path, int port, int32_t hops);

/** Take the next hop off a path that is no address: its port. */
int pod_net_path_pop(pod_net_path *path);
