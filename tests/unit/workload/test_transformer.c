/* SPDX-License-Identifier: Apache-2.0 */
/* Transformers: their sizes against published totals, what their programs do, and what they keep. */
#include "make.h"

#include <math.h>

#include "models/model_layer.h"
#include "tables.h"

/* names.csv has MaxText's 53 model files but deepseek4's, with published totals or those counted from the file. */
Test(transformer, models_have_as_many_weights_as_published)
{
    model_tables t = model_tables_load();
    pod_catalog_row *rows = NULL;
    pod_error err = {0};
    int count = 0;
    cr_assert_eq(pod_catalog_list(&t.maxtext, &rows, &count, &err), POD_OK, "%s", err.text);
    cr_assert_eq(count, pod_table_rows(t.names) + pod_table_rows(t.own));
    for (int i = 0; i < count; i++) {
        const double published = 1e9 * strtod(rows[i].params_B, NULL);
        const double weights = (double)pod_model_weights(&rows[i].model);
        cr_expect_float_eq(weights / published, 1, 0.02, "%s: %.4g, published %.4g", rows[i].name,
                           weights, published);
    }
    free(rows);
    model_tables_free(&t);
}

Test(transformer, the_nearest_name_is_offered)
{
    model_tables t = model_tables_load();
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_catalog_model(&t.maxtext, "llama3.1-80b", &model, &err), POD_E_USAGE);
    cr_assert(strstr(err.text, "did you mean 'llama3.1-8") != NULL, "%s", err.text);
    model_tables_free(&t);
}

/* 6 · P · tokens + 12 · B · S² · L · heads · head_dim: 413.433 TFLOP/s a chip in 3.443 s (TRv6e-001). */
Test(transformer, flops_are_those_of_maxtext)
{
    const pod_model model = model_named("llama3.1-8b");
    const double flops = pod_model_flops(
        &model, &(pod_model_flops_args){.rows = 24 * 8192, .seq = 8192, .train = true});
    cr_assert_float_eq(flops / 8 / (413.433e12 * 3.443), 1, 1e-3, "%g", flops);
    const pod_model_flops_args forward = {.rows = 24 * 8192, .seq = 8192};
    cr_assert_float_eq(pod_model_flops(&model, &forward), flops / 3, flops * 1e-12);
    /* the mask leaves S (S + 1) / 2 of S² scores: 2 · 32 layers · 4096 columns · 2 less a hidden key */
    const pod_model_flops_args causal = {.rows = 8192, .seq = 8192, .causal = true};
    const pod_model_flops_args all = {.rows = 8192, .seq = 8192};
    cr_assert_float_eq(pod_model_flops(&model, &all) - pod_model_flops(&model, &causal),
                       8192.0 * 8191 / 2 * 32 * 4 * 4096, 1e6);
}

/* 37e9 of 671e9 weights work on a token of DeepSeek-V3, its report says. */
Test(transformer, few_experts_of_many_are_active)
{
    const pod_model model = model_named("deepseek-v3");
    int64_t active = model.vocab * model.d_model;
    for (int64_t l = 0; l < model.layers; l++) {
        const pod_layer layer = pod_model_layer(&model, l);
        active += pod_layer_weights(&model, &layer, true);
    }
    cr_assert_float_eq((double)active / 37e9, 1, 0.02, "%lld", (long long)active);
}

Test(transformer, layers_follow_their_pattern)
{
    const pod_model gemma = model_named("gemma3-12b");
    cr_assert_eq(pod_model_layer(&gemma, 4).window, 1024);
    cr_assert_eq(pod_model_layer(&gemma, 5).window, 0);
    cr_assert_eq(pod_model_pattern(&gemma).period, 6);
    const pod_model maverick = model_named("llama4-maverick");
    cr_assert_eq(pod_model_layer(&maverick, 0).experts, 0);
    cr_assert_eq(pod_model_layer(&maverick, 1).experts, 128);
    cr_assert_eq(pod_model_pattern(&maverick).period, 4);
    cr_assert_eq(pod_model_layer(&maverick, 2).window, 8192);
    cr_assert(pod_model_layer(&maverick, 2).chunked);
    cr_assert_eq(pod_model_layer(&maverick, 3).window, 0);
    const pod_model gemma2 = model_named("gemma2-9b");
    cr_assert_eq(gemma2.layers, 42);
    cr_assert_eq(pod_model_layer(&gemma2, 0).window, 4096);
    cr_assert_eq(pod_model_layer(&gemma2, 1).window, 0);
    const pod_model qwen = model_named("qwen3.5-35b-a3b");
    cr_assert_eq(pod_model_layer(&qwen, 2).delta_chunk, 64);
    cr_assert_eq(pod_model_layer(&qwen, 3).delta_chunk, 0);
    cr_assert_eq(pod_model_layer(&qwen, 2).kv_width, 0);
    cr_assert_eq(pod_model_pattern(&qwen).period, 4);
    const pod_model envy = model_named("envy-switch-base");
    cr_assert_eq(pod_model_layer(&envy, 0).experts, 0);
    cr_assert_eq(pod_model_layer(&envy, 1).experts, 128);
    const pod_model deepseek = model_named("deepseek-v3");
    cr_assert_eq(pod_model_layer(&deepseek, 2).experts, 0);
    cr_assert_eq(pod_model_layer(&deepseek, 3).experts, 256);
    cr_assert_eq(pod_model_pattern(&deepseek).prefix, 3);
}

