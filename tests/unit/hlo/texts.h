/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/hlo/texts.h  Small programs and the 32 real ones of validation/hlo. */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hlo/facts.h"

/** Module of a text that must be right. */
static inline pod_hlo_module *module_of(const char *text)
{
    pod_hlo_module *module = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_hlo_parse("a.txt", text, strlen(text), NULL, &module, &err), POD_OK,
                 "%d:%d: %s", err.line, err.column, err.text);
    return module;
}

/** Analysis of a module that must be right. */
static inline pod_hlo_analysis analysis_of(const pod_hlo_module *module)
{
    pod_hlo_analysis analysis;
    pod_error err = {0};
    cr_assert_eq(pod_hlo_analysis_init(&analysis, module, NULL, &err), POD_OK, "%d:%d: %s",
                 err.line, err.column, err.text);
    return analysis;
}

/** What parse, analysis and facts say of a text. */
static inline pod_status status_of(const char *text, size_t size, pod_error *err)
{
    pod_hlo_module *module = NULL;
    pod_hlo_analysis analysis;
    pod_hlo_facts facts;
    *err = (pod_error){0};
    pod_status st = pod_hlo_parse("a.txt", text, size, NULL, &module, err);
    if (st != POD_OK) {
        return st;
    }
    st = pod_hlo_analysis_init(&analysis, module, NULL, err);
    if (st == POD_OK) {
        st = pod_hlo_facts_init(&facts, &analysis, err);
        if (st == POD_OK) {
            pod_hlo_facts_fini(&facts);
        }
        pod_hlo_analysis_fini(&analysis);
    }
    pod_hlo_free(module);
    return st;
}

/** The instruction of this name in a module; names that tests ask for are unique. */
static inline const pod_hlo_instruction *instruction_of(const pod_hlo_module *module,
                                                        const char *name)
{
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        if (pod_hlo_is(module->text, pod_hlo_name_of(module, instruction->name), name)) {
            return instruction;
        }
    }
    cr_assert_fail("no instruction %s", name);
    return NULL;
}

/** Contents of validation/hlo/NAME.hlo.gz. */
static inline pod_text real_text(const char *name)
{
    char command[512];
    char buf[1 << 16];
    pod_text text = {0};
    snprintf(command, sizeof command, "gzip -dc '%s/validation/hlo/%s.hlo.gz'", POD_SOURCE_DIR,
             name);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    for (size_t n = fread(buf, 1, sizeof buf, pipe); n > 0; n = fread(buf, 1, sizeof buf, pipe)) {
        pod_text_append(&text, buf, n);
    }
    cr_assert_eq(pclose(pipe), 0, "%s", command);
    cr_assert_not(text.out_of_memory);
    return text;
}

#define HEAD "HloModule m, is_scheduled=true, num_partitions=8\n"
