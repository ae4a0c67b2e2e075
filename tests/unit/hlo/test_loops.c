/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

/* Trips of loop w of a text. */
static int64_t trips_of(const char *text)
{
    pod_hlo_module *module = module_of(text);
    pod_hlo_loops loops;
    pod_error err = {0};
    cr_assert_eq(pod_hlo_loops_init(&loops, module, &err), POD_OK, "%s", err.text);
    const uint32_t number = (uint32_t)(instruction_of(module, "w") - module->instruction);
    const int64_t trips = pod_hlo_loop_of(&loops, number)->trips;
    pod_hlo_loops_fini(&loops);
    pod_hlo_free(module);
    return trips;
}

typedef struct loop_case {
    const char *type;
    int64_t start, bound, step;
    const char *direction;
    bool bound_first;
    int64_t trips;
} loop_case;

/* -1 = unknown. Gathers woven into a matmul run from 0 to n in steps of 2; pipelined loops start at 1. */
static const loop_case plain[] = {
    {"s32", 0,  32,            1,  "LT", false, 32           },
    {"s32", 1,  32,            1,  "LT", false, 31           },
    {"s32", 0,  16,            2,  "LT", false, 8            },
    {"s32", 0,  15,            2,  "LT", false, 8            },
    {"u32", 0,  17,            2,  "LT", false, 9            },
    {"s32", 0,  32,            1,  "LE", false, 33           },
    {"s32", 0,  32,            1,  "GT", true,  32           },
    {"s32", 0,  32,            1,  "GE", true,  33           },
    {"s32", 32, 0,             -1, "GT", false, 32           },
    {"s32", 32, 0,             -3, "GT", false, 11           },
    {"s32", 32, 0,             -1, "GE", false, 33           },
    {"s32", 32, 0,             -1, "LT", true,  32           },
    {"s32", -5, 5,             1,  "LT", false, 10           },
    {"s32", 32, 32,            1,  "LT", false, 0            },
    {"s32", 40, 32,            1,  "LT", false, 0            },
    {"s64", 0,  1099511627776, 1,  "LT", false, 1099511627776},
    {"s32", 0,  32,            -1, "LT", false, -1           },
 /* the last number wraps, so it never ends */
    {"s32", 0,  2147483647,    1,  "LE", false, -1           },
    {"s32", 0,  2147483647,    1,  "LT", false, 2147483647   },
    {"s32", 0,  2147483646,    1,  "LE", false, 2147483647   },
    {"s32", 0,  2147483647,    2,  "LT", false, -1           },
    {"s32", 1,  2147483647,    2,  "LT", false, 1073741823   },
    {"s32", 0,  2147483647,    1,  "GE", true,  -1           },
    {"s32", 0,  -2147483648,   -1, "GE", false, -1           },
    {"s32", 0,  -2147483648,   -1, "GT", false, 2147483648   },
    {"u32", 0,  4294967295,    1,  "LE", false, -1           },
    {"u32", 0,  4294967295,    1,  "LT", false, 4294967295   },
    {"u32", 9,  0,             -1, "GE", false, -1           },
    {"u8",  0,  255,           1,  "LE", false, -1           },
    {"s8",  0,  126,           1,  "LE", false, 127          },
    {"s32", 32, 0,             1,  "GT", false, -1           },
    {"s32", 0,  32,            0,  "LT", false, -1           },
    {"s32", 0,  32,            1,  "NE", false, -1           },
    {"s32", 0,  32,            1,  "EQ", false, -1           },
    {"f32", 0,  32,            1,  "LT", false, -1           },
};

Test(hlo_loops, counts_the_trips_of_every_form)
{
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        const loop_case *c = &plain[i];
        char text[2048];
        snprintf(text, sizeof text,
                 HEAD "body {\n  s = (%s[], f32[8]) parameter(0)\n"
                      "  i = %s[] get-tuple-element(s), index=0\n"
                      "  x = f32[8] get-tuple-element(s), index=1\n  one = %s[] constant(%lld)\n"
                      "  j = %s[] add(i, one)\n  ROOT r = (%s[], f32[8]) tuple(j, x)\n}\n"
                      "cond {\n  s = (%s[], f32[8]) parameter(0)\n"
                      "  i = %s[] get-tuple-element(s), index=0\n  n = %s[] constant(%lld)\n"
                      "  ROOT c = pred[] compare(%s), direction=%s\n}\n"
                      "ENTRY e {\n  z = %s[] constant(%lld)\n  x = f32[8] parameter(0)\n"
                      "  t = (%s[], f32[8]) tuple(z, x)\n"
                      "  ROOT w = (%s[], f32[8]) while(t), condition=cond, body=body\n}\n",
                 c->type, c->type, c->type, (long long)c->step, c->type, c->type, c->type, c->type,
                 c->type, (long long)c->bound, c->bound_first ? "n, i" : "i, n", c->direction,
                 c->type, (long long)c->start, c->type, c->type);
        cr_assert_eq(trips_of(text), c->trips, "case %zu", i);
    }
}

