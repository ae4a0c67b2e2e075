/* SPDX-License-Identifier: Apache-2.0 */
/* Few chips that stand for all take the same time as all, whichever chips do something of their own: stages in random
 * patterns over axes and slices, against the same step without folding. */
#include "step_fixture.h"

#include "collectives/registry.h"

#include <string.h>

enum { STAGES = 3, FEW = 12, SEEDS = 100, OPS = 5 };

/* Slices of chips on hosts of their own, servers of one. */
/* Which stage a chip is of: by its place along an axis, its slice, or a single chip that differs from all. */
static int32_t stage_at(const world *w, uint64_t seed, int32_t chip)
{
    int32_t at[POD_AXES];
    const int32_t nchips = w->slice.nchips;
    const int32_t all = nchips * w->slice.nslices;
    pod_slice_coords(&w->slice, chip % nchips, at);
    switch (pod_rng_below(seed, 10, 0, 6)) {
    case 0:
        return at[0] % 2;
    case 1:
        return at[1] % STAGES;
    case 2:
        return chip / nchips % STAGES;
    case 3:
        return (at[0] / 2 + at[1]) % 2;
    case 4:
        return chip == (int32_t)pod_rng_below(seed, 11, 0, (uint64_t)all) ? 1 : 0;
    default:
        return 0;
    }
}

/* A group whose chips are all of one stage, or none. */
static bool group_is_whole(const world *w, int32_t number)
{
    const pod_group *group = &w->programs.groups[number].group;
    const int32_t all = w->slice.nchips * w->slice.nslices;
    for (int32_t chip = 0; chip < all; chip++) {
        for (int32_t rank = 0; rank < group->size; rank++) {
            const int32_t other = pod_group_chip(group, chip, rank);
            if (w->programs.stage_of[other] != w->programs.stage_of[chip]) {
                return false;
            }
        }
    }
    return true;
}

static void ops_add(world *w, uint64_t seed, int32_t stage)
{
    static const pod_coll_op kinds[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER,
                                        POD_ALL_TO_ALL};
    const uint64_t own = seed * STAGES + (uint64_t)stage;
    int32_t before = POD_OP_NONE;
    for (uint64_t i = 0; i < OPS; i++) {
        const int32_t group = (int32_t)pod_rng_below(seed, 1, i, (uint64_t)w->programs.ngroups);
        if (pod_rng_below(own, 2, i, 3) == 0 || !group_is_whole(w, group)) {
            before = core(w, stage, (double)pod_rng_below(own, 3, i, 50), before, POD_OP_NONE);
            continue;
        }
        pod_op op = pod_op_make(POD_OP_COLLECTIVE, "collective", 0);
        op.op = kinds[pod_rng_below(own, 4, i, sizeof kinds / sizeof kinds[0])];
        op.group = group;
        op.bytes = (int64_t)(1 + pod_rng_below(own, 5, i, 40)) * 960;
        op.dtype = POD_DTYPE_BF16;
        before = op_add(w, stage, &op, before, POD_OP_NONE);
    }
}

/* Which of two messages of the same moment goes first on a link may differ, and with it a few parts in 10000. */
static void near(const world *w, uint64_t seed, const char *what, int64_t full, int64_t few)
{
    cr_assert_leq(llabs(full - few), w->result.time_ps / 2000, "seed %d, %s: %lld ps of all, %lld",
                  (int)seed, what, (long long)full, (long long)few);
}

