/* SPDX-License-Identifier: Apache-2.0 */
#include "models/settings_yaml.h"

#include "base/text.h"

#include <string.h>

#include <yaml.h>

enum { NESTING_MAX = 8, VALUE_MAX = 1 << 16 };

static bool is_null(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
           && (strcmp(text, "null") == 0 || strcmp(text, "~") == 0);
}

/** A node as text: lists as [a,b], mappings as {a:b}. @return false: too deep or too long (aliases may
 *  repeat a list without end) */
static bool node_print(yaml_document_t *document, int index, int depth, pod_text *text)
{
    const yaml_node_t *node = yaml_document_get_node(document, index);
    bool fits = depth < NESTING_MAX && text->size < VALUE_MAX;
    if (node == NULL || !fits) {
        return false;
    }
    if (node->type == YAML_SCALAR_NODE) {
        pod_text_add(text, is_null(node) ? "" : (const char *)node->data.scalar.value);
    } else if (node->type == YAML_SEQUENCE_NODE) {
        pod_text_add(text, "[");
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top && fits; item++) {
            pod_text_add(text, item > node->data.sequence.items.start ? "," : "");
            fits = node_print(document, *item, depth + 1, text);
        }
        pod_text_add(text, "]");
    } else {
        pod_text_add(text, "{");
        for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top && fits; pair++) {
            pod_text_add(text, pair > node->data.mapping.pairs.start ? "," : "");
            fits = node_print(document, pair->key, depth + 1, text);
            pod_text_add(text, ":");
            fits = fits && node_print(document, pair->value, depth + 1, text);
        }
        pod_text_add(text, "}");
    }
    return fits;
}

static pod_status add_pair(pod_settings *settings, yaml_document_t *document,
                           const yaml_node_pair_t *pair, const char *file, pod_error *err)
{
    const yaml_node_t *key = yaml_document_get_node(document, pair->key);
    if (key == NULL || key->type != YAML_SCALAR_NODE
        || !pod_setting_is_key((const char *)key->data.scalar.value, key->data.scalar.length)) {
        return pod_fail_at(err, POD_E_USAGE, file, key != NULL ? (int)key->start_mark.line + 1 : 1,
                           key != NULL ? (int)key->start_mark.column + 1 : 1,
                           "a key is no word of letters, digits and _; write key: value");
    }
    pod_text value = {0};
    pod_setting setting = {
        .key = (char *)key->data.scalar.value,
        .file = file,
        .line = (int)key->start_mark.line + 1,
        .column = (int)key->start_mark.column + 1,
        .source = POD_SETTING_FROM_YAML,
    };
    const bool fits = node_print(document, pair->value, 0, &value);
    pod_text_add(&value, "");
    setting.value = value.data;
    pod_status st = value.out_of_memory ? pod_settings_no_memory(err) : POD_OK;
    if (st == POD_OK && !fits) {
        st = pod_setting_fail(&setting, err, "lists over %d deep or %d characters long; use less",
                              NESTING_MAX - 1, VALUE_MAX);
    }
    POD_THEN(st, pod_settings_add(settings, &setting, err));
    pod_text_free(&value);
    return st;
}

static pod_status read_document(pod_settings *settings, yaml_document_t *document, const char *file,
                                pod_error *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(document);
    const bool empty =
        root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0);
    if (empty) {
        return POD_OK;
    }
    if (root->type != YAML_MAPPING_NODE) {
        return pod_fail_at(err, POD_E_USAGE, file, (int)root->start_mark.line + 1, 1,
                           "no list of settings; write one `key: value` a line");
    }
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        POD_TRY(add_pair(settings, document, pair, file, err));
    }
    return POD_OK;
}

pod_status pod_settings_yaml(pod_settings *settings, const char *data, size_t size,
                             const char *file, pod_error *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (yaml_parser_initialize(&parser) == 0) {
        return pod_settings_no_memory(err);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)data, size);
    pod_status st = POD_OK;
    if (yaml_parser_load(&parser, &document) == 0) {
        st = parser.error == YAML_MEMORY_ERROR
                 ? pod_settings_no_memory(err)
                 : pod_fail_at(err, POD_E_USAGE, file, (int)parser.problem_mark.line + 1,
                               (int)parser.problem_mark.column + 1,
                               "no YAML: %s; write one `key: value` a line",
                               parser.problem != NULL ? parser.problem : "it can't be read");
    } else {
        st = read_document(settings, &document, file, err);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return st;
}
