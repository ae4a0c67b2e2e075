/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"
#include "base/rng.h"

#include <criterion/criterion.h>

enum { KEYS = 97, OPERATIONS = 20000 };

/* Against the simplest map there is: an array indexed by the key. */
Test(map, agrees_with_an_array_under_random_use)
{
    pod_map map;
    pod_map_init(&map);
    uint64_t value[KEYS] = {0};
    bool present[KEYS] = {false};
    for (uint64_t i = 0; i < OPERATIONS; i++) {
        const size_t key = pod_rng_below(1, 0, i, KEYS);
        const uint64_t a = key % 7;
        const uint64_t b = key / 7;
        uint64_t taken = 0;
        if (pod_rng_below(1, 1, i, 2) == 0) {
            pod_map_put(&map, a, b, i);
            value[key] = i;
            present[key] = true;
        } else {
            cr_assert_eq(pod_map_take(&map, a, b, &taken), present[key]);
            cr_assert(!present[key] || taken == value[key]);
            present[key] = false;
        }
        const size_t other = pod_rng_below(1, 2, i, KEYS);
        const uint64_t *found = pod_map_get(&map, other % 7, other / 7);
        cr_assert_eq(found != NULL, present[other]);
        cr_assert(!found || *found == value[other]);
    }
    pod_map_fini(&map);
}

Test(map, finds_nothing_when_empty)
{
    pod_map map;
    pod_map_init(&map);
    uint64_t value = 0;
    cr_assert_null(pod_map_get(&map, 1, 2));
    cr_assert_not(pod_map_take(&map, 1, 2, &value));
    pod_map_fini(&map);
}
