/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/map.h  A small hash map from 128-bit keys to 64-bit values.
 *
 *  Open addressing with linear probing and backward-shift deletion, at most half full. It is never
 *  iterated, so its order can't reach a result. Ownership: init/fini. Threads: none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pod_map_slot {
    uint64_t a;
    uint64_t b;
    uint64_t value;
    uint64_t used;
} pod_map_slot;

typedef struct pod_map {
    pod_map_slot *slots;
    size_t mask; /**< capacity - 1, a power of two; slots is NULL when nothing was ever put */
    size_t count;
} pod_map;

void pod_map_init(pod_map *map);
void pod_map_fini(pod_map *map);

/** The value stored under a key, or NULL. Valid until the next put or remove. */
uint64_t *pod_map_get(const pod_map *map, uint64_t a, uint64_t b);
/** Room for one more key; false without memory. Then what comes next has it. */
bool pod_map_reserve(pod_map *map);
/** Insert or overwrite. Ends the job when memory is out (pod_out_of_memory), as it runs in handlers; others reserve
 *  room before. */
void pod_map_put(pod_map *map, uint64_t a, uint64_t b, uint64_t value);
/** Remove; returns true and the value if the key was there. */
bool pod_map_take(pod_map *map, uint64_t a, uint64_t b, uint64_t *value);
