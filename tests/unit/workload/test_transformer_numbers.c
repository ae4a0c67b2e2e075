/* SPDX-License-Identifier: Apache-2.0 */
/* Transformers with real numbers: the same program as without, right in every layout, and wrong with any fault. */
#include <stdlib.h>
#include <string.h>

#include "serial.h"
#include "workload/verify/place_check.h"
#include "workload/verify/transformer_reference.h"

#include "../sample.h"

static const char dense[] = "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,"
                            "vocab=32,mlp_matrices=3";

static const char normed[] =
    "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,"
    "vocab=32,mlp_matrices=3,qk_norms=1,post_norms=1,window=3,chunked=1";
static const char experts[] =
    "transformer:layers=2,d_model=32,heads=4,kv_heads=2,head_dim=8,vocab=32,"
    "mlp_matrices=3,experts=4,top_k=2,moe_d_ff=16,d_ff=16";
static const char shared[] =
    "transformer:layers=2,d_model=32,d_ff=32,heads=4,kv_heads=2,head_dim=8,"
    "vocab=32,mlp_matrices=2,experts=4,top_k=2,moe_d_ff=16,shared_d_ff=16,"
    "dense_layers=1,post_norms=2";

static const char learned[] = "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=4,"
                              "head_dim=8,vocab=32,mlp_matrices=2,positions=8,encoder=1";
static const char gated[] = "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,"
                            "vocab=32,mlp_matrices=3,gated=1,parallel=1,qk_norms=1,shared_kv=1";
static const char tied[] = "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=4,head_dim=8,"
                           "vocab=32,mlp_matrices=2,positions=8,tied=1";
static const char dropping[] =
    "transformer:layers=2,d_model=32,heads=4,kv_heads=2,head_dim=8,vocab=32,mlp_matrices=3,"
    "experts=4,top_k=2,moe_d_ff=16,d_ff=16,capacity_percent=50";
static const char latent[] =
    "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=4,head_dim=8,"
    "vocab=32,mlp_matrices=3,kv_lora=16,q_lora=8,rope_dim=4,v_head_dim=8";
static const char deep[] = "transformer:layers=4,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,"
                           "vocab=32,mlp_matrices=3";
static const char leading[] =
    "transformer:layers=3,d_model=32,d_ff=32,heads=4,kv_heads=2,head_dim=8,"
    "vocab=32,mlp_matrices=2,experts=4,top_k=2,moe_d_ff=16,shared_d_ff=16,dense_layers=1";

typedef struct layout {
    const char *mesh;
    const char *model;
    int32_t microbatches;
    int32_t ahead;
    pod_optimizer optimizer;
    pod_step_mode mode;
    pod_remat remat;
} layout;

/** Over sequence, in a circular pipeline, or with collective matmuls. */
typedef struct set_layout {
    layout of;
    pod_context_parallel context;
    bool unbalanced;
    pod_circular circular;
    bool pieces;
} set_layout;

static void case_prepare(step_case *c, const layout *of)
{
    step_prepare(c, "v5p:2x2x2", "none", of->mesh, of->model, 8);
    c->request.seq = 8;
    c->request.microbatches = of->microbatches;
    c->request.gather_ahead = of->ahead;
    c->request.optimizer = of->optimizer;
    c->request.mode = of->mode;
    c->request.remat = of->remat;
    c->request.numbers = true;
    c->request.form = pod_place_form(&c->model, of->optimizer);
}

