/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/bounds/bound.h"
#include "collectives/embedding/shares.h"
#include "fixture.h"

#include "../sample.h"

static const pod_coll_op bucket_ops[] = {POD_ALL_GATHER, POD_REDUCE_SCATTER, POD_ALL_REDUCE};

static double bound_fraction(const char *name, const shape *s, pod_coll_op op, int64_t elements)
{
    fixture f;
    fixture_init(&f, s, op, elements);
    f.request.link_rate = pod_rate_make(90e9);
    pod_router *router;
    pod_coll_bound bound;
    pod_coll_prediction prediction;
    cr_assert(pod_router_new(&f.slice, &router, NULL) == POD_OK);
    cr_assert(pod_coll_bound_get(&f.request, router, &bound, NULL) == POD_OK);
    cr_assert(fixture_find(name)->predict(&f.request, &prediction, NULL) == POD_OK);
    pod_router_free(router);
    fixture_fini(&f);
    return (double)bound.time_ps / (double)prediction.total_ps;
}

/* 1 GiB at 90 GB/s: 0.97 on closed and twisted slices up to 1,024 chips (the plan aims at 0.98). */
Test(collectives_bucket, comes_near_the_bound_on_closed_slices)
{
    static const struct {
        int32_t dims[3];
        bool twisted;
    } slices[] = {
        {{4, 4, 4},   false},
        {{8, 8, 8},   false},
        {{16, 16, 1}, false},
        {{4, 4, 8},   false},
        {{4, 8, 8},   false},
        {{4, 4, 28},  false},
        {{4, 8, 28},  false},
        {{4, 12, 20}, false},
        {{8, 8, 12},  false},
        {{4, 4, 8},   true },
        {{4, 8, 8},   true },
        {{8, 8, 16},  true }
    };
    for (size_t i = 0; i < sizeof slices / sizeof *slices; ++i) {
        const shape s = {
            {slices[i].dims[0],  slices[i].dims[1], slices[i].dims[2]},
            "xyz",
            slices[i].twisted,
            7,
            0,
            {{0}}
        };
        for (int o = 0; o < 3; ++o) {
            const double frac = bound_fraction("bucket", &s, bucket_ops[o], 1 << 29);
            cr_assert(frac >= 0.975 && frac <= 1.0, "%dx%dx%d%s %s: %.4f of the bound",
                      (int)s.dims[0], (int)s.dims[1], (int)s.dims[2], s.twisted ? " twisted" : "",
                      pod_coll_op_name(bucket_ops[o]), frac);
        }
    }
}

/* All-gather and reduce-scatter on open slices: 0.85 of the degree bound. */
Test(collectives_bucket, comes_near_the_bound_on_open_slices)
{
    static const int32_t dims[][3] = {
        {2, 2, 1},
        {2, 4, 1},
        {4, 4, 1},
        {4, 8, 1},
        {8, 8, 1},
        {2, 2, 2},
        {2, 2, 4},
        {2, 4, 4}
    };
    for (size_t i = 0; i < sizeof dims / sizeof *dims; ++i) {
        const shape s = {
            {dims[i][0],  dims[i][1], dims[i][2]},
            "", false, 7, 0, {{0}}
        };
        for (int o = 0; o < 2; ++o) {
            const double frac = bound_fraction("bucket", &s, bucket_ops[o], 1 << 29);
            cr_assert(frac >= 0.97 && frac <= 1.0, "%dx%dx%d %s: %.4f of the bound", (int)s.dims[0],
                      (int)s.dims[1], (int)s.dims[2], pod_coll_op_name(bucket_ops[o]), frac);
        }
    }
}

/* Both ways round a ring of k: ⌊k/2⌋ messages each way; of an even ring, one block in the first phase
 * has no half, and goes one way. One cut of the fewest orders on 4x4x4: 3 orders, phases of runs of
 * 1, 4 and 16 slots: 3 + 4 + 4 messages. */
Test(collectives_bucket, sends_as_few_messages_as_its_plan_says)
{
    static const shape cube = {
        {4,  4, 4},
        "xyz", false, 7, 0, {{0}}
    };
    for (int o = 0; o < 3; ++o) {
        fixture f;
        fixture_init(&f, &cube, bucket_ops[o], 1 << 29);
        pod_coll_schedule *schedule;
        cr_assert(fixture_find("bucket")->build(&f.request, &schedule, NULL) == POD_OK);
        pod_coll_counts counts;
        cr_assert(pod_coll_count(schedule, &counts, NULL) == POD_OK);
        const int64_t passes = bucket_ops[o] == POD_ALL_REDUCE ? 2 : 1;
        cr_assert_eq(counts.messages, passes * 64 * 3 * (3 + 4 + 4));
        cr_assert_eq(counts.elements, passes * 63 * f.request.elements);
        pod_coll_schedule_free(schedule);
        fixture_fini(&f);
    }
}

