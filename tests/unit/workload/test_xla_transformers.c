/* SPDX-License-Identifier: Apache-2.0 */
/* Transformers against what the TPU compiler made of the same steps: all such rows of validation/xla_steps.csv.
 * Its programs have plain attention. What a layout needs is computed here from the model's sizes: every weight is
 * gathered once forward and once backward (the head once), every gradient reduced once, and activations are
 * summed over tensor behind each pair of products, once more where they are done again, behind the embedding and
 * before the head. */
#include "make.h"

#include <math.h>

#include "tables.h"
#include "workload/fit.h"

enum { ROWS = 5, BF16 = 2, DMODEL = 4096, DFF = 14336, HEADS = 32, KV = 8, DIM = 128 };
static const int64_t VOCAB = 128256;
static const int64_t LAYERS = 32;

static pod_chip_spec chip_of(const char *slice)
{
    /* HBM that a program may use, GiB (design facts of the compiler) */
    pod_chip_spec chip = {0};
    const double gib = strstr(slice, "v5p") ? 95.74 : (strstr(slice, "v5e") ? 15.75 : 31.25);
    chip.hbm_usable_bytes = (int64_t)(gib * 1024 * 1024 * 1024);
    return chip;
}

static void row_prepare(const pod_table *table, int row, step_case *c)
{
    step_prepare_slices(c, field(table, row, "slice"), field(table, row, "wrap"),
                        field(table, row, "mesh"), field(table, row, "dcn_mesh"),
                        field(table, row, "model"), number(table, row, "batch"));
    c->request.seq = number(table, row, "seq");
    c->request.optimizer = POD_OPTIMIZER_ADAM;
    c->request.attention = POD_ATTENTION_PLAIN;
    c->request.remat =
        strcmp(field(table, row, "remat"), "full") == 0 ? POD_REMAT_FULL : POD_REMAT_NONE;
}

static void row_case(const pod_table *table, int row, step_case *c)
{
    row_prepare(table, row, c);
    step_build(c);
}

/* @return the row with this id */
static int named_case(const pod_table *table, const char *id, step_case *c)
{
    const int row = pod_table_find(table, pod_table_column(table, "id"), id);
    cr_assert_geq(row, 0, "%s", id);
    row_case(table, row, c);
    return row;
}

/** Calls `check` on each row of a transformer. @return their number */
static int rows_visit(void (*check)(const pod_table *table, int row, const step_case *c))
{
    pod_table *table = table_load("validation/xla_steps.csv");
    int seen = 0;
    for (int row = 0; row < pod_table_rows(table); row++) {
        if (strncmp(field(table, row, "id"), "TF8B", 4) == 0) {
            step_case c;
            row_case(table, row, &c);
            check(table, row, &c);
            step_free(&c);
            seen++;
        }
    }
    pod_table_free(table);
    return seen;
}

static int64_t layer_weights(void)
{
    return (int64_t)DMODEL * DIM * (2 * HEADS + 2 * KV) + INT64_C(3) * DMODEL * DFF;
}

static void near(double ours, double theirs, double frac, const char *id, const char *what)
{
    cr_expect_float_eq(ours, theirs, frac * theirs, "%s: %s %.6g, not %.6g", id, what, ours,
                       theirs);
}

static void bytes_check(const pod_table *table, int row, const step_case *c)
{
    const char *id = field(table, row, "id");
    const int64_t tensor = c->work.layout.size[POD_MESH_TENSOR];
    const bool full = c->request.remat == POD_REMAT_FULL;
    const double gathers =
        (double)(2 * LAYERS * layer_weights() + VOCAB * DMODEL) / (double)tensor * BF16;
    const double gradients =
        (double)(LAYERS * layer_weights() + VOCAB * DMODEL) / (double)tensor * BF16;
    const double tokens = (double)c->work.rows / c->work.layout.size[POD_MESH_FSDP]
                          / c->work.layout.size[POD_MESH_DATA];
    const double sums =
        tensor > 1 ? ((full ? 5 : 4) * (double)LAYERS + 2) * tokens * DMODEL * BF16 : 0;
    near((double)step_bytes(c, POD_ALL_GATHER, "fsdp"), gathers, 0.01, id, "gathers");
    near((double)step_bytes(c, POD_REDUCE_SCATTER, "fsdp"), gradients, 0.01, id, "gradients");
    near((double)step_bytes(c, POD_ALL_REDUCE, "tensor"), sums, 0.01, id, "sums");
    if (c->slice.nslices == 1 && number(table, row, "windowed_bytes") == 0) {
        near(gathers, strtod(field(table, row, "gather_bytes"), NULL), 0.05, id, "needed gathers");
        near((double)step_bytes(c, POD_ALL_TO_ALL, "fsdp"),
             strtod(field(table, row, "alltoall_bytes"), NULL), 0.05, id, "exchanges");
    }
    if (tensor > 1) { /* its gradients are permutes inside loops */
        near(sums, strtod(field(table, row, "reduce_bytes"), NULL), 0.05, id, "needed sums");
    } else if (strcmp(id, "TF8B-v5p-64-fsdp") == 0 || strcmp(id, "TF8B-v5p-64-fsdp-none") == 0) {
        near(gradients, strtod(field(table, row, "reduce_bytes"), NULL), 0.05, id,
             "needed reductions");
    }
}

