/* SPDX-License-Identifier: Apache-2.0 */
/* HBM traffic of gathered weights and scattered gradients of a transformer. */
#include "make.h"

static const char model[] = "transformer:layers=2,d_model=512,d_ff=2048,heads=8,kv_heads=4,"
                            "head_dim=64,vocab=1024,mlp_matrices=3";

/* Weights of a layer without its two norms: queries and results, keys and values, the MLP. */
enum { LAYER = 2 * 512 * 8 * 64 + 2 * 512 * 4 * 64 + 3 * 512 * 2048, VOCAB = 1024 * 512 };

static int64_t traffic(const char *mesh, const pod_chip_spec *chip, const char *name)
{
    step_case c;
    step_prepare(&c, "v5e:4x4", "none", mesh, model, 16);
    c.request.seq = 64;
    c.request.remat = POD_REMAT_FULL;
    c.request.chip = chip;
    step_build(&c);
    int64_t bytes = 0;
    const pod_program *program = &c.work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        bytes += strcmp(program->ops[i].name, name) == 0 ? program->ops[i].hbm_bytes : 0;
    }
    step_free(&c);
    return bytes;
}

/* Layers are gathered twice (forward and backward) in bf16 and scattered once; norms add less than 1 %. */
Test(gathers, move_as_many_hbm_bytes_as_the_chip_says)
{
    pod_chip_spec chip = {.devices = 1,
                          .gather_hbm_ratio = 3,
                          .scatter_hbm_ratio = 5,
                          .hbm_usable_bytes = INT64_C(1) << 40};
    const int64_t once = traffic("fsdp=16", NULL, "relayout.weights");
    cr_expect_float_eq((double)once / (2.0 * (2 * 2 * LAYER + VOCAB)), 1, 0.01, "%lld",
                       (long long)once);
    cr_expect_eq(traffic("fsdp=16", &chip, "relayout.weights"), 3 * once);
    cr_expect_float_eq((double)traffic("fsdp=16", &chip, "relayout.gradients")
                           / (5 * 2.0 * (2 * LAYER + VOCAB)),
                       1, 0.01);
    chip.devices = 2; /* each has its own copy */
    cr_expect_eq(traffic("fsdp=16", &chip, "relayout.weights"), 6 * once);
}

/* In two stages first over the faster axis, whose 4 pieces are a quarter of all, then over the other. */
Test(gathers, over_two_axes_come_in_one_stage_or_two)
{
    int64_t bytes[2][3];
    for (int two = 0; two < 2; two++) {
        step_case c;
        step_prepare(&c, "v5e:4x4", "none", "fsdp=4,fsdp_transpose=4", model, 16);
        c.request.seq = 64;
        c.request.settings.two_stage_dense = two == 1;
        step_build(&c);
        bytes[two][0] = step_bytes(&c, POD_ALL_GATHER, "fsdp,fsdp_transpose");
        bytes[two][1] = step_bytes(&c, POD_ALL_GATHER, "fsdp");
        bytes[two][2] = step_bytes(&c, POD_ALL_GATHER, "fsdp_transpose");
        step_free(&c);
    }
    cr_assert_gt(bytes[0][0], 0);
    cr_expect_eq(bytes[0][1] + bytes[0][2] + bytes[1][0], 0);
    cr_expect_eq(bytes[1][1], bytes[0][0]);
    cr_expect_eq(4 * bytes[1][2], bytes[1][1]);
}

Test(gathers, of_nothing_move_nothing)
{
    cr_expect_eq(traffic("data=16", NULL, "relayout.weights"), 0);
    cr_expect_eq(traffic("data=16", NULL, "relayout.gradients"), 0);
}
