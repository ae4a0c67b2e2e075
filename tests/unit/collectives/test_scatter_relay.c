/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/algorithms/gather.h"
#include "collectives/embedding/axes.h"
#include "fixture.h"

static int axes_of(const fixture *f)
{
    pod_coll_axes axes;
    cr_assert(pod_coll_axes_init(&axes, &f->request, NULL) == POD_OK);
    const int naxes = axes.naxes;
    pod_coll_axes_fini(&axes);
    return naxes;
}

static void prove_plan(const fixture *f, int turns, int halved)
{
    const pod_relay_plan plan = {.algorithm = "scatter_relay", .turns = turns, .halved = halved};
    pod_error err = {0};
    pod_coll_schedule *schedule = NULL;
    pod_coll_fault fault;
    cr_assert(pod_relay_build(&f->request, &plan, &schedule, &err) == POD_OK, "%s", err.text);
    const int orders = f->group.size > 32 ? 0 : 2;
    cr_assert(pod_coll_check_orders(schedule, orders, &fault, &err) == POD_OK,
              "%s, %d turns, %d halved: %s", f->name, turns, halved, err.text);
    pod_coll_schedule_free(schedule);
}

Test(collectives_scatter_relay, moves_every_contribution_once_however_planned)
{
    int proved = 0;
    for (int s = 0; s < ALL_SHAPES; ++s) {
        fixture f;
        fixture_init(&f, &all_shapes[s], POD_ALL_REDUCE, 0);
        const bool fits = pod_coll_algorithm_fits(fixture_find("scatter_relay"), &f.request);
        const int naxes = fits ? axes_of(&f) : 0;
        const int64_t n = f.group.size;
        const int64_t sizes[] = {100 * n + 7, 1, n - 1, n};
        for (int i = 0; i < (n > 32 ? 1 : 4); ++i) {
            f.request.elements = sizes[i];
            for (int turns = 1; turns <= naxes; ++turns) {
                for (int halved = 0; halved <= naxes; ++halved) {
                    prove_plan(&f, turns, halved);
                    ++proved;
                }
            }
        }
        fixture_fini(&f);
    }
    cr_assert_gt(proved, 400);
}

static double predicted_us(const fixture *f, const char *name)
{
    return pod_time_to_us(fixture_predicted_ps(f, name));
}

/* On 8x8x8 twice 4 hops and 8 more, where gather takes 12 and bucket 24; on 4x8x16 2 · 2 + 4 + 8, the short axis halved
 * by all parts. */
Test(collectives_scatter_relay, takes_two_ways_along_the_halved_axis_only)
{
    static const struct {
        shape shape;
        double hops;
    } cases[] = {
        {{{8, 8, 8}, "xyz", false, 7, 0, {{0}}},  16.0},
        {{{4, 8, 16}, "xyz", false, 7, 0, {{0}}}, 16.0},
        {{{16, 16, 1}, "xy", false, 7, 0, {{0}}}, 24.0},
        {{{4, 4, 1}, "", false, 7, 0, {{0}}},     9.0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        fixture f;
        fixture_init(&f, &cases[i].shape, POD_ALL_REDUCE, 1);
        const double us = predicted_us(&f, "scatter_relay");
        cr_assert_float_eq(us, cases[i].hops, 0.1, "%s: %g us", f.name, us);
        fixture_fini(&f);
    }
}

/* 512 KiB at 90 GB/s: a sixth less than the best of the others on 8x8x8, more where no axis is a power of two. */
Test(collectives_scatter_relay, wins_in_the_middle)
{
    static const shape shapes[] = {
        {{8, 8, 8},   "xyz", false, 7, 0, {{0}}},
        {{8, 12, 12}, "xyz", false, 7, 0, {{0}}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        fixture f;
        fixture_init(&f, &shapes[i], POD_ALL_REDUCE, 1 << 18);
        f.request.link_rate = pod_rate_make(90e9);
        const pod_coll_algorithm *chosen = NULL;
        pod_coll_prediction best;
        cr_assert(pod_coll_choose(&f.request, &chosen, &best, NULL) == POD_OK);
        cr_assert_str_eq(chosen->name, "scatter_relay");
        cr_assert_lt(pod_time_to_us(best.total_ps), 0.85 * predicted_us(&f, "bucket"));
        cr_assert_lt(pod_time_to_us(best.total_ps), 0.85 * predicted_us(&f, "gather"));
        fixture_fini(&f);
    }
}

Test(collectives_scatter_relay, refuses_single_axes_and_twists)
{
    static const shape shapes[] = {
        {{8, 1, 1}, "x",   false, 7, 0, {{0}}},
        {{4, 4, 8}, "xyz", true,  7, 0, {{0}}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        fixture f;
        fixture_init(&f, &shapes[i], POD_ALL_REDUCE, 100);
        cr_assert(fixture_find("scatter_relay")->applies(&f.request, &f.err) == POD_E_INVALID);
        cr_assert(strstr(f.err.text, "bucket") != NULL, "%s", f.err.text);
        fixture_fini(&f);
    }
}
