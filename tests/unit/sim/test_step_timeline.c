/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded steps. */
#include "sim/step_timeline.h"

#include "step_fixture.h"

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
        for (int i = 0; i < 3; i++) {
            const pod_op_record *record = &w.result.ops[0][ops[i].op];
            cr_expect_eq(record->first_start_ps, ops[i].start_ps, "all chips do the same");
            cr_expect_eq(record->last_end_ps, ops[i].end_ps);
        }
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

/* All four chips, the last first: each passes on over its own link, which it is busy with from 15 to 19 us. */
Test(sim_step_timeline, keeps_what_all_chips_do)
{
    world w;
    pod_step_timeline timeline;
    const int32_t chips[] = {3, 2, 1, 0};
    world_init(&w, 4, 1, 1);
    const int32_t first = core(&w, 0, 10, POD_OP_NONE, POD_OP_NONE);
    const int32_t one = pass(&w, 4, 1, first);
    const int32_t back = pass(&w, 6, -1, first);
    run_recorded(&w, chips, 4, &timeline);
    cr_assert_eq(timeline.nops, 4 * 3);
    cr_assert_eq(timeline.nlinks, 4 * 2);
    for (int32_t watch = 0; watch < 4; watch++) {
        cr_expect_eq(timeline.chips[watch], chips[watch]);
        for (int32_t i = 0; i < 3; i++) {
            const pod_step_op_time *op = &timeline.ops[3 * watch + i];
            cr_expect_eq(op->watch, watch);
            cr_expect_eq(op->op, i == 0 ? first : i == 1 ? one : back);
            cr_expect_eq(op->end_ps, US(i == 0 ? 10 : i == 1 ? 20 : 22));
        }
        for (int32_t i = 0; i < 2; i++) {
            const pod_step_link_time *link = &timeline.links[2 * watch + i];
            cr_expect_eq(link->watch, watch);
            cr_expect_eq(link->direction, i);
            cr_expect_eq(link->op, i == 0 ? one : back);
            cr_expect_eq(link->start_ps, US(15));
            cr_expect_eq(link->end_ps, US(i == 0 ? 19 : 21));
        }
    }
    pod_step_timeline_fini(&timeline);
    world_fini(&w);
}

/* ---- whose a stretch is ---- */

/* Messages leave link 2 of chip 0 while it is busy from 200 to 300 and on to 450. */
static int32_t owner_of(const pod_time_ps *left_ps, const int32_t *ops, int count, int32_t stretch)
{
    world w;
    pod_step_timeline timeline;
    pod_step_recorder *recorder = NULL;
    const int32_t chips[] = {0};
    world_init(&w, 2, 1, 1);
    OK(&w, pod_step_recorder_new(1, chips, &recorder, &w.err));
    const pod_step_observer *observer = pod_step_recorder_observer(recorder);
    observer->busy(observer->context, 0, 2, 200, 300);
    observer->busy(observer->context, 0, 2, 300, 450);
    for (int i = 0; i < count; i++) {
        observer->left(observer->context, 0, 2, 0, ops[i], left_ps[i]);
    }
    OK(&w, pod_step_recorder_finish(recorder, w.par, 450, &timeline, &w.err));
    cr_assert_eq(timeline.nlinks, 2);
    const int32_t owner = timeline.links[stretch].op;
    pod_step_timeline_fini(&timeline);
    pod_step_recorder_free(recorder);
    world_fini(&w);
    return owner;
}

/* A message leaves within a stretch after its start, up to its end. */
Test(sim_step_timeline, a_stretch_holds_its_end_and_not_its_start)
{
    static const struct {
        pod_time_ps left_ps;
        int32_t first;
        int32_t second;
    } cases[] = {
        {200, POD_OP_NONE, POD_OP_NONE},
        {201, 7,           POD_OP_NONE},
        {300, 7,           POD_OP_NONE},
        {301, POD_OP_NONE, 7          },
        {450, POD_OP_NONE, 7          },
        {451, POD_OP_NONE, POD_OP_NONE}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t op = 7;
        cr_expect_eq(owner_of(&cases[i].left_ps, &op, 1, 0), cases[i].first, "%d", (int)i);
        cr_expect_eq(owner_of(&cases[i].left_ps, &op, 1, 1), cases[i].second, "%d", (int)i);
    }
}

/* Of three messages from 250 to 449, 51 / 200 · 3 left before 300, less than one whole one; of six 51 / 200 · 6. */
Test(sim_step_timeline, messages_of_several_stretches_are_shared_out)
{
    const pod_time_ps left_ps[] = {220, 250, 350, 449, 449, 449, 449};
    const int32_t ops[] = {1, 2, 2, 2, 2, 2, 2};
    cr_expect_eq(owner_of(left_ps, ops, 4, 0), 1);
    cr_expect_eq(owner_of(left_ps, ops, 4, 1), 2);
    cr_expect_eq(owner_of(left_ps, ops, 7, 0), 2);
}
