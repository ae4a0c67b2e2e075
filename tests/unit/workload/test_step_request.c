/* SPDX-License-Identifier: Apache-2.0 */
#include "make.h"

#include "workload/build/product.h"
#include "workload/fit.h"

static const char *const small = "mlp:layers=2,d_model=512,d_ff=2048";

static int count_ops(const step_case *c, int32_t stage, pod_op_kind kind, const char *name)
{
    const pod_program *program = &c->work.programs.stages[stage];
    int count = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        count += program->ops[i].kind == kind
                 && (name == NULL || strcmp(program->ops[i].name, name) == 0);
    }
    return count;
}

static double matmul_flops(const step_case *c)
{
    double flops = 0;
    for (int32_t s = 0; s < c->work.programs.nstages; s++) {
        const pod_program *program = &c->work.programs.stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            if (op->kind == POD_OP_MATMUL) {
                flops += 2.0 * (double)op->m * (double)op->k * (double)op->n * (double)op->count;
            }
        }
    }
    return flops * c->slice.nchips / c->work.programs.nstages;
}

/* Every layout does the model's FLOPs, no more: 6 per weight and row. */
Test(step_request, products_do_the_flops_of_the_model)
{
    static const char *const meshes[] = {"data=64",
                                         "fsdp=64",
                                         "tensor=64",
                                         "fsdp=16,tensor=4",
                                         "data=4,fsdp=4,tensor=4",
                                         "pipeline=2,data=32",
                                         "sequence=4,data=16"};
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        for (int32_t parts = 1; parts <= 4; parts *= 2) {
            step_case c;
            step_prepare(&c, "v5p:4x4x4", "xyz", meshes[i], small, 512);
            c.request.microbatches = parts;
            step_build(&c);
            cr_assert_float_eq(matmul_flops(&c), c.work.model_flops, 1, "%s", meshes[i]);
            step_free(&c);
        }
    }
}

/* WP-036 of the scaling book's problems (transformers.md, question 2): A[B_X, D_Y] · W[D_Y, F] on a mesh of
 * X = 4, Y = 8, Z = 4 does 2BDF/(XY) FLOPs a chip; Z does the same again. */
Test(step_request, a_product_is_cut_by_the_axes_of_its_operands)
{
    enum { B = 64, D = 128, F = 32 };
    const int64_t a_size[2] = {B, D};
    const int64_t w_size[2] = {D, F};
    const pod_axis_list whole = {0};
    const pod_axis_list x = {.count = 1, .axis = {POD_MESH_DATA}};
    const pod_axis_list y = {.count = 1, .axis = {POD_MESH_TENSOR}};
    const pod_slice slice = slice_from("v5p:4x8x4", "xyz");
    pod_mesh mesh = mesh_on(&slice, "data=4,tensor=8,sequence=4", "", false);
    pod_work_layout layout;
    pod_programs programs = {.nstages = 1, .stages = calloc(1, sizeof(pod_program))};
    pod_tensors tensors = {0};
    pod_build build;
    pod_error err = {0};
    pod_program_init(&programs.stages[0], 0);
    cr_assert_eq(pod_work_layout_init(&layout, &mesh, &slice, &err), POD_OK);
    pod_build_init(&build, &layout, &programs, &programs.stages[0], &tensors, &err);
    const pod_sharding a_cut = pod_build_sharding("A", "B", x, "D", y);
    const pod_sharding w_cut = pod_build_sharding("W", "D", y, "F", whole);
    const pod_array a =
        pod_build_array(&build, "a", POD_MEMORY_INPUT, true, POD_DTYPE_BF16, &a_cut, a_size);
    const pod_array w =
        pod_build_array(&build, "w", POD_MEMORY_WEIGHTS, true, POD_DTYPE_BF16, &w_cut, w_size);
    const pod_product product = {.phase = "fwd",
                                 .name = "c",
                                 .a = &a,
                                 .b = &w,
                                 .result = pod_build_sharding("C", "B", x, "F", whole),
                                 .kind = POD_MEMORY_ACTIVATIONS,
                                 .sum_in_place = true};
    (void)pod_build_matmul(&build, &product);
    cr_assert_eq(build.st, POD_OK, "%s", err.text);
    const pod_op *op = &programs.stages[0].ops[0];
    cr_assert_eq(2 * op->m * op->k * op->n, 2 * B * D * F / (4 * 8));
    cr_assert_eq(programs.stages[0].nops, 2);
    cr_assert_eq(programs.stages[0].ops[1].op, POD_ALL_REDUCE);
    cr_assert_str_eq(programs.groups[0].axes, "tensor");
    cr_assert_eq(pod_programs_finish(&programs, &err), POD_OK, "%s", err.text);
    pod_build_fini(&build);
    pod_programs_fini(&programs);
    pod_mesh_fini(&mesh);
}

