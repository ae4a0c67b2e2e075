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
    const pod_status st = pod_hlo_number(&part, name, POD_HLO_COUNT_MAX, value);
    return st == POD_OK ? pod_hlo_end(&part, name) : st;
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

bool pod_hlo_field(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                   pod_hlo_attribute_key key, const char *name, pod_hlo_span *value)
{
    pod_hlo_span fields;
    if (!pod_hlo_attribute_of(module, instruction, key, &fields)) {
        return false;
    }
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
