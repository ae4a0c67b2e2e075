/* SPDX-License-Identifier: Apache-2.0 */
/* Names of instructions, as `podsim hlo` prints them. */
#include "cli/hlo.h"
#include "hlo/attributes.h"

#include <stdio.h>
#include <string.h>

/* A piece of the text; bytes that aren't ASCII become '?', so that the output is UTF-8. */
static const char *print_span(const char *text, pod_hlo_span span, char *buf, size_t size)
{
    size_t used = 0;
    for (uint32_t at = span.begin; at < span.end && used + 1 < size; at++) {
        const unsigned char c = (unsigned char)text[at];
        buf[used++] = c >= ' ' && c < 127 ? (char)c : '?';
    }
    buf[used] = '\0';
    return buf;
}

const char *pod_hlo_print_name(const pod_hlo_module *module, uint32_t instruction, char *buf,
                               size_t size)
{
    return print_span(module->text, pod_hlo_name_of(module, module->instruction[instruction].name),
                      buf, size);
}

const char *pod_hlo_print_op_name(const pod_hlo_module *module, uint32_t instruction, char *buf,
                                  size_t size)
{
    pod_hlo_span name = {0};
    (void)pod_hlo_field(module, &module->instruction[instruction], POD_HLO_AT_METADATA, "op_name",
                        &name);
    return print_span(module->text, name, buf, size);
}

const char *pod_hlo_print_source(const pod_hlo_module *module, uint32_t instruction, char *buf,
                                 size_t size)
{
    enum { LINE_MAX_DIGITS = 24 };
    pod_hlo_span file = {0};
    int64_t line = 0;
    if (!pod_hlo_source_line(module, &module->instruction[instruction], &file, &line)) {
        file = (pod_hlo_span){0};
    }
    (void)print_span(module->text, file, buf, size - LINE_MAX_DIGITS);
    if (line > 0) {
        const size_t used = strlen(buf);
        (void)snprintf(buf + used, size - used, ":%lld", (long long)line);
    }
    return buf;
}
