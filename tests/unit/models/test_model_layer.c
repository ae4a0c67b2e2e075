/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a layer's matmuls. */
#include <criterion/criterion.h>

#include "models/model.h"
#include "models/model_layer.h"

#include <string.h>

static pod_model parsed(const char *text)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse(text, NULL, &model, &err), POD_OK, "%s", err.text);
    return model;
}

static const char llama[] = "transformer:layers=32,d_model=4096,d_ff=14336,heads=32,kv_heads=8,"
                            "head_dim=128,vocab=128256,mlp_matrices=3";

/* From: config.json of Llama-3.1-8B: hidden_size 4096, intermediate_size 14336, 32 and 8 heads of 128. */
Test(model_layer, matmuls_of_llama_in_the_order_of_a_token)
{
    static const struct {
        const char *name;
        int64_t k;
        int64_t n;
        int64_t count;
        int64_t k_of_16; /* on one of 16 chips of tensor: two of them share a head of keys */
        int64_t n_of_16;
    } rows[] = {
        {"query", 4096,  4096,  1, 4096, 256 },
        {"key",   4096,  1024,  1, 4096, 128 },
        {"value", 4096,  1024,  1, 4096, 128 },
        {"out",   4096,  4096,  1, 256,  4096},
        {"in",    4096,  14336, 2, 4096, 896 },
        {"down",  14336, 4096,  1, 896,  4096},
    };
    const pod_model model = parsed(llama);
    const pod_layer layer = pod_model_layer(&model, 3);
    cr_assert_eq(layer.nmatmuls, (int)(sizeof rows / sizeof rows[0]));
    for (int i = 0; i < layer.nmatmuls; i++) {
        const pod_layer_matmul *m = &layer.matmul[i];
        cr_expect_str_eq(m->name, rows[i].name);
        cr_expect_eq(m->k, rows[i].k, "%s", m->name);
        cr_expect_eq(m->n, rows[i].n, "%s", m->name);
        cr_expect_eq(m->count, rows[i].count, "%s", m->name);
        cr_expect_eq(pod_layer_matmul_k(m, 16), rows[i].k_of_16, "%s", m->name);
        cr_expect_eq(pod_layer_matmul_n(m, 16), rows[i].n_of_16, "%s", m->name);
    }
    cr_assert_eq(pod_layer_weights(&model, &layer, false),
                 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336));
    cr_assert_eq(pod_layer_attention_weights(&layer), 4096 * (2 * 4096 + 2 * 1024));
    cr_assert_eq(pod_layer_projection_width(&layer, 1), 4096 + 2 * 1024);
    cr_assert_null(pod_layer_find(&layer, POD_ROLE_ROUTER));
}

/* Of 8 experts a token passes 2: up, gate and down of 64 x 32 each, beside the router. */
Test(model_layer, a_token_passes_few_experts)
{
    const pod_model model =
        parsed("transformer:layers=1,d_model=64,d_ff=256,heads=4,kv_heads=4,head_dim=16,vocab=128,"
               "mlp_matrices=3,experts=8,top_k=2,moe_d_ff=32");
    const pod_layer layer = pod_model_layer(&model, 0);
    const int64_t attention = 4 * 64 * 64;
    cr_assert_eq(pod_layer_weights(&model, &layer, false), attention + 64 * 8 + 8 * 3 * 64 * 32);
    cr_assert_eq(pod_layer_weights(&model, &layer, true), attention + 64 * 8 + 2 * 3 * 64 * 32);
    cr_assert_not_null(pod_layer_find(&layer, POD_ROLE_ROUTER));
    cr_assert_null(pod_layer_find(&layer, POD_ROLE_DOWN));
}

/* DeepSeek: queries and keys with values through narrow matrices, which tensor can't cut. */
Test(model_layer, latent_projections_are_whole_on_every_chip)
{
    const pod_model model =
        parsed("transformer:layers=1,d_model=64,d_ff=256,heads=4,kv_heads=4,head_dim=16,vocab=128,"
               "mlp_matrices=3,q_lora=24,kv_lora=12,rope_dim=8,v_head_dim=10");
    const pod_layer layer = pod_model_layer(&model, 0);
    const pod_layer_matmul *m = layer.matmul;
    cr_assert_str_eq(m[0].name, "query.latent");
    cr_assert_eq(pod_layer_matmul_n(&m[0], 4), 24);
    cr_assert_str_eq(m[1].name, "query");
    cr_assert_eq(pod_layer_matmul_n(&m[1], 4), 16 + 8);
    cr_assert_str_eq(m[2].name, "kv.latent");
    cr_assert_eq(pod_layer_matmul_n(&m[2], 4), 12 + 8);
    cr_assert_str_eq(m[3].name, "kv");
    cr_assert_eq(pod_layer_matmul_n(&m[3], 4), 16 + 10);
}

/* The narrowest there is. */
Test(model_layer, keys_and_values_pass_through_a_column)
{
    const pod_model model =
        parsed("transformer:layers=1,d_model=64,d_ff=256,heads=4,kv_heads=4,head_dim=16,vocab=128,"
               "mlp_matrices=3,q_lora=24,kv_lora=1,rope_dim=8,v_head_dim=10");
    const pod_layer layer = pod_model_layer(&model, 0);
    cr_assert_str_eq(layer.matmul[2].name, "kv.latent");
    cr_assert_eq(pod_layer_matmul_n(&layer.matmul[2], 4), 1 + 8);
}