/* A decomposed product moves the bytes of the gather and the scatter that it replaces: n - 1 of n pieces. */
Test(step_request, collective_matmuls_pass_pieces_on)
{
    for (int32_t n = 2; n <= 64; n *= 2) {
        char mesh[64];
        step_case c;
        snprintf(mesh, sizeof mesh, "data=%d,tensor=%d", 64 / (int)n, (int)n);
        step_prepare(&c, "v5p:4x4x4", "xyz", mesh, small, 512);
        c.request.collective_matmul = true;
        step_build(&c);
        const int64_t activations = INT64_C(512) * 512 * 2 / (64 / n);
        cr_assert_eq(step_bytes(&c, POD_ALL_REDUCE, "tensor"), 0);
        cr_assert_eq(step_bytes(&c, POD_PERMUTE, "tensor"), 2 * 4 * activations * (n - 1) / n);
        cr_assert_float_eq(matmul_flops(&c), c.work.model_flops, 1, "%s", mesh);
        step_free(&c);
    }
}

/* Pieces of A come forward and those of dA go back, m/rows · k in bf16 each. */
Test(step_request, a_matmul_passes_pieces_on)
{
    for (int32_t n = 2; n <= 64; n *= 2) {
        char mesh[64];
        step_case c;
        snprintf(mesh, sizeof mesh, "data=%d,tensor=%d", 64 / (int)n, (int)n);
        step_prepare(&c, "v5p:4x4x4", "xyz", mesh, "matmul:m=512,k=128,n=256", 0);
        c.request.collective_matmul = true;
        step_build(&c);
        const int64_t rows = INT64_C(512) * 128 * 2 / (64 / n);
        cr_assert_eq(step_bytes(&c, POD_ALL_REDUCE, "tensor"), 0);
        cr_assert_eq(step_bytes(&c, POD_PERMUTE, "tensor"), 2 * rows * (n - 1) / n);
        cr_assert_float_eq(matmul_flops(&c), c.work.model_flops, 1, "%s", mesh);
        step_free(&c);
    }
}

Test(step_request, one_chip_needs_no_collective)
{
    step_case c;
    step_prepare(&c, "v5p:1x1x1", "none", "data=1", small, 64);
    step_build(&c);
    cr_assert_eq(count_ops(&c, 0, POD_OP_COLLECTIVE, NULL), 0);
    cr_assert_eq(c.work.programs.ngroups, 0);
    cr_assert_eq(count_ops(&c, 0, POD_OP_MATMUL, NULL), 2 * 6);
    step_free(&c);
}

/* Use u is gathered once use u - 1 - ahead is over. */
Test(step_request, gathers_wait_for_the_window)
{
    for (int32_t ahead = 0; ahead <= 3; ahead++) {
        step_case c;
        int32_t gather[8];
        int32_t reader[8];
        int ngathers = 0;
        step_prepare(&c, "v5p:4x4x4", "xyz", "fsdp=64", small, 512);
        c.request.mode = POD_STEP_FORWARD;
        c.request.gather_ahead = ahead;
        step_build(&c);
        const pod_program *program = &c.work.programs.stages[0];
        for (int32_t i = 0; i < program->nops; i++) {
            if (program->ops[i].kind == POD_OP_COLLECTIVE) {
                gather[ngathers++] = i;
            }
        }
        cr_assert_eq(ngathers, 4);
        for (int u = 0; u < ngathers; u++) {
            for (int32_t i = 0; i < program->nops; i++) {
                if (program->ops[i].in[1] == program->ops[gather[u]].out) {
                    reader[u] = i;
                }
            }
            const pod_op *op = &program->ops[gather[u]];
            cr_assert_eq(op->ndeps, u > ahead ? 1 : 0);
            if (u > ahead) {
                cr_assert_eq(program->deps[op->first_dep], reader[u - 1 - ahead]);
            }
        }
        step_free(&c);
    }
}

