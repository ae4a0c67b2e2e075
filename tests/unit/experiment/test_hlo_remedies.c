/* SPDX-License-Identifier: Apache-2.0 */
/* What else is simulated for a compiled program: remedies, kernels that aren't known. */
#include "hlo_world.h"

/* A gather is there before a matmul that doesn't need it: begun early, it costs nothing. */
Test(hlo_remedies, an_overlapped_gather_gains_what_the_matmul_hides)
{
    pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
    world w;
    world_init(&w, "v5e:4x4");
    gather_text(&w, false, 65536);
    const double in_turn = step_us(&w);
    const double gather = us(&w, w.outcome.result.exposed_ici_ps);
    OK(&w, pod_experiment_hlo_remedies(&w.experiment, &w.request, &w.setup.chip, &w.outcome,
                                       remedies, &w.err));
    cr_assert_eq(remedies[0].kind, POD_HLO_REMEDY_OVERLAP);
    cr_assert_eq(remedies[0].count, 1);
    cr_assert_float_eq((double)remedies[0].time_ps / 1e6, in_turn - gather, 1e-5);
    pod_experiment_hlo_remedies_fini(remedies);
    world_fini(&w);
}

/* An array, all-reduced over 16 chips and cut: as two instructions, or as one fusion of the compiler. */
static void cut_text(world *w, bool fused)
{
    header(w);
    add(w,
        "%%sum (a: bf16[], b: bf16[]) -> bf16[] {\n%%a = bf16[] parameter(0)\n"
        "%%b = bf16[] parameter(1)\nROOT %%s = bf16[] add(%%a, %%b)\n}\n"
        "%%cut (p: bf16[4096,1024]) -> bf16[256,1024] {\n"
        "%%p = bf16[4096,1024]{1,0:T(8,128)(2,1)} parameter(0)\n"
        "%%r = bf16[4096,1024]{1,0:T(8,128)(2,1)} all-reduce(%%p), %s, to_apply=%%sum\n"
        "%%i = u32[]{:S(6)} partition-id()\n%%z = u32[]{:S(6)} constant(0)\n"
        "ROOT %%d = bf16[256,1024]{1,0:T(8,128)(2,1)} dynamic-slice(%%r, %%i, %%z), "
        "dynamic_slice_sizes={256,1024}\n}\n"
        "ENTRY %%main (p: f32[]) -> f32[] {\n"
        "%%p = bf16[4096,1024]{1,0:T(8,128)(2,1)} parameter(0)\n",
        group16);
    if (fused) {
        add(w,
            "ROOT %%f = bf16[256,1024]{1,0:T(8,128)(2,1)} fusion(%%p), kind=kCustom, calls=%%cut, "
            "backend_config={\"collective_algorithm_config\":{\"emitter\":"
            "\"SingleInputAllReduceScatterFusion\",\"strategy\":\"StrategyRing\"}}\n}\n");
        return;
    }
    add(w,
        "%%r = bf16[4096,1024]{1,0:T(8,128)(2,1)} all-reduce(%%p), %s, to_apply=%%sum, "
        "backend_config={\"collective_algorithm_config\":{\"emitter\":"
        "\"SinglePhaseRingSumEmitter\"}}\n"
        "%%i = u32[]{:S(6)} partition-id()\n%%z = u32[]{:S(6)} constant(0)\n"
        "ROOT %%d = bf16[256,1024]{1,0:T(8,128)(2,1)} dynamic-slice(%%r, %%i, %%z), "
        "dynamic_slice_sizes={256,1024}\n}\n",
        group16);
}

/* 15/16 of 8 MiB round one ring of 16 both ways, once and not twice. */
Test(hlo_remedies, an_all_reduce_fused_with_its_slice_is_a_reduce_scatter)
{
    double exposed_us[2];
    world w;
    world_init(&w, "v5e:4x4");
    for (int fused = 0; fused < 2; fused++) {
        cut_text(&w, fused != 0);
        (void)step_us(&w);
        exposed_us[fused] = us(&w, w.outcome.result.exposed_ici_ps);
        /* the last: where nothing calls the fused computation, its own all-reduce is the first and never runs */
        const uint32_t last = w.outcome.program->analysis->collectives.count - 1;
        cr_assert_str_eq(w.outcome.ran[last].algorithm, fused ? "xla:rs1d" : "xla:1xboth:ring");
    }
    cr_assert_float_eq(exposed_us[1], exposed_us[0] / 2, 0.01 * exposed_us[0]);
    cr_assert_geq(exposed_us[1], 8388608.0 * 15 / 16 / 2 / 45e9 * 1e6);
    world_fini(&w);
}

