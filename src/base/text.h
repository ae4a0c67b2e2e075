/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/text.h  A string that grows.
 *
 *  Model: append, then use `data` (never NULL once something was appended, always terminated).
 *  Running out of memory is remembered in `out_of_memory` and makes later appends do nothing, so a
 *  caller checks once at the end.
 *
 *  Ownership: storage of the caller, initialised with {0}; pod_text_free frees the contents.
 *  Threads: none. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pod_text {
    char *data;
    size_t size; /**< without the final NUL */
    size_t capacity;
    bool out_of_memory;
} pod_text;

/** Append `size` bytes. Not collective. */
void pod_text_append(pod_text *text, const char *bytes, size_t size);
/** Append a string. */
void pod_text_add(pod_text *text, const char *string);
/** Append one character `count` times. */
void pod_text_fill(pod_text *text, char c, size_t count);
__attribute__((format(printf, 2, 3))) void pod_text_printf(pod_text *text, const char *format, ...);
__attribute__((format(printf, 2, 0))) void pod_text_vprintf(pod_text *text, const char *format,
                                                            va_list args);
/** Is there something before `end`, with which the string ends? */
bool pod_text_ends_with(const char *string, const char *end);
/** Characters, not bytes: continuation bytes of UTF-8 take no room. */
size_t pod_text_width(const char *string, size_t size);
/** Append one line and its end, broken at blanks so that no part is wider than `width`; the parts after the first begin
 *  with `indent`. A word that is wider stays whole. width 0: unbroken. */
void pod_text_wrap(pod_text *text, const char *line, size_t size, size_t width, const char *indent);
/** What a noun for so many ends in: "" of one, else "s". */
static inline const char *pod_text_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}
/** Free the contents and leave an empty text. */
void pod_text_free(pod_text *text);