/* @return chips that stood for all, of those that there are */
static double folded_frac(uint64_t seed)
{
    static const int32_t shapes[][2] = {
        {4, 2},
        {4, 4},
        {6, 2},
        {3, 4},
        {2, 2}
    };
    world w;
    const uint64_t shape = pod_rng_below(seed, 6, 0, sizeof shapes / sizeof shapes[0]);
    const int32_t slices = 1 + (int32_t)pod_rng_below(seed, 7, 0, 3);
    world_init_axes(&w, shapes[shape][0], shapes[shape][1], STAGES,
                    (unsigned)pod_rng_below(seed, 8, 0, 4));
    const size_t all = (size_t)(w.slice.nchips * slices);
    w.programs.stage_of = calloc(all, sizeof *w.programs.stage_of);
    w.programs.place_of = calloc(all, sizeof *w.programs.place_of);
    w.programs.chip_at = calloc(all * STAGES, sizeof *w.programs.chip_at);
    if (slices > 1) {
        (void)world_slices(&w, slices);
    }
    int32_t number[STAGES] = {POD_OP_NONE, POD_OP_NONE, POD_OP_NONE};
    w.programs.nstages = 0;
    for (int32_t chip = 0; chip < (int32_t)all; chip++) {
        int32_t *own = &number[stage_at(&w, seed, chip)];
        *own = *own == POD_OP_NONE ? w.programs.nstages++ : *own;
        w.programs.stage_of[chip] = *own;
        w.programs.place_of[chip] = chip;
    }
    for (int32_t stage = 0; stage < w.programs.nstages; stage++) {
        ops_add(&w, seed, stage);
    }
    world_run(&w);
    const pod_step_result few = w.result;
    w.result = (pod_step_result){0};
    w.exact = true;
    world_run(&w);
    const pod_step_result *full = &w.result;
    cr_assert_eq(full->cells, (int64_t)all);
    near(&w, seed, "step", full->time_ps, few.time_ps);
    near(&w, seed, "compute", full->compute_ps / full->cells, few.compute_ps / few.cells);
    near(&w, seed, "ICI", full->exposed_ici_ps / full->cells, few.exposed_ici_ps / few.cells);
    near(&w, seed, "DCN", full->exposed_dcn_ps / full->cells, few.exposed_dcn_ps / few.cells);
    cr_assert_eq(full->links.max_bytes, few.links.max_bytes, "seed %d", (int)seed);
    const double frac = (double)few.cells / (double)all;
    pod_step_result fold = few;
    pod_step_result_fini(&fold);
    world_fini(&w);
    return frac;
}

Test(sim_step_fold, stands_for_all_chips_whatever_some_do)
{
    for (uint64_t seed = 0; seed < FEW; seed++) {
        (void)folded_frac(seed);
    }
}

Test(sim_step_fold, stands_for_all_chips_where_it_can)
{
    int folded = 0;
    int whole = 0;
    for (uint64_t seed = FEW; seed < SEEDS; seed++) {
        const double frac = folded_frac(seed);
        folded += frac < 1;
        whole += frac >= 1;
    }
    cr_assert_gt(folded, (SEEDS - FEW) / 4, "%d of %d fold", folded, SEEDS - FEW);
    cr_assert_gt(whole, (SEEDS - FEW) / 20, "%d of %d are whole", whole, SEEDS - FEW);
}

/* On a torus that closes one chip is enough, whatever the collective; an open axis keeps its chips. */
Test(sim_step_fold, one_chip_of_a_torus_is_enough)
{
    static const pod_coll_op kinds[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (unsigned closed = 0; closed < 4; closed++) {
            world w;
            world_init_axes(&w, 4, 4, 1, closed);
            w.algorithm = "bucket";
            (void)collective(&w, kinds[i], GROUP_ALL, 96, POD_OP_NONE);
            world_run(&w);
            cr_assert_eq(
                w.result.cells, ((closed & 1U) != 0 ? 1 : 4) * ((closed & 2U) != 0 ? 1 : 4),
                "%s, closed %u: %d cells", pod_coll_op_name(kinds[i]), closed, (int)w.result.cells);
            world_fini(&w);
        }
    }
}

/* ---- how few stand for all ---- */

