/* SPDX-License-Identifier: Apache-2.0 */
/* Small compiled programs whose steps are known, at the book's rates: no launch, no losses. */
#include "hlo_world.h"

/* ---- the core ---- */

/* 2 · 67,108,864 bytes / 820 GB/s. */
Test(hlo, a_copy_moves_its_bytes_twice)
{
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                   "ROOT %c = f32[16777216]{0:T(1024)} copy(%p)\n");
    cr_assert_float_eq(step_us(&w), 163.68, 0.005);
    world_fini(&w);
}

/* 2 · 8192³ / 197e12 = 5,581.3 µs, and a fill of 2 · 128 cycles at 1.5 GHz. */
Test(hlo, a_matmul_takes_its_flops_and_a_fill)
{
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%a = bf16[8192,8192]{1,0:T(8,128)(2,1)} parameter(0)\n"
                   "%b = bf16[8192,8192]{1,0:T(8,128)(2,1)} parameter(1)\n"
                   "ROOT %c = bf16[8192,8192]{1,0:T(8,128)(2,1)} convolution(%a, %b), "
                   "dim_labels=bf_io->bf\n");
    cr_assert_float_eq(step_us(&w), 5581.3 + 0.17, 0.05);
    const pod_experiment_hlo_totals totals = pod_experiment_hlo_totals_of(w.outcome.program);
    cr_assert_float_eq(totals.mxu_flops, 2.0 * 8192 * 8192 * 8192, 1);
    cr_assert_eq(totals.hbm_read_bytes, 2 * 134217728);
    cr_assert_eq(totals.hbm_write_bytes, 134217728);
    world_fini(&w);
}

/* A start takes nothing from the core; both want the HBM: the copy has 128 MiB, the core's copy as many. */
Test(hlo, a_copy_beside_a_copy_takes_half_of_the_hbm)
{
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                   "%s = (f32[16777216]{0:T(1024)}, f32[16777216]{0:T(1024)}, u32[]{:S(2)}) "
                   "copy-start(%p)\n"
                   "%c = f32[16777216]{0:T(1024)} copy(%p)\n"
                   "ROOT %d = f32[16777216]{0:T(1024)} copy-done(%s)\n");
    cr_assert_float_eq(step_us(&w), 2 * 163.68, 0.01);
    cr_assert_float_eq(us(&w, w.outcome.result.compute_ps), 2 * 163.68, 0.01);
    world_fini(&w);
}

/* Eight rows need each weight once: 134 MB, as the copy into VMEM does. Both begin at once and share the HBM, so the
 * matmul takes as long as its bytes and as many of the copy's. */
Test(hlo, a_copy_beside_a_matmul_bound_by_hbm_takes_its_share)
{
    world w;
    double alone = 0;
    world_init(&w, "v5e:1x1");
    for (int beside = 0; beside < 2; beside++) {
        header(&w);
        add(&w, "ENTRY %%main (p: f32[]) -> f32[] {\n"
                "%%a = bf16[8,8192]{1,0:T(8,128)(2,1)S(1)} parameter(0)\n"
                "%%b = bf16[8192,8192]{1,0:T(8,128)(2,1)} parameter(1)\n"
                "%%p = bf16[8192,8192]{1,0:T(8,128)(2,1)} parameter(2)\n");
        if (beside) {
            add(&w, "%%s = (bf16[8192,8192]{1,0:T(8,128)(2,1)S(1)}, "
                    "bf16[8192,8192]{1,0:T(8,128)(2,1)}, u32[]{:S(2)}) copy-start(%%p)\n");
        }
        add(&w, "%%c = bf16[8,8192]{1,0:T(8,128)(2,1)S(1)} convolution(%%a, %%b), "
                "dim_labels=bf_io->bf\n");
        if (beside) {
            add(&w, "%%d = bf16[8192,8192]{1,0:T(8,128)(2,1)S(1)} copy-done(%%s)\n");
        }
        add(&w, "ROOT %%t = (bf16[8,8192]{1,0:T(8,128)(2,1)S(1)}) tuple(%%c)\n}\n");
        const double time = step_us(&w);
        alone = beside ? alone : time;
        cr_assert_float_eq(us(&w, w.outcome.result.compute_ps), (1 + beside) * alone, 0.01);
        cr_assert_float_eq(time, (1 + beside) * 134217728 / 820e9 * 1e6, 0.01);
    }
    world_fini(&w);
}

