/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of a step: what its collectives' last chips need doesn't add up where others end sooner. */
#include "step_fixture.h"

#include "../out_of_memory.h"
#include "../sample.h"

static pod_time_ps world_bound(world *w)
{
    const pod_step_args args = {.machine = &w->machine, .chip = &w->chip, .programs = &w->programs};
    pod_time_ps bound_ps = 0;
    OK(w, pod_step_bound(&args, &bound_ps, &w->err));
    return bound_ps;
}

enum { LAYERS = 12, OPS = 14 };

/* Layers of core ops between collectives over x. */
static void chain(world *w, pod_coll_op op, double us)
{
    int32_t last = POD_OP_NONE;
    for (int layer = 0; layer < LAYERS; layer++) {
        last = collective(w, op, GROUP_X, us, core(w, 0, 4000, last, POD_OP_NONE));
    }
    (void)core(w, 0, 4000, last, POD_OP_NONE);
}

/* @param least_frac  of the time, to see that the bound says something */
static void check_chain(pod_coll_op op, int32_t x, unsigned closed, double least_frac)
{
    world w;
    world_init_axes(&w, x, 1, 1, closed);
    chain(&w, op, 2000);
    world_run(&w);
    const pod_time_ps bound_ps = world_bound(&w);
    cr_expect(bound_ps <= w.result.time_ps, "%s on %d, %s: bound %lld, took %lld",
              pod_coll_op_name(op), (int)x, closed ? "closed" : "open", (long long)bound_ps,
              (long long)w.result.time_ps);
    cr_expect((double)bound_ps >= least_frac * (double)w.result.time_ps,
              "%s on %d, %s: bound only %.4f of the time", pod_coll_op_name(op), (int)x,
              closed ? "closed" : "open", (double)bound_ps / (double)w.result.time_ps);
    world_fini(&w);
}

/* At the ends of a line chips have less to pass on, end before those in its middle, and begin before them with what
 * comes next; all the more in an all-to-all, of which most blocks cross the middle. */
Test(sim_step_bound, chips_of_an_open_axis_end_one_by_one)
{
    for (int32_t x = 2; x <= 8; x += 2) {
        check_chain(POD_ALL_TO_ALL, x, 0, 0.6);
        check_chain(POD_ALL_GATHER, x, 0, 0.6);
        check_chain(POD_REDUCE_SCATTER, x, 0, 0.6);
        check_chain(POD_ALL_REDUCE, x, 0, 0.9);
    }
}

/* On a closed axis all chips are the same, and what the last needs they all do. */
Test(sim_step_bound, chips_of_a_closed_axis_end_together)
{
    for (int32_t x = 4; x <= 16; x *= 2) {
        check_chain(POD_ALL_TO_ALL, x, 1, 0.95);
        check_chain(POD_ALL_GATHER, x, 1, 0.95);
        check_chain(POD_REDUCE_SCATTER, x, 1, 0.95);
        check_chain(POD_ALL_REDUCE, x, 1, 0.95);
    }
}

/* Random ops on slices open and closed, some of them with a slow chip or link. */
Test(sim_step_bound, no_step_is_faster)
{
    static const int32_t shapes[][2] = {
        {4, 4},
        {2, 4},
        {5, 2},
        {8, 1},
        {3, 4},
        {8, 4}
    };
    for (int number = 0; number < 80; number = sample_next(number, 8)) {
        const uint64_t seed = (uint64_t)number;
        world w;
        const uint64_t shape = pod_rng_below(seed, 5, 0, sizeof shapes / sizeof shapes[0]);
        world_init_axes(&w, shapes[shape][0], shapes[shape][1], 1,
                        (unsigned)pod_rng_below(seed, 8, 0, 4));
        const uint64_t fault = pod_rng_below(seed, 6, 0, 6);
        if (fault < 2) {
            OK(&w, pod_slice_fault_insert(&w.slice,
                                          fault == 0 ? POD_FAULT_CHIP_SLOW : POD_FAULT_LINK_SLOW, 0,
                                          fault == 0 ? -1 : 0, 1.5, &w.err));
        }
        for (uint64_t i = 0; i < OPS; i++) {
            world_random_op(&w, seed, i, pod_rng_below(seed, 7, 0, 2) == 0);
        }
        world_run(&w);
        const pod_time_ps bound_ps = world_bound(&w);
        cr_expect(bound_ps <= w.result.time_ps, "seed %d: bound %lld, took %lld", (int)seed,
                  (long long)bound_ps, (long long)w.result.time_ps);
        world_fini(&w);
    }
}

/* What is under way at once shares the links: of a ring of four a chip sends three quarters over two of them. */
Test(sim_step_bound, collectives_at_once_add_up_on_the_links)
{
    static const struct {
        pod_coll_op op;
        double vectors; /* that a chip sends, over the share of the others */
    } cases[] = {
        {POD_ALL_REDUCE,     2},
        {POD_ALL_GATHER,     1},
        {POD_REDUCE_SCATTER, 1},
        {POD_ALL_TO_ALL,     1},
    };
    enum { AT_ONCE = 10, BYTES_US = 2000 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        world_init(&w, 4, 1, 1);
        for (int k = 0; k < AT_ONCE; k++) {
            (void)collective(&w, cases[i].op, GROUP_X, BYTES_US, POD_OP_NONE);
        }
        world_run(&w);
        const pod_time_ps bound_ps = world_bound(&w);
        cr_assert_geq(bound_ps, US(cases[i].vectors * 3 / 4 * AT_ONCE * BYTES_US / 2), "%s: %lld",
                      pod_coll_op_name(cases[i].op), (long long)bound_ps);
        cr_assert_leq(bound_ps, w.result.time_ps, "%s", pod_coll_op_name(cases[i].op));
        world_fini(&w);
    }
}