/* Stages, which do what no other does, by a chip's place: @return the cells that a step of core ops has. */
static int64_t cells_of(int32_t slices, int32_t (*stage_of)(int32_t slice, int32_t x, int32_t y))
{
    world w;
    world_init(&w, 4, 4, STAGES);
    if (slices > 1) {
        (void)world_slices(&w, slices);
    }
    const int32_t all = w.slice.nchips * slices;
    w.programs.stage_of = calloc((size_t)all, sizeof *w.programs.stage_of);
    w.programs.place_of = calloc((size_t)all, sizeof *w.programs.place_of);
    w.programs.chip_at = calloc((size_t)all * STAGES, sizeof *w.programs.chip_at);
    for (int32_t chip = 0; chip < all; chip++) {
        w.programs.stage_of[chip] = stage_of(chip / 16, chip % 4, chip / 4 % 4);
        w.programs.place_of[chip] = chip;
    }
    for (int32_t s = 0; s < STAGES; s++) {
        (void)core(&w, s, 10 * (s + 1), POD_OP_NONE, POD_OP_NONE);
    }
    world_run(&w);
    const int64_t cells = w.result.cells;
    world_fini(&w);
    return cells;
}

static int32_t by_column(int32_t slice, int32_t x, int32_t y)
{
    (void)slice;
    (void)y;
    return x % 2;
}

static int32_t by_square(int32_t slice, int32_t x, int32_t y)
{
    (void)slice;
    return (x + y) % 2;
}

static int32_t by_two_columns(int32_t slice, int32_t x, int32_t y)
{
    (void)slice;
    return (x / 2 + y) % 2;
}

static int32_t by_last_row(int32_t slice, int32_t x, int32_t y)
{
    (void)slice;
    (void)x;
    return y == 3;
}

static int32_t by_outer_rows(int32_t slice, int32_t x, int32_t y)
{
    (void)slice;
    (void)x;
    return y == 0 || y == 3;
}

static int32_t by_last_chip(int32_t slice, int32_t x, int32_t y)
{
    return slice == 1 && x == 3 && y == 3;
}

static int32_t by_slice(int32_t slice, int32_t x, int32_t y)
{
    (void)x;
    (void)y;
    return slice;
}

Test(sim_step_fold, a_box_is_as_long_as_what_repeats)
{
    cr_expect_eq(cells_of(1, by_column), 2);
    cr_expect_eq(cells_of(1, by_square), 4);
    cr_expect_eq(cells_of(1, by_two_columns), 4 * 2);
    cr_expect_eq(cells_of(1, by_last_row), 4);
    cr_expect_eq(cells_of(1, by_outer_rows), 4, "three rows don't fit into four");
    cr_expect_eq(cells_of(3, by_column), 2, "one slice stands for all");
    cr_expect_eq(cells_of(2, by_slice), 2, "a chip of each");
    cr_expect_eq(cells_of(3, by_slice), 3);
    cr_expect_eq(cells_of(2, by_last_chip), 32, "a chip that differs leaves all");
}

/* Neighbours along x pass on: round a ring all chips do the same; on a line its ends don't. Across, nothing is
 * sent, so that one row stands for all whether columns close or not. */
Test(sim_step_fold, what_is_sent_along_an_axis_decides)
{
    for (unsigned closed = 0; closed < 4; closed++) {
        for (int32_t shift = 1; shift < 4; shift++) {
            world w;
            world_init_axes(&w, 4, 3, 1, closed);
            (void)pass(&w, 40, shift, POD_OP_NONE);
            world_run(&w);
            cr_expect_eq(w.result.cells, (closed & 1U) != 0 ? 1 : 4, "closed %u, %d on: %d cells",
                         closed, (int)shift, (int)w.result.cells);
            world_fini(&w);
        }
    }
    world w;
    world_init(&w, 4, 4, 1);
    (void)collective(&w, POD_BROADCAST, GROUP_X, 40, POD_OP_NONE);
    world_run(&w);
    cr_expect_eq(w.result.cells, 4, "the root of a ring differs, but it is in every row");
    world_fini(&w);
}

/* A ring through all chips of a torus leads each to another link: only where rings are asked for one chip stands
 * for all, and the step takes as long. */