/* Heads of 128 with 128: K·Kᵀ, Q·Kᵀ, the scores with the values (2 · 64 · 128 each), the triangular system (64 · 256),
 * three products with the state (2 · 128 · 128 each). */
Test(transformer, the_gated_delta_rule_is_linear_in_length)
{
    const pod_model model = model_named("qwen3.5-35b-a3b");
    const pod_layer delta = pod_model_layer(&model, 0);
    cr_assert_eq(pod_layer_delta_flops(&delta),
                 32 * (3 * 2 * 64 * 128 + 64 * 256 + 3 * 2 * 128 * 128.0));
    pod_model_flops_args args = {.rows = 1, .seq = 1024, .causal = true};
    const double is_short = pod_model_flops(&model, &args);
    args.seq = 2048;
    /* the ten layers with attention: 16 heads of 256 with 256 */
    cr_assert_float_eq(pod_model_flops(&model, &args) - is_short, 10.0 * 4 * 512 * 16 * 256, 1);
}

/* Scores of the indexer over all pairs, attention over its best: 64 heads of 128 over half of 8192, then 2048 keys. */
Test(transformer, an_indexer_leaves_few_keys)
{
    pod_model with;
    pod_model without;
    char text[] = "transformer:layers=1,d_model=1024,d_ff=1024,heads=16,kv_heads=16,head_dim=128,"
                  "vocab=1024,mlp_matrices=3,kv_lora=512,rope_dim=64,v_head_dim=128,"
                  "index_top_k=2048,index_heads=64,index_dim=128";
    cr_assert_eq(pod_model_parse(text, NULL, &with, NULL), POD_OK);
    *strstr(text, ",index_top_k") = '\0';
    cr_assert_eq(pod_model_parse(text, NULL, &without, NULL), POD_OK);
    const double more = 1024 * (64 * 128 + 128 + 64);
    cr_assert_eq((double)(pod_model_weights(&with) - pod_model_weights(&without)), more);
    const pod_model_flops_args args = {.rows = 1, .seq = 8192, .causal = true};
    const double all = 8193 / 2.0;
    const double few = 2048 * (8192 - 2047 / 2.0) / 8192;
    cr_assert_float_eq(pod_model_flops(&with, &args) - pod_model_flops(&without, &args),
                       2 * more + 2 * all * 64 * 128 - 2 * (all - few) * 16 * (192 + 128), 1);
}

static const char small[] = "transformer:layers=4,d_model=512,d_ff=2048,heads=8,kv_heads=4,"
                            "head_dim=64,vocab=1024,mlp_matrices=3";

static int64_t flops_of_matmuls(const step_case *c)
{
    const pod_program *program = &c->work.programs.stages[0];
    int64_t flops = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        flops += op->kind == POD_OP_MATMUL ? 2 * op->m * op->k * op->n * op->count : 0;
    }
    return flops;
}

/* Keeping less takes less memory and more products; minimal does no product with weights twice. */
Test(transformer, what_is_not_kept_is_done_again)
{
    static const pod_remat remats[] = {POD_REMAT_NONE, POD_REMAT_MINIMAL, POD_REMAT_FULL};
    int64_t bytes[3];
    int64_t flops[3];
    for (int i = 0; i < 3; i++) {
        step_case c;
        step_prepare(&c, "v5p:2x2x2", "none", "fsdp=8", small, 64);
        c.request.seq = 1024;
        c.request.remat = remats[i];
        step_build(&c);
        bytes[i] = c.work.memory.peak_bytes;
        flops[i] = flops_of_matmuls(&c);
        step_free(&c);
    }
    cr_assert_gt(bytes[0], bytes[1]);
    cr_assert_gt(bytes[1], bytes[2]);
    cr_assert_eq(flops[0], flops[1]);
    /* full: projections of attention and those before the function of the MLP, of 8192 tokens */
    const int64_t layer = 512 * 64 * (8 + 2 * 4 + 8) + 2 * 512 * 2048;
    cr_assert_eq(flops[2] - flops[0], INT64_C(2) * 8192 * 4 * layer);
}