/* To VMEM only one side is HBM; what the core waits for is exposed HBM. */
Test(hlo, a_copy_into_vmem_moves_its_bytes_once)
{
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                   "%s = (f32[16777216]{0:T(1024)S(1)}, f32[16777216]{0:T(1024)}, u32[]{:S(2)}) "
                   "copy-start(%p)\n"
                   "ROOT %d = f32[16777216]{0:T(1024)S(1)} copy-done(%s)\n");
    cr_assert_float_eq(step_us(&w), 81.84, 0.005);
    cr_assert_float_eq(us(&w, w.outcome.result.exposed_hbm_ps), 81.84, 0.005);
    world_fini(&w);
}

/* Both are no pair that is known, so each reads its operand and writes its result: 2 · 67,108,864 bytes / 820 GB/s. */
Test(hlo, an_unknown_start_and_done_are_two_elementwise_instructions)
{
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                   "%s = f32[16777216]{0:T(1024)} frobnicate-start(%p)\n"
                   "ROOT %d = f32[16777216]{0:T(1024)} frobnicate-done(%s)\n");
    cr_assert_float_eq(step_us(&w), 2 * 163.68, 0.01);
    cr_assert_eq(w.outcome.program->ncosts, 2);
    cr_assert_eq(pod_hlo_planned_cost(w.outcome.program, 0)->kind, POD_HLO_KIND_ELEMENTWISE);
    world_fini(&w);
}

Test(hlo, an_unknown_kernel_is_a_lower_bound_until_somebody_says_more)
{
    static const char text[] = "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                               "ROOT %my_kernel.1 = f32[16777216]{0:T(1024)} custom-call(%p), "
                               "custom_call_target=\"tpu_custom_call\"\n";
    const pod_hlo_custom timed = {.name = "my_kernel", .timed = true, .time_ps = 7 * POD_PS_PER_US};
    const pod_hlo_custom rated = {.name = "my_kernel", .flops = 197e6, .bytes = 820000};
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, text);
    cr_assert_float_eq(step_us(&w), 163.68, 0.005);
    cr_assert_eq(pod_experiment_hlo_totals_of(w.outcome.program).unknown_calls, 1);
    w.request.cost.ncustom = 1;
    w.request.cost.custom = &timed;
    entry_text(&w, text);
    cr_assert_float_eq(step_us(&w), 7, 1e-6);
    cr_assert_eq(pod_experiment_hlo_totals_of(w.outcome.program).unknown_calls, 0);
    w.request.cost.custom = &rated;
    entry_text(&w, text);
    cr_assert_float_eq(step_us(&w), 1, 1e-3);
    world_fini(&w);
}

Test(hlo, scale_takes_a_part_of_the_time)
{
    const pod_hlo_scale scale = {.pattern = "c.1", .factor = 4};
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                   "ROOT %c.1 = f32[16777216]{0:T(1024)} copy(%p)\n");
    w.request.cost.nscales = 1;
    w.request.cost.scale = &scale;
    cr_assert_float_eq(step_us(&w), 163.68 / 4, 0.005);
    world_fini(&w);
}

Test(hlo, the_compiler_says_how_long_a_matmul_takes)
{
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%a = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(0)\n"
                   "ROOT %c = bf16[1024,1024]{1,0:T(8,128)(2,1)} convolution(%a, %a), "
                   "dim_labels=bf_io->bf, backend_config={\"window_config\":"
                   "{\"estimated_cycles\":\"150000\"}}\n");
    w.request.cost.compiler = true;
    cr_assert_float_eq(step_us(&w), 100, 1e-6, "150,000 cycles at 1.5 GHz");
    world_fini(&w);
}

/* ---- collectives ---- */

