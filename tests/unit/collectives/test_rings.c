/* SPDX-License-Identifier: Apache-2.0 */
#include "cost_table.h"
#include "fixture.h"

#include <string.h>

#include "../sample.h"

static const pod_coll_op ring_ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER};

/* What moves data along rings and lines; gathers and pairs of chips have tests of their own. */
static bool is_mine(const pod_coll_algorithm *algorithm)
{
    return strncmp(algorithm->name, "swing", 5) != 0 && strncmp(algorithm->name, "halving", 7) != 0
           && strcmp(algorithm->name, "gather") != 0 && strcmp(algorithm->name, "opened") != 0
           && (algorithm->ops & 1U << POD_ALL_REDUCE) != 0
           && (algorithm->ops & 1U << POD_ALL_GATHER) != 0;
}

Test(collectives_rings, move_every_contribution_once)
{
    int proved = 0;
    for (int s = 0; s < ALL_SHAPES; ++s) {
        for (int o = 0; o < 3; ++o) {
            fixture f;
            fixture_init(&f, &all_shapes[s], ring_ops[o], 0);
            const int64_t n = f.group.size;
            const int64_t sizes[] = {1, n - 1, n, n + 1, 1000 * n + 7};
            for (int e = n > 32 ? 4 : n > 12 ? 3 : 0; e < 5; ++e) {
                f.request.elements = sizes[e];
                for (int i = 0; i < pod_coll_algorithm_count(); ++i) {
                    const pod_coll_algorithm *a = pod_coll_algorithm_at(i);
                    const bool long_ring = n > 100 && strncmp(a->name, "bucket", 6) != 0;
                    if (is_mine(a) && !long_ring && pod_coll_algorithm_fits(a, &f.request)
                        && sample_takes(proved++, 8)) {
                        fixture_prove(&f, a, 0);
                    }
                }
            }
            fixture_fini(&f);
        }
    }
    cr_assert_gt(proved, 1000);
}

/* Then it is no lattice, and its axes are rings and lines like those of a plain one. */
Test(collectives_rings, walk_twisted_slices_with_an_open_axis)
{
    static const char *const wraps[] = {"y", "xz", "xy"};
    static const char *const names[] = {"ring", "line", "bucket", "direct"};
    for (size_t w = 0; w < sizeof wraps / sizeof *wraps; ++w) {
        const shape s = {
            {4,  4, 8},
            wraps[w], true, 7, 0, {{0}}
        };
        for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
            fixture f;
            fixture_init(&f, &s, i < 3 ? POD_ALL_GATHER : POD_ALL_TO_ALL, 128 * 128);
            cr_assert(pod_coll_algorithm_fits(fixture_find(names[i]), &f.request), "%s on %s",
                      names[i], f.name);
            fixture_prove(&f, fixture_find(names[i]), 0);
            fixture_fini(&f);
        }
    }
}

static double predicted_us(const fixture *f, const char *name)
{
    return pod_time_to_us(fixture_predicted_ps(f, name));
}

Test(collectives_rings, meet_the_cost_table)
{
    int met = 0;
    for (int i = 0; i < COST_TABLE_ROWS; ++i) {
        shape s = {
            {0,  0, 0},
            "xyz", false, 7, 0, {{0}}
        };
        for (int a = 0; a < 3; ++a) {
            s.dims[a] = cost_table[i].dims[a];
        }
        for (int b = 0; b < 3; ++b) {
            fixture f;
            fixture_init(&f, &s, POD_ALL_REDUCE, cost_table_bytes[b] / 2);
            const pod_coll_algorithm *algorithm = fixture_find(cost_table[i].algorithm);
            if (is_mine(algorithm) && pod_coll_algorithm_fits(algorithm, &f.request)) {
                const double us = predicted_us(&f, cost_table[i].algorithm);
                cr_assert_float_eq(us / cost_table[i].us[b], 1.0, 0.001, "%s %s: %.3f us, not %.3f",
                                   cost_table[i].algorithm, f.name, us, cost_table[i].us[b]);
                ++met;
            }
            fixture_fini(&f);
        }
    }
    cr_assert_eq(met, 20 * 3);
}

Test(collectives_rings, one_rank_stands_for_all_of_a_closed_group)
{
    static const shape closed[] = {
        {{5, 1, 1}, "x",   false, 7, 0, {{0}}},
        {{4, 4, 1}, "xy",  false, 7, 0, {{0}}},
        {{2, 3, 4}, "xyz", false, 7, 0, {{0}}},
        {{4, 4, 8}, "xyz", true,  7, 0, {{0}}},
    };
    for (size_t s = 0; s < sizeof closed / sizeof *closed; ++s) {
        for (int i = 0; i < pod_coll_algorithm_count(); ++i) {
            const pod_coll_algorithm *a = pod_coll_algorithm_at(i);
            fixture f;
            fixture_init(&f, &closed[s], POD_ALL_REDUCE, 9600000);
            if (is_mine(a) && pod_coll_algorithm_fits(a, &f.request)) {
                pod_coll_schedule *schedule;
                cr_assert(a->build(&f.request, &schedule, NULL) == POD_OK);
                pod_coll_estimate one;
                pod_coll_estimate all;
                cr_assert(pod_coll_estimate_get(&f.request, schedule, true, &one, NULL) == POD_OK);
                cr_assert(pod_coll_estimate_get(&f.request, schedule, false, &all, NULL) == POD_OK);
                cr_assert_float_eq((double)one.time_ps / (double)all.time_ps, 1.0, 0.005,
                                   "%s on %s: %lld and %lld ps", a->name, f.name,
                                   (long long)one.time_ps, (long long)all.time_ps);
                pod_coll_schedule_free(schedule);
            }
            fixture_fini(&f);
        }
    }
}
