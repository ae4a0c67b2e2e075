/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/parse_state.h"
#include "hlo/source.h"

#include <string.h>

/* Names of keys, by length to find them fast. */
typedef struct key_row {
    const char *name;
    uint8_t length;
} key_row;

#define KEY_ROW(id, name) [id] = {name, sizeof(name) - 1},
static const key_row keys[] = {POD_HLO_ATTRIBUTE_LIST(KEY_ROW)};
#undef KEY_ROW
_Static_assert(sizeof keys / sizeof keys[0] == POD_HLO_ATTRIBUTES, "one row per attribute");

const char *pod_hlo_attribute_name(pod_hlo_attribute_key key)
{
    return keys[key].name;
}

static bool find_key(const char *text, pod_hlo_span name, pod_hlo_attribute_key *key)
{
    const uint32_t length = name.end - name.begin;
    for (int i = POD_HLO_AT_CALLS; i < POD_HLO_ATTRIBUTES; i++) {
        if (keys[i].length == length && memcmp(keys[i].name, text + name.begin, length) == 0) {
            *key = (pod_hlo_attribute_key)i;
            return true;
        }
    }
    return false;
}

static bool names_computations(pod_hlo_attribute_key key)
{
    return key >= POD_HLO_AT_CALLS && key <= POD_HLO_AT_CALLED;
}

/* ---- pieces of an instruction ---- */

static pod_status add_attribute(pod_hlo_parser *parser, pod_hlo_instruction *instruction,
                                pod_hlo_attribute_key key, pod_hlo_span value)
{
    pod_hlo_module *module = parser->module;
    for (uint32_t i = 0; i < instruction->nattributes; i++) {
        if (module->attribute[instruction->attributes + i].key == key) {
            return pod_hlo_fail(&parser->scan, value.begin, "attribute %s is given twice",
                                keys[key].name);
        }
    }
    POD_TRY(pod_hlo_reserve(&module->attribute, &module->capacity[POD_HLO_OF_ATTRIBUTES],
                            (uint64_t)module->nattributes + 1, sizeof *module->attribute,
                            parser->scan.err));
    module->attribute[module->nattributes++] =
        (pod_hlo_attribute){.key = (uint8_t)key, .value = value};
    instruction->nattributes++;
    return POD_OK;
}

/* The computation's name is kept until all of them are known. */
static pod_status add_call(pod_hlo_parser *parser, pod_hlo_instruction *instruction,
                           pod_hlo_attribute_key role, pod_hlo_scan *part)
{
    pod_hlo_module *module = parser->module;
    pod_hlo_span name;
    uint32_t number = 0;
    (void)pod_hlo_take(part, '%');
    POD_TRY(pod_hlo_name(part, "a computation", &name));
    POD_TRY(pod_hlo_parse_intern(parser, name, &number));
    POD_TRY(pod_hlo_reserve(&module->call, &module->capacity[POD_HLO_OF_CALLS],
                            (uint64_t)module->ncalls + 1, sizeof *module->call, part->err));
    module->call[module->ncalls++] =
        (pod_hlo_call){.computation = number, .offset = name.begin, .role = (uint8_t)role};
    instruction->ncalls++;
    return POD_OK;
}

/* Branches and called computations are lists; the other roles have one computation each. */
static pod_status take_calls(pod_hlo_parser *parser, pod_hlo_instruction *instruction,
                             pod_hlo_attribute_key role, pod_hlo_span value)
{
    pod_hlo_scan part =
        pod_hlo_scan_part(parser->scan.file, parser->scan.text, value, parser->scan.err);
    for (uint32_t i = 0; i < instruction->ncalls; i++) {
        if (parser->module->call[instruction->calls + i].role == role) {
            return pod_hlo_fail(&part, value.begin, "attribute %s is given twice", keys[role].name);
        }
    }
    const bool many = role == POD_HLO_AT_BRANCHES || role == POD_HLO_AT_CALLED;
    const bool list = pod_hlo_take(&part, '{');
    if (list && many && pod_hlo_take(&part, '}')) {
        return pod_hlo_end(&part, keys[role].name);
    }
    pod_status st = add_call(parser, instruction, role, &part);
    while (st == POD_OK && list && many && pod_hlo_take(&part, ',')) {
        st = add_call(parser, instruction, role, &part);
    }
    if (st == POD_OK && list) {
        st = pod_hlo_expect(&part, '}', keys[role].name);
    }
    return st == POD_OK ? pod_hlo_end(&part, keys[role].name) : st;
}

