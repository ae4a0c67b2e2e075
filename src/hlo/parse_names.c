/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/parse_state.h"

pod_status pod_hlo_parse_intern(pod_hlo_parser *parser, pod_hlo_span span, uint32_t *name)
{
    pod_hlo_interned *names = &parser->module->names;
    POD_TRY(pod_hlo_intern(names, parser->scan.text, span, name, parser->scan.err));
    POD_TRY(pod_hlo_reserve(&parser->meaning, &parser->meanings_capacity, names->count,
                            sizeof *parser->meaning, parser->scan.err));
    if (parser->meanings < names->count) {
        parser->meaning[parser->meanings++] =
            (pod_hlo_meaning){.instruction = POD_HLO_NONE, .computation = POD_HLO_NONE};
    }
    return POD_OK;
}

pod_status pod_hlo_parse_fail_machine(const pod_hlo_scan *scan, uint32_t at, const char *mark,
                                      int length)
{
    return pod_hlo_fail(
        scan, at,
        "%.*s: this text was compiled for GPU or CPU; compile the program for a TPU, "
        "which needs none (scripts/aot.py), and pass that text",
        length, mark);
}
