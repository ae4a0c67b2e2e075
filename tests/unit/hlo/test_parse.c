/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

/* ---- what is accepted ---- */

Test(hlo_parse, reads_a_text_whatever_its_blanks_and_comments)
{
    pod_hlo_module *module = module_of(
        "/* a dump */ HloModule /*x*/ m.1-2_3 , is_scheduled = true,num_partitions= /* eight "
        "*/\t8, "
        "frontend_attributes={a=\"b,}\\\"{\",c=\"\n\"}\n"
        "FileNames\n1 \"a } { b.py\"\n2 \"c.py\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\r\n"
        "1 {file_name_id=1 line=3}\n\nStackFrames\n1 {file_location_id=1}\n\n"
        "add(a:f32[],b: (f32[], f32[2]{0}))->f32[]{:T(128)}{a=f32[] parameter(0)\nb=f32[] "
        "parameter(1)\nROOT\nc=f32[]\nadd(a,b)}, execution_thread=\"main\"\n"
        "no_signature { ENTRY = f32[] parameter(0) \n ROOT ROOT = f32[] negate(f32[] %ENTRY) }\n"
        "ENTRY %e.0 (x: f32[8]) -> f32[8] {\n"
        "  %x.1..sunk = f32[8]{0:T(128)} parameter ( 0 ), metadata={op_name=\"a\\\"b\" x=1}\n"
        "  y = s32[2,2]{1,0} constant({ { 1, 2 }, /*i*/ { 3, 4 } }), odd={1,{2,(3)}}\n"
        "  k = f32[] constant({...})\n  l = f32[0]{0} constant()\n"
        "  ROOT z = f32[8]{0:T(128)} custom-call(f32[8]{0} %x.1..sunk, (s32[], f32[2]) y, "
        "/*index=2*/k), "
        "custom_call_target=\"T\", kernel={\n\"a\":\"b\"\n}, backend_config={\"a\": [1,{}]}\n}\n");
    cr_assert_eq(module->partitions, 8);
    cr_assert_eq(module->ncomputations, 3);
    cr_assert_eq(module->ninstructions, 10);
    cr_assert(pod_hlo_is(module->text, module->name, "m.1-2_3"));
    cr_assert_eq(module->entry, 2);
    const pod_hlo_instruction *z = instruction_of(module, "z");
    cr_assert_eq(z->noperands, 3);
    cr_assert_eq(pod_hlo_operand(module, z, 2)->opcode, POD_HLO_CONSTANT);
    cr_assert_eq(module->computation[1].root, module->computation[1].first + 1);
    pod_hlo_free(module);
}