static const pod_op *op_named(const step_case *c, const char *name)
{
    const pod_program *program = &c->work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        if (strcmp(program->ops[i].name, name) == 0) {
            return &program->ops[i];
        }
    }
    return NULL;
}

/* 1025 words over 4 chips: 257 rows each, the last ones padded. 8 x 128 tokens on each of two copies. */
Test(transformer, the_embedding_multiplies_its_part_of_the_vocabulary)
{
    step_case c;
    step_prepare(&c, "v5p:2x2x2", "none", "data=2,tensor=4",
                 "transformer:layers=4,d_model=512,d_ff=2048,heads=8,kv_heads=4,head_dim=64,"
                 "vocab=1025,mlp_matrices=3",
                 16);
    c.request.seq = 128;
    step_build(&c);
    const pod_op *embed = op_named(&c, "fwd.matmul.embed");
    cr_assert_not_null(embed);
    cr_expect_eq(embed->m, 8 * 128);
    cr_expect_eq(embed->k, 257);
    cr_expect_eq(embed->n, 512);
    step_free(&c);
}

/* What a chip has whole is neither gathered nor scattered, and its layout stays. */
Test(transformer, only_cut_weights_and_gradients_change_their_layout)
{
    for (int cut = 0; cut < 2; cut++) {
        step_case c;
        step_prepare(&c, "v5p:2x2x2", "none", cut ? "fsdp=8" : "data=8", small, 16);
        c.request.seq = 128;
        step_build(&c);
        cr_expect_eq(op_named(&c, "relayout.weights") != NULL, cut == 1);
        cr_expect_eq(op_named(&c, "relayout.gradients") != NULL, cut == 1);
        step_free(&c);
    }
}

Test(transformer, a_pipeline_has_a_program_for_each_stage)
{
    step_case c;
    step_prepare(&c, "v5p:2x2x2", "none", "pipeline=2,fsdp=4", small, 64);
    c.request.seq = 128;
    c.request.microbatches = 4;
    step_build(&c);
    cr_assert_eq(c.work.programs.nstages, 2);
    step_free(&c);
}

/** Bytes that a stage sends in messages of a name. */
static int64_t bytes_sent(const step_case *c, int stage, const char *name)
{
    const pod_program *program = &c->work.programs.stages[stage];
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        bytes += op->kind == POD_OP_SEND && strcmp(op->name, name) == 0 ? op->bytes : 0;
    }
    return bytes;
}

/* The first stage and the last one have the table, and each has the sum of its gradient at the end. */
Test(transformer, ends_of_a_pipeline_sum_the_gradient_of_a_tied_table)
{
    const int64_t shard = INT64_C(1024) * 512 / 2; /* over fsdp=2 */
    for (int tied = 0; tied < 2; tied++) {
        char model[256];
        step_case c;
        (void)snprintf(model, sizeof model, "%s%s", small, tied == 1 ? ",tied=1" : "");
        step_prepare(&c, "v5p:2x2x2", "none", "pipeline=4,fsdp=2", model, 64);
        c.request.seq = 128;
        c.request.microbatches = 4;
        step_build(&c);
        for (int stage = 0; stage < 4; stage++) {
            const bool end = stage == 0 || stage == 3;
            cr_expect_eq(bytes_sent(&c, stage, "bwd.sum.head"), tied == 1 && end ? 2 * shard : 0,
                         "%d %d", tied, stage);
        }
        step_free(&c);
    }
}

Test(transformer, experts_exchange_rows_over_their_axis)
{
    step_case c;
    step_prepare(&c, "v5p:2x2x2", "none", "expert=4,fsdp=2",
                 "transformer:layers=2,d_model=512,d_ff=2048,heads=8,kv_heads=4,head_dim=64,"
                 "vocab=1024,mlp_matrices=3,experts=8,top_k=2,moe_d_ff=1024",
                 64);
    c.request.seq = 128;
    c.request.remat = POD_REMAT_FULL;
    step_build(&c);
    /* there and back, forward, backward and again: 6 a layer, 2 rows of 512 for each of 1024 tokens */
    cr_assert_eq(step_bytes(&c, POD_ALL_TO_ALL, "expert"), INT64_C(6) * 2 * 2 * 1024 * 512 * 2);
    step_free(&c);
}

