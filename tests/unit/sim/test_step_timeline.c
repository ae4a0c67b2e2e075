/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded steps, and timelines of all layers from those of few. */
#include "sim/step_timeline.h"

#include "step_fixture.h"

enum { FRONT = 2, BACK = 2, MORE = 7, FULL = 11 }; /* MORE and FULL have one parity */

/* Layers that repeat: a core op of 10 us, and a permute of 4 us that the layer after the next waits for
 * together with its own core op. */
static void layers_add(world *w, int32_t layers)
{
    int32_t passed[FULL + 2] = {POD_OP_NONE, POD_OP_NONE};
    for (int32_t i = 0; i < layers; i++) {
        const int32_t op = core(w, 0, 10, passed[i], POD_OP_NONE);
        passed[i + 2] = pass(w, i % 2 == 0 ? 4 : 9, 1, op);
    }
}

static void run_recorded(world *w, const int32_t *chips, int32_t nchips,
                         pod_step_timeline *timeline)
{
    pod_step_recorder *recorder = NULL;
    OK(w, pod_step_recorder_new(nchips, chips, &recorder, &w->err));
    const pod_step_args args = {.machine = &w->machine,
                                .chip = &w->chip,
                                .programs = &w->programs,
                                .algorithm = w->algorithm,
                                .observer = pod_step_recorder_observer(recorder)};
    OK(w, pod_step_run(&args, &w->result, &w->err));
    OK(w, pod_step_recorder_finish(recorder, w->par, w->result.time_ps, timeline, &w->err));
    pod_step_recorder_free(recorder);
}

Test(sim_step_timeline, keeps_ops_and_links_of_each_chip_in_order)
{
    world w;
    pod_step_timeline timeline;
    const int32_t chips[] = {2, 0};
    world_init(&w, 4, 1, 1);
    const int32_t first = core(&w, 0, 10, POD_OP_NONE, POD_OP_NONE);
    const int32_t passed = pass(&w, 4, 1, first);
    const int32_t last = core(&w, 0, 3, passed, POD_OP_NONE);
    run_recorded(&w, chips, 2, &timeline);
    cr_assert_eq(timeline.nops, 6);
    cr_assert_eq(timeline.nlinks, 2);
    for (int32_t watch = 0; watch < 2; watch++) {
        const pod_step_op_time *ops = timeline.ops + 3 * (ptrdiff_t)watch;
        cr_expect_eq(timeline.chips[watch], chips[watch]);
        cr_expect_eq(ops[0].watch, watch);
        cr_expect_eq(ops[0].op, first);
        cr_expect_eq(ops[1].op, passed);
        cr_expect_eq(ops[1].start_ps, US(10));
        cr_expect_eq(ops[1].end_ps, US(20), "5 us launch, 1 us hop, 4 us of bytes");
        cr_expect_eq(ops[2].op, last);
        cr_expect_eq(ops[2].end_ps, timeline.end_ps);
        cr_expect_eq(timeline.links[watch].direction, 0);
        cr_expect_eq(timeline.links[watch].start_ps, US(15));
        cr_expect_eq(timeline.links[watch].end_ps, US(19));
        cr_expect_eq(timeline.links[watch].op, passed);
    }
    pod_step_timeline_fini(&timeline);
    world_fini(&w);
}

Test(sim_step_timeline, a_busy_link_belongs_to_who_sends_most)
{
    world w;
    pod_step_timeline timeline;
    const int32_t chips[] = {0};
    world_init(&w, 4, 1, 1);
    const int32_t small = pass(&w, 2, 1, POD_OP_NONE);
    const int32_t large = pass(&w, 50, 1, POD_OP_NONE);
    run_recorded(&w, chips, 1, &timeline);
    cr_assert_eq(timeline.nlinks, 1);
    cr_expect_eq(timeline.links[0].end_ps - timeline.links[0].start_ps, US(52));
    cr_expect(timeline.links[0].op == small || timeline.links[0].op == large);
    pod_step_timeline_fini(&timeline);
    world_fini(&w);
}

