/* SPDX-License-Identifier: Apache-2.0 */
/* What backend_config says of a collective, as a wish for collectives/xla. Emitters and debug strings as the compiler
 * writes them (validation/hlo). */
#include "texts.h"

#include "hlo/algorithm.h"

static const pod_hlo_algorithms by_text = {.text = true};

/* The algorithm of an instruction of eight chips with this configuration ("" = none). */
static pod_hlo_algorithm algorithm_of(const char *instruction, const char *config,
                                      const pod_hlo_algorithms *which)
{
    pod_text text = {0};
    pod_error err = {0};
    pod_hlo_algorithm algorithm;
    pod_text_printf(&text,
                    HEAD "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                         "  ROOT c = f32[] add(a, b)\n}\n"
                         "scattered {\n  p = f32[16,128] parameter(0)\n"
                         "  q = f32[16,128] all-reduce(p), channel_id=3, to_apply=add\n"
                         "  ROOT s = f32[2,128] slice(q), slice={[0:2], [0:128]}\n}\n"
                         "ENTRY e {\n  x = f32[16,128] parameter(0)\n  ROOT r = %s%s%s%s\n}\n",
                    instruction, config[0] != '\0' ? ", backend_config={" : "", config,
                    config[0] != '\0' ? "}" : "");
    pod_hlo_module *module = module_of(text.data);
    pod_hlo_analysis analysis = analysis_of(module);
    /* callees come first: where a fusion is a collective, so is its all-reduce, which never runs */
    const pod_hlo_collectives *all = &analysis.collectives;
    cr_assert_gt(all->count, 0, "%s", instruction);
    cr_assert_eq(
        pod_hlo_algorithm_of(module, &all->collective[all->count - 1], which, &algorithm, &err),
        POD_OK, "%s", err.text);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
    pod_text_free(&text);
    return algorithm;
}

#define REDUCE          "f32[16,128] all-reduce(x), to_apply=add"
#define GATHER          "f32[128,128] all-gather(x), dimensions={0}"
#define CONFIG(emitter) "\"collective_algorithm_config\":{\"emitter\":\"" emitter "\"}"
#define STREAMS(emitter, strategy, debug)                                                          \
    "\"collective_algorithm_config\":{\"emitter\":\"" emitter "\",\"strategy\":\"" strategy        \
    "\",\"debug\":\"\\n" strategy "{" debug "}\"}"

Test(hlo_algorithm, streams_go_where_dim_used_says)
{
    const pod_hlo_algorithm algorithm = algorithm_of(
        REDUCE,
        STREAMS("RotatedPincerEmitter", "UniDirectionNDRingStrategy",
                "colors:3 phases:3 cores:{4 4 4},{4 4 4},{4 4 4} dim_used:{0 1 2},{1 2 0},{2 0 1}"),
        &by_text);
    static const int order[3][3] = {
        {1, 0, 2},
        {0, 2, 1},
        {2, 1, 0}
    }; /* 0 is y, 1 is x */
    const pod_xla_wish *wish = &algorithm.runs.wish;
    cr_assert(algorithm.runs.given);
    cr_expect_str_eq(algorithm.runs.name, "xla");
    cr_expect_str_eq(algorithm.text, "RotatedPincerEmitter:UniDirectionNDRingStrategy");
    cr_expect_str_eq(algorithm.reason, "");
    cr_expect_eq(wish->form, POD_XLA_FORM_STREAMS);
    cr_expect_eq(wish->way, POD_XLA_ONE);
    cr_expect_not(wish->short_form);
    cr_expect_eq(wish->streams, 3);
    cr_expect_eq(wish->nphases, 3);
    for (int s = 0; s < 3; s++) {
        cr_expect_arr_eq(wish->order[s], order[s], sizeof order[s], "stream %d", s);
    }
}

Test(hlo_algorithm, the_short_form_goes_both_ways_and_one_axis_needs_no_orders)
{
    const pod_hlo_algorithm two = algorithm_of(REDUCE,
                                               STREAMS("RotatedPincerShortEmitter", "StrategyND",
                                                       "colors:2 phases:2 dim_used:{0 1},{1 0}"),
                                               &by_text);
    cr_assert(two.runs.given);
    cr_expect(two.runs.wish.short_form);
    cr_expect_eq(two.runs.wish.way, POD_XLA_BOTH);
    cr_expect_eq(two.runs.wish.nphases, 2);
    const pod_hlo_algorithm one =
        algorithm_of(REDUCE,
                     STREAMS("RotatedPincerEmitter", "UniDirection1DRingStrategy",
                             "colors:2 phases:1 cores:{4}"),
                     &by_text);
    cr_assert(one.runs.given);
    cr_expect_eq(one.runs.wish.streams, 2);
    cr_expect_eq(one.runs.wish.nphases, 0, "the group's only axis");
}

