/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by structs, against closed forms: S bytes, b = 90 GB/s, hops of 1 us. */
#include "fixture.h"

#include "experiment/collective_pairs.h"
#include "experiment/collective_row.h"

static pod_status try_run(world *w, const pod_experiment_collective_request *request, int64_t bytes,
                          const char *algorithm, pod_experiment_collective_row *row)
{
    pod_experiment_collective_case run_case;
    const pod_coll_algorithm *named = NULL;
    if (algorithm != NULL) {
        OK(pod_coll_algorithm_find(algorithm, &named, &w->err));
    }
    pod_status st = pod_experiment_collective_case_init(&run_case, request, &w->setup, &w->err);
    if (st == POD_OK) {
        st = pod_experiment_collective_run(&w->experiment, &run_case, bytes, named, NULL, row,
                                           &w->err);
    }
    pod_experiment_collective_case_fini(&run_case);
    return st;
}

/* Groups of n = 4 along x, which closes; S = 36 MB, S/b = 400 us. */
Test(collective, times_are_those_of_the_closed_forms)
{
    static const struct {
        pod_coll_op op;
        const char *algorithm;
        double us;
        double bound_us;
        double bus_factor;
    } cases[] = {
  /* one way round: n - 1 steps of a hop and S/(n·b) */
        {POD_ALL_GATHER,     "hamiltonian_ring_1dir", 303, 150, 0.75},
 /* both ways: (n-1)/n · S/2b and n/2 hops */
        {POD_ALL_GATHER,     "bucket",                152, 150, 0.75},
        {POD_REDUCE_SCATTER, "bucket",                152, 150, 0.75},
 /* twice that, but for a hop that the halves share */
        {POD_ALL_REDUCE,     "ring",                  303, 300, 1.5 },
    };
    world world_, *w = &world_;
    world_init(w, "v5p:4x4x4");
    w->experiment.data = POD_DATA_NONE;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_experiment_collective_request request = {.op = cases[i].op, .axes = "x"};
        pod_experiment_collective_row row;
        OK(try_run(w, &request, 36000000, cases[i].algorithm, &row));
        const char *name = cases[i].algorithm;
        cr_expect_eq(row.result.time_ps, US(cases[i].us), "%s: %lld ps", name,
                     (long long)row.result.time_ps);
        cr_expect_eq(row.bound.time_ps, US(cases[i].bound_us), "%s", name);
        cr_expect_float_eq(row.bound_frac, cases[i].bound_us / cases[i].us, 1e-12, "%s", name);
        cr_expect_float_eq(row.algbw_GBps, 36e3 / cases[i].us, 1e-9, "%s", name);
        cr_expect_float_eq(row.busbw_GBps, cases[i].bus_factor * row.algbw_GBps, 1e-9, "%s", name);
        cr_expect_str_eq(row.algorithm, name);
        cr_expect_eq(row.dtype, POD_DTYPE_BF16);
        cr_expect_not(row.data);
    }
    cr_expect_eq(w->notes, 0, "nothing was chosen for the caller");
    world_fini(w);
}

/* Neighbours along x pass on 9 MB: a hop and 9e6 / 90e9 s. */
Test(collective, a_permute_takes_a_hop_and_its_bytes)
{
    world world_, *w = &world_;
    world_init(w, "v5p:4x4x4");
    const pod_experiment_collective_request request = {.op = POD_PERMUTE, .pairs = "shift:x:1"};
    pod_experiment_collective_row row;
    OK(try_run(w, &request, 9000000, NULL, &row));
    cr_expect_eq(row.result.time_ps, US(101));
    cr_expect_eq(row.busbw_GBps, row.algbw_GBps);
    world_fini(w);
}

Test(collective, axes_of_a_mesh_are_groups_over_slices_too)
{
    world world_, *w = &world_;
    world_init(w, "2*v5e:4x4");
    pod_logical_mesh mesh;
    OK(pod_logical_mesh_parse("data=4,tensor=4", "data=2", &mesh, &w->err));
    pod_experiment_collective_request request = {
        .op = POD_ALL_REDUCE, .mesh = &mesh, .mesh_axes = 1U << 0};
    pod_experiment_collective_case run_case;
    OK(pod_experiment_collective_case_init(&run_case, &request, &w->setup, &w->err));
    cr_expect_eq(run_case.group.size, 8);
    cr_expect_eq(run_case.group.slices, 2);
    pod_experiment_collective_case_fini(&run_case);
    request.mesh_axes = 1U << 1;
    OK(pod_experiment_collective_case_init(&run_case, &request, &w->setup, &w->err));
    cr_expect_eq(run_case.group.size, 4);
    cr_expect_lt(run_case.group.slices, 2);
    pod_experiment_collective_case_fini(&run_case);
    world_fini(w);
}

