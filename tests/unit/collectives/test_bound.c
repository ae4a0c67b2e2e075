/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds against the closed forms of docs/bounds.md and against brute force over all bipartitions. */
#include "collectives/bounds/bound.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

typedef struct bench {
    pod_slice slice;
    pod_group group;
    pod_router *router;
    pod_coll_request request;
} bench;

static void open_bench(bench *b, const int32_t dims[3], const char *wrap, bool twisted)
{
    const bool closed[3] = {wrap[0] == '1', wrap[1] == '1', wrap[2] == '1'};
    cr_assert(pod_slice_make("v4", 3, dims, closed, twisted, &b->slice, NULL) == POD_OK);
}

static void group_axes(bench *b, unsigned axes)
{
    cr_assert(pod_group_init_axes(&b->group, &b->slice, axes, NULL) == POD_OK);
    cr_assert(pod_router_new(&b->slice, &b->router, NULL) == POD_OK);
    b->request = (pod_coll_request){.slice = &b->slice,
                                    .group = &b->group,
                                    .element_bytes = 1,
                                    .link_rate = pod_rate_make(1e9),
                                    .hop_latency_ps = POD_PS_PER_US};
}

static void close_bench(bench *b)
{
    pod_router_free(b->router);
    pod_group_fini(&b->group);
}

static pod_coll_bound bound_of(bench *b, pod_coll_op op, int64_t elements)
{
    pod_coll_bound bound;
    b->request.op = op;
    b->request.elements = elements;
    cr_assert(pod_coll_bound_get(&b->request, b->router, &bound, NULL) == POD_OK);
    return bound;
}

/* At 1 GB/s and 1 byte per element an element takes 1000 ps: these are elements over b. */
static double link_elements(const pod_coll_bound *bound)
{
    return (double)bound->link_ps / 1000.0;
}

static void near(double got, double want, double frac)
{
    cr_assert(got >= want * (1.0 - frac) && got <= want * (1.0 + 1e-9), "%.9g, expected %.9g", got,
              want);
}

enum { LARGE = 1 << 30 };

Test(bound, of_a_full_torus_is_the_intake_over_all_links)
{
    static const int32_t shapes[][3] = {
        {4, 4, 4 },
        {4, 8, 16},
        {5, 5, 5 },
        {3, 4, 5 }
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        bench b;
        open_bench(&b, shapes[i], "111", false);
        group_axes(&b, 7);
        const double n = (double)b.group.size;
        const double all = (double)LARGE;
        pod_coll_bound got = bound_of(&b, POD_ALL_GATHER, LARGE);
        near(link_elements(&got), (n - 1) / n * all / 6.0, 1e-5);
        got = bound_of(&b, POD_REDUCE_SCATTER, LARGE);
        near(link_elements(&got), (n - 1) / n * all / 6.0, 1e-5);
        got = bound_of(&b, POD_ALL_REDUCE, LARGE);
        near(link_elements(&got), 2.0 * (n - 1) / n * all / 6.0, 1e-8);
        cr_assert(got.limit == POD_LIMIT_LINK && got.time_ps == got.link_ps);
        int64_t diameter = 0;
        for (int a = 0; a < 3; ++a) {
            diameter += shapes[i][a] / 2;
        }
        cr_assert_eq(got.latency_ps, diameter * POD_PS_PER_US);
        close_bench(&b);
    }
}

/* COLLECTIVES.md section 1: S·c/(8·b), c = the largest of k (even) or k - 1/k (odd). */
Test(bound, of_all_to_all_on_a_torus_follows_the_longest_axis)
{
    static const struct {
        int32_t dims[3];
        double eighths;
    } cases[] = {
        {{4, 4, 4},  4.0      },
        {{8, 8, 1},  8.0      },
        {{4, 4, 8},  8.0      },
        {{5, 5, 5},  4.8      },
        {{3, 3, 1},  8.0 / 3.0},
        {{16, 4, 4}, 16.0     }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        bench b;
        open_bench(&b, cases[i].dims, "111", false);
        group_axes(&b, 7);
        const pod_coll_bound got = bound_of(&b, POD_ALL_TO_ALL, LARGE);
        near((double)got.bisection_ps / 1000.0, cases[i].eighths / 8.0 * LARGE, 1e-4);
        cr_assert(got.time_ps >= got.bisection_ps);
        close_bench(&b);
    }
}

