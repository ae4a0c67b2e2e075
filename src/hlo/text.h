/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/text.h  Tokens of an HLO text, and where an error is in it.
 *
 *  Model: a scan is a place in a text of at most 64 MiB. Blanks (space, tab, CR, LF) and comments
 *  (`/ * … * /`, or `//` up to the line end) stand freely between tokens. A string is "…" with \
 *  escapes and may hold line ends; the brackets ( [ { nest, at most POD_HLO_BRACKETS_MAX deep; < and > are none.
 *
 *      name      letters, digits, '_', '.', '-'
 *      value     balanced text up to a comma, line end or closing bracket outside brackets and
 *                strings; inside them it may span lines. It may stand in the next line, and go on
 *                there with an opening bracket or a '<'
 *
 *  A position is an offset in bytes; line and column (bytes, from 1) are counted when an error
 *  needs them. An error met at the end of the whole text says that the text is cut off, with the
 *  line of the last computation. A scan of a part of the text (pod_hlo_scan_part) never says so.
 *
 *  Ownership: all storage is the caller's; text and file name are borrowed. Threads: none.
 *  Errors: POD_E_INVALID with file, line and column. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { POD_HLO_BRACKETS_MAX = 256, POD_HLO_NAME_MAX = 4096 };

/** Bytes [begin, end) of the text. */
typedef struct pod_hlo_span {
    uint32_t begin;
    uint32_t end;
} pod_hlo_span;

typedef struct pod_hlo_scan {
    const char *file; /**< what errors call the text */
    const char *text;
    uint32_t at;          /**< next byte */
    uint32_t size;        /**< end of what is scanned */
    bool part;            /**< a part of the text, which isn't cut off where it ends */
    uint32_t computation; /**< offset of the last computation's name; UINT32_MAX before the first */
    pod_error *err;       /**< may be NULL */
} pod_hlo_scan;

/** A scan of one span of a text. */
pod_hlo_scan pod_hlo_scan_part(const char *file, const char *text, pod_hlo_span span,
                               pod_error *err);

/** Record an error at an offset. @return POD_E_INVALID */
__attribute__((format(printf, 3, 4))) pod_status
pod_hlo_fail(const pod_hlo_scan *scan, uint32_t offset, const char *format, ...);
#ifdef __clang_analyzer__ /* as pod_fail in base/status.h */
#define pod_hlo_fail(...) (pod_hlo_fail(__VA_ARGS__), POD_E_INVALID)
#endif
/** Record that a limit is exceeded: "WHAT is more than LIMIT; …". @return POD_E_RANGE */
pod_status pod_hlo_fail_limit(const pod_hlo_scan *scan, uint32_t offset, const char *what,
                              int64_t limit);
/** Line and column of an offset, from 1. */
void pod_hlo_position(const char *text, uint32_t offset, int *line, int *column);

/** Skip blanks and comments. */
void pod_hlo_blank(pod_hlo_scan *scan);
/** The next byte after blanks, not taken; '\0' at the end. */
char pod_hlo_peek(pod_hlo_scan *scan);
/** Take this byte if it comes next, after blanks. */
bool pod_hlo_take(pod_hlo_scan *scan, char c);
/** Take this byte or fail. @param where  what it belongs to, for the error */
pod_status pod_hlo_expect(pod_hlo_scan *scan, char c, const char *where);
/** Take a name, at most POD_HLO_NAME_MAX bytes. @param what  the name is of, for the error */
pod_status pod_hlo_name(pod_hlo_scan *scan, const char *what, pod_hlo_span *name);
/** Take a name if one comes next. @return false if none does */
bool pod_hlo_try_name(pod_hlo_scan *scan, pod_hlo_span *name);
/** Take a whole number from 0 to `max`. */
pod_status pod_hlo_number(pod_hlo_scan *scan, const char *what, int64_t max, int64_t *value);
/** Take a whole number with an optional '-'; its magnitude is at most `max`. */
pod_status pod_hlo_signed(pod_hlo_scan *scan, const char *what, int64_t max, int64_t *value);
/** Take a value; blanks and comments at both ends are left out of the span. May be empty. */
pod_status pod_hlo_value(pod_hlo_scan *scan, pod_hlo_span *value);
/** Take a pair of brackets with what is inside; the span is what is inside.
 *  @param open  '(', '[' or '{' */
pod_status pod_hlo_group(pod_hlo_scan *scan, char open, const char *where, pod_hlo_span *inside);
/** Take a list of whole numbers in brackets, "{1,2,3}" or "[4,16]" or "(1,0)".
 *  @param[out] values  room for `max` numbers, each at most `largest` */
pod_status pod_hlo_numbers(pod_hlo_scan *scan, char open, const char *what, int64_t largest,
                           int64_t *values, int max, int *count);
/** Nothing but blanks may follow. */
pod_status pod_hlo_end(pod_hlo_scan *scan, const char *what);

/** Is the span this text? */
bool pod_hlo_is(const char *text, pod_hlo_span span, const char *expected);
/** Does the span begin with this text? */
bool pod_hlo_begins(const char *text, pod_hlo_span span, const char *expected);
/** Does the span hold this text? */
bool pod_hlo_holds(const char *text, pod_hlo_span span, const char *part);
/** Length of a span for "%.*s", at most 120. */
int pod_hlo_shown(pod_hlo_span span);