Test(xla_transformers, payloads_are_what_layouts_need)
{
    cr_assert_eq(rows_visit(bytes_check), ROWS);
}

/* On v5e-256 the compiler reduces small gradients a second time, 32 of 24 MiB and of 16 MiB. */
Test(xla_transformers, v5e_reduces_small_gradients_twice)
{
    pod_table *table = table_load("validation/xla_steps.csv");
    step_case c;
    const int row = named_case(table, "TF8B-v5e-256-fsdp", &c);
    const double twice = 32.0 * (25165824 + 16777216);
    near((double)step_bytes(&c, POD_REDUCE_SCATTER, "fsdp"),
         strtod(field(table, row, "reduce_bytes"), NULL) - twice, 0.01, "v5e", "gradients");
    step_free(&c);
    pod_table_free(table);
}

static void memory_check(const pod_table *table, int row, const step_case *c)
{
    const char *id = field(table, row, "id");
    const pod_chip_spec chip = chip_of(field(table, row, "slice"));
    const pod_program *program = &c->work.programs.stages[0];
    pod_error err = {0};
    int64_t bytes = 0;
    for (int32_t b = 0; b < program->nbuffers; b++) {
        bytes += program->buffers[b].persistent ? pod_buffer_bytes(&program->buffers[b]) : 0;
    }
    near((double)bytes, strtod(field(table, row, "argument_bytes"), NULL), 0.02, id, "arguments");
    near((double)c->work.memory.peak_bytes, strtod(field(table, row, "hbm_bytes"), NULL), 0.15, id,
         "total");
    cr_expect_eq(pod_step_fits(&c->request, &c->work, &chip, &err), POD_OK, "%s: %s", id, err.text);
}

/* Weights, moments and input within 2 %, the total within 15 %, and what its row shows to fit is not refused. */
Test(xla_transformers, memory_is_near_the_compilers)
{
    cr_assert_eq(rows_visit(memory_check), ROWS);
}

static int64_t without_logits(const step_case *c)
{
    return c->work.memory.peak_bytes - c->work.memory.by_kind[POD_MEMORY_LOGITS];
}

/* A kernel keeps no scores and needs less, besides its logits, which are MaxText's. */
static void kernel_check(const pod_table *table, int row, const step_case *c)
{
    step_case flash;
    row_prepare(table, row, &flash);
    flash.request.attention = POD_ATTENTION_FLASH;
    step_build(&flash);
    const int64_t less = without_logits(c) - without_logits(&flash);
    cr_expect_gt(c->work.memory.peak_bytes, without_logits(&flash), "%s", field(table, row, "id"));
    const double scores = 6.0 * 64 * 2048 / 64 * HEADS * 2048; /* of a layer, f32 and bf16 */
    if (c->request.remat == POD_REMAT_NONE) {
        cr_expect_float_eq((double)less, 32 * scores, 32 * 0.03 * scores, "%g", (double)less);
    }
    step_free(&flash);
}

Test(xla_transformers, a_kernel_needs_less)
{
    cr_assert_eq(rows_visit(kernel_check), ROWS);
}

/* Two slices: a chip sends its 1/256 of the gradients to the other one. The compiler's program sends those of the
 * embedding in f32, and besides the norms' of each layer (f32, whole) and the loss. */
Test(xla_transformers, slices_exchange_their_share_of_the_gradients)
{
    pod_table *table = table_load("validation/xla_steps.csv");
    step_case c;
    const int row = named_case(table, "TF8B-2xv6e-256-fsdp", &c);
    const pod_program *program = &c.work.programs.stages[0];
    double sent = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (op->kind == POD_OP_COLLECTIVE && c.work.programs.groups[op->group].group.slices == 2) {
            cr_assert_eq(op->op, POD_ALL_REDUCE);
            cr_assert_eq(c.work.programs.groups[op->group].group.inside->size, 1);
            sent += (double)op->bytes;
        }
    }
    const int64_t embedding = VOCAB * DMODEL * 2 / 256; /* f32 instead of bf16 */
    const int64_t norms = LAYERS * DMODEL * 4;
    cr_assert_eq((int64_t)sent + embedding + norms + 512, number(table, row, "dcn_send_bytes"));
    step_free(&c);
    pod_table_free(table);
}