Test(hlo, an_asynchronous_gather_is_exposed_by_what_the_matmul_leaves)
{
    world w;
    world_init(&w, "v5e:4x4");
    gather_text(&w, false, 64);
    (void)step_us(&w);
    const double gather = us(&w, w.outcome.result.exposed_ici_ps);
    cr_assert_gt(gather, 0);
    for (int rows = 64; rows <= 65536; rows *= 32) {
        gather_text(&w, false, rows);
        const double in_turn = step_us(&w);
        const double matmul = us(&w, w.outcome.result.compute_ps);
        cr_assert_float_eq(us(&w, w.outcome.result.exposed_ici_ps), gather, 1e-6);
        cr_assert_float_eq(in_turn, gather + matmul, 1e-6);
        gather_text(&w, true, rows);
        (void)step_us(&w);
        const double left = gather > matmul ? gather - matmul : 0;
        cr_assert_float_eq(us(&w, w.outcome.result.exposed_ici_ps), left, 1e-5, "%d rows", rows);
    }
    world_fini(&w);
}

/* Two all-gathers at once over one closed axis of 16: each link carries both. */
Test(hlo, two_asynchronous_gathers_share_the_links)
{
    double time_us[2];
    world w;
    world_init(&w, "v5e:16x16");
    for (int both = 0; both < 2; both++) {
        header(&w);
        add(&w, "ENTRY %%main (p: f32[]) -> f32[] {\n"
                "%%g = bf16[8388608]{0:T(1024)(128)(2,1)} parameter(0)\n");
        for (int i = 0; i <= both; i++) {
            add(&w,
                "%%s.%d = (bf16[8388608]{0:T(1024)(128)(2,1)}, "
                "bf16[134217728]{0:T(1024)(128)(2,1)}) all-gather-start(%%g), "
                "replica_groups=[16,16]<=[256], dimensions={0}\n",
                i);
        }
        for (int i = 0; i <= both; i++) {
            add(&w, "%s%%d.%d = bf16[134217728]{0:T(1024)(128)(2,1)} all-gather-done(%%s.%d)\n",
                i == both ? "ROOT " : "", i, i);
        }
        add(&w, "}\n");
        time_us[both] = step_us(&w);
    }
    cr_assert_float_eq(time_us[1], 2 * time_us[0], 0.01 * time_us[1]);
    world_fini(&w);
}

/* Copies that wait in their lane after a gather: only they are HBM's, the gather stays the links'. */
Test(hlo, what_copies_of_a_lane_wait_for_is_not_theirs)
{
    double gather_us[2];
    world w;
    world_init(&w, "v5e:4x4");
    for (int copies = 0; copies < 2; copies++) {
        header(&w);
        add(&w,
            "ENTRY %%main (p: f32[]) -> f32[] {\n"
            "%%g = bf16[1048576]{0:T(1024)(128)(2,1)} parameter(0)\n"
            "%%d = bf16[16777216]{0:T(1024)(128)(2,1)} all-gather(%%g), %s, dimensions={0}\n",
            group16);
        for (int i = 0; i < 3 * copies; i++) {
            add(&w,
                "%%s.%d = (bf16[16777216]{0:T(1024)(128)(2,1)S(1)}, "
                "bf16[16777216]{0:T(1024)(128)(2,1)}, u32[]{:S(2)}) copy-start(%%d)\n",
                i);
        }
        for (int i = 0; i < 3 * copies; i++) {
            add(&w, "%%e.%d = bf16[16777216]{0:T(1024)(128)(2,1)S(1)} copy-done(%%s.%d)\n", i, i);
        }
        add(&w, "ROOT %%t = (bf16[16777216]{0:T(1024)(128)(2,1)}) tuple(%%d)\n}\n");
        (void)step_us(&w);
        gather_us[copies] = us(&w, w.outcome.result.exposed_ici_ps);
        cr_expect_float_eq(us(&w, w.outcome.result.exposed_hbm_ps), 3.0 * copies * 33554432 / 820e3,
                           0.01);
    }
    cr_expect_gt(gather_us[0], 0);
    cr_expect_float_eq(gather_us[1], gather_us[0], 1e-6);
    world_fini(&w);
}