/* COLLECTIVES.md section 4: busiest link under minimal multipath = mean hops / 6. */
Test(bound, of_all_to_all_on_twisted_slices_is_mean_hops_over_links)
{
    static const struct {
        int32_t dims[3];
        double share;
        int64_t diameter;
    } cases[] = {
        {{4, 4, 8},  0.5729, 6 },
        {{4, 8, 8},  0.7188, 6 },
        {{8, 8, 16}, 1.1615, 12}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        bench b;
        open_bench(&b, cases[i].dims, "111", true);
        group_axes(&b, 7);
        const pod_coll_bound got = bound_of(&b, POD_ALL_TO_ALL, LARGE);
        const double share = (double)got.hops_ps / 1000.0 / LARGE;
        cr_assert(share > cases[i].share - 6e-4 && share < cases[i].share + 6e-4, "%g", share);
        cr_assert(got.limit == POD_LIMIT_HOPS);
        cr_assert_eq(got.latency_ps, cases[i].diameter * POD_PS_PER_US);
        close_bench(&b);
    }
}

/* MODEL.md: S/b · max((N-1)/E, 1/p) on open slices; the degree bound for the gathers. */
Test(bound, of_open_meshes_takes_the_corners_and_the_cables)
{
    static const struct {
        int32_t dims[3];
        double cables;
        double corner;
    } cases[] = {
        {{2, 2, 1}, 4,   2},
        {{2, 4, 1}, 10,  2},
        {{8, 8, 1}, 112, 2},
        {{2, 4, 4}, 64,  3},
        {{1, 5, 1}, 4,   1},
        {{2, 1, 1}, 1,   1}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        bench b;
        open_bench(&b, cases[i].dims, "000", false);
        group_axes(&b, 7);
        const double n = (double)b.group.size;
        pod_coll_bound got = bound_of(&b, POD_ALL_REDUCE, LARGE);
        const double corrected = fmax((n - 1) / cases[i].cables, 1.0 / cases[i].corner);
        near(link_elements(&got), corrected * LARGE, 1e-8);
        got = bound_of(&b, POD_ALL_GATHER, LARGE);
        near(link_elements(&got), (n - 1) / n / cases[i].corner * LARGE, 1e-5);
        close_bench(&b);
    }
}

Test(bound, of_all_to_all_on_a_line_is_set_by_its_middle)
{
    for (int32_t k = 2; k <= 7; ++k) {
        bench b;
        open_bench(&b, (int32_t[3]){1, k, 1}, "000", false);
        group_axes(&b, 2);
        const pod_coll_bound got = bound_of(&b, POD_ALL_TO_ALL, LARGE);
        near((double)got.bisection_ps / 1000.0, (double)(k * k / 4) / k * LARGE, 1e-4);
        close_bench(&b);
    }
}

Test(bound, counts_only_links_on_the_axes_of_the_group)
{
    bench b;
    open_bench(&b, (int32_t[3]){4, 8, 4}, "111", false);
    group_axes(&b, 2);
    pod_coll_bound got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near(link_elements(&got), 2.0 * 7 / 8 / 2 * LARGE, 1e-8);
    cr_assert_eq(got.latency_ps, 4 * POD_PS_PER_US);
    got = bound_of(&b, POD_ALL_TO_ALL, LARGE);
    near((double)got.time_ps / 1000.0, 1.0 * LARGE, 1e-4);
    close_bench(&b);
}

