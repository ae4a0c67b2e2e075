/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/queue.h"

#include <criterion/criterion.h>

#include "base/rng.h"

enum { CELLS = 130, SHIFT = 4, WORDS = (CELLS + 63) / 64 };

static pod_queue queue;
static uint64_t active[WORDS];

static void setup(void)
{
    cr_assert_eq(pod_queue_init(&queue, CELLS, SHIFT, NULL), POD_OK);
}

static void teardown(void)
{
    pod_queue_fini(&queue);
}

TestSuite(queue, .init = setup, .fini = teardown);

static void add(pod_time_ps time_ps, int32_t cell)
{
    uint32_t node = pod_queue_node(&queue);
    *pod_pool_event(&queue.pool, node) = (pod_event){.time_ps = time_ps, .dst = cell};
    pod_queue_add(&queue, time_ps, cell, node);
}

static void set_timer(int32_t cell, pod_time_ps time_ps)
{
    queue.cells[cell].timer_ps = time_ps;
    queue.cells[cell].latest_ps = time_ps;
    pod_queue_timer_enter(&queue, cell);
}

/* Take everything of the earliest tick. @return that tick; *count events came out */
static uint64_t take_first(int64_t *count)
{
    uint64_t tick = pod_queue_first(&queue);
    *count = 0;
    if (tick == POD_TICK_NEVER) {
        return tick;
    }
    pod_queue_advance(&queue, tick);
    pod_batch batch;
    pod_queue_take(&queue, tick + 1, &batch, active);
    *count = batch.count;
    for (const pod_chunk *chunk = batch.chunks; chunk != NULL; chunk = chunk->next) {
        for (int64_t i = 0; i < chunk->count; i++) {
            const pod_key *key = &chunk->of.keys[i];
            cr_assert_eq((uint64_t)key->time_ps >> SHIFT, tick);
            cr_assert_eq(pod_pool_event(&queue.pool, key->node)->time_ps, key->time_ps);
            cr_assert_eq(pod_pool_event(&queue.pool, key->node)->dst, key->cell);
            pod_pool_give_back(&queue.pool, key->node);
        }
    }
    pod_queue_give_back(&queue, &batch);
    return tick;
}

static bool take_timer(int32_t cell)
{
    bool is_set = (active[cell / 64] >> (cell % 64) & 1) != 0;
    active[cell / 64] &= ~(UINT64_C(1) << (cell % 64));
    return is_set;
}

Test(queue, is_empty_at_first)
{
    cr_assert_eq(pod_queue_first(&queue), POD_TICK_NEVER);
}

Test(queue, brings_out_each_tick_in_order)
{
    /* Ticks of 16 ps, one at each level of the hierarchy, put in from the last to the first. */
    static const uint64_t ticks[] = {
        3, 511, 512, 5000, 262143, 262144, UINT64_C(1) << 30, UINT64_C(1) << 45, UINT64_C(1) << 58};
    enum { COUNT = sizeof ticks / sizeof ticks[0] };
    for (int i = COUNT - 1; i >= 0; i--) {
        add((pod_time_ps)(ticks[i] << SHIFT) + i, i);
    }
    for (int i = 0; i < COUNT; i++) {
        int64_t count = 0;
        cr_expect_eq(take_first(&count), ticks[i]);
        cr_expect_eq(count, 1);
    }
    cr_assert_eq(pod_queue_first(&queue), POD_TICK_NEVER);
}

Test(queue, looks_at_the_first_tick_without_moving)
{
    add(INT64_C(1) << 40, 0);
    uint64_t far_tick = pod_queue_first(&queue);
    cr_assert_eq(far_tick, (UINT64_C(1) << 40) >> SHIFT);
    /* What comes later for an earlier time still comes out first. */
    add(100, 1);
    int64_t count = 0;
    cr_assert_eq(take_first(&count), 100 >> SHIFT);
    cr_assert_eq(take_first(&count), far_tick);
}

Test(queue, holds_more_than_a_chunk_in_a_slot)
{
    enum { MANY = 5000 };
    for (int i = 0; i < MANY; i++) {
        add(INT64_C(1000000) + i % 16, i % CELLS);
    }
    int64_t count = 0;
    cr_assert_eq(take_first(&count), 1000000 >> SHIFT);
    cr_assert_eq(count, MANY);
}

Test(queue, uses_memory_again)
{
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 100; i++) {
            add((round + 1) * INT64_C(10000) + i, 0);
        }
        int64_t count = 0;
        int64_t left = 100;
        while (left > 0) {
            (void)take_first(&count);
            left -= count;
        }
    }
    cr_assert_eq(queue.pool.nslabs, 1);
    cr_assert_eq(queue.nslabs, 1);
}

