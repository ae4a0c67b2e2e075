/* SPDX-License-Identifier: Apache-2.0 */
/* Inference with real numbers: the same program as without, the reference's logits, and wrong with any fault. */
#include "serial.h"
#include "workload/verify/place_infer.h"
#include "workload/verify/transformer_reference.h"

#define SMALL3                                                                                     \
    "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=2,head_dim=8,vocab=32,mlp_matrices=" \
    "3"

enum { BATCH = 8, PROMPT = 8, TOTAL = PROMPT + 1, SEED = 7, CHIPS = 8 };

typedef struct layout {
    const char *mesh;
    const char *model;
    int64_t page;
    bool narrow; /**< a cache of int8 */
} layout;

static const layout layouts[] = {
    {"data=4,tensor=2",          SMALL3,                                                              0, false},
    {"data=4,tensor=2",          SMALL3 ",window=3,gated=1,qk_norms=1",                               4, true },
    {"data=4,tensor=2",          SMALL3 ",parallel=1,tied=1",                                         4, false},
    {"data=4,tensor=2",          SMALL3 ",experts=4,top_k=2,moe_d_ff=16,shared_d_ff=16,post_norms=1", 0,
     false                                                                                                    },
    {"data=8",
     "transformer:layers=2,d_model=32,d_ff=64,heads=4,kv_heads=4,head_dim=8,vocab=32,"
     "mlp_matrices=3,kv_lora=16,q_lora=8,rope_dim=4,v_head_dim=8",                                    4, true },
    {"fsdp=2,tensor=2,data=2",   SMALL3,                                                              4, false},
    {"tensor=2,fsdp=4",          SMALL3 ",parallel=1,tied=1",                                         0, true },
    {"data=2,fsdp=4",            SMALL3 ",experts=4,top_k=2,moe_d_ff=16,shared_d_ff=16",              0, false},
    {"expert=2,fsdp=2,tensor=2", SMALL3 ",experts=4,top_k=2,moe_d_ff=16,shared_d_ff=16",              0, false},
};

enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static void case_prepare(step_case *c, const layout *of, pod_step_mode mode, bool numbers)
{
    step_prepare(c, "v5p:2x2x2", "none", of->mesh, of->model, BATCH);
    c->request.seq = PROMPT;
    c->request.mode = mode;
    c->request.serving.page = of->page;
    c->request.serving.has_cache = of->narrow;
    c->request.serving.cache = POD_DTYPE_INT8;
    c->request.numbers = numbers;
    c->request.form = pod_place_form(&c->model, POD_OPTIMIZER_SGD);
    step_build(c);
}

Test(infer_numbers, leave_the_program_as_it_is)
{
    for (int i = 0; i < 2 * LAYOUTS; i++) {
        const pod_step_mode mode = i < LAYOUTS ? POD_STEP_PREFILL : POD_STEP_DECODE;
        step_case with;
        step_case without;
        case_prepare(&with, &layouts[i % LAYOUTS], mode, true);
        case_prepare(&without, &layouts[i % LAYOUTS], mode, false);
        const pod_program *a = &with.work.programs.stages[0];
        const pod_program *b = &without.work.programs.stages[0];
        cr_assert_eq(a->nops, b->nops);
        for (int32_t op = 0; op < a->nops; op++) {
            const pod_op *x = &a->ops[op];
            const pod_op *y = &b->ops[op];
            cr_expect(x->kind == y->kind && strcmp(x->name, y->name) == 0 && x->ndeps == y->ndeps
                          && x->m == y->m && x->k == y->k && x->n == y->n && x->bytes == y->bytes
                          && x->hbm_bytes == y->hbm_bytes && x->flops == y->flops,
                      "%s", x->name);
        }
        cr_expect_eq(with.work.memory.peak_bytes, without.work.memory.peak_bytes);
        cr_expect_gt(with.work.data_bytes, 0);
        step_free(&with);
        step_free(&without);
    }
}

/** Prompts, and a token each after them: any, as the reference takes the same. */
static void tokens_draw(const pod_model *model, int32_t *tokens)
{
    for (int64_t i = 0; i < BATCH * TOTAL; i++) {
        tokens[i] = pod_transformer_token(model, SEED, i);
    }
}

