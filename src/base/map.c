/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/status.h"

#include <stdlib.h>

static size_t key_hash(uint64_t a, uint64_t b)
{
    uint64_t hash = a * UINT64_C(0x9e3779b97f4a7c15) ^ (b + UINT64_C(0x7f4a7c15));
    hash ^= hash >> 29;
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(hash ^ (hash >> 32));
}

void pod_map_init(pod_map *map)
{
    *map = (pod_map){.slots = NULL};
}

void pod_map_fini(pod_map *map)
{
    free(map->slots);
    pod_map_init(map);
}

static size_t slot_find(const pod_map *map, uint64_t a, uint64_t b)
{
    size_t at = key_hash(a, b) & map->mask;
    while (map->slots[at].used && (map->slots[at].a != a || map->slots[at].b != b)) {
        at = (at + 1) & map->mask;
    }
    return at;
}

uint64_t *pod_map_get(const pod_map *map, uint64_t a, uint64_t b)
{
    if (map->count == 0) {
        return NULL;
    }
    pod_map_slot *slot = &map->slots[slot_find(map, a, b)];
    return slot->used ? &slot->value : NULL;
}

bool pod_map_reserve(pod_map *map)
{
    const pod_map old = *map;
    if (old.slots != NULL && 2 * (old.count + 1) <= old.mask + 1) {
        return true;
    }
    const size_t capacity = old.slots != NULL ? 2 * (old.mask + 1) : 64;
    pod_map_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    map->slots = slots;
    map->mask = capacity - 1;
    for (size_t i = 0; old.slots && i <= old.mask; i++) {
        if (old.slots[i].used) {
            map->slots[slot_find(map, old.slots[i].a, old.slots[i].b)] = old.slots[i];
        }
    }
    free(old.slots);
    return true;
}

void pod_map_put(pod_map *map, uint64_t a, uint64_t b, uint64_t value)
{
    if (!pod_map_reserve(map)) {
        pod_out_of_memory("messages under way");
    }
    pod_map_slot *slot = &map->slots[slot_find(map, a, b)];
    map->count += slot->used ? 0 : 1;
    *slot = (pod_map_slot){.a = a, .b = b, .value = value, .used = 1};
}

bool pod_map_take(pod_map *map, uint64_t a, uint64_t b, uint64_t *value)
{
    if (map->count == 0) {
        return false;
    }
    size_t hole = slot_find(map, a, b);
    if (!map->slots[hole].used) {
        return false;
    }
    *value = map->slots[hole].value;
    map->count--;
    for (size_t at = (hole + 1) & map->mask; map->slots[at].used; at = (at + 1) & map->mask) {
        const size_t home = key_hash(map->slots[at].a, map->slots[at].b) & map->mask;
        if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole].used = 0;
    return true;
}
