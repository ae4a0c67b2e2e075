/* SPDX-License-Identifier: Apache-2.0 */
/* Experts: rows through HBM, matmuls of all experts, what runs again; quantised matmuls; sums over slices. */
#include "make.h"
#include "tables.h"

#include "mesh/search.h"
#include "workload/fit.h"

#include <stdlib.h>

static const char experts[] =
    "transformer:layers=2,d_model=512,d_ff=2048,heads=8,kv_heads=4,head_dim=64,"
    "vocab=1024,mlp_matrices=3,experts=8,top_k=2,moe_d_ff=1024";
static const char dense[] =
    "transformer:layers=2,d_model=512,d_ff=2048,heads=8,kv_heads=4,head_dim=64,"
    "vocab=1024,mlp_matrices=3";
enum { TOKENS = 8192, ROWS = 2 * TOKENS, LAYERS = 2, D = 512 };

static void prepare(step_case *c, const char *model, pod_remat remat)
{
    step_prepare(c, "v5p:2x2x2", "none", "fsdp=8", model, 64);
    c->request.seq = 1024;
    c->request.remat = remat;
}

/** HBM bytes of the ops whose name has a part. */
static int64_t bytes_of(const step_case *c, const char *part)
{
    const pod_program *program = &c->work.programs.stages[0];
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        bytes += strstr(program->ops[i].name, part) != NULL ? program->ops[i].hbm_bytes : 0;
    }
    return bytes;
}

static int grouped_count(const step_case *c, pod_grouped_op op)
{
    const pod_program *program = &c->work.programs.stages[0];
    int count = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_grouped_args *args = program->ops[i].grouped;
        count += args != NULL && args->op == op;
    }
    return count;
}

/* Of R rows of d elements: send 3, return 5 (3 in bf16); the same again under full, 2 of a kept down projection;
 * backward 10 (7). */