Test(sim_step_fold, a_ring_through_all_chips_is_asked_for)
{
    pod_time_ps times[3];
    for (int rings = 0; rings < 3; rings++) {
        world w;
        world_init(&w, 4, 4, 1);
        w.algorithm = "ring";
        (void)collective(&w, POD_ALL_REDUCE, GROUP_ALL, 960, POD_OP_NONE);
        const pod_step_args args = {.machine = &w.machine,
                                    .chip = &w.chip,
                                    .programs = &w.programs,
                                    .algorithm = w.algorithm,
                                    .fold = rings > 0,
                                    .fold_rings = rings > 1};
        OK(&w, pod_step_run(&args, &w.result, &w.err));
        cr_expect(rings == 2 ? w.result.cells < 16 : w.result.cells == 16, "%d: %d cells", rings,
                  (int)w.result.cells);
        times[rings] = w.result.time_ps;
        world_fini(&w);
    }
    cr_expect_eq(times[0], times[1]);
    cr_expect_eq(times[0], times[2]);
}

/* @return time, 0 where the algorithm doesn't do it */
static pod_time_ps alone_ps(const int32_t dims[2], pod_coll_op op, const char *algorithm,
                            bool rings, int64_t *cells)
{
    world w;
    world_init(&w, dims[0], dims[1], 1);
    (void)collective(&w, op, GROUP_ALL, 100.3, POD_OP_NONE);
    const pod_step_args args = {.machine = &w.machine,
                                .chip = &w.chip,
                                .programs = &w.programs,
                                .algorithm = algorithm,
                                .fold = rings,
                                .fold_rings = rings};
    const pod_time_ps time_ps =
        pod_step_run(&args, &w.result, &w.err) == POD_OK ? w.result.time_ps : 0;
    *cells = w.result.cells;
    world_fini(&w);
    return time_ps;
}

/* Whatever it does, and however its chips differ. Of messages that are routed, which of two of the same moment goes
 * first may differ. */
Test(sim_step_fold, a_collective_alone_takes_as_long)
{
    static const int32_t shapes[][2] = {
        {4, 4},
        {6, 3},
        {2, 8}
    };
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    int folded = 0;
    for (int k = 0; k < SHAPES * POD_COLL_OP_COUNT * pod_coll_algorithm_count(); k++) {
        const pod_coll_algorithm *algorithm =
            pod_coll_algorithm_at(k / (SHAPES * POD_COLL_OP_COUNT));
        const int32_t *dims = shapes[k % SHAPES];
        const pod_coll_op op = (pod_coll_op)(k / SHAPES % POD_COLL_OP_COUNT);
        int64_t all = 0;
        int64_t few = 0;
        if (algorithm->plans) { /* it makes one of the others */
            continue;
        }
        const pod_time_ps exact_ps = alone_ps(dims, op, algorithm->name, false, &all);
        const pod_time_ps folded_ps = alone_ps(dims, op, algorithm->name, true, &few);
        const double frac = op == POD_ALL_TO_ALL ? 1e-3 : 0;
        cr_expect_float_eq((double)folded_ps, (double)exact_ps, frac * (double)exact_ps,
                           "%s by %s on %d of %d cells: %lld ps, not %lld", pod_coll_op_name(op),
                           algorithm->name, (int)few, (int)all, (long long)folded_ps,
                           (long long)exact_ps);
        folded += few < all;
    }
    cr_expect_gt(folded, 50, "%d", folded);
}