Test(step_request, gradients_are_summed_over_data_after_the_last_microbatch)
{
    step_case c;
    step_prepare(&c, "v5p:4x4x4", "xyz", "data=16,fsdp=4", small, 512);
    c.request.microbatches = 4;
    step_build(&c);
    const int64_t weights = 2 * 2 * 512 * 2048 * 2;
    cr_assert_eq(step_bytes(&c, POD_ALL_GATHER, "fsdp"), 4 * 2 * weights);
    cr_assert_eq(step_bytes(&c, POD_REDUCE_SCATTER, "fsdp"), 4 * weights);
    cr_assert_eq(step_bytes(&c, POD_ALL_REDUCE, "data"), weights / 4);
    step_free(&c);
}

/* Narayanan et al.: stage s of S runs S - 1 - s forwards ahead, then alternates. */
Test(step_request, pipelines_run_one_forward_one_backward)
{
    step_case c;
    char order[2][32] = {"", ""};
    step_prepare(&c, "v5p:4x4x4", "xyz", "pipeline=2,data=32", small, 512);
    c.request.microbatches = 4;
    step_build(&c);
    cr_assert_eq(c.work.programs.nstages, 2);
    for (int s = 0; s < 2; s++) {
        const pod_program *program = &c.work.programs.stages[s];
        const char *forward = "fwd.matmul.X";
        const char *backward = "bwd.matmul.dX";
        for (int32_t i = 0; i < program->nops; i++) {
            if (strcmp(program->ops[i].name, forward) == 0) {
                strcat(order[s], "F");
            } else if (strcmp(program->ops[i].name, backward) == 0) {
                strcat(order[s], "B");
            }
        }
    }
    cr_assert_str_eq(order[0], "FFBFBFBB");
    cr_assert_str_eq(order[1], "FBFBFBFB");
    for (int32_t chip = 0; chip < 64; chip++) {
        const int32_t next = pod_programs_stage_chip(&c.work.programs, chip, 1);
        if (c.work.programs.stage_of[chip] == 0) {
            cr_assert_eq(c.work.programs.stage_of[next], 1);
            cr_assert_eq(pod_programs_stage_chip(&c.work.programs, next, 0), chip);
        }
    }
    step_free(&c);
}

Test(step_request, adam_keeps_f32_weights_and_two_moments)
{
    step_case c;
    step_prepare(&c, "v5p:4x4x4", "xyz", "fsdp=64", small, 512);
    c.request.optimizer = POD_OPTIMIZER_ADAM;
    step_build(&c);
    const int64_t weights = 2 * 2 * 512 * 2048 / 64;
    cr_assert_eq(c.work.memory.by_kind[POD_MEMORY_OPTIMIZER], 8 * weights);
    cr_assert_geq(c.work.memory.by_kind[POD_MEMORY_WEIGHTS], 4 * weights);
    step_free(&c);
}

static void expect_refused(const char *mesh, const char *model, int64_t batch, int32_t parts,
                           pod_status status, const char *says)
{
    step_case c;
    pod_error err = {0};
    step_prepare(&c, "v5p:4x4x4", "xyz", mesh, model, batch);
    c.request.microbatches = parts;
    cr_assert_eq(pod_step_build(&c.request, &c.work, &err), status, "%s: %s", mesh, err.text);
    cr_assert(strstr(err.text, says) != NULL, "%s: %s", mesh, err.text);
    step_free(&c);
}

Test(step_request, what_does_not_divide_is_named_with_its_divisors)
{
    expect_refused("tensor=64", "mlp:layers=2,d_model=512,d_ff=96", 512, 1, POD_E_INVALID,
                   "d_ff = 96 does not divide over tensor=64; its divisors are 1, 2, 3, 4");
    expect_refused("fsdp=64", "mlp:layers=2,d_model=96,d_ff=512", 512, 1, POD_E_INVALID,
                   "d_model = 96 does not divide over fsdp=64");
    expect_refused("data=64", small, 500, 1, POD_E_INVALID,
                   "rows = 500 does not divide over data=64");
    expect_refused("pipeline=4,data=16", small, 512, 1, POD_E_INVALID,
                   "layers = 2 does not divide over pipeline=4; its divisors are 1, 2");
    expect_refused("data=64", small, 512, 3, POD_E_INVALID,
                   "8 rows a chip do not divide into 3 microbatches");
    expect_refused("expert=64", small, 512, 1, POD_E_INVALID, "expert=64 has no experts");
    expect_refused("data=64", small, 0, 1, POD_E_USAGE, "needs a batch");
    expect_refused("data=64", "matmul:m=64,k=64,n=64", 128, 1, POD_E_USAGE, "m = 64");
    expect_refused("data=64", "matmul:m=100,k=64,n=64", 0, 1, POD_E_INVALID, "m = 100 does not");
}

