/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that an oracle runs, with all that its memo has, choices remembered: a step takes the same time as one
 * that simulates all by itself, each of its ops too, and puts the same on its links. */
#include "step_fixture.h"

#include "sim/oracle.h"
#include "sim/step_timeline.h"

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

static void try_with(world *w, pod_oracle_memo *memo, pod_coll_choices *choices)
{
    const pod_step_args args = {.machine = &w->machine,
                                .chip = &w->chip,
                                .programs = &w->programs,
                                .memo = memo,
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

/* What two chips of the step of the world do, and their links. */
static pod_step_timeline watched(world *w, pod_oracle_memo *memo, pod_coll_choices *choices)
{
    const int32_t chips[] = {0, w->slice.nchips - 1};
    pod_step_recorder *recorder = NULL;
    OK(w, pod_step_recorder_new(2, chips, &recorder, &w->err));
    const pod_step_args args = {.machine = &w->machine,
                                .chip = &w->chip,
                                .programs = &w->programs,
                                .memo = memo,
                                .choices = choices,
                                .observer = pod_step_recorder_observer(recorder),
                                .fold = true};
    pod_step_result result;
    pod_step_timeline timeline;
    OK(w, pod_step_run(&args, &result, &w->err));
    OK(w, pod_step_recorder_finish(recorder, w->par, result.time_ps, &timeline, &w->err));
    pod_step_recorder_free(recorder);
    pod_step_result_fini(&result);
    return timeline;
}

static void same_timelines(world *w, pod_oracle_memo *memo, pod_coll_choices *choices,
                           uint64_t seed)
{
    pod_step_timeline a = watched(w, NULL, NULL);
    pod_step_timeline b = watched(w, memo, choices);
    cr_assert_eq(a.end_ps, b.end_ps);
    cr_assert_eq(a.nops, b.nops);
    cr_assert_eq(a.nlinks, b.nlinks, "seed %d: stretches", (int)seed);
    for (int64_t i = 0; i < a.nops; i++) {
        const pod_step_op_time *x = &a.ops[i];
        const pod_step_op_time *y = &b.ops[i];
        cr_assert(x->watch == y->watch && x->op == y->op && x->start_ps == y->start_ps
                      && x->end_ps == y->end_ps,
                  "seed %d: op %d", (int)seed, (int)i);
    }
    for (int64_t i = 0; i < a.nlinks; i++) {
        const pod_step_link_time *x = &a.links[i];
        const pod_step_link_time *y = &b.links[i];
        cr_assert(x->watch == y->watch && x->direction == y->direction && x->op == y->op
                      && x->start_ps == y->start_ps && x->end_ps == y->end_ps,
                  "seed %d: stretch %d", (int)seed, (int)i);
    }
    pod_step_timeline_fini(&a);
    pod_step_timeline_fini(&b);
}

/* The step of the world without shortcuts and twice with: the second finds what the first has left. */
static void same_with_and_without(world *w, pod_oracle_memo *memo, pod_coll_choices *choices,
                                  uint64_t seed)
{
    try_with(w, NULL, NULL);
    const pod_step_result simulated = w->result;
    w->result = (pod_step_result){0};
    for (int again = 0; again < 2; again++) {
        try_with(w, memo, choices);
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

/* A step; one that goes on after it, as one of more layers does; and that with other times.
 * @return clusters that were known */
static int64_t grown_step(uint64_t seed)
{
    world w;
    pod_oracle_memo *memo = NULL;
    pod_coll_choices *choices = NULL;
    random_step(&w, seed);
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    OK(&w, pod_coll_choices_new(&choices, &w.err));
    same_with_and_without(&w, memo, choices, seed);
    for (uint64_t i = OPS; i < 2 * OPS; i++) {
        world_random_op(&w, seed, i, pod_rng_below(seed, 7, 0, 2) == 0);
    }
    same_with_and_without(&w, memo, choices, seed);
    core_slows(&w, seed);
    same_with_and_without(&w, memo, choices, seed);
    if (pod_rng_below(seed, 9, 0, 4) == 0) {
        same_timelines(&w, memo, choices, seed);
    }
    const int64_t known = pod_oracle_memo_counts(memo).clusters - pod_oracle_memo_counts(memo).nets;
    pod_coll_choices_free(choices);
    pod_oracle_memo_free(memo);
    world_fini(&w);
    return known;
}

Test(sim_step_oracle, a_step_is_the_same_with_and_without)
{
    cr_assert_gt(grown_step(0), 0);
}

Test(sim_step_oracle, steps_are_the_same_with_and_without)
{
    int64_t known = 0;
    for (int number = sample_next(0, 32); number < 200; number = sample_next(number, 32)) {
        known += grown_step((uint64_t)number);
    }
    cr_assert_gt(known, 0);
}

/* Collectives over two or three slices beside others, and beside transfers of hosts, which use the same ports. */
static void step_over_slices(uint64_t seed)
{
    world w;
    pod_oracle_memo *memo = NULL;
    world_init(&w, 4, 2, 1);
    const int32_t over = world_slices(&w, 2 + (int32_t)pod_rng_below(seed, 5, 0, 2));
    for (uint64_t i = 0; i < OPS; i++) {
        const int32_t dep = i > 1 ? (int32_t)pod_rng_below(seed, 6, i, i) : POD_OP_NONE;
        const uint64_t kind = pod_rng_below(seed, 7, i, seed % 2 == 0 ? 5 : 4);
        if (kind < 2) {
            (void)collective(&w, kind == 0 ? POD_ALL_REDUCE : POD_ALL_GATHER, over, 40, dep);
        } else if (kind == 4) {
            pod_op host = pod_op_make(POD_OP_HOST, "input", 0);
            host.bytes = pod_rng_below(seed, 8, i, 2) == 0 ? 1 : 8000;
            (void)op_add(&w, 0, &host, dep, POD_OP_NONE);
        } else {
            world_random_op(&w, seed, i, false);
        }
    }
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    same_with_and_without(&w, memo, NULL, seed);
    pod_oracle_memo_free(memo);
    world_fini(&w);
}

Test(sim_step_oracle, steps_over_slices_are_the_same)
{
    for (int number = 0; number < 64; number = sample_next(number, 8)) {
        step_over_slices((uint64_t)number);
    }
}

/* Pairs of collectives that meet, each after core work and `late_us` more before the second pair.
 * @return clusters of both steps that were simulated */
static int64_t nets_of_pairs(double late_us, pod_oracle_counts *counts)
{
    world w;
    pod_oracle_memo *memo = NULL;
    world_init(&w, 4, 4, 1);
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    int32_t before = POD_OP_NONE;
    for (int pair = 0; pair < 2; pair++) {
        const int32_t first = collective(&w, POD_ALL_REDUCE, GROUP_ALL, 300, before);
        const int32_t wait = core(&w, 0, 20 + (pair == 0 ? 0 : late_us), before, POD_OP_NONE);
        const int32_t second = collective(&w, POD_ALL_GATHER, GROUP_ALL, 80, wait);
        before = core(&w, 0, 5, first, second);
    }
    same_with_and_without(&w, memo, NULL, 0);
    *counts = pod_oracle_memo_counts(memo);
    pod_oracle_memo_free(memo);
    world_fini(&w);
    return counts->nets;
}

/* The second pair is known from the first, unless its second collective begins so much later that both don't meet;
 * the step again is known. */
Test(sim_step_oracle, knows_what_comes_again)
{
    pod_oracle_counts counts;
    cr_assert_eq(nets_of_pairs(0, &counts), 2, "a net of one, then one of both");
    cr_assert_eq(counts.clusters, 4);
    cr_assert_eq(nets_of_pairs(1, &counts), 4, "the second of the second pair begins later");
    cr_assert_eq(counts.clusters, 4);
}

/* What is beside a cluster, on other links, is none of its own. */
Test(sim_step_oracle, other_links_are_other_clusters)
{
    world w;
    pod_oracle_memo *memo = NULL;
    world_init(&w, 4, 4, 1);
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    int32_t before = POD_OP_NONE;
    for (int pair = 0; pair < 3; pair++) {
        const int32_t first = collective(&w, POD_ALL_REDUCE, GROUP_X, 300, before);
        const int32_t wait = core(&w, 0, 20 + pair, before, POD_OP_NONE);
        const int32_t beside = collective(&w, POD_REDUCE_SCATTER, GROUP_Y, 40, wait);
        before = core(&w, 0, 5, core(&w, 0, 5, first, POD_OP_NONE), beside);
    }
    same_with_and_without(&w, memo, NULL, 0);
    cr_assert_eq(pod_oracle_memo_counts(memo).clusters, 2 * 3 * 2);
    cr_assert_eq(pod_oracle_memo_counts(memo).nets, 2);
    pod_oracle_memo_free(memo);
    world_fini(&w);
}

/* Chips of open axes don't do the same, but rows do: one is simulated for all along x, and one for all along y, whose
 * chips begin together, though not when the others' do. */
Test(sim_step_oracle, rows_are_asked_one_by_one)
{
    world w;
    pod_oracle_memo *memo = NULL;
    world_init_axes(&w, 4, 4, 1, 0);
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    (void)collective(&w, POD_ALL_GATHER, GROUP_Y, 300,
                     collective(&w, POD_ALL_GATHER, GROUP_X, 300, POD_OP_NONE));
    same_with_and_without(&w, memo, NULL, 0);
    cr_assert_eq(w.result.cells, 16);
    cr_assert_eq(pod_oracle_memo_counts(memo).clusters, 2 * (4 + 4));
    cr_assert_eq(pod_oracle_memo_counts(memo).nets, 2);
    pod_oracle_memo_free(memo);
    world_fini(&w);
}

/* Collectives on different links are one cluster from when another one uses both. */
Test(sim_step_oracle, clusters_join)
{
    world w;
    pod_oracle_memo *memo = NULL;
    world_init(&w, 4, 4, 1);
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    (void)collective(&w, POD_ALL_REDUCE, GROUP_X, 300, POD_OP_NONE);
    (void)collective(&w, POD_ALL_REDUCE, GROUP_Y, 300, core(&w, 0, 3, POD_OP_NONE, POD_OP_NONE));
    (void)collective(&w, POD_ALL_GATHER, GROUP_ALL, 100, core(&w, 0, 50, POD_OP_NONE, POD_OP_NONE));
    same_with_and_without(&w, memo, NULL, 0);
    cr_assert_eq(pod_oracle_memo_counts(memo).nets, 3);
    pod_oracle_memo_free(memo);
    world_fini(&w);
}

/* The largest power of two of which eight are no longer than a launch; 0 where none is. */
Test(sim_step_oracle, parts_are_an_eighth_of_a_launch_or_less)
{
    for (pod_time_ps launch_ps = 0; launch_ps < 5000; launch_ps++) {
        pod_time_ps part_ps = 0;
        for (pod_time_ps power = 1; 8 * power <= launch_ps; power *= 2) {
            part_ps = power;
        }
        cr_assert_eq(pod_oracle_part_ps(launch_ps), part_ps, "%lld", (long long)launch_ps);
    }
    cr_assert_eq(pod_oracle_part_ps(US(5)), 524288);
}

/* A launch has 8 to 15 parts, each a power of two of picoseconds. */
Test(sim_step_oracle, a_launch_has_eight_parts_or_more)
{
    static const pod_time_ps launches[][2] = {
        {0,     0     },
        {7,     0     },
        {8,     1     },
        {15,    1     },
        {16,    2     },
        {31,    2     },
        {32,    4     },
        {US(5), 524288}
    };
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        cr_expect_eq(pod_oracle_part_ps(launches[i][0]), launches[i][1], "%lld ps",
                     (long long)launches[i][0]);
    }
}

/* What is watched: the first chip and the last, with the oracle as without. */
Test(sim_step_oracle, a_watched_step_is_the_same_with_and_without)
{
    world w;
    pod_oracle_memo *memo = NULL;
    pod_coll_choices *choices = NULL;
    random_step(&w, 1);
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    OK(&w, pod_coll_choices_new(&choices, &w.err));
    same_timelines(&w, memo, choices, 1);
    pod_coll_choices_free(choices);
    pod_oracle_memo_free(memo);
    world_fini(&w);
}

/* The first op alone does the same on all chips; with one that has a root each chip is another. */
Test(sim_step_oracle, a_fold_is_known_for_the_same_schedules_alone)
{
    world w;
    pod_oracle_memo *memo = NULL;
    world_init(&w, 4, 1, 1);
    OK(&w, pod_oracle_memo_new(&memo, &w.err));
    (void)collective(&w, POD_ALL_GATHER, GROUP_X, 80, POD_OP_NONE);
    (void)collective(&w, POD_BROADCAST, GROUP_X, 80, POD_OP_NONE);
    for (int again = 0; again < 2; again++) {
        w.programs.stages[0].nops = 2;
        try_with(&w, memo, NULL);
        cr_expect_eq(w.result.cells, 4);
        w.programs.stages[0].nops = 1;
        try_with(&w, memo, NULL);
        cr_expect_eq(w.result.cells, 1);
    }
    pod_oracle_memo_free(memo);
    world_fini(&w);
}
