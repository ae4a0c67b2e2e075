/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/pool.h  Memory of pending events: nodes of one cache line, named by 32-bit numbers.
 *
 *  Model: nodes lie in slabs that never move, so a pointer to a node stays good while others are
 *  taken. Free nodes form a stack: the node that a handled event leaves is the next to be used,
 *  while it is still in the nearest cache. Where a window posts much before it handles anything, the
 *  nodes have left the cache; so the stack is an array, and nodes are fetched before their turn.
 *
 *  Ownership: the pool owns nodes, not the payloads of their events. Threads: none. */
#pragma once

#include "engine/event.h"

enum {
    POD_POOL_SLAB_BITS = 10,
    POD_POOL_SLAB_NODES = 1 << POD_POOL_SLAB_BITS,
    POD_POOL_FETCH_AHEAD = 12
};

#define POD_NODE_NONE UINT32_MAX

typedef struct pod_pool {
    pod_event **slabs; /**< slabs[nslabs], each POD_POOL_SLAB_NODES long */
    uint32_t nslabs;
    uint32_t slabs_size;
    uint32_t *free_nodes; /**< the stack: free_nodes[nfree], room for all nodes */
    uint32_t nfree;
    const int32_t *
        order; /**< order[cell]: of events at equal times, those of lower cells come first; NULL = the cell */
} pod_pool;

_Static_assert(sizeof(pod_event) == 64, "an event is one cache line");

void pod_pool_init(pod_pool *pool);
void pod_pool_fini(pod_pool *pool);

/** Put a fresh slab on the stack. @return false when memory is out */
bool pod_pool_grow(pod_pool *pool);

/** Whether what cell a posted comes before what cell b did, at equal times. */
static inline bool pod_pool_cell_before(const pod_pool *pool, int32_t a, int32_t b)
{
    return pool->order != NULL ? pool->order[a] < pool->order[b] : a < b;
}

static inline pod_event *pod_pool_event(const pod_pool *pool, uint32_t node)
{
    return pool->slabs[node >> POD_POOL_SLAB_BITS] + (node & (POD_POOL_SLAB_NODES - 1));
}

/** A node with undefined content; POD_NODE_NONE when memory is out. */
static inline uint32_t pod_pool_take(pod_pool *pool)
{
    if (pool->nfree == 0 && !pod_pool_grow(pool)) {
        return POD_NODE_NONE;
    }
    const uint32_t node = pool->free_nodes[--pool->nfree];
    if (pool->nfree >= POD_POOL_FETCH_AHEAD) {
        const uint32_t soon = pool->free_nodes[pool->nfree - POD_POOL_FETCH_AHEAD];
        __builtin_prefetch(pod_pool_event(pool, soon), 1);
    }
    return node;
}

static inline void pod_pool_give_back(pod_pool *pool, uint32_t node)
{
    pool->free_nodes[pool->nfree++] = node;
}
