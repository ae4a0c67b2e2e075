/* SPDX-License-Identifier: Apache-2.0 */
#include "models/settings.h"

#include "base/grow.h"
#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { CAPACITY_FIRST = 32, NESTING_MAX = 8, VALUE_MAX = 1 << 16 };

/* ---- the list ---- */

/** Messages have one line, whatever a value holds. */
static void one_line(char *text)
{
    for (; *text != '\0'; text++) {
        *text = iscntrl((unsigned char)*text) ? ' ' : *text;
    }
}

pod_status pod_setting_fail(const pod_setting *setting, pod_error *err, const char *format, ...)
{
    char text[POD_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    one_line(text);
    return setting->file != NULL ? pod_fail_at(err, POD_E_USAGE, setting->file, setting->line, 1,
                                               "%s: %s", setting->key, text)
                                 : pod_fail(err, POD_E_USAGE, "%s: %s", setting->key, text);
}

pod_setting *pod_settings_find(const pod_settings *settings, const char *key)
{
    for (int i = 0; i < settings->count; i++) {
        if (strcmp(settings->setting[i].key, key) == 0) {
            return &settings->setting[i];
        }
    }
    return NULL;
}

static pod_status no_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for the settings");
}

static pod_status grow(pod_settings *settings, pod_error *err)
{
    return POD_GROW(settings->setting, settings->room, settings->count + 1) ? POD_OK
                                                                            : no_memory(err);
}

pod_status pod_settings_add(pod_settings *settings, const pod_setting *setting, pod_error *err)
{
    const pod_setting *known = pod_settings_find(settings, setting->key);
    if (known != NULL) {
        return strcmp(known->value, setting->value) == 0
                   ? POD_OK
                   : pod_setting_fail(setting, err, "given twice, as '%s' and '%s'; give it once",
                                      known->value, setting->value);
    }
    const pod_status st = grow(settings, err);
    if (st != POD_OK) {
        return st;
    }
    pod_setting added = *setting;
    added.key = strdup(setting->key);
    added.value = strdup(setting->value);
    if (added.key == NULL || added.value == NULL) {
        free(added.key);
        free(added.value);
        return no_memory(err);
    }
    settings->setting[settings->count++] = added;
    return POD_OK;
}

pod_status pod_settings_override(pod_settings *settings, const pod_settings *over, pod_error *err)
{
    for (int i = 0; i < over->count; i++) {
        const pod_setting *setting = &over->setting[i];
        pod_setting *known = pod_settings_find(settings, setting->key);
        char *value = known != NULL ? strdup(setting->value) : NULL;
        if (known != NULL && value == NULL) {
            return no_memory(err);
        }
        if (known != NULL) {
            free(known->value);
            known->value = value;
            known->file = setting->file;
            known->line = setting->line;
            continue;
        }
        const pod_status st = pod_settings_add(settings, setting, err);
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

void pod_settings_fini(pod_settings *settings)
{
    for (int i = 0; i < settings->count; i++) {
        free(settings->setting[i].key);
        free(settings->setting[i].value);
    }
    free(settings->setting);
    *settings = (pod_settings){0};
}

/* ---- words ---- */

/** Where reading stands. */
typedef struct word_reader {
    const char *at;
    const char *file;
    int line;
    pod_text word; /**< the last one read, without its quotes */
    int word_line;
} word_reader;

static pod_status reader_fail(const word_reader *reader, int line, pod_error *err, const char *what)
{
    return reader->file != NULL ? pod_fail_at(err, POD_E_USAGE, reader->file, line, 1, "%s", what)
                                : pod_fail(err, POD_E_USAGE, "%s", what);
}

/** Pass over blanks, ends of lines and comments. */
static void skip_blanks(word_reader *reader)
{
    for (;;) {
        const char *at = reader->at;
        if (*at == '#') {
            reader->at += strcspn(at, "\n");
        } else if (*at == '\\' && (at[1] == '\n' || at[1] == '\r' || at[1] == '\0')) {
            reader->at++;
        } else if (*at != '\0' && isspace((unsigned char)*at)) {
            reader->line += *at == '\n';
            reader->at++;
        } else {
            return;
        }
    }
}

/** Append what is between two quotes. The opening one is next. */
static pod_status read_quoted(word_reader *reader, pod_error *err)
{
    const char quote = *reader->at++;
    const int line = reader->line;
    while (*reader->at != quote) {
        if (*reader->at == '\0') {
            return reader_fail(reader, line, err, "a quote of the settings is left open; close it");
        }
        const bool escaped = quote == '"' && *reader->at == '\\' && reader->at[1] != '\0';
        reader->at += escaped ? 1 : 0;
        reader->line += *reader->at == '\n';
        pod_text_append(&reader->word, reader->at++, 1);
    }
    reader->at++;
    return POD_OK;
}

/** The next word into reader->word. @param[out] found  false at the end */
static pod_status next_word(word_reader *reader, bool *found, pod_error *err)
{
    pod_text_free(&reader->word);
    skip_blanks(reader);
    reader->word_line = reader->line;
    *found = *reader->at != '\0';
    int depth = 0;
    while (*reader->at != '\0' && (depth > 0 || !isspace((unsigned char)*reader->at))) {
        const char c = *reader->at;
        if (c == '"' || c == '\'') {
            const pod_status st = read_quoted(reader, err);
            if (st != POD_OK) {
                return st;
            }
            continue;
        }
        depth += c == '[' || c == '{' ? 1 : 0;
        depth -= (c == ']' || c == '}') && depth > 0 ? 1 : 0;
        reader->line += c == '\n';
        reader->at++;
        if (!isspace((unsigned char)c)) {
            pod_text_append(&reader->word, &c, 1);
        }
    }
    pod_text_add(&reader->word, "");
    if (reader->word.out_of_memory) {
        return no_memory(err);
    }
    return depth == 0 ? POD_OK
                      : reader_fail(reader, reader->word_line, err,
                                    "a bracket of the settings is left open; close it");
}

static bool is_key(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c != '_' && !isalpha(c) && (i == 0 || !isdigit(c))) {
            return false;
        }
    }
    return length > 0;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text);
    const size_t tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/** Take the word `key=value`. */
