/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include "hlo/transfers.h"

/* What facts say of the collectives of a text. */
static pod_text collectives_of(const char *text)
{
    pod_hlo_module *module = module_of(text);
    pod_hlo_analysis analysis = analysis_of(module);
    pod_hlo_facts facts;
    cr_assert_eq(pod_hlo_facts_init(&facts, &analysis, NULL), POD_OK);
    pod_text list = {0};
    pod_text_printf(&list, "%s", facts.collectives.size > 0 ? facts.collectives.data : "");
    if (facts.dcn.size > 0) {
        pod_text_printf(&list, " dcn %s", facts.dcn.data);
    }
    pod_hlo_facts_fini(&facts);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
    return list;
}

#define ADD                                                                                        \
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
#define ENTRY                                                                                      \
    HEAD ADD "ENTRY e {\n  a = f32[16,100]{1,0:T(8,128)} parameter(0)\n"                           \
             "  b = bf16[8]{0:T(1024)} parameter(1)\n"
#define GROUPS "replica_groups=[2,4]<=[8]"

typedef struct payload_case {
    const char *instructions; /* the last one is the root */
    const char *list;
} payload_case;

/* clang-format off */
/* Payloads without padding: f32[16,100] is 6400 B (8192 as laid out), bf16[8] 16 B. */
static const payload_case payloads[] = {
    {"ROOT r = f32[64,100] all-gather(a), dimensions={0}, " GROUPS, "all-gather:sync:25600:4x2:1"},
    {"ROOT r = (f32[64,100], bf16[32]) all-gather(a, b), dimensions={0}, " GROUPS, "all-gather:sync:25664:4x2:1"},
    {"ROOT r = f32[16,100] all-reduce(a), to_apply=add, " GROUPS, "all-reduce:sync:6400:4x2:1"},
    {"ROOT r = (f32[16,100], bf16[8]) all-reduce(a, b), to_apply=add, " GROUPS, "all-reduce:sync:6416:4x2:1"},
    {"ROOT r = bf16[16,100] all-reduce(a), to_apply=add", "all-reduce:sync:6400>3200:8x1:1"},
    {"ROOT r = f32[4,100] reduce-scatter(a), dimensions={0}, to_apply=add, " GROUPS, "reduce-scatter:sync:6400:4x2:1"},
    {"ROOT r = f32[16,100] all-to-all(a), dimensions={0}, " GROUPS, "all-to-all:sync:6400:4x2:1"},
    {"ROOT r = (f32[16,100], f32[16,100]) all-to-all(a, a), " GROUPS, "all-to-all:sync:12800:4x2:1"},
    {"ROOT r = f32[16,100] collective-permute(a), source_target_pairs={{0,1}}", "collective-permute:sync:6400:-:1"},
    {"ROOT r = f32[16,100] collective-broadcast(a), " GROUPS, "collective-broadcast:sync:6400:4x2:1"},
    {"i = s64[4] constant({0,1,2,3})\n  ROOT r = f32[16,100] ragged-all-to-all(a, a, i, i, i, i), " GROUPS,
     "ragged-all-to-all:sync:2400:4x2:1"},
    /* a start returns what its done returns */
    {"s = (f32[16,100], f32[64,100]) all-gather-start(a), dimensions={0}, " GROUPS "\n"
     "  ROOT r = f32[64,100] all-gather-done(s)", "all-gather:async:25600:4x2:1"},
    {"s = bf16[16,100] all-reduce-start(a), to_apply=add\n  ROOT r = bf16[16,100] all-reduce-done(s)",
     "all-reduce:async:6400:8x1:1"},
    {"s = ((f32[16,100]), f32[4,100]) reduce-scatter-start(a), dimensions={0}, to_apply=add, " GROUPS "\n"
     "  u = ((f32[16,100]), f32[4,100]) reduce-scatter-update(s)\n  ROOT r = f32[4,100] reduce-scatter-done(u)",
     "reduce-scatter:async:6400:4x2:1"},
    /* in a fusion without an asynchronous call */
    {"ROOT r = f32[4,100] fusion(a), kind=kCustom, calls=scattered", "all-reduce:scatter:6400:4x2:1"},
    {"ROOT r = f32[4,100] fusion(a), kind=kOutput, calls=scattered", "all-reduce:sync:6400:4x2:1"},
    /* over DCN */
    {"t = token[] after-all()\n  s = (f32[16,100], u32[], token[]) send(a, t), is_host_transfer=true, "
     "frontend_attributes={_xla_megascale_target=\"{1,2}x{0:7}\",_xla_megascale_transfer_type=\"ALL_REDUCE\"}\n"
     "  ROOT d = token[] send-done(s)", " dcn all-reduce:6400:{1,2}x{0:7}:1"},
    {"t = token[] after-all()\n  s = (f32[16,100], u32[], token[]) send(a, t), is_host_transfer=true, "
     "frontend_attributes={_xla_host_transfer_handler_name=\"tf_rendezvous\"}\n"
     "  ROOT d = token[] send-done(s)", ""},
};
/* clang-format on */

