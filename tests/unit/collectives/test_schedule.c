/* SPDX-License-Identifier: Apache-2.0 */
/* Where slots lie in work buffers, what frames and turns begin as: by hand. */
#include "collectives/schedule/frame.h"
#include "collectives/schedule/turns.h"

#include <criterion/criterion.h>

typedef struct bench {
    pod_slice slice;
    pod_group group;
    pod_coll_schedule_ops ops;
    pod_coll_part parts[2];
    pod_coll_channel channels[2];
    pod_coll_schedule schedule;
} bench;

static void bench_slice(bench *b, int32_t x, int32_t y, bool closed_x)
{
    const int32_t dims[POD_AXES] = {x, y, 1};
    const bool wrap[POD_AXES] = {closed_x, false, false};
    *b = (bench){.ops = {.steps = NULL}};
    cr_assert_eq(pod_slice_make("v4", 3, dims, wrap, false, &b->slice, NULL), POD_OK);
}

/* One part over four chips in a line. */
static void bench_init(bench *b, pod_coll_op op, int64_t elements, int32_t blocks, int32_t slots)
{
    bench_slice(b, 4, 1, false);
    cr_assert_eq(pod_group_init_axes(&b->group, &b->slice, 1, NULL), POD_OK);
    b->parts[0] = (pod_coll_part){.elements = elements, .blocks = blocks, .slots = slots};
    b->schedule = (pod_coll_schedule){.ops = &b->ops,
                                      .op = op,
                                      .group = &b->group,
                                      .elements = elements,
                                      .nparts = 1,
                                      .parts = b->parts,
                                      .nchannels = 1,
                                      .channels = b->channels};
}

static void check_slots(const bench *b, int32_t rank, int32_t slot, int32_t slots, int64_t offset,
                        int64_t elements)
{
    int64_t got_offset = -1;
    int64_t got = -1;
    pod_coll_slots(&b->schedule, rank, 0, slot, slots, &got_offset, &got);
    cr_expect_eq(got_offset, offset, "rank %d, slot %d: %lld", (int)rank, (int)slot,
                 (long long)got_offset);
    cr_expect_eq(got, elements, "rank %d, slot %d: %lld elements", (int)rank, (int)slot,
                 (long long)got);
}

/* 10 elements in blocks of 3, 3, 2, 2; scratch slots have the sizes of the blocks again. */
Test(schedule, slots_have_the_sizes_of_blocks)
{
    bench b;
    bench_init(&b, POD_ALL_REDUCE, 10, 4, 9);
    check_slots(&b, 0, 0, 1, 0, 3);
    check_slots(&b, 0, 1, 2, 3, 5);
    check_slots(&b, 3, 2, 2, 6, 4);
    check_slots(&b, 0, 4, 1, 10, 3);
    check_slots(&b, 0, 7, 2, 18, 2 + 3);
    cr_expect_eq(pod_coll_work_elements(&b.schedule, 0, 0), 23);
    cr_expect_eq(pod_coll_own_slots(&b.schedule, 0), 1);
    cr_expect_eq(pod_coll_own_slot(&b.schedule, 0, 3), 3);
    pod_group_fini(&b.group);
}

/* What an all-to-all brings to a rank has the size of that rank's block: 3 for rank 1, 2 for rank 2. */
Test(schedule, what_is_brought_has_the_size_of_the_own_block)
{
    bench b;
    bench_init(&b, POD_ALL_TO_ALL, 10, 4, 10);
    check_slots(&b, 1, 3, 1, 8, 2);
    check_slots(&b, 1, 4, 1, 10, 3);
    check_slots(&b, 1, 7, 1, 19, 3);
    check_slots(&b, 1, 8, 1, 22, 3);
    check_slots(&b, 2, 5, 2, 12, 4);
    check_slots(&b, 2, 8, 2, 18, 6);
    pod_group_fini(&b.group);
    /* in two pieces each: blocks of 2, 2 and six of 1 */
    bench_init(&b, POD_ALL_TO_ALL, 10, 8, 17);
    cr_expect_eq(pod_coll_own_slots(&b.schedule, 0), 2);
    cr_expect_eq(pod_coll_own_slot(&b.schedule, 0, 3), 6);
    check_slots(&b, 0, 8, 1, 10, 2);
    check_slots(&b, 0, 10, 2, 14, 4);
    check_slots(&b, 1, 9, 1, 11, 1);
    check_slots(&b, 1, 16, 1, 18, 2);
    pod_group_fini(&b.group);
}

Test(schedule, own_blocks_come_in_pieces_where_each_rank_has_one)
{
    static const pod_coll_op ops[] = {POD_ALL_GATHER, POD_REDUCE_SCATTER, POD_ALL_TO_ALL};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        bench b;
        bench_init(&b, ops[i], 24, 12, 24);
        cr_expect_eq(pod_coll_own_slots(&b.schedule, 0), 3);
        pod_group_fini(&b.group);
    }
    bench b;
    bench_init(&b, POD_BROADCAST, 24, 12, 24);
    cr_expect_eq(pod_coll_own_slots(&b.schedule, 0), 1);
    pod_group_fini(&b.group);
}

