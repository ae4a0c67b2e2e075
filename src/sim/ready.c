/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ready.h"

#include <stdlib.h>

void pod_ready_init(pod_ready_pool *pool)
{
    *pool = (pod_ready_pool){.nodes = NULL, .free = -1};
}

void pod_ready_fini(pod_ready_pool *pool)
{
    free(pool->nodes);
    pod_ready_init(pool);
}

static int32_t ready_meld(pod_ready *nodes, int32_t a, int32_t b)
{
    if (a < 0 || b < 0) {
        return a < 0 ? b : a;
    }
    const int32_t parent = nodes[a].key < nodes[b].key ? a : b;
    const int32_t other = parent == a ? b : a;
    nodes[other].sibling = nodes[parent].child;
    nodes[parent].child = other;
    return parent;
}

/* What is left without the root: meld the children in pairs, then the pairs from last to first. */
static int32_t ready_without_root(pod_ready *nodes, int32_t root)
{
    int32_t pairs = -1;
    int32_t child = nodes[root].child;
    while (child >= 0) {
        const int32_t second = nodes[child].sibling;
        const int32_t rest = second >= 0 ? nodes[second].sibling : -1;
        nodes[child].sibling = -1;
        if (second >= 0) {
            nodes[second].sibling = -1;
        }
        const int32_t pair = ready_meld(nodes, child, second);
        nodes[pair].sibling = pairs;
        pairs = pair;
        child = rest;
    }
    int32_t heap = -1;
    while (pairs >= 0) {
        const int32_t rest = nodes[pairs].sibling;
        nodes[pairs].sibling = -1;
        heap = ready_meld(nodes, heap, pairs);
        pairs = rest;
    }
    return heap;
}

static int32_t ready_new(pod_ready_pool *pool)
{
    if (pool->free < 0) {
        const int32_t count = pool->count ? 2 * pool->count : 256;
        pod_ready *nodes = realloc(pool->nodes, (size_t)count * sizeof *nodes);
        POD_ASSERT(nodes != NULL);
        pool->nodes = nodes;
        for (int32_t i = count - 1; i >= pool->count; i--) {
            nodes[i].sibling = pool->free;
            pool->free = i;
        }
        pool->count = count;
    }
    const int32_t node = pool->free;
    pool->free = pool->nodes[node].sibling;
    return node;
}

void pod_ready_put(pod_ready_pool *pool, int32_t *heap, const pod_ready *ready)
{
    const int32_t node = ready_new(pool);
    pool->nodes[node] = *ready;
    pool->nodes[node].child = -1;
    pool->nodes[node].sibling = -1;
    *heap = ready_meld(pool->nodes, *heap, node);
}

bool pod_ready_take(pod_ready_pool *pool, int32_t *heap, pod_ready *ready)
{
    const int32_t root = *heap;
    if (root < 0) {
        return false;
    }
    *ready = pool->nodes[root];
    *heap = ready_without_root(pool->nodes, root);
    pool->nodes[root].sibling = pool->free;
    pool->free = root;
    return true;
}
