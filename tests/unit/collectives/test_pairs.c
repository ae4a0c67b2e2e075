/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "collectives/stepcost.h"

static const char *const names[] = {"recdoub_latency_1port",
                                    "halving_doubling_1port",
                                    "halving_doubling_2D_mirrored",
                                    "swing_latency_1port",
                                    "swing_latency_2D",
                                    "swing_bw_2D",
                                    "swing"};
enum { NAMES = sizeof names / sizeof *names };

static const pod_coll_algorithm *find(const char *name)
{
    const pod_coll_algorithm *algorithm = NULL;
    cr_assert(pod_coll_algorithm_find(name, &algorithm, NULL) == POD_OK, "%s", name);
    return algorithm;
}

static void prove(const fixture *f, const pod_coll_algorithm *algorithm)
{
    pod_error err = {0};
    pod_coll_schedule *schedule = NULL;
    pod_coll_fault fault;
    cr_assert(algorithm->build(&f->request, &schedule, &err) == POD_OK, "%s", err.text);
    cr_assert(pod_coll_check_orders(schedule, f->group.size > 32 ? 0 : 2, &fault, &err) == POD_OK,
              "%s on %s: %s", algorithm->name, f->name, err.text);
    pod_coll_schedule_free(schedule);
}

Test(pairs, move_every_contribution_once, .timeout = 60)
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
                const pod_coll_algorithm *algorithm = find(names[i / 5]);
                if (pod_coll_algorithm_fits(algorithm, &f.request)) {
                    prove(&f, algorithm);
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
        cr_assert(find(names[i])->applies(&f.request, &err) == POD_E_INVALID);
        cr_assert(strstr(err.text, "6") && strstr(err.text, "; use "), "%s", err.text);
    }
    fixture_fini(&f);
}

/* COLLECTIVES.md section 3: alpha 1 us, 45 GB/s; us at 1 KiB, 1 MiB, 64 MiB of all-reduce. */
static const struct {
    int32_t dims[3];
    const char *algorithm;
    double us[3];
} cost_table[] = {
    {{4, 4, 1},   "recdoub_latency_1port",        {6.091, 99.207, 5971.232}   },
    {{4, 4, 1},   "halving_doubling_1port",       {12.043, 55.691, 2808.203}  },
    {{4, 4, 1},   "halving_doubling_2D_mirrored", {12.013, 25.107, 850.861}   },
    {{4, 4, 1},   "swing_latency_1port",          {4.091, 97.207, 5969.232}   },
    {{4, 4, 1},   "swing_latency_2D",             {4.023, 27.302, 1495.308}   },
    {{4, 4, 1},   "swing_bw_2D",                  {8.011, 18.923, 707.051}    },
    {{8, 8, 1},   "recdoub_latency_1port",        {14.228, 247.017, 14927.081}},
    {{8, 8, 1},   "halving_doubling_1port",       {28.055, 84.798, 3663.063}  },
    {{8, 8, 1},   "halving_doubling_2D_mirrored", {28.017, 45.476, 1146.481}  },
    {{8, 8, 1},   "swing_latency_1port",          {10.182, 196.414, 11940.465}},
    {{8, 8, 1},   "swing_latency_2D",             {10.057, 68.254, 3738.270}  },
    {{8, 8, 1},   "swing_bw_2D",                  {20.012, 32.561, 823.908}   },
    {{16, 16, 1}, "recdoub_latency_1port",        {30.501, 542.637, 32838.778}},
    {{16, 16, 1}, "halving_doubling_1port",       {60.062, 123.351, 4114.494} },
    {{16, 16, 1}, "halving_doubling_2D_mirrored", {60.020, 80.207, 1353.244}  },
    {{16, 16, 1}, "swing_latency_1port",          {20.319, 346.224, 20898.313}},
    {{16, 16, 1}, "swing_latency_2D",             {20.114, 136.508, 7476.540} },
    {{16, 16, 1}, "swing_bw_2D",                  {40.013, 53.244, 887.599}   },
    {{4, 4, 4},   "recdoub_latency_1port",        {9.137, 148.810, 8956.849}  },
    {{4, 4, 4},   "halving_doubling_1port",       {18.045, 63.875, 2954.013}  },
    {{4, 4, 4},   "halving_doubling_2D_mirrored", {18.008, 26.495, 561.706}   },
    {{4, 4, 4},   "swing_latency_1port",          {6.137, 145.810, 8953.849}  },
    {{4, 4, 4},   "swing_latency_2D",             {6.023, 29.302, 1497.308}   },
    {{4, 4, 4},   "swing_bw_2D",                  {12.007, 19.646, 501.335}   },
    {{8, 8, 8},   "recdoub_latency_1port",        {21.341, 370.525, 22390.621}},
    {{8, 8, 8},   "halving_doubling_1port",       {42.051, 94.247, 3385.792}  },
    {{8, 8, 8},   "halving_doubling_2D_mirrored", {42.010, 51.770, 667.262}   },
    {{8, 8, 8},   "swing_latency_1port",          {15.273, 294.620, 17910.697}},
    {{8, 8, 8},   "swing_latency_2D",             {15.057, 73.254, 3743.270}  },
    {{8, 8, 8},   "swing_bw_2D",                  {30.008, 37.964, 539.724}   },
};