Test(transformer, sequences_gather_keys_and_values)
{
    step_case c;
    step_prepare(&c, "v5p:2x2x2", "none", "sequence=4,fsdp=2", small, 2);
    c.request.seq = 1024;
    c.request.remat = POD_REMAT_NONE;
    step_build(&c);
    /* forward and backward, 4 layers, 1024 tokens, keys and values of 4 heads of 64 */
    cr_assert_eq(step_bytes(&c, POD_ALL_GATHER, "sequence"),
                 INT64_C(2) * 4 * 1024 * 2 * 4 * 64 * 2);
    step_free(&c);
}

/* Weights are cut over sequence, too, and gathered over both axes. */
Test(transformer, sequences_cut_weights)
{
    static const char *const meshes[2] = {"sequence=4,fsdp=2", "fsdp=8"};
    static const char *const axes[2] = {"sequence,fsdp", "fsdp"};
    int64_t weights[2];
    int64_t gathered[2];
    for (int i = 0; i < 2; i++) {
        step_case c;
        step_prepare(&c, "v5p:2x2x2", "none", meshes[i], small, 8);
        c.request.seq = 1024;
        c.request.optimizer = POD_OPTIMIZER_ADAM;
        c.request.remat = POD_REMAT_FULL;
        step_build(&c);
        weights[i] = c.work.memory.by_kind[POD_MEMORY_WEIGHTS];
        gathered[i] = step_bytes(&c, POD_ALL_GATHER, axes[i]);
        step_free(&c);
    }
    cr_assert_gt(gathered[0], 0);
    cr_assert_eq(gathered[0], gathered[1]);
    cr_assert_eq(weights[0], weights[1]);
}

Test(transformer, what_does_not_divide_is_named)
{
    static const struct {
        const char *mesh;
        int64_t batch;
        const char *says;
    } cases[] = {
        {"fsdp=8",          12, "batch" },
        {"tensor=8",        8,  "kv"    },
        {"sequence=8",      8,  "seq"   },
        {"expert=2,fsdp=4", 8,  "expert"},
        {"pipeline=8",      8,  "layers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        step_case c;
        pod_error err = {0};
        step_prepare(&c, "v5p:2x2x2", "none", cases[i].mesh, small, cases[i].batch);
        c.request.seq = 100;
        const pod_status st = pod_step_build(&c.request, &c.work, &err);
        if (i == 1) {
            cr_assert_eq(st, POD_OK, "fewer kv heads than tensor are copied: %s", err.text);
        } else {
            cr_assert_eq(st, POD_E_INVALID);
            cr_assert(strstr(err.text, cases[i].says) != NULL, "%s", err.text);
        }
        step_free(&c);
    }
}

/* Every kind of model builds in every mode on layouts that suit it, or says in one line why not. */
Test(transformer, every_model_in_every_mode)
{
    static const char *const meshes[] = {"fsdp=256", "fsdp=64,tensor=4", "fsdp=4,tensor=64",
                                         "fsdp=32,tensor=8", "tensor=8,expert=32"};
    for (int row = 0; row < MODELS_OF_ALL_KINDS; row++) {
        int built = 0;
        const pod_model model = model_named(models_of_all_kinds[row]);
        for (int mode = POD_STEP_TRAIN; mode <= POD_STEP_DECODE; mode++) {
            for (size_t m = 0; m < sizeof meshes / sizeof meshes[0]; m++) {
                step_case c;
                pod_error err = {0};
                step_prepare(&c, "v5p:4x8x8", "xyz", meshes[m], "mlp:layers=1,d_model=8,d_ff=8",
                             512);
                c.model = model;
                c.request.seq = 1024;
                c.request.mode = (pod_step_mode)mode;
                c.request.optimizer = POD_OPTIMIZER_ADAM;
                c.request.remat = POD_REMAT_FULL;
                const pod_status st = pod_step_build(&c.request, &c.work, &err);
                cr_expect(st == POD_OK || st == POD_E_INVALID, "%s: %s", model.name, err.text);
                cr_expect(st == POD_OK || (err.text[0] != '\0' && !strchr(err.text, '\n')));
                cr_expect(st != POD_OK || c.work.memory.peak_bytes > 0);
                built += st == POD_OK;
                step_free(&c);
            }
        }
        cr_expect_geq(built, 8, "%s: only %d of 20", model.name, built);
    }
}
