/* SPDX-License-Identifier: Apache-2.0 */
/* Compute and copy ops, algorithms of ops, permutes by lists, the observer. The HBM moves 1 byte a picosecond. */
#include "step_fixture.h"

static int32_t compute(world *w, double unit_us, double hbm_us, int32_t dep)
{
    pod_op op = pod_op_make(POD_OP_COMPUTE, "compute", 0);
    op.unit_ps = US(unit_us);
    op.hbm_bytes = US(hbm_us);
    return op_add(w, 0, &op, dep, POD_OP_NONE);
}

static int32_t copy(world *w, int32_t lane, double hbm_us, int32_t dep)
{
    pod_op op = pod_op_make(POD_OP_COPY, "copy", 0);
    op.hbm_bytes = US(hbm_us);
    op.lane = lane;
    return op_add(w, 0, &op, dep, POD_OP_NONE);
}

Test(sim_step_work, takes_its_start_and_then_the_longer_of_unit_and_bytes)
{
    static const double cases[][3] = {
        {7, 3, 9},
        {3, 7, 9},
        {0, 7, 9},
        {7, 0, 9},
        {0, 0, 2}
    }; /* unit, bytes, all with a start of 2 */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        world_init(&w, 4, 1, 1);
        const int32_t op = compute(&w, cases[i][0], cases[i][1], POD_OP_NONE);
        w.programs.stages[0].ops[op].start_ps = US(2);
        world_run(&w);
        cr_assert_eq(w.result.time_ps, US(cases[i][2]));
        cr_assert_eq(w.result.compute_ps, w.result.cells * US(cases[i][2]));
        cr_assert_eq(w.result.hbm_bound_ps, cases[i][1] > cases[i][0] ? w.result.compute_ps : 0);
        world_fini(&w);
    }
}

/* 64 MiB read and written at 820 GB/s: 2 · 67108864 / 820e9 s (scaling book's rate of v5e). */
Test(sim_step_work, a_copy_takes_its_bytes_over_the_hbm_rate)
{
    world w;
    world_init(&w, 4, 1, 1);
    w.chip.hbm_bytes_per_s = 820e9;
    const int32_t op = copy(&w, POD_LANE_COPY, 0, POD_OP_NONE);
    w.programs.stages[0].ops[op].hbm_bytes = 2 * INT64_C(67108864);
    world_run(&w);
    cr_assert_float_eq((double)w.result.time_ps / 1e6, 163.68, 0.005);
    cr_assert_eq(w.result.exposed_hbm_ps, w.result.cells * w.result.time_ps);
    world_fini(&w);
}

/* Of an HBM that reaches half its rate 3 us of bytes take 6. */
Test(sim_step_work, a_copy_takes_longer_where_the_hbm_reaches_less)
{
    world w;
    world_init(&w, 4, 1, 1);
    w.chip.hbm_eff_frac = 0.5;
    (void)copy(&w, POD_LANE_COPY, 3, POD_OP_NONE);
    world_run(&w);
    cr_assert_eq(w.result.time_ps, US(6));
    world_fini(&w);
}

/* Both have 20 us of bytes: until the copy has had its 20 at half the rate, 40 us; the core, which has 30 us, gets the
 * whole HBM for the last 10. */
Test(sim_step_work, core_and_copies_share_the_hbm)
{
    world w;
    world_init(&w, 4, 1, 1);
    const int32_t beside = copy(&w, POD_LANE_COPY, 20, POD_OP_NONE);
    const int32_t op = compute(&w, 0, 30, POD_OP_NONE);
    world_run(&w);
    cr_assert_eq(w.result.ops[0][beside].last_end_ps, US(40));
    cr_assert_eq(w.result.ops[0][op].last_end_ps, US(50));
    cr_assert_eq(w.result.exposed_hbm_ps, 0);
    cr_assert_eq(w.result.compute_ps, w.result.cells * US(50));
    world_fini(&w);
}

/* A core bound by its units leaves the HBM to the copy. */
Test(sim_step_work, a_copy_beside_units_is_hidden)
{
    world w;
    world_init(&w, 4, 1, 1);
    const int32_t beside = copy(&w, POD_LANE_COPY, 20, POD_OP_NONE);
    (void)compute(&w, 50, 0, POD_OP_NONE);
    world_run(&w);
    cr_assert_eq(w.result.ops[0][beside].last_end_ps, US(20));
    cr_assert_eq(w.result.time_ps, US(50));
    world_fini(&w);
}

