/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/aliases.h"

#include <stdlib.h>

enum { ALIAS_STEPS_MAX = 256 };

pod_status pod_hlo_leaves_new(const pod_hlo_module *module, uint32_t **leaves, pod_error *err)
{
    const pod_hlo_shapes *shapes = &module->shapes;
    uint32_t *made = calloc((size_t)shapes->count + 1, sizeof *made);
    if (made == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the shapes of the program");
    }
    /* Members are stored before the tuple that has them. */
    for (uint32_t i = 0; i < shapes->count; i++) {
        const pod_hlo_shape *shape = &shapes->shape[i];
        uint64_t sum = shape->dtype == POD_HLO_TYPE_TUPLE ? 0 : 1;
        for (uint32_t k = 0; shape->dtype == POD_HLO_TYPE_TUPLE && k < shape->count; k++) {
            sum += made[pod_hlo_member(module, shape, k)];
        }
        if (sum > INT32_MAX) {
            free(made);
            return pod_fail(err, POD_E_RANGE, "too large: arrays of a tuple");
        }
        made[i] = (uint32_t)sum;
    }
    *leaves = made;
    return POD_OK;
}

/* "{1,0}": the leaves of a member of a member. */
static pod_status take_path(pod_hlo_aliases *aliases, uint32_t shape, uint32_t *leaf,
                            uint32_t *nleaves)
{
    int64_t index[POD_HLO_BRACKETS_MAX];
    int count = 0;
    const pod_hlo_module *module = aliases->module;
    const uint32_t at = aliases->scan.at;
    pod_status st = pod_hlo_numbers(&aliases->scan, '{', "an index", INT32_MAX, index,
                                    POD_HLO_BRACKETS_MAX, &count);
    *leaf = 0;
    for (int i = 0; i < count && st == POD_OK; i++) {
        const pod_hlo_shape *tuple = &module->shapes.shape[shape];
        if (tuple->dtype != POD_HLO_TYPE_TUPLE || index[i] >= tuple->count) {
            return pod_hlo_fail(&aliases->scan, at, "an index that the shape doesn't have");
        }
        for (uint32_t k = 0; k < (uint32_t)index[i]; k++) {
            *leaf += aliases->leaves[pod_hlo_member(module, tuple, k)];
        }
        shape = pod_hlo_member(module, tuple, (uint32_t)index[i]);
    }
    *nleaves = aliases->leaves[shape];
    return st;
}

pod_status pod_hlo_alias_next(pod_hlo_aliases *aliases, pod_hlo_alias *alias, bool *more)
{
    pod_hlo_scan *scan = &aliases->scan;
    pod_status st = POD_OK;
    uint32_t nleaves = 0;
    if (!aliases->begun) {
        aliases->begun = true;
        st = pod_hlo_expect(scan, '{', "aliases");
        *more = st == POD_OK && pod_hlo_peek(scan) != '}';
    } else {
        *more = pod_hlo_take(scan, ',');
    }
    if (st != POD_OK || !*more) {
        return st == POD_OK ? pod_hlo_expect(scan, '}', "aliases") : st;
    }
    st = take_path(aliases, aliases->result, &alias->out_leaf, &alias->nleaves);
    POD_THEN(st, pod_hlo_expect(scan, ':', "an alias"));
    POD_THEN(st, pod_hlo_expect(scan, '(', "an alias"));
    int64_t operand = 0;
    const uint32_t at = scan->at;
    POD_THEN(st, pod_hlo_number(scan, "the operand of an alias", INT32_MAX, &operand));
    if (st == POD_OK && operand >= aliases->noperands) {
        st = pod_hlo_fail(scan, at, "an alias of operand %d of %u", (int)operand,
                          aliases->noperands);
    }
    POD_THEN(st, pod_hlo_expect(scan, ',', "an alias"));
    alias->operand = (uint32_t)operand;
    POD_THEN(st, take_path(aliases, aliases->operands[operand], &alias->operand_leaf, &nleaves));
    if (st == POD_OK && nleaves != alias->nleaves) {
        st = pod_hlo_fail(scan, at, "an alias of %u arrays and %u", alias->nleaves, nleaves);
    }
    pod_hlo_span kind;
    if (st == POD_OK && pod_hlo_take(scan, ',')) {
        st = pod_hlo_name(scan, "the kind of an alias", &kind);
    }
    return st == POD_OK ? pod_hlo_expect(scan, ')', "an alias") : st;
}

/* A fusion that says of its whole result that it is operand 0's buffer changes layout only. */
static bool is_renamed(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    pod_hlo_span span;
    if (instruction->opcode == POD_HLO_BITCAST) {
        return true;
    }
    return instruction->opcode == POD_HLO_FUSION && instruction->noperands == 1
           && pod_hlo_attribute_of(module, instruction, POD_HLO_AT_ALIASING, &span);
}

static const pod_hlo_instruction *renamed(const pod_hlo_module *module,
                                          const pod_hlo_instruction *instruction)
{
    for (int i = 0; i < ALIAS_STEPS_MAX && is_renamed(module, instruction); i++) {
        instruction = pod_hlo_operand(module, instruction, 0);
    }
    return instruction;
}

uint32_t pod_hlo_updated_parameter(const pod_hlo_module *module, uint32_t computation,
                                   uint32_t member)
{
    const pod_hlo_instruction *leaf = &module->instruction[module->computation[computation].root];
    if (leaf->opcode == POD_HLO_TUPLE) {
        if (member >= leaf->noperands) {
            return POD_HLO_NONE;
        }
        leaf = pod_hlo_operand(module, leaf, member);
    }
    leaf = renamed(module, leaf);
    if (leaf->opcode != POD_HLO_DYNAMIC_UPDATE_SLICE || leaf->phase != POD_HLO_WHOLE) {
        return POD_HLO_NONE;
    }
    leaf = renamed(module, pod_hlo_operand(module, leaf, 0));
    return leaf->opcode == POD_HLO_PARAMETER ? leaf->number : POD_HLO_NONE;
}