Test(hlo, a_group_of_one_chip_moves_nothing)
{
    world w;
    world_init(&w, "v5e:2x2");
    entry_text(&w, "%p = f32[1048576]{0:T(1024)} parameter(0)\n"
                   "ROOT %g = f32[1048576]{0:T(1024)} all-gather(%p), "
                   "replica_groups={{0},{1},{2},{3}}, dimensions={0}\n");
    cr_assert_eq(step_us(&w), 0);
    world_fini(&w);
}

/* Groups of x written as lists, as an iota and as a mesh; a permuted order of devices with permuted groups. */
Test(hlo, groups_written_otherwise_and_devices_ordered_otherwise_give_the_same_step)
{
    static const char *const forms[] = {"{{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}}",
                                        "[4,4]<=[16]", "mesh['y'=4,'x'=4] {'x'}"};
    static const char given[] = "0 4 8 12 1 5 9 13 2 6 10 14 3 7 11 15";
    static const char permuted[] = "[4,4]<=[4,4]T(1,0)";
    int64_t time_ps = -1;
    world w;
    world_init(&w, "v5e:4x4");
    for (int i = 0; i < 4; i++) {
        if (i == 3) {
            pod_hlo_devices_fini(&w.devices);
            OK(&w, pod_hlo_devices_parse(&w.devices, given, "--device-order", 16, &w.err));
        }
        header(&w);
        add(&w,
            "ENTRY %%main (p: f32[]) -> f32[] {\n"
            "%%p = bf16[4194304]{0:T(1024)(128)(2,1)} parameter(0)\n"
            "ROOT %%r = bf16[16777216]{0:T(1024)(128)(2,1)} all-gather(%%p), replica_groups=%s, "
            "dimensions={0}\n}\n",
            i < 3 ? forms[i] : permuted);
        (void)step_us(&w);
        time_ps = time_ps < 0 ? w.outcome.result.time_ps : time_ps;
        cr_assert_eq(w.outcome.result.time_ps, time_ps, "form %d", i);
        cr_assert_str_eq(w.outcome.program->shared.groups[0].axes, "x");
    }
    world_fini(&w);
}

/* f32 in, bf16 out: a reduce-scatter of what goes in and an all-gather of what comes out. */
Test(hlo, an_all_reduce_of_a_smaller_result_gathers_less)
{
    int64_t bytes[2];
    world w;
    world_init(&w, "v5e:4x4");
    for (int same = 0; same < 2; same++) {
        header(&w);
        add(&w,
            "%%sum (a: f32[], b: f32[]) -> f32[] {\n%%a = f32[] parameter(0)\n"
            "%%b = f32[] parameter(1)\nROOT %%s = f32[] add(%%a, %%b)\n}\n"
            "ENTRY %%main (p: f32[]) -> f32[] {\n%%p = f32[4194304]{0:T(1024)} parameter(0)\n"
            "ROOT %%r = %s[4194304]{0:T(1024)} all-reduce(%%p), %s, to_apply=%%sum\n}\n",
            same ? "f32" : "bf16", group16);
        (void)step_us(&w);
        bytes[same] = w.outcome.result.links.total_bytes * 16 / w.outcome.result.cells;
    }
    cr_assert_float_eq((double)bytes[0] / (double)bytes[1], 0.75, 0.01);
    world_fini(&w);
}

Test(hlo, a_gather_whose_group_has_no_algorithm_of_the_text_says_why)
{
    world w;
    world_init(&w, "v5e:4x4");
    entry_text(&w, "%p = bf16[4194304]{0:T(1024)(128)(2,1)} parameter(0)\n"
                   "ROOT %g = bf16[16777216]{0:T(1024)(128)(2,1)} all-gather(%p), "
                   "replica_groups=[4,4]<=[16], dimensions={0}, backend_config={"
                   "\"collective_algorithm_config\":{\"emitter\":\"2DAllGatherOnMajorDim\"}}\n");
    (void)step_us(&w);
    cr_assert(strstr(w.outcome.ran[0].reason, "ag2d") != NULL, "%s", w.outcome.ran[0].reason);
    cr_assert(strncmp(w.outcome.ran[0].algorithm, "xla:", 4) == 0, "%s",
              w.outcome.ran[0].algorithm);
    world_fini(&w);
}

