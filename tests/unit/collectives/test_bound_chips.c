/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of single chips, of schedules and of groups over slices, by hand: links of 1 GB/s, elements of a byte,
 * hops of 1 us. Times of bytes are told in shares of the vector over one link. */
#include "collectives/bounds/bound.h"
#include "collectives/registry.h"

#include <criterion/criterion.h>

typedef struct bench {
    pod_slice slice;
    pod_dcn dcn;
    pod_group inside;
    pod_group group;
    pod_router *router;
    pod_coll_request request;
    pod_coll_bound bound;
    pod_coll_chip_bounds chips;
    pod_error err;
} bench;

#define OK(call) cr_assert_eq((call), POD_OK, "%s: %s", #call, b->err.text)

enum { LARGE = 1 << 30 };

static void bench_init(bench *b, int32_t x, int32_t y, bool closed)
{
    const int32_t dims[POD_AXES] = {x, y, 1};
    const bool wrap[POD_AXES] = {closed, false, false};
    *b = (bench){.router = NULL};
    OK(pod_slice_make("v4", 3, dims, wrap, false, &b->slice, &b->err));
    OK(pod_router_new(&b->slice, &b->router, &b->err));
    OK(pod_group_init_axes(&b->group, &b->slice, 1, &b->err));
    b->request = (pod_coll_request){.slice = &b->slice,
                                    .group = &b->group,
                                    .elements = LARGE,
                                    .element_bytes = 1,
                                    .link_rate = pod_rate_make(1e9),
                                    .hop_latency_ps = POD_PS_PER_US};
}

static void bench_fini(bench *b)
{
    pod_coll_chip_bounds_fini(&b->chips);
    pod_group_fini(&b->group);
    pod_group_fini(&b->inside);
    pod_router_free(b->router);
}

static void chips_bound(bench *b, pod_coll_op op)
{
    b->request.op = op;
    pod_coll_chip_bounds_fini(&b->chips);
    OK(pod_coll_bound_chips(&b->request, b->router, &b->bound, &b->chips, &b->err));
}

/* Bounds are a little lower where it isn't known who owns an element (bound.h). */
static void near(const char *what, pod_time_ps got, double share)
{
    const double want = share * LARGE * 1000;
    cr_expect((double)got >= want * (1 - 1e-5) && (double)got <= want * (1 + 1e-9),
              "%s: %.6f of the vector, not %.6f", what, (double)got / LARGE / 1000, share);
}

/* ---- chips of a line ---- */

typedef struct line_bounds {
    pod_coll_op op;
    double in[2], out[2], far[2]; /* of its ends, and of the two in the middle */
    double each, links;
} line_bounds;

/* Of four in a line the ends have a link each, the others two; the six links carry the vector three times. What is
 * on the other side of a cut comes over one link: to an end three blocks, to the middle two. A chip at the middle
 * sends a block for each of two chips over the link there, if all blocks differ. */
static const line_bounds of_four[] = {
    {POD_ALL_GATHER,     {0.75, 0.375}, {0.25, 0.125}, {0.75, 0.5},  0.125, 0.5},
    {POD_REDUCE_SCATTER, {0.25, 0.125}, {0.75, 0.5},   {0.25, 0.25}, 0.125, 0.5},
    {POD_ALL_TO_ALL,     {0.75, 0.375}, {0.75, 0.5},   {0.75, 0.5},  0.125, 0  },
    {POD_ALL_REDUCE,     {1, 0.5},      {1, 0.5},      {1, 1},       0.5,   1  },
};

Test(bound_chips, of_a_line_differ_at_its_ends)
{
    for (size_t i = 0; i < sizeof of_four / sizeof *of_four; i++) {
        const line_bounds *want = &of_four[i];
        bench bench_;
        bench *b = &bench_;
        bench_init(b, 4, 2, false);
        chips_bound(b, want->op);
        cr_expect_not(b->chips.even);
        cr_expect(b->chips.period[0] == 4 && b->chips.period[1] == 1 && b->chips.period[2] == 1);
        for (int32_t chip = 0; chip < 8; chip++) {
            const int middle = chip % 4 == 1 || chip % 4 == 2;
            near("in", b->chips.in_ps[chip], want->in[middle]);
            near("out", b->chips.out_ps[chip], want->out[middle]);
            near("far", b->chips.far_ps[chip], want->far[middle]);
        }
        near("each", b->chips.each_ps, want->each);
        if (want->op == POD_ALL_TO_ALL) { /* a block to each other chip: 20 hops of a quarter */
            near("links", b->chips.links_ps, 20.0 / 4 / 6);
        } else {
            near("links", b->chips.links_ps, want->links);
        }
        bench_fini(b);
    }
}

