/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/algorithms/waves.h"
#include "fixture.h"

static const pod_coll_op wave_ops[] = {POD_ALL_GATHER, POD_REDUCE_SCATTER};

static pod_coll_schedule *build(fixture *f, int axis, int segments, int cuts, bool even)
{
    pod_coll_axes axes;
    pod_coll_shares shares;
    pod_coll_schedule *schedule;
    cr_assert(pod_coll_axes_init(&axes, &f->request, NULL) == POD_OK);
    cr_assert(pod_waves_fit(&axes, f->request.op));
    cr_assert(pod_coll_shares_get_ending(&axes, even, axis, &shares, NULL) == POD_OK);
    const pod_waves_plan plan = {.algorithm = "bucket",
                                 .long_axis = axis,
                                 .segments = segments,
                                 .cuts = cuts,
                                 .shares = &shares};
    cr_assert(pod_waves_build(&f->request, &axes, &plan, &schedule, NULL) == POD_OK);
    return schedule;
}

Test(collectives_waves, move_every_contribution_once)
{
    static const int32_t dims[][3] = {
        {2, 3,  4 },
        {3, 3,  9 },
        {4, 4,  8 },
        {2, 2,  12},
        {2, 10, 3 }
    };
    for (size_t i = 0; i < sizeof dims / sizeof *dims; ++i) {
        const shape s = {
            {dims[i][0],  dims[i][1], dims[i][2]},
            "xyz", false, 7, 0, {{0}}
        };
        const int axis = dims[i][1] > dims[i][2] ? 1 : 2;
        for (int o = 0; o < 2; ++o) {
            for (int segments = 1; 2 * segments <= dims[i][axis]; ++segments) {
                fixture f;
                fixture_init(&f, &s, wave_ops[o], 1000 * segments + 13);
                pod_coll_schedule *schedule = build(&f, axis, segments, 1 + segments % 2, o == 0);
                const pod_status st = pod_coll_check(schedule, &f.err);
                cr_assert(st == POD_OK, "%s, %d segments: %s", f.name, segments, f.err.text);
                pod_coll_schedule_free(schedule);
                fixture_fini(&f);
            }
        }
    }
}

/* Ranks that differ only off the long axis do the same: following one line of them is exact. */
Test(collectives_waves, a_line_of_ranks_stands_for_all)
{
    static const shape s = {
        {3,   4, 10},
        "xyz", false, 7, 0, {{0}}
    };
    for (int o = 0; o < 2; ++o) {
        fixture f;
        fixture_init(&f, &s, wave_ops[o], 120 * 480000);
        pod_coll_schedule *schedule = build(&f, 2, 5, 1, true);
        int32_t like[120];
        for (int32_t rank = 0; rank < 120; ++rank) {
            like[rank] = rank / 12;
        }
        const pod_coll_fold fold = {.like = like, .cells = 10, .hops_max = INT64_MAX};
        pod_coll_estimate line;
        pod_coll_estimate all;
        cr_assert(pod_coll_estimate_folded(&f.request, schedule, &fold, &line, NULL) == POD_OK);
        cr_assert(pod_coll_estimate_get(&f.request, schedule, false, &all, NULL) == POD_OK);
        cr_assert_float_eq((double)line.time_ps / (double)all.time_ps, 1.0, 0.002);
        pod_coll_schedule_free(schedule);
        fixture_fini(&f);
    }
}

/* 4x4x244: without waves 0.94 of the bound, however finely it is cut. */
Test(collectives_waves, hide_the_way_round_a_long_axis)
{
    static const shape s = {
        {4,    4, 244},
        "xyz", false, 7, 0, {{0}}
    };
    for (int o = 0; o < 2; ++o) {
        fixture f;
        fixture_init(&f, &s, wave_ops[o], 1 << 29);
        f.request.link_rate = pod_rate_make(90e9);
        const pod_coll_algorithm *bucket;
        pod_coll_prediction prediction;
        cr_assert(pod_coll_algorithm_find("bucket", &bucket, NULL) == POD_OK);
        cr_assert(bucket->predict(&f.request, &prediction, NULL) == POD_OK);
        const double bound_s = (1 << 30) / (6 * 90e9) * 3903.0 / 3904.0;
        cr_assert_gt(bound_s / pod_time_to_s(prediction.total_ps), 0.955);
        fixture_fini(&f);
    }
}