#define STATE "(s32[], s32[], f32[8])"
#define BODY_HEAD                                                                                  \
    "body {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"            \
    "  n = s32[] get-tuple-element(s), index=1\n  x = f32[8] get-tuple-element(s), index=2\n"
#define BODY                                                                                       \
    BODY_HEAD "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"                               \
              "  ROOT r = " STATE " tuple(j, n, x)\n}\n"
#define COND                                                                                       \
    "cond {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"            \
    "  n = s32[] get-tuple-element(s), index=1\n  ROOT c = pred[] compare(i, n), "                 \
    "direction=LT\n}\n"
#define ENTRY                                                                                      \
    "ENTRY e {\n  z = s32[] constant(2)\n  m = s32[] constant(12)\n  x = f32[8] parameter(0)\n"    \
    "  t = " STATE " tuple(z, m, x)\n  ROOT w = " STATE                                            \
    " while(t), condition=cond, body=body\n}\n"

Test(hlo_loops, takes_a_bound_that_the_state_carries)
{
    cr_assert_eq(trips_of(HEAD BODY COND ENTRY), 10);
    /* but not one that the body changes */
    cr_assert_eq(trips_of(HEAD BODY_HEAD "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
                                         "  k = s32[] subtract(n, one)\n"
                                         "  ROOT r = " STATE " tuple(j, k, x)\n}\n" COND ENTRY),
                 -1);
    /* nor one that nobody knows */
    cr_assert_eq(trips_of(HEAD BODY COND
                          "ENTRY e {\n  z = s32[] constant(2)\n  m = s32[] parameter(1)\n"
                          "  x = f32[8] parameter(0)\n  t = " STATE " tuple(z, m, x)\n"
                          "  ROOT w = " STATE " while(t), condition=cond, body=body\n}\n"),
                 -1);
}

Test(hlo_loops, takes_a_step_that_the_state_carries)
{
    cr_assert_eq(trips_of(HEAD BODY_HEAD
                          "  j = s32[] add(n, i)\n  ROOT r = " STATE " tuple(j, n, x)\n}\n"
                          "cond {\n  s = " STATE " parameter(0)\n"
                          "  i = s32[] get-tuple-element(s), index=0\n"
                          "  n = s32[] constant(100)\n"
                          "  ROOT c = pred[] compare(i, n), direction=LT\n}\n" ENTRY),
                 9); /* from 2 to 100 in steps of 12: 98 / 12 */
}

Test(hlo_loops, follows_copies_converts_bitcasts_barriers_and_fusions)
{
    cr_assert_eq(
        trips_of(HEAD
                 "add_two {\n  a = s32[] parameter(0)\n  b = s32[] constant(2)\n"
                 "  ROOT c = s32[] add(b, a)\n}\n"
                 "both {\n  a = s32[] parameter(0)\n  f = f32[8] parameter(1)\n"
                 "  b = s32[] fusion(a), kind=kLoop, calls=add_two\n"
                 "  ROOT c = (f32[8], s32[]) tuple(f, b)\n}\n"
                 "less {\n  n = s32[] parameter(0)\n  i = s32[] parameter(1)\n"
                 "  ROOT c = pred[] compare(i, n), direction=LT\n}\n" BODY_HEAD
                 "  i2 = s32[]{:S(6)} copy(i)\n  v = s64[] convert(i2)\n  v2 = s32[] convert(v)\n"
                 "  p = (f32[8], s32[]) fusion(v2, x), kind=kLoop, calls=both\n"
                 "  o = (f32[8], s32[]) opt-barrier(p)\n"
                 "  j = s32[] get-tuple-element(o), index=1\n  y = f32[8] get-tuple-element(o), "
                 "index=0\n"
                 "  cs = (s32[], s32[], u32[]) copy-start(j)\n  k = s32[] copy-done(cs)\n"
                 "  ROOT r = " STATE " tuple(k, n, y)\n}\n"
                 "cond {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
                 "  n = s32[] get-tuple-element(s), index=1\n"
                 "  f = pred[] fusion(n, i), kind=kLoop, calls=less\n"
                 "  b = pred[] bitcast(f)\n  ROOT c = pred[] copy(b)\n}\n" ENTRY),
        5);
}