/* Few bytes: what counts is the hops to the farthest. */
Test(bound_chips, of_few_bytes_are_hops)
{
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 1, false);
    b->request.elements = 1;
    chips_bound(b, POD_ALL_REDUCE);
    static const int hops[] = {3, 2, 2, 3};
    for (int32_t chip = 0; chip < 4; chip++) {
        cr_expect_eq(b->chips.far_ps[chip], hops[chip] * POD_PS_PER_US);
    }
    cr_expect_eq(b->bound.time_ps, 3 * POD_PS_PER_US);
    cr_expect_eq(b->bound.limit, POD_LIMIT_LATENCY);
    bench_fini(b);
}

/* In a ring all chips are the same: an all-reduce of podsim sends three quarters of the vector twice, over two
 * links. */
Test(bound_chips, of_a_ring_are_even)
{
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 2, true);
    chips_bound(b, POD_ALL_REDUCE);
    cr_expect(b->chips.even);
    for (int32_t chip = 0; chip < 8; chip++) {
        near("in", b->chips.in_ps[chip], 0.5);
        near("out", b->chips.out_ps[chip], 0.75);
        cr_expect_eq(b->chips.far_ps[chip], 2 * POD_PS_PER_US);
    }
    near("all", b->bound.time_ps, 0.75);
    bench_fini(b);
}

/* Chip 1 waits for chip 0, 2 for nobody, 3 for 1: two hops. Whoever is waited for sends the vector over its links. */
Test(bound_chips, of_a_permute_are_those_of_whom_they_wait_for)
{
    static const int32_t source[] = {-1, 0, -1, 1};
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 1, false);
    b->request.source_of = source;
    chips_bound(b, POD_PERMUTE);
    static const double in[] = {0, 0.5, 0, 1};
    static const double out[] = {1, 0.5, 0, 0};
    static const int hops[] = {0, 1, 0, 2};
    for (int32_t chip = 0; chip < 4; chip++) {
        near("in", b->chips.in_ps[chip], in[chip]);
        near("out", b->chips.out_ps[chip], out[chip]);
        cr_expect_eq(b->chips.far_ps[chip], hops[chip] * POD_PS_PER_US);
    }
    cr_expect_eq(b->chips.each_ps, 0, "nobody waits for all");
    cr_expect_eq(b->bound.latency_ps, 2 * POD_PS_PER_US);
    near("links", b->chips.links_ps, 3.0 / 6);
    bench_fini(b);
}

/* In 256 parts four of five chips may own 1024 elements less than the fifth: of five more each has one at least,
 * which it sends over two links. */
Test(bound_chips, of_elements_beyond_the_slack_are_rounded_up)
{
    static const struct {
        int64_t elements;
        pod_time_ps each_ps;
    } cases[] = {
        {1024,     0   },
        {1024 + 1, 500 },
        {1024 + 5, 500 },
        {1024 + 6, 1000}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench bench_;
        bench *b = &bench_;
        bench_init(b, 5, 1, false);
        b->request.elements = cases[i].elements;
        chips_bound(b, POD_REDUCE_SCATTER);
        cr_expect_eq(b->chips.each_ps, cases[i].each_ps, "%lld elements: %lld ps",
                     (long long)cases[i].elements, (long long)b->chips.each_ps);
        bench_fini(b);
    }
}

/* Groups that don't take part have none. */
Test(bound_chips, of_groups_that_rest_are_none)
{
    static const bool runs[] = {false, true};
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 2, false);
    b->request.runs = runs;
    chips_bound(b, POD_ALL_REDUCE);
    for (int32_t chip = 0; chip < 4; chip++) {
        cr_expect(b->chips.in_ps[chip] == 0 && b->chips.out_ps[chip] == 0
                  && b->chips.far_ps[chip] == 0);
        cr_expect_gt(b->chips.in_ps[4 + chip], 0);
    }
    bench_fini(b);
}

/* ---- cuts ---- */

/* A ring is cut into halves: over two links goes what two chips own. */
Test(bound_chips, of_a_ring_are_cut_into_halves)
{
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 1, true);
    b->request.op = POD_ALL_GATHER;
    OK(pod_coll_bound_get(&b->request, b->router, &b->bound, &b->err));
    near("all-gather", b->bound.bisection_ps, 0.25);
    bench_fini(b);
}

/* Both cables of the last chip are slow: each half has one of them, and one that isn't. */
Test(bound_chips, of_a_ring_with_slow_cables_are_cut_into_halves)
{
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 1, true);
    OK(pod_slice_fault_insert(&b->slice, POD_FAULT_LINK_SLOW, 2, 0, 10, &b->err));
    OK(pod_slice_fault_insert(&b->slice, POD_FAULT_LINK_SLOW, 3, 0, 10, &b->err));
    b->request.op = POD_ALL_REDUCE;
    OK(pod_coll_bound_get(&b->request, b->router, &b->bound, &b->err));
    near("all-reduce", b->bound.bisection_ps, 1 / 1.1);
    bench_fini(b);
}

