/* SPDX-License-Identifier: Apache-2.0 */
/* Where groups lie, which links are theirs and how far apart their ranks are: against pair by pair, and by hand. */
#include "fixture.h"

#include "collectives/bounds/span.h"

#include <stdlib.h>

typedef struct spanned {
    fixture f;
    pod_router *router;
    pod_span span;
    pod_span_distances distances;
} spanned;

static void spanned_open(spanned *s)
{
    cr_assert_eq(pod_router_new(&s->f.slice, &s->router, &s->f.err), POD_OK);
    cr_assert_eq(pod_span_init(&s->span, &s->f.request, s->router, &s->f.err), POD_OK);
    cr_assert_eq(pod_span_distances_init(&s->distances, &s->span, &s->f.err), POD_OK);
}

static void spanned_close(spanned *s)
{
    pod_span_distances_fini(&s->distances);
    pod_span_fini(&s->span);
    pod_router_free(s->router);
    fixture_fini(&s->f);
}

static void spanned_init(spanned *s, const shape *where)
{
    fixture_init(&s->f, where, POD_ALL_GATHER, 1000);
    spanned_open(s);
}

/* The groups are those of lists. */
static void spanned_lists(spanned *s, const shape *where, const int32_t *chips, int32_t count,
                          int32_t size)
{
    fixture_init(&s->f, where, POD_ALL_GATHER, 1000);
    pod_group_fini(&s->f.group);
    cr_assert_eq(pod_group_init_lists(&s->f.group, &s->f.slice, chips, count, size, &s->f.err),
                 POD_OK);
    spanned_open(s);
}

static void check_distances(spanned *s, int32_t number)
{
    const pod_group *g = &s->f.group;
    const int32_t *chips = &g->chip_of[number * g->size];
    int32_t closest = INT32_MAX;
    int32_t farthest = 0;
    int32_t radius = INT32_MAX;
    pod_span_measure(&s->span, number, &s->distances);
    for (int32_t r = 0; r < g->size; r++) {
        int32_t ecc = 0;
        double sum = 0;
        for (int32_t other = 0; other < g->size; other++) {
            const int32_t hops = pod_router_hops(s->router, chips[r], chips[other]);
            sum += hops;
            ecc = hops > ecc ? hops : ecc;
            closest = other != r && hops < closest ? hops : closest;
        }
        cr_expect_eq(s->distances.ecc_hops[r], ecc, "%s: rank %d", s->f.name, (int)r);
        cr_expect_eq(s->distances.sum_hops[r], sum, "%s: rank %d", s->f.name, (int)r);
        farthest = ecc > farthest ? ecc : farthest;
        radius = ecc < radius ? ecc : radius;
    }
    if (g->size > 1) {
        cr_expect_eq(s->distances.closest_hops, closest, "%s", s->f.name);
    }
    cr_expect_eq(s->distances.farthest_hops, farthest, "%s", s->f.name);
    cr_expect_eq(s->distances.radius_hops, radius, "%s", s->f.name);
}

/* All boxes are equal, and each group is in one; of a group of the whole slice all links count. */
static void check_boxes(const spanned *s)
{
    const pod_slice *slice = &s->f.slice;
    const pod_group *g = &s->f.group;
    double links = 0;
    for (int32_t number = 0; number < g->count; number++) {
        for (int32_t r = 0; r < g->size; r++) {
            cr_expect_eq(s->span.box_of[g->chip_of[number * g->size + r]],
                         pod_span_box(&s->span, number), "%s", s->f.name);
        }
    }
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        int32_t in_box = 0;
        cr_assert(s->span.box_of[chip] >= 0 && s->span.box_of[chip] < s->span.nboxes);
        for (int32_t other = 0; other < slice->nchips; other++) {
            in_box += s->span.box_of[other] == s->span.box_of[chip];
        }
        cr_expect_eq(in_box, slice->nchips / s->span.nboxes, "%s", s->f.name);
        const int live = pod_slice_chip_links(slice, chip);
        links += live;
        cr_expect(s->span.chip_links[chip] == live
                      || (s->span.nboxes > 1 && s->span.chip_links[chip] < live),
                  "%s: chip %d has %f links", s->f.name, (int)chip, s->span.chip_links[chip]);
    }
    cr_expect_eq(s->span.all_links, links, "%s", s->f.name);
    cr_expect_eq(s->span.all_links, 2.0 * (double)pod_slice_cables(slice), "%s", s->f.name);
}

