/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/traffic.h  The patterns of `podsim traffic` as lists of messages.
 *
 *      pair         one message from one chip to another
 *      neighbor     every chip sends to its neighbour in each direction of its live links
 *      transpose    (x, y, z) sends to the chip whose coordinates are shifted cyclically one axis on,
 *                   (y, z, x), modulo the sizes
 *      tornado      every chip sends ceil(k/2) - 1 positions ahead along each axis
 *                   (Dally & Towles, Principles and Practices of Interconnection Networks, table 3.1)
 *      permutation  a random permutation without fixed points where possible (seeded)
 *      uniform      every chip sends its bytes in equal shares to all other chips
 *      hotspot      every chip sends to chip 0
 *
 *  Bytes are what one chip sends in all. Threads: none. */
#pragma once

#include "ici/slice.h"
#include "sim/run.h"

typedef enum pod_traffic_pattern {
    POD_TRAFFIC_PAIR,
    POD_TRAFFIC_NEIGHBOR,
    POD_TRAFFIC_TRANSPOSE,
    POD_TRAFFIC_TORNADO,
    POD_TRAFFIC_PERMUTATION,
    POD_TRAFFIC_UNIFORM,
    POD_TRAFFIC_HOTSPOT,
    POD_TRAFFIC_COUNT
} pod_traffic_pattern;

const char *pod_traffic_name(pod_traffic_pattern pattern);
/** POD_E_USAGE with the nearest name. */
pod_status pod_traffic_parse(const char *text, pod_traffic_pattern *pattern, pod_error *err);

/** @param from, to  chips, for pair only
 *  @param[out] messages  heap memory of the caller, *count of them */
pod_status pod_traffic_messages(const pod_slice *slice, pod_traffic_pattern pattern, int64_t bytes,
                                int32_t from, int32_t to, uint64_t seed, pod_message **messages,
                                int64_t *count, pod_error *err);
