/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/passes.h"

#include "hlo/attributes.h"

#include <stdlib.h>
#include <string.h>

const char *pod_hlo_pass_name(pod_hlo_pass pass)
{
    static const char *const names[POD_HLO_PASSES] = {"forward", "recompute", "backward", "update"};
    return names[pass];
}

/* What an op_name is marked as; POD_HLO_UPDATE_PASS without a mark. */
static pod_hlo_pass marked(const char *text, pod_hlo_span name)
{
    static const char *const marks[] = {"rematted_computation", "transpose(", "jvp("};
    static const pod_hlo_pass passes[] = {POD_HLO_RECOMPUTE, POD_HLO_BACKWARD, POD_HLO_FORWARD};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (pod_hlo_holds(text, name, marks[i])) {
            return passes[i];
        }
    }
    return POD_HLO_UPDATE_PASS;
}

static bool op_name_of(const pod_hlo_module *module, uint32_t instruction, pod_hlo_span *name)
{
    return pod_hlo_field(module, &module->instruction[instruction], POD_HLO_AT_METADATA, "op_name",
                         name)
           && name->end > name->begin;
}

/* Does any op_name have a mark? Fills in the pass of those that are there, POD_HLO_PASSES elsewhere. */
static bool own_passes(const pod_hlo_module *module, pod_hlo_pass *passes)
{
    bool differentiated = false;
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        pod_hlo_span name;
        passes[i] = POD_HLO_PASSES;
        if (op_name_of(module, i, &name)) {
            passes[i] = marked(module->text, name);
            differentiated = differentiated || passes[i] != POD_HLO_UPDATE_PASS;
        }
    }
    return differentiated;
}

/* Instructions without op_name get the pass of what runs their computation. @param inside  inside[computation] */
static void passes_inherit(const pod_hlo_analysis *analysis, pod_hlo_pass *inside,
                           pod_hlo_pass *passes)
{
    const pod_hlo_module *module = analysis->module;
    for (uint32_t c = 0; c < module->ncomputations; c++) {
        inside[c] = POD_HLO_UPDATE_PASS;
    }
    /* callers before callees */
    for (uint32_t c = module->ncomputations; c-- > 0;) {
        const uint32_t number = module->callee_first[c];
        const pod_hlo_computation *computation = &module->computation[number];
        for (uint32_t i = computation->first; i < computation->first + computation->count; i++) {
            int64_t times = 0;
            passes[i] = passes[i] == POD_HLO_PASSES ? inside[number] : passes[i];
            const uint32_t callee = pod_hlo_entered(analysis, &module->instruction[i], &times);
            if (callee != POD_HLO_NONE) {
                inside[callee] = passes[i];
            }
        }
    }
}

pod_status pod_hlo_passes_new(const pod_hlo_analysis *analysis, pod_hlo_pass **passes,
                              pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    pod_hlo_pass *inside = calloc((size_t)module->ncomputations + 1, sizeof *inside);
    *passes = calloc((size_t)module->ninstructions + 1, sizeof **passes);
    if (inside == NULL || *passes == NULL) {
        free(inside);
        free(*passes);
        *passes = NULL;
        return pod_fail(err, POD_E_NOMEM, "out of memory for %u instructions",
                        module->ninstructions);
    }
    if (own_passes(module, *passes)) {
        passes_inherit(analysis, inside, *passes);
    } else {
        for (uint32_t i = 0; i < module->ninstructions; i++) {
            (*passes)[i] = POD_HLO_FORWARD;
        }
    }
    free(inside);
    return POD_OK;
}
