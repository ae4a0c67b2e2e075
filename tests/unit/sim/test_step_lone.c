/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that are alone on their links are simulated once, those that share links are replayed, choices
 * remembered: with every such shortcut and without, a step takes the same time, each of its ops too, and puts the
 * same on its links. */
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

/* The step of the world without shortcuts and twice with: the second finds what the first has left. */
static void same_with_and_without(world *w, pod_lone_table *lone, pod_coll_choices *choices,
                                  uint64_t seed)
{
    try_with(w, NULL, NULL);
    const pod_step_result simulated = w->result;
    w->result = (pod_step_result){0};
    for (int again = 0; again < 2; again++) {
        try_with(w, lone, choices);
        same_results(&simulated, &w->result, w->programs.stages[0].nops, seed);
    }
    pod_step_result_fini(&w->result);
    w->result = simulated;
}

/* Some core ops take longer, so that others begin later than before. */
static void core_slows(world *w, uint64_t seed)
{
    pod_program *program = &w->programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        program->ops[i].flops *= 1 + 0.25 * (double)pod_rng_below(seed, 8, (uint64_t)i, 3);
    }
}

/* A step; one that goes on after it, as one of more layers does; and that with other times. */
Test(sim_step_lone, steps_are_the_same_with_and_without)
{
    int64_t replayed = 0;
    for (uint64_t seed = 0; seed < 200; seed += (uint64_t)sample_step(8)) {
        world w;
        pod_lone_table *lone = NULL;
        pod_coll_choices *choices = NULL;
        random_step(&w, seed);
        OK(&w, pod_lone_new(&lone, &w.err));
        OK(&w, pod_coll_choices_new(&choices, &w.err));
        pod_lone_replays(lone)->hops_least = 0;
        same_with_and_without(&w, lone, choices, seed);
        for (uint64_t i = OPS; i < 2 * OPS; i++) {
            world_random_op(&w, seed, i, pod_rng_below(seed, 7, 0, 2) == 0);
        }
        same_with_and_without(&w, lone, choices, seed);
        core_slows(&w, seed);
        same_with_and_without(&w, lone, choices, seed);
        replayed += pod_lone_replays(lone)->used;
        pod_coll_choices_free(choices);
        pod_lone_free(lone);
        world_fini(&w);
    }
    cr_assert_gt(replayed, 0);
}

/* Two that meet, and after both of them core work and the same again: begun `late_us` later, or as before. */
static int64_t replays_of_two(double late_us, uint64_t seed)
{
    world w;
    pod_lone_table *lone = NULL;
    world_init(&w, 4, 4, 1);
    OK(&w, pod_lone_new(&lone, &w.err));
    pod_lone_replays(lone)->hops_least = 0;
    int32_t before = POD_OP_NONE;
    for (int pair = 0; pair < 2; pair++) {
        const int32_t first = collective(&w, POD_ALL_REDUCE, GROUP_ALL, 300, before);
        const int32_t wait = core(&w, 0, 20 + (pair == 0 ? 0 : late_us), before, POD_OP_NONE);
        const int32_t second = collective(&w, POD_ALL_GATHER, GROUP_ALL, 80, wait);
        before = core(&w, 0, 5, first, second);
    }
    same_with_and_without(&w, lone, NULL, seed);
    const int64_t used = pod_lone_replays(lone)->used;
    pod_lone_free(lone);
    world_fini(&w);
    return used;
}

/* What is looked up beside a record, on other links, is no part of it. */
Test(sim_step_lone, records_leave_out_what_is_beside)
{
    world w;
    pod_lone_table *lone = NULL;
    world_init(&w, 4, 4, 1);
    OK(&w, pod_lone_new(&lone, &w.err));
    pod_lone_replays(lone)->hops_least = 0;
    int32_t before = POD_OP_NONE;
    for (int pair = 0; pair < 3; pair++) {
        const int32_t first = collective(&w, POD_ALL_REDUCE, GROUP_X, 300, before);
        const int32_t second = collective(&w, POD_ALL_GATHER, GROUP_X, 80, before);
        const int32_t wait = core(&w, 0, 20, before, POD_OP_NONE);
        const int32_t beside = collective(&w, POD_REDUCE_SCATTER, GROUP_Y, 40, wait);
        before = core(&w, 0, 5, core(&w, 0, 5, first, second), beside);
    }
    same_with_and_without(&w, lone, NULL, 0);
    cr_assert_geq(pod_lone_replays(lone)->used, 2 + 3);
    cr_assert(!pod_lone_is_crowded(lone, pod_coll_op_name(POD_REDUCE_SCATTER)));
    pod_lone_free(lone);
    world_fini(&w);
}

/* The first step records the first two and replays them at once, the same step again replays all four. What begins
 * otherwise is simulated, and replayed when all comes again. */
Test(sim_step_lone, replays_what_comes_again)
{
    cr_assert_eq(replays_of_two(0, 0), 1 + 2);
    cr_assert_geq(replays_of_two(270, 1), 2);
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
