/* SPDX-License-Identifier: Apache-2.0 */
/* Prefill and decode: where the cache is, what crosses chips, what is refused. */
#include "make.h"

#include "tables.h"

static const char tiny[] = "mlp:layers=1,d_model=8,d_ff=8"; /* until a test sets its model */
static const char small[] = "transformer:layers=4,d_model=512,d_ff=2048,heads=16,kv_heads=4,"
                            "head_dim=64,vocab=1024,mlp_matrices=3";

typedef struct inference {
    const char *slice;
    const char *mesh;
    pod_step_mode mode;
    int64_t batch;
    int64_t seq;
} inference;

static void prepare(step_case *c, const pod_model *model, const inference *of)
{
    step_prepare(c, of->slice, "xyz", of->mesh, tiny, of->batch);
    c->model = *model;
    c->request.mode = of->mode;
    c->request.seq = of->seq;
}

static pod_model model_inline(const char *text)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse(text, NULL, &model, &err), POD_OK, "%s", err.text);
    return model;
}

static int64_t cache_bytes(const step_case *c)
{
    return c->work.memory.by_kind[POD_MEMORY_CACHE];
}

/** Ops of a layer with a name. */
static int count_ops(const step_case *c, int32_t layer, const char *name)
{
    const pod_program *program = &c->work.programs.stages[0];
    int count = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        count += program->ops[i].layer == layer && strcmp(program->ops[i].name, name) == 0;
    }
    return count;
}

static int count_collectives(const step_case *c, int32_t layer)
{
    const pod_program *program = &c->work.programs.stages[0];
    int count = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        count += program->ops[i].layer == layer && program->ops[i].kind == POD_OP_COLLECTIVE;
    }
    return count;
}

static const pod_op *op_named(const step_case *c, const char *name)
{
    const pod_program *program = &c->work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        if (strcmp(program->ops[i].name, name) == 0) {
            return &program->ops[i];
        }
    }
    cr_assert_fail("no op %s", name);
    return NULL;
}

/* WP-066: 160 KiB a token of cache for LLaMA-3 70B in int8. */
Test(inference, decode_keeps_a_cache)
{
    const pod_model model = model_named("llama3.1-70b");
    step_case c;
    prepare(&c, &model, &(inference){"v5e:4x4", "tensor=16", POD_STEP_DECODE, 32, 8192});
    c.request.dtype = POD_DTYPE_INT8;
    step_build(&c);
    cr_assert_eq(cache_bytes(&c) * 16, INT64_C(32) * 8192 * 163840);
    cr_assert_float_eq((double)c.work.memory.by_kind[POD_MEMORY_WEIGHTS] * 16 / 70.6e9, 1, 0.01);
    cr_assert_eq(c.work.rows, 32);
    step_free(&c);
}

/* PaLM has one kv head: 64 sequences are cut over 64 chips and rows go to them and back; one sequence is on all. */
Test(inference, shared_keys_are_cut_by_sequences)
{
    const pod_model model = model_named("palm-540b");
    const int64_t sequence = INT64_C(2048) * 118 * 2 * 256 * 2;
    step_case c;
    prepare(&c, &model, &(inference){"v4:4x4x4", "fsdp=4,tensor=16", POD_STEP_DECODE, 64, 2048});
    step_build(&c);
    cr_expect_eq(cache_bytes(&c), sequence);
    cr_expect_eq(count_ops(&c, 5, "fwd.exchange.qkv"), 1);
    cr_expect_eq(op_named(&c, "fwd.exchange.qkv")->op, POD_ALL_TO_ALL);
    cr_expect_eq(count_ops(&c, 5, "fwd.exchange.context"), 1);
    step_free(&c);
    prepare(&c, &model, &(inference){"v4:4x4x4", "fsdp=4,tensor=16", POD_STEP_DECODE, 1, 2048});
    step_build(&c);
    cr_expect_eq(cache_bytes(&c), sequence);
    cr_expect_eq(count_ops(&c, 5, "fwd.exchange.qkv"), 0);
    step_free(&c);
}

