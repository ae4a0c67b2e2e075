/* SPDX-License-Identifier: Apache-2.0 */
/* Names of instructions, as `podsim hlo` prints them. */
#include "cli/hlo.h"
#include "hlo/attributes.h"

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