Test(pairs, in_lockstep_cost_what_the_table_says, .timeout = 60)
{
    static const int64_t bytes[] = {1024, 1 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof cost_table / sizeof *cost_table; ++i) {
        shape s = {
            {1,  1, 1},
            "xyz", false, 7, 0, {{0}}
        };
        for (int a = 0; a < 3; ++a) {
            s.dims[a] = cost_table[i].dims[a];
        }
        for (int b = 0; b < 3; ++b) {
            fixture f;
            fixture_init(&f, &s, POD_ALL_REDUCE, bytes[b] / 2);
            pod_coll_schedule *schedule = NULL;
            pod_coll_lockstep sums;
            cr_assert(find(cost_table[i].algorithm)->build(&f.request, &schedule, NULL) == POD_OK);
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

/* Simulated (sim/net.h): messages that come to a link one after another don't wait for each other. */
Test(pairs, are_predicted_as_they_run_when_messages_cut_through)
{
    static const struct {
        const char *algorithm;
        int64_t bytes;
        double us;
    } cases[] = {
        {"recdoub_latency_1port",  1024,    14.1138 },
        {"recdoub_latency_1port",  1 << 20, 240.3502},
        {"halving_doubling_1port", 1 << 20, 77.5211 },

        {"swing_latency_1port",    1 << 20, 192.4135},
        {"swing_latency_2D",       1 << 20, 65.2542 },
        {"swing_bw_2D",            1 << 20, 31.4688 },
        {"swing_latency_2D",       1024,    10.0341 },
    };
    static const shape torus = {
        {8,  8, 1},
        "xy", false, 7, 0, {{0}}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        fixture f;
        fixture_init(&f, &torus, POD_ALL_REDUCE, cases[i].bytes / 2);
        pod_coll_prediction p;
        cr_assert(find(cases[i].algorithm)->predict(&f.request, &p, NULL) == POD_OK);
        const double us = pod_time_to_us(p.total_ps);
        cr_assert(us > cases[i].us * 0.98 && us < cases[i].us * 1.02, "%s: %.4f, simulated %.4f",
                  cases[i].algorithm, us, cases[i].us);
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
        const char *same_as;
    } cases[] = {
        {1024,     "swing_latency_2D"},
        {64 << 20, "swing_bw_2D"     }
    };
    for (int i = 0; i < 2; ++i) {
        fixture f;
        fixture_init(&f, &torus, POD_ALL_REDUCE, cases[i].bytes / 2);
        pod_coll_prediction mine;
        pod_coll_prediction other;
        cr_assert(find("swing")->predict(&f.request, &mine, NULL) == POD_OK);
        cr_assert(find(cases[i].same_as)->predict(&f.request, &other, NULL) == POD_OK);
        cr_assert_eq(mine.total_ps, other.total_ps);
        fixture_fini(&f);
    }
}
