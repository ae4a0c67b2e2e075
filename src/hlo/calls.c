/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls whom: names become numbers, operands fit parameters, nobody calls itself. */
#include "hlo/parse_state.h"

#include <stdlib.h>

/* The state of the walk through all computations. */
typedef struct call_walk {
    const pod_hlo_module *module;
    const pod_hlo_scan *scan;
    uint8_t *height; /* 1 + the longest chain of calls below; 0 = not reached yet */
    uint8_t *open;   /* on the way from the root of the walk */
    uint32_t *order;
    uint32_t count;
} call_walk;

static pod_status resolve_names(pod_hlo_parser *parser)
{
    pod_hlo_module *module = parser->module;
    for (uint32_t i = 0; i < module->ncalls; i++) {
        pod_hlo_call *call = &module->call[i];
        const pod_hlo_span name = pod_hlo_name_of(module, call->computation);
        call->computation = parser->meaning[call->computation].computation;
        if (call->computation == POD_HLO_NONE) {
            pod_hlo_scan part = pod_hlo_part(module, name, parser->scan.err);
            return pod_hlo_fail(&part, call->offset, "there is no computation '%.*s'",
                                pod_hlo_shown(name), module->text + name.begin);
        }
    }
    return POD_OK;
}

/* How many parameters the callee must have: as many as operands, or one of the state. */
static bool must_fit(const pod_hlo_instruction *caller, pod_hlo_attribute_key role,
                     uint32_t *parameters)
{
    const bool starts = caller->phase == POD_HLO_WHOLE || caller->phase == POD_HLO_START;
    *parameters = caller->noperands;
    switch (caller->opcode) {
    case POD_HLO_FUSION:
    case POD_HLO_ASYNC:
        return starts && role == POD_HLO_AT_CALLS;
    case POD_HLO_CALL:
        return starts && role == POD_HLO_AT_TO_APPLY;
    case POD_HLO_WHILE:
    case POD_HLO_CONDITIONAL:
        *parameters = 1;
        return role != POD_HLO_AT_TO_APPLY;
    default:
        return false;
    }
}

/* Branches of a conditional: a list, or one for true and one for false; as many as operands after the first. */
static bool has_branches(const pod_hlo_module *module, const pod_hlo_instruction *conditional)
{
    uint32_t listed = 0;
    for (uint32_t i = 0; i < conditional->ncalls; i++) {
        listed += module->call[conditional->calls + i].role == POD_HLO_AT_BRANCHES;
    }
    const bool if_true = pod_hlo_callee(module, conditional, POD_HLO_AT_TRUE) != POD_HLO_NONE;
    const bool if_false = pod_hlo_callee(module, conditional, POD_HLO_AT_FALSE) != POD_HLO_NONE;
    if (listed == 0) {
        return if_true && if_false && conditional->noperands == 3;
    }
    return !if_true && !if_false && listed == conditional->noperands - 1;
}

/* Roles that an instruction can't do without. */
static bool has_callees(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    if (instruction->phase == POD_HLO_UPDATE || instruction->phase == POD_HLO_DONE) {
        return true;
    }
    switch (instruction->opcode) {
    case POD_HLO_FUSION:
    case POD_HLO_ASYNC:
        return pod_hlo_callee(module, instruction, POD_HLO_AT_CALLS) != POD_HLO_NONE;
    case POD_HLO_CALL:
        return pod_hlo_callee(module, instruction, POD_HLO_AT_TO_APPLY) != POD_HLO_NONE;
    case POD_HLO_WHILE:
        return pod_hlo_callee(module, instruction, POD_HLO_AT_BODY) != POD_HLO_NONE
               && pod_hlo_callee(module, instruction, POD_HLO_AT_CONDITION) != POD_HLO_NONE;
    case POD_HLO_CONDITIONAL:
        return has_branches(module, instruction);
    default:
        return true;
    }
}

static pod_status check_callees(const pod_hlo_module *module, pod_error *err)
{
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *caller = &module->instruction[i];
        if (!has_callees(module, caller)) {
            return pod_hlo_fail_instruction(module, caller, err,
                                            "the computations that it calls are missing, or too "
                                            "few or too many for its operands");
        }
        for (uint32_t k = 0; k < caller->ncalls; k++) {
            const pod_hlo_call *call = &module->call[caller->calls + k];
            const pod_hlo_computation *callee = &module->computation[call->computation];
            uint32_t parameters = 0;
            const bool later = caller->phase == POD_HLO_START; /* an update may bring the rest */
            if (must_fit(caller, (pod_hlo_attribute_key)call->role, &parameters)
                && (later ? callee->nparameters < parameters : callee->nparameters != parameters)) {
                return pod_hlo_fail_instruction(
                    module, caller, err, "the computation that it calls has %u parameters, not %u",
                    callee->nparameters, parameters);
            }
        }
    }
    return POD_OK;
}

/* Callees first. A chain is at most POD_HLO_NESTING_MAX long, so the recursion is. */
static pod_status visit(call_walk *walk, uint32_t number, int depth)
{
    const pod_hlo_module *module = walk->module;
    const pod_hlo_computation *computation = &module->computation[number];
    if (depth > POD_HLO_NESTING_MAX) {
        return pod_hlo_fail_limit(walk->scan, computation->offset, "calls in calls",
                                  POD_HLO_NESTING_MAX);
    }
    walk->open[number] = 1;
    int height = 1;
    for (uint32_t i = 0; i < computation->count; i++) {
        const pod_hlo_instruction *caller = &module->instruction[computation->first + i];
        for (uint32_t k = 0; k < caller->ncalls; k++) {
            const pod_hlo_call *call = &module->call[caller->calls + k];
            if (walk->open[call->computation] != 0) {
                return pod_hlo_fail(walk->scan, call->offset,
                                    "computations that call each other; a program can't");
            }
            const pod_status st = walk->height[call->computation] == 0
                                      ? visit(walk, call->computation, depth + 1)
                                      : POD_OK;
            if (st != POD_OK) {
                return st;
            }
            const int below = walk->height[call->computation] + 1;
            height = below > height ? below : height;
        }
    }
    if (height > POD_HLO_NESTING_MAX) {
        return pod_hlo_fail_limit(walk->scan, computation->offset, "calls in calls",
                                  POD_HLO_NESTING_MAX);
    }
    walk->open[number] = 0;
    walk->height[number] = (uint8_t)height;
    walk->order[walk->count++] = number;
    return POD_OK;
}

static pod_status order_computations(pod_hlo_parser *parser)
{
    pod_hlo_module *module = parser->module;
    const size_t n = module->ncomputations;
    const pod_hlo_scan scan =
        pod_hlo_part(module, (pod_hlo_span){.end = module->size}, parser->scan.err);
    call_walk walk = {.module = module, .scan = &scan};
    walk.height = calloc(n, 1);
    walk.open = calloc(n, 1);
    module->callee_first = calloc(n, sizeof *module->callee_first);
    walk.order = module->callee_first;
    pod_status st = POD_OK;
    if (walk.height == NULL || walk.open == NULL || walk.order == NULL) {
        st = pod_fail(parser->scan.err, POD_E_NOMEM, "no memory for the program");
    }
    for (uint32_t i = 0; i < module->ncomputations && st == POD_OK; i++) {
        st = walk.height[i] == 0 ? visit(&walk, i, 1) : POD_OK;
    }
    free(walk.open);
    free(walk.height);
    return st;
}

pod_status pod_hlo_resolve_calls(pod_hlo_parser *parser)
{
    POD_TRY(resolve_names(parser));
    POD_TRY(check_callees(parser->module, parser->scan.err));
    return order_computations(parser);
}