pod_status pod_hlo_parse_value(pod_hlo_scan *scan, pod_hlo_attribute_key key, pod_hlo_span *value)
{
    pod_status st = pod_hlo_value(scan, value);
    if (st != POD_OK || key != POD_HLO_AT_GROUPS || !pod_hlo_begins(scan->text, *value, "mesh")) {
        return st;
    }
    /* mesh[…], device_ids=(…) {…} */
    pod_hlo_scan ahead = *scan;
    pod_hlo_span word;
    if (pod_hlo_take(&ahead, ',') && pod_hlo_try_name(&ahead, &word)
        && pod_hlo_is(scan->text, word, "device_ids") && pod_hlo_take(&ahead, '=')) {
        scan->at = ahead.at;
        pod_hlo_span rest;
        st = pod_hlo_value(scan, &rest);
        value->end = rest.end;
    }
    return st;
}

static pod_status take_attribute(pod_hlo_parser *parser, pod_hlo_instruction *instruction)
{
    pod_hlo_scan *scan = &parser->scan;
    pod_hlo_span name;
    pod_hlo_span value;
    pod_hlo_attribute_key key = POD_HLO_AT_LITERAL;
    pod_status st = pod_hlo_name(scan, "an attribute", &name);
    POD_THEN(st, pod_hlo_expect(scan, '=', "an attribute"));
    if (st != POD_OK) {
        return st;
    }
    const bool used = find_key(scan->text, name, &key);
    st = pod_hlo_parse_value(scan, key, &value);
    if (st == POD_OK && !used) {
        const bool unpartitioned = instruction->opcode == POD_HLO_PARAMETER
                                   && !parser->partitions_given
                                   && pod_hlo_is(scan->text, name, "sharding");
        return unpartitioned ? pod_hlo_fail(
                   scan, name.begin,
                   "a parameter has sharding and num_partitions is absent: this text "
                   "is from before partitioning; pass the after_optimizations text")
                             : POD_OK;
    }
    if (st == POD_OK && value.end == value.begin) {
        st = pod_hlo_fail(scan, value.begin, "attribute %s has no value", keys[key].name);
    }
    POD_THEN(st, names_computations(key) ? take_calls(parser, instruction, key, value)
                                         : add_attribute(parser, instruction, key, value));
    return st;
}

static pod_status define(pod_hlo_parser *parser, const pod_hlo_instruction *instruction);

static pod_status fail_index(const pod_hlo_parser *parser, uint32_t at, int64_t index,
                             const pod_hlo_shape *tuple)
{
    return pod_hlo_fail(&parser->scan, at, "index %d of a tuple of %u", (int)index,
                        tuple->dtype == POD_HLO_TYPE_TUPLE ? tuple->count : 0);
}

/* The operands that were taken become those of an instruction. */
static pod_status keep_operands(pod_hlo_parser *parser, pod_hlo_instruction *instruction)
{
    pod_hlo_module *module = parser->module;
    const pod_status st = pod_hlo_reserve(&module->operand, &module->capacity[POD_HLO_OF_OPERANDS],
                                          (uint64_t)module->noperands + parser->ntaken,
                                          sizeof *module->operand, parser->scan.err);
    instruction->operands = module->noperands;
    for (uint32_t i = 0; st == POD_OK && i < parser->ntaken; i++) {
        module->operand[module->noperands++] = parser->taken[i];
        instruction->noperands++;
    }
    parser->ntaken = 0;
    return st;
}

/* "#1" after an operand: a get-tuple-element of that name stands before the instruction, once in its computation.
 * @param name  of the operand so far, then of its element */