Test(span, distances_are_those_of_all_pairs)
{
    for (int i = 0; i < ALL_SHAPES; i++) {
        spanned s;
        spanned_init(&s, &all_shapes[i]);
        check_boxes(&s);
        for (int32_t number = 0; number < s.f.group.count; number++) {
            check_distances(&s, number);
        }
        spanned_close(&s);
    }
}

/* Pairs of chips 3 apart on an open line of 6 are in one box of 6; neighbours in three boxes of two, whose links
 * are 2 of the line's 10. */
Test(span, lists_lie_in_the_least_blocks)
{
    static const shape line = {
        {6,  1, 1},
        "", false, 7, 0, {{0}}
    };
    static const int32_t far[] = {0, 3, 1, 4, 2, 5};
    static const int32_t close[] = {0, 1, 2, 3, 4, 5};
    spanned s;
    spanned_lists(&s, &line, far, 3, 2);
    cr_expect_eq(s.span.extent[0], 6);
    cr_expect_eq(s.span.nboxes, 1);
    check_boxes(&s);
    check_distances(&s, 1);
    int32_t period[POD_AXES];
    cr_expect_not(pod_span_periods(&s.span, period), "nothing is known of lists");
    cr_expect_eq(period[0], 6);
    spanned_close(&s);
    spanned_lists(&s, &line, close, 3, 2);
    cr_expect_eq(s.span.extent[0], 2);
    cr_expect_eq(s.span.nboxes, 3);
    check_boxes(&s);
    check_distances(&s, 2);
    for (int32_t box = 0; box < 3; box++) {
        cr_expect_eq(s.span.box_links[box], 2);
    }
    cr_expect_eq(s.span.all_links, 10);
    cr_expect_eq(s.span.chip_links[2], 1, "the link to its other neighbour is outside");
    spanned_close(&s);
    static const int32_t threes[] = {0, 1, 2, 3, 4, 5};
    spanned_lists(&s, &line, threes, 2, 3);
    cr_expect_eq(s.span.extent[0], 3);
    spanned_close(&s);
    /* the last of three is in another block of two */
    static const int32_t odd[] = {0, 1, 4, 2, 3, 5};
    spanned_lists(&s, &line, odd, 2, 3);
    cr_expect_eq(s.span.extent[0], 6);
    spanned_close(&s);
}

static void check_periods(const shape *where, int32_t x, int32_t y)
{
    spanned s;
    int32_t period[POD_AXES];
    spanned_init(&s, where);
    const bool even = pod_span_periods(&s.span, period);
    cr_expect_eq(period[0], x, "%s: %d", s.f.name, (int)period[0]);
    cr_expect_eq(period[1], y, "%s: %d", s.f.name, (int)period[1]);
    cr_expect_eq(period[2], 1, "%s: %d", s.f.name, (int)period[2]);
    cr_expect_eq(even, x == 1 && y == 1, "%s", s.f.name);
    spanned_close(&s);
}

