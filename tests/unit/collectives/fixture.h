/* SPDX-License-Identifier: Apache-2.0 */
/** Slices, groups and requests for the tests of collectives. */
#pragma once

#include "collectives/predict/predict.h"
#include "collectives/registry.h"
#include "collectives/schedule/check.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../generations.h"
#include "../sample.h"

typedef struct fixture {
    pod_slice slice;
    pod_group group;
    pod_coll_request request;
    pod_error err;
    char name[128];
} fixture;

typedef struct shape {
    int32_t dims[3];
    const char *wrap; /* letters */
    bool twisted;
    unsigned axes; /* of the group; 0 = see dim */
    int ndims;
    pod_group_dim dim[4];
} shape;

static inline void fixture_init(fixture *f, const shape *s, pod_coll_op op, int64_t elements)
{
    bool wrap[3] = {false, false, false};
    for (const char *c = s->wrap; *c != '\0'; ++c) {
        wrap[*c - 'x'] = true;
    }
    f->err = (pod_error){0};
    pod_status st = pod_slice_make("v4", 3, s->dims, wrap, s->twisted, &f->slice, &f->err);
    cr_assert(st == POD_OK, "%s", f->err.text);
    f->slice.generation = own_generation("v4");
    st = s->ndims > 0 ? pod_group_init_dims(&f->group, &f->slice, s->dim, s->ndims, &f->err)
                      : pod_group_init_axes(&f->group, &f->slice, s->axes, &f->err);
    cr_assert(st == POD_OK, "%s", f->err.text);
    f->request = (pod_coll_request){.op = op,
                                    .slice = &f->slice,
                                    .group = &f->group,
                                    .elements = elements,
                                    .element_bytes = 2,
                                    .link_rate = pod_rate_make(45e9),
                                    .hop_latency_ps = POD_PS_PER_US};
    snprintf(f->name, sizeof f->name, "%dx%dx%d wrap %s%s axes %u dims %d, %s of %lld elements",
             (int)s->dims[0], (int)s->dims[1], (int)s->dims[2], s->wrap,
             s->twisted ? " twisted" : "", s->axes, s->ndims, pod_coll_op_name(op),
             (long long)elements);
}

static inline void fixture_fini(fixture *f)
{
    pod_group_fini(&f->group);
}

static inline const pod_coll_algorithm *fixture_find(const char *name)
{
    const pod_coll_algorithm *algorithm = NULL;
    cr_assert(pod_coll_algorithm_find(name, &algorithm, NULL) == POD_OK, "%s", name);
    return algorithm;
}

static inline pod_time_ps fixture_predicted_ps(const fixture *f, const char *name)
{
    pod_coll_prediction prediction;
    pod_error err = {0};
    cr_assert(fixture_find(name)->predict(&f->request, &prediction, &err) == POD_OK, "%s on %s: %s",
              name, f->name, err.text);
    return prediction.total_ps;
}

/* Prove an algorithm's schedule of a request on paper, in `orders` more orders of events. */
static inline void fixture_prove(const fixture *f, const pod_coll_algorithm *algorithm, int orders)
{
    pod_error err = {0};
    pod_coll_schedule *schedule = NULL;
    pod_coll_fault fault;
    cr_assert(algorithm->build(&f->request, &schedule, &err) == POD_OK, "%s on %s: %s",
              algorithm->name, f->name, err.text);
    cr_assert(pod_coll_check_orders(schedule, orders, &fault, &err) == POD_OK, "%s on %s: %s",
              algorithm->name, f->name, err.text);
    pod_coll_schedule_free(schedule);
}