/* Layers in the middle stand for those left out, of the same parity. */
static void stand_ins(int32_t *stand_in)
{
    for (int32_t layer = 0; layer < FULL; layer++) {
        int32_t other = FRONT + (layer - FRONT) % 2;
        if (layer < FRONT) {
            other = layer;
        } else if (layer >= FULL - BACK) {
            other = layer - FULL + MORE;
        }
        stand_in[2 * layer] = 2 * other;
        stand_in[2 * layer + 1] = 2 * other + 1;
    }
}

Test(sim_step_timeline, all_layers_from_few_are_as_simulated)
{
    world few;
    world all;
    pod_step_timeline simulated;
    pod_step_timeline wanted;
    pod_step_timeline full;
    const int32_t chips[] = {1, 3};
    int32_t stand_in[2 * FULL];
    world_init(&few, 4, 1, 1);
    world_init(&all, 4, 1, 1);
    layers_add(&few, MORE);
    layers_add(&all, FULL);
    run_recorded(&few, chips, 2, &simulated);
    run_recorded(&all, chips, 2, &wanted);
    stand_ins(stand_in);
    const int32_t *const stages[] = {stand_in};
    const pod_step_timeline_extension extension = {
        .full = &all.programs, .more = &few.programs, .stand_in = stages, .end_ps = wanted.end_ps};
    OK(&all, pod_step_timeline_extend(&simulated, &extension, &full, &all.err));
    cr_assert_eq(full.nops, wanted.nops);
    cr_assert_eq(full.nlinks, wanted.nlinks);
    for (int64_t i = 0; i < full.nops; i++) {
        cr_expect_eq(full.ops[i].op, wanted.ops[i].op);
        cr_expect_eq(full.ops[i].start_ps, wanted.ops[i].start_ps, "op %d: %lld, not %lld",
                     full.ops[i].op, (long long)full.ops[i].start_ps,
                     (long long)wanted.ops[i].start_ps);
        cr_expect_eq(full.ops[i].end_ps, wanted.ops[i].end_ps);
    }
    for (int64_t i = 0; i < full.nlinks; i++) {
        cr_expect_eq(full.links[i].op, wanted.links[i].op);
        cr_expect_eq(full.links[i].start_ps, wanted.links[i].start_ps);
        cr_expect_eq(full.links[i].end_ps, wanted.links[i].end_ps);
    }
    pod_step_timeline_fini(&simulated);
    pod_step_timeline_fini(&wanted);
    pod_step_timeline_fini(&full);
    world_fini(&few);
    world_fini(&all);
}

/* The end is given: ops keep their times, and the gaps between them take what is left. */
Test(sim_step_timeline, what_is_left_goes_into_the_gaps)
{
    world w;
    pod_step_timeline simulated;
    pod_step_timeline full;
    const int32_t chips[] = {0};
    const int32_t same[] = {0, 1, 2, 3, 4, 5};
    const int32_t *const stages[] = {same};
    world_init(&w, 4, 1, 1);
    int32_t before = POD_OP_NONE;
    for (int i = 0; i < 3; i++) {
        before = pass(&w, 4, 1, core(&w, 0, 10, before, POD_OP_NONE));
    }
    run_recorded(&w, chips, 1, &simulated);
    cr_assert_eq(simulated.end_ps, US(60));
    for (int longer = -1; longer <= 1; longer++) {
        const pod_step_timeline_extension extension = {.full = &w.programs,
                                                       .more = &w.programs,
                                                       .stand_in = stages,
                                                       .end_ps = US(60 + 15 * longer)};
        OK(&w, pod_step_timeline_extend(&simulated, &extension, &full, &w.err));
        cr_assert_eq(full.nops, 6);
        for (int64_t i = 0; i < full.nops; i++) {
            if (full.ops[i].op % 2
                == 0) { /* a core op every 10 + 10 us, whose gaps are longer or shorter by 5 us */
                cr_expect_eq(full.ops[i].start_ps, US(full.ops[i].op / 2 * (20 + 5 * longer)));
                cr_expect_eq(full.ops[i].end_ps - full.ops[i].start_ps, US(10));
            }
            cr_expect_leq(full.ops[i].end_ps, full.end_ps);
        }
        pod_step_timeline_fini(&full);
    }
    pod_step_timeline_fini(&simulated);
    world_fini(&w);
}