Test(sim_step_work, copies_of_one_lane_follow_each_other_and_lanes_share)
{
    for (int32_t lane = POD_LANE_COPY; lane <= POD_LANE_SPARSE; lane++) {
        world w;
        world_init(&w, 4, 1, 1);
        const int32_t first = copy(&w, POD_LANE_COPY, 20, POD_OP_NONE);
        const int32_t second = copy(&w, lane, 20, POD_OP_NONE);
        world_run(&w);
        const pod_op_record *ops = w.result.ops[0];
        cr_assert_eq(ops[first].last_end_ps, US(lane == POD_LANE_COPY ? 20 : 40));
        cr_assert_eq(ops[second].first_start_ps, US(lane == POD_LANE_COPY ? 20 : 0));
        cr_assert_eq(ops[second].last_end_ps, US(40));
        world_fini(&w);
    }
}

Test(sim_step_work, a_core_that_waits_for_a_copy_is_exposed_to_the_hbm)
{
    world w;
    world_init(&w, 4, 1, 1);
    const int32_t first = compute(&w, 10, 0, POD_OP_NONE);
    const int32_t moved = copy(&w, POD_LANE_COPY, 20, first);
    (void)compute(&w, 5, 0, first);
    (void)compute(&w, 1, 0, moved);
    world_run(&w);
    cr_assert_eq(w.result.time_ps, US(31));
    cr_assert_eq(mean(&w, w.result.exposed_hbm_ps), US(15));
    cr_assert_eq(w.result.exposed_ici_ps, 0);
    cr_assert_eq(mean(&w, w.result.ops[0][moved].exposed_ps), US(15));
    world_fini(&w);
}

Test(sim_step_work, a_slow_chip_takes_longer_for_units_and_bytes)
{
    world w;
    world_init(&w, 4, 1, 1);
    OK(&w, pod_slice_fault_insert(&w.slice, POD_FAULT_CHIP_SLOW, 1, -1, 3, &w.err));
    (void)compute(&w, 10, 0, compute(&w, 0, 20, POD_OP_NONE));
    world_run(&w);
    cr_assert_eq(w.result.time_ps, US(3 * (10 + 20)));
    world_fini(&w);
}

Test(sim_step_work, work_below_nothing_is_refused)
{
    world w;
    world_init(&w, 4, 1, 1);
    const int32_t op = compute(&w, 1, 1, POD_OP_NONE);
    w.programs.stages[0].ops[op].unit_ps = -1;
    cr_assert_eq(pod_programs_finish(&w.programs, &w.err), POD_E_INTERNAL);
    world_fini(&w);
}

/* ---- matmuls ---- */

/* Time of the last of some matmuls. */
static pod_time_ps last_matmul_ps(const pod_op *matmuls, int count)
{
    world w;
    world_init(&w, 2, 1, 1);
    w.chip.devices = 1;
    w.chip.cores = 1;
    w.chip.mxus_per_core = 4;
    w.chip.mxu_dim = 128;
    w.chip.clock_hz = 1.5e9;
    w.chip.peak_ops_per_s[POD_DTYPE_BF16] = 197e12;
    w.chip.peak_ops_per_s[POD_DTYPE_INT8] = 394e12;
    w.chip.mxu_eff_frac = 1;
    w.chip.mxu_step_frac = 0.5;
    w.chip.vmem_bytes = 128 << 20;
    w.chip.vmem_block_bytes = 64 << 20;
    w.chip.vmem_bytes_per_s = 1e13;
    for (int i = 0; i < count; i++) {
        (void)op_add(&w, 0, &matmuls[i], POD_OP_NONE, POD_OP_NONE);
    }
    world_run(&w);
    const pod_op_record *last = &w.result.ops[0][count - 1];
    const pod_time_ps time_ps = last->last_end_ps - last->first_start_ps;
    world_fini(&w);
    return time_ps;
}

