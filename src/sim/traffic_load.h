/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/traffic_load.h  Open-loop traffic: messages come whether or not the network keeps up.
 *
 *  Model (Dally & Towles, Principles and Practices of Interconnection Networks, chapter 23). A cycle is the time of a
 *  message on a healthy link. In each cycle every sender begins a message with probability `load`, so that it offers
 *  load times the rate of one link; where a pattern has several receivers, one of them by lot. Random numbers are
 *  functions of seed, cycle and chip: the same messages over fluid links and over packets, and on any number of ranks.
 *
 *      warm-up     measured / 2 cycles: queues fill
 *      measured    latencies are those of messages that begin here, accepted is what arrives here
 *      after       measured / 4 cycles of further messages, so that the last measured ones don't have it easier
 *      drain       nobody begins one; until all have arrived
 *
 *  Over fluid links a chip sends up to POD_TRAFFIC_LOAD_WINDOW messages at once, and others wait for one to leave; the
 *  wait is part of their latency. Links queue without limit. No launch. A message to the chip itself takes no time.
 *
 *  Threads: one per rank. */
#pragma once

#include "sim/traffic.h"

enum { POD_TRAFFIC_LOAD_WINDOW = 8 };

typedef struct pod_traffic_load {
    const pod_traffic *traffic; /**< its bytes, >= 1, are those of a message */
    double load;                /**< in (0, 1] */
    int64_t measured;           /**< cycles, >= 4 */
    uint64_t seed;
} pod_traffic_load;

typedef struct pod_traffic_load_result {
    double accepted; /**< what arrived, in rates of a link a sender: as load */
    /** mean, from when the message should have begun to its last byte; 0 without any */
    double latency_ps;
    double latency_cycles;      /**< the same */
    pod_time_ps max_latency_ps; /**< of a measured message */
    double mean_hops;           /**< of measured messages */
    int64_t messages;           /**< measured */
    int64_t delivered;          /**< of all that began */
    int64_t begun;
    pod_time_ps end_ps; /**< when the last one has arrived */
    pod_time_ps cycle_ps;
    pod_link_summary links;
} pod_traffic_load_result;

/** The message that a chip begins in a cycle. @return false: it begins none */
bool pod_traffic_load_message(const pod_traffic_load *load, int32_t chip, int64_t cycle,
                              int32_t *dst);
/** Cycles in which messages begin; those measured begin at *from, before *to. */
int64_t pod_traffic_load_cycles(const pod_traffic_load *load, int64_t *from, int64_t *to);

/** What has arrived so far: of one rank. */
typedef struct pod_traffic_tally {
    int64_t messages;
    int64_t hops;
    int64_t accepted;
    int64_t delivered;
    int64_t begun;
    int64_t latency_ps;
    int64_t max_latency_ps;
    int64_t last_ps;
} pod_traffic_tally;
/** A message that began in a cycle has arrived. */
void pod_traffic_tally_add(pod_traffic_tally *tally, const pod_traffic_load *load, int64_t cycle,
                           int32_t hops, pod_time_ps cycle_ps, pod_time_ps now_ps);
void pod_traffic_tally_result(const pod_traffic_tally *tally, const pod_traffic_load *load,
                              pod_time_ps cycle_ps, pod_traffic_load_result *result);

/** What a run over fluid links takes if none arrives before the last begins. */
void pod_traffic_load_need_get(const pod_machine *machine, const pod_traffic_load *load,
                               pod_traffic_need *need);
/** Over fluid links. Collective; the same result on every rank. */
pod_status pod_traffic_load_run(const pod_machine *machine, const pod_traffic_load *load,
                                pod_traffic_load_result *result, pod_error *err);
