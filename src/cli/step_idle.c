/* SPDX-License-Identifier: Apache-2.0 */
/* Options that a step has no use for. */
#include "cli/step.h"

#include <stdio.h>

enum { WHY_MAX = 48 };

typedef struct idle_option {
    const char *name;
    bool idle;
    const char *why;
    bool of_recipes; /* one that a recipe may have given */
} idle_option;

static bool lacks(const int32_t *size, pod_mesh_axis axis)
{
    return size != NULL && size[axis] == 1;
}

void pod_step_idle_say(const pod_cli *cli, const pod_step_texts *texts, bool by_recipe,
                       const pod_experiment_step_request *request, const int32_t *size, int nslices,
                       int data_slices)
{
    const pod_step_mode mode = request->mode;
    const bool trains = mode == POD_STEP_TRAIN;
    const bool infers = mode > POD_STEP_FORWARD;
    const bool whole = lacks(size, POD_MESH_FSDP) && lacks(size, POD_MESH_FSDP_TRANSPOSE);
    static const char *const no_sequence = "the mesh has no sequence axis";
    char in_mode[WHY_MAX];
    (void)snprintf(in_mode, sizeof in_mode, "the step is of --mode %s", pod_step_mode_name(mode));
    /* clang-format off */
    const idle_option options[] = {
        {"optimizer", !trains, in_mode, true},
        {"remat", !trains, in_mode, true},
        {"vocab-tiling", infers, in_mode, false},
        {"mfu", mode == POD_STEP_DECODE, in_mode, false},
        {"gather-ahead", infers, in_mode, true},
        {"gather-ahead", !infers && whole, "the mesh has no fsdp axis", true},
        {"context-parallel", lacks(size, POD_MESH_SEQUENCE), no_sequence, false},
        {"context-balance", lacks(size, POD_MESH_SEQUENCE), no_sequence, false},
        {"expert-balance", lacks(size, POD_MESH_EXPERT), "the mesh has no expert axis", false},
        {"quantization", request->dtype == POD_DTYPE_BF16, "--dtype is bf16", false},
        {"dcn-overlap", !trains, in_mode, false},
        {"dcn-overlap", trains && nslices == 1, "there is one slice", false},
        {"dcn-overlap", trains && nslices > 1 && data_slices == 1, "data goes over no slices", false},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const idle_option *option = &options[i];
        if (option->idle && !(by_recipe && option->of_recipes)
            && pod_step_text(texts, option->name) != NULL) {
            pod_cli_say(cli, "--%s changes nothing: %s", option->name, option->why);
        }
    }
    if (request->collective_matmul && lacks(size, POD_MESH_TENSOR)) {
        pod_cli_say(cli, "--collective-matmul on changes nothing: the mesh has no tensor axis");
    }
}