static pod_transformer_reference *reference_of(const step_case *c, const int32_t *tokens)
{
    pod_transformer_reference *reference = NULL;
    pod_error err = {0};
    const pod_transformer_reference_args args = {
        .model = &c->model,
        .batch = BATCH,
        .seq = TOTAL,
        .dtype = POD_DTYPE_BF16,
        .mode = POD_STEP_FORWARD,
        .seed = SEED,
        .activation_terms = c->work.layout.size[POD_MESH_TENSOR],
        .input_terms = c->work.layout.size[POD_MESH_FSDP],
        .squares = true,
        .context_terms = 1,
        .gradient_terms = 1,
        .cache = pod_step_cache_dtype(&c->request),
        .tokens = tokens,
    };
    cr_assert_eq(pod_transformer_reference_new(&args, &reference, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_transformer_reference_compute(reference, &err), POD_OK, "%s", err.text);
    return reference;
}

/** Sums that the step's norms went by. */
static void squares_check(const pod_place_infer *infer, const step_case *c,
                          const pod_transformer_reference *reference, pod_transformer_check *check)
{
    const bool decode = c->request.mode == POD_STEP_DECODE;
    const int64_t last = 2 * c->model.layers;
    for (int64_t norm = 0; norm <= last; norm++) {
        char name[32];
        pod_transformer_values values;
        (void)snprintf(name, sizeof name, "squares.%d", (int)norm);
        for (int64_t s = 0; s < BATCH && pod_transformer_reference_find(reference, name, &values);
             s++) {
            const int64_t first = decode ? PROMPT : norm == last ? PROMPT - 1 : 0;
            const pod_patch patch = {.row = s * TOTAL + first,
                                     .rows = (decode ? TOTAL : PROMPT) - first,
                                     .columns = values.columns};
            pod_transformer_compare(check, &values, &patch, POD_DTYPE_F32,
                                    infer->squares
                                        + (norm * values.rows + patch.row) * values.columns);
        }
    }
}

/** Run a step and compare its logits. */
static pod_transformer_check logits_check(pod_place_infer *infer, step_case *c,
                                          const pod_transformer_reference *reference,
                                          serial_fault fault, int32_t op)
{
    const serial_numbers numbers = {
        .load = pod_place_infer_load, .store = pod_place_infer_store, .context = infer};
    const bool decode = c->request.mode == POD_STEP_DECODE;
    pod_transformer_check check = {.checked = 0};
    pod_transformer_values values;
    infer->check.request = &c->request;
    infer->check.work = &c->work;
    infer->before = decode ? PROMPT : 0;
    serial_step(c, &numbers, fault, op);
    cr_assert(pod_transformer_reference_find(reference, "logits", &values));
    for (int64_t s = 0; s < BATCH; s++) {
        const pod_patch patch = {
            .row = s * TOTAL + PROMPT - 1 + decode, .rows = 1, .columns = c->model.vocab};
        pod_transformer_compare(&check, &values, &patch, POD_DTYPE_F32,
                                infer->logits + s * c->model.vocab);
    }
    squares_check(infer, c, reference, &check);
    return check;
}

static void caches_forget(pod_place_infer *infer, const pod_model *model)
{
    for (int64_t i = 0; i < CHIPS * model->layers * 2; i++) {
        free(infer->kept[i]);
        infer->kept[i] = NULL;
    }
}

Test(infer_numbers, are_those_of_one_chip_and_wrong_with_a_fault)
{
    int changed = 0;
    for (int i = 0; i < LAYOUTS; i++) {
        step_case prefill;
        step_case decode;
        pod_place_infer infer;
        int32_t tokens[BATCH * TOTAL];
        float clean[BATCH * 32];
        case_prepare(&prefill, &layouts[i], POD_STEP_PREFILL, true);
        case_prepare(&decode, &layouts[i], POD_STEP_DECODE, true);
        tokens_draw(&prefill.model, tokens);
        pod_transformer_reference *reference = reference_of(&prefill, tokens);
        cr_assert_eq(pod_place_infer_init(&infer, &prefill.request, CHIPS, TOTAL, tokens, NULL),
                     POD_OK);
        cr_assert_eq(
            pod_place_check_init(&infer.check, &prefill.request, &prefill.work, SEED, NULL, NULL),
            POD_OK);
        cr_expect_eq(logits_check(&infer, &prefill, reference, FAULT_NONE, -1).wrong, 0, "%s",
                     layouts[i].model);
        cr_expect_eq(logits_check(&infer, &decode, reference, FAULT_NONE, -1).wrong, 0, "%s",
                     layouts[i].model);
        memcpy(clean, infer.logits, sizeof clean);
        for (int32_t op = 0; op < decode.work.programs.stages[0].nops; op++) {
            if (decode.work.programs.stages[0].ops[op].kind == POD_OP_COLLECTIVE) {
                const int64_t wrong =
                    logits_check(&infer, &decode, reference, FAULT_DROP, op).wrong;
                const bool same = memcmp(clean, infer.logits, sizeof clean) == 0;
                cr_expect(same || wrong > 0, "%s: op %d", layouts[i].model, (int)op);
                changed += !same;
            }
        }
        caches_forget(&infer, &decode.model);
        cr_expect_gt(logits_check(&infer, &decode, reference, FAULT_NONE, -1).wrong, 0, "%s",
                     layouts[i].model);
        pod_place_infer_fini(&infer);
        pod_place_check_fini(&infer.check);
        pod_transformer_reference_free(reference);
        step_free(&prefill);
        step_free(&decode);
    }
    cr_expect_gt(changed, 5);
}

Test(infer_numbers, of_other_layouts_are_refused)
{
    static const struct {
        const char *mesh;
        const char *model;
        const char *part;
    } refused[] = {
        {"data=4,expert=2", SMALL3 ",experts=4,top_k=2,moe_d_ff=16",
         "a --batch that is a multiple of 32"                                                      },
        {"fsdp=8",          SMALL3 ",post_norms=1",                  "norms after attention or MLP"},
        {"data=2,tensor=4", SMALL3,                                  "kv_heads = 2 does not divide"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        step_case c;
        pod_error err = {0};
        step_prepare(&c, "v5p:2x2x2", "none", refused[i].mesh, refused[i].model, BATCH);
        c.request.seq = PROMPT;
        c.request.mode = POD_STEP_DECODE;
        c.request.numbers = true;
        c.request.form = pod_place_form(&c.model, POD_OPTIMIZER_SGD);
        cr_expect_eq(pod_step_build(&c.request, &c.work, &err), POD_E_INVALID);
        cr_expect_neq(strstr(err.text, refused[i].part), NULL, "%s", err.text);
        step_free(&c);
    }
}