/* The search for blocks is spared where the same matmul came before, and only there. */
Test(sim_step_work, a_matmul_takes_its_own_time_after_one_that_is_like_it)
{
    enum { SAME, M, K, N, COUNT, DTYPE, SUSTAINED, IN_VMEM, PREFETCH, CHANGES };
    for (int change = SAME; change < CHANGES; change++) {
        pod_op two[2];
        for (int i = 0; i < 2; i++) {
            two[i] = pod_op_make(POD_OP_MATMUL, "matmul", 0);
            two[i].dtype = POD_DTYPE_BF16;
            two[i].m = 1024;
            two[i].k = 1024;
            two[i].n = 1024;
        }
        two[1].m *= change == M ? 2 : 1;
        two[1].k *= change == K ? 2 : 1;
        two[1].n *= change == N ? 2 : 1;
        two[1].count += change == COUNT ? 1 : 0;
        two[1].dtype = change == DTYPE ? POD_DTYPE_INT8 : POD_DTYPE_BF16;
        two[1].sustained = change == SUSTAINED;
        two[1].weights_in_vmem = change == IN_VMEM;
        two[1].prefetch_bytes = change == PREFETCH ? 1 << 30 : 0;
        const pod_time_ps first_ps = last_matmul_ps(two, 1);
        const pod_time_ps alone_ps = last_matmul_ps(two + 1, 1);
        cr_expect_eq(last_matmul_ps(two, 2), alone_ps, "change %d", change);
        cr_expect_eq(alone_ps == first_ps, change == SAME, "change %d: %lld ps", change,
                     (long long)alone_ps);
    }
}

/* ---- algorithms of ops ---- */

static void algorithms_set(world *w, const pod_program_algorithm *algorithms, int32_t count)
{
    w->programs.nalgorithms = count;
    w->programs.algorithms = calloc((size_t)count, sizeof *algorithms);
    cr_assert(w->programs.algorithms != NULL);
    memcpy(w->programs.algorithms, algorithms, (size_t)count * sizeof *algorithms);
}

Test(sim_step_work, an_op_runs_its_own_algorithm_and_says_why_if_it_cannot)
{
    const pod_program_algorithm algorithms[] = {
        {.name = "line"}, {.name = "swing"}, {.name = "ring"}};
    world w;
    world_init(&w, 5, 1, 1);
    algorithms_set(&w, algorithms, 3);
    for (int32_t i = 0; i < 3; i++) {
        const int32_t op = collective(&w, POD_ALL_REDUCE, GROUP_X, 40, POD_OP_NONE);
        w.programs.stages[0].ops[op].algorithm = i;
    }
    world_run(&w);
    const pod_op_record *ops = w.result.ops[0];
    cr_assert_str_eq(ops[2].algorithm, "ring");
    cr_assert_eq(ops[2].fallback, 0);
    cr_assert_str_neq(ops[1].algorithm, "swing", "of 5 chips");
    cr_assert_gt(ops[1].fallback, 0);
    cr_assert_leq(ops[1].fallback, w.result.nfallbacks);
    cr_assert(strstr(w.result.fallbacks[ops[1].fallback - 1].why, "swing") != NULL, "%s",
              w.result.fallbacks[ops[1].fallback - 1].why);
    world_fini(&w);
}

/* One stream one way round a closed ring of 4: 3 steps of a quarter of the links' time and a hop each. */
Test(sim_step_work, a_wish_runs_as_it_says)
{
    pod_program_algorithm given = {.name = "xla", .given = true};
    given.wish = (pod_xla_wish){.form = POD_XLA_FORM_STREAMS, .streams = 1, .way = POD_XLA_ONE};
    world w;
    world_init(&w, 4, 1, 1);
    algorithms_set(&w, &given, 1);
    const int32_t op = collective(&w, POD_ALL_GATHER, GROUP_X, 40, POD_OP_NONE);
    w.programs.stages[0].ops[op].algorithm = 0;
    world_run(&w);
    cr_assert_str_eq(w.result.ops[0][op].algorithm, "xla:1xone:x");
    cr_assert_eq(w.result.time_ps, US(5 + 3 * (10 + 1)));
    world_fini(&w);
}