Test(hlo_algorithm, emitters_name_forms)
{
    /* clang-format off */
    static const struct {
        const char *instruction;
        const char *config;
        pod_xla_form form;
        bool short_form;
    } cases[] = {
        {GATHER, CONFIG("3DAllGatherOnMajorDim"), POD_XLA_FORM_AG3D, false},
        {GATHER, CONFIG("2DAllGatherOnMajorDim"), POD_XLA_FORM_AG2D, false},
        {GATHER, CONFIG("1DAllGatherNonMajorDimImbalanced"), POD_XLA_FORM_AG1D, false},
        {"f32[16,128] all-to-all(x), dimensions={0}", CONFIG("AllToAllEmitter"),
         POD_XLA_FORM_DIRECT, false},
        {"f32[16,128] all-to-all(x), dimensions={0}", CONFIG("NetRouterEmitter"),
         POD_XLA_FORM_DIRECT, false},
        {REDUCE, CONFIG("SinglePhaseRingSumEmitter"), POD_XLA_FORM_RING, false},
        {REDUCE, STREAMS("RotatedPincerShortEmitter", "StrategyRing", "colors:1 phases:1"),
         POD_XLA_FORM_RING, true},
        {"f32[2,128] fusion(x), kind=kCustom, calls=scattered",
         STREAMS("SingleInputAllReduceScatterFusion", "StrategyRing", "colors:1 phases:1"),
         POD_XLA_FORM_RS1D, false},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_hlo_algorithm algorithm =
            algorithm_of(cases[i].instruction, cases[i].config, &by_text);
        cr_expect(algorithm.runs.given, "%s", cases[i].config);
        cr_expect_eq(algorithm.runs.wish.form, cases[i].form, "%s", cases[i].config);
        cr_expect_eq(algorithm.runs.wish.short_form, cases[i].short_form, "%s", cases[i].config);
        cr_expect_str_eq(algorithm.reason, "", "%s", cases[i].config);
    }
}

/* Nothing is half read: what can't be followed runs by the compiler's rules, with the reason. */
Test(hlo_algorithm, what_cannot_be_followed_says_why)
{
    /* clang-format off */
    static const struct {
        const char *config;
        const char *says;
    } cases[] = {
        {"", "names no algorithm"},
        {CONFIG("SomethingNewEmitter"), "knows no such algorithm"},
        {STREAMS("RotatedPincerEmitter", "StrategyND", "colors:7 phases:2 dim_used:{0 1}"),
         "knows no such algorithm"},
        {STREAMS("RotatedPincerEmitter", "StrategyND", "colors:2 phases:4 dim_used:{0 1}"),
         "knows no such algorithm"},
        {STREAMS("RotatedPincerEmitter", "StrategyND", "colors:2 phases:2"),
         "knows no such algorithm"},
        {STREAMS("RotatedPincerEmitter", "StrategyND", "colors:2 phases:2 dim_used:{0 1}"),
         "knows no such algorithm"},
        {STREAMS("RotatedPincerEmitter", "StrategyND", "colors:2 phases:2 dim_used:{0 3},{1 0}"),
         "knows no such algorithm"},
        {STREAMS("RotatedPincerEmitter", "StrategyND", "no figures at all"),
         "knows no such algorithm"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_hlo_algorithm algorithm = algorithm_of(REDUCE, cases[i].config, &by_text);
        cr_expect_not(algorithm.runs.given, "%s", cases[i].config);
        cr_expect_str_eq(algorithm.runs.name, "xla", "%s", cases[i].config);
        cr_expect_neq(strstr(algorithm.reason, cases[i].says), NULL, "%s: '%s'", cases[i].config,
                      algorithm.reason);
    }
}

Test(hlo_algorithm, the_router_gathers_nothing_and_permutes_have_one_way)
{
    const pod_hlo_algorithm router =
        algorithm_of(GATHER, CONFIG("AllGatherWithNetRouterEmitter"), &by_text);
    cr_expect_str_eq(router.runs.name, "auto");
    cr_expect_neq(strstr(router.reason, "no all-gather"), NULL, "%s", router.reason);
    const pod_hlo_algorithm permute = algorithm_of(
        "f32[16,128] collective-permute(x), source_target_pairs={{0,1}}", "", &by_text);
    cr_expect_str_eq(permute.runs.name, "auto");
    cr_expect_str_eq(permute.reason, "");
}

/* Asked for one algorithm, the text isn't looked at, and there is nothing to explain. */
Test(hlo_algorithm, an_option_wins_over_the_text)
{
    const pod_hlo_algorithms ring = {.text = false, .name = "ring"};
    const pod_hlo_algorithm algorithm =
        algorithm_of(GATHER, CONFIG("3DAllGatherOnMajorDim"), &ring);
    cr_expect_str_eq(algorithm.runs.name, "ring");
    cr_expect_not(algorithm.runs.given);
    cr_expect_str_eq(algorithm.text, "3DAllGatherOnMajorDim", "what it says is still shown");
    cr_expect_str_eq(algorithm.reason, "");
}
