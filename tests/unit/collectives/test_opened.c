/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "../sample.h"

static const pod_coll_op opened_ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER,
                                         POD_BROADCAST};
enum { OPENED_OPS = sizeof opened_ops / sizeof *opened_ops };

Test(collectives_opened, does_every_operation_on_every_shape_that_it_fits)
{
    int number = 0;
    int proved = 0;
    for (int s = 0; s < ALL_SHAPES; ++s) {
        for (int o = 0; o < OPENED_OPS; ++o) {
            fixture f;
            fixture_init(&f, &all_shapes[s], opened_ops[o], 5040);
            if (pod_coll_algorithm_fits(fixture_find("opened"), &f.request)
                && sample_takes(number++, 4)) {
                fixture_prove(&f, fixture_find("opened"), 1);
                ++proved;
            }
            fixture_fini(&f);
        }
    }
    cr_assert_gt(proved, 4);
}

/* What auto takes on a slice whose axis of two is closed, and on the same slice with that axis open. */
Test(collectives_opened, never_lets_a_second_cable_slow_a_collective_down)
{
    static const shape closed = {
        {2,  5, 2},
        "xy", false, 7, 0, {{0}}
    };
    static const shape open = {
        {2,  5, 2},
        "y", false, 7, 0, {{0}}
    };
    for (int o = 0; o < OPENED_OPS; ++o) {
        for (int64_t elements = 10000; elements <= 10000000; elements *= 10) {
            pod_time_ps took_ps[2];
            for (int i = 0; i < 2; ++i) {
                fixture f;
                const pod_coll_algorithm *algorithm;
                pod_coll_prediction prediction;
                fixture_init(&f, i == 0 ? &closed : &open, opened_ops[o], elements);
                f.request.cut_min_bytes = INT64_C(1) << 17;
                cr_assert(pod_coll_choose(&f.request, &algorithm, &prediction, NULL) == POD_OK);
                took_ps[i] = prediction.total_ps;
                fixture_fini(&f);
            }
            cr_assert_leq(took_ps[0], took_ps[1], "%s of %d", pod_coll_op_name(opened_ops[o]),
                          (int)elements);
        }
    }
}
