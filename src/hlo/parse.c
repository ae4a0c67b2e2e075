/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "hlo/parse_state.h"
#include "hlo/source.h"

#include <stdlib.h>
#include <string.h>

/* ---- what the text is ---- */

static pod_status check_language(pod_hlo_parser *parser)
{
    pod_hlo_scan *scan = &parser->scan;
    pod_hlo_span word;
    pod_hlo_scan ahead = *scan;
    if (pod_hlo_try_name(&ahead, &word) && pod_hlo_is(scan->text, word, "HloModule")) {
        scan->at = ahead.at;
        return POD_OK;
    }
    if (pod_hlo_source_holds(scan->text, scan->size, "module @", NULL)
        || pod_hlo_source_holds(scan->text, scan->size, "stablehlo.", NULL)) {
        return pod_fail_at(scan->err, POD_E_INVALID, scan->file, 1, 1,
                           "this is StableHLO, which isn't partitioned yet; compile it and pass "
                           "as_text() of the compiled program");
    }
    pod_hlo_blank(scan);
    return pod_hlo_fail(scan, scan->at,
                        "no HloModule; pass the optimized HLO text, as_text() of the compiled "
                        "program");
}

/* ---- header and tables ---- */

static pod_status header_number(pod_hlo_parser *parser, pod_hlo_span value, const char *what,
                                int64_t *number)
{
    pod_hlo_scan part =
        pod_hlo_scan_part(parser->scan.file, parser->scan.text, value, parser->scan.err);
    POD_TRY(pod_hlo_number(&part, what, POD_HLO_PARTITIONS_MAX, number));
    if (*number == 0) {
        POD_TRY(pod_hlo_fail(&part, value.begin, "%s is 0; at least 1", what));
    }
    return pod_hlo_end(&part, what);
}

static pod_status header_attribute(pod_hlo_parser *parser, pod_hlo_span key, pod_hlo_span value)
{
    const char *text = parser->scan.text;
    if (pod_hlo_is(text, key, "is_scheduled")) {
        parser->module->scheduled = pod_hlo_is(text, value, "true");
    } else if (pod_hlo_is(text, key, "num_partitions")) {
        parser->partitions_given = true;
        return header_number(parser, value, "num_partitions", &parser->module->partitions);
    } else if (pod_hlo_is(text, key, "replica_count")) {
        return header_number(parser, value, "replica_count", &parser->module->replicas);
    } else if (pod_hlo_is(text, key, "input_output_alias")) {
        parser->module->alias = value;
    }
    return POD_OK;
}

/* Attributes of the module or of a computation; only those of the module are looked at. */
static pod_status take_attributes(pod_hlo_parser *parser, bool header)
{
    pod_status st = POD_OK;
    while (st == POD_OK && pod_hlo_take(&parser->scan, ',')) {
        pod_hlo_span key;
        pod_hlo_span value;
        st = pod_hlo_name(&parser->scan, "an attribute", &key);
        POD_THEN(st, pod_hlo_expect(&parser->scan, '=', "an attribute"));
        POD_THEN(st, pod_hlo_value(&parser->scan, &value));
        if (st == POD_OK && header) {
            st = header_attribute(parser, key, value);
        }
    }
    return st;
}

static pod_status take_header(pod_hlo_parser *parser)
{
    POD_TRY(pod_hlo_name(&parser->scan, "the module", &parser->module->name));
    if (pod_hlo_peek(&parser->scan) == ':') {
        return pod_hlo_fail(
            &parser->scan, parser->scan.at,
            "':' after the name of the module: this isn't the text of a compiled "
            "program; pass what as_text() gives, ', is_scheduled=true' stands there");
    }
    POD_TRY(take_attributes(parser, true));
    if (!parser->module->scheduled && !parser->text_order) {
        POD_TRY(
            pod_hlo_fail(&parser->scan, parser->module->name.begin,
                         "is_scheduled isn't true: this text is from before optimization or "
                         "scheduling; pass the after_optimizations text (or --schedule text: its "
                         "own order)"));
    }
    if ((!pod_mul_i64(parser->module->replicas, parser->module->partitions,
                      &parser->module->devices)
         || parser->module->devices > POD_HLO_PARTITIONS_MAX)) {
        POD_TRY(pod_hlo_fail_limit(&parser->scan, parser->module->name.begin,
                                   "replica_count times num_partitions", POD_HLO_PARTITIONS_MAX));
    }
    return POD_OK;
}

