/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and the NUL. */
static bool reserve(pod_text *text, size_t more)
{
    const size_t needed = text->size + more + 1;
    if (text->out_of_memory || needed <= text->capacity) {
        return !text->out_of_memory;
    }
    const size_t capacity = needed * 2 + 64;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->out_of_memory = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void pod_text_append(pod_text *text, const char *bytes, size_t size)
{
    if (!reserve(text, size)) {
        return;
    }
    if (size > 0) {
        memcpy(text->data + text->size, bytes, size);
    }
    text->size += size;
    text->data[text->size] = '\0';
}

void pod_text_add(pod_text *text, const char *string)
{
    pod_text_append(text, string, strlen(string));
}

void pod_text_fill(pod_text *text, char c, size_t count)
{
    if (!reserve(text, count)) {
        return;
    }
    memset(text->data + text->size, c, count);
    text->size += count;
    text->data[text->size] = '\0';
}

void pod_text_vprintf(pod_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->out_of_memory = true;
    } else {
        (void)vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
        text->size += (size_t)length;
    }
    va_end(again);
}

void pod_text_printf(pod_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pod_text_vprintf(text, format, args);
    va_end(args);
}

bool pod_text_ends_with(const char *string, const char *end)
{
    const size_t length = strlen(string);
    const size_t tail = strlen(end);
    return length > tail && strcmp(string + length - tail, end) == 0;
}

size_t pod_text_width(const char *string, size_t size)
{
    size_t width = 0;
    for (size_t i = 0; i < size; i++) {
        width += ((unsigned char)string[i] & 0xC0U) != 0x80U;
    }
    return width;
}

/* How many bytes of a line go into `width`: all, or up to a blank; the first word at least. */
static size_t part_size(const char *line, size_t size, size_t width)
{
    size_t taken = 0;
    for (size_t i = 0; i <= size; i++) {
        const bool end = i == size || line[i] == ' ';
        const bool word = i > 0 && line[i - 1] != ' ';
        if (!end || !word) {
            continue;
        }
        if (taken > 0 && pod_text_width(line, i) > width) {
            return taken;
        }
        taken = i;
    }
    return taken;
}

void pod_text_wrap(pod_text *text, const char *line, size_t size, size_t width, const char *indent)
{
    const size_t indent_width = strlen(indent);
    size_t room = width > 0 ? width : size;
    while (pod_text_width(line, size) > room) {
        const size_t part = part_size(line, size, room);
        if (part == 0 || part == size) {
            break;
        }
        pod_text_append(text, line, part);
        pod_text_add(text, "\n");
        pod_text_add(text, indent);
        for (line += part, size -= part; size > 0 && *line == ' '; size--) {
            line++;
        }
        room = width > indent_width ? width - indent_width : 1;
    }
    pod_text_append(text, line, size);
    pod_text_add(text, "\n");
}

void pod_text_free(pod_text *text)
{
    free(text->data);
    *text = (pod_text){.data = NULL};
}
