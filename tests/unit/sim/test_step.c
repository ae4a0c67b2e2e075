/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a few ops whose times are known. */
#include "step_fixture.h"

#include "base/rng.h"

#include "../sample.h"

Test(sim_step, the_core_keeps_the_order_of_the_program)
{
    world w;
    world_init(&w, 4, 1, 1);
    const int32_t first = core(&w, 0, 10, POD_OP_NONE, POD_OP_NONE);
    const int32_t moved = pass(&w, 20, 1, first);
    const int32_t waits = core(&w, 0, 3, moved, POD_OP_NONE);
    const int32_t ready = core(&w, 0, 4, POD_OP_NONE, POD_OP_NONE);
    world_run(&w);
    cr_assert_eq(w.result.time_ps, US(10 + 26 + 3 + 4), "what is ready stays behind what waits");
    cr_assert_eq(mean(&w, w.result.compute_ps), US(17));
    cr_assert_eq(mean(&w, w.result.exposed_ici_ps), US(26));
    cr_assert_eq(w.result.idle_ps, 0);
    const pod_op_record *ops = w.result.ops[0];
    cr_assert_eq(ops[moved].first_start_ps, US(10));
    cr_assert_eq(ops[moved].last_end_ps, US(36));
    cr_assert_eq(mean(&w, ops[moved].time_ps), US(26));
    cr_assert_eq(mean(&w, ops[moved].exposed_ps), US(26));
    cr_assert_eq(ops[waits].first_start_ps, US(36));
    cr_assert_eq(ops[ready].first_start_ps, US(39));
    world_fini(&w);
}

/* A transfer of 26 us beside 20 us of compute leaves 6; beside 30 us nothing. */
Test(sim_step, what_compute_hides_is_not_exposed)
{
    for (int beside = 20; beside <= 30; beside += 10) {
        world w;
        world_init(&w, 4, 1, 1);
        const int32_t first = core(&w, 0, 10, POD_OP_NONE, POD_OP_NONE);
        const int32_t moved = pass(&w, 20, 1, first);
        const int32_t other = core(&w, 0, beside, first, POD_OP_NONE);
        (void)core(&w, 0, 1, other, moved);
        world_run(&w);
        const int exposed = beside < 26 ? 26 - beside : 0;
        cr_assert_eq(w.result.time_ps, US(10 + beside + exposed + 1));
        cr_assert_eq(mean(&w, w.result.exposed_ici_ps), US(exposed));
        cr_assert_eq(mean(&w, w.result.ops[0][moved].exposed_ps), US(exposed));
        world_fini(&w);
    }
}

Test(sim_step, what_nobody_waits_for_is_exposed_at_the_end)
{
    world w;
    world_init(&w, 4, 1, 1);
    const int32_t first = core(&w, 0, 10, POD_OP_NONE, POD_OP_NONE);
    (void)pass(&w, 20, 1, first);
    (void)core(&w, 0, 5, first, POD_OP_NONE);
    world_run(&w);
    cr_assert_eq(w.result.time_ps, US(36));
    cr_assert_eq(mean(&w, w.result.exposed_ici_ps), US(21));
    world_fini(&w);
}

Test(sim_step, transfers_share_a_link_and_not_its_other_way)
{
    for (int32_t shift = 1; shift <= 3; shift += 2) {
        world w;
        world_init(&w, 4, 1, 1);
        (void)pass(&w, 20, 1, POD_OP_NONE);
        (void)pass(&w, 20, shift, POD_OP_NONE);
        world_run(&w);
        cr_assert_eq(w.result.time_ps, US(shift == 1 ? 5 + 1 + 40 : 5 + 1 + 20));
        cr_assert_eq(w.result.links.max_bytes, shift == 1 ? 40000 : 20000);
        cr_assert_eq(w.result.links.busy_ps, US(shift == 1 ? 40 : 20));
        world_fini(&w);
    }
}

Test(sim_step, the_host_is_exposed_by_itself)
{
    world w;
    world_init(&w, 4, 1, 1);
    world_hosts(&w);
    pod_op op = pod_op_make(POD_OP_HOST, "input", 0);
    op.bytes = 8000;
    const int32_t first = op_add(&w, 0, &op, POD_OP_NONE, POD_OP_NONE);
    const int32_t second = op_add(&w, 0, &op, POD_OP_NONE, POD_OP_NONE);
    (void)core(&w, 0, 3, first, second);
    world_run(&w);
    cr_assert_eq(w.result.time_ps, US(8 + 8 + 3), "both share PCIe");
    cr_assert_eq(mean(&w, w.result.exposed_host_ps), US(16));
    cr_assert_eq(w.result.exposed_ici_ps, 0);
    world_fini(&w);
}