/* The remedy of a kind, all zeros if there is none. */
static pod_experiment_hlo_remedy remedy_of(const pod_experiment_hlo_remedy *remedies,
                                           pod_experiment_hlo_remedy_kind kind)
{
    for (int i = 0; i < POD_HLO_REMEDIES; i++) {
        if (remedies[i].kind == kind) {
            return remedies[i];
        }
    }
    return (pod_experiment_hlo_remedy){.count = 0};
}

/* The remedy gains what the fusion would: half of the all-reduce. */
Test(hlo_remedies, an_all_reduce_that_is_only_sliced_can_be_a_reduce_scatter)
{
    pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
    world w;
    world_init(&w, "v5e:4x4");
    cut_text(&w, false);
    const double step = step_us(&w);
    const double all_reduce = us(&w, w.outcome.result.exposed_ici_ps);
    OK(&w, pod_experiment_hlo_remedies(&w.experiment, &w.request, &w.setup.chip, &w.outcome,
                                       remedies, &w.err));
    const pod_experiment_hlo_remedy scatter = remedy_of(remedies, POD_HLO_REMEDY_SCATTER);
    cr_assert_eq(scatter.count, 1);
    cr_assert_float_eq((double)scatter.time_ps / 1e6, step - all_reduce / 2, 0.01 * all_reduce);
    pod_experiment_hlo_remedies_fini(remedies);
    cut_text(&w, true);
    (void)step_us(&w);
    OK(&w, pod_experiment_hlo_remedies(&w.experiment, &w.request, &w.setup.chip, &w.outcome,
                                       remedies, &w.err));
    cr_assert_eq(remedy_of(remedies, POD_HLO_REMEDY_SCATTER).count, 0, "it is one already");
    pod_experiment_hlo_remedies_fini(remedies);
    world_fini(&w);
}

/* 16x16 gathers round one ring over two of its four links; axis by axis over all four: half the time. */
Test(hlo_remedies, a_gather_round_one_ring_can_go_axis_by_axis)
{
    pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
    world w;
    world_init(&w, "v5e:16x16");
    entry_text(&w, "%p = bf16[1048576]{0:T(1024)(128)(2,1)} parameter(0)\n"
                   "ROOT %g = bf16[268435456]{0:T(1024)(128)(2,1)} all-gather(%p), "
                   "replica_groups={}, dimensions={0}, backend_config={"
                   "\"collective_algorithm_config\":{\"emitter\":\"1DAllGatherOnMajorDim\"}}\n");
    const double ring = step_us(&w);
    OK(&w, pod_experiment_hlo_remedies(&w.experiment, &w.request, &w.setup.chip, &w.outcome,
                                       remedies, &w.err));
    const pod_experiment_hlo_remedy axes = remedy_of(remedies, POD_HLO_REMEDY_BY_AXES);
    cr_assert_eq(axes.count, 1);
    cr_assert_eq(remedies[0].kind, POD_HLO_REMEDY_BY_AXES, "the fastest is first");
    cr_assert_float_eq((double)axes.time_ps / 1e6, ring / 2, 0.1 * ring);
    pod_experiment_hlo_remedies_fini(remedies);
    world_fini(&w);
}