static pod_status take_element(pod_hlo_parser *parser, pod_hlo_span *name, uint32_t *operand)
{
    pod_hlo_module *module = parser->module;
    pod_hlo_scan *scan = &parser->scan;
    pod_hlo_instruction element = {.opcode = POD_HLO_GET_TUPLE_ELEMENT,
                                   .computation = module->ncomputations - 1,
                                   .offset = name->begin,
                                   .attributes = module->nattributes,
                                   .calls = module->ncalls,
                                   .noperands = 1};
    const pod_hlo_shape *tuple = pod_hlo_shape_of(module, &module->instruction[*operand]);
    int64_t index = 0;
    (void)pod_hlo_take(scan, '#');
    const uint32_t at = scan->at;
    pod_status st = pod_hlo_number(scan, "the element of a tuple", INT32_MAX, &index);
    if (st == POD_OK && (tuple->dtype != POD_HLO_TYPE_TUPLE || index >= tuple->count)) {
        st = fail_index(parser, at, index, tuple);
    }
    if (st != POD_OK) {
        return st;
    }
    name->end = scan->at;
    element.number = (uint32_t)index;
    element.shape = pod_hlo_member(module, tuple, (uint32_t)index);
    st = pod_hlo_parse_intern(parser, *name, &element.name);
    if (st != POD_OK) {
        return st;
    }
    element.opcode_name = element.name;
    const uint32_t known = parser->meaning[element.name].instruction;
    const uint32_t first = module->computation[module->ncomputations - 1].first;
    if (known != POD_HLO_NONE && known >= first) {
        *operand = known;
        return POD_OK;
    }
    st = pod_hlo_reserve(&module->operand, &module->capacity[POD_HLO_OF_OPERANDS],
                         (uint64_t)module->noperands + 1, sizeof *module->operand, scan->err);
    if (st == POD_OK) {
        element.operands = module->noperands;
        module->operand[module->noperands++] = *operand;
        *operand = module->ninstructions;
        st = define(parser, &element);
    }
    return st;
}

/* [shape] ['%']name['#'element]; without % a name before a '[' is the shape's type. */
static pod_status take_operand(pod_hlo_parser *parser)
{
    pod_hlo_module *module = parser->module;
    pod_hlo_scan *scan = &parser->scan;
    pod_status st = POD_OK;
    pod_hlo_span name;
    if (pod_hlo_peek(scan) != '%') {
        pod_hlo_scan ahead = *scan;
        (void)pod_hlo_try_name(&ahead, &name);
        if (pod_hlo_peek(&ahead) == '[' || pod_hlo_peek(scan) == '(') {
            uint32_t shape = 0;
            st = pod_hlo_shape_take(&module->shapes, scan, &shape);
        }
    }
    if (st == POD_OK) {
        (void)pod_hlo_take(scan, '%');
        st = pod_hlo_name(scan, "an operand", &name);
    }
    uint32_t number = 0;
    POD_THEN(st, pod_hlo_parse_intern(parser, name, &number));
    if (st != POD_OK) {
        return st;
    }
    uint32_t operand = parser->meaning[number].instruction;
    const uint32_t first = module->computation[module->ncomputations - 1].first;
    if (operand == POD_HLO_NONE || operand < first) {
        return pod_hlo_fail(scan, name.begin,
                            "'%.*s' isn't defined before this; operands stand before their use",
                            pod_hlo_shown(name), scan->text + name.begin);
    }
    while (st == POD_OK && pod_hlo_peek(scan) == '#') {
        st = take_element(parser, &name, &operand);
    }
    POD_THEN(st, pod_hlo_reserve(&parser->taken, &parser->taken_capacity,
                                 (uint64_t)parser->ntaken + 1, sizeof *parser->taken, scan->err));
    if (st == POD_OK) {
        parser->taken[parser->ntaken++] = operand;
    }
    return st;
}

static pod_status take_operands(pod_hlo_parser *parser, pod_hlo_instruction *instruction)
{
    pod_hlo_scan *scan = &parser->scan;
    if (instruction->opcode == POD_HLO_CONSTANT) {
        pod_hlo_span literal;
        const pod_status st = pod_hlo_group(scan, '(', "a constant", &literal);
        return st == POD_OK ? add_attribute(parser, instruction, POD_HLO_AT_LITERAL, literal) : st;
    }
    pod_status st = pod_hlo_expect(scan, '(', "an instruction");
    if (st == POD_OK && instruction->opcode == POD_HLO_PARAMETER) {
        int64_t number = 0;
        st = pod_hlo_number(scan, "the number of a parameter", INT32_MAX, &number);
        instruction->number = (uint32_t)number;
    } else if (st == POD_OK && pod_hlo_peek(scan) != ')') {
        do {
            st = take_operand(parser);
        } while (st == POD_OK && pod_hlo_take(scan, ','));
    }
    POD_THEN(st, keep_operands(parser, instruction));
    return st == POD_OK ? pod_hlo_expect(scan, ')', "an instruction") : st;
}

/* ---- checks ---- */