/* What stands around a text, or is written in another way, changes nothing: name of module, its first result, line. */
Test(hlo_parse, reads_the_same_through_marks_prefixes_comments_and_elements)
{
    static const char text[] =
        "HloModule m, is_scheduled=true // one\n, num_partitions=\n 4\n"
        "ENTRY e { // \"two\" } {\n"
        "  a = f32[8] parameter(0)\n"
        "  t = (f32[8], (f32[32], s32[])) custom-call(a), custom_call_target=\n\"T\"\n"
        "  b = f32[32] all-gather(%t#0), channel_id=1 /*x*/, replica_groups=\n[1,4]\n<=[4] // y\n"
        "  , dimensions=\n{0}\n"
        "  c = f32[32] add(b, f32[32]{0} %t#1#0), metadata={op_name=\"a//b\"}\n"
        "  d = f32[32] add(c, t#1#0)\n"
        "  ROOT z = (f32[32], s32[]) tuple(d, t#1#1)\n}\n";
    static const char *const prefixes[] = {"",
                                           "\xef\xbb\xbf",
                                           "I0102 12:00:#.123456   # dump.cc:99] ",
                                           "2024-01-02 03:04:05.#: I xla/service/x.cc:#] ",
                                           "[1,#]<stdout>:",
                                           "2024-01-02T03:04:05.#Z "};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        pod_text all = {0};
        int line = 90;
        for (const char *at = text; *at != '\0'; line++) {
            const size_t length = (size_t)(strchr(at, '\n') - at) + 1;
            if (i != 1 || at == text) {
                /* '#' is a number, of more digits in some lines than in others. */
                for (const char *c = prefixes[i]; *c != '\0'; c++) {
                    if (*c == '#') {
                        pod_text_printf(&all, "%d", line * 3);
                    } else {
                        pod_text_append(&all, c, 1);
                    }
                }
            }
            pod_text_append(&all, at, length);
            at += length;
        }
        pod_hlo_module *module = module_of(all.data);
        cr_assert(pod_hlo_is(module->text, module->name, "m"), "%s", prefixes[i]);
        cr_assert_eq(module->partitions, 4);
        cr_assert_eq(module->ninstructions, 10, "%u", module->ninstructions);
        const pod_hlo_instruction *d = instruction_of(module, "d");
        const pod_hlo_instruction *element = pod_hlo_operand(module, d, 1);
        cr_assert_eq(element, pod_hlo_operand(module, instruction_of(module, "c"), 1));
        cr_assert_eq(element->opcode, POD_HLO_GET_TUPLE_ELEMENT);
        cr_assert_eq(element->number, 0);
        cr_assert_eq(pod_hlo_operand(module, element, 0)->number, 1);
        pod_hlo_analysis analysis = analysis_of(module);
        cr_assert_eq(analysis.collectives.collective[0].bytes, 128);
        pod_hlo_analysis_fini(&analysis);
        pod_hlo_free(module);
        pod_text_free(&all);
    }
}

Test(hlo_parse, takes_an_unscheduled_text_when_asked)
{
    static const char text[] = "HloModule m\nENTRY e { ROOT a = f32[8] parameter(0) }\n";
    pod_hlo_module *module = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_hlo_parse("a.txt", text, sizeof text - 1, NULL, &module, &err), POD_E_INVALID);
    cr_assert_eq(pod_hlo_parse("a.txt", text, sizeof text - 1,
                               &(pod_hlo_reading){.text_order = true}, &module, &err),
                 POD_OK);
    cr_assert_not(module->scheduled);
    pod_hlo_free(module);
}

Test(hlo_parse, knows_opcodes_and_their_asynchronous_forms)
{
    static const struct {
        const char *name;
        pod_hlo_opcode opcode;
        pod_hlo_phase phase;
    } opcodes[] = {
        {"all-gather",              POD_HLO_ALL_GATHER,           POD_HLO_WHOLE },
        {"all-gather-start",        POD_HLO_ALL_GATHER,           POD_HLO_START },
        {"collective-permute-done", POD_HLO_COLLECTIVE_PERMUTE,   POD_HLO_DONE  },
        {"async-update",            POD_HLO_ASYNC,                POD_HLO_UPDATE},
        {"send",                    POD_HLO_SEND,                 POD_HLO_START },
        {"recv-done",               POD_HLO_RECV,                 POD_HLO_DONE  },
        {"dynamic-update-slice",    POD_HLO_DYNAMIC_UPDATE_SLICE, POD_HLO_WHOLE },
        {"slice-start",             POD_HLO_SLICE,                POD_HLO_START },
        {"custom-call-start",       POD_HLO_CUSTOM_CALL,          POD_HLO_START },
        {"frobnicate",              POD_HLO_OTHER,                POD_HLO_WHOLE },
        {"frobnicate-start",        POD_HLO_OTHER,                POD_HLO_WHOLE },
    };
    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        pod_hlo_opcode opcode;
        pod_hlo_phase phase;
        const pod_hlo_span span = {.end = (uint32_t)strlen(opcodes[i].name)};
        pod_hlo_opcode_find(opcodes[i].name, span, &opcode, &phase);
        cr_assert_eq(opcode, opcodes[i].opcode, "%s", opcodes[i].name);
        cr_assert_eq(phase, opcodes[i].phase, "%s", opcodes[i].name);
    }
}