/* Four groups {i, i+4} share each cable in the middle of an open line of 8; two of ring positions. */
Test(bound, of_strided_groups_counts_what_they_share)
{
    bench b;
    open_bench(&b, (int32_t[3]){8, 1, 1}, "000", false);
    group_axes(&b, 0);
    pod_group_fini(&b.group);
    const pod_group_dim far_pairs = {.axis = 0, .size = 2, .stride = 4};
    cr_assert(pod_group_init_dims(&b.group, &b.slice, &far_pairs, 1, NULL) == POD_OK);
    pod_coll_bound got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near((double)got.bisection_ps / 1000.0, 4.0 * LARGE, 1e-8);
    cr_assert_eq(got.latency_ps, 4 * POD_PS_PER_US);
    pod_group_fini(&b.group);
    const pod_group_dim blocks = {.axis = 0, .size = 4, .stride = 1};
    cr_assert(pod_group_init_dims(&b.group, &b.slice, &blocks, 1, NULL) == POD_OK);
    got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near((double)got.time_ps / 1000.0, 1.0 * LARGE, 1e-8);
    cr_assert_eq(got.latency_ps, 3 * POD_PS_PER_US);
    close_bench(&b);
}

/* {x, 4, 2} on an axis of 8: 0 2 4 6 and 1 3 5 7 share its cables, unless only one of them runs. */
Test(bound, of_groups_that_run_leaves_the_others_out)
{
    bench b;
    bool runs[2] = {true, false};
    open_bench(&b, (int32_t[]){8, 1, 1}, "100", false);
    cr_assert(pod_group_init_dims(&b.group, &b.slice,
                                  &(pod_group_dim){.axis = 0, .size = 4, .stride = 2}, 1, NULL)
              == POD_OK);
    cr_assert(pod_router_new(&b.slice, &b.router, NULL) == POD_OK);
    b.request = (pod_coll_request){.slice = &b.slice,
                                   .group = &b.group,
                                   .element_bytes = 1,
                                   .link_rate = pod_rate_make(1e9),
                                   .hop_latency_ps = POD_PS_PER_US};
    /* 3 S over hops of 2 links each, over 16 links; twice for two groups */
    pod_coll_bound bound = bound_of(&b, POD_ALL_GATHER, LARGE);
    near(link_elements(&bound), 2.0 * 3 * 2 * LARGE / 16, 1e-6);
    b.request.runs = runs;
    bound = bound_of(&b, POD_ALL_GATHER, LARGE);
    near(link_elements(&bound), 3.0 * 2 * LARGE / 16, 1e-6);
    runs[0] = false;
    cr_expect_eq(bound_of(&b, POD_ALL_GATHER, LARGE).time_ps, 0, "nobody moves");
    close_bench(&b);
}

/* One axis of a twisted slice: its four chips are a line, but between the far ends of the long axis other
 * axes are as short, so that all links of a chip count. */
Test(bound, of_one_axis_of_a_twisted_slice_knows_where_routes_leave_it)
{
    bench b;
    open_bench(&b, (int32_t[3]){4, 4, 8}, "111", true);
    group_axes(&b, 1);
    pod_coll_bound got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near(link_elements(&got), 1.0 * LARGE, 1e-8);
    close_bench(&b);
    group_axes(&b, 4);
    got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near(link_elements(&got), 2.0 * 7 / 8 / 6 * LARGE, 1e-8);
    close_bench(&b);
}

/* Groups of more chips than whose routes are looked at may leave, too. */
Test(bound, of_two_axes_of_a_large_twisted_slice_counts_all_links)
{
    bench b;
    open_bench(&b, (int32_t[3]){16, 16, 32}, "111", true);
    group_axes(&b, 6);
    pod_coll_bound got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near(link_elements(&got), 2.0 * 511 / 512 / 6 * LARGE, 1e-8);
    close_bench(&b);
}

Test(bound, of_slow_and_dead_links_counts_what_is_left)
{
    bench b;
    open_bench(&b, (int32_t[3]){4, 4, 1}, "110", false);
    b.slice.faults[b.slice.nfaults++] =
        (pod_fault){.kind = POD_FAULT_LINK_SLOW, .chip = 0, .direction = 0, .factor = 4.0};
    group_axes(&b, 3);
    pod_coll_bound got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near(link_elements(&got), 15.0 / 31.25 * LARGE, 1e-9);
    got = bound_of(&b, POD_BROADCAST, LARGE);
    near(link_elements(&got), 1.0 / 3.25 * LARGE, 1e-9);
    close_bench(&b);
    b.slice.faults[0].kind = POD_FAULT_LINK_DEAD;
    group_axes(&b, 3);
    got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near(link_elements(&got), 15.0 / 31.0 * LARGE, 1e-9);
    close_bench(&b);
    /* rings of 4: detours of the broken one go over y, so its chips may use three links */
    group_axes(&b, 1);
    got = bound_of(&b, POD_ALL_REDUCE, LARGE);
    near(link_elements(&got), 2.0 * 3 / 4 / 2 * LARGE, 1e-9);
    close_bench(&b);
}