static bool count_fits(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    int fewest = 0;
    int most = 0;
    const uint32_t n = instruction->noperands;
    pod_hlo_opcode_operands((pod_hlo_opcode)instruction->opcode, (pod_hlo_phase)instruction->phase,
                            &fewest, &most);
    if (n < (uint32_t)fewest || (most >= 0 && n > (uint32_t)most)) {
        return false;
    }
    if (instruction->phase == POD_HLO_UPDATE || instruction->phase == POD_HLO_DONE) {
        return true;
    }
    if (instruction->opcode == POD_HLO_REDUCE || instruction->opcode == POD_HLO_REDUCE_WINDOW) {
        return n % 2 == 0; /* values, then as many initial values */
    }
    if (instruction->opcode == POD_HLO_SCATTER) {
        return n % 2 == 1; /* tables, indices, updates */
    }
    /* An index a dim, or all in one array. */
    const uint32_t before = instruction->opcode == POD_HLO_DYNAMIC_SLICE          ? 1
                            : instruction->opcode == POD_HLO_DYNAMIC_UPDATE_SLICE ? 2
                                                                                  : 0;
    return before == 0 || n == before + 1
           || n
                  == before
                         + pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0))->count;
}

static pod_status check_element(pod_hlo_parser *parser, pod_hlo_instruction *instruction)
{
    const pod_hlo_module *module = parser->module;
    const pod_hlo_shape *tuple = pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0));
    pod_hlo_span value;
    if (!pod_hlo_attribute_of(module, instruction, POD_HLO_AT_INDEX, &value)) {
        return pod_hlo_fail(&parser->scan, instruction->offset,
                            "a get-tuple-element without index");
    }
    pod_hlo_scan part = pod_hlo_part(module, value, parser->scan.err);
    int64_t index = 0;
    pod_status st = pod_hlo_number(&part, "index", INT32_MAX, &index);
    POD_THEN(st, pod_hlo_end(&part, "index"));
    if (st == POD_OK && (tuple->dtype != POD_HLO_TYPE_TUPLE || index >= tuple->count)) {
        st = fail_index(parser, value.begin, index, tuple);
    }
    instruction->number = (uint32_t)index;
    return st;
}

static pod_status check_target(pod_hlo_parser *parser, const pod_hlo_instruction *instruction)
{
    pod_hlo_span target;
    if (instruction->phase == POD_HLO_UPDATE || instruction->phase == POD_HLO_DONE) {
        return POD_OK;
    }
    if (!pod_hlo_attribute_of(parser->module, instruction, POD_HLO_AT_TARGET, &target)) {
        return pod_hlo_fail(&parser->scan, instruction->offset,
                            "a custom-call without custom_call_target");
    }
    const uint32_t begin = target.begin + (parser->scan.text[target.begin] == '"');
    if (pod_hlo_source_target(parser->scan.text + begin, target.end - begin)) {
        return pod_hlo_parse_fail_machine(&parser->scan, target.begin,
                                          parser->scan.text + target.begin, pod_hlo_shown(target));
    }
    return POD_OK;
}

static pod_status check(pod_hlo_parser *parser, pod_hlo_instruction *instruction, uint32_t at)
{
    if (!count_fits(parser->module, instruction)) {
        const pod_hlo_span name = pod_hlo_name_of(parser->module, instruction->opcode_name);
        return pod_hlo_fail(&parser->scan, at, "%.*s has %u operands, which is not its number",
                            pod_hlo_shown(name), parser->scan.text + name.begin,
                            instruction->noperands);
    }
    if (instruction->opcode == POD_HLO_GET_TUPLE_ELEMENT) {
        return check_element(parser, instruction);
    }
    return instruction->opcode == POD_HLO_CUSTOM_CALL ? check_target(parser, instruction) : POD_OK;
}

/* ---- an instruction ---- */

static pod_status add_unknown(pod_hlo_parser *parser, uint32_t name)
{
    pod_hlo_module *module = parser->module;
    POD_TRY(pod_hlo_reserve(&module->unknown, &module->unknown_capacity,
                            (uint64_t)module->nunknown + 1, sizeof *module->unknown,
                            parser->scan.err));
    module->unknown[module->nunknown++] = name;
    return POD_OK;
}