/* Streams along x and y on a group of x only: xla's own rules instead, with the reason. */
Test(sim_step_work, a_wish_that_does_not_fit_gives_way_to_the_rules)
{
    pod_program_algorithm given = {.name = "xla", .given = true};
    given.wish =
        (pod_xla_wish){.form = POD_XLA_FORM_STREAMS, .streams = 1, .nphases = 2, .order = {{0, 1}}};
    world w;
    world_init(&w, 4, 4, 1);
    algorithms_set(&w, &given, 1);
    const int32_t op = collective(&w, POD_ALL_REDUCE, GROUP_X, 40, POD_OP_NONE);
    w.programs.stages[0].ops[op].algorithm = 0;
    world_run(&w);
    const pod_op_record *record = &w.result.ops[0][op];
    cr_assert(strncmp(record->algorithm, "xla:", 4) == 0, "%s", record->algorithm);
    cr_assert_eq(record->fallback, 1);
    cr_assert(strstr(w.result.fallbacks[0].why, "group over 1 axis") != NULL);
    world_fini(&w);
}

/* Chip 0 sends to 1, which sends to 2; the others neither send nor receive. */
Test(sim_step_work, a_permute_goes_by_its_list)
{
    world w;
    world_init(&w, 4, 1, 1);
    w.programs.npermutes = 1;
    w.programs.permutes = calloc(1, sizeof *w.programs.permutes);
    w.programs.permutes[0].source_of = calloc(4, sizeof(int32_t));
    const int32_t sources[4] = {-1, 0, 1, -1};
    memcpy(w.programs.permutes[0].source_of, sources, sizeof sources);
    const int32_t op = collective(&w, POD_PERMUTE, GROUP_ALL, 20, POD_OP_NONE);
    w.programs.stages[0].ops[op].sources = 0;
    world_run(&w);
    cr_assert_eq(w.result.time_ps, US(5 + 1 + 20));
    cr_assert_eq(w.result.links.total_bytes, 2 * 20000);
    world_fini(&w);
}

/* ---- the observer ---- */

typedef struct seen {
    int ops;
    pod_time_ps op_ps;
    pod_time_ps busy_ps[POD_DIRECTIONS];
    int left[POD_DIRECTIONS];
    int32_t left_op;
    int32_t watch;
} seen;

static void see_op(void *context, int32_t watch, int32_t stage, int32_t op, pod_time_ps start_ps,
                   pod_time_ps end_ps)
{
    seen *s = context;
    (void)stage;
    (void)op;
    s->ops++;
    s->op_ps += end_ps - start_ps;
    s->watch = watch;
}

static void see_busy(void *context, int32_t watch, int direction, pod_time_ps start_ps,
                     pod_time_ps end_ps)
{
    (void)watch;
    ((seen *)context)->busy_ps[direction] += end_ps - start_ps;
}

static void see_left(void *context, int32_t watch, int direction, int32_t stage, int32_t op,
                     pod_time_ps now_ps)
{
    seen *s = context;
    (void)watch;
    (void)stage;
    (void)now_ps;
    s->left[direction]++;
    s->left_op = op;
}

Test(sim_step_work, an_observer_sees_the_ops_and_links_of_its_chips)
{
    for (int exact = 0; exact < 2; exact++) {
        world w;
        world_init(&w, 4, 1, 1);
        const int32_t first = compute(&w, 10, 30, POD_OP_NONE);
        const int32_t passed = pass(&w, 20, 1, first);
        seen s = {0};
        const int32_t chips[] = {3};
        const pod_step_observer observer = {.context = &s,
                                            .nchips = 1,
                                            .chips = chips,
                                            .op = see_op,
                                            .busy = see_busy,
                                            .left = see_left};
        const pod_step_args args = {.machine = &w.machine,
                                    .chip = &w.chip,
                                    .programs = &w.programs,
                                    .observer = &observer,
                                    .fold = exact == 0};
        OK(&w, pod_step_run(&args, &w.result, &w.err));
        cr_assert_eq(w.result.cells, exact ? 4 : 1);
        cr_assert_eq(s.ops, 2);
        cr_assert_eq(s.watch, 0);
        cr_assert_eq(s.op_ps, US(30 + 26));
        cr_assert_eq(s.busy_ps[0], US(20), "+x");
        cr_assert_eq(s.busy_ps[1], 0);
        cr_assert_eq(s.left[0], 1);
        cr_assert_eq(s.left_op, passed);
        world_fini(&w);
    }
}