Test(bound, is_zero_when_nothing_moves)
{
    bench b;
    open_bench(&b, (int32_t[3]){4, 4, 4}, "111", false);
    group_axes(&b, 0);
    for (int op = 0; op < POD_COLL_OP_COUNT; ++op) {
        int32_t nobody = -1;
        b.request.source_of = &nobody;
        cr_assert_eq(bound_of(&b, (pod_coll_op)op, LARGE).time_ps, 0);
    }
    close_bench(&b);
    group_axes(&b, 7);
    for (int op = 0; op < POD_COLL_OP_COUNT; ++op) {
        cr_assert_eq(bound_of(&b, (pod_coll_op)op, 0).time_ps, 0);
    }
    close_bench(&b);
}

Test(bound, of_permute_takes_distance_links_and_cuts)
{
    bench b;
    open_bench(&b, (int32_t[3]){8, 1, 1}, "100", false);
    group_axes(&b, 1);
    int32_t source[8];
    for (int32_t r = 0; r < 8; ++r) {
        source[r] = (r + 5) % 8; /* three hops minus */
    }
    b.request.source_of = source;
    pod_coll_bound got = bound_of(&b, POD_PERMUTE, LARGE);
    cr_assert_eq(got.latency_ps, 3 * POD_PS_PER_US);
    near((double)got.hops_ps / 1000.0, 8.0 * 3.0 / 16.0 * LARGE, 1e-8);
    for (int32_t r = 0; r < 8; ++r) {
        source[r] = r == 3 ? -1 : r; /* everyone keeps its own */
    }
    cr_assert_eq(bound_of(&b, POD_PERMUTE, LARGE).time_ps, 0);
    source[3] = 2;
    got = bound_of(&b, POD_PERMUTE, LARGE);
    near((double)got.time_ps / 1000.0, 0.5 * LARGE, 1e-8);
    close_bench(&b);
}

/* ---- brute force on small graphs ---- */

static int links_across(const bench *b, unsigned left)
{
    int links = 0;
    for (int32_t chip = 0; chip < b->slice.nchips; ++chip) {
        for (int d = 0; d < POD_DIRECTIONS; ++d) {
            const int32_t next = pod_slice_neighbor(&b->slice, chip, d);
            links += next >= 0 && (left >> chip & 1U) != 0 && (left >> next & 1U) == 0;
        }
    }
    return links;
}

/* The best that any cut in two says, in elements over b. Blocks are equal. */
static double best_bipartition(const bench *b, pod_coll_op op, double elements)
{
    const int32_t n = b->slice.nchips;
    double best = 0.0;
    for (unsigned left = 1; left + 1 < 1U << n; ++left) {
        const double nl = (double)__builtin_popcount(left);
        const double nr = (double)n - nl;
        const double each = elements / (double)n;
        double crossing = elements;
        crossing = op == POD_ALL_GATHER ? nl * each : crossing;
        crossing = op == POD_REDUCE_SCATTER ? nr * each : crossing;
        crossing = op == POD_ALL_TO_ALL ? nl * nr * each : crossing;
        crossing = op == POD_BROADCAST && (left & 1U) == 0 ? 0.0 : crossing;
        best = fmax(best, crossing / (double)links_across(b, left));
    }
    return best;
}

/* (parts - 1) / cables between parts of one partition. */
static double partition_quotient(const bench *b, const int *part, int parts)
{
    int cables = 0;
    for (int32_t chip = 0; chip < b->slice.nchips; ++chip) {
        for (int d = 0; d < POD_DIRECTIONS; d += 2) {
            const int32_t next = pod_slice_neighbor(&b->slice, chip, d);
            cables += next >= 0 && part[next] != part[chip];
        }
    }
    return cables > 0 ? (double)(parts - 1) / (double)cables : 0.0;
}

