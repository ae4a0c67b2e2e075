/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/ready.h  Sends that are ready and wait for their link: pairing heaps in one pool.
 *
 *  Model: a heap is the index of its root in the pool, -1 when empty; the smallest key is on top.
 *  Keys are unique, so the order doesn't depend on the heap's shape. Put is O(1), take is O(log n)
 *  amortised (Fredman et al., Algorithmica 1986). Indices stay valid when the pool grows.
 *  Threads: none. */
#pragma once

#include "engine/engine.h"

typedef struct pod_ready {
    uint64_t key;
    int64_t bytes;
    pod_payload *payload;
    int32_t channel;
    int32_t step;
    int32_t child;
    int32_t sibling;
} pod_ready;

typedef struct pod_ready_pool {
    pod_ready *nodes;
    int32_t count;
    int32_t free;
} pod_ready_pool;

void pod_ready_init(pod_ready_pool *pool);
void pod_ready_fini(pod_ready_pool *pool);

/** Add a send to a heap. Ends the job when memory is out (POD_ASSERT), as it runs in handlers. */
void pod_ready_put(pod_ready_pool *pool, int32_t *heap, const pod_ready *ready);
/** Take the send with the smallest key. @return false when the heap is empty */
bool pod_ready_take(pod_ready_pool *pool, int32_t *heap, pod_ready *ready);
