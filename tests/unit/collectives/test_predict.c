/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules followed on paper, against closed forms and with chips that do the same as one cell. */
#include "fixture.h"

static const shape ring8 = {
    {8,  1, 1},
    "x", false, 1, 0, {{0}}
};
static const shape torus = {
    {4,  8, 1},
    "xy", false, 3, 0, {{0}}
};
static const shape open_grid = {
    {4,  4, 1},
    "", false, 3, 0, {{0}}
};

static pod_coll_estimate estimate_of(const fixture *f, const char *name, pod_coll_likeness likeness)
{
    pod_error err = {0};
    pod_coll_schedule *schedule = NULL;
    pod_coll_axes axes = {0};
    pod_coll_fold fold = {0};
    pod_coll_estimate estimate = {0};
    cr_assert_eq(fixture_find(name)->build(&f->request, &schedule, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_coll_axes_init(&axes, &f->request, &err), POD_OK);
    cr_assert_eq(pod_coll_fold_init(&fold, &f->request, &axes, likeness, &err), POD_OK);
    fold.hops_max = INT64_MAX;
    cr_assert_eq(pod_coll_estimate_folded(&f->request, schedule, &fold, &estimate, &err), POD_OK,
                 "%s", err.text);
    cr_assert(estimate.complete);
    pod_coll_fold_fini(&fold);
    pod_coll_axes_fini(&axes);
    pod_coll_schedule_free(schedule);
    return estimate;
}

/* A ring of 8, one way: 2 · 7 steps of an eighth of the vector at 45 GB/s and a hop of 1 us. */
Test(predict, a_ring_all_reduce_takes_its_closed_form)
{
    fixture f;
    fixture_init(&f, &ring8, POD_ALL_REDUCE, 45 * 8 * 1000);
    const pod_coll_estimate estimate = estimate_of(&f, "hamiltonian_ring_1dir", POD_LIKE_ALL);
    const int64_t bytes = 45 * 8 * 1000 * 2 / 8; /* a message */
    const pod_time_ps step_ps = POD_PS_PER_US + bytes * POD_PS_PER_US / 45000;
    cr_expect_eq(estimate.time_ps, 14 * step_ps, "%lld ps, not %lld", (long long)estimate.time_ps,
                 (long long)(14 * step_ps));
    cr_expect_eq(estimate.link_ps, 14 * (step_ps - POD_PS_PER_US));
    fixture_fini(&f);
}

/* One cell for all ranks says what all ranks say, wherever all do the same; two cells where even and odd ones do. */
Test(predict, one_cell_takes_as_long_as_all_ranks)
{
    static const struct {
        const char *name;
        pod_coll_likeness likeness;
    } cases[] = {
        {"gather", POD_LIKE_ALL   },
        {"swing",  POD_LIKE_PARITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        fixture_init(&f, &torus, POD_ALL_REDUCE, 45 * 64 * 100);
        const pod_coll_estimate all = estimate_of(&f, cases[i].name, POD_LIKE_NONE);
        const pod_coll_estimate few = estimate_of(&f, cases[i].name, cases[i].likeness);
        cr_expect_eq(few.time_ps, all.time_ps, "%s: %lld and %lld ps", cases[i].name,
                     (long long)few.time_ps, (long long)all.time_ps);
        cr_expect_eq(few.link_ps, all.link_ps, "%s", cases[i].name);
        fixture_fini(&f);
    }
}

/* Along closed axes the ranks of a group with an open axis do the same, on a twisted slice too. */
Test(predict, open_axes_alone_tell_ranks_apart)
{
    static const shape shapes[] = {
        {{4, 8, 1}, "y",   false, 3, 0, {{0}}                                                },
        {{3, 4, 8}, "xz",  false, 7, 0, {{0}}                                                },
        {{4, 4, 8}, "xyz", true,  5, 0, {{0}}                                                },
        {{4, 4, 8}, "xyz", true,  0, 3, {{0, 4, 1, false}, {1, 2, 2, false}, {2, 8, 1, true}}},
    };
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] * 3; i++) {
        fixture f;
        fixture_init(&f, &shapes[i / 3], ops[i % 3], 45 * 1024 * 96);
        const pod_coll_estimate all = estimate_of(&f, "bucket", POD_LIKE_NONE);
        const pod_coll_estimate few = estimate_of(&f, "bucket", POD_LIKE_ALL);
        cr_expect_eq(few.time_ps, all.time_ps, "%s: %lld and %lld ps", f.name,
                     (long long)few.time_ps, (long long)all.time_ps);
        cr_expect_eq(few.link_ps, all.link_ps, "%s", f.name);
        fixture_fini(&f);
    }
}

/* It gives up where it is told to, and says so. */
Test(predict, too_many_messages_are_not_followed)
{
    fixture f;
    pod_error err = {0};
    pod_coll_schedule *schedule = NULL;
    fixture_init(&f, &open_grid, POD_ALL_GATHER, 1 << 12);
    cr_assert_eq(fixture_find("bucket")->build(&f.request, &schedule, &err), POD_OK);
    pod_coll_fold fold = {.like = NULL, .cells = f.group.size, .hops_max = 3};
    pod_coll_estimate estimate = {.complete = true};
    cr_assert_eq(pod_coll_estimate_folded(&f.request, schedule, &fold, &estimate, &err), POD_OK);
    cr_expect_not(estimate.complete);
    pod_coll_schedule_free(schedule);
    fixture_fini(&f);
}

/* Launch, the busiest link and the rest are the whole. */
Test(predict, parts_of_a_prediction_add_up)
{
    fixture f;
    pod_coll_prediction prediction;
    fixture_init(&f, &torus, POD_REDUCE_SCATTER, 1 << 18);
    const pod_coll_estimate unlaunched = estimate_of(&f, "bucket", POD_LIKE_NONE);
    f.request.launch_ps = 3 * POD_PS_PER_US;
    const pod_coll_estimate estimate = estimate_of(&f, "bucket", POD_LIKE_NONE);
    pod_coll_prediction_from(&f.request, &estimate, &prediction);
    pod_time_ps sum = 0;
    for (int i = 0; i < prediction.nterms; i++) {
        sum += prediction.term[i].time_ps;
    }
    cr_expect_eq(sum, prediction.total_ps);
    cr_expect_eq(prediction.total_ps, estimate.time_ps);
    cr_expect_eq(estimate.time_ps, 3 * POD_PS_PER_US + unlaunched.time_ps);
    fixture_fini(&f);
}
