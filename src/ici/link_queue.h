/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/link_queue.h  The messages on one link, the first to be served on top.
 *
 *  Messages on a link are served by their finish (ici/link.h), equals as they joined. Where the link serves in order,
 *  those of a lower order come first. A binary heap of keys, so that many messages cost little and lie together.
 *
 *  Ownership: the queue owns its keys. Threads: none. */
#pragma once

#include "base/grow.h"
#include "base/heap.h"
#include "ici/link.h"

#include <stdlib.h>

/** What a message on a link is known by. */
typedef struct pod_link_key {
    pod_time_ps finish; /**< virtual time at which it has had its service */
    uint32_t order;     /**< 0 unless the link serves in order */
    uint32_t number;    /**< of those that joined the link; may wrap round */
    int32_t message;    /**< the caller's */
} pod_link_key;

typedef struct pod_link_queue {
    pod_link_key *keys; /**< keys[room]; keys[0] is served first */
    int64_t count;
    int64_t room;
} pod_link_queue;

static inline bool pod_link_key_before(const pod_link_key *a, const pod_link_key *b)
{
    if (a->order != b->order) {
        return a->order < b->order;
    }
    return a->finish != b->finish ? a->finish < b->finish : (int32_t)(a->number - b->number) < 0;
}

/** @return false without memory; then nothing has changed */
static inline bool pod_link_queue_put(pod_link_queue *queue, pod_link_key key)
{
    if (!POD_GROW(queue->keys, queue->room, queue->count + 1)) {
        return false;
    }
    int64_t at = queue->count++;
    POD_HEAP_RISE(queue->keys, at, key, pod_link_key_before);
    return true;
}

/** Take the first off a queue that isn't empty. @return its message */
static inline int32_t pod_link_queue_take(pod_link_queue *queue)
{
    const int32_t message = queue->keys[0].message;
    const pod_link_key last = queue->keys[--queue->count];
    int64_t at = 0;
    POD_HEAP_SINK(queue->keys, queue->count, at, last, pod_link_key_before);
    return message;
}

static inline void pod_link_queue_fini(pod_link_queue *queue)
{
    free(queue->keys);
    *queue = (pod_link_queue){.keys = NULL};
}