/* A row of a table, of which the number is taken. */
static pod_status take_row(pod_hlo_parser *parser, int table, int64_t id)
{
    pod_hlo_module *module = parser->module;
    pod_hlo_scan *scan = &parser->scan;
    const char *end = memchr(scan->text + scan->at, '\n', scan->size - scan->at);
    const pod_hlo_span value = {.begin = scan->at,
                                .end = end == NULL ? scan->size : (uint32_t)(end - scan->text)};
    scan->at = value.end;
    if (table >= POD_HLO_TABLES) {
        return POD_OK;
    }
    POD_TRY(pod_hlo_reserve(&module->row[table], &module->rows_capacity[table],
                            (uint64_t)module->nrows[table] + 1, sizeof *module->row[table],
                            scan->err));
    module->row[table][module->nrows[table]++] = (pod_hlo_row){.id = id, .value = value};
    return POD_OK;
}

/* "FileNames" and the like on a line of its own; then lines that begin with a number. */
static pod_status take_table(pod_hlo_parser *parser, bool *is_table)
{
    static const char *const tables[] = {[POD_HLO_FILE_NAMES] = "FileNames",
                                         [POD_HLO_FILE_LOCATIONS] = "FileLocations",
                                         [POD_HLO_STACK_FRAMES] = "StackFrames",
                                         [POD_HLO_TABLES] = "FunctionNames"};
    pod_hlo_scan *scan = &parser->scan;
    pod_hlo_scan ahead = *scan;
    pod_hlo_span word;
    int table = 0;
    (void)pod_hlo_try_name(&ahead, &word);
    while (table <= POD_HLO_TABLES && !pod_hlo_is(scan->text, word, tables[table])) {
        table++;
    }
    while (ahead.at < ahead.size && strchr(" \t\r", scan->text[ahead.at]) != NULL) {
        ahead.at++;
    }
    *is_table = table <= POD_HLO_TABLES && (ahead.at == ahead.size || scan->text[ahead.at] == '\n');
    pod_status st = POD_OK;
    for (bool more = *is_table; more && st == POD_OK;) {
        int64_t id = 0;
        pod_hlo_scan number = ahead;
        number.err = NULL;
        more = pod_hlo_number(&number, "", POD_HLO_COUNT_MAX, &id) == POD_OK;
        scan->at = more ? number.at : ahead.at;
        st = more ? take_row(parser, table, id) : POD_OK;
        ahead.at = scan->at;
    }
    return st;
}

/* ---- computations ---- */

/* At a '{': does it open a layout rather than a body? */
static bool is_layout(const pod_hlo_scan *scan)
{
    pod_hlo_scan ahead = *scan;
    if (!pod_hlo_take(&ahead, '{')) {
        return false;
    }
    char c = pod_hlo_peek(&ahead);
    while ((c >= '0' && c <= '9') || c == ',') {
        ahead.at++;
        c = pod_hlo_peek(&ahead);
    }
    return c == ':' || c == '}';
}

/* "(params) -> shape"; instructions say the same again. */
static pod_status skip_signature(pod_hlo_scan *scan)
{
    pod_hlo_span skipped;
    if (pod_hlo_peek(scan) != '(') {
        return POD_OK;
    }
    pod_status st = pod_hlo_group(scan, '(', "parameters", &skipped);
    POD_THEN(st, pod_hlo_expect(scan, '-', "the '->' of a result"));
    POD_THEN(st, pod_hlo_expect(scan, '>', "the '->' of a result"));
    if (st == POD_OK && pod_hlo_peek(scan) == '(') {
        return pod_hlo_group(scan, '(', "a shape", &skipped);
    }
    POD_THEN(st, pod_hlo_name(scan, "an element type", &skipped));
    POD_THEN(st, pod_hlo_group(scan, '[', "a shape", &skipped));
    return st == POD_OK && is_layout(scan) ? pod_hlo_group(scan, '{', "a layout", &skipped) : st;
}

