/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/json.h"

#include <string.h>

/* The character at `*at` with the escapes of `level` strings resolved, and the offset after it. '\0' at
 * the end. Only the escapes that JSON text needs: \" and \\ stand for themselves, \n, \r, \t for
 * blanks, others for the letter after them. */
static char decode(const pod_hlo_json *json, uint32_t *at, int level)
{
    if (*at >= json->end) {
        return '\0';
    }
    if (level == 0) {
        return json->text[(*at)++];
    }
    const char c = decode(json, at, level - 1);
    if (c != '\\') {
        return c;
    }
    const char escaped = decode(json, at, level - 1);
    return escaped == 'n' || escaped == 'r' || escaped == 't' ? ' ' : escaped;
}

static char peek(pod_hlo_json *json, uint32_t *after)
{
    for (;;) {
        if (json->level == 0) {
            pod_hlo_scan scan = {
                .text = json->text, .at = json->at, .size = json->end, .part = true};
            pod_hlo_blank(&scan);
            json->at = scan.at;
        }
        *after = json->at;
        const char c = decode(json, after, json->level);
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            return c;
        }
        json->at = *after;
    }
}

static bool json_take(pod_hlo_json *json, char c)
{
    uint32_t after = 0;
    if (json->bad || peek(json, &after) != c || c == '\0') {
        return false;
    }
    json->at = after;
    return true;
}

pod_hlo_json pod_hlo_json_of(const char *text, pod_hlo_span value)
{
    pod_hlo_json json = {.text = text, .at = value.begin, .end = value.end};
    if (value.end - value.begin >= 2 && text[value.begin] == '"' && text[value.end - 1] == '"') {
        json.at++;
        json.end--;
        json.level = 1;
    }
    return json;
}

bool pod_hlo_json_string(pod_hlo_json *json, pod_hlo_span *inside)
{
    if (!json_take(json, '"')) {
        json->bad = true;
        return false;
    }
    inside->begin = json->at;
    while (json->at < json->end) {
        inside->end = json->at;
        const char c = decode(json, &json->at, json->level);
        if (c == '"') {
            return true;
        }
        if (c == '\\') {
            (void)decode(json, &json->at, json->level);
        }
    }
    json->bad = true;
    return false;
}

bool pod_hlo_json_next(pod_hlo_json *json, pod_hlo_span *key)
{
    const bool first = !json->begun;
    if (first && !json_take(json, '{')) {
        json->bad = true;
    }
    json->begun = true;
    if (json->bad || json_take(json, '}')) {
        return false;
    }
    if (!first && !json_take(json, ',')) {
        json->bad = true;
        return false;
    }
    if (!pod_hlo_json_string(json, key) || !json_take(json, ':')) {
        json->bad = true;
        return false;
    }
    return true;
}

static bool is_bare(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'
           || c == '+' || c == '.';
}

/* true, null, -1.5e3, Infinity. */
static bool skip_bare(pod_hlo_json *json, pod_hlo_span *span)
{
    uint32_t after = 0;
    char c = peek(json, &after);
    span->begin = json->at;
    while (is_bare(c)) {
        json->at = after;
        c = decode(json, &after, json->level);
    }
    span->end = json->at;
    return span->end > span->begin;
}

void pod_hlo_json_skip(pod_hlo_json *json)
{
    pod_hlo_span span;
    uint32_t after = 0;
    int64_t depth = 0;
    do {
        const char c = peek(json, &after);
        if (c == '"') {
            (void)pod_hlo_json_string(json, &span);
        } else if (c == '{' || c == '[') {
            json->at = after;
            depth++;
        } else if (c == '}' || c == ']') {
            json->at = after;
            depth--;
            json->bad = json->bad || depth < 0;
        } else if (depth > 0 && (c == ',' || c == ':')) {
            json->at = after;
        } else if (!skip_bare(json, &span)) {
            json->bad = true;
        }
    } while (depth > 0 && !json->bad);
}

bool pod_hlo_json_integer(pod_hlo_json *json, int64_t *value)
{
    uint32_t after = 0;
    pod_hlo_span span;
    const bool quoted = peek(json, &after) == '"';
    if (quoted ? !pod_hlo_json_string(json, &span) : !skip_bare(json, &span)) {
        json->bad = true;
        return false;
    }
    pod_hlo_scan scan = {
        .text = json->text, .at = span.begin, .size = span.end, .part = true, .err = NULL};
    return pod_hlo_signed(&scan, "", INT64_MAX, value) == POD_OK && scan.at == scan.size;
}

pod_hlo_json pod_hlo_json_object(pod_hlo_json *json)
{
    pod_hlo_json object = *json;
    object.begun = false;
    pod_hlo_json_skip(json);
    object.end = json->at;
    object.bad = json->bad;
    return object;
}

pod_hlo_json pod_hlo_json_inside(pod_hlo_json *json)
{
    pod_hlo_span inside = {0};
    const bool found = pod_hlo_json_string(json, &inside);
    return (pod_hlo_json){.text = json->text,
                          .at = inside.begin,
                          .end = inside.end,
                          .level = json->level + 1,
                          .bad = !found};
}
