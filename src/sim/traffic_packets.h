/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/traffic_packets.h  Traffic over routers with virtual channels (net/packets.h): on one rank, by itself.
 *
 *  Threads: any. @return of all: as pod_packets_new, POD_E_NOMEM */
#pragma once

#include "sim/traffic_load.h"

enum { POD_TRAFFIC_FLIT_BYTES = 512, POD_TRAFFIC_FLITS_MAX = 1 << 24 };

typedef struct pod_traffic_packets {
    pod_rate link_rate;
    pod_time_ps launch_ps;
    int64_t flit_bytes; /**< of a burst: messages are cut into so many */
    int vcs;
    int buffer;
} pod_traffic_packets;

/** What the two below refuse, before they begin: more flits than POD_TRAFFIC_FLITS_MAX, too.
 *  @param load  0 = a burst */
pod_status pod_traffic_packets_check(const pod_traffic_packets *how, const pod_traffic *traffic,
                                     double load, pod_error *err);
/** A burst: all messages of a pattern at once, from as many ends as a chip has links, the flits of a chip's messages in
 *  turn. A message to the chip itself takes the launch only. */
pod_status pod_traffic_packets_run(const pod_traffic_packets *how, const pod_traffic *traffic,
                                   pod_traffic_result *result, pod_error *err);
/** Open-loop: a message is one flit, and a chip has one end. */
pod_status pod_traffic_packets_load(const pod_traffic_packets *how, const pod_traffic_load *load,
                                    pod_traffic_load_result *result, pod_error *err);