Test(hlo_collectives, count_what_each_moves)
{
    static const char scattered[] =
        "scattered {\n  p = f32[16,100] parameter(0)\n"
        "  q = f32[16,100] all-reduce(p), channel_id=3, to_apply=add, " GROUPS "\n"
        "  ROOT s = f32[4,100] slice(q), slice={[0:4], [0:100]}\n}\n";
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        pod_text text = {0};
        pod_text_printf(&text, ENTRY "  %s\n}\n%s", payloads[i].instructions, scattered);
        pod_text list = collectives_of(text.data);
        cr_assert_str_eq(list.data, payloads[i].list, "%s", payloads[i].instructions);
        pod_text_free(&list);
        pod_text_free(&text);
    }
}

/* Fusions around one asynchronous gather: start, middle, done of channel `channel`. */
#define PART(name, channel, result, root)                                                          \
    name " {\n  p = bf16[8] parameter(0)\n  q = bf16[64] parameter(1)\n"                           \
         "  g = bf16[64] all-gather(p), channel_id=" channel ", dimensions={0}\n"                  \
         "  ROOT r = " result " " root "\n}\n"
#define START(name, channel)                                                                       \
    PART(name, channel, "(bf16[8], bf16[64])",                                                     \
         "custom-call(g), custom_call_target=\"AsyncCollectiveStart\"")
#define MIDDLE(name, channel) PART(name, channel, "(bf16[8], bf16[64])", "tuple(p, q)")
#define DONE(name, channel)                                                                        \
    PART(name, channel, "bf16[64]",                                                                \
         "custom-call(p, q, g), custom_call_target=\"AsyncCollectiveDone\"")
#define CALL(name, callee, kind)                                                                   \
    "  " name " = (bf16[8], bf16[64]) fusion(b, c), kind=" kind ", calls=" callee "\n"
#define END(name, callee) "  " name " = bf16[64] fusion(b, c), kind=kCustom, calls=" callee "\n"
#define FUSIONS                                                                                    \
    START("start9", "9")                                                                           \
    MIDDLE("middle9", "9") DONE("done9", "9") START("start8", "8") DONE("done8", "8")
#define STOP "  ROOT o = token[] after-all()\n}\n"
#define MAIN "ENTRY e {\n  b = bf16[8] parameter(0)\n  c = bf16[64] parameter(1)\n"

