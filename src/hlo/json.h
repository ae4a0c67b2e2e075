/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/json.h  JSON inside an HLO text, read where it stands.
 *
 *  Model: a cursor over a piece of the text. `level` says how many strings the JSON lies in: 0 for
 *  backend_config={"a":1}, 1 for backend_config="{\"a\":1}", so that each of its characters is an
 *  escaped one. Nothing is copied; values that nobody wants are skipped, however long. Blanks and, at level
 *  0, comments stand freely. What isn't JSON sets `bad`, after which nothing is found.
 *
 *      pod_hlo_json json = pod_hlo_json_of(text, span);
 *      for (pod_hlo_span key; pod_hlo_json_next(&json, &key);) {
 *          if (pod_hlo_is(text, key, "n")) { pod_hlo_json_integer(&json, &n); }
 *          else { pod_hlo_json_skip(&json); }
 *      }
 *
 *  Spans of keys and strings are raw: escapes in them are as written. Threads: none. */
#pragma once

#include "hlo/text.h"

typedef struct pod_hlo_json {
    const char *text;
    uint32_t at;
    uint32_t end;
    int level;
    bool begun; /**< the object's '{' is taken */
    bool bad;
} pod_hlo_json;

/** JSON that is a whole attribute value: an object, or a string that holds one. */
pod_hlo_json pod_hlo_json_of(const char *text, pod_hlo_span value);
/** Next key of the object at the cursor; the cursor is then at its value, which must be taken or
 *  skipped. @return false after the last one, or if this isn't JSON */
bool pod_hlo_json_next(pod_hlo_json *json, pod_hlo_span *key);
/** Take a string; `inside` is without its quotes. @return false (and `bad`) if it is none */
bool pod_hlo_json_string(pod_hlo_json *json, pod_hlo_span *inside);
/** Take a whole number, bare or in quotes. @return false if it is none or beyond 64 bits; the value is taken
 *  all the same */
bool pod_hlo_json_integer(pod_hlo_json *json, int64_t *value);
/** Skip the value at the cursor. */
void pod_hlo_json_skip(pod_hlo_json *json);
/** The object at the cursor as a cursor of its own, which is skipped here. */
pod_hlo_json pod_hlo_json_object(pod_hlo_json *json);
/** The object inside the string at the cursor, likewise. */
pod_hlo_json pod_hlo_json_inside(pod_hlo_json *json);