/* The best of all partitions, chip by chip: into one of the parts so far or a new one. */
static double best_partition(const bench *b, int *part, int32_t chip, int parts)
{
    if (chip == b->slice.nchips) {
        return partition_quotient(b, part, parts);
    }
    double best = 0.0;
    for (part[chip] = 0; part[chip] <= parts; ++part[chip]) {
        const int now = part[chip] == parts ? parts + 1 : parts;
        best = fmax(best, best_partition(b, part, chip + 1, now));
    }
    return best;
}

static const struct {
    int32_t dims[3];
    const char *wrap;
} small[] = {
    {{2, 2, 2}, "000"},
    {{2, 2, 2}, "111"},
    {{3, 3, 1}, "110"},
    {{3, 3, 1}, "000"},
    {{2, 4, 1}, "010"},
    {{1, 7, 1}, "000"},
    {{1, 7, 1}, "010"},
    {{4, 3, 1}, "100"},
    {{2, 3, 2}, "000"}
};

Test(bound, is_not_above_any_cut_and_close_to_the_best)
{
    for (size_t i = 0; i < sizeof small / sizeof *small; ++i) {
        bench b;
        open_bench(&b, small[i].dims, small[i].wrap, false);
        group_axes(&b, 7);
        for (int op = 0; op < POD_COLL_OP_COUNT; ++op) {
            if (op == POD_PERMUTE) {
                continue;
            }
            const double best = best_bipartition(&b, (pod_coll_op)op, LARGE);
            const pod_coll_bound got = bound_of(&b, (pod_coll_op)op, LARGE);
            const double cut =
                (double)(got.link_ps > got.bisection_ps ? got.link_ps : got.bisection_ps) / 1000.0;
            if (op != POD_ALL_REDUCE && op != POD_BROADCAST) {
                cr_assert(cut <= best * (1 + 1e-9), "%s: %g over %g", pod_limit_name(got.limit),
                          cut, best);
            }
            cr_assert(cut >= best * 0.99, "op %d shape %zu: %g of %g", op, i, cut, best);
        }
        close_bench(&b);
    }
}

Test(bound, of_all_reduce_is_within_a_tenth_of_the_best_partition)
{
    for (size_t i = 0; i < sizeof small / sizeof *small; ++i) {
        bench b;
        open_bench(&b, small[i].dims, small[i].wrap, false);
        group_axes(&b, 7);
        if (b.slice.nchips <= 9) {
            int part[9];
            const pod_coll_bound got = bound_of(&b, POD_ALL_REDUCE, LARGE);
            near((double)got.time_ps / 1000.0, best_partition(&b, part, 0, 0) * LARGE, 0.1);
        }
        close_bench(&b);
    }
}

/* Breadth-first distances by relaxation, without the router. */
static void relax(const bench *b, int32_t from, int32_t *hops)
{
    for (int32_t c = 0; c < b->slice.nchips; ++c) {
        hops[c] = c == from ? 0 : 1000;
    }
    for (int32_t round = 0; round < b->slice.nchips; ++round) {
        for (int32_t c = 0; c < b->slice.nchips; ++c) {
            for (int d = 0; d < POD_DIRECTIONS; ++d) {
                const int32_t next = pod_slice_neighbor(&b->slice, c, d);
                if (next >= 0 && pod_slice_link_slowness(&b->slice, c, d) > 0.0
                    && hops[c] + 1 < hops[next]) {
                    hops[next] = hops[c] + 1;
                }
            }
        }
    }
}

