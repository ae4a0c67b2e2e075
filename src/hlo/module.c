/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/module.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void pod_hlo_free(pod_hlo_module *module)
{
    if (module == NULL) {
        return;
    }
    pod_hlo_interned_fini(&module->names);
    pod_hlo_shapes_fini(&module->shapes);
    free(module->computation);
    free(module->instruction);
    free(module->operand);
    free(module->attribute);
    free(module->call);
    free(module->callee_first);
    free(module->unknown);
    for (int i = 0; i < POD_HLO_TABLES; i++) {
        free(module->row[i]);
    }
    free(module->own_text);
    free(module);
}

bool pod_hlo_attribute_of(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                          pod_hlo_attribute_key key, pod_hlo_span *value)
{
    for (uint32_t i = 0; i < instruction->nattributes; i++) {
        const pod_hlo_attribute *attribute = &module->attribute[instruction->attributes + i];
        if (attribute->key == key) {
            *value = attribute->value;
            return true;
        }
    }
    return false;
}

uint32_t pod_hlo_callee(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                        pod_hlo_attribute_key role)
{
    for (uint32_t i = 0; i < instruction->ncalls; i++) {
        const pod_hlo_call *call = &module->call[instruction->calls + i];
        if (call->role == role) {
            return call->computation;
        }
    }
    return POD_HLO_NONE;
}

pod_hlo_span pod_hlo_name_of(const pod_hlo_module *module, uint32_t name)
{
    return module->names.span[name];
}

pod_hlo_scan pod_hlo_part(const pod_hlo_module *module, pod_hlo_span span, pod_error *err)
{
    return pod_hlo_scan_part(module->file, module->text, span, err);
}

#undef pod_hlo_fail_instruction

pod_status pod_hlo_fail_instruction(const pod_hlo_module *module,
                                    const pod_hlo_instruction *instruction, pod_error *err,
                                    const char *format, ...)
{
    char text[POD_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const pod_hlo_span name = pod_hlo_name_of(module, instruction->name);
    const pod_hlo_scan scan = pod_hlo_part(module, name, err);
    return pod_hlo_fail(&scan, instruction->offset, "%.*s: %s", pod_hlo_shown(name),
                        module->text + name.begin, text);
}
