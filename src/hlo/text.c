/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

pod_hlo_scan pod_hlo_scan_part(const char *file, const char *text, pod_hlo_span span,
                               pod_error *err)
{
    return (pod_hlo_scan){.file = file,
                          .text = text,
                          .at = span.begin,
                          .size = span.end,
                          .part = true,
                          .computation = UINT32_MAX,
                          .err = err};
}

void pod_hlo_position(const char *text, uint32_t offset, int *line, int *column)
{
    uint32_t start = 0;
    *line = 1;
    while (start < offset) {
        const char *end = memchr(text + start, '\n', offset - start);
        if (end == NULL) {
            break;
        }
        start = (uint32_t)(end - text) + 1;
        (*line)++;
    }
    *column = (int)(offset - start) + 1;
}

static pod_status fail_cut(const pod_hlo_scan *scan)
{
    int line = 1;
    int column = 1;
    if (scan->computation == UINT32_MAX) {
        return pod_fail_at(scan->err, POD_E_INVALID, scan->file, line, column,
                           "the text ends before its first computation; it is cut off, pass the "
                           "whole text");
    }
    pod_hlo_scan name = {.text = scan->text, .at = scan->computation, .size = scan->size};
    pod_hlo_span span = {0};
    (void)pod_hlo_try_name(&name, &span);
    pod_hlo_position(scan->text, scan->computation, &line, &column);
    return pod_fail_at(scan->err, POD_E_INVALID, scan->file, line, column,
                       "the text ends in or after computation '%.*s', without the end of ENTRY; it "
                       "is cut off, pass the whole text",
                       pod_hlo_shown(span), scan->text + span.begin);
}

#undef pod_hlo_fail