Test(sim_step, what_hosts_send_needs_hosts)
{
    world w;
    world_init(&w, 4, 1, 1);
    pod_op op = pod_op_make(POD_OP_HOST, "input", 0);
    op.bytes = 8000;
    (void)op_add(&w, 0, &op, POD_OP_NONE, POD_OP_NONE);
    cr_assert_eq(world_try(&w), POD_E_INTERNAL);
    world_fini(&w);
}

/* The gather waits for the batch, the core for the gather: 8 us of the host, then 5 us of launch and what the
 * gather takes. */
Test(sim_step, waiting_is_charged_along_the_chain)
{
    world w;
    world_init(&w, 4, 1, 1);
    world_hosts(&w);
    pod_op op = pod_op_make(POD_OP_HOST, "input", 0);
    op.bytes = 8000;
    const int32_t input = op_add(&w, 0, &op, POD_OP_NONE, POD_OP_NONE);
    (void)core(&w, 0, 3, collective(&w, POD_ALL_GATHER, GROUP_X, 40, input), POD_OP_NONE);
    world_run(&w);
    cr_assert_eq(mean(&w, w.result.exposed_host_ps), US(8));
    cr_assert_eq(mean(&w, w.result.exposed_ici_ps), w.result.time_ps - US(8 + 3));
    cr_assert_eq(w.result.ops[0][input].exposed_ps, w.result.exposed_host_ps);
    world_fini(&w);
}

Test(sim_step, others_wait_for_a_slow_chip)
{
    world w;
    world_init(&w, 4, 1, 1);
    OK(&w, pod_slice_fault_insert(&w.slice, POD_FAULT_CHIP_SLOW, 1, -1, 3, &w.err));
    (void)collective(&w, POD_ALL_REDUCE, GROUP_X, 1, core(&w, 0, 10, POD_OP_NONE, POD_OP_NONE));
    world_run(&w);
    cr_assert_eq(w.result.cells, 4);
    cr_assert_eq(w.result.compute_ps, US(10 + 30 + 10 + 10));
    cr_assert_geq(w.result.time_ps, US(30 + 5));
    cr_assert_geq(w.result.exposed_ici_ps, US(3 * 20 + 4 * 5));
    world_fini(&w);
}

/* Two axes get half of each link in this chip; one axis all of it. */
Test(sim_step, collectives_over_several_axes_get_the_measured_part_of_links)
{
    pod_time_ps time_ps[2][GROUPS];
    for (int half = 0; half < 2; half++) {
        for (int group = 0; group < GROUPS; group++) {
            world w;
            world_init(&w, 4, 4, 1);
            w.algorithm = "bucket";
            w.chip.multi_axis_eff_frac = half ? 0.5 : 1;
            (void)collective(&w, POD_ALL_GATHER, group, 100000, POD_OP_NONE);
            world_run(&w);
            time_ps[half][group] = w.result.time_ps;
            world_fini(&w);
        }
    }
    cr_assert_eq(time_ps[1][GROUP_X], time_ps[0][GROUP_X]);
    cr_assert_float_eq((double)time_ps[1][GROUP_ALL], 2 * (double)time_ps[0][GROUP_ALL],
                       (double)US(20));
}

/* ---- pipelines ---- */

/* Forward of M microbatches through S stages along x, t us each, messages without bytes. Stage s
 * begins after s · (t + 1) us and ends (S - 1 - s) · (t + 1) us before the last one. */
static void stages_build(world *w, int32_t stages, int32_t parts, double t_us)
{
    world_init(w, stages, 1, stages);
    w->programs.stage_of = calloc((size_t)stages, sizeof(int32_t));
    w->programs.place_of = calloc((size_t)stages, sizeof(int32_t)); /* all 0 */
    w->programs.chip_at = calloc((size_t)stages, sizeof(int32_t));
    for (int32_t s = 0; s < stages; s++) {
        w->programs.stage_of[s] = s;
        w->programs.chip_at[s] = s;
        for (int32_t part = 0; part < parts; part++) {
            int32_t from = POD_OP_NONE;
            if (s > 0) {
                pod_op recv = pod_op_make(POD_OP_RECV, "recv", 0);
                recv.to_stage = s - 1;
                recv.message = (s - 1) * parts + part;
                from = op_add(w, s, &recv, POD_OP_NONE, POD_OP_NONE);
            }
            const int32_t done = core(w, s, t_us, from, POD_OP_NONE);
            if (s + 1 < stages) {
                pod_op send = pod_op_make(POD_OP_SEND, "send", 0);
                send.to_stage = s + 1;
                send.message = s * parts + part;
                (void)op_add(w, s, &send, done, POD_OP_NONE);
            }
        }
    }
}

