/* SPDX-License-Identifier: Apache-2.0 */
/* Which chips the bound of a step takes for the same kind, which kinds meet, and over which group it follows all. */
#include "step_fixture.h"

#include "sim/step_bound_kinds.h"

typedef struct found {
    pod_step_args args;
    step_run run;
    step_kinds *kinds;
} found;

static void kinds_open(found *f, world *w)
{
    *f = (found){
        .args = {.machine = &w->machine, .chip = &w->chip, .programs = &w->programs},
        .kinds = NULL
    };
    f->run = (step_run){.args = &f->args, .bounds_only = true, .hbm_port = -1};
    OK(w, pod_step_plan(&f->run, &w->err));
    OK(w, pod_step_kinds_find(&f->run, &f->kinds, &w->err));
}

static void kinds_close(found *f, world *w)
{
    pod_step_kinds_free(&f->run, f->kinds);
    pod_step_plan_free(&f->run);
    pod_map_fini(&f->run.recv_op);
    world_fini(w);
}

static const step_kind_bounds *bounds_over(const found *f, int32_t group)
{
    for (int32_t i = 0; i < f->run.nschedules; i++) {
        if (f->run.schedules[i].group == group) {
            return &f->run.schedules[i].kind_bounds[0];
        }
    }
    cr_assert(false, "no schedule over group %d", (int)group);
    return NULL;
}

/* On an open 3x4 no two chips have the same place in rows and columns: each is a kind. Of collectives over rows,
 * rows are the sets, over columns columns; those that take longest are followed. */
Test(sim_step_kinds, sets_are_the_groups_of_what_takes_longest)
{
    for (int over_x = 0; over_x < 2; over_x++) {
        world w;
        found f;
        world_init_axes(&w, 3, 4, 1, 0);
        (void)core(&w, 0, 1, POD_OP_NONE, POD_OP_NONE);
        (void)collective(&w, POD_ALL_REDUCE, GROUP_X, over_x ? 9000 : 90, POD_OP_NONE);
        (void)collective(&w, POD_ALL_REDUCE, GROUP_Y, over_x ? 90 : 9000, POD_OP_NONE);
        kinds_open(&f, &w);
        cr_assert_eq(f.kinds->count, 12);
        cr_expect_eq(f.kinds->nchips, 12);
        cr_expect_eq(f.kinds->group, over_x ? GROUP_X : GROUP_Y);
        cr_assert_eq(f.kinds->nsets, over_x ? 4 : 3);
        for (int32_t chip = 0; chip < 12; chip++) {
            cr_expect_eq(f.kinds->kind_of[chip], chip);
            cr_expect_eq(f.kinds->set_of[chip], over_x ? chip / 3 : chip % 3);
        }
        const step_kind_bounds *rows = bounds_over(&f, GROUP_X);
        cr_expect(rows->whole_sets && !rows->in_step);
        for (int32_t chip = 0; chip < 12; chip++) {
            for (int32_t other = 0; other < 12; other++) {
                cr_expect_eq(rows->set_of[chip] == rows->set_of[other], chip / 3 == other / 3);
            }
        }
        kinds_close(&f, &w);
    }
}

/* Columns of an open 3 by a closed 4: along y all chips do the same, along x each has its own place. Rows are one
 * set, of three kinds; each column is a set of its own, all whose chips are of one kind. */
Test(sim_step_kinds, chips_a_period_apart_are_one_kind)
{
    world w;
    found f;
    world_init_axes(&w, 3, 4, 1, 2);
    (void)collective(&w, POD_ALL_REDUCE, GROUP_X, 90, POD_OP_NONE);
    (void)collective(&w, POD_ALL_REDUCE, GROUP_Y, 9000, POD_OP_NONE);
    kinds_open(&f, &w);
    cr_assert_eq(f.kinds->count, 3);
    for (int32_t chip = 0; chip < 12; chip++) {
        cr_expect_eq(f.kinds->kind_of[chip], chip % 3);
    }
    const step_kind_bounds *rows = bounds_over(&f, GROUP_X);
    const step_kind_bounds *columns = bounds_over(&f, GROUP_Y);
    cr_expect(rows->whole_sets && !rows->in_step);
    cr_expect(columns->whole_sets && columns->in_step);
    cr_expect(rows->set_of[0] == rows->set_of[1] && rows->set_of[0] == rows->set_of[2]);
    cr_expect(columns->set_of[0] != columns->set_of[1] && columns->set_of[1] != columns->set_of[2]);
    cr_expect_eq(f.kinds->group, GROUP_X, "what is in step needs no sets, however long it takes");
    cr_expect_eq(f.kinds->nsets, 1);
    kinds_close(&f, &w);
}