Test(experts, rows_move_through_hbm)
{
    static const struct {
        pod_remat remat;
        bool narrow;
        int passes;
    } rows[] = {
        {POD_REMAT_FULL,    false, 3 + 5 + 3 + 5 + 10},
        {POD_REMAT_FULL,    true,  3 + 3 + 3 + 3 + 7 },
        {POD_REMAT_MINIMAL, false, 3 + 5 + 3 + 2 + 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        step_case c;
        prepare(&c, experts, rows[i].remat);
        c.request.settings.narrow_weight_sum = rows[i].narrow;
        step_build(&c);
        cr_expect_eq(bytes_of(&c, ".rows") + bytes_of(&c, ".send.results"),
                     (int64_t)rows[i].passes * LAYERS * ROWS * D * 2, "%zu", i);
        step_free(&c);
    }
}

/* Gate, up and down: forward 3 kernels a layer, 3 again under full, none under minimal; 3 by rows, 3 by weights. */
Test(experts, kernels_of_all_experts)
{
    static const struct {
        pod_remat remat;
        int forward;
    } rows[] = {
        {POD_REMAT_FULL,    6},
        {POD_REMAT_MINIMAL, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        step_case c;
        prepare(&c, experts, rows[i].remat);
        step_build(&c);
        cr_expect_eq(grouped_count(&c, POD_GROUPED_FORWARD), LAYERS * rows[i].forward);
        cr_expect_eq(grouped_count(&c, POD_GROUPED_ROWS), LAYERS * 3);
        cr_expect_eq(grouped_count(&c, POD_GROUPED_WEIGHTS), LAYERS * 3);
        step_free(&c);
    }
}

/* With 1.01 of its fair share each of 8 experts has room for ceil(16548 / 8) = 2069 of 16384 · 1.01 rows, rounded up:
 * matmuls of up [2069, 512] · [512, 1024], of its rows' derivatives [2069, 1024] · [1024, 512], of its weights'
 * [512, 2069] · [2069, 1024], one for each expert; none is grouped. */
Test(experts, with_a_capacity_all_have_as_many_rows)
{
    static const struct {
        const char *name;
        int64_t size[3];
    } want[] = {
        {"fwd.matmul.experts.in",   {2069, 512, 1024}},
        {"bwd.matmul.experts.in",   {2069, 1024, 512}},
        {"bwd.matmul.experts.din",  {512, 2069, 1024}},
        {"fwd.matmul.experts.out",  {2069, 1024, 512}},
        {"bwd.matmul.experts.out",  {2069, 512, 1024}},
        {"bwd.matmul.experts.dout", {1024, 2069, 512}},
    };
    step_case c;
    prepare(&c, experts, POD_REMAT_MINIMAL);
    c.model.capacity_percent = 101;
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    for (size_t w = 0; w < sizeof want / sizeof want[0]; w++) {
        int found = 0;
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            if (strcmp(op->name, want[w].name) == 0) {
                found++;
                cr_expect_eq(op->m, want[w].size[0], "%s: %ld rows", op->name, (long)op->m);
                cr_expect_eq(op->k, want[w].size[1], "%s: k %ld", op->name, (long)op->k);
                cr_expect_eq(op->n, want[w].size[2], "%s: n %ld", op->name, (long)op->n);
                cr_expect_eq(op->count, 8, "%s: %ld of them", op->name, (long)op->count);
                cr_expect_null(op->grouped, "%s", op->name);
            }
        }
        cr_expect_geq(found, LAYERS, "%s: %d", want[w].name, found);
    }
    step_free(&c);
}

/* MaxText's tiles: by the names of its keys, which are widths of the model and of the expert. */
Test(experts, tiles_go_by_name_or_by_position)
{
    static const pod_expert_tile named = {.rows = 256, .embed = 512, .mlp = 1024};
    static const pod_expert_tile placed = {.rows = 256, .embed = 1024, .mlp = 512};
    step_case c;
    prepare(&c, experts, POD_REMAT_MINIMAL);
    for (int op = 0; op < 3; op++) {
        c.request.settings.expert_tile[0][op] = named;
        c.request.settings.expert_tile[1][op] =
            placed; /* k = 1024, n = 512 of down, in this order */
    }
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_grouped_args *args = program->ops[i].grouped;
        const bool up = strstr(program->ops[i].name, ".in") || strstr(program->ops[i].name, ".din");
        if (args != NULL && (up || args->op == POD_GROUPED_FORWARD)) {
            cr_expect_eq(args->tile.k, args->k, "%s", program->ops[i].name);
            cr_expect_eq(args->tile.n, args->n, "%s", program->ops[i].name);
        }
    }
    step_free(&c);
}

/* The busiest chip of 4 has 1.5 times the mean rows. */
Test(experts, the_busiest_chip_decides)
{
    int64_t rows[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        step_case c;
        step_prepare(&c, "v5p:2x2x2", "none", "expert=4,fsdp=2", experts, 64);
        c.request.seq = 1024;
        c.request.remat = POD_REMAT_FULL;
        c.request.settings.expert_balance = i == 1 ? 1.5 : 0;
        step_build(&c);
        const pod_program *program = &c.work.programs.stages[0];
        for (int32_t o = 0; o < program->nops; o++) {
            const pod_grouped_args *args = program->ops[o].grouped;
            rows[i] += args != NULL ? args->m : 0;
        }
        step_free(&c);
    }
    cr_assert_eq(2 * rows[1], 3 * rows[0]);
}

