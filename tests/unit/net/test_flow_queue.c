/* SPDX-License-Identifier: Apache-2.0 */
/* Messages come off a link's queue by finish and number, as an insertion sort has them. */
#include "../out_of_memory.h"

#include "base/rng.h"
#include "net/flow_queue.h"

#include <string.h>

enum { MESSAGES = 2000 };

/* @param spread  finishes differ by less than this, from those of messages that joined before; sizes of messages */
static void serve(uint64_t seed, uint64_t spread, uint64_t sizes)
{
    static pod_flow_key sorted[MESSAGES];
    pod_flow_queue queue;
    pod_flow_queue_init(&queue);
    int count = 0;
    int taken = 0;
    pod_time_ps clock = 0;
    for (uint64_t i = 0; taken < MESSAGES; i++) {
        /* fills up for a while, then drains for a while */
        const bool fills = pod_rng_u64(seed, 0, i) % 100 < (i / 300 % 2 == 0 ? 70U : 30U);
        if (count + taken < MESSAGES && fills) {
            const int32_t flow = count + taken;
            const uint64_t size = pod_rng_u64(seed, 1, i) % sizes;
            /* numbers wrap round on the way */
            const pod_flow_key key = {.finish = clock + (pod_time_ps)(size * spread),
                                      .number = (uint32_t)flow - MESSAGES / 2,
                                      .flow = flow};
            int at = count++;
            for (; at > 0 && key.finish < sorted[at - 1].finish; at--) {
                sorted[at] = sorted[at - 1];
            }
            sorted[at] = key;
            cr_assert(pod_flow_queue_put(&queue, key));
        } else if (count > 0) {
            cr_assert_eq(queue.first.finish, sorted[0].finish);
            cr_assert_eq(pod_flow_queue_take(&queue), sorted[0].flow);
            clock = sorted[0].finish > clock ? sorted[0].finish : clock;
            taken++;
            count--;
            memmove(sorted, sorted + 1, (size_t)count * sizeof *sorted);
        }
        cr_assert_eq(queue.count, count);
    }
    pod_flow_queue_fini(&queue);
}

Test(flow_queue, serves_messages_of_a_few_sizes_in_order)
{
    serve(1, 7, 3);
    serve(2, 1000, 5);
}

Test(flow_queue, serves_messages_that_finish_together_as_they_joined)
{
    serve(3, 0, 1);
    serve(4, 1, 2);
}

Test(flow_queue, serves_messages_of_any_size_in_order)
{
    serve(5, 1, 1000000);
    serve(6, 3, 40);
}

/* Some finish as they joined, in runs, others in between, in a heap. */
static pod_status puts_many(void *context)
{
    enum { MANY = 400 };
    pod_flow_queue queue;
    (void)context;
    pod_flow_queue_init(&queue);
    int32_t put = 0;
    for (bool there = true; there && put < MANY; put += there ? 1 : 0) {
        const pod_flow_key key = {
            .finish = (pod_time_ps)(put * 7919 % 1000), .number = (uint32_t)put, .flow = put};
        there = pod_flow_queue_put(&queue, key);
    }
    pod_time_ps last = 0;
    for (int32_t i = 0; i < put; i++) {
        cr_assert_leq(last, queue.first.finish);
        last = queue.first.finish;
        (void)pod_flow_queue_take(&queue);
    }
    pod_flow_queue_fini(&queue);
    return put == MANY ? POD_OK : POD_E_NOMEM;
}

/* What has been put before is served all the same. */
Test(flow_queue, needs_memory)
{
    cr_expect_gt(every_allocation_fails(puts_many, NULL), 6);
}
