/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/machine.h  The simulated hardware as cells and ports.
 *
 *  Model: cell = chip number; port = direction (0–5) of ici/slice.h. Link rates are the healthy rate
 *  divided by the link's slowness; dead links have no port. The machine borrows slice and router.
 *  Threads: one per rank. */
#pragma once

#include "ici/route.h"
#include "sim/net.h"

typedef struct pod_machine {
    pod_par *par;
    const pod_slice *slice;
    const pod_router *router;
    double link_bytes_per_s;    /**< one way, of a healthy link, in force for this run */
    pod_time_ps hop_latency_ps; /**< > 0 */
    pod_time_ps launch_ps;      /**< before the first byte of a collective or a message */
    void (*progress)(void *context, pod_time_ps now_ps, int64_t events); /**< or NULL */
    void *progress_context;
} pod_machine;

/** A net of the machine's chips. Collective.
 *  @return POD_E_USAGE when there are more ranks than chips */
pod_status pod_machine_net(const pod_machine *machine, const pod_net_client *client, pod_net **net,
                           pod_error *err);

/** Paths of a message between two chips, ready to travel.
 *  @param[out] paths  room for POD_NET_PATHS_MAX
 *  @return their number, 0 when src == dst */
int pod_machine_paths(const pod_machine *machine, int32_t src, int32_t dst, pod_net_path *paths);

/** The busiest link of a run, and totals over all links, on every rank. */
typedef struct pod_link_summary {
    int64_t max_bytes;    /**< on the busiest link */
    int32_t busiest_chip; /**< the lowest (chip, direction) that has it; -1 when nothing moved */
    int busiest_direction;
    int64_t total_bytes; /**< over all links */
    int64_t hops;        /**< message-hops */
    pod_engine_counts counts;
} pod_link_summary;
/** Collective. */
pod_status pod_machine_links(const pod_machine *machine, const pod_net *net,
                             pod_link_summary *summary, pod_error *err);
