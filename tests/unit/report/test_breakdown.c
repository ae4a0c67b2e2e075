/* SPDX-License-Identifier: Apache-2.0 */
#include "make.h"

#include <math.h>
#include <string.h>

static void near(double value, double expected)
{
    cr_assert(fabs(value - expected) <= 1e-12 * fabs(expected), "%.17g is not %.17g", value,
              expected);
}

Test(breakdown, parts_are_means_over_chips_and_add_up)
{
    small_step s;
    pod_breakdown b;
    small_make(&s);
    pod_breakdown_get(&s.programs, &s.result, 0, &b);
    near(b.step_s, 100e-6);
    near(b.compute_s, 40e-6);
    near(b.matmul_s, 30e-6);
    near(b.vector_s, 10e-6);
    near(b.hbm_bound_s, 10e-6);
    near(b.compute_s + b.exposed_ici_s + b.exposed_dcn_s + b.exposed_host_s + b.idle_s, b.step_s);
    cr_assert_eq(b.mxu_frac, 0);
    small_free(&s);
}

Test(breakdown, exposed_time_is_split_by_mesh_axis_largest_first)
{
    small_step s;
    pod_breakdown b;
    small_make(&s);
    pod_breakdown_get(&s.programs, &s.result, 0, &b);
    cr_assert_eq(b.naxes, 2);
    cr_assert_str_eq(b.axis[0].axes, "tensor");
    near(b.axis[0].exposed_s, 30e-6);
    cr_assert_str_eq(b.axis[1].axes, "data");
    near(b.axis[1].exposed_s, 25e-6);
    near(b.axis[0].exposed_s + b.axis[1].exposed_s, b.exposed_ici_s);
    small_free(&s);
}

/* 2 · 64 · 96 · 128 FLOPs in 100 us of a chip of 1e12 FLOP/s. */
Test(breakdown, mxu_frac_is_flops_over_peak_and_step)
{
    small_step s;
    pod_breakdown b;
    small_make(&s);
    pod_breakdown_get(&s.programs, &s.result, 1e12, &b);
    near(b.mxu_frac, 2.0 * 64 * 96 * 128 / (1e12 * 100e-6));
    small_free(&s);
}

Test(breakdown, lines_join_equal_collectives_of_all_layers)
{
    small_step s;
    pod_error err = {0};
    pod_collective_line *lines = NULL;
    int count = 0;
    small_make(&s);
    cr_assert_eq(pod_collective_lines(&s.programs, &s.result, &lines, &count, &err), POD_OK);
    cr_assert_eq(count, 2);
    cr_assert_str_eq(lines[0].name, "sum.X");
    cr_assert_str_eq(lines[0].op, "all-reduce");
    cr_assert_str_eq(lines[0].axes, "tensor");
    cr_assert_eq(lines[0].group, 4);
    cr_assert_eq(lines[0].bytes, 1024);
    cr_assert_eq(lines[0].count, 2);
    near(lines[0].time_s, 40e-6);
    near(lines[0].exposed_s, 30e-6);
    cr_assert_str_eq(lines[1].name, "sum.dW");
    cr_assert_eq(lines[1].count, 1);
    free(lines);
    small_free(&s);
}

Test(breakdown, lines_of_other_sizes_or_groups_stay_apart)
{
    small_step s;
    pod_error err = {0};
    pod_collective_line *lines = NULL;
    int count = 0;
    small_make(&s);
    small_record(&s, small_sum(&s, "sum.X", 2, 0, 2048), 1, 0);
    small_record(&s, small_sum(&s, "sum.X", 2, 1, 1024), 1, 0);
    cr_assert_eq(pod_collective_lines(&s.programs, &s.result, &lines, &count, &err), POD_OK);
    cr_assert_eq(count, 4);
    free(lines);
    small_free(&s);
}

/* A message of two stages: exposed over all 2 + 2 cells, timed over the 2 that receive it. */
Test(breakdown, messages_between_stages_are_permutes_over_pipeline)
{
    small_step s;
    pod_error err = {0};
    pod_breakdown b;
    pod_collective_line *lines = NULL;
    int count = 0;
    small_make(&s);
    s.result.cells = 4;
    pod_op recv = pod_op_make(POD_OP_RECV, "fwd.recv", 0);
    recv.bytes = 512;
    small_record(&s, pod_program_op(&s.programs.stages[0], &recv, NULL, 0), 8, 4);
    cr_assert_eq(pod_collective_lines(&s.programs, &s.result, &lines, &count, &err), POD_OK);
    cr_assert_eq(count, 3);
    cr_assert_str_eq(lines[2].op, "permute");
    cr_assert_str_eq(lines[2].axes, "pipeline");
    near(lines[2].time_s, 8e-6);
    near(lines[2].exposed_s, 2e-6);
    pod_breakdown_get(&s.programs, &s.result, 0, &b);
    cr_assert_str_eq(b.axis[2].axes, "pipeline");
    near(b.axis[2].exposed_s, 2e-6);
    free(lines);
    small_free(&s);
}

Test(breakdown, sorting_puts_the_most_exposed_first_and_keeps_ties)
{
    pod_collective_line lines[4] = {
        {.name = "a", .exposed_s = 1, .time_s = 1},
        {.name = "b", .exposed_s = 2, .time_s = 2},
        {.name = "c", .exposed_s = 1, .time_s = 3},
        {.name = "d", .exposed_s = 1, .time_s = 1}
    };
    pod_collective_lines_sort(lines, 4);
    const char *const order[] = {"b", "c", "a", "d"};
    for (int i = 0; i < 4; i++) {
        cr_assert_str_eq(lines[i].name, order[i]);
    }
}

Test(breakdown, a_step_without_time_divides_by_nothing)
{
    small_step s;
    pod_breakdown b;
    small_make(&s);
    s.result.time_ps = 0;
    s.result.cells = 0;
    pod_breakdown_get(&s.programs, &s.result, 1e12, &b);
    cr_assert_eq(b.step_s, 0);
    cr_assert_eq(b.mxu_frac, 0);
    cr_assert_eq(b.compute_s, 0);
    small_free(&s);
}