static pod_chip_spec chip_of(int64_t usable_bytes)
{
    return (pod_chip_spec){.name = "v5p", .hbm_usable_bytes = usable_bytes};
}

static void expect_advice(const char *mesh, int64_t batch, int64_t usable_bytes, const char *says)
{
    step_case c;
    pod_error err = {0};
    const pod_chip_spec chip = chip_of(usable_bytes);
    step_prepare(&c, "v5p:4x4x4", "xyz", mesh, "mlp:layers=4,d_model=4096,d_ff=16384", batch);
    step_build(&c);
    cr_assert_eq(pod_step_fits(&c.request, &c.work, &chip, &err), POD_E_NOFIT);
    cr_assert(strstr(err.text, says) != NULL, "%s", err.text);
    step_free(&c);
}

Test(step_request, what_does_not_fit_is_refused_with_a_change_that_fits)
{
    expect_advice("data=64", 32768, INT64_C(1) << 31, "it fits with --mesh data=32,fsdp=2");
    expect_advice("fsdp=64", 32768 * 64, INT64_C(2) << 30, "it fits with --microbatches");
    expect_advice("fsdp=64", 32768, INT64_C(1) << 24, "no layout of this slice fits");
}

Test(step_request, what_fits_passes)
{
    step_case c;
    step_prepare(&c, "v5p:4x4x4", "xyz", "data=64", small, 512);
    step_build(&c);
    pod_chip_spec chip = chip_of(c.work.memory.peak_bytes);
    cr_assert_eq(pod_step_fits(&c.request, &c.work, &chip, NULL), POD_OK);
    chip.hbm_usable_bytes--;
    cr_assert_eq(pod_step_fits(&c.request, &c.work, &chip, NULL), POD_E_NOFIT);
    step_free(&c);
}

Test(step_request, kinds_of_memory_add_up)
{
    static const char *const meshes[] = {"data=64", "fsdp=64", "tensor=64", "fsdp=16,tensor=4"};
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        step_case c;
        int64_t sum = 0;
        step_prepare(&c, "v5p:4x4x4", "xyz", meshes[i], small, 512);
        step_build(&c);
        for (int k = 0; k < POD_MEMORY_KINDS; k++) {
            sum += c.work.memory.by_kind[k];
        }
        cr_assert_eq(sum, c.work.memory.peak_bytes);
        step_free(&c);
    }
}

Test(step_request, figures_follow_from_the_time)
{
    step_case c;
    step_prepare(&c, "v5p:4x4x4", "xyz", "data=64", small, 512);
    step_build(&c);
    pod_chip_spec chip = chip_of(1000 * c.work.memory.peak_bytes);
    chip.peak_ops_per_s[POD_DTYPE_BF16] = 4e14;
    pod_step_figures figures;
    pod_step_figures_get(&c.request, &c.work, &chip, POD_PS_PER_MS, &figures);
    cr_assert_float_eq(figures.step_time_s, 1e-3, 1e-15);
    cr_assert_float_eq(figures.tokens_per_s_per_chip, 8000, 1e-6);
    cr_assert_float_eq(figures.model_tflops_per_chip, 6.0 * 4 * 512 * 2048 * 8 / 1e-3 / 1e12, 1e-9);
    cr_assert_float_eq(figures.mfu_frac, figures.model_tflops_per_chip / 400, 1e-12);
    cr_assert_float_eq(figures.hbm_frac, 1e-3, 1e-12);
    step_free(&c);
}

Test(step_request, all_layouts_are_listed_once)
{
    pod_logical_mesh *list = NULL;
    int count = 0;
    pod_error err = {0};
    const pod_slice slice = slice_from("v5p:4x4x4", "xyz");
    cr_assert_eq(pod_step_layouts(&slice, false, 0, &list, &count, &err), POD_OK);
    /* powers of 4 that multiply to 64: 4^a · 4^b · 4^c with a + b + c = 3 */
    cr_assert_eq(count, 10);
    free(list);
    cr_assert_eq(pod_step_layouts(&slice, true, 0, &list, &count, &err), POD_OK);
    cr_assert_eq(count, 28); /* powers of 2: a + b + c = 6 */
    for (int i = 0; i < count; i++) {
        for (int a = 0; a < list[i].naxes; a++) {
            cr_assert_gt(list[i].size[a], 1);
        }
    }
    free(list);
}