/* Every second chip of a ring of eight sends to one between, each to the one after it or two of them across. */
static int64_t cells_of_partners(const int32_t partner[4])
{
    world w;
    world_init(&w, 8, 1, 2);
    w.programs.stage_of = calloc(8, sizeof(int32_t));
    w.programs.place_of = calloc(8, sizeof(int32_t));
    w.programs.chip_at = calloc(8, sizeof(int32_t));
    for (int32_t place = 0; place < 4; place++) {
        const int32_t both[] = {2 * place, partner[place]};
        for (int32_t stage = 0; stage < 2; stage++) {
            w.programs.stage_of[both[stage]] = stage;
            w.programs.place_of[both[stage]] = place;
            w.programs.chip_at[2 * place + stage] = both[stage];
        }
    }
    pod_op send = pod_op_make(POD_OP_SEND, "send", 0);
    pod_op recv = pod_op_make(POD_OP_RECV, "recv", 0);
    send.to_stage = 1;
    send.bytes = 4000;
    recv.to_stage = 0;
    recv.bytes = 4000;
    (void)op_add(&w, 0, &send, POD_OP_NONE, POD_OP_NONE);
    (void)op_add(&w, 1, &recv, POD_OP_NONE, POD_OP_NONE);
    world_run(&w);
    const int64_t cells = w.result.cells;
    world_fini(&w);
    return cells;
}

Test(sim_step_fold, stages_meet_alike_or_not)
{
    cr_expect_eq(cells_of_partners((const int32_t[]){1, 3, 5, 7}), 2);
    cr_expect_eq(cells_of_partners((const int32_t[]){7, 1, 3, 5}), 2);
    cr_expect_eq(cells_of_partners((const int32_t[]){1, 3, 7, 5}), 8);
}

/* Two slices of two chips, which all take part in a collective of 1000 us. */
static void joined_init(world *w, pod_coll_op op)
{
    world_init(w, 2, 1, 1);
    const int32_t over = world_slices(w, 2);
    (void)collective(w, op, over, 1000, POD_OP_NONE);
}

/* An all-reduce of all four waits for the links inside, then for the others. */
Test(sim_step_fold, waiting_inside_a_slice_is_no_waiting_across)
{
    world w;
    joined_init(&w, POD_ALL_REDUCE);
    world_run(&w);
    cr_expect_gt(w.result.exposed_dcn_ps, 0);
    cr_expect_gt(w.result.exposed_ici_ps, 0);
    cr_expect_eq(w.result.exposed_dcn_ps + w.result.exposed_ici_ps,
                 w.result.cells * w.result.time_ps);
    world_fini(&w);
}

/* The root of a broadcast is in one slice: none stands for the other. */
Test(sim_step_fold, the_slice_of_a_root_is_like_no_other)
{
    world w;
    joined_init(&w, POD_BROADCAST);
    world_run(&w);
    cr_expect_eq(w.result.cells, 4, "%d cells", (int)w.result.cells);
    world_fini(&w);
}

/* ---- an observer ---- */

static void see_busy(void *context, int32_t watch, int direction, pod_time_ps start_ps,
                     pod_time_ps end_ps)
{
    (void)watch;
    cr_assert_lt(direction, POD_DIRECTIONS);
    *(pod_time_ps *)context += end_ps - start_ps;
}

static void see_left(void *context, int32_t watch, int direction, int32_t stage, int32_t op,
                     pod_time_ps now_ps)
{
    (void)context;
    (void)watch;
    (void)stage;
    (void)op;
    (void)now_ps;
    cr_assert_lt(direction, POD_DIRECTIONS);
}

/* What goes to another slice leaves by PCIe and a NIC, which are no links of the chip. */
Test(sim_step_fold, an_observer_sees_links_alone)
{
    world w;
    joined_init(&w, POD_ALL_REDUCE);
    pod_time_ps busy_ps = 0;
    const int32_t chips[] = {0, 3};
    const pod_step_observer observer = {
        .context = &busy_ps, .nchips = 2, .chips = chips, .busy = see_busy, .left = see_left};
    const pod_step_args args = {
        .machine = &w.machine, .chip = &w.chip, .programs = &w.programs, .observer = &observer};
    OK(&w, pod_step_run(&args, &w.result, &w.err));
    cr_expect_gt(w.result.links.dcn_bytes, 0);
    cr_expect_gt(busy_ps, 0);
    world_fini(&w);
}