Test(hlo_parse, takes_a_computation_before_it_stands)
{
    pod_hlo_module *module = module_of(
        HEAD "ENTRY e {\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] call(a), to_apply=%later\n}\n"
             "later {\n  a = f32[8] parameter(0)\n  ROOT c = f32[8] negate(a)\n}\n");
    cr_assert_eq(pod_hlo_callee(module, instruction_of(module, "b"), POD_HLO_AT_TO_APPLY), 1);
    cr_assert_eq(module->callee_first[0], 1);
    pod_hlo_free(module);
}

/* ---- what is refused ---- */

typedef struct error_case {
    const char *text;
    int line;
    int column;
    const char *says;
} error_case;

/* clang-format off */
#define E  "ENTRY e {\n  a = f32[8] parameter(0)\n"
#define OK "  ROOT z = f32[8] negate(a)\n}\n"
#define F  "f {\n  q = f32[8] parameter(0)\n  ROOT r = f32[8] negate(q)\n}\n"
#define COPY_START "  s = (f32[8], f32[8], u32[]) copy-start(a)\n"

static const error_case errors[] = {
    /* clang-format off */
    /* what the text is */
    {"module @jit_f attributes {mhlo.num_partitions = 8 : i32} {\n", 1, 1, "this is StableHLO"},
    {"#loc = loc(unknown)\n\"stablehlo.add\"(%0)", 1, 1, "pass as_text() of the compiled"},
    {"hello", 1, 1, "no HloModule"},
    {"  \n \n x: 1\n", 3, 2, "no HloModule"},
    {"HloModule m, num_partitions=8\n" E OK, 1, 11, "is_scheduled isn't true"},
    {"HloModule m, is_scheduled=false\n" E OK, 1, 11, "pass the after_optimizations text"},
    {"HloModule m, is_scheduled=true\nENTRY e {\n  a = f32[8] parameter(0), sharding={devices=[8]<=[8]}\n" OK,
     3, 28, "before partitioning"},
    {HEAD E "  b = f32[8] custom-call(a), custom_call_target=\"__cublas$gemm\"\n" OK, 4, 49, "compiled for GPU"},
    {HEAD E "  b = f32[8] custom-call(a), custom_call_target=\"__cudnn$conv\"\n" OK, 4, 49, "compiled for GPU"},
    {HEAD E "  b = f32[8] custom-call(a), custom_call_target=\"__onednn$matmul\"\n" OK, 4, 49, "GPU or CPU"},
    {"HloModule m, is_scheduled=true, num_partitions=0\n" E OK, 1, 48, "num_partitions is 0"},
    {"HloModule m, is_scheduled=true, num_partitions=two\n" E OK, 1, 48, "num_partitions is missing"},
    /* cut off: the line of the last computation */
    {"", 1, 1, "before its first computation"},
    {"HloModule m, is_scheduled=true", 1, 1, "before its first computation"},
    {HEAD "f {\n  a = f32[8] parameter(0)\n" OK, 2, 1, "in or after computation 'f'"},
    {HEAD F "\n" E, 7, 7, "in or after computation 'e'"},
    {HEAD E "  b = f32[8] neg", 2, 7, "cut off"},
    {HEAD E "  b = f32[8] negate(a), metadata={op_name=\"x", 2, 7, "cut off"},
    {HEAD E "  b = f32[8] negate(a", 2, 7, "cut off"},
    {HEAD E "  b = f32[8] negate(a), /* x", 2, 7, "cut off"},
    /* names */
    {HEAD E "  b = f32[8] negate(c)\n" OK, 4, 21, "'c' isn't defined before this"},
    {HEAD E "  b = f32[8] negate(a#0)\n" OK, 4, 23, "index 0 of a tuple of 0"},
    {HEAD E "  b = (f32[8]) tuple(a)\n  c = f32[8] negate(b#1)\n" OK, 5, 23, "index 1 of a tuple of 1"},
    {HEAD E "  b = (f32[8]) tuple(a)\n  c = f32[8] negate(b#0#0)\n" OK, 5, 25, "index 0 of a tuple of 0"},
    {HEAD E "  b = (f32[8]) tuple(a)\n  c = f32[8] negate(b#)\n" OK, 5, 23, "element of a tuple is missing"},
    {HEAD E "  b = f32[8] negate(a)\n}\n", 2, 7, "ENTRY has no ROOT"},
    {"HloModule m:\n" E OK, 1, 12, "':' after the name of the module"},
    {"HloModule m, is_scheduled=true\n" E "  b = f32[8] fusion(a), kind=kLoop, calls=%wrapped_add\n" OK, 4, 37,
     "calls=%wrapped_: this text was compiled for GPU or CPU"},
    {HEAD E "  b = f32[8] negate(z)\n" OK, 4, 21, "'z' isn't defined before this"},
    {HEAD E "  b = f32[8] negate(b)\n" OK, 4, 21, "'b' isn't defined before this"},
    {HEAD F E "  b = f32[8] negate(q)\n" OK, 8, 21, "'q' isn't defined before this"},
    {HEAD E "  a = f32[8] negate(a)\n" OK, 4, 3, "a second 'a'"},
    {HEAD E "  ROOT b = f32[8] negate(a)\n" OK, 5, 8, "a second ROOT"},
    {HEAD E OK E OK, 6, 7, "a second ENTRY"},
    {HEAD E OK "e {\n  a = f32[8] parameter(0)\n" OK, 6, 1, "a second computation 'e'"},
    {HEAD E "  b = f32[8] call(a), to_apply=%nobody\n" OK, 4, 33, "no computation 'nobody'"},
    {HEAD "f {\n}\n" E OK, 2, 1, "without instructions"},
    /* operands */
    {HEAD E "  b = f32[8] add(a)\n" OK, 4, 14, "add has 1 operands"},
    {HEAD E "  b = f32[8] negate(a, a)\n" OK, 4, 14, "negate has 2 operands"},
    {HEAD E "  b = f32[8] reduce(a, a, a), dimensions={0}\n" OK, 4, 14, "reduce has 3 operands"},
    {HEAD E "  b = f32[8] scatter(a, a, a, a)\n" OK, 4, 14, "scatter has 4 operands"},
    {HEAD E "  i = s32[] constant(0)\n  b = f32[8] dynamic-slice(a, i, i, i)\n" OK, 5, 14,
     "dynamic-slice has 4 operands"},
    {HEAD E "  b = f32[8] dynamic-update-slice(a, a)\n" OK, 4, 14, "dynamic-update-slice has 2 operands"},
    {HEAD E "  b = f32[8] iota(a)\n" OK, 4, 14, "iota has 1 operands"},
    {HEAD E "  b = f32[8] negate(a a)\n" OK, 4, 23, "')' of an instruction"},
    {HEAD E "  b = f32[8] parameter(2)\n" OK, 4, 3, "parameter(2) of 2"},
    {HEAD E "  b = f32[8] parameter(0)\n" OK, 4, 3, "parameter(0) of 2"},
    {HEAD E "  b = f32[8] parameter()\n" OK, 4, 24, "number of a parameter is missing"},
    {HEAD E "  b = f32[8] get-tuple-element(a), index=0\n" OK, 4, 42, "index 0 of a tuple of 0"},
    {HEAD E "  b = (f32[8]) tuple(a)\n  c = f32[8] get-tuple-element(b), index=1\n" OK, 5, 42,
     "index 1 of a tuple of 1"},
    {HEAD E "  b = (f32[8]) tuple(a)\n  c = f32[8] get-tuple-element(b)\n" OK, 5, 3, "without index"},
    /* shapes and attributes */
    {HEAD E "  b = f9[8] negate(a)\n" OK, 4, 7, "'f9' is no element type"},
    {HEAD E "  b = f32[8,x] negate(a)\n" OK, 4, 13, "a dim is missing"},
    {HEAD E "  b = f32[8]{1} negate(a)\n" OK, 4, 14, "names others"},
    {HEAD E "  b = negate(a)\n" OK, 4, 7, "the shape of 'b' is missing"},
    {HEAD E "  b = f32[8] negate(a), metadata\n" OK, 5, 3, "'=' of an attribute"},
    {HEAD E "  b = f32[8] negate(a), channel_id=\n" OK, 4, 36, "channel_id has no value"},
    {HEAD E "  b = f32[8] negate(a), index=1, index=2\n" OK, 4, 40, "index is given twice"},
    {HEAD E "  b = f32[8] negate(a), x={(}\n" OK, 4, 29, "'}' where ')' closes"},
    {HEAD E "  b = f32[8] custom-call(a)\n" OK, 4, 3, "without custom_call_target"},
    {HEAD E "  b = f32[8] fusion(a), kind=kLoop\n" OK, 4, 3, "the computations that it calls are missing"},
    {HEAD F E "  b = f32[8] fusion(a, a), kind=kLoop, calls=f\n" OK, 8, 3, "has 1 parameters, not 2"},
    {HEAD F E "  b = f32[8] fusion(a), calls=f, calls=f\n" OK, 8, 40, "calls is given twice"},
    {HEAD F E "  b = f32[8] fusion(a), calls={f, f}\n" OK, 8, 33, "'}' of calls"},
    {HEAD F E "  p = pred[] constant(true)\n  b = f32[8] conditional(p, a, a), "
     "true_computation=f, branch_computations={f}\n" OK,
     9, 3, "the computations that it calls are missing"},
    {HEAD F E "  p = pred[] constant(true)\n  b = f32[8] conditional(p, a), true_computation=f\n" OK,
     9, 3, "the computations that it calls are missing"},
    {HEAD F E "  p = pred[] constant(true)\n  b = f32[8] conditional(p, a), branch_computations={f, f}\n" OK,
     9, 3, "or too few or too many for its operands"},
    /* computations that call each other */
    {HEAD "f {\n  q = f32[8] parameter(0)\n  ROOT r = f32[8] call(q), to_apply=g\n}\n"
          "g {\n  q = f32[8] parameter(0)\n  ROOT r = f32[8] call(q), to_apply=f\n}\n" E OK,
     8, 37, "call each other"},
    {HEAD E "  b = f32[8] call(a), to_apply=e\n" OK, 4, 32, "call each other"},
    /* starts and dones */
    {HEAD E COPY_START OK, 4, 3, "a start with no done up to line 5"},
    {HEAD E COPY_START "  c = f32[8] copy-done(s)\n  d = f32[8] copy-done(s)\n" OK, 6, 3,
     "a second done of the start in line 4; the first is in line 5"},
    {HEAD E "  d = f32[8] copy-done(a)\n" OK, 4, 3, "a done without a start: its operand 'a' (line 3)"},
    {HEAD E COPY_START "  c = f32[8] slice-done(s)\n" OK, 5, 3, "is none of its kind"},
    {HEAD E "  d = f32[8] all-gather-done(a)\n" OK, 4, 3, "a done without a start"},
    /* figures of the compiler */
    {HEAD E "  b = f32[8] negate(a), backend_config={\"window_config\":{\"estimated_cycles\":\"many\"}}\n" OK,
     4, 77, "a bad figure in backend_config"},
    {HEAD E "  b = f32[8] negate(a), backend_config={\"window_config\":{\"estimated_cycles\":-1}}\n" OK,
     4, 77, "a bad figure in backend_config"},
    /* clang-format on */
};
/* clang-format on */