/* A kind can't be faster than the fastest of its chips: in a line of 3, 9000 bytes of an all-reduce enter the ends
 * over one link of 1 GB/s, the middle over two. Over rows that do the same in each of two columns. */
Test(sim_step_kinds, a_kind_has_the_least_of_its_chips)
{
    world w;
    found f;
    world_init_axes(&w, 3, 2, 1, 0);
    (void)collective(&w, POD_ALL_REDUCE, GROUP_X, 9, POD_OP_NONE);
    kinds_open(&f, &w);
    cr_assert_eq(f.kinds->count, 3, "rows need not be told apart");
    const step_kind_bounds *rows = bounds_over(&f, GROUP_X);
    const pod_coll_chip_bounds *chips = &f.run.schedules[0].chip_bounds[0];
    cr_expect_eq(rows->enters_ps[0], US(9));
    cr_expect_eq(rows->enters_ps[1], US(4.5));
    cr_expect_eq(rows->enters_ps[2], US(9));
    for (int32_t k = 0; k < 3; k++) {
        cr_expect_eq(rows->in_ps[k], pod_max_i64(rows->enters_ps[k], chips->far_ps[k]));
        cr_expect_eq(rows->out_ps[k], chips->out_ps[k]);
    }
    cr_expect_gt(chips->far_ps[1], rows->enters_ps[1], "all 9000 cross the cut beside an end");
    kinds_close(&f, &w);
}

/* A chip sends on what it has from another, or begins elsewhere: chips of a ring aren't in step. */
Test(sim_step_kinds, beside_a_permute_or_a_broadcast_nobody_is_in_step)
{
    static const pod_coll_op beside[] = {POD_ALL_REDUCE, POD_PERMUTE, POD_BROADCAST};
    for (int i = 0; i < 3; i++) {
        world w;
        found f;
        world_init_axes(&w, 4, 1, 1, 1);
        (void)collective(&w, POD_ALL_GATHER, GROUP_X, 80, POD_OP_NONE);
        (void)collective(&w, beside[i], GROUP_X, 80, POD_OP_NONE);
        kinds_open(&f, &w);
        cr_expect_eq(bounds_over(&f, GROUP_X)->in_step, i == 0, "%s", pod_coll_op_name(beside[i]));
        kinds_close(&f, &w);
    }
}

/* Rows of a 3x2 are stages: each knows the kinds of its own chips. */
Test(sim_step_kinds, stages_have_kinds_of_their_own)
{
    world w;
    found f;
    world_init_axes(&w, 3, 2, 2, 0);
    w.programs.stage_of = calloc(6, sizeof *w.programs.stage_of);
    cr_assert_not_null(w.programs.stage_of);
    for (int32_t chip = 3; chip < 6; chip++) {
        w.programs.stage_of[chip] = 1;
    }
    for (int32_t s = 0; s < 2; s++) {
        pod_op op = pod_op_make(POD_OP_COLLECTIVE, "all-reduce", 0);
        op.op = POD_ALL_REDUCE;
        op.group = GROUP_X;
        op.bytes = 9000;
        op.dtype = POD_DTYPE_BF16;
        (void)op_add(&w, s, &op, POD_OP_NONE, POD_OP_NONE);
    }
    kinds_open(&f, &w);
    for (int32_t s = 0; s < 2; s++) {
        cr_assert_eq(f.kinds[s].count, 3, "stage %d", (int)s);
        cr_expect_eq(f.kinds[s].group, GROUP_X);
        cr_expect_eq(f.kinds[s].nsets, 1);
        const step_kind_bounds *rows = &f.run.schedules[0].kind_bounds[s];
        cr_expect(rows->whole_sets && !rows->in_step);
        cr_expect(rows->set_of[0] == rows->set_of[1] && rows->set_of[1] == rows->set_of[2]);
        for (int32_t chip = 0; chip < 6; chip++) {
            cr_expect_eq(f.kinds[s].kind_of[chip], chip / 3 == s ? chip % 3 : -1);
        }
    }
    kinds_close(&f, &w);
}

/* Up to 4 Mi times of ops and kinds are kept: 1024 kinds of an open 32x32 and 4096 ops. With one more all chips
 * are one kind. */
Test(sim_step_kinds, are_one_where_they_would_be_too_many)
{
    for (int over = 0; over < 2; over++) {
        world w;
        found f;
        world_init_axes(&w, 32, 32, 1, 0);
        (void)collective(&w, POD_ALL_REDUCE, GROUP_ALL, 4, POD_OP_NONE);
        for (int i = 1; i < 4096 + over; i++) {
            (void)core(&w, 0, 1, POD_OP_NONE, POD_OP_NONE);
        }
        kinds_open(&f, &w);
        cr_expect_eq(f.kinds->count, over ? 1 : 1024);
        kinds_close(&f, &w);
    }
}