static pod_status take_opcode(pod_hlo_parser *parser, pod_hlo_instruction *instruction,
                              pod_hlo_span *word)
{
    pod_status st = pod_hlo_name(&parser->scan, "an opcode", word);
    POD_THEN(st, pod_hlo_parse_intern(parser, *word, &instruction->opcode_name));
    if (st != POD_OK) {
        return st;
    }
    pod_hlo_meaning *meaning = &parser->meaning[instruction->opcode_name];
    if (!meaning->opcode_known) {
        pod_hlo_opcode opcode = POD_HLO_OTHER;
        pod_hlo_phase phase = POD_HLO_WHOLE;
        pod_hlo_opcode_find(parser->scan.text, *word, &opcode, &phase);
        meaning->opcode = (uint8_t)opcode;
        meaning->phase = (uint8_t)phase;
        meaning->opcode_known = true;
        st = opcode == POD_HLO_OTHER ? add_unknown(parser, instruction->opcode_name) : POD_OK;
    }
    instruction->opcode = meaning->opcode;
    instruction->phase = meaning->phase;
    return st;
}

/* ['ROOT'] ['%']name '=' */
static pod_status take_name(pod_hlo_parser *parser, bool *root, pod_hlo_span *name)
{
    pod_hlo_scan *scan = &parser->scan;
    *root = false;
    bool marked = pod_hlo_take(scan, '%');
    POD_TRY(pod_hlo_name(scan, "an instruction", name));
    if (!marked && pod_hlo_is(scan->text, *name, "ROOT") && pod_hlo_peek(scan) != '=') {
        *root = true;
        (void)pod_hlo_take(scan, '%');
        POD_TRY(pod_hlo_name(scan, "an instruction", name));
    }
    return pod_hlo_expect(scan, '=', "an instruction");
}

/* The name stands for the instruction from here on. */
static pod_status define(pod_hlo_parser *parser, const pod_hlo_instruction *instruction)
{
    pod_hlo_module *module = parser->module;
    pod_hlo_meaning *meaning = &parser->meaning[instruction->name];
    const uint32_t first = module->computation[module->ncomputations - 1].first;
    if (meaning->instruction != POD_HLO_NONE && meaning->instruction >= first) {
        const pod_hlo_span name = pod_hlo_name_of(module, instruction->name);
        return pod_hlo_fail(&parser->scan, instruction->offset,
                            "a second '%.*s' in this computation", pod_hlo_shown(name),
                            parser->scan.text + name.begin);
    }
    if (module->ninstructions >= POD_HLO_INSTRUCTIONS_MAX) {
        return pod_hlo_fail_limit(&parser->scan, instruction->offset, "instructions",
                                  POD_HLO_INSTRUCTIONS_MAX);
    }
    POD_TRY(pod_hlo_reserve(&module->instruction, &module->capacity[POD_HLO_OF_INSTRUCTIONS],
                            (uint64_t)module->ninstructions + 1, sizeof *module->instruction,
                            parser->scan.err));
    meaning->instruction = module->ninstructions;
    module->instruction[module->ninstructions++] = *instruction;
    return POD_OK;
}

/* "name = opcode(…)": the shape is missing. */
static pod_status check_shape(pod_hlo_scan *scan, pod_hlo_span name)
{
    pod_hlo_span word;
    pod_hlo_scan ahead = *scan;
    if (!pod_hlo_try_name(&ahead, &word) || pod_hlo_peek(&ahead) != '(') {
        return POD_OK;
    }
    return pod_hlo_fail(scan, word.begin,
                        "the shape of '%.*s' is missing: bf16[8,128]{1,0} or the like belongs "
                        "before '%.*s'",
                        pod_hlo_shown(name), scan->text + name.begin, pod_hlo_shown(word),
                        scan->text + word.begin);
}

pod_status pod_hlo_parse_instruction(pod_hlo_parser *parser, bool *root)
{
    pod_hlo_module *module = parser->module;
    pod_hlo_instruction made = {.computation = module->ncomputations - 1,
                                .attributes = module->nattributes,
                                .calls = module->ncalls};
    pod_hlo_span name;
    pod_hlo_span opcode = {0};
    pod_status st = take_name(parser, root, &name);
    if (st == POD_OK) {
        made.offset = name.begin;
        st = pod_hlo_parse_intern(parser, name, &made.name);
    }
    POD_THEN(st, check_shape(&parser->scan, name));
    POD_THEN(st, pod_hlo_shape_take(&module->shapes, &parser->scan, &made.shape));
    POD_THEN(st, take_opcode(parser, &made, &opcode));
    POD_THEN(st, take_operands(parser, &made));
    while (st == POD_OK && pod_hlo_take(&parser->scan, ',')) {
        st = take_attribute(parser, &made);
    }
    POD_THEN(st, check(parser, &made, opcode.begin));
    return st == POD_OK ? define(parser, &made) : st;
}