Test(hlo_parse, says_where_a_text_is_wrong)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        pod_error err = {0};
        const pod_status st = status_of(errors[i].text, strlen(errors[i].text), &err);
        cr_expect_eq(st, POD_E_INVALID, "%s: status %d", errors[i].text, (int)st);
        cr_expect(strstr(err.text, errors[i].says) != NULL, "%s: %s", errors[i].text, err.text);
        cr_expect_eq(err.line, errors[i].line, "%s: line %d: %s", errors[i].text, err.line,
                     err.text);
        cr_expect_eq(err.column, errors[i].column, "%s: column %d: %s", errors[i].text, err.column,
                     err.text);
        cr_expect_str_eq(err.file, "a.txt");
    }
}

Test(hlo_parse, refuses_what_is_no_text)
{
    static const struct {
        const char *text;
        size_t size;
        const char *says;
    } binary[] = {
        {"\xff\xfeH\x00l\x00",    6,  "in UTF-16"           },
        {"\xfe\xff\x00H\x00l",    6,  "in UTF-16"           },
        {"\x01\x12jit_f\x12\x01", 9,  "that as_text() gives"},
        {"HloModule m\x00",       12, "that as_text() gives"},
        {"HloModule \x7f",        11, "that as_text() gives"},
    };
    for (size_t i = 0; i < sizeof binary / sizeof binary[0]; i++) {
        pod_error err = {0};
        cr_assert_eq(status_of(binary[i].text, binary[i].size, &err), POD_E_INVALID);
        cr_assert(strstr(err.text, binary[i].says) != NULL, "%s", err.text);
    }
}