/* A chip owns a quarter of 4096 elements and 256 at most: what the three others own crosses to it. */
Test(bound_chips, of_a_side_know_what_the_other_cannot_own)
{
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 1, false);
    b->request.op = POD_ALL_GATHER;
    b->request.elements = 4096;
    OK(pod_coll_bound_get(&b->request, b->router, &b->bound, &b->err));
    cr_expect_eq(b->bound.bisection_ps, INT64_C(1000) * (4096 - 1024 - 256), "%lld ps",
                 (long long)b->bound.bisection_ps);
    bench_fini(b);
}

/* The root alone must tell, all others must hear. */
Test(bound_chips, of_a_broadcast_are_those_of_its_root)
{
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 4, 1, false);
    b->request.root = 1;
    chips_bound(b, POD_BROADCAST);
    static const double in[] = {1, 0, 0.5, 1};
    for (int32_t chip = 0; chip < 4; chip++) {
        near("in", b->chips.in_ps[chip], in[chip]);
        near("out", b->chips.out_ps[chip], chip == 1 ? 0.5 : 0);
    }
    bench_fini(b);
}

/* One vector over one link, from the first chip or to it. */
Test(bound_chips, of_a_permute_count_the_first_chip)
{
    static const int32_t source[][4] = {
        {-1, 0,  -1, -1},
        {1,  -1, -1, -1}
    };
    for (int i = 0; i < 2; i++) {
        bench bench_;
        bench *b = &bench_;
        bench_init(b, 4, 1, false);
        b->request.op = POD_PERMUTE;
        b->request.source_of = source[i];
        OK(pod_coll_bound_get(&b->request, b->router, &b->bound, &b->err));
        near("permute", b->bound.bisection_ps, 1);
        bench_fini(b);
    }
}

/* Two pairs on a line of five, whose middle is in none: a cut divides one of them at most. */
Test(bound_chips, of_groups_on_one_side_of_a_cut_do_not_cross_it)
{
    static const int32_t pairs[] = {0, 1, 3, 4};
    bench bench_;
    bench *b = &bench_;
    bench_init(b, 5, 1, false);
    pod_group_fini(&b->group);
    OK(pod_group_init_some(&b->group, &b->slice, pairs, 2, 2, true, &b->err));
    b->request.op = POD_ALL_REDUCE;
    OK(pod_coll_bound_get(&b->request, b->router, &b->bound, &b->err));
    near("all-reduce", b->bound.bisection_ps, 1);
    bench_fini(b);
}

/* ---- schedules ---- */

/* Of 12288 elements in equal blocks each of four owns 3072: a ring's links carry the others into a chip or out of
 * it, over two of them. */
Test(bound_chips, of_a_schedule_are_those_of_its_blocks)
{
    static const pod_coll_op ops[] = {POD_ALL_GATHER, POD_REDUCE_SCATTER, POD_ALL_TO_ALL};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        bench bench_;
        bench *b = &bench_;
        bench_init(b, 4, 1, true);
        b->request.op = ops[i];
        b->request.elements = 12288;
        pod_coll_bound free_bound;
        OK(pod_coll_bound_get(&b->request, b->router, &free_bound, &b->err));
        for (int a = 0; a < pod_coll_algorithm_count(); a++) {
            const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(a);
            pod_coll_schedule *schedule = NULL;
            if (pod_coll_algorithm_applies(algorithm, &b->request, NULL) != POD_OK) {
                continue;
            }
            OK(algorithm->build(&b->request, &schedule, &b->err));
            OK(pod_coll_bound_schedule(&b->request, b->router, schedule, &b->bound, &b->err));
            cr_expect_geq(b->bound.time_ps, free_bound.time_ps, "%s", algorithm->name);
            cr_expect_eq(b->bound.link_ps, INT64_C(4608) * 1000, "%s of %s: %lld ps",
                         algorithm->name, pod_coll_op_name(ops[i]), (long long)b->bound.link_ps);
            pod_coll_schedule_free(schedule);
        }
        bench_fini(b);
    }
}

/* ---- over slices ---- */

/* Slices of two chips, each with a server and a NIC of 1 GB/s of its own: a slice sends 2 GB/s. A chip has one
 * link and PCIe of 1 GB/s. Flights take 10 us. */