Test(hlo_collectives, take_fusions_of_one_channel_as_one)
{
    pod_text list = collectives_of(HEAD FUSIONS MAIN CALL("s", "start9", "kCustom") CALL(
        "m", "middle9", "kOutput") CALL("t", "start8", "kCustom") CALL("n", "middle9", "kLoop")
                                       END("d", "done9") END("x", "done8") STOP);
    cr_assert_str_eq(list.data, "all-gather:fused:128:8x1:2");
    pod_text_free(&list);
    pod_hlo_module *module =
        module_of(HEAD START("start9", "9") MIDDLE("middle9", "9") DONE("done9", "9") MAIN CALL(
            "s", "start9", "kCustom") CALL("m", "middle9", "kOutput") END("d", "done9") STOP);
    pod_hlo_analysis analysis = analysis_of(module);
    cr_assert_eq(analysis.collectives.count, 1);
    const pod_hlo_collective *gather = &analysis.collectives.collective[0];
    cr_assert_eq(&module->instruction[gather->instruction], instruction_of(module, "s"));
    cr_assert_eq(&module->instruction[gather->done], instruction_of(module, "d"));
    cr_assert_eq(gather->channel, 9);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
}

Test(hlo_collectives, pair_fusions_by_channel)
{
    static const struct {
        const char *text;
        int line;
        const char *says;
    } wrong[] = {
  /* clang-format off */
        {HEAD FUSIONS MAIN CALL("s", "start9", "kCustom") STOP, 35,
         "a start with no done: no fusion up to line 36 ends channel 9"},
        { HEAD FUSIONS MAIN END("d", "done9") STOP, 35,
         "a done without a start: no fusion of its computation, which begins in line 33, starts "
         "channel 9"},
        { HEAD FUSIONS MAIN CALL("s", "start9", "kCustom") CALL("t", "start9", "kCustom")
             END("d", "done9") STOP,
         36, "a second start of the channel that began in line 35"},
        { HEAD FUSIONS MAIN CALL("s", "start9", "kCustom") END("d", "done9") END("x", "done9") STOP,
         37, "a done without a start"},
  /* clang-format on */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pod_error err = {0};
        cr_assert_eq(status_of(wrong[i].text, strlen(wrong[i].text), &err), POD_E_INVALID);
        cr_assert(strstr(err.text, wrong[i].says) != NULL, "case %zu: %s", i, err.text);
        cr_assert_eq(err.line, wrong[i].line, "case %zu: line %d", i, err.line);
        cr_assert_eq(err.column, 3);
    }
}

Test(hlo_collectives, find_those_of_async_starts_and_pair_starts_with_dones)
{
    pod_hlo_module *module =
        module_of(HEAD "wrapped {\n  p = f32[16] parameter(0)\n"
                       "  ROOT g = f32[128] all-gather(p), dimensions={0}\n}\n"
                       "ENTRY e {\n  a = f32[16] parameter(0)\n"
                       "  s = ((f32[16]), f32[128]) async-start(a), calls=wrapped\n"
                       "  u = ((f32[16]), f32[128]) async-update(s)\n"
                       "  ROOT d = f32[128] async-done(u)\n}\n");
    pod_hlo_analysis analysis = analysis_of(module);
    const uint32_t s = (uint32_t)(instruction_of(module, "s") - module->instruction);
    const uint32_t d = (uint32_t)(instruction_of(module, "d") - module->instruction);
    cr_assert_eq(analysis.partner[s], d);
    cr_assert_eq(analysis.partner[d], s);
    cr_assert_eq(analysis.collectives.count, 1);
    cr_assert_eq(analysis.collectives.collective[0].instruction, s);
    cr_assert_eq(analysis.collectives.collective[0].done, d);
    cr_assert_eq(analysis.collectives.collective[0].how, POD_HLO_HOW_ASYNC);
    cr_assert_eq(analysis.collectives.collective[0].bytes, 512);
    cr_assert_eq(analysis.inside[module->entry].executed, 3);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
}