/* Where a few chips share a kv head they are neighbours; where each has its own nothing moves. */
Test(inference, few_chips_share_a_kv_head)
{
    const pod_model model = model_inline(small);
    step_case c;
    prepare(&c, &model, &(inference){"v5e:2x4", "tensor=8", POD_STEP_DECODE, 16, 128});
    step_build(&c);
    const pod_op *exchange = op_named(&c, "fwd.exchange.qkv");
    cr_expect_eq(exchange->op, POD_PERMUTE);
    cr_expect_eq(exchange->shift, 1);
    /* half of the 16 rows of 2 query heads, and of a kv head that two chips have */
    cr_expect_eq(exchange->bytes, 16 * (2 * 64 + 2 * 64) / 2 * 2);
    step_free(&c);
    prepare(&c, &model, &(inference){"v5e:2x2", "tensor=4", POD_STEP_DECODE, 16, 128});
    step_build(&c);
    cr_expect_eq(count_ops(&c, 0, "fwd.exchange.qkv"), 0);
    step_free(&c);
}

/* Attention and MLP side by side: one norm, one sum over tensor instead of two, one gather over fsdp. */
Test(inference, side_by_side_there_is_less_to_sum)
{
    const char *const side = "transformer:layers=4,d_model=512,d_ff=2048,heads=16,kv_heads=1,"
                             "head_dim=64,vocab=1024,mlp_matrices=3,parallel=1";
    const char *const turn = "transformer:layers=4,d_model=512,d_ff=2048,heads=16,kv_heads=1,"
                             "head_dim=64,vocab=1024,mlp_matrices=3";
    int collectives[2];
    int64_t reduced[2];
    for (int i = 0; i < 2; i++) {
        const pod_model model = model_inline(i == 0 ? side : turn);
        step_case c;
        prepare(&c, &model, &(inference){"v5e:4x4", "fsdp=4,tensor=4", POD_STEP_DECODE, 16, 64});
        step_build(&c);
        collectives[i] = count_collectives(&c, 1);
        reduced[i] = step_bytes(&c, POD_REDUCE_SCATTER, "tensor");
        step_free(&c);
    }
    /* in turn: a norm's squares, x gathered and summed twice, qkv, hidden and context, hidden gathered, rows there
     * and back */
    cr_expect_eq(collectives[1], 2 + 2 + 2 + 1 + 1 + 1 + 1 + 2);
    cr_expect_eq(collectives[0], 1 + 1 + 1 + 1 + 1 + 2);
    cr_expect_eq(2 * reduced[0], reduced[1]);
}

/* The same of a training step: three sums a layer less with remat full. */
Test(inference, side_by_side_in_training)
{
    const char *const side = "transformer:layers=4,d_model=512,d_ff=2048,heads=16,kv_heads=4,"
                             "head_dim=64,vocab=1024,mlp_matrices=3,parallel=1";
    static const pod_remat remats[2] = {POD_REMAT_NONE, POD_REMAT_FULL};
    for (int i = 0; i < 2; i++) {
        int64_t sums[2];
        for (int k = 0; k < 2; k++) {
            const pod_model model = model_inline(k == 0 ? side : small);
            step_case c;
            prepare(&c, &model, &(inference){"v5e:2x4", "fsdp=4,tensor=2", POD_STEP_TRAIN, 8, 64});
            c.request.remat = remats[i];
            step_build(&c);
            sums[k] = step_bytes(&c, POD_ALL_REDUCE, "tensor");
            step_free(&c);
        }
        const int64_t one = 2 * 64 * 512 * 2;
        cr_expect_eq(sums[0], (2 * 4 + 2) * one); /* embedding and head */
        cr_expect_eq(sums[1], ((i == 0 ? 4 : 5) * 4 + 2) * one);
    }
}

