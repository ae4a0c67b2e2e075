/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/opcode.h"

#include <string.h>

typedef struct opcode_row {
    const char *name;
    int8_t fewest;
    int8_t most;
    uint8_t length;
    uint8_t class;
} opcode_row;

#define OPCODE_ROW(id, name, fewest, most, class)                                                  \
    [POD_HLO_##id] = {name, fewest, most, sizeof(name) - 1, POD_HLO_CLASS_##class},
static const opcode_row rows[] = {POD_HLO_OPCODE_LIST(OPCODE_ROW)};
#undef OPCODE_ROW
_Static_assert(sizeof rows / sizeof rows[0] == POD_HLO_OPCODES, "one row per opcode");

const char *pod_hlo_opcode_name(pod_hlo_opcode opcode)
{
    return rows[opcode].name;
}

pod_hlo_class pod_hlo_opcode_class(pod_hlo_opcode opcode)
{
    return (pod_hlo_class)rows[opcode].class;
}

void pod_hlo_opcode_operands(pod_hlo_opcode opcode, pod_hlo_phase phase, int *fewest, int *most)
{
    const bool later = phase == POD_HLO_UPDATE || phase == POD_HLO_DONE;
    *fewest = later ? 1 : rows[opcode].fewest;
    *most = phase == POD_HLO_DONE ? 1 : later ? -1 : rows[opcode].most;
}

static pod_hlo_opcode find(const char *name, size_t length)
{
    for (int i = 0; i < POD_HLO_OTHER; i++) {
        if (rows[i].length == length && memcmp(rows[i].name, name, length) == 0) {
            return (pod_hlo_opcode)i;
        }
    }
    return POD_HLO_OTHER;
}

void pod_hlo_opcode_find(const char *text, pod_hlo_span name, pod_hlo_opcode *opcode,
                         pod_hlo_phase *phase)
{
    static const char *const suffix[] = {
        [POD_HLO_START] = "-start", [POD_HLO_UPDATE] = "-update", [POD_HLO_DONE] = "-done"};
    const char *begin = text + name.begin;
    const size_t length = name.end - name.begin;
    *opcode = find(begin, length);
    *phase = *opcode == POD_HLO_SEND || *opcode == POD_HLO_RECV ? POD_HLO_START : POD_HLO_WHOLE;
    for (int i = POD_HLO_START; i <= POD_HLO_DONE && *opcode == POD_HLO_OTHER; i++) {
        const size_t tail = strlen(suffix[i]);
        if (length > tail && memcmp(begin + length - tail, suffix[i], tail) == 0) {
            *opcode = find(begin, length - tail);
            *phase = *opcode == POD_HLO_OTHER ? POD_HLO_WHOLE : (pod_hlo_phase)i;
            return;
        }
    }
}
