/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "../sample.h"

static const pod_coll_algorithm *named(const char *name)
{
    const pod_coll_algorithm *algorithm = NULL;
    cr_assert(pod_coll_algorithm_find(name, &algorithm, NULL) == POD_OK);
    return algorithm;
}

Test(as_all_reduce, brings_the_vector_to_everyone)
{
    for (int s = 0; s < ALL_SHAPES; s = sample_next(s, 8)) {
        fixture f;
        fixture_init(&f, &all_shapes[s], POD_BROADCAST, 0);
        const int64_t n = f.group.size;
        const int64_t sizes[] = {1, n - 1, n + 1, 3000 * n + 7};
        for (int e = n > 40 ? 3 : n > 12 ? 2 : 0; e < 4 && n > 1; ++e) {
            f.request.elements = sizes[e];
            f.request.root = (int32_t)((e + 1) % n);
            pod_coll_schedule *schedule = NULL;
            pod_coll_fault fault;
            pod_error err = {0};
            cr_assert(named("as_all_reduce")->build(&f.request, &schedule, &err) == POD_OK,
                      "%s: %s", f.name, err.text);
            cr_assert(pod_coll_check_orders(schedule, n > 32 ? 0 : 2, &fault, &err) == POD_OK,
                      "%s, %d elements: %s", f.name, (int)sizes[e], err.text);
            pod_coll_schedule_free(schedule);
        }
        fixture_fini(&f);
    }
}

/* An all-reduce to which only the root contributes is a broadcast: auto never does worse, up to the order of messages
 * that come in the same moment. */
Test(as_all_reduce, makes_a_broadcast_no_slower_than_an_all_reduce)
{
    static const int64_t sizes[] = {32768, 262144};
    for (int s = 0; s < ALL_SHAPES; s = sample_next(s, 8)) {
        for (int e = 0; e < 2; ++e) {
            fixture f;
            fixture_init(&f, &all_shapes[s], POD_BROADCAST, sizes[e]);
            /* of interleaved groups one is followed, and its neighbours' share of the links is a guess */
            if (f.group.size > 32 || all_shapes[s].ndims > 0) {
                fixture_fini(&f);
                continue;
            }
            pod_coll_request all = f.request;
            all.op = POD_ALL_REDUCE;
            const pod_coll_algorithm *chosen[2];
            pod_coll_prediction times[2];
            cr_assert(pod_coll_choose(&f.request, &chosen[0], &times[0], NULL) == POD_OK);
            cr_assert(pod_coll_choose(&all, &chosen[1], &times[1], NULL) == POD_OK);
            cr_expect((double)times[0].total_ps <= 1.01 * (double)times[1].total_ps,
                      "%s, %d elements: %s %.3f us, %s %.3f us", f.name, (int)sizes[e],
                      chosen[0]->name, (double)times[0].total_ps / 1e6, chosen[1]->name,
                      (double)times[1].total_ps / 1e6);
            fixture_fini(&f);
        }
    }
}

/* Beyond what can be walked through on paper, another does it. */
Test(as_all_reduce, refuses_more_chips_than_it_can_walk_through)
{
    static const shape pod = {
        {16,  16, 16},
        "xyz", false, 7, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &pod, POD_BROADCAST, 1000);
    cr_assert(named("as_all_reduce")->applies(&f.request, &f.err) == POD_E_INVALID);
    cr_assert(strstr(f.err.text, "use tree") != NULL);
    fixture_fini(&f);
}