static void shares_of(const shape *s, bool even, pod_coll_shares *shares)
{
    fixture f;
    fixture_init(&f, s, POD_ALL_GATHER, 1);
    pod_coll_axes axes;
    cr_assert(pod_coll_axes_init(&axes, &f.request, NULL) == POD_OK);
    cr_assert(pod_coll_shares_get(&axes, even, shares, NULL) == POD_OK);
    pod_coll_axes_fini(&axes);
    fixture_fini(&f);
}

/* Every order loads (n-1)/n in sum, so equal links carry (1 - 1/n)/(2 D) each at best. */
Test(collectives_bucket, shares_load_all_links_alike)
{
    static const shape closed[] = {
        {{4, 4, 4},   "xyz", false, 7, 0, {{0}}},
        {{4, 8, 16},  "xyz", false, 7, 0, {{0}}},
        {{8, 16, 1},  "xy",  false, 7, 0, {{0}}},
        {{4, 4, 244}, "xyz", false, 7, 0, {{0}}},
        {{4, 4, 8},   "xyz", true,  7, 0, {{0}}}
    };
    for (size_t i = 0; i < sizeof closed / sizeof *closed; ++i) {
        const double n = (double)closed[i].dims[0] * closed[i].dims[1] * closed[i].dims[2];
        const int axes = closed[i].dims[2] > 1 ? 3 : 2;
        for (int even = 0; even < 2; ++even) {
            pod_coll_shares shares;
            shares_of(&closed[i], even != 0, &shares);
            double sum = 0.0;
            for (int o = 0; o < shares.norders; ++o) {
                cr_assert_gt(shares.share[o], 0.0);
                sum += shares.share[o];
            }
            cr_assert_float_eq(sum, 1.0, 1e-9);
            cr_assert_float_eq(shares.busiest, (1.0 - 1.0 / n) / (2.0 * axes), 1e-9);
            cr_assert(even || shares.norders <= axes);
        }
    }
}

/* COLLECTIVES.md section 6, weights by the first axis of a reduce-scatter (the last of an all-gather):
 * 4x8x16: 0.41 0.31 0.27. */
Test(collectives_bucket, shares_are_those_of_the_study)
{
    static const shape s = {
        {4,   8, 16},
        "xyz", false, 7, 0, {{0}}
    };
    pod_coll_shares shares;
    shares_of(&s, true, &shares);
    double last[3] = {0.0, 0.0, 0.0};
    for (int o = 0; o < shares.norders; ++o) {
        last[shares.axis[o][2]] += shares.share[o];
    }
    cr_assert_float_eq(last[0], 0.41, 0.03);
    cr_assert_float_eq(last[1], 0.31, 0.03);
    cr_assert_float_eq(last[2], 0.27, 0.03);
}

/* An axis of 2 closed and a long open one: no shares make them equally busy; the best is one order. */
Test(collectives_bucket, shares_do_what_they_can_on_lopsided_groups)
{
    static const shape s = {
        {2,  16, 1},
        "x", false, 7, 0, {{0}}
    };
    pod_coll_shares shares;
    shares_of(&s, false, &shares);
    cr_assert_eq(shares.norders, 1);
    cr_assert_eq(shares.axis[0][0], 1);
    cr_assert_float_eq(shares.busiest, 15.0 / 32.0, 1e-9);
}

/* Two positions 4 apart on x, 8 on y: a message along x takes 4 links, so that x first loads x with 4 · 1/16 and y with
 * 14/16, y first y with 7/16 and x with 4 · 8/16. Both are equally busy at shares of 5/7 and 2/7. */
Test(collectives_bucket, shares_count_the_hops_of_a_stride)
{
    static const shape s = {
        {8, 8,               1},
        "xy", false, 0, 2, {{0, 2, 4, false}, {1, 8, 1, false}}
    };
    pod_coll_shares shares;
    shares_of(&s, false, &shares);
    cr_assert_eq(shares.norders, 2);
    cr_assert_float_eq(shares.share[0] < 0.5 ? shares.share[0] : shares.share[1], 2.0 / 7.0, 1e-9);
    cr_assert_float_eq(shares.busiest, 0.375, 1e-9);
}