Test(collective, numbers_are_real_up_to_1_GiB_and_the_choice_is_noted_once)
{
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    const pod_experiment_collective_request request = {.op = POD_ALL_REDUCE};
    pod_experiment_collective_case run_case;
    pod_experiment_collective_row row;
    OK(pod_experiment_collective_case_init(&run_case, &request, &w->setup, &w->err));
    for (int i = 0; i < 2; i++) {
        OK(pod_experiment_collective_run(&w->experiment, &run_case, 4096, NULL, NULL, &row,
                                         &w->err));
        cr_expect(row.data);
        cr_expect_eq(row.result.wrong, 0);
        cr_expect_eq(row.result.checked, 16 * 2048, "every element of every chip");
        cr_expect_eq(w->notes, 1);
    }
    cr_expect(strstr(w->note, "v5e:4x4 from 4096 bytes on: --data real") != NULL, "%s", w->note);
    OK(pod_experiment_collective_run(&w->experiment, &run_case, INT64_C(1) << 30, NULL, NULL, &row,
                                     &w->err));
    cr_expect_not(row.data);
    cr_expect_eq(w->notes, 2);
    pod_experiment_collective_case_fini(&run_case);
    world_fini(w);
}

Test(collective, nothing_to_move_takes_no_time_and_has_no_bandwidth)
{
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    const pod_experiment_collective_request request = {.op = POD_ALL_REDUCE};
    pod_experiment_collective_row row;
    OK(try_run(w, &request, 0, "ring", &row));
    cr_expect_eq(row.result.time_ps, 0);
    cr_expect_eq(row.bound_frac, 1);
    cr_expect_eq(row.algbw_GBps, 0);
    cr_expect_str_eq(row.algorithm, "none");
    world_fini(w);
}

Test(collective, says_what_is_wrong)
{
    world world_, *w = &world_;
    world_init(w, "v5e:4x4");
    pod_experiment_collective_row row;
    pod_experiment_collective_request request = {
        .op = POD_ALL_REDUCE, .dtype_given = true, .dtype = POD_DTYPE_F32};
    cr_expect_eq(try_run(w, &request, 1023, NULL, &row), POD_E_USAGE, "no whole elements");
    request.dtype_given = false;
    cr_expect_eq(try_run(w, &request, INT64_MAX / 2, NULL, &row), POD_E_RANGE);
    cr_expect_eq(try_run(w, &request, 1024, "bucket_2D_ports", &row), POD_E_INVALID,
                 "4x4 of v5e is open");
    request.axes = "z";
    cr_expect_eq(try_run(w, &request, 1024, NULL, &row), POD_E_INVALID, "no such axis");
    request = (pod_experiment_collective_request){.op = POD_BROADCAST, .root = "9,9"};
    cr_expect_eq(try_run(w, &request, 1024, NULL, &row), POD_E_INVALID, "no such chip");
    world_fini(w);
}

static pod_status find_pairs(world *w, const pod_group *group, const char *text,
                             const pod_table *table, int32_t *source_of)
{
    const pod_experiment_collective_request request = {
        .op = POD_PERMUTE, .pairs = text, .pairs_table = table};
    return pod_experiment_pairs(&request, &w->setup.slice, group, source_of, &w->err);
}

Test(pairs, are_shifts_transposes_or_a_table)
{
    static const char text[] = "source,target\n0,1\n1,0\n";
    world world_, *w = &world_;
    world_init(w, "v5e:4x2");
    pod_group group;
    pod_table *table = NULL;
    int32_t source_of[8];
    OK(pod_group_init_axes(&group, &w->setup.slice, 3, &w->err));
    OK(find_pairs(w, &group, "shift:x:1", NULL, source_of));
    cr_expect_eq(source_of[1], 0);
    cr_expect_eq(source_of[4], 7, "the second row shifts within itself");
    OK(find_pairs(w, &group, "transpose", NULL, source_of));
    cr_expect_eq(source_of[2], 1, "(1, 0) of 4x2 goes to place (0, 1) of 2x4, which is 2");
    OK(pod_table_parse("pairs.csv", text, sizeof text - 1, &table, &w->err));
    OK(find_pairs(w, &group, NULL, table, source_of));
    cr_expect_eq(source_of[0], 1);
    cr_expect_eq(source_of[1], 0);
    cr_expect_eq(source_of[2], -1);
    cr_expect_eq(find_pairs(w, &group, "shift:x", NULL, source_of), POD_E_USAGE);
    pod_table_free(table);
    pod_group_fini(&group);
    world_fini(w);
}