/* ---- loops ---- */

/* A body of a copy-start, a copy and a permute, in a loop or written out. */
static void body_add(world *w, int number)
{
    add(w,
        "%%s.%d = (f32[262144]{0:T(1024)S(1)}, f32[262144]{0:T(1024)}, u32[]{:S(2)}) "
        "copy-start(%%x)\n"
        "%%c.%d = f32[1048576]{0:T(1024)} copy(%%y)\n"
        "%%d.%d = f32[262144]{0:T(1024)S(1)} copy-done(%%s.%d)\n"
        "%%r.%d = f32[262144]{0:T(1024)} collective-permute(%%x), "
        "source_target_pairs={{0,1},{1,0}}\n",
        number, number, number, number, number);
}

static void loop_text(world *w, int trips, bool written_out)
{
    header(w);
    if (written_out) {
        add(w, "ENTRY %%main (p: f32[]) -> f32[] {\n%%x = f32[262144]{0:T(1024)} parameter(0)\n"
               "%%y = f32[1048576]{0:T(1024)} parameter(1)\n");
        for (int i = 0; i < trips; i++) {
            body_add(w, i);
        }
        add(w, "ROOT %%t = (f32[262144]{0:T(1024)}) tuple(%%x)\n}\n");
        return;
    }
    const char *state = "(s32[]{:T(128)}, f32[262144]{0:T(1024)}, f32[1048576]{0:T(1024)})";
    add(w,
        "%%body (q: f32[]) -> f32[] {\n%%q = %s parameter(0)\n"
        "%%i = s32[]{:T(128)} get-tuple-element(%%q), index=0\n"
        "%%one = s32[]{:T(128)} constant(1)\n%%j = s32[]{:T(128)} add(%%i, %%one)\n"
        "%%x = f32[262144]{0:T(1024)} get-tuple-element(%%q), index=1\n"
        "%%y = f32[1048576]{0:T(1024)} get-tuple-element(%%q), index=2\n",
        state);
    body_add(w, 0);
    add(w,
        "ROOT %%t = %s tuple(%%j, %%x, %%y)\n}\n"
        "%%cond (q: f32[]) -> pred[] {\n%%q = %s parameter(0)\n"
        "%%i = s32[]{:T(128)} get-tuple-element(%%q), index=0\n"
        "%%n = s32[]{:T(128)} constant(%d)\n"
        "ROOT %%l = pred[]{:T(128)} compare(%%i, %%n), direction=LT\n}\n"
        "ENTRY %%main (p: f32[]) -> f32[] {\n%%z = s32[]{:T(128)} constant(0)\n"
        "%%x = f32[262144]{0:T(1024)} parameter(0)\n%%y = f32[1048576]{0:T(1024)} parameter(1)\n"
        "%%in = %s tuple(%%z, %%x, %%y)\n"
        "ROOT %%w = %s while(%%in), condition=%%cond, body=%%body\n}\n",
        state, state, trips, state, state);
}

Test(hlo, a_loop_takes_as_long_as_its_iterations_written_out)
{
    world w;
    world_init(&w, "v5e:1x2");
    for (int trips = 0; trips <= 7; trips += trips == 0 ? 1 : 3) {
        loop_text(&w, trips, true);
        const double out = step_us(&w);
        loop_text(&w, trips, false);
        cr_assert_float_eq(step_us(&w), out, 1e-9, "%d trips", trips);
    }
    world_fini(&w);
}

/* Beyond eight trips a few stand for the rest. */
Test(hlo, a_long_loop_takes_as_long_as_its_iterations_written_out)
{
    world w;
    world_init(&w, "v5e:1x2");
    for (int trips = 9; trips <= 36; trips += 9) {
        loop_text(&w, trips, true);
        const double out = step_us(&w);
        loop_text(&w, trips, false);
        cr_assert_float_eq(step_us(&w), out, 1e-3 * out, "%d trips", trips);
        cr_assert_gt(w.outcome.simulations, 1);
    }
    world_fini(&w);
}