pod_status pod_hlo_fail(const pod_hlo_scan *scan, uint32_t offset, const char *format, ...)
{
    if (!scan->part && scan->at >= scan->size) {
        return fail_cut(scan);
    }
    char text[POD_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int line = 0;
    int column = 0;
    pod_hlo_position(scan->text, offset, &line, &column);
    return pod_fail_at(scan->err, POD_E_INVALID, scan->file, line, column, "%s", text);
}

pod_status pod_hlo_fail_limit(const pod_hlo_scan *scan, uint32_t offset, const char *what,
                              int64_t limit)
{
    int line = 0;
    int column = 0;
    pod_hlo_position(scan->text, offset, &line, &column);
    return pod_fail_at(scan->err, POD_E_RANGE, scan->file, line, column,
                       "too large: %s; at most %" PRId64, what, limit);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '.' || c == '-';
}

/* At a comment: the offset after it, or the end if it has none. One of a line ends before the line does. */
static uint32_t comment_end(const pod_hlo_scan *scan, uint32_t at)
{
    if (scan->text[at + 1] == '/') {
        const char *end = memchr(scan->text + at, '\n', scan->size - at);
        return end == NULL ? scan->size : (uint32_t)(end - scan->text);
    }
    for (at += 2; at + 1 < scan->size; at++) {
        if (scan->text[at] == '*' && scan->text[at + 1] == '/') {
            return at + 2;
        }
    }
    return scan->size;
}

static bool at_comment(const pod_hlo_scan *scan, uint32_t at)
{
    return scan->text[at] == '/' && at + 1 < scan->size
           && (scan->text[at + 1] == '*' || scan->text[at + 1] == '/');
}

void pod_hlo_blank(pod_hlo_scan *scan)
{
    while (scan->at < scan->size) {
        if (is_blank(scan->text[scan->at])) {
            scan->at++;
        } else if (at_comment(scan, scan->at)) {
            scan->at = comment_end(scan, scan->at);
        } else {
            return;
        }
    }
}

char pod_hlo_peek(pod_hlo_scan *scan)
{
    pod_hlo_blank(scan);
    return scan->at < scan->size ? scan->text[scan->at] : '\0';
}

bool pod_hlo_take(pod_hlo_scan *scan, char c)
{
    if (pod_hlo_peek(scan) != c || scan->at >= scan->size) {
        return false;
    }
    scan->at++;
    return true;
}

pod_status pod_hlo_expect(pod_hlo_scan *scan, char c, const char *where)
{
    if (pod_hlo_take(scan, c)) {
        return POD_OK;
    }
    return pod_hlo_fail(scan, scan->at, "'%c' of %s is missing here", c, where);
}

bool pod_hlo_try_name(pod_hlo_scan *scan, pod_hlo_span *name)
{
    pod_hlo_blank(scan);
    uint32_t at = scan->at;
    while (at < scan->size && is_name(scan->text[at])) {
        at++;
    }
    *name = (pod_hlo_span){.begin = scan->at, .end = at};
    scan->at = at;
    return name->end > name->begin;
}

pod_status pod_hlo_name(pod_hlo_scan *scan, const char *what, pod_hlo_span *name)
{
    if (!pod_hlo_try_name(scan, name)) {
        return pod_hlo_fail(scan, scan->at, "the name of %s is missing here", what);
    }
    if (name->end - name->begin > POD_HLO_NAME_MAX) {
        return pod_hlo_fail_limit(scan, name->begin, "bytes of a name", POD_HLO_NAME_MAX);
    }
    return POD_OK;
}

pod_status pod_hlo_number(pod_hlo_scan *scan, const char *what, int64_t max, int64_t *value)
{
    pod_hlo_blank(scan);
    const uint32_t begin = scan->at;
    int64_t number = 0;
    while (scan->at < scan->size && scan->text[scan->at] >= '0' && scan->text[scan->at] <= '9') {
        const int digit = scan->text[scan->at] - '0';
        if (number > (max - digit) / 10) {
            return pod_hlo_fail_limit(scan, begin, what, max);
        }
        number = number * 10 + digit;
        scan->at++;
    }
    if (scan->at == begin && scan->at < scan->size && scan->text[begin] == '-') {
        return pod_hlo_fail(scan, begin, "%s is negative here; a whole number without a sign",
                            what);
    }
    if (scan->at == begin) {
        return pod_hlo_fail(scan, begin, "%s is missing here; a whole number", what);
    }
    *value = number;
    return POD_OK;
}

pod_status pod_hlo_signed(pod_hlo_scan *scan, const char *what, int64_t max, int64_t *value)
{
    const bool negative = pod_hlo_take(scan, '-');
    POD_TRY(pod_hlo_number(scan, what, max, value));
    if (negative) {
        *value = -*value;
    }
    return POD_OK;
}

/* At a '"': the offset after the string, or the end if it has none. */
static uint32_t string_end(const pod_hlo_scan *scan, uint32_t at)
{
    for (at++; at < scan->size; at++) {
        if (scan->text[at] == '\\') {
            at++;
        } else if (scan->text[at] == '"') {
            return at + 1;
        }
    }
    return scan->size;
}

static char closing(char open)
{
    switch (open) {
    case '(':
        return ')';
    case '[':
        return ']';
    case '{':
        return '}';
    default:
        return '\0';
    }
}

/* Does a value go on in the next line? An instruction begins with none of these. */
static bool goes_on(pod_hlo_scan ahead)
{
    const char c = pod_hlo_peek(&ahead);
    return c == '<' || closing(c) != '\0';
}

/* Skips balanced text. At depth 0 it stops before a comma or a line end (if `value`) and before a closing
 * bracket. @param[out] end  after the last byte that is neither blank nor comment */
static pod_status skip_balanced(pod_hlo_scan *scan, bool value, uint32_t *end)
{
    char expected[POD_HLO_BRACKETS_MAX];
    int depth = 0;
    *end = scan->at;
    while (scan->at < scan->size) {
        const uint32_t at = scan->at;
        const char c = scan->text[at];
        if (c == '"') {
            scan->at = string_end(scan, at);
            *end = scan->at;
            continue;
        }
        if (at_comment(scan, at)) {
            scan->at = comment_end(scan, at);
            continue;
        }
        if (depth == 0
            && (c == ')' || c == ']' || c == '}'
                || (value && (c == ',' || ((c == '\n' || c == '\r') && !goes_on(*scan)))))) {
            return POD_OK;
        }
        const char close = closing(c);
        if (close != '\0') {
            if (depth == POD_HLO_BRACKETS_MAX) {
                return pod_hlo_fail_limit(scan, at, "brackets in brackets", POD_HLO_BRACKETS_MAX);
            }
            expected[depth++] = close;
        } else if (c == ')' || c == ']' || c == '}') {
            if (c != expected[depth - 1]) {
                return pod_hlo_fail(scan, at, "'%c' where '%c' closes", c, expected[depth - 1]);
            }
            depth--;
        }
        scan->at++;
        *end = is_blank(c) ? *end : scan->at;
    }
    return depth == 0 && scan->part ? POD_OK
                                    : pod_hlo_fail(scan, scan->size, "the end of the text");
}

/* "[ROOT] [%]name =": a value that is missing isn't looked for there. */
static bool at_instruction(pod_hlo_scan ahead)
{
    pod_hlo_span word;
    (void)pod_hlo_take(&ahead, '%');
    if (pod_hlo_try_name(&ahead, &word) && pod_hlo_is(ahead.text, word, "ROOT")
        && pod_hlo_peek(&ahead) != '=') {
        (void)pod_hlo_take(&ahead, '%');
        (void)pod_hlo_try_name(&ahead, &word);
    }
    return word.end > word.begin && pod_hlo_peek(&ahead) == '=';
}

pod_status pod_hlo_value(pod_hlo_scan *scan, pod_hlo_span *value)
{
    const uint32_t before = scan->at;
    pod_hlo_blank(scan);
    if (memchr(scan->text + before, '\n', scan->at - before) != NULL && at_instruction(*scan)) {
        scan->at = before;
    }
    value->begin = scan->at;
    return skip_balanced(scan, true, &value->end);
}

pod_status pod_hlo_group(pod_hlo_scan *scan, char open, const char *where, pod_hlo_span *inside)
{
    POD_TRY(pod_hlo_expect(scan, open, where));
    pod_hlo_blank(scan);
    inside->begin = scan->at;
    POD_TRY(skip_balanced(scan, false, &inside->end));
    return pod_hlo_expect(scan, closing(open), where);
}

pod_status pod_hlo_numbers(pod_hlo_scan *scan, char open, const char *what, int64_t largest,
                           int64_t *values, int max, int *count)
{
    *count = 0;
    pod_status st = pod_hlo_expect(scan, open, what);
    if (st != POD_OK || pod_hlo_take(scan, closing(open))) {
        return st;
    }
    do {
        if (*count == max) {
            return pod_hlo_fail_limit(scan, scan->at, what, max);
        }
        st = pod_hlo_number(scan, what, largest, &values[*count]);
        (*count)++;
    } while (st == POD_OK && pod_hlo_take(scan, ','));
    return st == POD_OK ? pod_hlo_expect(scan, closing(open), what) : st;
}

pod_status pod_hlo_end(pod_hlo_scan *scan, const char *what)
{
    pod_hlo_blank(scan);
    return scan->at == scan->size ? POD_OK
                                  : pod_hlo_fail(scan, scan->at, "%s should end here", what);
}

bool pod_hlo_begins(const char *text, pod_hlo_span span, const char *expected)
{
    const size_t length = strlen(expected);
    return span.end - span.begin >= length && memcmp(text + span.begin, expected, length) == 0;
}

bool pod_hlo_holds(const char *text, pod_hlo_span span, const char *part)
{
    const size_t size = strlen(part);
    for (size_t at = span.begin; at + size <= span.end; at++) {
        if (memcmp(text + at, part, size) == 0) {
            return true;
        }
    }
    return false;
}

bool pod_hlo_is(const char *text, pod_hlo_span span, const char *expected)
{
    return span.end - span.begin == strlen(expected) && pod_hlo_begins(text, span, expected);
}

int pod_hlo_shown(pod_hlo_span span)
{
    const uint32_t length = span.end - span.begin;
    return length < 120 ? (int)length : 120;
}
