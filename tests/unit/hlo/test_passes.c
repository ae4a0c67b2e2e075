/* SPDX-License-Identifier: Apache-2.0 */
/* Passes of a training step by op_name, and of what has none by what runs it. */
#include "texts.h"

#include "hlo/passes.h"

static pod_hlo_pass pass_of(const pod_hlo_module *module, const char *name)
{
    pod_hlo_analysis analysis = analysis_of(module);
    pod_hlo_pass *passes = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_hlo_passes_new(&analysis, &passes, &err), POD_OK, "%s", err.text);
    const pod_hlo_pass pass = passes[instruction_of(module, name) - module->instruction];
    free(passes);
    pod_hlo_analysis_fini(&analysis);
    return pass;
}

/* A loop whose body has a copy without op_name, and instructions beside it. */
#define LOOP(MARK)                                                                                 \
    HEAD "%body (q: f32[]) -> f32[] {\n"                                                           \
         "%q = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)\n"                          \
         "%i = s32[]{:T(128)} get-tuple-element(%q), index=0\n"                                    \
         "%one = s32[]{:T(128)} constant(1)\n%j = s32[]{:T(128)} add(%i, %one)\n"                  \
         "%x = f32[8,128]{1,0:T(8,128)} get-tuple-element(%q), index=1\n"                          \
         "%inside = f32[8,128]{1,0:T(8,128)} copy(%x)\n"                                           \
         "%marked = f32[8,128]{1,0:T(8,128)} copy(%x), "                                           \
         "metadata={op_name=\"jit(f)/" MARK "/while/body/rematted_computation/neg\"}\n"            \
         "ROOT %t = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) tuple(%j, %inside)\n}\n"            \
         "%cond (q: f32[]) -> pred[] {\n"                                                          \
         "%q = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)\n"                          \
         "%i = s32[]{:T(128)} get-tuple-element(%q), index=0\n"                                    \
         "%n = s32[]{:T(128)} constant(4)\n"                                                       \
         "ROOT %l = pred[]{:T(128)} compare(%i, %n), direction=LT\n}\n"                            \
         "ENTRY %main (p: f32[]) -> f32[] {\n%z = s32[]{:T(128)} constant(0)\n"                    \
         "%y = f32[8,128]{1,0:T(8,128)} parameter(0)\n"                                            \
         "%plain = f32[8,128]{1,0:T(8,128)} copy(%y)\n"                                            \
         "%named = f32[8,128]{1,0:T(8,128)} copy(%y), metadata={op_name=\"jit(f)/sub\"}\n"         \
         "%in = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) tuple(%z, %plain)\n"                    \
         "ROOT %w = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) while(%in), condition=%cond, "      \
         "body=%body, metadata={op_name=\"jit(f)/" MARK "/while\"}\n}\n"

Test(passes, an_instruction_without_a_name_belongs_to_the_loop_that_runs_it)
{
    pod_hlo_module *backward = module_of(LOOP("transpose(jvp())"));
    cr_expect_eq(pass_of(backward, "inside"), POD_HLO_BACKWARD);
    cr_expect_eq(pass_of(backward, "marked"), POD_HLO_RECOMPUTE, "its own mark comes first");
    cr_expect_eq(pass_of(backward, "plain"), POD_HLO_UPDATE_PASS);
    cr_expect_eq(pass_of(backward, "named"), POD_HLO_UPDATE_PASS);
    pod_hlo_free(backward);
    pod_hlo_module *forward = module_of(LOOP("jvp()"));
    cr_expect_eq(pass_of(forward, "inside"), POD_HLO_FORWARD);
    cr_expect_eq(pass_of(forward, "named"), POD_HLO_UPDATE_PASS);
    pod_hlo_free(forward);
}

/* Nothing is differentiated: there is no update either. */
Test(passes, a_program_without_gradients_is_forward)
{
    pod_hlo_module *module =
        module_of(HEAD "ENTRY %main (p: f32[]) -> f32[] {\n"
                       "%p = f32[8,128]{1,0:T(8,128)} parameter(0)\n"
                       "%plain = f32[8,128]{1,0:T(8,128)} copy(%p)\n"
                       "ROOT %named = f32[8,128]{1,0:T(8,128)} copy(%plain), "
                       "metadata={op_name=\"jit(f)/while/body/dot_general\"}\n}\n");
    cr_expect_eq(pass_of(module, "plain"), POD_HLO_FORWARD);
    cr_expect_eq(pass_of(module, "named"), POD_HLO_FORWARD);
    pod_hlo_free(module);
}

Test(passes, have_the_names_of_the_tables)
{
    cr_expect_str_eq(pod_hlo_pass_name(POD_HLO_FORWARD), "forward");
    cr_expect_str_eq(pod_hlo_pass_name(POD_HLO_RECOMPUTE), "recompute");
    cr_expect_str_eq(pod_hlo_pass_name(POD_HLO_BACKWARD), "backward");
    cr_expect_str_eq(pod_hlo_pass_name(POD_HLO_UPDATE_PASS), "update");
}
