/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that are alone on their links are simulated once, choices remembered: with every such shortcut and
 * without, a step takes the same time, each of its ops too, and puts the same on its links. */
#include "step_fixture.h"

#include <string.h>

#include "../sample.h"

enum { OPS = 14 };

/* A step of random ops. Chips of open axes, and those beside a slow one, begin and end at different times. */
static void random_step(world *w, uint64_t seed)
{
    static const int32_t shapes[][2] = {
        {4, 4},
        {2, 4},
        {4, 2},
        {2, 2},
        {3, 4},
        {8, 2}
    };
    const uint64_t shape = pod_rng_below(seed, 5, 0, sizeof shapes / sizeof shapes[0]);
    world_init(w, shapes[shape][0], shapes[shape][1], 1);
    if (pod_rng_below(seed, 6, 0, 3) == 0) {
        OK(w, pod_slice_fault_insert(&w->slice, POD_FAULT_CHIP_SLOW, 0, -1, 1.5, &w->err));
    }
    for (uint64_t i = 0; i < OPS; i++) {
        world_random_op(w, seed, i, pod_rng_below(seed, 7, 0, 2) == 0);
    }
}

static void try_with(world *w, pod_lone_table *lone, pod_coll_choices *choices)
{
    const pod_step_args args = {.machine = &w->machine,
                                .chip = &w->chip,
                                .programs = &w->programs,
                                .lone = lone,
                                .choices = choices,
                                .fold = true};
    pod_step_result_fini(&w->result);
    OK(w, pod_step_run(&args, &w->result, &w->err));
}

static void same_results(const pod_step_result *a, const pod_step_result *b, int32_t nops,
                         uint64_t seed)
{
    cr_assert_eq(a->time_ps, b->time_ps, "seed %d: %lld and %lld ps", (int)seed,
                 (long long)a->time_ps, (long long)b->time_ps);
    cr_assert_eq(a->cells, b->cells);
    cr_assert_eq(a->compute_ps, b->compute_ps);
    cr_assert_eq(a->exposed_ici_ps, b->exposed_ici_ps);
    cr_assert_eq(a->idle_ps, b->idle_ps);
    cr_assert_eq(memcmp(&a->links, &b->links, sizeof a->links), 0, "seed %d: links", (int)seed);
    for (int32_t op = 0; op < nops; op++) {
        cr_assert_eq(memcmp(&a->ops[0][op], &b->ops[0][op], sizeof a->ops[0][op]), 0,
                     "seed %d: op %d", (int)seed, (int)op);
    }
}

Test(sim_step_lone, steps_are_the_same_with_and_without)
{
    for (uint64_t seed = 0; seed < 200; seed += (uint64_t)sample_step(8)) {
        world w;
        pod_lone_table *lone = NULL;
        pod_coll_choices *choices = NULL;
        random_step(&w, seed);
        try_with(&w, NULL, NULL);
        const pod_step_result simulated = w.result;
        w.result = (pod_step_result){0};
        OK(&w, pod_lone_new(&lone, &w.err));
        OK(&w, pod_coll_choices_new(&choices, &w.err));
        for (int again = 0; again < 2; again++) { /* the second finds what the first has left */
            try_with(&w, lone, choices);
            same_results(&simulated, &w.result, OPS, seed);
        }
        pod_coll_choices_free(choices);
        pod_lone_free(lone);
        pod_step_result_fini(&w.result);
        w.result = simulated;
        world_fini(&w);
    }
}

/* The second of two equal collectives that don't meet is looked up; of two that meet both are simulated. */
Test(sim_step_lone, knows_who_was_alone)
{
    for (int meet = 0; meet < 2; meet++) {
        world w;
        pod_lone_table *lone = NULL;
        world_init(&w, 4, 4, 1);
        OK(&w, pod_lone_new(&lone, &w.err));
        const int32_t first = collective(&w, POD_ALL_REDUCE, GROUP_ALL, 100, POD_OP_NONE);
        (void)collective(&w, POD_ALL_REDUCE, GROUP_ALL, 100, meet ? POD_OP_NONE : first);
        try_with(&w, lone, NULL);
        cr_assert_eq(pod_lone_is_crowded(lone, "all-reduce"), meet == 1);
        pod_lone_free(lone);
        world_fini(&w);
    }
}
