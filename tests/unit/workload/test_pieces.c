/* SPDX-License-Identifier: Apache-2.0 */
/* Collective matmuls of transformers: the same FLOPs and bytes as with all-reduces, and pieces that pass round. */
#include "make.h"

#include <stdlib.h>

static const char dense[] =
    "transformer:layers=3,d_model=512,d_ff=2048,heads=8,kv_heads=8,head_dim=64,"
    "vocab=1024,mlp_matrices=3";
static const char experts[] =
    "transformer:layers=3,d_model=512,d_ff=2048,heads=8,kv_heads=8,head_dim=64,"
    "vocab=1024,mlp_matrices=3,experts=8,top_k=2,moe_d_ff=1024";
enum { LAYERS = 3, D = 512, BATCH = 16, SEQ = 256, BYTES = 2, TOP_K = 2 };

static void prepare(step_case *c, const char *mesh, const char *model, bool pieces)
{
    step_prepare(c, "v5p:2x2x2", "none", mesh, model, BATCH);
    c->request.seq = SEQ;
    c->request.remat = POD_REMAT_MINIMAL;
    c->request.collective_matmul = pieces;
}

/** FLOPs of matmuls, grouped ones as their rows. */
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
    return flops;
}

/** Bytes that a chip sends over tensor, of all stages: of b bytes an all-reduce 2 (n - 1)/n, its halves (n - 1)/n, a
 *  permute all. Times n: whole numbers. */
static int64_t sent_times_n(const step_case *c, int64_t n)
{
    int64_t sent = 0;
    for (int32_t s = 0; s < c->work.programs.nstages; s++) {
        const pod_program *program = &c->work.programs.stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            if (op->kind != POD_OP_COLLECTIVE
                || strcmp(c->work.programs.groups[op->group].axes, "tensor") != 0) {
                continue;
            }
            const int64_t factor = op->op == POD_ALL_REDUCE ? 2 * (n - 1)
                                   : op->op == POD_PERMUTE  ? n
                                                            : n - 1;
            sent += factor * op->bytes;
        }
    }
    return sent;
}

static int count_of(const step_case *c, const char *name)
{
    const pod_program *program = &c->work.programs.stages[0];
    int count = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        count += strcmp(program->ops[i].name, name) == 0;
    }
    return count;
}