/* Ops that move nothing take no links. */
Test(sim_step_bound, ops_on_the_core_send_nothing)
{
    world w;
    world_init(&w, 4, 1, 1);
    for (int i = 0; i < 1000; i++) {
        (void)core(&w, 0, 0, POD_OP_NONE, POD_OP_NONE);
    }
    cr_expect_eq(world_bound(&w), 0);
    world_fini(&w);
}

/* On a closed 4x4 a chip sends 15/8 of a vector of all chips and 3/2 of one of its row, over four links: more than
 * either takes over its own links. */
Test(sim_step_bound, collectives_of_all_groups_share_the_links_of_a_chip)
{
    world w;
    world_init(&w, 4, 4, 1);
    (void)collective(&w, POD_ALL_REDUCE, GROUP_ALL, 16000, POD_OP_NONE);
    (void)collective(&w, POD_ALL_REDUCE, GROUP_X, 10000, POD_OP_NONE);
    const pod_time_ps bound_ps = world_bound(&w);
    cr_expect_eq(bound_ps, US((15.0 / 8 * 16000 + 3.0 / 2 * 10000) / 4), "%lld ps",
                 (long long)bound_ps);
    world_run(&w);
    cr_expect_leq(bound_ps, w.result.time_ps);
    world_fini(&w);
}

/* A step of one op takes as long as it. */
Test(sim_step_bound, an_op_takes_its_time)
{
    world w;
    world_init(&w, 4, 1, 1);
    (void)core(&w, 0, 7, POD_OP_NONE, POD_OP_NONE);
    cr_expect_eq(world_bound(&w), US(7));
    world_fini(&w);
}

/* A host works for 8 us beside 5 us of the core, then 3 us. */
Test(sim_step_bound, who_needs_a_host_waits_for_it)
{
    world w;
    world_init(&w, 4, 1, 1);
    pod_op op = pod_op_make(POD_OP_HOST, "input", 0);
    op.host_ps = US(8);
    const int32_t input = op_add(&w, 0, &op, POD_OP_NONE, POD_OP_NONE);
    (void)core(&w, 0, 3, core(&w, 0, 5, POD_OP_NONE, POD_OP_NONE), input);
    cr_expect_eq(world_bound(&w), US(8 + 3));
    world_fini(&w);
}

/* Collectives of nothing take none. */
Test(sim_step_bound, collectives_of_no_bytes_take_no_time)
{
    world w;
    world_init_axes(&w, 4, 4, 1, 1);
    (void)collective(&w, POD_ALL_REDUCE, GROUP_ALL, 0, core(&w, 0, 7, POD_OP_NONE, POD_OP_NONE));
    (void)collective(&w, POD_ALL_GATHER, GROUP_Y, 0, POD_OP_NONE);
    cr_expect_eq(world_bound(&w), US(7));
    world_fini(&w);
}

/* The first stage waits for what the second sends after 100 us. */
Test(sim_step_bound, a_stage_waits_for_the_messages_of_another)
{
    world w;
    world_two_stages(&w);
    pod_op recv = pod_op_make(POD_OP_RECV, "recv", 0);
    recv.to_stage = 1;
    recv.message = 0;
    (void)core(&w, 0, 3, op_add(&w, 0, &recv, POD_OP_NONE, POD_OP_NONE), POD_OP_NONE);
    pod_op send = pod_op_make(POD_OP_SEND, "send", 0);
    send.to_stage = 0;
    send.message = 0;
    (void)op_add(&w, 1, &send, core(&w, 1, 100, POD_OP_NONE, POD_OP_NONE), POD_OP_NONE);
    cr_expect_eq(world_bound(&w), US(103));
    world_fini(&w);
}

static pod_status bounds_world(void *context)
{
    world *w = context;
    const pod_step_args args = {.machine = &w->machine, .chip = &w->chip, .programs = &w->programs};
    pod_time_ps bound_ps = 0;
    return pod_step_bound(&args, &bound_ps, &w->err);
}

/* One stage, and two of two rows each. */
Test(sim_step_bound, needs_memory)
{
    for (int32_t stages = 1; stages <= 2; stages++) {
        world w;
        world_init_axes(&w, 4, 4, stages, 1);
        chain(&w, POD_ALL_REDUCE, 2000);
        if (stages > 1) {
            w.programs.stage_of = calloc(16, sizeof *w.programs.stage_of);
            for (int32_t chip = 8; w.programs.stage_of != NULL && chip < 16; chip++) {
                w.programs.stage_of[chip] = 1;
            }
        } else {
            (void)collective(&w, POD_ALL_TO_ALL, GROUP_ALL, 300, POD_OP_NONE);
            (void)collective(&w, POD_ALL_GATHER, GROUP_Y, 300, POD_OP_NONE);
        }
        cr_expect_gt(every_allocation_fails(bounds_world, &w), 30);
        world_fini(&w);
    }
}
