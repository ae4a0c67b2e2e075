/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/attributes.h"

pod_status pod_hlo_list(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                        pod_hlo_attribute_key key, int64_t *values, int max, int *count,
                        pod_error *err)
{
    pod_hlo_span value;
    *count = 0;
    if (!pod_hlo_attribute_of(module, instruction, key, &value)) {
        return POD_OK;
    }
    const char *name = pod_hlo_attribute_name(key);
    pod_hlo_scan part = pod_hlo_part(module, value, err);
    pod_status st = POD_OK;
    if (pod_hlo_peek(&part) == '{') {
        st = pod_hlo_numbers(&part, '{', name, POD_HLO_COUNT_MAX, values, max, count);
    } else {
        st = pod_hlo_number(&part, name, POD_HLO_COUNT_MAX, values);
        *count = 1;
    }
    return st == POD_OK ? pod_hlo_end(&part, name) : st;
}

pod_status pod_hlo_integer(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                           pod_hlo_attribute_key key, int64_t otherwise, int64_t *value,
                           pod_error *err)
{
    pod_hlo_span span;
    *value = otherwise;
    if (!pod_hlo_attribute_of(module, instruction, key, &span)) {
        return POD_OK;
    }
    pod_hlo_scan part = pod_hlo_part(module, span, err);
    const char *name = pod_hlo_attribute_name(key);
    POD_TRY(pod_hlo_number(&part, name, POD_HLO_COUNT_MAX, value));
    return pod_hlo_end(&part, name);
}

bool pod_hlo_constant_sum(const pod_hlo_module *module, const pod_hlo_instruction *constant,
                          int64_t *sum)
{
    pod_hlo_span literal;
    while (constant->phase == POD_HLO_WHOLE
           && (constant->opcode == POD_HLO_COPY || constant->opcode == POD_HLO_CONVERT
               || constant->opcode == POD_HLO_BITCAST)) {
        constant = pod_hlo_operand(module, constant, 0);
    }
    if (constant->opcode != POD_HLO_CONSTANT
        || !pod_hlo_attribute_of(module, constant, POD_HLO_AT_LITERAL, &literal)) {
        return false;
    }
    pod_hlo_scan scan = pod_hlo_part(module, literal, NULL);
    *sum = 0;
    while (pod_hlo_peek(&scan) != '\0') {
        int64_t number = 0;
        if (pod_hlo_take(&scan, '{') || pod_hlo_take(&scan, '}') || pod_hlo_take(&scan, ',')) {
            continue;
        }
        if (pod_hlo_number(&scan, "", POD_HLO_COUNT_MAX, &number) != POD_OK
            || *sum > POD_HLO_COUNT_MAX - number) {
            return false;
        }
        *sum += number;
    }
    return true;
}

pod_hlo_span pod_hlo_unquoted(const pod_hlo_module *module, pod_hlo_span value)
{
    if (value.end - value.begin >= 2 && module->text[value.begin] == '"'
        && module->text[value.end - 1] == '"') {
        value.begin++;
        value.end--;
    }
    return value;
}

bool pod_hlo_attribute_is(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                          pod_hlo_attribute_key key, const char *expected)
{
    pod_hlo_span value;
    return pod_hlo_attribute_of(module, instruction, key, &value)
           && pod_hlo_is(module->text, pod_hlo_unquoted(module, value), expected);
}

/* A string, a pair of brackets, or what stands up to a blank, comma or closing bracket. */
static bool take_field(pod_hlo_scan *scan, pod_hlo_span *value)
{
    const char c = pod_hlo_peek(scan);
    value->begin = scan->at;
    if (c == '{' || c == '(' || c == '[') {
        pod_hlo_span inside;
        if (pod_hlo_group(scan, c, "", &inside) != POD_OK) {
            return false;
        }
    } else if (c == '"') {
        scan->at++;
        while (scan->at < scan->size && scan->text[scan->at] != '"') {
            scan->at += scan->text[scan->at] == '\\' ? 2 : 1;
        }
        scan->at = scan->at < scan->size ? scan->at + 1 : scan->size;
    } else {
        while (scan->at < scan->size && scan->text[scan->at] > ' ' && scan->text[scan->at] != ','
               && scan->text[scan->at] != '}') {
            scan->at++;
        }
    }
    value->end = scan->at;
    return value->end > value->begin;
}

bool pod_hlo_field_in(const pod_hlo_module *module, pod_hlo_span fields, const char *name,
                      pod_hlo_span *value)
{
    pod_hlo_scan scan = pod_hlo_part(module, fields, NULL);
    bool more = pod_hlo_take(&scan, '{');
    while (more && pod_hlo_peek(&scan) != '}') {
        pod_hlo_span word;
        more =
            pod_hlo_try_name(&scan, &word) && pod_hlo_take(&scan, '=') && take_field(&scan, value);
        if (more && pod_hlo_is(module->text, word, name)) {
            *value = pod_hlo_unquoted(module, *value);
            return true;
        }
        (void)pod_hlo_take(&scan, ',');
    }
    return false;
}

bool pod_hlo_field(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                   pod_hlo_attribute_key key, const char *name, pod_hlo_span *value)
{
    pod_hlo_span fields;
    return pod_hlo_attribute_of(module, instruction, key, &fields)
           && pod_hlo_field_in(module, fields, name, value);
}

/* ---- source lines ---- */

static bool number_in(const pod_hlo_module *module, pod_hlo_span fields, const char *name,
                      int64_t *number)
{
    pod_hlo_span value;
    if (!pod_hlo_field_in(module, fields, name, &value)) {
        return false;
    }
    pod_hlo_scan scan = pod_hlo_part(module, value, NULL);
    return pod_hlo_number(&scan, "", POD_HLO_COUNT_MAX, number) == POD_OK;
}

/* A row of a table by its number; they count from 1, mostly without gaps. */
static bool row_find(const pod_hlo_module *module, pod_hlo_table table, int64_t id,
                     pod_hlo_span *value)
{
    const pod_hlo_row *rows = module->row[table];
    const uint32_t count = module->nrows[table];
    uint32_t i = id >= 1 && id <= count && rows[id - 1].id == id ? (uint32_t)id - 1 : 0;
    while (i < count && rows[i].id != id) {
        i++;
    }
    *value = i < count ? rows[i].value : (pod_hlo_span){0};
    return i < count;
}

bool pod_hlo_source_line(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                         pod_hlo_span *file, int64_t *line)
{
    pod_hlo_span fields;
    int64_t id = 0;
    *line = 0;
    if (!pod_hlo_attribute_of(module, instruction, POD_HLO_AT_METADATA, &fields)) {
        return false;
    }
    if (pod_hlo_field_in(module, fields, "source_file", file)) {
        (void)number_in(module, fields, "source_line", line);
        return true;
    }
    if (!number_in(module, fields, "stack_frame_id", &id)
        || !row_find(module, POD_HLO_STACK_FRAMES, id, &fields)
        || !number_in(module, fields, "file_location_id", &id)
        || !row_find(module, POD_HLO_FILE_LOCATIONS, id, &fields)) {
        return false;
    }
    (void)number_in(module, fields, "line", line);
    if (!number_in(module, fields, "file_name_id", &id)
        || !row_find(module, POD_HLO_FILE_NAMES, id, file)) {
        return false;
    }
    pod_hlo_scan name = pod_hlo_part(module, *file, NULL);
    pod_hlo_blank(&name);
    file->begin = name.at;
    while (file->end > file->begin && module->text[file->end - 1] <= ' ') {
        file->end--;
    }
    *file = pod_hlo_unquoted(module, *file);
    return true;
}
