/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/async.h"

static int async_line(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    int line = 0;
    int column = 0;
    pod_hlo_position(module->text, instruction->offset, &line, &column);
    return line;
}

static bool is_pending(const pod_hlo_instruction *instruction)
{
    return instruction->phase == POD_HLO_START || instruction->phase == POD_HLO_UPDATE;
}

/* While the pass runs, partner of a start or update is what takes it next. */
static pod_status join(const pod_hlo_module *module, uint32_t number, uint32_t *partner,
                       pod_error *err)
{
    const pod_hlo_instruction *done = &module->instruction[number];
    const uint32_t from = module->operand[done->operands];
    const pod_hlo_instruction *before = &module->instruction[from];
    if (!is_pending(before) || before->opcode != done->opcode) {
        const pod_hlo_span name = pod_hlo_name_of(module, before->name);
        return pod_hlo_fail_instruction(
            module, done, err,
            "a done without a start: its operand '%.*s' (line %d) is none of its kind",
            pod_hlo_shown(name), module->text + name.begin, async_line(module, before));
    }
    if (partner[from] != POD_HLO_NONE) {
        return pod_hlo_fail_instruction(
            module, done, err, "a second done of the start in line %d; the first is in line %d",
            async_line(module, before), async_line(module, &module->instruction[partner[from]]));
    }
    partner[from] = number;
    return POD_OK;
}

pod_status pod_hlo_async_pair(const pod_hlo_module *module, uint32_t *partner, pod_error *err)
{
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        partner[i] = POD_HLO_NONE;
    }
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        const bool takes =
            instruction->phase == POD_HLO_DONE || instruction->phase == POD_HLO_UPDATE;
        const pod_status st = takes ? join(module, i, partner, err) : POD_OK;
        if (st != POD_OK) {
            return st;
        }
    }
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *start = &module->instruction[i];
        if (is_pending(start) && partner[i] == POD_HLO_NONE) {
            const pod_hlo_computation *computation = &module->computation[start->computation];
            const uint32_t last = computation->first + computation->count - 1;
            return pod_hlo_fail_instruction(
                module, start, err,
                "a start with no done up to line %d, where its computation ends",
                async_line(module, &module->instruction[last]));
        }
    }
    /* Updates drop out: from each start to its done and back. Operands stand before their use, so that
     * what an update takes has its done only when taken from the end. */
    for (uint32_t i = module->ninstructions; i-- > 0;) {
        const pod_hlo_instruction *start = &module->instruction[i];
        if (is_pending(start) && module->instruction[partner[i]].phase == POD_HLO_UPDATE) {
            partner[i] = partner[partner[i]];
        }
    }
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *start = &module->instruction[i];
        if (start->phase == POD_HLO_START) {
            partner[partner[i]] = i;
        }
    }
    return POD_OK;
}
