/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all: direct and per_axis. */
#include "fixture.h"

#include "collectives/bounds/bound.h"

Test(exchange, brings_every_block_to_its_rank)
{
    static const char *const names[] = {"direct", "per_axis"};
    int proved = 0;
    for (int s = 0; s < ALL_SHAPES; ++s) {
        for (int i = 0; i < 2; ++i) {
            fixture f;
            fixture_init(&f, &all_shapes[s], POD_ALL_TO_ALL, 0);
            const int64_t n = f.group.size;
            const int64_t sizes[] = {1, n - 1, n, n + 1, 13 * n + n / 2, 24 * n};
            for (int e = n > 100 ? 4 : 0; e < 6; ++e) {
                f.request.elements = sizes[e];
                if (pod_coll_algorithm_fits(fixture_find(names[i]), &f.request)) {
                    fixture_prove(&f, fixture_find(names[i]), f.group.size > 32 ? 0 : 2);
                    ++proved;
                }
            }
            fixture_fini(&f);
        }
    }
    cr_assert_gt(proved, 300);
}

Test(exchange, by_axes_sends_few_messages)
{
    static const shape torus = {
        {4,  4, 8},
        "xyz", false, 7, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &torus, POD_ALL_TO_ALL, 128 * 30);
    pod_coll_schedule *schedule = NULL;
    pod_coll_counts counts;
    cr_assert(fixture_find("per_axis")->build(&f.request, &schedule, NULL) == POD_OK);
    cr_assert(pod_coll_count(schedule, &counts, NULL) == POD_OK);
    /* three parts, each 3 + 3 + 7 messages and a copy per axis */
    cr_assert_eq(counts.messages, 128 * 3 * (13 + 3));
    pod_coll_schedule_free(schedule);
    fixture_fini(&f);
}

/* S·k/8 over the longest axis, and the hop bound of twisted slices; for small sizes
 * the farthest pair. */
Test(exchange, is_predicted_by_the_busiest_link_or_the_farthest_pair)
{
    static const struct {
        shape shape;
        const char *algorithm;
        double link;
        double over; /* that much longer, at most */
        double hops_us;
    } cases[] = {
        {{{4, 4, 1}, "xy", false, 7, 0, {{0}}},  "direct",   0.5,    0.01,  4.0 },
        {{{8, 8, 8}, "xyz", false, 7, 0, {{0}}}, "direct",   1.0,    0.01,  12.0},
        {{{5, 5, 5}, "xyz", false, 7, 0, {{0}}}, "per_axis", 0.6,    0.01,  6.0 },
        {{{4, 4, 8}, "xyz", false, 7, 0, {{0}}}, "per_axis", 1.0,    0.01,  8.0 },
        {{{4, 4, 8}, "xyz", true, 7, 0, {{0}}},  "direct",   0.5729, 0.01,  6.0 },
        {{{4, 8, 8}, "xyz", true, 7, 0, {{0}}},  "direct",   0.7188, 0.025, 6.0 },
        {{{1, 8, 1}, "", false, 7, 0, {{0}}},    "direct",   2.0,    0.01,  7.0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        fixture f;
        fixture_init(&f, &cases[i].shape, POD_ALL_TO_ALL, 32 << 20);
        pod_coll_prediction p;
        cr_assert(fixture_find(cases[i].algorithm)->predict(&f.request, &p, NULL) == POD_OK);
        const double link = pod_time_to_s(p.total_ps) * 45e9 / (64 << 20);
        cr_assert(link > cases[i].link * 0.999 && link < cases[i].link * (1 + cases[i].over),
                  "%s: %g", f.name, link);
        f.request.elements = 1;
        cr_assert(fixture_find(cases[i].algorithm)->predict(&f.request, &p, NULL) == POD_OK);
        const double us = pod_time_to_us(p.total_ps);
        cr_assert(us >= cases[i].hops_us && us < cases[i].hops_us * 1.001, "%s: %g us", f.name, us);
        fixture_fini(&f);
    }
}

Test(exchange, refuses_what_the_other_does_better)
{
    static const shape twisted = {
        {4,  4, 8},
        "xyz", true, 7, 0, {{0}}
    };
    static const shape large = {
        {16,  16, 16},
        "xyz", false, 7, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &twisted, POD_ALL_TO_ALL, 1 << 20);
    cr_assert(fixture_find("per_axis")->applies(&f.request, &f.err) == POD_E_INVALID);
    cr_assert(strstr(f.err.text, "use direct"), "%s", f.err.text);
    fixture_fini(&f);
    fixture_init(&f, &large, POD_ALL_TO_ALL, 1 << 20);
    cr_assert(fixture_find("direct")->applies(&f.request, &f.err) == POD_E_INVALID);
    cr_assert(strstr(f.err.text, "use per_axis"), "%s", f.err.text);
    fixture_fini(&f);
}
