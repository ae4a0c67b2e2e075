/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/flow_queue.h  The messages that a link serves, the first to be served on top.
 *
 *  By their finish (ici/link.h), equals as they joined. Model: a binary heap of the keys of a few. Of many, most are as
 *  long as others, so that who joins later is served later: they lie in a few runs, each in the order of service. A
 *  message goes to the end of the run whose last finish is the latest that it may follow, and the first of all is
 *  the first of a run. What fits no run goes to the heap. Constant time, where a heap of hundreds of keys costs many
 *  cache misses.
 *
 *  Ownership: the queue owns its keys. Threads: none. */
#pragma once

#include "base/units.h"

#include <stdbool.h>
#include <stdint.h>

/** What a message on a link is known by. */
typedef struct pod_flow_key {
    pod_time_ps finish; /**< virtual time at which it has had its service, < POD_TIME_NEVER */
    uint32_t number;    /**< of those that joined the link; may wrap round */
    int32_t flow;       /**< the caller's */
} pod_flow_key;

enum { POD_FLOW_RUNS = 8 };

/** A ring: key i is keys[i % room]. */
typedef struct pod_flow_run {
    pod_flow_key *keys;
    uint32_t first;
    uint32_t end;
    uint32_t room; /**< a power of two, or 0 */
} pod_flow_run;

/** What a put or a take reads lies in as few cache lines as may be, as a pod's links don't fit the caches. */
typedef struct pod_flow_queue {
    pod_flow_key first; /**< of those in the queue, if there are any */
    int64_t count;
    pod_flow_key *heap; /**< heap[heap_room] */
    int64_t heap_count;
    int64_t heap_room;
    int first_run; /**< that has `first`; -1: the heap */
    _Alignas(64) pod_time_ps
        run_first[POD_FLOW_RUNS];        /**< finish of a run's first key; POD_TIME_NEVER: none */
    pod_time_ps run_last[POD_FLOW_RUNS]; /**< finish of its last key; -1: none */
    pod_flow_run run[POD_FLOW_RUNS];
} pod_flow_queue;

void pod_flow_queue_init(pod_flow_queue *queue);
/** @return false without memory; then nothing has changed */
bool pod_flow_queue_put(pod_flow_queue *queue, pod_flow_key key);
/** Take the first off a queue that isn't empty. @return its flow */
int32_t pod_flow_queue_take(pod_flow_queue *queue);
void pod_flow_queue_fini(pod_flow_queue *queue);
