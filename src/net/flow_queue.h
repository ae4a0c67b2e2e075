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

typedef struct pod_flow_runs pod_flow_runs;

/** All zero: empty. */
typedef struct pod_flow_queue {
    pod_flow_key first; /**< of those in the queue, if there are any */
    int64_t count;
    pod_flow_key *heap; /**< heap[heap_room] */
    int64_t heap_count;
    int64_t heap_room;
    pod_flow_runs *runs; /**< NULL: none yet */
    int first_run;       /**< that has `first`; -1: the heap */
} pod_flow_queue;

/** @return false without memory; then nothing has changed */
bool pod_flow_queue_put(pod_flow_queue *queue, pod_flow_key key);
/** Take the first off a queue that isn't empty. @return its flow */
int32_t pod_flow_queue_take(pod_flow_queue *queue);
void pod_flow_queue_fini(pod_flow_queue *queue);