/* Local layers keep their window, latent attention one latent: 576 elements a token and layer of DeepSeek-V3. */
Test(inference, caches_of_windows_and_latents)
{
    const pod_model gemma = model_named("gemma3-12b");
    const pod_model deepseek = model_named("deepseek-v3");
    step_case c;
    prepare(&c, &gemma, &(inference){"v5e:2x4", "tensor=8", POD_STEP_DECODE, 8, 8192});
    step_build(&c);
    cr_expect_eq(cache_bytes(&c), INT64_C(8) * (8 * 8192 + 40 * 1024) * 2 * 256 * 2);
    step_free(&c);
    prepare(&c, &deepseek, &(inference){"v5p:4x4x4", "tensor=64", POD_STEP_DECODE, 64, 4096});
    step_build(&c);
    cr_expect_eq(cache_bytes(&c), INT64_C(4096) * 61 * 576 * 2);
    const pod_op *attention = op_named(&c, "fwd.attention");
    cr_expect_eq(attention->attention->kv_heads, 1);
    cr_expect_eq(attention->attention->queries, 128);
    cr_expect(attention->attention->shared_kv);
    step_free(&c);
}

/* Rows go to their experts and back; weights of experts are cut over expert, the others are not. */
Test(inference, experts_get_rows)
{
    const pod_model model =
        model_inline("transformer:layers=2,d_model=512,d_ff=2048,heads=8,kv_heads=8,head_dim=64,"
                     "vocab=1024,mlp_matrices=3,experts=8,top_k=2,moe_d_ff=1024");
    step_case c;
    prepare(&c, &model, &(inference){"v5e:2x4", "expert=4,tensor=2", POD_STEP_DECODE, 16, 128});
    step_build(&c);
    cr_expect_eq(step_bytes(&c, POD_ALL_TO_ALL, "expert"), INT64_C(2) * 2 * (16 / 4) * 2 * 512 * 2);
    const int64_t layer = INT64_C(8) * 3 * 512 * 1024 / 8 + (512 * 64 * 8 * 4 + 512 * 8) / 2;
    const int64_t tables = INT64_C(2) * 1024 / 2 * 512;
    cr_expect_eq(c.work.memory.by_kind[POD_MEMORY_WEIGHTS], 2 * (2 * layer + tables));
    step_free(&c);
}

/* Of the busiest chip of expert: its rows travel and are multiplied. */
Test(inference, expert_balance_is_of_rows)
{
    const pod_model model =
        model_inline("transformer:layers=1,d_model=512,d_ff=64,heads=8,kv_heads=8,head_dim=64,"
                     "vocab=1024,mlp_matrices=3,experts=8,top_k=2,moe_d_ff=1024");
    for (int mode = POD_STEP_PREFILL; mode <= POD_STEP_DECODE; mode++) {
        for (int balance = 1; balance <= 3; balance += 2) {
            const int64_t rows = INT64_C(16) / 4 * (mode == POD_STEP_DECODE ? 1 : 128) * 2;
            step_case c;
            prepare(&c, &model,
                    &(inference){"v5e:2x4", "expert=4,tensor=2", (pod_step_mode)mode, 16, 128});
            c.request.settings.expert_balance = balance;
            step_build(&c);
            cr_expect_eq(step_bytes(&c, POD_ALL_TO_ALL, "expert"), 2 * balance * rows * 512 * 2);
            cr_expect_eq(op_named(&c, "fwd.matmul.experts.in")->grouped->m, balance * rows);
            step_free(&c);
        }
    }
}

Test(inference, prefill_cuts_queries_by_heads)
{
    const pod_model model = model_named("palm-540b");
    step_case c;
    prepare(&c, &model, &(inference){"v4:4x4x4", "fsdp=4,tensor=16", POD_STEP_PREFILL, 1, 2048});
    step_build(&c);
    const pod_op *attention = op_named(&c, "fwd.attention");
    cr_expect_eq(attention->attention->heads, 1); /* 48 over 64 chips */
    cr_expect_eq(attention->attention->queries, 2048);
    cr_expect_eq(c.work.rows, 2048);
    step_free(&c);
}