static const layout layouts[] = {
    {"data=8",                     dense,      1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_NONE         },
    {"fsdp=8",                     dense,      1, 0, POD_OPTIMIZER_ADAM,     POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"data=2,fsdp=2,tensor=2",     dense,      1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"data=2,fsdp=2,tensor=2",     dense,      2, 3, POD_OPTIMIZER_ADAM,     POD_STEP_TRAIN,   POD_REMAT_MINIMAL      },
    {"tensor=2,fsdp=4",            dense,      2, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_SAVE_QKV_PROJ},
    {"fsdp=4,data=2",              dense,      1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_SAVE_OUT_PROJ},
    {"fsdp=4,tensor=2",            dense,      1, 1, POD_OPTIMIZER_SGD,      POD_STEP_FORWARD, POD_REMAT_NONE         },
    {"data=4,tensor=2",            dense,      2, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,
     POD_REMAT_MINIMAL_OFFLOADED                                                                                      },
    {"pipeline=2,fsdp=2,tensor=2", dense,      2, 1, POD_OPTIMIZER_ADAM,     POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"pipeline=2,data=4",          dense,      2, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_NONE         },
    {"fsdp=4,tensor=2",            normed,     1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"data=8",                     normed,     1, 1, POD_OPTIMIZER_ADAM,     POD_STEP_TRAIN,   POD_REMAT_NONE         },
    {"pipeline=2,data=2,tensor=2", normed,     2, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,
     POD_REMAT_MINIMAL                                                                                                },
    {"fsdp=4,data=2",              normed,     1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_SAVE_OUT_PROJ},
    {"fsdp=2,expert=4",            experts,    1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_NONE         },
    {"data=2,fsdp=2,expert=2",     experts,    1, 1, POD_OPTIMIZER_ADAM,     POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"data=4,expert=2",            shared,     1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_MINIMAL      },
    {"pipeline=2,fsdp=2,expert=2", shared,     2, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,
     POD_REMAT_SAVE_QKV_PROJ                                                                                          },
    {"fsdp=4,tensor=2",            learned,    1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"data=2,fsdp=2,tensor=2",     gated,      1, 1, POD_OPTIMIZER_MOMENTUM, POD_STEP_TRAIN,   POD_REMAT_NONE         },
    {"data=2,fsdp=2,tensor=2",     tied,       1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"pipeline=2,fsdp=2,tensor=2", tied,       2, 1, POD_OPTIMIZER_LAMB,     POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"fsdp=2,expert=4",            dropping,   1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_MINIMAL      },
    {"expert=4,tensor=2",          dropping,   1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"data=2,fsdp=2,tensor=2",     latent,     1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_FULL         },
    {"pipeline=2,fsdp=4",          latent,     2, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_SAVE_QKV_PROJ},
    {"fsdp=4,tensor=2",
     "transformer:layers=3,d_model=32,d_ff=64,heads=4,kv_heads=4,head_dim=8,vocab=32,"
     "mlp_matrices=2,window=3,global_every=3", 1, 1, POD_OPTIMIZER_SGD,      POD_STEP_TRAIN,   POD_REMAT_FULL         },
};