Test(pieces, flops_and_bytes_are_those_of_all_reduces)
{
    static const struct {
        const char *mesh;
        int64_t n;
        const char *model;
        pod_step_mode mode;
        pod_remat remat;
        int32_t parts;
        int32_t tiles;
        bool plain;
        int64_t again; /* gathers of kept rows, beyond those that the halves of all-reduces are */
    } rows[] = {
        {"tensor=8",            8, dense,   POD_STEP_TRAIN,   POD_REMAT_MINIMAL,       1, 0, false, 2 * LAYERS - 1},
        {"fsdp=2,tensor=4",     4, dense,   POD_STEP_TRAIN,   POD_REMAT_FULL,          2, 0, false, LAYERS - 1    },
        {"fsdp=4,tensor=2",     2, dense,   POD_STEP_TRAIN,   POD_REMAT_NONE,          1, 0, true,  0             },
        {"sequence=2,tensor=4", 4, dense,   POD_STEP_FORWARD, POD_REMAT_MINIMAL,       1, 0, false, 0             },
        {"data=2,tensor=4",     4, dense,   POD_STEP_TRAIN,   POD_REMAT_SAVE_OUT_PROJ, 1, 4, false,
         2 * LAYERS - 1                                                                                           },
        {"data=2,tensor=4",     4, dense,   POD_STEP_TRAIN,   POD_REMAT_SAVE_QKV_PROJ, 1, 0, false,
         LAYERS - 1                                                                                               },
        {"fsdp=2,tensor=4",     4, experts, POD_STEP_TRAIN,   POD_REMAT_MINIMAL,       2, 0, false,
         2 * LAYERS - 1                                                                                           },
        {"tensor=2,expert=4",   2, experts, POD_STEP_FORWARD, POD_REMAT_MINIMAL,       1, 0, false, 0             },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double flops[2];
        int64_t sent[2];
        for (int on = 0; on < 2; on++) {
            step_case c;
            prepare(&c, rows[i].mesh, rows[i].model, on == 1);
            c.request.mode = rows[i].mode;
            c.request.remat = rows[i].remat;
            c.request.microbatches = rows[i].parts;
            c.request.settings.vocab_tiles = rows[i].tiles;
            c.request.attention = rows[i].plain ? POD_ATTENTION_PLAIN : POD_ATTENTION_FLASH;
            step_build(&c);
            flops[on] = matmul_flops(&c);
            sent[on] = sent_times_n(&c, rows[i].n);
            /* rows of the embedding are summed whole, and derivatives by the shares of a token's experts in f32 */
            const int64_t chips = c.slice.nchips / rows[i].n;
            const int64_t tokens = BATCH * SEQ / chips / c.request.microbatches;
            const int64_t whole = tokens * D * BYTES * (int64_t)count_of(&c, "fwd.sum.embedding")
                                  + tokens * TOP_K * 4 * (int64_t)count_of(&c, "bwd.sum.shares");
            sent[0] +=
                on * rows[i].again * c.request.microbatches * (rows[i].n - 1) * tokens * D * BYTES;
            cr_expect(on == 0 || step_bytes(&c, POD_ALL_REDUCE, "tensor") == whole, "%zu", i);
            step_free(&c);
        }
        cr_expect_float_eq(flops[1], flops[0], 0, "%zu: %g and %g", i, flops[1], flops[0]);
        cr_expect_eq(sent[1], sent[0], "%zu: %lld and %lld", i, (long long)sent[1],
                     (long long)sent[0]);
        cr_expect_gt(sent[0], 0);
    }
}

/* 3 layers on tensor=4: rows are scattered after out and down of each layer, backward after the projections and up,
 * and after the head; gathered before each of these but the first projections: 3 permutes of 4096/4 rows each. */
Test(pieces, pass_round_the_ring)
{
    static const struct {
        const char *name;
        int count;
    } rows[] = {
        {"fwd.pass.out",    3 * LAYERS      },
        {"fwd.pass.in",     3 * LAYERS      },
        {"fwd.pass.mlp",    3 * LAYERS      },
        {"fwd.pass.qkv",    3 * (LAYERS - 1)},
        {"fwd.pass.head",   3               },
        {"bwd.pass.head",   3               },
        {"bwd.pass.down",   3 * LAYERS      },
        {"bwd.pass.in",     3 * LAYERS      },
        {"bwd.pass.out",    3 * LAYERS      },
        {"bwd.pass.qkv",    3 * LAYERS      },
        {"bwd.gather.rows", 1               }, /* for the embedding */
    };
    step_case c;
    prepare(&c, "data=2,tensor=4", dense, true);
    step_build(&c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_eq(count_of(&c, rows[i].name), rows[i].count, "%s: %d", rows[i].name,
                     count_of(&c, rows[i].name));
    }
    const pod_program *program = &c.work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (op->op == POD_PERMUTE && op->kind == POD_OP_COLLECTIVE) {
            cr_expect_eq(op->bytes, BATCH / 2 * SEQ / 4 * D * BYTES, "%s", op->name);
            cr_expect(op->shift == 1 || op->shift == 3, "%s: %d", op->name, (int)op->shift);
        }
    }
    step_free(&c);
}

/** Whether op `late` waits for op `early`, through others. */
static bool depends(const pod_program *program, int32_t late, int32_t early)
{
    for (int32_t d = 0; d < program->ops[late].ndeps; d++) {
        const int32_t dep = program->deps[program->ops[late].first_dep + d];
        if (dep == early || (dep > early && depends(program, dep, early))) {
            return true;
        }
    }
    return false;
}