Test(hlo_loops, follows_the_state_of_loops_around_and_before)
{
    /* The inner loop's bound is an element of the outer loop's state; the outer one runs after another. */
    const char *text = HEAD BODY COND
        "outer_body {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] get-tuple-element(s), index=1\n  x = f32[8] get-tuple-element(s), index=2\n"
        "  z = s32[] constant(7)\n  t = " STATE " tuple(z, n, x)\n"
        "  w = " STATE " while(t), condition=cond, body=body\n"
        "  y = f32[8] get-tuple-element(w), index=2\n  one = s32[] constant(1)\n"
        "  j = s32[] add(i, one)\n  ROOT r = " STATE " tuple(j, n, y)\n}\n"
        "outer_cond {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] constant(3)\n  ROOT c = pred[] compare(i, n), direction=LT\n}\n"
        "first_body {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] get-tuple-element(s), index=1\n  x = f32[8] get-tuple-element(s), index=2\n"
        "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
        "  ROOT r = " STATE " tuple(j, n, x)\n}\n"
        "ENTRY e {\n  z = s32[] constant(0)\n  m = s32[] constant(12)\n  x = f32[8] parameter(0)\n"
        "  t = " STATE " tuple(z, m, x)\n"
        "  v = " STATE " while(t), condition=outer_cond, body=first_body\n"
        "  n = s32[] get-tuple-element(v), index=1\n  u = " STATE " tuple(z, n, x)\n"
        "  ROOT o = " STATE " while(u), condition=outer_cond, body=outer_body\n}\n";
    cr_assert_eq(trips_of(text), 5);
}

Test(hlo_loops, believes_the_compiler_first)
{
    const char *const configs[] = {"{\"known_trip_count\":{\"n\":\"77\"}}",
                                   "{\"other\":[1,{\"n\":3}],\"known_trip_count\":{\"n\":77}}",
                                   "\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"77\\\"}}\""};
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 HEAD BODY COND "ENTRY e {\n  z = s32[] constant(2)\n  m = s32[] constant(12)\n"
                                "  x = f32[8] parameter(0)\n  t = " STATE " tuple(z, m, x)\n"
                                "  ROOT w = " STATE
                                " while(t), condition=cond, body=body, backend_config=%s\n}\n",
                 configs[i]);
        cr_assert_eq(trips_of(text), 77, "%s", configs[i]);
    }
}

Test(hlo_loops, asks_for_trips_that_the_text_does_not_tell)
{
    const char *text = HEAD BODY COND
        "ENTRY e {\n  z = s32[] constant(2)\n  m = s32[] parameter(1)\n  x = f32[8] parameter(0)\n"
        "  t = " STATE " tuple(z, m, x)\n  ROOT w = " STATE
        " while(t), condition=cond, body=body\n}\n";
    pod_hlo_module *module = module_of(text);
    pod_hlo_analysis analysis;
    pod_error err = {0};
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, NULL, &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "say --trip w=N") != NULL, "%s", err.text);
    cr_assert_eq(err.line, 22);
    cr_assert_eq(err.column, 8);
    const pod_hlo_choice right = {.name = "w", .value = 9};
    const pod_hlo_choice none = {.name = "v", .value = 9};
    pod_hlo_choices choices = {.trip = &right, .ntrips = 1};
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, &choices, NULL), POD_OK);
    cr_assert_eq(analysis.inside[module->entry].executed, 9); /* the add of each trip */
    pod_hlo_analysis_fini(&analysis);
    choices.trip = &none;
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, &choices, NULL), POD_E_USAGE);
    pod_hlo_free(module);
    module = module_of(HEAD BODY COND ENTRY);
    choices.trip = &right; /* the text says 10 */
    err = (pod_error){0};
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, &choices, &err), POD_E_USAGE);
    cr_assert(strstr(err.text, "makes 10 trips") != NULL, "%s", err.text);
    pod_hlo_free(module);
}