/* compare tries expert=2, 4 and 8 of 8 experts, and only divisors. */
Test(experts, layouts_have_their_axis)
{
    const pod_slice slice = slice_from("v5p:2x2x4", "none");
    static const int64_t counts[3] = {8, 4, 0};
    static const int32_t largest[3] = {8, 4, 1};
    for (int i = 0; i < 3; i++) {
        pod_logical_mesh *list = NULL;
        int count = 0;
        int32_t most = 1;
        pod_error err = {0};
        cr_assert_eq(pod_step_layouts(&slice, false, counts[i], &list, &count, &err), POD_OK);
        for (int m = 0; m < count; m++) {
            for (int a = 0; a < list[m].naxes; a++) {
                if (list[m].axis[a] == POD_MESH_EXPERT && list[m].size[a] > most) {
                    most = list[m].size[a];
                }
            }
        }
        free(list);
        cr_expect_eq(most, largest[i]);
    }
}

/* A pass of an element: 3 bytes with fixed scales, 5 where the largest value is found first. Of a layer forward: inputs
 * of qkv, out, up, down; again but down; as much in the backward pass, with gradients twice. */
Test(quantised, arrays_pass_through_hbm_before_their_matmuls)
{
    static const struct {
        pod_dtype dtype;
        pod_quantization how;
        int bytes;
    } rows[] = {
        {POD_DTYPE_BF16, POD_QUANTIZATION_DYNAMIC, 0},
        {POD_DTYPE_INT8, POD_QUANTIZATION_DEFAULT, 5},
        {POD_DTYPE_INT8, POD_QUANTIZATION_STATIC,  3},
        {POD_DTYPE_FP8,  POD_QUANTIZATION_DEFAULT, 3},
        {POD_DTYPE_FP8,  POD_QUANTIZATION_DYNAMIC, 5},
    };
    const int64_t qkv = 16 * 64;
    const int64_t f = 2048;
    const int64_t forward = D + D + D + f;
    const int64_t again = D + D + D;
    const int64_t gradients = 2 * (D + 2 * f + D + qkv);
    const int64_t weights = D * (qkv + D) + 3 * D * f;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        step_case c;
        prepare(&c, dense, POD_REMAT_FULL);
        c.request.dtype = rows[i].dtype;
        c.request.settings.quantize_weights = rows[i].how;
        c.request.settings.quantize_activations = rows[i].how;
        step_build(&c);
        cr_expect_eq(bytes_of(&c, "quantize"),
                     LAYERS * rows[i].bytes
                         * (TOKENS * (forward + again + forward + gradients) + 2 * weights),
                     "%zu", i);
        step_free(&c);
    }
}

/* The head and the embedding stay in bf16. */
Test(quantised, the_ends_are_not)
{
    step_case c;
    prepare(&c, dense, POD_REMAT_FULL);
    c.request.dtype = POD_DTYPE_INT8;
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (op->kind == POD_OP_MATMUL) {
            cr_expect_eq(op->dtype, op->layer < 0 ? POD_DTYPE_BF16 : POD_DTYPE_INT8, "%s",
                         op->name);
        }
    }
    step_free(&c);
}

/** Number of the first op over data, of the last of a layer's backward pass. */
static void sums_of(bool after, int32_t *first_sum, int32_t *last_product)
{
    step_case c;
    step_prepare_slices(&c, "2*v5e:2x2", "none", "fsdp=4", "data=2", dense, 64);
    c.request.seq = 1024;
    c.request.remat = POD_REMAT_FULL;
    c.request.settings.dcn_after = after;
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    *first_sum = POD_OP_NONE;
    for (int32_t i = 0; i < program->nops; i++) {
        if (strncmp(program->ops[i].name, "bwd.sum.", 8) == 0 && *first_sum == POD_OP_NONE) {
            *first_sum = i;
        }
        *last_product = program->ops[i].kind == POD_OP_MATMUL ? i : *last_product;
    }
    step_free(&c);
}

Test(slices, gradients_are_summed_beside_the_backward_pass_or_after_it)
{
    int32_t sum = 0;
    int32_t product = 0;
    sums_of(false, &sum, &product);
    cr_assert_lt(sum, product);
    sums_of(true, &sum, &product);
    cr_assert_gt(sum, product);
}