/* tensor=4: of the matmuls before the MLP's function the first waits for no piece, the second, third and fourth for one
 * more each; passing on waits for no matmul. */
Test(pieces, each_is_multiplied_when_it_comes)
{
    step_case c;
    prepare(&c, "data=2,tensor=4", dense, true);
    c.request.mode = POD_STEP_FORWARD;
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    int32_t pass[3];
    int32_t product[4];
    int npasses = 0;
    int nproducts = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (op->layer == 0 && strcmp(op->name, "fwd.pass.in") == 0) {
            cr_assert_lt(npasses, 3);
            pass[npasses++] = i;
        } else if (op->layer == 0 && strcmp(op->name, "fwd.matmul.in") == 0) {
            cr_assert_lt(nproducts, 4);
            product[nproducts++] = i;
        }
    }
    cr_assert_eq(npasses, 3);
    cr_assert_eq(nproducts, 4);
    for (int m = 0; m < 4; m++) {
        int waits = 0;
        for (int p = 0; p < 3; p++) {
            const pod_op *op = &program->ops[product[m]];
            for (int32_t d = 0; d < op->ndeps; d++) {
                waits += program->deps[op->first_dep + d] == pass[p];
            }
            cr_expect(!depends(program, pass[p], product[m]), "pass %d waits for matmul %d", p, m);
        }
        cr_expect_eq(waits, m > 0, "matmul %d waits for %d", m, waits);
    }
    step_free(&c);
}

/* 12 tokens are no eight pieces; as a whole they are summed. */
Test(pieces, rows_divide_over_tensor)
{
    pod_error err = {0};
    step_case c;
    prepare(&c, "tensor=8", dense, true);
    c.request.batch = 1;
    c.request.seq = 12;
    cr_assert_eq(pod_step_build(&c.request, &c.work, &err), POD_E_INVALID);
    cr_expect(strstr(err.text, "tokens of a chip = 12 does not divide over tensor=8") != NULL, "%s",
              err.text);
    step_free(&c);
    prepare(&c, "tensor=8", dense, false);
    c.request.batch = 1;
    c.request.seq = 12;
    step_build(&c);
    step_free(&c);
}

/* Without a tensor axis there is nothing to take apart. */
Test(pieces, need_a_tensor_axis)
{
    int32_t nops[2];
    for (int on = 0; on < 2; on++) {
        step_case c;
        prepare(&c, "fsdp=8", dense, on == 1);
        step_build(&c);
        nops[on] = c.work.programs.stages[0].nops;
        step_free(&c);
    }
    cr_expect_eq(nops[0], nops[1]);
}

/** How often the first matmul of an MLP's backward pass directly follows attention's output projection. */
static int begins_early(const char *mesh, const char *model, pod_remat remat, bool pieces)
{
    step_case c;
    prepare(&c, mesh, model, pieces);
    c.request.remat = remat;
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    int early = 0;
    const char *before = "";
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (op->kind == POD_OP_MATMUL) {
            early +=
                strcmp(op->name, "bwd.matmul.down") == 0 && strcmp(before, "fwd.matmul.out") == 0;
            before = op->name;
        }
    }
    step_free(&c);
    return early;
}

/* Where the sum over tensor is done again, the MLP's backward pass begins beside it, if it is dense and whole. */
Test(pieces, a_sum_done_again_is_beside_the_backward_pass)
{
    cr_expect_eq(begins_early("fsdp=2,tensor=4", dense, POD_REMAT_FULL, false), LAYERS);
    cr_expect_eq(begins_early("fsdp=2,tensor=4", dense, POD_REMAT_FULL, true), 0);
    cr_expect_eq(begins_early("fsdp=2,tensor=4", dense, POD_REMAT_MINIMAL, false), 0);
    cr_expect_eq(begins_early("fsdp=2,tensor=4", experts, POD_REMAT_FULL, false), 0);
    cr_expect_eq(begins_early("fsdp=8", dense, POD_REMAT_FULL, false), 0);
}
