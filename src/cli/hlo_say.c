/* SPDX-License-Identifier: Apache-2.0 */
/* What `podsim hlo` says of a text on stderr. */
#include "cli/hlo.h"
#include "hlo/attributes.h"

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

/* Sizes of groups that only a run would tell: all is taken, which is an upper bound. */
static void say_ragged(const pod_cli *cli, const pod_hlo_analysis *analysis)
{
    const pod_hlo_module *module = analysis->module;
    const pod_hlo_collectives *all = &analysis->collectives;
    int64_t sum = 0;
    for (uint32_t i = 0; i < analysis->matmul_first[module->ncomputations]; i++) {
        if (analysis->matmul[i].at_most) {
            const pod_hlo_span name =
                pod_hlo_name_of(module, module->instruction[analysis->matmul[i].instruction].name);
            pod_cli_say(cli,
                        "%.*s: the sizes of its groups aren't in the text; taken as full, an "
                        "upper bound",
                        pod_hlo_shown(name), module->text + name.begin);
        }
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const pod_hlo_instruction *inner = &module->instruction[all->collective[i].inner];
        if (inner->opcode == POD_HLO_RAGGED_ALL_TO_ALL
            && !pod_hlo_constant_sum(module, pod_hlo_operand(module, inner, 3), &sum)) {
            pod_cli_say(cli, "ragged-all-to-alls are taken as full, an upper bound");
            return;
        }
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
    say_ragged(cli, analysis);
    if (inputs->known.argument_bytes >= 0 && inputs->known.argument_bytes != argument_bytes) {
        pod_cli_warn(cli, "%s says that the arguments take %lld bytes; in the text they take %lld",
                     inputs->sidecar.path, (long long)inputs->known.argument_bytes,
                     (long long)argument_bytes);
    }
}
