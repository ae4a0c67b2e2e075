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

void pod_text_free(pod_text *text)
{
    free(text->data);
    *text = (pod_text){.data = NULL};
}
