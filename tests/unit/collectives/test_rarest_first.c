/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/spread.h"
#include "fixture.h"

#include "../sample.h"

Test(collectives_rarest_first, brings_every_chunk_to_every_chip_of_every_shape)
{
    fixture_prove_chunks("rarest_first", POD_BROADCAST);
}

Test(collectives_rarest_first, sends_every_element_once_to_every_chip)
{
    static const shape torus = {
        {3,  6, 1},
        "xy", false, 3, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &torus, POD_BROADCAST, 100003);
    pod_coll_schedule *schedule;
    pod_coll_counts counts;
    cr_assert(fixture_find("rarest_first")->build(&f.request, &schedule, NULL) == POD_OK);
    cr_assert(pod_coll_count(schedule, &counts, NULL) == POD_OK);
    cr_assert_eq(counts.elements, 17 * f.request.elements);
    cr_assert_eq(counts.messages, INT64_C(17) * schedule->parts[0].blocks);
    pod_coll_schedule_free(schedule);
    fixture_fini(&f);
}

/* What trees that don't know the clock reach at middle sizes: a third more. */
Test(collectives_rarest_first, comes_within_a_tenth_of_links_and_hops)
{
    static const struct {
        shape on;
        int links; /* of the root */
        int hops;  /* to the farthest chip, and a step aside */
    } cases[] = {
        {{{3, 6, 1}, "xy", false, 3, 0, {{0}}},  4, 5 },
        {{{8, 6, 1}, "y", false, 3, 0, {{0}}},   3, 11},
        {{{5, 5, 2}, "xyz", false, 7, 0, {{0}}}, 6, 6 },
        {{{4, 4, 4}, "xyz", false, 7, 0, {{0}}}, 6, 7 },
        {{{8, 8, 1}, "", false, 3, 0, {{0}}},    2, 14},
        {{{16, 1, 1}, "", false, 1, 0, {{0}}},   1, 15},
        {{{16, 1, 1}, "x", false, 1, 0, {{0}}},  2, 9 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        for (int64_t elements = 1 << 10; elements <= 1 << 20; elements *= 4) {
            fixture f;
            fixture_init(&f, &cases[i].on, POD_BROADCAST, elements);
            const double vector_us = 1e6 * 2.0 * (double)elements / 45e9;
            const double least_us = vector_us / cases[i].links + cases[i].hops;
            const double us = pod_time_to_us(fixture_predicted_ps(&f, "rarest_first"));
            cr_assert_leq(us, 1.1 * least_us, "%s: %g us, %g", f.name, us, least_us);
            fixture_fini(&f);
        }
    }
}

/* The death of a cable, or its slowness, leaves a choice of what the healthy slice had. */
Test(collectives_rarest_first, gains_nothing_by_a_worse_cable)
{
    static const shape shapes[] = {
        {{3, 6, 1}, "xy", false, 3, 0, {{0}}},
        {{4, 4, 1}, "",   false, 3, 0, {{0}}},
        {{8, 1, 1}, "x",  false, 1, 0, {{0}}},
        {{2, 3, 1}, "xy", false, 3, 0, {{0}}},
    };
    static const double slowness[] = {0.0, 1.5, 2.0, 10.0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        fixture f;
        fixture_init(&f, &shapes[i], POD_BROADCAST, 100000);
        const pod_time_ps healthy_ps = fixture_predicted_ps(&f, "rarest_first");
        for (int32_t chip = 0; chip < f.slice.nchips; ++chip) {
            for (int axis = 0; axis < 2; ++axis) {
                if (pod_slice_neighbor(&f.slice, chip, 2 * axis) < 0) {
                    continue;
                }
                for (size_t s = 0; s < sizeof slowness / sizeof *slowness; ++s) {
                    f.slice.nfaults = 1;
                    f.slice.faults[0] = (pod_fault){.kind = slowness[s] > 0.0 ? POD_FAULT_LINK_SLOW
                                                                              : POD_FAULT_LINK_DEAD,
                                                    .chip = chip,
                                                    .direction = 2 * axis,
                                                    .factor = slowness[s]};
                    const pod_time_ps worse_ps = fixture_predicted_ps(&f, "rarest_first");
                    cr_assert_geq(1.002 * (double)worse_ps, (double)healthy_ps, "%s", f.name);
                }
            }
        }
        fixture_fini(&f);
    }
}

/* A ring of four, a chunk takes 1 and a hop nothing: both chips beside the root begin at once, and pass on what has
 * come. */
Test(collectives_rarest_first, keeps_every_link_busy_round_a_ring)
{
    static const shape ring = {
        {4,  1, 1},
        "x", false, 1, 0, {{0}}
    };
    static const int wanted[12][4] = {
  /* time, rank, minus, chunk */
        {0, 0, 0, 0},
        {0, 0, 1, 1},
        {1, 0, 0, 2},
        {1, 1, 0, 0},
        {1, 0, 1, 3},
        {1, 3, 1, 1},
        {2, 0, 0, 3},
        {2, 1, 0, 2},
        {2, 2, 0, 0},
        {2, 0, 1, 2},
        {2, 3, 1, 3},
        {2, 2, 1, 1}
    };
    fixture f;
    fixture_init(&f, &ring, POD_BROADCAST, 4);
    pod_coll_axes axes;
    cr_assert(pod_coll_axes_init(&axes, &f.request, NULL) == POD_OK);
    const pod_spread_args args = {.axes = &axes, .chunks = 4, .chunk_ps = 1};
    pod_spread spread;
    cr_assert(pod_spread_grow(&spread, &args, NULL) == POD_OK);
    cr_assert_eq(spread.count, 12);
    cr_assert_eq(spread.end_ps, 3);
    for (int i = 0; i < spread.count; ++i) {
        const pod_spread_message *message = &spread.message[i];
        const int sent[] = {(int)message->start_ps, message->link / 2, message->link % 2,
                            message->chunk};
        cr_assert_arr_eq(sent, wanted[i], sizeof sent, "message %d", i);
    }
    pod_spread_fini(&spread);
    pod_coll_axes_fini(&axes);
    fixture_fini(&f);
}