static void slices_init(bench *b, int32_t y, int32_t slices)
{
    bench_init(b, 2, y, false);
    const pod_dcn_options options = {
        .nslices = slices,
        .dims = {2, y, 1},
        .host_dims = {1, 1, 1},
        .server_dims = {1, 1, 1},
        .nic_bytes_per_s = 1e9,
        .pcie_bytes_per_s = 1e9,
        .oversubscription = 1,
        .latency_ps = 10 * POD_PS_PER_US,
    };
    OK(pod_dcn_init(&b->dcn, &options, &b->err));
    pod_group_fini(&b->group);
    OK(pod_group_init_axes(&b->inside, &b->slice, 1, &b->err));
    OK(pod_group_init_slices(&b->group, &b->inside, slices, NULL, slices, &b->err));
    b->slice.nslices = slices;
    b->request.dcn = &b->dcn;
}

static void check_slices(bench *b, const char *what, double border, double chip)
{
    cr_expect_eq(b->bound.latency_ps, 10 * POD_PS_PER_US, "%s", what);
    near(what, b->bound.bisection_ps, border);
    near(what, b->bound.link_ps, chip);
}

/* All-reduce: the vector into and out of each slice; all-gather, reduce-scatter: half of it; all-to-all: half of
 * it from each of two chips; broadcast: all, out of one, into the other. Chips hear or tell three quarters of a
 * gather over two links. */
Test(bound_chips, of_two_slices_cross_their_borders)
{
    bench bench_;
    bench *b = &bench_;
    slices_init(b, 1, 2);
    chips_bound(b, POD_ALL_REDUCE);
    check_slices(b, "all-reduce", 0.5, 0.5);
    near("together", b->chips.links_ps, 0.5);
    for (int32_t chip = 0; chip < 2; chip++) {
        near("in", b->chips.in_ps[chip], 0.5);
        near("out", b->chips.out_ps[chip], 0.5);
        cr_expect_eq(b->chips.far_ps[chip], 10 * POD_PS_PER_US);
    }
    chips_bound(b, POD_ALL_GATHER);
    check_slices(b, "all-gather", 0.25, 0.375);
    near("in", b->chips.in_ps[1], 0.375);
    near("out", b->chips.out_ps[1], 0.125);
    chips_bound(b, POD_REDUCE_SCATTER);
    check_slices(b, "reduce-scatter", 0.25, 0.375);
    chips_bound(b, POD_ALL_TO_ALL);
    check_slices(b, "all-to-all", 0.5, 0.375);
    for (b->request.root = 0; b->request.root < 4; b->request.root++) {
        chips_bound(b, POD_BROADCAST);
        check_slices(b, "broadcast", 0.5, 0.5);
    }
    bench_fini(b);
}

/* Two groups side by side, of chips with two links each: twice the bytes over four NICs, and a vector over three. */
Test(bound_chips, of_two_slices_count_all_links_of_a_chip)
{
    bench bench_;
    bench *b = &bench_;
    slices_init(b, 2, 2);
    chips_bound(b, POD_ALL_REDUCE);
    check_slices(b, "all-reduce", 0.5, 1.0 / 3);
    bench_fini(b);
}

/* Two of three slices must send every element before a third knows its sum, and again after: 4 vectors over 6
 * GB/s. */
Test(bound_chips, of_three_slices_send_each_sum_twice)
{
    bench bench_;
    bench *b = &bench_;
    slices_init(b, 1, 3);
    chips_bound(b, POD_ALL_REDUCE);
    check_slices(b, "all-reduce", 4.0 / 6, 0.5);
    near("together", b->chips.links_ps, 4.0 / 6);
    bench_fini(b);
}

/* A vector crosses once for all who wait for it there. */
Test(bound_chips, of_a_permute_over_slices_count_what_crosses)
{
    static const struct {
        const char *what;
        int32_t source[4];
        double border, chip;
        int latency_us;
    } cases[] = {
        {"from two chips",            {-1, -1, 0, 1},  1,   0.5, 10},
        {"from one to two",           {-1, -1, 0, 0},  0.5, 0.5, 10},
        {"from one to another",       {2, -1, -1, -1}, 0.5, 0.5, 10},
        {"inside a slice",            {-1, 0, -1, -1}, 0,   0.5, 1 },
        {"inside, from the last",     {-1, -1, 3, -1}, 0,   0.5, 1 },
        {"from oneself, from nobody", {0, -1, -1, 3},  0,   0,   0 },
    };
    bench bench_;
    bench *b = &bench_;
    slices_init(b, 1, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b->request.source_of = cases[i].source;
        chips_bound(b, POD_PERMUTE);
        cr_expect_eq(b->bound.latency_ps, cases[i].latency_us * POD_PS_PER_US, "%s", cases[i].what);
        near(cases[i].what, b->bound.bisection_ps, cases[i].border);
        near(cases[i].what, b->bound.link_ps, cases[i].chip);
    }
    bench_fini(b);
}