/* A start may leave operands to its updates. */
Test(hlo_collectives, take_operands_that_an_update_brings)
{
    pod_hlo_module *module = module_of(
        HEAD "both { p = f32[16] parameter(0) \n q = f32[16] parameter(1) \n ROOT r = f32[16] "
             "add(p, q) }\n"
             "ENTRY e { a = f32[16] parameter(0)\n  s = ((), f32[16], u32[]) call-start(), "
             "async_execution_thread=\"sparsecore\", to_apply=both\n"
             "  u = ((f32[16]), f32[16], u32[]) call-update(s, a)\n"
             "  v = ((f32[16], f32[16]), f32[16], u32[]) call-update(u, a)\n"
             "  ROOT d = f32[16] call-done(v) }\n");
    pod_hlo_analysis analysis = analysis_of(module);
    const uint32_t s = (uint32_t)(instruction_of(module, "s") - module->instruction);
    cr_assert_eq(&module->instruction[analysis.partner[s]], instruction_of(module, "d"));
    cr_assert_eq(analysis.inside[module->entry].executed, 1 + 2 + 1);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
}

Test(hlo_collectives, count_what_sparse_cores_execute_instead_of_the_call)
{
    pod_hlo_module *module = module_of(
        HEAD
        "inner { p = f32[16] parameter(0) \n q = f32[16] negate(p) \n ROOT r = f32[16] add(p, q) "
        "}\n"
        "outer { p = f32[16] parameter(0)\n"
        "  s = ((f32[16]), f32[16], u32[]) call-start(p), async_execution_thread=\"sparsecore\", "
        "to_apply=inner\n  ROOT d = f32[16] call-done(s)\n}, execution_thread=\"sparsecore\"\n"
        "ENTRY e { a = f32[16] parameter(0)\n"
        "  s = ((f32[16]), f32[16], u32[]) call-start(a), async_execution_thread=\"sparsecore\", "
        "to_apply=outer\n  d = f32[16] call-done(s)\n"
        "  ROOT x = f32[16] call(d), to_apply=inner }\n");
    pod_hlo_analysis analysis = analysis_of(module);
    /* inner twice, and both dones */
    cr_assert_eq(analysis.inside[module->entry].executed, 2 + 2 + 2);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
}

Test(hlo_collectives, order_equal_ones_by_volume_and_then_by_text)
{
    pod_text list =
        collectives_of(ENTRY "  x = f32[16,100] all-reduce(a), to_apply=add, channel_id=1\n"
                             "  y = bf16[8] all-reduce(b), to_apply=add, channel_id=1\n"
                             "  v = f32[16,100] all-to-all(x), dimensions={0}\n"
                             "  w = f32[16,100] all-reduce(v), to_apply=add, " GROUPS "\n"
                             "  ROOT z = f32[16,100] all-reduce(w), to_apply=add\n}\n");
    cr_assert_str_eq(list.data, "all-reduce:sync:6400:8x1:2;all-reduce:sync:6400:4x2:1;"
                                "all-to-all:sync:6400:8x1:1;all-reduce:sync:16:8x1:1");
    pod_text_free(&list);
}

Test(hlo_collectives, read_targets_of_transfers)
{
    static const struct {
        const char *text;
        int nslices;
        int64_t first, last;
    } targets[] = {
        {"{1,2}x{0:15}", 2, 0, 15 },
        {"{1:4}x{7}",    4, 7, 7  },
        {"{3}x{0:255}",  1, 0, 255},
    };
    pod_hlo_target target;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const pod_hlo_module module = {.file = "a.txt", .text = targets[i].text};
        const pod_hlo_span span = {.end = (uint32_t)strlen(targets[i].text)};
        cr_assert_eq(pod_hlo_target_read(&module, span, &target, NULL), POD_OK);
        cr_assert_eq(target.nslices, targets[i].nslices);
        cr_assert_eq(target.first_chip, targets[i].first);
        cr_assert_eq(target.last_chip, targets[i].last);
    }
    static const char *const wrong[] = {"", "{1,2}", "{1,2}x{0:15} y", "{2:1}x{0}", "{1:100}x{0}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const pod_hlo_module module = {.file = "a.txt", .text = wrong[i]};
        const pod_hlo_span span = {.end = (uint32_t)strlen(wrong[i])};
        cr_assert_neq(pod_hlo_target_read(&module, span, &target, NULL), POD_OK, "%s", wrong[i]);
    }
}