Test(sim_step, a_pipeline_of_s_stages_idles_s_less_1_of_its_slots)
{
    static const int32_t cases[][2] = {
        {2, 1 },
        {2, 8 },
        {4, 4 },
        {4, 12},
        {8, 2 }
    };
    enum { T = 1000 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int32_t s = cases[i][0];
        const int32_t m = cases[i][1];
        world w;
        stages_build(&w, s, m, T);
        world_run(&w);
        cr_assert_eq(w.result.time_ps, US((s - 1) * (T + 1) + m * T));
        cr_assert_eq(w.result.compute_ps, US(s * m * T));
        cr_assert_eq(w.result.exposed_ici_ps, US(s - 1), "the flight of each first message");
        cr_assert_eq(w.result.idle_ps, US((T + 1) * s * (s - 1) - (s - 1)));
        const double idle = (double)w.result.idle_ps / (double)(w.result.cells * w.result.time_ps);
        cr_assert_float_eq(idle, (double)(s - 1) / (m + s - 1), 1e-3);
        world_fini(&w);
    }
}

Test(sim_step, a_message_that_never_comes_is_a_deadlock_that_says_who_waits)
{
    world w;
    stages_build(&w, 3, 2, 10);
    pod_op *send = &w.programs.stages[1].ops[2];
    cr_assert_eq(send->kind, POD_OP_SEND);
    send->kind = POD_OP_VECTOR;
    cr_assert_eq(world_try(&w), POD_E_INTERNAL);
    cr_assert(strstr(w.err.text, "chip 2 waits to run core") != NULL, "%s", w.err.text);
    world_fini(&w);
}

/* Two chips with programs of their own meet in a collective, which is the first op of one; the other waits for what
 * never comes before. */
static void meeting_init(world *w, bool comes)
{
    world_two_stages(w);
    w->programs.nmeetings = 1;
    pod_op meet = pod_op_make(POD_OP_COLLECTIVE, "meet", 0);
    meet.op = POD_ALL_GATHER;
    meet.group = GROUP_X;
    meet.bytes = 4000;
    meet.dtype = POD_DTYPE_BF16;
    meet.meeting = 0;
    pod_op recv = pod_op_make(POD_OP_RECV, "recv", 0);
    recv.to_stage = 0;
    recv.message = 0;
    (void)op_add(w, 0, &meet, POD_OP_NONE, POD_OP_NONE);
    const int32_t before = comes ? core(w, 1, 10, POD_OP_NONE, POD_OP_NONE)
                                 : op_add(w, 1, &recv, POD_OP_NONE, POD_OP_NONE);
    (void)op_add(w, 1, &meet, before, POD_OP_NONE);
}

/* After 10 us and the launch a chip sends its half over a hop. */
Test(sim_step, a_meeting_begins_when_the_last_has_come)
{
    world w;
    meeting_init(&w, true);
    world_run(&w);
    cr_expect_eq(w.result.time_ps, US(10 + 5 + 1 + 2), "%lld", (long long)w.result.time_ps);
    world_fini(&w);
}

Test(sim_step, who_waits_for_a_meeting_says_for_whom)
{
    world w;
    meeting_init(&w, false);
    cr_assert_eq(world_try(&w), POD_E_INTERNAL);
    cr_assert(strstr(w.err.text, "chip 0 waits for chip 1 in channel") != NULL, "%s", w.err.text);
    cr_assert(strstr(w.err.text, "chip 1 waits to run the end (2 ops left)") != NULL, "%s",
              w.err.text);
    world_fini(&w);
}

/* ---- any program ---- */

/* What a collective takes at least. */
static pod_time_ps least_ps(const pod_op *op)
{
    return op->kind == POD_OP_VECTOR ? (pod_time_ps)op->flops : US(5);
}

/* Add random ops; returns the longest chain of them. */
static pod_time_ps random_ops(world *w, uint64_t seed)
{
    static const pod_coll_op kinds[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER,
                                        POD_PERMUTE};
    enum { OPS = 30 };
    pod_time_ps end_ps[OPS];
    pod_time_ps longest_ps = 0;
    for (uint32_t i = 0; i < OPS; i++) {
        const int32_t dep = i > 0 ? (int32_t)pod_rng_below(seed, 0, i, i + 1) - 1 : POD_OP_NONE;
        const double us = (double)pod_rng_below(seed, 1, i, 40);
        const uint64_t kind = pod_rng_below(seed, 2, i, 8);
        if (kind < 4) {
            const int32_t group = pod_rng_below(seed, 3, i, 2) ? GROUP_ALL : GROUP_X;
            (void)collective(w, kinds[kind], group, us, dep);
        } else {
            (void)core(w, 0, us, dep, i > 1 ? (int32_t)pod_rng_below(seed, 4, i, i) : dep);
        }
        const pod_program *program = &w->programs.stages[0];
        const pod_op *op = &program->ops[i];
        pod_time_ps start_ps = 0;
        for (int32_t d = 0; d < op->ndeps; d++) {
            const pod_time_ps before = end_ps[program->deps[op->first_dep + d]];
            start_ps = before > start_ps ? before : start_ps;
        }
        end_ps[i] = start_ps + least_ps(op);
        longest_ps = end_ps[i] > longest_ps ? end_ps[i] : longest_ps;
    }
    return longest_ps;
}