static pod_status new_computation(pod_hlo_parser *parser, pod_hlo_span name)
{
    pod_hlo_module *module = parser->module;
    uint32_t number = 0;
    POD_TRY(pod_hlo_parse_intern(parser, name, &number));
    if (parser->meaning[number].computation != POD_HLO_NONE) {
        return pod_hlo_fail(&parser->scan, name.begin, "a second computation '%.*s'",
                            pod_hlo_shown(name), parser->scan.text + name.begin);
    }
    if (module->ncomputations >= POD_HLO_COMPUTATIONS_MAX) {
        return pod_hlo_fail_limit(&parser->scan, name.begin, "computations",
                                  POD_HLO_COMPUTATIONS_MAX);
    }
    POD_TRY(pod_hlo_reserve(&module->computation, &module->capacity[POD_HLO_OF_COMPUTATIONS],
                            (uint64_t)module->ncomputations + 1, sizeof *module->computation,
                            parser->scan.err));
    parser->meaning[number].computation = module->ncomputations;
    module->computation[module->ncomputations++] = (pod_hlo_computation){
        .offset = name.begin, .name = number, .first = module->ninstructions, .root = POD_HLO_NONE};
    return POD_OK;
}

/* Parameters are numbered from 0 without gaps. */
static pod_status check_parameters(pod_hlo_parser *parser, pod_hlo_computation *computation)
{
    pod_hlo_module *module = parser->module;
    const pod_hlo_instruction *body = &module->instruction[computation->first];
    for (uint32_t i = 0; i < computation->count; i++) {
        computation->nparameters += body[i].opcode == POD_HLO_PARAMETER;
    }
    char *seen = calloc((size_t)computation->nparameters + 1, 1);
    if (seen == NULL) {
        return pod_fail(parser->scan.err, POD_E_NOMEM, "no memory for a computation");
    }
    pod_status st = POD_OK;
    for (uint32_t i = 0; i < computation->count && st == POD_OK; i++) {
        if (body[i].opcode != POD_HLO_PARAMETER) {
            continue;
        }
        if (body[i].number >= computation->nparameters || seen[body[i].number] != 0) {
            st = pod_hlo_fail(&parser->scan, body[i].offset,
                              "parameter(%u) of %u; numbers from 0, each once", body[i].number,
                              computation->nparameters);
        } else {
            seen[body[i].number] = 1;
        }
    }
    free(seen);
    return st;
}

static pod_status take_body(pod_hlo_parser *parser)
{
    pod_hlo_module *module = parser->module;
    pod_hlo_computation *computation = &module->computation[module->ncomputations - 1];
    pod_status st = pod_hlo_expect(&parser->scan, '{', "a computation");
    while (st == POD_OK && !pod_hlo_take(&parser->scan, '}')) {
        bool root = false;
        st = pod_hlo_parse_instruction(parser, &root);
        computation->count = module->ninstructions - computation->first;
        if (st == POD_OK && root && computation->root != POD_HLO_NONE) {
            return pod_hlo_fail(&parser->scan,
                                module->instruction[module->ninstructions - 1].offset,
                                "a second ROOT in this computation");
        }
        computation->root = root ? module->ninstructions - 1 : computation->root;
    }
    if (st == POD_OK && computation->count == 0) {
        return pod_hlo_fail(&parser->scan, computation->offset,
                            "a computation without instructions");
    }
    if (st == POD_OK && computation->root == POD_HLO_NONE
        && module->ncomputations - 1 == module->entry) {
        return pod_hlo_fail(&parser->scan, computation->offset,
                            "ENTRY has no ROOT, so what the program returns isn't known");
    }
    if (st == POD_OK && computation->root == POD_HLO_NONE) {
        computation->root = module->ninstructions - 1;
    }
    return st == POD_OK ? check_parameters(parser, computation) : st;
}