/* Shapes of every kind: sizes 1 to 8, open, closed, partly closed, twisted, subsets and parts of axes. */
static const shape all_shapes[] = {
    {{1, 1, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{2, 1, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{2, 1, 1}, "x",   false, 7, 0, {{0}}                                                 },
    {{3, 1, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{3, 1, 1}, "x",   false, 7, 0, {{0}}                                                 },
    {{4, 1, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{4, 1, 1}, "x",   false, 7, 0, {{0}}                                                 },
    {{5, 1, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{5, 1, 1}, "x",   false, 7, 0, {{0}}                                                 },
    {{8, 1, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{8, 1, 1}, "x",   false, 7, 0, {{0}}                                                 },
    {{2, 2, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{2, 2, 1}, "xy",  false, 7, 0, {{0}}                                                 },
    {{3, 3, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{3, 3, 1}, "xy",  false, 7, 0, {{0}}                                                 },
    {{3, 3, 1}, "y",   false, 7, 0, {{0}}                                                 },
    {{4, 4, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{4, 4, 1}, "xy",  false, 7, 0, {{0}}                                                 },
    {{4, 1, 4}, "xyz", false, 7, 0, {{0}}                                                 },
    {{2, 4, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{2, 4, 1}, "y",   false, 7, 0, {{0}}                                                 },
    {{3, 5, 1}, "",    false, 7, 0, {{0}}                                                 },
    {{3, 5, 1}, "xy",  false, 7, 0, {{0}}                                                 },
    {{2, 2, 2}, "",    false, 7, 0, {{0}}                                                 },
    {{2, 2, 2}, "xyz", false, 7, 0, {{0}}                                                 },
    {{2, 3, 4}, "",    false, 7, 0, {{0}}                                                 },
    {{2, 3, 4}, "xyz", false, 7, 0, {{0}}                                                 },
    {{2, 3, 4}, "xz",  false, 7, 0, {{0}}                                                 },
    {{3, 5, 2}, "xyz", false, 7, 0, {{0}}                                                 },
    {{4, 4, 4}, "xyz", false, 7, 0, {{0}}                                                 },
    {{4, 4, 8}, "xyz", true,  7, 0, {{0}}                                                 },
    {{4, 4, 8}, "xyz", true,  5, 0, {{0}}                                                 },
    {{4, 4, 4}, "xyz", false, 1, 0, {{0}}                                                 },
    {{2, 3, 4}, "xz",  false, 6, 0, {{0}}                                                 },
    {{8, 2, 1}, "x",   false, 0, 1, {{0, 4, 1, false}}                                    },
    {{8, 2, 1}, "x",   false, 0, 1, {{0, 4, 2, false}}                                    },
    {{8, 2, 1}, "x",   false, 0, 1, {{0, 2, 4, false}}                                    },
    {{8, 4, 1}, "xy",  false, 0, 2, {{0, 2, 4, false}, {1, 4, 1, false}}                  },
    {{8, 4, 1}, "xy",  false, 0, 2, {{0, 4, 2, false}, {1, 2, 1, false}}                  },
    {{8, 2, 1}, "x",   false, 0, 3, {{0, 4, 1, false}, {1, 2, 1, false}, {0, 2, 4, false}}},
};
enum { ALL_SHAPES = sizeof all_shapes / sizeof *all_shapes };

/* Prove an algorithm of one op that cuts vectors into chunks, on all shapes that it fits, of few elements and many. */
static inline void fixture_prove_chunks(const char *name, pod_coll_op op)
{
    int number = 0;
    int proved = 0;
    for (int s = 0; s < ALL_SHAPES; ++s) {
        fixture f;
        fixture_init(&f, &all_shapes[s], op, 0);
        const int64_t n = f.group.size;
        const int64_t sizes[] = {1, 2, 35, 100 * n + 7};
        const bool fits = pod_coll_algorithm_fits(fixture_find(name), &f.request);
        for (int e = n > 40 ? 3 : 0; e < 4 && fits; ++e) {
            f.request.elements = sizes[e];
            f.request.root = op == POD_BROADCAST ? (int32_t)(e % n) : 0;
            f.request.cut_min_bytes = e % 2 != 0 ? INT64_C(1) << 17 : 0;
            if (sample_takes(number++, 4)) {
                fixture_prove(&f, fixture_find(name), n > 32 ? 0 : 2);
                ++proved;
            }
        }
        fixture_fini(&f);
    }
    cr_assert_gt(proved, 20);
}
