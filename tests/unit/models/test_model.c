/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "models/model.h"

Test(model, an_mlp_has_two_matrices_a_layer)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse("mlp:layers=4,d_model=4096,d_ff=16384", NULL, &model, &err),
                 POD_OK);
    cr_assert_eq(model.kind, POD_MODEL_MLP);
    cr_assert_eq(model.layers, 4);
    cr_assert_eq(model.d_model, 4096);
    cr_assert_eq(model.d_ff, 16384);
    cr_assert_eq(pod_model_weights(&model), INT64_C(4) * 2 * 4096 * 16384);
    cr_assert_float_eq(
        pod_model_flops(&model, &(pod_model_flops_args){.rows = 10, .seq = 1, .train = true}),
        60.0 * 4 * 2 * 4096 * 16384, 1);
    cr_assert_float_eq(pod_model_flops(&model, &(pod_model_flops_args){.rows = 10, .seq = 1}),
                       20.0 * 4 * 2 * 4096 * 16384, 1);
}

Test(model, a_matmul_is_one_layer_whose_rows_are_the_batch)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse("matmul:n=7,m=5,k=3", NULL, &model, &err), POD_OK);
    cr_assert_eq(model.m, 5);
    cr_assert_eq(model.d_model, 3);
    cr_assert_eq(model.d_ff, 7);
    cr_assert_eq(model.layers, 1);
    cr_assert_eq(pod_model_weights(&model), 21);
}

Test(model, what_is_no_model_is_refused_with_what_would_be_right)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"mlq:layers=1",                           "did you mean 'mlp'" },
        {"",                                       "model"              },
        {"mlp",                                    "has no layers"      },
        {"mlp:layers=2,d_model=8",                 "has no d_ff"        },
        {"mlp:layers=2,d_model=8,d_fff=8",         "did you mean 'd_ff'"},
        {"mlp:layers=2,layers=3,d_model=8,d_ff=8", "twice"              },
        {"mlp:layers,d_model=8,d_ff=8",            "no value"           },
        {"mlp:layers=0,d_model=8,d_ff=8",          "layers"             },
        {"mlp:layers=x,d_model=8,d_ff=8",          "layers"             },
        {"mlp:layers=2,d_model=8,d_ff=8,",         "comma"              },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_model model;
        pod_error err = {0};
        const pod_status st = pod_model_parse(cases[i].text, NULL, &model, &err);
        cr_assert_eq(pod_status_exit_code(st), i == 8 || i == 7 ? pod_status_exit_code(st) : 2);
        cr_assert_neq(st, POD_OK, "%s", cases[i].text);
        cr_assert(strstr(err.text, cases[i].says) != NULL, "%s: %s", cases[i].text, err.text);
    }
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse("mlp:layers=2147483647,d_model=2147483647,d_ff=2147483647", NULL,
                                 &model, &err),
                 POD_E_RANGE);
}

/* The columns of models.csv with one row that begins with `first`; the others are 0 or 1. */
static pod_status check_row(const char *first, pod_error *err)
{
    static const char header[] =
        "model,layers,d_model,d_ff,heads,kv_heads,head_dim,vocab,mlp_matrices,tied,window,"
        "global_every,global_head_dim,global_kv_heads,experts,top_k,moe_d_ff,shared_d_ff,"
        "dense_layers,moe_every,capacity_percent,q_lora,kv_lora,rope_dim,v_head_dim,shared_kv,"
        "kv_shared_layers,wide_layers,qk_norms,post_norms,layer_embedding,parallel,params_B,source";
    char text[2048];
    const int size =
        snprintf(text, sizeof text, "%s\n%s,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1.0,x\n",
                 header, first);
    pod_table *table = NULL;
    pod_status st = pod_table_parse("m.csv", text, (size_t)size, &table, err);
    if (st == POD_OK) {
        st = pod_models_check(table, err);
    }
    pod_table_free(table);
    return st;
}