static void parts_add_up(const world *w, pod_time_ps longest_ps)
{
    const pod_step_result *r = &w->result;
    const pod_program *program = &w->programs.stages[0];
    int64_t core_ps = 0;
    int64_t exposed_ps = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        cr_assert_eq(r->ops[0][i].chips, r->cells);
        cr_assert_geq(r->ops[0][i].last_end_ps, r->ops[0][i].first_start_ps);
        exposed_ps += r->ops[0][i].exposed_ps;
        core_ps += program->ops[i].kind == POD_OP_VECTOR ? (int64_t)program->ops[i].flops : 0;
    }
    cr_assert_eq(r->compute_ps, r->cells * core_ps);
    cr_assert_eq(r->exposed_ici_ps, exposed_ps);
    cr_assert_eq(r->compute_ps + r->exposed_ici_ps + r->idle_ps, r->cells * r->time_ps);
    cr_assert_geq(r->time_ps, core_ps);
    cr_assert_geq(r->time_ps, longest_ps);
}

/* @return cells of the folded step */
static int64_t random_step_folds(uint64_t seed)
{
    world w;
    world_init(&w, 4, 4, 1);
    const pod_time_ps longest_ps = random_ops(&w, seed);
    world_run(&w);
    parts_add_up(&w, longest_ps);
    const pod_step_result few = w.result;
    w.result = (pod_step_result){0};
    w.exact = true;
    world_run(&w);
    parts_add_up(&w, longest_ps);
    cr_assert_eq(w.result.cells, 16);
    cr_assert_eq(w.result.time_ps, few.time_ps, "seed %d", (int)seed);
    cr_assert_eq(w.result.exposed_ici_ps * few.cells, few.exposed_ici_ps * 16);
    cr_assert_eq(w.result.links.max_bytes, few.links.max_bytes);
    const int64_t cells = few.cells;
    pod_step_result fold = few;
    pod_step_result_fini(&fold);
    world_fini(&w);
    return cells;
}

Test(sim_step, time_is_accounted_for_and_a_folded_step_is_the_exact_one)
{
    (void)random_step_folds(0);
}

Test(sim_step, times_are_accounted_for_and_folded_steps_are_the_exact_ones)
{
    int64_t folded = 0;
    for (int seed = sample_next(0, 4); seed < 20; seed = sample_next(seed, 4)) {
        folded += random_step_folds((uint64_t)seed) < 16;
    }
    cr_assert(folded > 0 || sample_of(4) > 1);
}

/* Ops count what they wait for in 16 bits. */
Test(sim_step, an_op_with_too_many_dependencies_is_refused)
{
    world w;
    world_init(&w, 2, 2, 1);
    core(&w, 0, 1, POD_OP_NONE, POD_OP_NONE);
    w.programs.stages[0].ops[0].ndeps = UINT16_MAX; /* which says that an op has ended */
    cr_assert_eq(world_try(&w), POD_E_RANGE);
    cr_assert_str_eq(w.err.text, "core waits for 65535 others; an op can wait for 65534 at most");
    world_fini(&w);
}

/* Alone each takes 5 us of launch, 1 us of a hop and 4 us of bytes; at once they share a link. */
Test(sim_step, one_at_a_time_they_take_turns)
{
    for (int turns = 0; turns < 2; turns++) {
        world w;
        world_init(&w, 4, 1, 1);
        for (int i = 0; i < 4; i++) {
            (void)pass(&w, 4, 1, POD_OP_NONE);
        }
        const pod_step_args args = {.machine = &w.machine,
                                    .chip = &w.chip,
                                    .programs = &w.programs,
                                    .one_at_a_time = turns == 1};
        OK(&w, pod_step_run(&args, &w.result, &w.err));
        cr_expect_eq(w.result.time_ps, turns == 1 ? US(4 * 10) : US(5 + 1 + 4 * 4), "%d: %lld",
                     turns, (long long)w.result.time_ps);
        world_fini(&w);
    }
}
