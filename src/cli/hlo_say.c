/* SPDX-License-Identifier: Apache-2.0 */
/* What `podsim hlo` says of a text on stderr. */
#include "cli/hlo.h"

static void say_unknown_opcodes(const pod_cli *cli, const pod_hlo_module *module)
{
    for (uint32_t i = 0; i < module->nunknown; i++) {
        const pod_hlo_span name = pod_hlo_name_of(module, module->unknown[i]);
        pod_cli_warn(cli, "unknown opcode %.*s: it counts as elementwise", pod_hlo_shown(name),
                     module->text + name.begin);
    }
}

static void say_branches(const pod_cli *cli, const pod_hlo_analysis *analysis)
{
    const pod_hlo_module *module = analysis->module;
    for (uint32_t i = 0; i < analysis->nbranches; i++) {
        const pod_hlo_branch *branch = &analysis->branch[i];
        const pod_hlo_instruction *conditional = &module->instruction[branch->instruction];
        const pod_hlo_span name = pod_hlo_name_of(module, conditional->name);
        pod_cli_say(cli, "%.*s takes branch %d of %u%s", pod_hlo_shown(name),
                    module->text + name.begin, (int)branch->taken, conditional->noperands - 1,
                    branch->chosen ? "" : ", the dearest; --branch chooses another");
    }
}

void pod_hlo_say_text(const pod_cli *cli, const pod_hlo_inputs *inputs,
                      const pod_hlo_analysis *analysis, int64_t argument_bytes)
{
    if (!analysis->module->tiled) {
        pod_cli_warn(cli, "no tile T(...) in the whole text; was it compiled for a TPU?");
    }
    if (!analysis->module->scheduled) {
        pod_cli_warn(cli,
                     "the text isn't scheduled: its instructions run in the order of the text; "
                     "a compiler would overlap and order them otherwise");
    }
    say_unknown_opcodes(cli, analysis->module);
    say_branches(cli, analysis);
    if (inputs->known.argument_bytes >= 0 && inputs->known.argument_bytes != argument_bytes) {
        pod_cli_warn(cli, "%s says that the arguments take %lld bytes; in the text they take %lld",
                     inputs->sidecar.path, (long long)inputs->known.argument_bytes,
                     (long long)argument_bytes);
    }
}
