/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/rng.h"

static const pod_coll_algorithm *permute(void)
{
    const pod_coll_algorithm *algorithm = NULL;
    cr_assert(pod_coll_algorithm_find("permute", &algorithm, NULL) == POD_OK);
    return algorithm;
}

static void prove(const fixture *f)
{
    pod_error err = {0};
    pod_coll_schedule *schedule = NULL;
    pod_coll_fault fault;
    cr_assert(permute()->applies(&f->request, &err) == POD_OK, "%s", err.text);
    cr_assert(permute()->build(&f->request, &schedule, &err) == POD_OK, "%s", err.text);
    cr_assert(pod_coll_check_orders(schedule, f->group.size > 32 ? 0 : 2, &fault, &err) == POD_OK,
              "%s: %s", f->name, err.text);
    pod_coll_schedule_free(schedule);
}

Test(permute, brings_every_vector_to_whoever_asked_for_it)
{
    for (int s = 0; s < ALL_SHAPES; ++s) {
        fixture f;
        fixture_init(&f, &all_shapes[s], POD_PERMUTE, 5);
        int32_t source_of[512];
        const int32_t n = f.group.size;
        f.request.source_of = source_of;
        for (uint64_t seed = 0; seed < 4; ++seed) {
            for (int32_t r = 0; r < n; ++r) {
                /* any source or none: some have several takers, some none, some themselves */
                source_of[r] = (int32_t)pod_rng_below(seed, 1, (uint64_t)r, (uint64_t)n + 1) - 1;
            }
            prove(&f);
        }
        for (int32_t r = 0; r < n; ++r) {
            source_of[r] = 0; /* one feeds all */
        }
        prove(&f);
        for (int32_t r = 0; r < n; ++r) {
            source_of[r] = -1;
        }
        prove(&f);
        fixture_fini(&f);
    }
}

/* A shift by 3 on a closed ring of 8: 3 us, and 3 vectors meet on every link of one direction. */
Test(permute, is_predicted_by_its_busiest_link_and_its_farthest_pair)
{
    static const shape ring = {
        {8,  1, 1},
        "x", false, 7, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &ring, POD_PERMUTE, 45000000 / 2);
    int32_t source_of[8];
    for (int32_t r = 0; r < 8; ++r) {
        source_of[r] = (r + 5) % 8;
    }
    f.request.source_of = source_of;
    pod_coll_prediction p;
    cr_assert(permute()->predict(&f.request, &p, NULL) == POD_OK);
    cr_assert_eq(p.total_ps, 1 * POD_PS_PER_US + 3 * POD_PS_PER_MS);
    f.request.elements = 45000 / 2;
    cr_assert(permute()->predict(&f.request, &p, NULL) == POD_OK);
    cr_assert_eq(p.total_ps, 4 * POD_PS_PER_US);
    fixture_fini(&f);
}

Test(permute, refuses_requests_without_sources_or_with_wrong_ones)
{
    static const shape ring = {
        {4,  1, 1},
        "x", false, 7, 0, {{0}}
    };
    fixture f;
    fixture_init(&f, &ring, POD_PERMUTE, 5);
    cr_assert(permute()->applies(&f.request, &f.err) == POD_E_INVALID);
    cr_assert(strstr(f.err.text, "--pairs"), "%s", f.err.text);
    const int32_t source_of[4] = {1, 4, 0, -1};
    f.request.source_of = source_of;
    pod_error_clear(&f.err);
    cr_assert(permute()->applies(&f.request, &f.err) == POD_E_INVALID);
    cr_assert(strstr(f.err.text, "rank 1 is to receive from rank 4"), "%s", f.err.text);
    fixture_fini(&f);
}