/* All the way round a ring, every second of it, two chips: translations. A half of a ring, a line: places. */
Test(span, periods_are_one_where_chips_are_translations)
{
    static const struct {
        shape where;
        int32_t x, y;
    } cases[] = {
        {{{4, 3, 1}, "x", false, 1, 0, {{0}}},              1, 1},
        {{{4, 3, 1}, "x", false, 3, 0, {{0}}},              1, 3},
        {{{4, 3, 1}, "", false, 1, 0, {{0}}},               4, 1},
        {{{2, 3, 1}, "", false, 1, 0, {{0}}},               1, 1},
        {{{8, 2, 1}, "x", false, 0, 1, {{0, 4, 2, false}}}, 1, 1},
        {{{8, 2, 1}, "x", false, 0, 1, {{0, 4, 1, false}}}, 4, 1},
        {{{8, 2, 1}, "", false, 0, 1, {{0, 4, 2, false}}},  8, 1},
        {{{8, 2, 1}, "x", false, 0, 1, {{0, 2, 4, false}}}, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_periods(&cases[i].where, cases[i].x, cases[i].y);
    }
}

/* Where a link is slow, every chip has a place of its own. */
Test(span, faults_tell_all_chips_apart)
{
    static const shape ring = {
        {4,  2, 1},
        "x", false, 1, 0, {{0}}
    };
    spanned s;
    int32_t period[POD_AXES];
    fixture_init(&s.f, &ring, POD_ALL_GATHER, 1000);
    cr_assert_eq(pod_slice_fault_insert(&s.f.slice, POD_FAULT_LINK_SLOW, 0, 0, 4, &s.f.err),
                 POD_OK);
    cr_assert_eq(pod_slice_fault_insert(&s.f.slice, POD_FAULT_LINK_DEAD, 5, 1, 0, &s.f.err),
                 POD_OK);
    spanned_open(&s);
    cr_expect_not(pod_span_periods(&s.span, period));
    cr_expect(period[0] == 4 && period[1] == 2 && period[2] == 1);
    cr_expect_eq(pod_span_part(&s.span, 0, 0), 0.25);
    cr_expect_eq(pod_span_part(&s.span, 0, 1), 1);
    cr_expect_eq(pod_span_part(&s.span, 5, 1), 0, "dead");
    cr_expect_eq(pod_span_part(&s.span, 4, 0), 0, "its other end");
    cr_expect_eq(pod_span_part(&s.span, 0, 4), 0, "no link");
    cr_expect(s.span.closed_in[0], "a slow link keeps its messages");
    cr_expect_not(s.span.closed_in[1], "those of a dead one go through the other ring");
    cr_expect_eq(s.span.chip_links[0], 1.25);
    cr_expect_eq(s.span.chip_links[4], 2, "one of its ring, one to the other");
    cr_expect(s.span.searched);
    check_distances(&s, 1);
    spanned_close(&s);
}

/* More ranks than are measured pair by pair: estimates from below. A twisted slice with a dead cable; a plain
 * slice's sums are exact all the same. */
Test(span, of_many_ranks_distances_are_not_too_long)
{
    static const shape many[] = {
        {{8, 8, 16},   "xyz", true,  7, 0, {{0}}},
        {{12, 12, 12}, "xyz", false, 7, 0, {{0}}},
        {{12, 12, 24}, "xyz", true,  7, 0, {{0}}},
    };
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        for (int broken = 0; broken < 2; broken++) {
            spanned s;
            fixture_init(&s.f, &many[i], POD_ALL_GATHER, 1000);
            if (broken) {
                cr_assert_eq(
                    pod_slice_fault_insert(&s.f.slice, POD_FAULT_LINK_DEAD, 9, 0, 0, &s.f.err),
                    POD_OK);
            }
            spanned_open(&s);
            pod_span_measure(&s.span, 0, &s.distances);
            cr_expect_eq(s.distances.closest_hops, 1);
            int32_t farthest = 0;
            for (int32_t r = 0; r < s.f.group.size; r += 97) {
                int32_t ecc = 0;
                double sum = 0;
                for (int32_t other = 0; other < s.f.group.size; other++) {
                    const int32_t hops = pod_router_hops(s.router, r, other);
                    sum += hops;
                    ecc = hops > ecc ? hops : ecc;
                }
                cr_expect_leq(s.distances.ecc_hops[r], ecc, "%s: rank %d", s.f.name, (int)r);
                cr_expect_leq(s.distances.sum_hops[r], sum, "%s: rank %d", s.f.name, (int)r);
                cr_expect_geq(s.distances.sum_hops[r], s.f.group.size - 1);
                if (broken && many[i].twisted && s.f.group.size > POD_SPAN_SEARCH_MAX) {
                    cr_expect_eq(s.distances.sum_hops[r], s.f.group.size - 1, "a hop to each");
                }
                if (!broken) {
                    cr_expect_eq(s.distances.ecc_hops[r], ecc, "%s: each is as far", s.f.name);
                    cr_expect_eq(s.distances.sum_hops[r], sum, "%s", s.f.name);
                }
                farthest = ecc > farthest ? ecc : farthest;
            }
            cr_expect_geq(s.distances.farthest_hops, s.distances.radius_hops);
            cr_expect(broken || s.distances.farthest_hops == farthest, "%s", s.f.name);
            spanned_close(&s);
        }
    }
}