static pod_status add_word(pod_settings *settings, const word_reader *reader, pod_error *err)
{
    char *word = reader->word.data;
    char *value = word + strcspn(word, "=");
    *value++ = '\0';
    return pod_settings_add(settings,
                            &(pod_setting){.key = word,
                                           .value = value,
                                           .file = reader->file,
                                           .line = reader->file != NULL ? reader->word_line : 0},
                            err);
}

/** A word that is no setting and no part of a command. */
static pod_status stray_word(const word_reader *reader, const char *word, int line, pod_error *err)
{
    char what[POD_ERROR_TEXT_MAX];
    (void)snprintf(what, sizeof what,
                   "'%.200s' is no setting; write key=value, as per_device_batch_size=2", word);
    one_line(what);
    return reader_fail(reader, line, err, what);
}

static pod_status read_words(pod_settings *settings, word_reader *reader, pod_error *err)
{
    pod_text command = {0}; /* the first word of what may be a command */
    int command_line = 0;
    bool found = false;
    pod_status st = next_word(reader, &found, err);
    while (st == POD_OK && found) {
        const char *word = reader->word.data;
        const size_t key = strcspn(word, "=");
        if (word[key] == '=' && is_key(word, key) && command.size == 0) {
            st = add_word(settings, reader, err);
        } else if (ends_in(word, "base.yml")) {
            pod_text_free(&command);
        } else if (command.size == 0 && strcmp(word, "export") != 0) {
            pod_text_add(&command, word[0] != '\0' ? word : "''");
            command_line = reader->word_line;
        }
        if (st == POD_OK) {
            st = next_word(reader, &found, err);
        }
    }
    if (st == POD_OK && command.size > 0) {
        st = stray_word(reader, command.data, command_line, err);
    }
    pod_text_free(&command);
    return st;
}

pod_status pod_settings_words(pod_settings *settings, const char *text, const char *file,
                              pod_error *err)
{
    word_reader reader = {.at = text, .file = file, .line = 1};
    const pod_status st = read_words(settings, &reader, err);
    pod_text_free(&reader.word);
    return st;
}

/* ---- YAML ---- */

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
        || !is_key((const char *)key->data.scalar.value, key->data.scalar.length)) {
        return pod_fail_at(err, POD_E_USAGE, file, key != NULL ? (int)key->start_mark.line + 1 : 1,
                           1, "a key is no word of letters, digits and _; write key: value");
    }
    pod_text value = {0};
    pod_setting setting = {
        .key = (char *)key->data.scalar.value,
        .file = file,
        .line = (int)key->start_mark.line + 1,
    };
    const bool fits = node_print(document, pair->value, 0, &value);
    pod_text_add(&value, "");
    setting.value = value.data;
    pod_status st = value.out_of_memory ? no_memory(err) : POD_OK;
    if (st == POD_OK && !fits) {
        st = pod_setting_fail(&setting, err, "lists over %d deep or %d characters long; use less",
                              NESTING_MAX - 1, VALUE_MAX);
    }
    if (st == POD_OK) {
        st = pod_settings_add(settings, &setting, err);
    }
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
    pod_status st = POD_OK;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top && st == POD_OK; pair++) {
        st = add_pair(settings, document, pair, file, err);
    }
    return st;
}

static pod_status read_yaml(pod_settings *settings, const char *data, size_t size, const char *file,
                            pod_error *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (yaml_parser_initialize(&parser) == 0) {
        return no_memory(err);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)data, size);
    pod_status st = POD_OK;
    if (yaml_parser_load(&parser, &document) == 0) {
        st = parser.error == YAML_MEMORY_ERROR
                 ? no_memory(err)
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

/** Whether the first line that says something reads `key:` or begins a YAML document. */
static bool looks_like_yaml(const char *data)
{
    while (*data != '\0') {
        data += strspn(data, " \t\r\n");
        if (*data != '#') {
            break;
        }
        data += strcspn(data, "\n");
    }
    const size_t key = strcspn(data, ":= \t\r\n");
    return strncmp(data, "---", 3) == 0 || (data[key] == ':' && is_key(data, key));
}

pod_status pod_settings_file(pod_settings *settings, const char *data, size_t size,
                             const char *file, pod_error *err)
{
    if (strlen(data) != size) {
        return pod_fail_at(err, POD_E_USAGE, file, 1, 1,
                           "holds a zero byte; give a text of key=value or key: value");
    }
    return looks_like_yaml(data) ? read_yaml(settings, data, size, file, err)
                                 : pod_settings_words(settings, data, file, err);
}