/* Bytes beyond are what strings may hold. */
Test(hlo_parse, looks_at_256_bytes_to_see_whether_it_is_text)
{
    for (size_t at = 254; at < 258; at++) {
        char text[300];
        pod_error err = {0};
        memset(text, ' ', sizeof text);
        text[at] = '\x01';
        cr_assert_eq(status_of(text, sizeof text, &err), POD_E_INVALID);
        cr_expect_eq(strstr(err.text, "isn't text") != NULL, at < 256, "%zu: %s", at, err.text);
    }
}

/* ---- limits ---- */

Test(hlo_parse, refuses_what_exceeds_a_limit)
{
    pod_error err = {0};
    pod_text text = {0};
    pod_text_add(&text, HEAD E "  b = f32[8] negate(a), x=");
    pod_text_fill(&text, '(', POD_HLO_BRACKETS_MAX + 1);
    cr_assert_eq(status_of(text.data, text.size, &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "brackets in brackets; at most 256") != NULL, "%s", err.text);
    pod_text_free(&text);
    pod_text_add(&text, HEAD "ENTRY ");
    pod_text_fill(&text, 'n', POD_HLO_NAME_MAX + 1);
    pod_text_add(&text, " {\n");
    cr_assert_eq(status_of(text.data, text.size, &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "bytes of a name; at most 4096") != NULL, "%s", err.text);
    pod_text_free(&text);
    pod_text_add(&text, "HloModule m, is_scheduled=true, num_partitions=1048577\n" E OK);
    cr_assert_eq(status_of(text.data, text.size, &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "num_partitions; at most 1048576") != NULL, "%s", err.text);
    pod_text_free(&text);
    pod_text_fill(&text, ' ', (size_t)POD_HLO_TEXT_MAX + 1);
    cr_assert_eq(status_of(text.data, text.size, &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "more than 64 MiB of text") != NULL, "%s", err.text);
    pod_text_free(&text);
}

Test(hlo_parse, refuses_more_instructions_than_it_takes)
{
    pod_error err = {0};
    pod_text text = {0};
    pod_text_add(&text, HEAD "ENTRY e{");
    for (int64_t i = 0; i <= POD_HLO_INSTRUCTIONS_MAX && text.size < (size_t)POD_HLO_TEXT_MAX;
         i++) {
        char line[64];
        const int length = snprintf(line, sizeof line, "a%llx=u8[]a()", (long long)i);
        pod_text_append(&text, line, (size_t)length);
    }
    pod_text_add(&text, "}");
    cr_assert_leq(text.size, (size_t)POD_HLO_TEXT_MAX);
    cr_assert_eq(status_of(text.data, text.size, &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "instructions; at most 4194304") != NULL, "%s", err.text);
    pod_text_free(&text);
}
