/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/timetable.h"
#include "fixture.h"

#include "../sample.h"

Test(collectives_timetable, sums_every_chunk_on_every_chip_of_every_shape)
{
    fixture_prove_chunks("timetable", POD_ALL_REDUCE);
}

Test(collectives_timetable, takes_every_element_up_and_down_once)
{
    static const shape grid = {
        {3,  6, 1},
        "x", false, 3, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &grid, POD_ALL_REDUCE, 100003);
    pod_coll_schedule *schedule;
    pod_coll_counts counts;
    cr_assert(fixture_find("timetable")->build(&f.request, &schedule, NULL) == POD_OK);
    cr_assert(pod_coll_count(schedule, &counts, NULL) == POD_OK);
    cr_assert_eq(counts.elements, 2 * 17 * f.request.elements);
    cr_assert_eq(counts.messages, INT64_C(2) * 17 * schedule->parts[0].blocks);
    pod_coll_schedule_free(schedule);
    fixture_fini(&f);
}

/* The example of the file: a root in the middle, one chunk a slot. */
Test(collectives_timetable, has_a_slot_up_and_one_down_for_every_chunk)
{
    static const shape row = {
        {3,  1, 1},
        "", false, 1, 0, {{0}}
    };
    static const int wanted[8][4] = {
  /* slot, rank, minus, chunk */
        {0, 0, 0, 0},
        {0, 2, 1, 0},
        {1, 1, 0, 0},
        {1, 1, 1, 0},
        {1, 0, 0, 1},
        {1, 2, 1, 1},
        {2, 1, 0, 1},
        {2, 1, 1, 1}
    };
    fixture f;
    fixture_init(&f, &row, POD_ALL_REDUCE, 2);
    pod_coll_axes axes;
    cr_assert(pod_coll_axes_init(&axes, &f.request, NULL) == POD_OK);
    const pod_timetable_args args = {
        .axes = &axes, .left_out = -1, .chunks = 2, .roots = 1, .chunk_ps = 1};
    pod_timetable table;
    bool found;
    cr_assert(pod_timetable_make(&table, &args, &found, NULL) == POD_OK);
    cr_assert(found);
    cr_assert_eq(table.count, 8);
    cr_assert_eq(table.end_ps, 3);
    int sums = 0;
    for (int i = 0; i < 8; ++i) {
        bool is_there = false;
        for (int m = 0; m < table.count; ++m) {
            const pod_timetable_message *message = &table.message[m];
            const int sent[] = {message->slot - table.message[0].slot, message->link / 2,
                                message->link % 2, message->chunk};
            is_there = is_there || memcmp(sent, wanted[i], sizeof sent) == 0;
        }
        sums += table.message[i].sums ? 1 : 0;
        cr_assert(is_there, "message %d", i);
    }
    cr_assert_eq(sums, 4);
    pod_timetable_fini(&table);
    pod_coll_axes_fini(&axes);
    fixture_fini(&f);
}

/* Where hops count as much as bytes, packed trees take up to a fifth longer. */
Test(collectives_timetable, comes_close_to_links_and_hops_on_open_axes)
{
    static const struct {
        shape on;
        double share; /* of the vector over the busiest cable at least */
        int hops;     /* to the middle and back */
    } cases[] = {
        {{{7, 5, 1}, "x", false, 3, 0, {{0}}}, 34.0 / 63,  10},
        {{{8, 7, 1}, "x", false, 3, 0, {{0}}}, 55.0 / 104, 14},
        {{{3, 4, 1}, "", false, 3, 0, {{0}}},  11.0 / 17,  6 },
        {{{8, 8, 1}, "", false, 3, 0, {{0}}},  63.0 / 112, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        for (int64_t elements = 1 << 12; elements <= 1 << 17; elements *= 4) {
            fixture f;
            fixture_init(&f, &cases[i].on, POD_ALL_REDUCE, elements);
            const double vector_us = 1e6 * 2.0 * (double)elements / 45e9;
            const double least_us = vector_us * cases[i].share + cases[i].hops;
            const double us = pod_time_to_us(fixture_predicted_ps(&f, "timetable"));
            cr_assert_leq(us, 1.2 * least_us, "%s: %g us, %g", f.name, us, least_us);
            fixture_fini(&f);
        }
    }
}

/* Slow cables are planned for as others or as they are: so none helps by more than dice do, and one that hardly works
 * is left to few chunks. */
Test(collectives_timetable, knows_slow_cables)
{
    static const shape grid = {
        {4,  4, 1},
        "", false, 3, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &grid, POD_ALL_REDUCE, 100000);
    const double healthy_ps = (double)fixture_predicted_ps(&f, "timetable");
    for (int axis = 0; axis < 2; ++axis) {
        f.slice.nfaults = 1;
        f.slice.faults[0] = (pod_fault){
            .kind = POD_FAULT_LINK_SLOW, .chip = 5, .direction = 2 * axis, .factor = 10.0};
        const double slow_ps = (double)fixture_predicted_ps(&f, "timetable");
        cr_assert_gt(slow_ps, 0.98 * healthy_ps);
        cr_assert_lt(slow_ps, 1.2 * healthy_ps); /* over the cable as before it were 3 times */
    }
    fixture_fini(&f);
}