/* Diagonals of 4x4 are no rings; laid on rows they are, and take what rows take. */
Test(hlo_remedies, an_order_of_devices_makes_rings_of_groups)
{
    static const char *const lists[] = {
        "{{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}}",
        "{{0,5,10,15},{1,6,11,12},{2,7,8,13},{3,4,9,14}}",
    };
    pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
    double time_us[2];
    world w;
    world_init(&w, "v5e:4x4");
    for (int i = 0; i < 2; i++) {
        header(&w);
        add(&w,
            "ENTRY %%main (p: f32[]) -> f32[] {\n"
            "%%p = bf16[1048576]{0:T(1024)(128)(2,1)} parameter(0)\n"
            "ROOT %%g = bf16[4194304]{0:T(1024)(128)(2,1)} all-gather(%%p), replica_groups=%s, "
            "dimensions={0}\n}\n",
            lists[i]);
        time_us[i] = step_us(&w);
        OK(&w, pod_experiment_hlo_remedies(&w.experiment, &w.request, &w.setup.chip, &w.outcome,
                                           remedies, &w.err));
        const pod_experiment_hlo_remedy order = remedy_of(remedies, POD_HLO_REMEDY_ORDER);
        cr_expect_eq(order.count, i, "rows are rings already");
        if (i == 1) {
            cr_expect_float_eq((double)order.time_ps / 1e6, time_us[0], 1e-9);
            /* a diagonal on each row */
            cr_expect_eq(order.devices.chip[5], 1);
            cr_expect_eq(order.devices.chip[1], 4);
        }
        pod_experiment_hlo_remedies_fini(remedies);
    }
    cr_expect_gt(time_us[1], time_us[0]);
    world_fini(&w);
}

/* What two elementwise operations pass through the HBM: 64 MiB written and read; not where something else reads it. */
Test(hlo_remedies, fused_operations_spare_what_they_pass_through_the_hbm)
{
    pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
    const double mib64_us = 67108864 / 820e9 * 1e6;
    world w;
    world_init(&w, "v5e:1x1");
    for (int twice = 0; twice < 2; twice++) {
        entry_text(&w, twice ? "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                               "%n = f32[16777216]{0:T(1024)} negate(%p)\n"
                               "%e = f32[16777216]{0:T(1024)} abs(%n)\n"
                               "ROOT %t = (f32[16777216]{0:T(1024)}, f32[16777216]{0:T(1024)}) "
                               "tuple(%e, %n)\n"
                             : "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                               "%n = f32[16777216]{0:T(1024)} negate(%p)\n"
                               "%b = f32[4096,4096]{1,0:T(8,128)} bitcast(%n)\n"
                               "ROOT %e = f32[4096,4096]{1,0:T(8,128)} abs(%b)\n");
        cr_expect_float_eq(step_us(&w), 4 * mib64_us, 0.01);
        OK(&w, pod_experiment_hlo_remedies(&w.experiment, &w.request, &w.setup.chip, &w.outcome,
                                           remedies, &w.err));
        const pod_experiment_hlo_remedy fused = remedy_of(remedies, POD_HLO_REMEDY_FUSE);
        cr_expect_eq(fused.count, twice ? 0 : 1);
        cr_expect_eq(fused.bytes, twice ? 0 : 2 * 67108864);
        cr_expect_float_eq((double)fused.time_ps / 1e6, (twice ? 4 : 2) * mib64_us, 0.01);
        pod_experiment_hlo_remedies_fini(remedies);
    }
    world_fini(&w);
}

/* Two kernels: the one with more bytes first, ten times its bound. */
Test(hlo_remedies, unknown_kernels_are_tried_with_ten_times_their_bound)
{
    pod_experiment_hlo_unknown unknown[POD_HLO_UNKNOWNS_MAX];
    int count = 0;
    world w;
    world_init(&w, "v5e:1x1");
    entry_text(&w, "%p = f32[16777216]{0:T(1024)} parameter(0)\n"
                   "%q = f32[1024]{0:T(1024)} parameter(1)\n"
                   "%small = f32[1024]{0:T(1024)} custom-call(%q), custom_call_target=\"odd\"\n"
                   "ROOT %large = f32[16777216]{0:T(1024)} custom-call(%p), "
                   "custom_call_target=\"odd\"\n");
    const double step = step_us(&w);
    OK(&w, pod_experiment_hlo_unknowns(&w.experiment, &w.request, &w.setup.chip, &w.outcome,
                                       unknown, &count, &w.err));
    cr_assert_eq(count, 2);
    const double bound = 2 * 67108864 / 820e9 * 1e6;
    cr_expect_float_eq((double)unknown[0].bound_ps / 1e6, bound, 0.01);
    cr_expect_eq(unknown[0].given_ps, 10 * unknown[0].bound_ps);
    cr_expect_float_eq((double)unknown[0].time_ps / 1e6, step + 9 * bound, 0.01);
    cr_expect_eq(unknown[1].runs, 1);
    world_fini(&w);
}