static const set_layout set_layouts[] = {
    {{"sequence=2,fsdp=4", dense, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = false},
     false},
    {{"sequence=4,tensor=2", normed, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_NONE},
     POD_CONTEXT_ALL_GATHER, true,
     {.on = false},
     false},
    {{"sequence=4,data=2", dense, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_RING,       false,
     {.on = false},
     false},
    {{"sequence=2,tensor=2,data=2", dense, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN,
      POD_REMAT_MINIMAL},
     POD_CONTEXT_RING,       true,
     {.on = false},
     false},
    {{"pipeline=2,sequence=2,fsdp=2", normed, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN,
      POD_REMAT_MINIMAL},
     POD_CONTEXT_ULYSSES,    false,
     {.on = false},
     false},
    {{"data=2,sequence=4", dense, 1, 1, POD_OPTIMIZER_ADAM, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_ULYSSES,    false,
     {.on = false},
     false},
    {{"sequence=2,expert=4", experts, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_RING,       true,
     {.on = false},
     false},
    {{"pipeline=2,fsdp=2,tensor=2", deep, 2, 1, POD_OPTIMIZER_ADAM, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = true, .repeats = 2},
     false},
    {{"pipeline=2,data=2,fsdp=2", deep, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_MINIMAL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = true, .repeats = 2, .gather_once = true},
     false},
    {{"pipeline=2,fsdp=4", deep, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = true, .repeats = 2, .gather_by_rounds = true},
     false},
    {{"pipeline=2,sequence=2,tensor=2", deep, 4, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN,
      POD_REMAT_FULL},
     POD_CONTEXT_RING,       false,
     {.on = true, .repeats = 2, .delayed = true},
     false},
    {{"pipeline=2,data=2,expert=2", leading, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN,
      POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = true, .repeats = 1},
     false},
    {{"data=2,tensor=4", tied, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = false},
     true },
    {{"pipeline=2,data=2,tensor=2", deep, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_NONE},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = false},
     true },
    {{"fsdp=2,tensor=2,expert=2", shared, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN,
      POD_REMAT_SAVE_OUT_PROJ},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = false},
     true },
    {{"fsdp=4,tensor=2", gated, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_MINIMAL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = false},
     true },
    {{"fsdp=2,tensor=4", latent, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = false},
     true },
    {{"pipeline=2,data=2,tensor=2", deep, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = true, .repeats = 2},
     true },
    {{"pipeline=2,expert=2,tensor=2", leading, 2, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN,
      POD_REMAT_FULL},
     POD_CONTEXT_ALL_GATHER, false,
     {.on = true, .repeats = 1},
     true },
};

enum {
    PLAIN = sizeof layouts / sizeof layouts[0],
    LAYOUTS = PLAIN + sizeof set_layouts / sizeof set_layouts[0]
};

/** @return its mesh */
static const char *layout_prepare(step_case *c, int i)
{
    const set_layout plain = {.of = layouts[i < PLAIN ? i : 0]};
    const set_layout *of = i < PLAIN ? &plain : &set_layouts[i - PLAIN];
    case_prepare(c, &of->of);
    c->request.settings.context = of->context;
    c->request.settings.context_unbalanced = of->unbalanced;
    c->request.settings.circular = of->circular;
    c->request.collective_matmul = of->pieces;
    return of->of.mesh;
}

/* ---- the same program ---- */

static bool op_costs_the_same(const pod_program *a, const pod_op *x, const pod_program *b,
                              const pod_op *y)
{
    bool same = x->kind == y->kind && strcmp(x->name, y->name) == 0 && x->layer == y->layer
                && x->recomputed == y->recomputed && x->ndeps == y->ndeps && x->m == y->m
                && x->k == y->k && x->n == y->n && x->count == y->count && x->dtype == y->dtype
                && x->flops == y->flops && x->hbm_bytes == y->hbm_bytes && x->op == y->op
                && x->group == y->group && x->bytes == y->bytes && x->to_stage == y->to_stage
                && x->message == y->message;
    for (int32_t d = 0; same && d < x->ndeps; d++) {
        same = a->deps[x->first_dep + d] == b->deps[y->first_dep + d];
    }
    return same;
}

Test(transformer_numbers, leave_the_program_as_it_is)
{
    for (int i = 0; i < LAYOUTS; i++) {
        step_case with;
        step_case without;
        const char *mesh = layout_prepare(&with, i);
        (void)layout_prepare(&without, i);
        without.request.numbers = false;
        step_build(&with);
        step_build(&without);
        cr_expect_eq(without.work.data_bytes, -1);
        cr_expect_gt(with.work.data_bytes, 0);
        cr_expect_eq(with.work.memory.peak_bytes, without.work.memory.peak_bytes, "%s", mesh);
        for (int32_t s = 0; s < with.work.programs.nstages; s++) {
            const pod_program *a = &with.work.programs.stages[s];
            const pod_program *b = &without.work.programs.stages[s];
            cr_assert_eq(a->nops, b->nops, "%s", mesh);
            for (int32_t op = 0; op < a->nops; op++) {
                cr_assert(op_costs_the_same(a, &a->ops[op], b, &b->ops[op]), "%s: %s", mesh,
                          a->ops[op].name);
            }
        }
        step_free(&with);
        step_free(&without);
    }
}

/* ---- right ---- */

/** @param followed  what comes into the chips' layers, or NULL */
static pod_transformer_reference *reference_following(const step_case *c,
                                                      const pod_transformer_followed *followed)
{
    pod_transformer_reference *reference = NULL;
    pod_error err = {0};
    const pod_transformer_reference_args args = {
        .model = &c->model,
        .batch = c->request.batch,
        .seq = c->request.seq,
        .dtype = POD_DTYPE_BF16,
        .operands = c->request.dtype,
        .mode = c->request.mode,
        .optimizer = c->request.optimizer,
        .rate = pod_transformer_rate(c->request.optimizer),
        .seed = 7,
        .activation_terms = c->work.layout.size[POD_MESH_TENSOR],
        .context_terms = c->work.layout.size[POD_MESH_SEQUENCE],
        .gradient_terms = (int64_t)c->slice.nchips * c->request.microbatches,
        .weight_pieces = c->work.layout.size[POD_MESH_TENSOR],
        .followed = followed,
    };
    cr_assert_eq(pod_transformer_reference_new(&args, &reference, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_transformer_reference_compute(reference, &err), POD_OK, "%s", err.text);
    return reference;
}

static pod_transformer_reference *reference_of(const step_case *c)
{
    return reference_following(c, NULL);
}

/** A check, and a digest of what the chips have stored. */
typedef struct seen {
    pod_place_check check;
    uint64_t digest;
} seen;

static void seen_load(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_place_check_load(&((seen *)context)->check, chip, program, buffers);
}

static void seen_store(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    seen *s = context;
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const pod_buffer *buffer = &program->buffers[b];
        const unsigned char *bytes = buffers[b];
        const bool is_result = buffer->use == POD_BUFFER_NUMBERS && buffer->persistent;
        for (int64_t i = 0; is_result && bytes != NULL && i < pod_buffer_bytes(buffer); i++) {
            s->digest = (s->digest ^ bytes[i]) * UINT64_C(0x100000001b3);
        }
    }
    pod_place_check_store(&s->check, chip, program, buffers);
}

static seen numbers_run(const step_case *c, const pod_transformer_reference *reference,
                        serial_fault fault, int32_t op)
{
    seen s = {.digest = UINT64_C(0xcbf29ce484222325)};
    const serial_numbers numbers = {.load = seen_load, .store = seen_store, .context = &s};
    cr_assert_eq(pod_place_check_init(&s.check, &c->request, &c->work, 7, reference, NULL), POD_OK);
    serial_step(c, &numbers, fault, op);
    pod_place_check_loss(&s.check);
    pod_place_check_fini(&s.check);
    return s;
}

Test(transformer_numbers, are_those_of_one_chip)
{
    for (int i = 0; i < LAYOUTS; i++) {
        step_case c;
        const char *mesh = layout_prepare(&c, i);
        step_build(&c);
        pod_transformer_reference *reference = reference_of(&c);
        const seen s = numbers_run(&c, reference, FAULT_NONE, -1);
        cr_expect_eq(s.check.found.wrong, 0, "%s: %lld of %lld", mesh,
                     (long long)s.check.found.wrong, (long long)s.check.found.checked);
        cr_expect_gt(s.check.found.checked, 0);
        pod_transformer_reference_free(reference);
        step_free(&c);
    }
}

/** @param follow  what a reference follows, or NULL  @param[out] taken  what comes into layers; NULL: compare it */
static pod_transformer_check bytes_run(const step_case *c, const pod_transformer_followed *follow,
                                       float *taken)
{
    pod_transformer_reference *reference = reference_following(c, follow);
    seen s = {.digest = 0};
    const serial_numbers numbers = {.load = seen_load, .store = seen_store, .context = &s};
    cr_assert_eq(pod_place_check_init(&s.check, &c->request, &c->work, 7, reference, NULL), POD_OK);
    s.check.follows = follow != NULL;
    serial_step(c, &numbers, FAULT_NONE, -1);
    pod_place_check_loss(&s.check);
    if (taken != NULL) {
        memcpy(taken, s.check.followed, (size_t)s.check.nfollowed * sizeof *taken);
    }
    const pod_transformer_check found = s.check.found;
    pod_place_check_fini(&s.check);
    pod_transformer_reference_free(reference);
    return found;
}

/* Of layers' matmuls in a byte, too: dense and with experts, pieces of rows and of sequences. */
Test(transformer_numbers, of_matmuls_in_one_byte_are_those_of_one_chip)
{
    static const pod_dtype dtypes[] = {POD_DTYPE_INT8, POD_DTYPE_FP8};
    static const int which[] = {1, 3, 8, 14, PLAIN, LAYOUTS - 3};
    for (size_t i = 0; i < 2 * sizeof which / sizeof which[0]; i++) {
        step_case c;
        const char *mesh = layout_prepare(&c, which[i / 2]);
        c.request.dtype = dtypes[i % 2];
        step_build(&c);
        const int64_t elements = c.model.layers * c.request.batch * c.request.seq * c.model.d_model;
        float *taken = malloc((size_t)(2 * elements) * sizeof *taken);
        const pod_transformer_check whole = bytes_run(&c, NULL, taken);
        cr_expect_eq(whole.wrong, 0, "%s: %lld of %lld", mesh, (long long)whole.wrong,
                     (long long)whole.checked);
        cr_expect_gt(whole.share, 0.05, "%s: %g", mesh, whole.share);
        pod_transformer_followed follow = {.input = taken, .derivative = taken + elements};
        const pod_transformer_check layers = bytes_run(&c, &follow, NULL);
        cr_expect_eq(layers.wrong, 0, "%s: %lld of %lld", mesh, (long long)layers.wrong,
                     (long long)layers.checked);
        cr_expect_gt(layers.checked, whole.checked + elements, "%s", mesh);
        cr_expect_gt(layers.share, 0.25, "%s: %g", mesh, layers.share);
        taken[elements / 3] += 0.5F; /* which no chip had */
        cr_expect_gt(bytes_run(&c, &follow, NULL).wrong, 0, "%s", mesh);
        free(taken);
        step_free(&c);
    }
}

/* ---- wrong with a fault ---- */

/* Each fault in each collective that changes a bit of what chips store makes something wrong. */
static void faults_are_found(serial_fault fault)
{
    int changed = 0;
    int collectives = 0;
    for (int i = 0; i < LAYOUTS; i++) {
        step_case c;
        const char *mesh = layout_prepare(&c, i);
        step_build(&c);
        pod_transformer_reference *reference = reference_of(&c);
        const seen clean = numbers_run(&c, reference, FAULT_NONE, -1);
        const pod_program *program = &c.work.programs.stages[0];
        for (int32_t op = 0; op < program->nops; op++) {
            if (program->ops[op].kind == POD_OP_COLLECTIVE && sample_takes(collectives++, 20)) {
                const seen s = numbers_run(&c, reference, fault, op);
                changed += s.digest != clean.digest ? 1 : 0;
                cr_expect(s.digest == clean.digest || s.check.found.wrong > 0,
                          "%s: fault %d in op %d (%s, layer %d) is not found", mesh, fault, (int)op,
                          program->ops[op].name, (int)program->ops[op].layer);
            }
        }
        pod_transformer_reference_free(reference);
        step_free(&c);
    }
    cr_expect_gt(changed, 100 / (int)sample_of(20) / 2);
}

Test(transformer_numbers, a_dropped_message_is_found)
{
    faults_are_found(FAULT_DROP);
}

Test(transformer_numbers, swapped_shards_are_found)
{
    faults_are_found(FAULT_SWAP);
}

Test(transformer_numbers, what_is_counted_twice_is_found)
{
    faults_are_found(FAULT_TWICE);
}

/* ---- what can't be ---- */

static void expect_refused(const char *mesh, const char *model, const char *part)
{
    step_case c;
    pod_error err = {0};
    const layout of = {mesh, model, 1, 1, POD_OPTIMIZER_SGD, POD_STEP_TRAIN, POD_REMAT_NONE};
    case_prepare(&c, &of);
    cr_expect_neq(pod_step_build(&c.request, &c.work, &err), POD_OK, "%s", part);
    cr_expect_neq(strstr(err.text, part), NULL, "%s", err.text);
    step_free(&c);
}

Test(transformer_numbers, of_other_layouts_are_refused)
{
    expect_refused("tensor=4,data=2", dense, "kv_heads = 2 does not divide over tensor=4");
    expect_refused("fsdp=8",
                   "transformer:layers=1,d_model=36,d_ff=64,heads=4,kv_heads=2,head_dim=9,vocab=32,"
                   "mlp_matrices=3",
                   "d_model = 36 does not divide over fsdp=8");
    expect_refused("fsdp=8",
                   "transformer:layers=1,d_model=32,heads=4,kv_heads=2,head_dim=8,vocab=32,"
                   "mlp_matrices=3,experts=16,top_k=2,moe_d_ff=16,d_ff=16",
                   "8 tokens of a chip at a time do not divide among 16 experts");
}

/* An op that doesn't wait for what it reads finds nothing there. */
Test(transformer_numbers, are_not_read_before_they_are_there)
{
    step_case c;
    pod_error err = {0};
    pod_shards shards;
    case_prepare(&c, &layouts[0]);
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    cr_assert_eq(pod_shards_init(&shards, program, &err), POD_OK);
    int32_t op = program->nops - 1;
    while (program->ops[op].numbers == POD_OP_NONE) {
        op--;
    }
    cr_expect_eq(pod_op_exec(program, op, &shards, &err), POD_E_INTERNAL);
    cr_expect_neq(strstr(err.text, "before it is there"), NULL, "%s", err.text);
    pod_shards_fini(&shards, program);
    step_free(&c);
}