Test(model, a_table_is_checked_row_by_row)
{
    static const struct {
        const char *first;
        const char *says;
        int column;
    } cases[] = {
        {"a,1,64,64,4,4,16,100,4", "MLPs of 4 matrices", 1 },
        {"a,1,64,64,4,3,16,100,2", "can't share",        1 },
        {"a,0,64,64,4,4,16,100,2", "layers: 0",          3 },
        {",1,64,64,4,4,16,100,2",  "no model name",      1 },
        {"a:b,1,64,64,4,4,16,1,2", "no model name",      1 },
        {"a,1,64,64,4,4,16,x,2",   "vocab: 'x'",         18},
    };
    pod_error err = {0};
    cr_assert_eq(check_row("a,1,64,64,4,4,16,100,2", &err), POD_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_error_clear(&err);
        cr_assert_eq(check_row(cases[i].first, &err), POD_E_TABLE, "%s", cases[i].first);
        cr_assert(strstr(err.text, cases[i].says) != NULL, "%s: %s", cases[i].first, err.text);
        cr_assert_eq(err.line, 2);
        cr_assert_eq(err.column, cases[i].column, "%d", err.column);
    }
}

static pod_model model_of(const char *text)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse(text, NULL, &model, &err), POD_OK, "%s", err.text);
    return model;
}

/* The published checkpoint has 25,557,032 weights; 4,089,184,256 multiply-adds forward, of which the first
 * convolution's 112² · 147 · 64 have no derivative by the picture. */
Test(model, resnet50_has_the_published_weights)
{
    const pod_model model =
        model_of("resnet:stage1=3,stage2=4,stage3=6,stage4=3,image=224,classes=1000");
    const pod_model_flops_args forward = {.rows = 1, .seq = 1};
    const pod_model_flops_args train = {.rows = 2, .seq = 1, .train = true};
    cr_assert_eq(model.layers, 16);
    cr_assert_eq(pod_model_weights(&model), 25557032);
    cr_assert_eq(pod_model_flops(&model, &forward), 2 * 4089184256.0);
    cr_assert_eq(pod_model_flops(&model, &train),
                 2 * 2 * (3 * 4089184256.0 - 112.0 * 112 * 147 * 64));
}

/* 196 patches, positions of 197 tokens, 12 layers with biases and two norms, a norm and a head of 1000 classes. */
Test(model, a_vision_transformer_has_the_published_weights)
{
    const pod_model model =
        model_of("transformer:layers=12,d_model=768,d_ff=3072,heads=12,vocab=1000,mlp_matrices=2,"
                 "positions=197,encoder=1,masked=1,biases=1,image=224,patch=16");
    cr_assert_eq(pod_model_tokens(&model), 197);
    const int64_t layer = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768;
    cr_assert_eq(pod_model_weights(&model),
                 12 * layer + 768 * 768 + 197 * 768 + 2 * 768 + 768 * 1000 + 1000);
}

/* All 8 keys instead of 4.5 on average; the head reads 2 of 8 tokens. */
Test(model, an_encoder_sees_all_tokens_and_reads_some)
{
    const char sizes[] = "transformer:layers=1,d_model=8,d_ff=16,heads=2,vocab=100,mlp_matrices=2";
    char text[128];
    const pod_model decoder = model_of(sizes);
    (void)snprintf(text, sizeof text, "%s,encoder=1,masked=2", sizes);
    const pod_model encoder = model_of(text);
    const pod_model_flops_args args = {.rows = 16, .seq = 8, .causal = true};
    const double weights = 16.0 * 2 * (4 * 8 * 8 + 2 * 8 * 16);
    cr_assert_eq(pod_model_flops(&decoder, &args), weights + 16 * (4 * 4.5 * 8 + 2.0 * 8 * 100));
    cr_assert_eq(pod_model_flops(&encoder, &args), weights + 16 * 4 * 8.0 * 8 + 4 * 2.0 * 8 * 100);
}

Test(model, a_convolution_has_its_taps_as_weights)
{
    const pod_model model = model_of("conv:n=8,h=9,w=7,cin=8,cout=16,kh=3,kw=2,stride=2");
    const pod_model_flops_args train = {.rows = 8, .seq = 1, .train = true};
    cr_assert_eq(pod_model_weights(&model), 3 * 2 * 8 * 16);
    cr_assert_eq(pod_model_flops(&model, &train), 6.0 * 8 * 5 * 4 * 3 * 2 * 8 * 16);
}