Test(bound, of_latency_and_hops_agree_with_a_search)
{
    for (size_t i = 0; i < sizeof small / sizeof *small; ++i) {
        for (int broken = 0; broken < 2; ++broken) {
            bench b;
            open_bench(&b, small[i].dims, small[i].wrap, false);
            if (broken && small[i].dims[0] > 1) {
                b.slice.faults[b.slice.nfaults++] =
                    (pod_fault){.kind = POD_FAULT_LINK_DEAD, .chip = 0, .direction = 0};
            }
            group_axes(&b, 7);
            int32_t hops[16];
            int64_t farthest = 0;
            double sum = 0.0;
            for (int32_t c = 0; c < b.slice.nchips; ++c) {
                relax(&b, c, hops);
                for (int32_t d = 0; d < b.slice.nchips; ++d) {
                    farthest = hops[d] > farthest ? hops[d] : farthest;
                    sum += (double)hops[d];
                }
            }
            const pod_coll_bound got = bound_of(&b, POD_ALL_TO_ALL, LARGE);
            cr_assert_eq(got.latency_ps, farthest * POD_PS_PER_US);
            const double links = 2.0 * (double)pod_slice_cables(&b.slice);
            near((double)got.hops_ps / 1000.0, sum * LARGE / b.slice.nchips / links, 1e-4);
            close_bench(&b);
        }
    }
}

/* With one element somebody owns it, whoever that is: the middle of a line needs half its length. */
Test(bound, of_a_single_element_holds_whoever_owns_it)
{
    bench b;
    open_bench(&b, (int32_t[3]){1, 9, 1}, "000", false);
    group_axes(&b, 2);
    cr_assert_eq(bound_of(&b, POD_ALL_GATHER, 1).latency_ps, 4 * POD_PS_PER_US);
    cr_assert_eq(bound_of(&b, POD_ALL_REDUCE, 1).latency_ps, 8 * POD_PS_PER_US);
    cr_assert_eq(bound_of(&b, POD_ALL_GATHER, LARGE).latency_ps, 8 * POD_PS_PER_US);
    close_bench(&b);
}

/* In 256 parts each of 5 chips may own one element less of every part than another: 256 · 4 elements may lie
 * where they are wanted, so that the middle of the line can be the owner, 2 hops from all. One more, and its ends
 * own something. */
Test(bound, of_any_cut_knows_that_all_own_something_beyond_the_slack)
{
    static const int32_t line[3] = {5, 1, 1};
    static const pod_coll_op ops[] = {POD_ALL_GATHER, POD_REDUCE_SCATTER, POD_ALL_TO_ALL};
    bench b;
    open_bench(&b, line, "000", false);
    group_axes(&b, 1);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        cr_expect_eq(bound_of(&b, ops[i], 256 * 4).latency_ps, 2 * POD_PS_PER_US);
        cr_expect_eq(bound_of(&b, ops[i], 256 * 4 + 1).latency_ps, 4 * POD_PS_PER_US);
    }
    close_bench(&b);
}

Test(bound, that_exceeds_the_clock_is_refused)
{
    bench b;
    open_bench(&b, (int32_t[3]){4, 1, 1}, "000", false);
    group_axes(&b, 1);
    b.request.op = POD_ALL_REDUCE;
    b.request.elements = INT64_MAX;
    b.request.element_bytes = 4;
    pod_coll_bound bound;
    cr_assert(pod_coll_bound_get(&b.request, b.router, &bound, NULL) == POD_E_RANGE);
    close_bench(&b);
}

/* All-to-all on a line of four: the two chips on one side of the middle send half of their elements to the other side,
 * over one link, which takes ten times as long where it is slow. */
Test(bound, of_a_cut_counts_all_chips_of_either_side)
{
    static const struct {
        int32_t chip;
        int direction;
    } slow[] = {
        {1, 0},
        {2, 1}
    };
    for (int i = 0; i < 2; i++) {
        bench b;
        open_bench(&b, (const int32_t[]){4, 1, 1}, "000", false);
        cr_assert(pod_slice_fault_insert(&b.slice, POD_FAULT_LINK_SLOW, slow[i].chip,
                                         slow[i].direction, 10.0, NULL)
                  == POD_OK);
        group_axes(&b, 7);
        const pod_coll_bound got = bound_of(&b, POD_ALL_TO_ALL, LARGE);
        near((double)got.bisection_ps / 1000.0, 10.0 * 2.0 * LARGE / 2.0, 1e-5);
        close_bench(&b);
    }
}