/* A ring through such a group has hops of 1 and of 4: following one rank alone would see only the first. */
Test(collectives_bucket, auto_sees_the_long_hops_of_a_ring)
{
    static const shape s = {
        {8, 8,               1},
        "xy", false, 0, 2, {{0, 2, 4, false}, {1, 8, 1, false}}
    };
    fixture f;
    fixture_init(&f, &s, POD_ALL_GATHER, 1 << 24);
    pod_coll_prediction ring;
    pod_coll_prediction bucket;
    cr_assert(fixture_find("ring")->predict(&f.request, &ring, NULL) == POD_OK);
    cr_assert(fixture_find("bucket")->predict(&f.request, &bucket, NULL) == POD_OK);
    const double whole_us = 2.0 * (1 << 24) / 45e3;
    cr_assert_gt(pod_time_to_us(ring.total_ps), 0.99 * 2.0 * 15 / 32 * whole_us);
    cr_assert_lt(pod_time_to_us(bucket.total_ps), 0.45 * whole_us);
    fixture_fini(&f);
}

/* Refusals name what works. */
Test(collectives_bucket, refusals_name_what_works)
{
    static const struct {
        const char *algorithm;
        shape shape;
        const char *named;
    } refused[] = {
        {"ring",                          {{5, 1, 1}, "", false, 7, 0, {{0}}},    "line"  },
        {"ring",                          {{3, 3, 1}, "", false, 7, 0, {{0}}},    "bucket"},
        {"line",                          {{4, 4, 1}, "xy", false, 7, 0, {{0}}},  "bucket"},
        {"bucket_1port",                  {{4, 4, 1}, "y", false, 7, 0, {{0}}},   "bucket"},
        {"bucket_2D_ports",               {{4, 1, 1}, "", false, 7, 0, {{0}}},    "bucket"},
        {"hamiltonian_rings_2D_disjoint", {{2, 4, 4}, "xyz", false, 7, 0, {{0}}}, "bucket"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
        fixture f;
        fixture_init(&f, &refused[i].shape, POD_ALL_REDUCE, 100);
        cr_assert(fixture_find(refused[i].algorithm)->applies(&f.request, &f.err) == POD_E_INVALID);
        cr_assert(strstr(f.err.text, refused[i].named) != NULL, "%s", f.err.text);
        const pod_coll_algorithm *other = fixture_find(refused[i].named);
        cr_assert(pod_coll_algorithm_fits(other, &f.request), "%s on %s", refused[i].named, f.name);
        fixture_fini(&f);
    }
}

static void check_choice(const shape *s, pod_coll_op op, int64_t elements)
{
    fixture f;
    fixture_init(&f, s, op, elements);
    const pod_coll_algorithm *chosen;
    pod_coll_prediction best;
    cr_assert(pod_coll_choose(&f.request, &chosen, &best, NULL) == POD_OK);
    cr_assert((elements == 0) == (strcmp(chosen->name, "none") == 0));
    for (int i = 0; i < pod_coll_algorithm_count(); i++) {
        const pod_coll_algorithm *a = pod_coll_algorithm_at(i);
        pod_coll_prediction other;
        if ((a->auto_ops >> f.request.op & 1U) != 0 && pod_coll_algorithm_fits(a, &f.request)) {
            cr_assert(a->predict(&f.request, &other, NULL) == POD_OK);
            /* which is taken where it gains half a percent */
            const pod_time_ps gain_ps = strcmp(a->name, "mirrored") == 0 ? best.total_ps / 200 : 0;
            cr_assert(best.total_ps - gain_ps <= other.total_ps, "%s before %s", a->name,
                      chosen->name);
        }
    }
    fixture_fini(&f);
}

/* Also where a choice stops looking at one that is known to be slower, before it has its prediction. */
Test(collectives_bucket, auto_takes_the_cheapest_prediction)
{
    static const shape slices[] = {
        {{4, 4, 4}, "xyz", false, 7, 0, {{0}}},
        {{4, 4, 8}, "xyz", true,  7, 0, {{0}}},
    };
    int number = 0;
    for (int i = 0; i < 2; i++) {
        for (int o = 0; o < 3; o++) {
            for (int64_t elements = 0; elements < 1 << 28; elements = 16 * elements + 1) {
                if (sample_takes(number++, 8)) {
                    check_choice(&slices[i], bucket_ops[o], elements);
                }
            }
        }
    }
}