Test(inference, smallest_cases)
{
    const pod_model model = model_inline(small);
    for (int mode = POD_STEP_PREFILL; mode <= POD_STEP_DECODE; mode++) {
        step_case c;
        prepare(&c, &model, &(inference){"v5e:1x1", "tensor=1", (pod_step_mode)mode, 1, 1});
        step_build(&c);
        cr_expect_eq(count_collectives(&c, 0), 0);
        cr_expect_eq(cache_bytes(&c), 4 * 2 * 4 * 64 * 2);
        step_free(&c);
    }
}

Test(inference, what_does_not_divide_is_named)
{
    static const struct {
        inference of;
        const char *says;
    } cases[] = {
        {{"v5e:2x4", "tensor=2,fsdp=4", POD_STEP_DECODE, 8, 64},   NULL      },
        {{"v5e:2x4", "data=8", POD_STEP_DECODE, 12, 64},           "batch"   },
        {{"v5e:2x4", "tensor=8", POD_STEP_DECODE, 8, 64},          "d_ff"    },
        {{"v5e:4x4", "fsdp=16", POD_STEP_PREFILL, 8, 64},          "d_model" },
        {{"v5e:2x4", "sequence=8", POD_STEP_DECODE, 8, 64},        "sequence"},
        {{"v5e:2x4", "pipeline=2,fsdp=4", POD_STEP_DECODE, 8, 64}, "pipeline"},
    };
    const pod_model model = model_inline("transformer:layers=4,d_model=8,d_ff=4,heads=16,"
                                         "kv_heads=4,head_dim=64,vocab=1024,mlp_matrices=3");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        step_case c;
        pod_error err = {0};
        prepare(&c, &model, &cases[i].of);
        const pod_status st = pod_step_build(&c.request, &c.work, &err);
        cr_expect_eq(st, cases[i].says == NULL ? POD_OK : POD_E_INVALID, "%s", err.text);
        cr_expect(cases[i].says == NULL || strstr(err.text, cases[i].says) != NULL, "%s", err.text);
        step_free(&c);
    }
}

Test(inference, takes_its_batch_as_a_whole_and_its_attention_as_a_kernel)
{
    const pod_model model = model_inline(small);
    step_case c;
    pod_error err = {0};
    prepare(&c, &model, &(inference){"v5e:2x4", "tensor=8", POD_STEP_DECODE, 8, 64});
    c.request.microbatches = 2;
    cr_expect_eq(pod_step_build(&c.request, &c.work, &err), POD_E_USAGE);
    cr_expect(strstr(err.text, "--microbatches") != NULL, "%s", err.text);
    step_free(&c);
    prepare(&c, &model, &(inference){"v5e:2x4", "tensor=8", POD_STEP_DECODE, 8, 64});
    c.request.attention = POD_ATTENTION_PLAIN;
    err = (pod_error){0};
    cr_expect_eq(pod_step_build(&c.request, &c.work, &err), POD_E_USAGE);
    cr_expect(strstr(err.text, "--attention plain") != NULL, "%s", err.text);
    step_free(&c);
}

Test(inference, no_experts_side_by_side)
{
    pod_model model;
    pod_error err = {0};
    cr_expect_eq(pod_model_parse("transformer:layers=2,d_model=512,d_ff=2048,heads=8,kv_heads=8,"
                                 "head_dim=64,vocab=1024,mlp_matrices=3,experts=8,top_k=2,"
                                 "moe_d_ff=1024,parallel=1",
                                 NULL, &model, &err),
                 POD_E_USAGE);
    cr_expect(strstr(err.text, "parallel") != NULL, "%s", err.text);
}