Test(queue, rings_a_timer_at_its_time)
{
    set_timer(7, 12345);
    int64_t count = 0;
    cr_assert_eq(take_first(&count), 12345 >> SHIFT);
    cr_assert_eq(count, 0);
    cr_assert(take_timer(7));
    queue.cells[7].timer_ps = POD_TIME_NEVER;
    queue.cells[7].latest_ps = POD_TIME_NEVER;
    cr_assert_eq(pod_queue_first(&queue), POD_TICK_NEVER);
}

Test(queue, follows_a_timer_that_moves)
{
    set_timer(7, 100000);
    set_timer(7, 500);
    set_timer(7, INT64_C(1) << 50);
    set_timer(7, 3000);
    int64_t count = 0;
    cr_assert_eq(take_first(&count), 3000 >> SHIFT);
    cr_assert(take_timer(7));
    queue.cells[7].timer_ps = POD_TIME_NEVER;
    queue.cells[7].latest_ps = POD_TIME_NEVER;
    cr_assert_eq(pod_queue_first(&queue), POD_TICK_NEVER);
}

Test(queue, forgets_a_timer_that_is_unset)
{
    set_timer(7, 500);
    set_timer(8, 600);
    set_timer(7, POD_TIME_NEVER);
    int64_t count = 0;
    cr_assert_eq(take_first(&count), 600 >> SHIFT);
    cr_assert(take_timer(8));
    cr_assert_not(take_timer(7));
}

/* A far timer that is interrupted again and again must not leave a hint each time. */
Test(queue, keeps_few_hints_for_a_far_timer)
{
    for (int32_t round = 1; round <= 20000; round++) {
        pod_time_ps now_ps = round * INT64_C(100000);
        set_timer(3, now_ps);
        int64_t count = 0;
        cr_assert_eq(take_first(&count), (uint64_t)now_ps >> SHIFT);
        cr_assert(take_timer(3));
        set_timer(3, INT64_C(1) << 50);
    }
    cr_assert_eq(queue.nslabs, 1);
    int64_t count = 0;
    cr_assert_eq(take_first(&count), (UINT64_C(1) << 50) >> SHIFT);
    cr_assert(take_timer(3));
}

/* Whatever is put in and moved, the first tick is that of a search through everything. */
Test(queue, agrees_with_a_plain_search)
{
    enum { STEPS = 20000 };
    static pod_time_ps pending[STEPS * 2];
    int npending = 0;
    pod_time_ps now_ps = 0;
    uint64_t draws = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t magnitude = pod_rng_below(1, 0, draws++, 30);
        pod_time_ps time_ps =
            now_ps + (pod_time_ps)pod_rng_below(1, 0, draws++, UINT64_C(1) << magnitude);
        int32_t cell = (int32_t)pod_rng_below(1, 0, draws++, CELLS);
        switch (pod_rng_below(1, 0, draws++, 4)) {
        case 0:
            add(time_ps, cell);
            pending[npending++] = time_ps;
            break;
        case 1:
            set_timer(cell, time_ps);
            break;
        case 2:
            queue.cells[cell].timer_ps = POD_TIME_NEVER;
            queue.cells[cell].latest_ps = POD_TIME_NEVER;
            break;
        default:
            break;
        }
        pod_time_ps least_ps = POD_TIME_NEVER;
        for (int i = 0; i < npending; i++) {
            least_ps = pending[i] < least_ps ? pending[i] : least_ps;
        }
        for (int32_t i = 0; i < CELLS; i++) {
            least_ps = queue.cells[i].timer_ps < least_ps ? queue.cells[i].timer_ps : least_ps;
        }
        uint64_t expected =
            least_ps == POD_TIME_NEVER ? POD_TICK_NEVER : (uint64_t)least_ps >> SHIFT;
        cr_assert_eq(pod_queue_first(&queue), expected);
        if (expected == POD_TICK_NEVER || pod_rng_below(1, 0, draws++, 3) != 0) {
            continue;
        }
        int64_t count = 0;
        (void)take_first(&count);
        now_ps = (pod_time_ps)((expected + 1) << SHIFT);
        int kept = 0;
        for (int i = 0; i < npending; i++) {
            if (pending[i] >= now_ps) {
                pending[kept++] = pending[i];
            }
        }
        cr_assert_eq(npending - kept, count);
        npending = kept;
        for (int32_t i = 0; i < CELLS; i++) {
            bool due = queue.cells[i].timer_ps < now_ps;
            cr_assert(!due || take_timer(i));
            queue.cells[i].timer_ps = due ? POD_TIME_NEVER : queue.cells[i].timer_ps;
            queue.cells[i].latest_ps = queue.cells[i].timer_ps;
        }
    }
}

Test(queue, releases_what_is_left)
{
    pod_payload *payload = pod_payload_new(10);
    uint32_t node = pod_queue_node(&queue);
    *pod_pool_event(&queue.pool, node) =
        (pod_event){.time_ps = 99, .payload = pod_payload_retain(payload)};
    pod_queue_add(&queue, 99, 0, node);
    pod_queue_fini(&queue);
    cr_assert_eq(payload->references, 1);
    pod_payload_release(payload);
    setup();
}
