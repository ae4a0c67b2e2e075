/* SPDX-License-Identifier: Apache-2.0 */
/** @file exchange/ready.h  What of a graph is ready, by number: the smallest comes first. */
#pragma once

#include "base/heap.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pod_ready {
    int64_t *heap; /**< the caller's, with room for all */
    int64_t count;
} pod_ready;

static inline bool pod_ready_before(const int64_t *a, const int64_t *b)
{
    return *a < *b;
}

static inline void pod_ready_push(pod_ready *ready, int64_t item)
{
    int64_t at = ready->count++;
    POD_HEAP_RISE(ready->heap, at, item, pod_ready_before);
}

/** Of a heap that isn't empty. */
static inline int64_t pod_ready_pop(pod_ready *ready)
{
    const int64_t first = ready->heap[0];
    const int64_t item = ready->heap[--ready->count];
    int64_t at = 0;
    if (ready->count > 0) {
        POD_HEAP_SINK(ready->heap, ready->count, at, item, pod_ready_before);
    }
    return first;
}
