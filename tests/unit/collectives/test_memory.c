/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out while a collective is planned, proved or bounded: an error, nothing lost, nothing read. */
#include "fixture.h"

#include "../out_of_memory.h"

#include "collectives/bounds/bound.h"
#include "collectives/schedule/masked.h"

typedef struct attempt {
    fixture f;
    pod_router *router;
    const pod_coll_algorithm *algorithm;
    pod_coll_schedule *schedule;
} attempt;

static const shape some_shapes[] = {
    {{4, 1, 1}, "x",  false, 7, 0, {{0}}                               },
    {{3, 2, 1}, "",   false, 7, 0, {{0}}                               },
    {{4, 4, 1}, "xy", false, 1, 0, {{0}}                               },
    {{8, 2, 1}, "x",  false, 0, 2, {{0, 4, 2, false}, {1, 2, 1, false}}},
};
enum { SOME_SHAPES = sizeof some_shapes / sizeof *some_shapes };

static void attempt_init(attempt *a, const shape *where, pod_coll_op op)
{
    static const int32_t source_of[] = {3, -1, 1, 0};
    *a = (attempt){.router = NULL};
    fixture_init(&a->f, where, op, 1000);
    a->f.request.source_of = op == POD_PERMUTE && a->f.group.size == 4 ? source_of : NULL;
    cr_assert_eq(pod_router_new(&a->f.slice, &a->router, NULL), POD_OK);
}

static void attempt_fini(attempt *a)
{
    pod_router_free(a->router);
    fixture_fini(&a->f);
}

static pod_status builds(void *context)
{
    const attempt *a = context;
    pod_coll_schedule *schedule = NULL;
    const pod_status st = a->algorithm->build(&a->f.request, &schedule, NULL);
    if (st == POD_OK) {
        pod_coll_schedule_free(schedule);
    }
    return st;
}

static pod_status proves(void *context)
{
    const attempt *a = context;
    pod_coll_fault fault;
    return pod_coll_check_orders(a->schedule, 1, &fault, NULL);
}

static pod_status counts(void *context)
{
    const attempt *a = context;
    pod_coll_counts counted;
    return pod_coll_count(a->schedule, &counted, NULL);
}

static pod_status bounds(void *context)
{
    const attempt *a = context;
    pod_coll_bound bound;
    return pod_coll_bound_get(&a->f.request, a->router, &bound, NULL);
}

static pod_status bounds_chips(void *context)
{
    const attempt *a = context;
    pod_coll_bound bound;
    pod_coll_chip_bounds chips;
    const pod_status st = pod_coll_bound_chips(&a->f.request, a->router, &bound, &chips, NULL);
    if (st == POD_OK) {
        pod_coll_chip_bounds_fini(&chips);
    }
    return st;
}

static pod_status bounds_schedule(void *context)
{
    const attempt *a = context;
    pod_coll_bound bound;
    return pod_coll_bound_schedule(&a->f.request, a->router, a->schedule, &bound, NULL);
}

/* Those that find their plan by predictions ask for much, and are built of others. */
Test(memory, of_a_schedule_may_run_out)
{
    for (int s = 0; s < SOME_SHAPES; s++) {
        for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
            attempt a;
            attempt_init(&a, &some_shapes[s], (pod_coll_op)op);
            for (int i = 0; i < pod_coll_algorithm_count(); i++) {
                a.algorithm = pod_coll_algorithm_at(i);
                if (!a.algorithm->plans && (op != POD_PERMUTE || a.f.request.source_of != NULL)
                    && pod_coll_algorithm_fits(a.algorithm, &a.f.request)) {
                    cr_expect_gt(allocations_fail(builds, &a, 60), 1, "%s", a.algorithm->name);
                }
            }
            attempt_fini(&a);
        }
    }
}

static pod_status masks(void *context)
{
    const attempt *a = context;
    const int64_t until = until_failure;
    until_failure = -1;
    pod_coll_schedule *whole = NULL;
    cr_assert_eq(a->algorithm->build(&a->f.request, &whole, NULL), POD_OK);
    until_failure = until;
    pod_coll_masked *masked = NULL;
    const pod_status st = pod_coll_mask(whole, 0, &masked, NULL);
    if (st == POD_OK) {
        pod_coll_schedule_free(&masked->base);
    }
    return st;
}

static pod_status turns(void *context)
{
    const attempt *a = context;
    pod_coll_turns found;
    const bool ok = pod_coll_turns_init(&found, a->schedule, 1000);
    cr_assert(!ok || (found.first != NULL && *pod_coll_turn_at(&found, 0, 0, 0) == -1));
    pod_coll_turns_fini(&found);
    return ok ? POD_OK : POD_E_NOMEM;
}

Test(memory, of_a_proof_may_run_out)
{
    attempt a;
    attempt_init(&a, &some_shapes[1], POD_ALL_REDUCE);
    a.algorithm = fixture_find("ring");
    cr_assert_eq(a.algorithm->build(&a.f.request, &a.schedule, NULL), POD_OK);
    cr_expect_gt(every_allocation_fails(proves, &a), 6);
    cr_expect_gt(every_allocation_fails(counts, &a), 0);
    cr_expect_gt(every_allocation_fails(turns, &a), 1);
    cr_expect_gt(every_allocation_fails(masks, &a), 8);
    pod_coll_schedule_free(a.schedule);
    attempt_fini(&a);
}

Test(memory, of_bounds_may_run_out)
{
    for (int s = 0; s < SOME_SHAPES; s++) {
        for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
            attempt a;
            attempt_init(&a, &some_shapes[s], (pod_coll_op)op);
            if (op != POD_PERMUTE || a.f.request.source_of != NULL) {
                cr_expect_gt(every_allocation_fails(bounds, &a), 8);
                cr_expect_gt(every_allocation_fails(bounds_chips, &a), 8);
            }
            attempt_fini(&a);
        }
    }
}

Test(memory, of_bounds_of_a_schedule_may_run_out)
{
    attempt a;
    attempt_init(&a, &some_shapes[0], POD_ALL_TO_ALL);
    a.algorithm = fixture_find("direct");
    cr_assert_eq(a.algorithm->build(&a.f.request, &a.schedule, NULL), POD_OK);
    cr_expect_gt(every_allocation_fails(bounds_schedule, &a), 9);
    pod_coll_schedule_free(a.schedule);
    attempt_fini(&a);
}
