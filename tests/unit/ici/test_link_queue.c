/* SPDX-License-Identifier: Apache-2.0 */
/* Messages come off a link's queue by order, finish and number, as an insertion sort has them. */
#include "base/rng.h"
#include "ici/link_queue.h"

#include <criterion/criterion.h>

enum { MESSAGES = 200 };

Test(link_queue, serves_as_an_insertion_sort_does)
{
    pod_link_queue queue = {.keys = NULL};
    pod_link_key sorted[MESSAGES];
    int count = 0;
    int taken = 0;
    for (uint64_t i = 0; taken < MESSAGES; i++) {
        if (count + taken < MESSAGES && pod_rng_u64(1, 0, i) % 3 != 0) {
            const int32_t message = count + taken;
            /* numbers wrap round on the way; many finish together */
            const pod_link_key key = {.finish = (pod_time_ps)(pod_rng_u64(1, 1, i) % 7),
                                      .order = (uint32_t)(pod_rng_u64(1, 2, i) % 2),
                                      .number = (uint32_t)message - MESSAGES / 2,
                                      .message = message};
            int at = count++;
            for (;
                 at > 0
                 && (key.order < sorted[at - 1].order
                     || (key.order == sorted[at - 1].order && key.finish < sorted[at - 1].finish));
                 at--) {
                sorted[at] = sorted[at - 1];
            }
            sorted[at] = key;
            cr_assert(pod_link_queue_put(&queue, key));
        } else if (count > 0) {
            cr_assert_eq(queue.keys[0].finish, sorted[0].finish);
            cr_assert_eq(pod_link_queue_take(&queue), sorted[0].message);
            taken++;
            count--;
            memmove(sorted, sorted + 1, (size_t)count * sizeof *sorted);
        }
    }
    cr_expect_eq(queue.count, 0);
    pod_link_queue_fini(&queue);
}
