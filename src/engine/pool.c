/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pool.h"

#include <stdlib.h>

#include "engine/pages.h"

/* So many slabs are allocated one by one, since a rank may have few events; then whole blocks. */
enum { POOL_SMALL_SLABS = 8 };

#define SLAB_BYTES  (POD_POOL_SLAB_NODES * sizeof(pod_event))
#define BLOCK_SLABS ((uint32_t)(POD_BLOCK_BYTES / SLAB_BYTES))

void pod_pool_init(pod_pool *pool)
{
    *pool = (pod_pool){.slabs = NULL};
}

void pod_pool_fini(pod_pool *pool)
{
    for (uint32_t i = 0; i < pool->nslabs; i += i < POOL_SMALL_SLABS ? 1 : BLOCK_SLABS) {
        free(pool->slabs[i]);
    }
    free(pool->slabs);
    free(pool->free_nodes);
    pod_pool_init(pool);
}

static bool table_need(pod_pool *pool, uint32_t nslabs)
{
    if (nslabs <= pool->slabs_size) {
        return true;
    }
    uint32_t size = pool->slabs_size * 2 > nslabs ? pool->slabs_size * 2 : nslabs;
    pod_event **slabs = realloc(pool->slabs, size * sizeof(pod_event *));
    if (slabs == NULL) {
        return false;
    }
    pool->slabs = slabs;
    uint32_t *free_nodes =
        realloc(pool->free_nodes, (size_t)size * POD_POOL_SLAB_NODES * sizeof *free_nodes);
    if (free_nodes == NULL) {
        return false;
    }
    pool->free_nodes = free_nodes;
    pool->slabs_size = size;
    return true;
}

bool pod_pool_grow(pod_pool *pool)
{
    uint32_t added = pool->nslabs < POOL_SMALL_SLABS ? 1 : BLOCK_SLABS;
    uint32_t nslabs = pool->nslabs + added;
    if (nslabs > POD_NODE_NONE >> POD_POOL_SLAB_BITS || !table_need(pool, nslabs)) {
        return false;
    }
    pod_event *memory = added == 1 ? aligned_alloc(sizeof *memory, SLAB_BYTES) : pod_block_new();
    if (memory == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < added; i++) {
        pool->slabs[pool->nslabs + i] = memory + (size_t)i * POD_POOL_SLAB_NODES;
    }
    uint32_t first = pool->nslabs << POD_POOL_SLAB_BITS;
    pool->nslabs = nslabs;
    for (uint32_t i = added * POD_POOL_SLAB_NODES; i > 0; i--) {
        pod_pool_give_back(pool, first + i - 1);
    }
    return true;
}