/* Slots 0 and 2 of blocks of 3, 3, 2, 2 are 5 elements, 0 and 1 are 6. */
Test(schedule, gaps_are_not_sent)
{
    bench b;
    bench_init(&b, POD_ALL_REDUCE, 10, 4, 4);
    pod_coll_step step = {.send_slots = 2};
    cr_expect_eq(pod_coll_send_elements(&b.schedule, 0, 0, &step), 6);
    step.send_gap = 1;
    cr_expect_eq(pod_coll_send_elements(&b.schedule, 0, 0, &step), 5);
    step.send_gap = 2;
    cr_expect_eq(pod_coll_send_elements(&b.schedule, 0, 0, &step), 5, "slots 0 and 3");
    pod_group_fini(&b.group);
    bench_init(&b, POD_ALL_REDUCE, 12, 4, 4);
    cr_expect_eq(pod_coll_send_elements(&b.schedule, 0, 0, &step), 6);
    pod_group_fini(&b.group);
}

Test(schedule, parts_are_equal_if_all_their_blocks_are)
{
    static const int64_t elements[][2] = {
        {12, 8 },
        {10, 8 },
        {12, 10}
    };
    for (int i = 0; i < 3; i++) {
        bench b;
        bench_init(&b, POD_ALL_REDUCE, 12, 4, 4);
        b.schedule.nparts = 2;
        for (int p = 0; p < 2; p++) {
            b.parts[p] = (pod_coll_part){.elements = elements[i][p], .blocks = 4, .slots = 4};
        }
        cr_expect_eq(pod_coll_parts_equal(&b.schedule), i == 0);
        pod_group_fini(&b.group);
    }
}

/* Every second chip of eight: places repeat after all eight. Nothing is known of lists; a chip alone is like all. */
Test(schedule, places_repeat_after_the_widest_dim)
{
    static const pod_group_dim dims[] = {
        {.axis = 0, .size = 4, .stride = 2},
        {.axis = 1, .size = 2, .stride = 1}
    };
    static const int32_t pairs[] = {0, 5, 1, 6, 2, 7, 3, 4, 8, 13, 9, 14, 10, 15, 11, 12};
    bench b;
    bench_init(&b, POD_ALL_REDUCE, 12, 4, 4);
    pod_group_fini(&b.group);
    bench_slice(&b, 8, 2, true);
    b.schedule.group = &b.group;
    cr_assert_eq(pod_group_init_dims(&b.group, &b.slice, dims, 2, NULL), POD_OK);
    cr_expect_eq(pod_coll_repeat(&b.schedule, 0), 8);
    cr_expect_eq(pod_coll_repeat(&b.schedule, 1), 2);
    cr_expect_eq(pod_coll_repeat(&b.schedule, 2), 1);
    b.schedule.repeat[0] = 1;
    cr_expect_eq(pod_coll_repeat(&b.schedule, 0), 1, "its construction says so");
    b.schedule.repeat[0] = 0;
    pod_group_fini(&b.group);
    cr_assert_eq(pod_group_init_lists(&b.group, &b.slice, pairs, 8, 2, NULL), POD_OK);
    cr_expect_eq(pod_coll_repeat(&b.schedule, 0), 0);
    pod_group_fini(&b.group);
    cr_assert_eq(pod_group_init_axes(&b.group, &b.slice, 0, NULL), POD_OK);
    cr_expect_eq(pod_coll_repeat(&b.schedule, 0), 1);
    pod_group_fini(&b.group);
}

/* ---- frames ---- */

static void frame_init(bench *b, bool equal_blocks, int32_t nparts, int32_t nchannels)
{
    const pod_coll_request request = {.op = POD_ALL_REDUCE,
                                      .slice = &b->slice,
                                      .group = &b->group,
                                      .elements = 40,
                                      .equal_blocks = equal_blocks};
    cr_assert_eq(
        pod_coll_frame_init(&b->schedule, &b->ops, "frame", &request, nparts, nchannels, NULL),
        POD_OK);
}

/* 40 elements in three parts: 14, 13, 13; in units of four chips 16, 12, 12. */
Test(schedule, a_frame_cuts_the_vector_into_parts)
{
    bench b;
    bench_slice(&b, 4, 3, true);
    cr_assert_eq(pod_group_init_axes(&b.group, &b.slice, 1, NULL), POD_OK);
    for (int equal = 0; equal < 2; equal++) {
        frame_init(&b, equal, 3, 4);
        for (int p = 0; p < 3; p++) {
            const int64_t longer = equal ? 16 : 14;
            cr_expect_eq(b.schedule.parts[p].elements, p == 0 ? longer : equal ? 12 : 13);
            cr_expect(b.schedule.parts[p].blocks == 1 && b.schedule.parts[p].slots == 1);
        }
        for (int32_t c = 0; c < 4; c++) {
            cr_expect_eq(b.schedule.channels[c].part, c % 3);
        }
        pod_coll_frame_slots(&b.schedule, 4, 9);
        for (int p = 0; p < 3; p++) {
            cr_expect(b.schedule.parts[p].blocks == 4 && b.schedule.parts[p].slots == 9);
        }
        pod_coll_frame_fini(&b.schedule);
    }
    pod_group_fini(&b.group);
}