/* Computation k calls computation k + 1 twice: 2^60 runs of the last one, each looked at once.
 * @param opcode, role  "call", "to_apply" or the like */
static char *doubling(int levels, const char *opcode, const char *role)
{
    pod_text text = {0};
    pod_text_printf(&text,
                    HEAD "c%d {\n  a = f32[8,8] parameter(0)\n  ROOT b = f32[8,8] add(a, a)\n}\n",
                    levels);
    for (int k = levels - 1; k >= 0; k--) {
        pod_text_printf(&text,
                        "%sc%d {\n  a = f32[8,8] parameter(0)\n  b = f32[8,8] %s(a), %s=c%d\n"
                        "  ROOT c = f32[8,8] %s(b), %s=c%d\n}\n",
                        k == 0 ? "ENTRY " : "", k, opcode, role, k + 1, opcode, role, k + 1);
    }
    return text.data;
}

Test(hlo_loops, takes_calls_that_double_at_each_level_once)
{
    pod_error err = {0};
    char *text = doubling(60, "call", "to_apply");
    pod_hlo_module *module = module_of(text);
    pod_hlo_analysis analysis = analysis_of(module);
    cr_assert_eq(analysis.inside[module->entry].executed, INT64_C(1) << 60);
    cr_assert_eq(analysis.runs[instruction_of(module, "a")->computation], INT64_C(1) << 60);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
    free(text);
    text = doubling(63, "call", "to_apply");
    cr_assert_eq(status_of(text, strlen(text), &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "runs of the program") != NULL, "%s", err.text);
    free(text);
    text = doubling(64, "call", "to_apply");
    cr_assert_eq(status_of(text, strlen(text), &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "calls in calls") != NULL, "%s", err.text);
    free(text);
    text = doubling(63, "fusion", "calls");
    cr_assert_eq(status_of(text, strlen(text), &err), POD_OK, "%s", err.text);
    free(text);
}

Test(hlo_loops, takes_the_dearest_branch_unless_told)
{
    const char *text =
        HEAD "cheap { a = f32[8,8] parameter(0) ROOT b = f32[8,8] add(a, a) }\n"
             "dear { a = f32[8,8] parameter(0) \n ROOT b = f32[8,8] dot(a, a), "
             "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n }\n"
             "slow { a = f32[8,8] parameter(0) \n ROOT b = f32[8,8] copy(a), "
             "backend_config={\"window_config\":{\"estimated_cycles\":\"500\"}} }\n"
             "ENTRY e {\n  i = s32[] parameter(0)\n  p = pred[] parameter(1)\n"
             "  a = f32[8,8] parameter(2)\n"
             "  x = f32[8,8] conditional(i, a, a, a), branch_computations={cheap, dear, slow}\n"
             "  ROOT y = f32[8,8] conditional(p, x, x), true_computation=cheap, "
             "false_computation=slow\n}\n";
    pod_hlo_module *module = module_of(text);
    pod_hlo_analysis analysis = analysis_of(module);
    cr_assert_eq(analysis.nbranches, 2);
    cr_assert_eq(analysis.branch[0].taken, 1);
    cr_assert_eq(analysis.branch[1].taken, 1);
    cr_assert_eq(analysis.inside[module->entry].flops, 1024);
    cr_assert_eq(analysis.inside[module->entry].cycles, 500);
    cr_assert_eq(analysis.inside[module->entry].executed, 2);
    pod_hlo_analysis_fini(&analysis);
    const pod_hlo_choice branches[] = {
        {.name = "x", .value = 2},
        {.name = "y", .value = 0}
    };
    pod_hlo_choices choices = {.branch = branches, .nbranches = 2};
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, &choices, NULL), POD_OK);
    cr_assert_eq(analysis.inside[module->entry].flops, 0);
    cr_assert_eq(analysis.inside[module->entry].cycles, 500);
    cr_assert(analysis.branch[0].chosen && analysis.branch[1].chosen);
    pod_hlo_analysis_fini(&analysis);
    const pod_hlo_choice wrong[] = {
        {.name = "x", .value = 3}
    };
    choices = (pod_hlo_choices){.branch = wrong, .nbranches = 1};
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, &choices, NULL), POD_E_USAGE);
    const pod_hlo_choice nobody[] = {
        {.name = "a", .value = 0}
    };
    choices = (pod_hlo_choices){.branch = nobody, .nbranches = 1};
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, &choices, NULL), POD_E_USAGE);
    pod_hlo_free(module);
}
