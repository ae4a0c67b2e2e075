/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/traffic.h  Point-to-point traffic on a slice.
 *
 *      pair         one message from one chip to another
 *      neighbor     every chip sends to the neighbour at the end of each of its live links
 *      transpose    (x, y, z) sends to (y, z, x), each coordinate modulo the size of its new axis
 *      tornado      every chip sends ceil(k/2) - 1 positions ahead along each axis of size k
 *                   (Dally & Towles, Principles and Practices of Interconnection Networks, table 3.1)
 *      permutation  a random permutation, seeded
 *      uniform      every chip sends to all other chips
 *      hotspot      every other chip sends to chip 0
 *
 *  `bytes` is what one chip sends in all; where it has several receivers they get equal shares
 *  (differing by one byte at most). A message to the chip itself takes the launch only. All chips
 *  start at once; a chip keeps up to POD_TRAFFIC_WINDOW messages under way and starts the next when
 *  one has left, so that memory doesn't grow with the square of the chips.
 *
 *  Ownership: init/fini. Threads: one per rank. */
#pragma once

#include "net/machine.h"

enum { POD_TRAFFIC_WINDOW = 64 };

#define POD_TRAFFIC_LIST(X)                                                                        \
    X(POD_TRAFFIC_PAIR, "pair")                                                                    \
    X(POD_TRAFFIC_NEIGHBOR, "neighbor")                                                            \
    X(POD_TRAFFIC_TRANSPOSE, "transpose")                                                          \
    X(POD_TRAFFIC_TORNADO, "tornado")                                                              \
    X(POD_TRAFFIC_PERMUTATION, "permutation")                                                      \
    X(POD_TRAFFIC_UNIFORM, "uniform")                                                              \
    X(POD_TRAFFIC_HOTSPOT, "hotspot")

#define POD_TRAFFIC_ENUM(id, name) id,
typedef enum pod_traffic_pattern {
    POD_TRAFFIC_LIST(POD_TRAFFIC_ENUM) POD_TRAFFIC_COUNT
} pod_traffic_pattern;
#undef POD_TRAFFIC_ENUM

/** Static. */
const char *pod_traffic_name(pod_traffic_pattern pattern);

/** Which minimal paths a message takes, in equal shares. */
typedef enum pod_traffic_routing {
    POD_ROUTING_MINIMAL,  /**< all that ici/route.h has */
    POD_ROUTING_DIM_ORDER /**< those that go along x first, then y, then z; all, where none does */
} pod_traffic_routing;

typedef struct pod_traffic {
    pod_traffic_pattern pattern;
    const pod_slice *slice;      /**< borrowed */
    int64_t bytes;               /**< >= 0 */
    int32_t from;                /**< pair only */
    int32_t to;                  /**< pair only */
    int32_t *target;             /**< permutation only: target[chip] */
    pod_traffic_routing routing; /**< may be changed after pod_traffic_init, which sets minimal */
} pod_traffic;

/** Not collective. @param from, to  chips, for pair only */
pod_status pod_traffic_init(pod_traffic *traffic, const pod_slice *slice,
                            pod_traffic_pattern pattern, int64_t bytes, int32_t from, int32_t to,
                            uint64_t seed, pod_error *err);
void pod_traffic_fini(pod_traffic *traffic);

/** Messages that a chip sends, and the receiver and size of the i-th. */
int32_t pod_traffic_messages(const pod_traffic *traffic, int32_t chip);
void pod_traffic_message(const pod_traffic *traffic, int32_t chip, int32_t i, int32_t *dst,
                         int64_t *bytes);

/** As pod_machine_paths, under the traffic's routing. */
int pod_traffic_paths(const pod_traffic *traffic, const pod_machine *machine, int32_t src,
                      int32_t dst, pod_net_path *paths);

typedef struct pod_traffic_result {
    pod_time_ps time_ps;       /**< when the last message has arrived whole */
    pod_time_ps first_byte_ps; /**< launch, and the hops of the farthest message; 0 without any */
    int64_t messages;
    double mean_hops; /**< over messages; 0 when there are none */
    pod_link_summary links;
} pod_traffic_result;

/** What a run takes, before it begins. */
typedef struct pod_traffic_need {
    int64_t messages;  /**< of all chips, exact */
    int64_t fragments; /**< at most: those parts of messages that go over paths of their own */
    int64_t bytes;     /**< memory of all ranks together, at most */
} pod_traffic_need;

/** Memory of `fragments` under way in a run on all ranks. */
int64_t pod_traffic_need_bytes(const pod_machine *machine, const pod_slice *slice,
                               int64_t fragments);
/** Count a run's messages, and what they take if all are under way at once: a chip starts the next one when one has
 *  left it, and where links farther on are busy nearly all wait there. Fragments are counted for some chips, spread
 *  evenly, of which the one with most stands for all. Not collective. */
void pod_traffic_need_get(const pod_machine *machine, const pod_traffic *traffic,
                          pod_traffic_need *need);

struct pod_run_watch;

/** Run it. Collective; the same result on every rank.
 *  @param watch  chips whose messages are kept (sim/run_watch.h), or NULL */
pod_status pod_traffic_run(const pod_machine *machine, const pod_traffic *traffic,
                           struct pod_run_watch *watch, pod_traffic_result *result, pod_error *err);