Test(hlo, long_loops_are_extrapolated_to_what_exact_says)
{
    world w;
    world_init(&w, "v5e:1x2");
    for (int trips = 9; trips <= 40; trips += 31) {
        loop_text(&w, trips, false);
        w.request.exact = true;
        const double exact = step_us(&w);
        const int64_t all = w.outcome.simulated_ops;
        const double exposed =
            us(&w, w.outcome.exposed_ps[pod_experiment_hlo_sum(w.outcome.program, 0)]);
        loop_text(&w, trips, false);
        w.request.exact = false;
        cr_assert_float_eq(step_us(&w), exact, 1e-3 * exact, "%d trips", trips);
        cr_assert_float_eq(
            us(&w, w.outcome.exposed_ps[pod_experiment_hlo_sum(w.outcome.program, 0)]), exposed,
            1e-3 * exposed);
        cr_assert(trips < 12 || w.outcome.simulated_ops < all);
    }
    world_fini(&w);
}

Test(hlo, more_runs_than_can_be_simulated_are_refused)
{
    world w;
    world_init(&w, "v5e:1x2");
    loop_text(&w, 1000000000, false);
    w.request.exact = true;
    cr_assert_eq(run(&w), POD_E_RANGE);
    cr_assert(strstr(w.err.text, "--exact") != NULL, "%s", w.err.text);
    text_fini(&w);
    loop_text(&w, 1000000000, false);
    w.request.exact = false;
    (void)step_us(&w);
    world_fini(&w);
}

/* ---- what is refused ---- */

static void refused(world *w, const char *instructions, pod_status status, const char *says)
{
    entry_text(w, instructions);
    cr_assert_eq(run(w), status, "%s", instructions);
    cr_assert(strstr(w->err.text, says) != NULL, "'%s' doesn't say '%s'", w->err.text, says);
    text_fini(w);
}

Test(hlo, what_is_not_modelled_is_refused_by_name)
{
    world w;
    world_init(&w, "v5e:1x1");
    refused(&w,
            "%p = f32[1024]{0:T(1024)} parameter(0)\n"
            "ROOT %c = f32[1024]{0:T(1024)S(5)} copy(%p)\n",
            POD_E_INVALID, "S(5)");
    refused(&w,
            "%p = f32[1024]{0:T(1024)} parameter(0)\n%t = token[] after-all()\n"
            "%s = (f32[1024]{0:T(1024)}, u32[], token[]) send(%p, %t), channel_id=1, "
            "is_host_transfer=true\n"
            "ROOT %d = token[] send-done(%s), channel_id=1, is_host_transfer=true\n",
            POD_E_INVALID, "send");
    refused(&w,
            "%p = f32[1024]{0:T(1024)} parameter(0)\n%t = token[] after-all()\n"
            "%s = (f32[1024]{0:T(1024)}, u32[], token[]) send(%p, %t), channel_id=1, "
            "is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous=\"a\","
            "_xla_megascale_target=\"{1,2}x{0:0}\",_xla_megascale_transfer_type=\"ALL_GATHER\"}\n"
            "%r = (f32[1024]{0:T(1024)}, u32[], token[]) recv(%t), channel_id=2, "
            "is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous=\"a\"}\n"
            "%sd = token[] send-done(%s), channel_id=1, is_host_transfer=true\n"
            "ROOT %rd = (f32[1024]{0:T(1024)}, token[]) recv-done(%r), channel_id=2, "
            "is_host_transfer=true\n",
            POD_E_INVALID, "ALL_GATHER");
    world_fini(&w);
}

Test(hlo, a_program_of_other_partitions_is_refused)
{
    world w;
    world_init(&w, "v5e:2x2");
    add(&w, "HloModule m, is_scheduled=true, num_partitions=8\nENTRY %%main (p: f32[]) -> f32[] {\n"
            "ROOT %%p = f32[1024]{0:T(1024)} parameter(0)\n}\n");
    cr_assert_eq(run(&w), POD_E_INVALID);
    cr_assert(strstr(w.err.text, "8 partitions") != NULL && strstr(w.err.text, "4 chips") != NULL,
              "%s", w.err.text);
    world_fini(&w);
}