/* Round a ring every chip is the same, along a line each differs; nothing is said where blocks or links differ. */
Test(schedule, a_frame_repeats_where_axes_close)
{
    bench b;
    bench_slice(&b, 4, 3, true);
    cr_assert_eq(pod_group_init_axes(&b.group, &b.slice, 3, NULL), POD_OK);
    frame_init(&b, false, 1, 1);
    pod_coll_frame_slots(&b.schedule, 4, 4);
    pod_coll_frame_repeat(&b.schedule, &b.slice);
    cr_expect(b.schedule.repeat[0] == 1 && b.schedule.repeat[1] == 3 && b.schedule.repeat[2] == 1);
    pod_coll_frame_slots(&b.schedule, 3, 3);
    pod_coll_frame_repeat(&b.schedule, &b.slice);
    cr_expect(b.schedule.repeat[0] == 0 && b.schedule.repeat[1] == 0, "40 in 3 blocks");
    pod_coll_frame_slots(&b.schedule, 4, 4);
    cr_assert_eq(pod_slice_fault_insert(&b.slice, POD_FAULT_LINK_SLOW, 0, 0, 2, NULL), POD_OK);
    pod_coll_frame_repeat(&b.schedule, &b.slice);
    cr_expect(b.schedule.repeat[0] == 0 && b.schedule.repeat[1] == 0, "a slow link");
    pod_coll_frame_fini(&b.schedule);
    pod_group_fini(&b.group);
    /* as many dims as there can be: half of a ring of 16, and a line of eight */
    pod_group_dim dims[POD_GROUP_DIMS_MAX];
    for (int d = 0; d < POD_GROUP_DIMS_MAX; d++) {
        dims[d] = (pod_group_dim){.axis = d / 3, .size = 2, .stride = 1 << d % 3};
    }
    bench_slice(&b, 16, 8, true);
    cr_assert_eq(pod_group_init_dims(&b.group, &b.slice, dims, POD_GROUP_DIMS_MAX, NULL), POD_OK);
    frame_init(&b, true, 1, 1);
    pod_coll_frame_repeat(&b.schedule, &b.slice);
    cr_expect_eq(b.schedule.repeat[0], 8);
    cr_expect_eq(b.schedule.repeat[1], 8);
    pod_coll_frame_fini(&b.schedule);
    pod_group_fini(&b.group);
}

/* On 4x3 rank 5 is (1, 1), 6 is (2, 1): one way (3, 2), the other (3, 0). Lists count round. */
Test(schedule, ranks_are_displaced_round_each_dim)
{
    static const int32_t list[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    bench b;
    bench_slice(&b, 4, 3, true);
    cr_assert_eq(pod_group_init_axes(&b.group, &b.slice, 3, NULL), POD_OK);
    cr_expect_eq(pod_coll_displaced(&b.group, 5, 6, 1), 11);
    cr_expect_eq(pod_coll_displaced(&b.group, 5, 6, -1), 3);
    cr_expect_eq(pod_coll_displaced(&b.group, 5, 0, 1), 5);
    pod_group_fini(&b.group);
    cr_assert_eq(pod_group_init_lists(&b.group, &b.slice, list, 1, 12, NULL), POD_OK);
    cr_expect_eq(pod_coll_displaced(&b.group, 1, 2, -1), 11);
    cr_expect_eq(pod_coll_displaced(&b.group, 11, 2, 1), 1);
    pod_group_fini(&b.group);
}

/* 2 channels of 3 and 2 steps on four chips are 20 turns, none of them taken; one more than may be is refused. */
Test(schedule, turns_are_as_many_as_steps)
{
    bench b;
    pod_coll_turns turns;
    bench_init(&b, POD_ALL_REDUCE, 12, 4, 4);
    b.schedule.nchannels = 2;
    b.channels[0].max_steps = 3;
    b.channels[1].max_steps = 2;
    cr_expect_not(pod_coll_turns_init(&turns, &b.schedule, 19));
    pod_coll_turns_fini(&turns);
    cr_assert(pod_coll_turns_init(&turns, &b.schedule, 20));
    for (int32_t rank = 0; rank < 4; rank++) {
        for (int32_t c = 0; c < 2; c++) {
            for (int32_t s = 0; s < b.channels[c].max_steps; s++) {
                cr_expect_eq(*pod_coll_turn_at(&turns, rank, c, s), -1);
                *pod_coll_turn_at(&turns, rank, c, s) = 0;
            }
        }
    }
    pod_coll_turns_fini(&turns);
    pod_group_fini(&b.group);
}