/* Is the word before a name, and no name itself? */
static bool take_keyword(pod_hlo_scan *scan, const char *keyword)
{
    pod_hlo_scan ahead = *scan;
    pod_hlo_span word;
    if (!pod_hlo_try_name(&ahead, &word) || !pod_hlo_is(scan->text, word, keyword)) {
        return false;
    }
    const char next = pod_hlo_peek(&ahead);
    pod_hlo_span name;
    if (next != '%' && !pod_hlo_try_name(&ahead, &name)) {
        return false;
    }
    scan->at = word.end;
    return true;
}

static pod_status take_computation(pod_hlo_parser *parser)
{
    pod_hlo_scan *scan = &parser->scan;
    pod_hlo_module *module = parser->module;
    pod_hlo_span name;
    const bool entry = take_keyword(scan, "ENTRY");
    (void)pod_hlo_take(scan, '%');
    POD_TRY(pod_hlo_name(scan, "a computation", &name));
    if (entry && module->entry != POD_HLO_NONE) {
        POD_TRY(pod_hlo_fail(scan, name.begin, "a second ENTRY"));
    }
    scan->computation = name.begin;
    module->entry = entry ? module->ncomputations : module->entry;
    POD_TRY(new_computation(parser, name));
    POD_TRY(skip_signature(scan));
    POD_TRY(take_body(parser));
    return take_attributes(parser, false);
}

static pod_status take_module(pod_hlo_parser *parser)
{
    pod_hlo_scan *scan = &parser->scan;
    pod_status st = check_language(parser);
    POD_THEN(st, take_header(parser));
    while (st == POD_OK && pod_hlo_peek(scan) != '\0') {
        bool is_table = false;
        st = take_table(parser, &is_table);
        st = st == POD_OK && !is_table ? take_computation(parser) : st;
    }
    if (st == POD_OK && scan->at < scan->size) {
        st = pod_hlo_fail(scan, scan->at, "a zero byte in the text");
    }
    if (st == POD_OK && parser->module->entry == POD_HLO_NONE) {
        st = pod_hlo_fail(scan, scan->at, "no ENTRY"); /* at the end: the text is cut off */
    }
    return st == POD_OK ? pod_hlo_resolve_calls(parser) : st;
}

static pod_status parse(pod_hlo_parser *parser)
{
    pod_hlo_module *module = parser->module;
    const pod_hlo_scan *scan = &parser->scan;
    size_t at = 0;
    module->tiled = pod_hlo_source_holds(scan->text, scan->size, "T(", NULL);
    const char *mark = module->tiled ? NULL : pod_hlo_source_elsewhere(scan->text, scan->size, &at);
    return mark != NULL ? pod_hlo_parse_fail_machine(scan, (uint32_t)at, mark, (int)strlen(mark))
                        : take_module(parser);
}

pod_status pod_hlo_parse(const char *file, const char *text, size_t size,
                         const pod_hlo_reading *reading, pod_hlo_module **module, pod_error *err)
{
    char *cleaned = NULL;
    *module = NULL;
    POD_TRY(pod_hlo_source_clean(file, text, &size, reading != NULL ? reading->module : NULL,
                                 &cleaned, err));
    pod_hlo_module *made = calloc(1, sizeof *made);
    if (made == NULL) {
        free(cleaned);
        return pod_fail(err, POD_E_NOMEM, "no memory for the program");
    }
    *made = (pod_hlo_module){.file = file,
                             .text = cleaned != NULL ? cleaned : text,
                             .own_text = cleaned,
                             .size = (uint32_t)size,
                             .partitions = 1,
                             .replicas = 1,
                             .entry = POD_HLO_NONE};
    pod_hlo_parser parser = {
        .module = made,
        .text_order = reading != NULL && reading->text_order,
        .scan = {.file = file,
                 .text = made->text,
                 .size = (uint32_t)size,
                 .computation = POD_HLO_NONE,
                 .err = err},
    };
    pod_status st = parse(&parser);
    free(parser.meaning);
    free(parser.taken);
    if (st != POD_OK) {
        pod_hlo_free(made);
        return st;
    }
    *module = made;
    return POD_OK;
}
