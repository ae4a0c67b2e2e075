/* SPDX-License-Identifier: Apache-2.0 */
/* A step of five equal layers is one of one layer and four times what a second one adds. */
#include "step_fixture.h"

static pod_step_result layers_run(int layers)
{
    world w;
    world_init(&w, 4, 4, 1);
    int32_t last = POD_OP_NONE;
    for (int i = 0; i < layers; i++) {
        last = pass(&w, 6, 1, core(&w, 0, 3, last, POD_OP_NONE));
        last = collective(&w, POD_ALL_REDUCE, GROUP_ALL, 40, last);
    }
    const pod_step_args args = {
        .machine = &w.machine, .chip = &w.chip, .programs = &w.programs, .link_records = true};
    OK(&w, pod_step_run(&args, &w.result, &w.err));
    const pod_step_result result = w.result;
    w.result = (pod_step_result){0};
    world_fini(&w);
    return result;
}

Test(sim_step_add, layers_add_up)
{
    pod_step_result sum = layers_run(1);
    pod_step_result one = layers_run(1);
    pod_step_result two = layers_run(2);
    pod_step_result five = layers_run(5);
    cr_assert(pod_step_result_add(&sum, &one, &two, 4));
    cr_expect_eq(sum.time_ps, five.time_ps);
    cr_expect_eq(sum.compute_ps, five.compute_ps);
    cr_expect_eq(sum.exposed_ici_ps, five.exposed_ici_ps);
    cr_expect_eq(sum.idle_ps, five.idle_ps);
    cr_expect_eq(sum.links.max_bytes, five.links.max_bytes);
    cr_expect_eq(sum.links.busy_ps, five.links.busy_ps);
    cr_expect_eq(sum.links.busiest_bytes, five.links.busiest_bytes);
    cr_expect_eq(sum.links.total_bytes, five.links.total_bytes);
    cr_expect_eq(sum.links.hops, five.links.hops);
    cr_expect_gt(five.links.direction_bytes[0], five.links.direction_bytes[1]);
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        cr_expect_eq(sum.links.direction_bytes[d], five.links.direction_bytes[d], "%d", d);
        cr_expect_eq(sum.links.direction_busy_ps[d], five.links.direction_busy_ps[d], "%d", d);
    }
    cr_assert_eq(five.cells, 16);
    for (int i = 0; i < 16 * POD_NET_PORTS_MAX; i++) {
        cr_expect_eq(sum.link_records[i].bytes, five.link_records[i].bytes);
        cr_expect_eq(sum.link_records[i].busy_ps, five.link_records[i].busy_ps);
    }
    five.cells = 8;
    cr_expect_not(pod_step_result_add(&sum, &five, &two, 4), "of other cells");
    pod_step_result_fini(&sum);
    pod_step_result_fini(&one);
    pod_step_result_fini(&two);
    pod_step_result_fini(&five);
}
