/* SPDX-License-Identifier: Apache-2.0 */
#include "cost_table.h"
#include "fixture.h"

#include "collectives/predict/stepcost.h"

static const char *const names[] = {"recdoub_latency_1port",
                                    "halving_doubling_1port",
                                    "halving_doubling_2D_mirrored",
                                    "swing_latency_1port",
                                    "swing_latency_2D",
                                    "swing_bw_2D",
                                    "swing"};
enum { NAMES = sizeof names / sizeof *names };

static bool is_of_pairs(const char *name)
{
    for (int i = 0; i < NAMES; ++i) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

Test(pairs, move_every_contribution_once)
{
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER};
    int proved = 0;
    for (int s = 0; s < ALL_SHAPES; ++s) {
        for (int o = 0; o < 3; ++o) {
            fixture f;
            fixture_init(&f, &all_shapes[s], ops[o], 0);
            const int64_t n = f.group.size;
            const int64_t sizes[] = {1, n - 1, n, n + 1, 1000 * n + 7};
            for (int i = n > 64 ? 4 : 0; i<5 * NAMES; i += n> 64 ? 5 : 1) {
                f.request.elements = sizes[i % 5];
                const pod_coll_algorithm *algorithm = fixture_find(names[i / 5]);
                if (pod_coll_algorithm_fits(algorithm, &f.request)) {
                    fixture_prove(&f, algorithm, f.group.size > 32 ? 0 : 2);
                    ++proved;
                }
            }
            fixture_fini(&f);
        }
    }
    cr_assert_gt(proved, 1000);
}

Test(pairs, refuse_axes_that_are_no_power_of_two_and_name_what_works)
{
    static const shape odd = {
        {4,  6, 1},
        "xy", false, 7, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &odd, POD_ALL_REDUCE, 100);
    for (int i = 0; i < NAMES; ++i) {
        pod_error err = {0};
        cr_assert(fixture_find(names[i])->applies(&f.request, &err) == POD_E_INVALID);
        cr_assert(strstr(err.text, "6") && strstr(err.text, "; use "), "%s", err.text);
    }
    fixture_fini(&f);
}

Test(pairs, in_lockstep_cost_what_the_table_says)
{
    int pairs = 0;
    for (int i = 0; i < COST_TABLE_ROWS; ++i) {
        if (!is_of_pairs(cost_table[i].algorithm)) {
            continue;
        }
        ++pairs;
        shape s = {
            {1,  1, 1},
            "xyz", false, 7, 0, {{0}}
        };
        for (int a = 0; a < 3; ++a) {
            s.dims[a] = cost_table[i].dims[a];
        }
        for (int b = 0; b < 3; ++b) {
            fixture f;
            fixture_init(&f, &s, POD_ALL_REDUCE, cost_table_bytes[b] / 2);
            pod_coll_schedule *schedule = NULL;
            pod_coll_lockstep sums;
            cr_assert(fixture_find(cost_table[i].algorithm)->build(&f.request, &schedule, NULL)
                      == POD_OK);
            cr_assert(pod_coll_count_lockstep(&f.request, schedule, &sums, NULL) == POD_OK);
            pod_coll_schedule_free(schedule);
            const double us = (double)sums.hops + sums.busiest_bytes / 45e9 * 1e6;
            const double want = cost_table[i].us[b];
            cr_assert(us > want * 0.999 && us < want * 1.001, "%s on %s: %.3f, table %.3f",
                      cost_table[i].algorithm, f.name, us, want);
            fixture_fini(&f);
        }
    }
}

/* Simulated: messages that come to a link one after another don't wait for each other. */
Test(pairs, swing_is_predicted_as_it_runs_when_messages_cut_through)
{
    static const struct {
        int64_t bytes;
        double us;
    } cases[] = {
        {1024,     10.0341 },
        {1 << 20,  31.4688 },
        {64 << 20, 817.9083},
    };
    static const shape torus = {
        {8,  8, 1},
        "xy", false, 7, 0, {{0}}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        fixture f;
        fixture_init(&f, &torus, POD_ALL_REDUCE, cases[i].bytes / 2);
        pod_coll_prediction p;
        cr_assert(fixture_find("swing")->predict(&f.request, &p, NULL) == POD_OK);
        const double us = pod_time_to_us(p.total_ps);
        cr_assert(us > cases[i].us * 0.98 && us < cases[i].us * 1.02, "%.4f, simulated %.4f", us,
                  cases[i].us);
        fixture_fini(&f);
    }
}

Test(pairs, swing_takes_the_form_that_is_faster)
{
    static const shape torus = {
        {8,  8, 1},
        "xy", false, 7, 0, {{0}}
    };
    static const struct {
        int64_t bytes;
        int32_t slots; /* whole vectors, or a block for every chip */
    } cases[] = {
        {1024,     1 },
        {64 << 20, 64}
    };
    for (int i = 0; i < 2; ++i) {
        fixture f;
        fixture_init(&f, &torus, POD_ALL_REDUCE, cases[i].bytes / 2);
        pod_coll_schedule *schedule = NULL;
        cr_assert(fixture_find("swing")->build(&f.request, &schedule, NULL) == POD_OK);
        cr_assert_eq(schedule->parts[0].slots, cases[i].slots);
        pod_coll_schedule_free(schedule);
        fixture_fini(&f);
    }
}
