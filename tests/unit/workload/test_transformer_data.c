/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays of transformers with real numbers, and the values they start from. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workload/verify/transformer_data.h"

static pod_model parse(const char *text)
{
    pod_error err = {0};
    pod_model model;
    cr_assert_eq(pod_model_parse(text, NULL, &model, &err), POD_OK, "%s", err.text);
    return model;
}

static const char dense[] = "transformer:layers=2,d_model=64,d_ff=128,heads=4,kv_heads=2,head_dim="
                            "16,vocab=96,mlp_matrices=3";
static const char experts[] =
    "transformer:layers=2,d_model=64,d_ff=128,heads=4,kv_heads=2,head_dim=16,vocab=96,"
    "mlp_matrices=3,experts=8,top_k=2,moe_d_ff=32,shared_d_ff=32";
static const char learned[] =
    "transformer:layers=1,d_model=64,d_ff=128,heads=4,vocab=96,mlp_matrices=2,positions=32,tied=1";

Test(transformer_data, arrays_are_the_weights_that_the_model_counts)
{
    const char *const texts[] = {dense, experts, learned};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const pod_model model = parse(texts[i]);
        int64_t weights = 0;
        for (int64_t a = 0; a < pod_transformer_arrays(&model); a++) {
            const pod_transformer_array array = pod_transformer_array_at(&model, a);
            pod_transformer_array found;
            weights += array.groups * array.rows * array.columns;
            cr_assert(pod_transformer_array_find(&model, array.name, &found), "%s", array.name);
            cr_expect_eq(memcmp(&array, &found, sizeof array), 0, "%s", array.name);
        }
        const int64_t scales =
            (2 * model.layers + 1) * model.d_model; /* of norms, which have none here */
        cr_expect_eq(weights, pod_model_weights(&model) - scales, "%s", texts[i]);
    }
}

Test(transformer_data, arrays_have_the_names_of_their_matmuls)
{
    const pod_model model = parse(experts);
    const char *const names[] = {"embedding",          "layer.0.query", "layer.0.in.1",
                                 "layer.1.router",     "head",          "layer.1.experts.gate",
                                 "layer.0.experts.in", "layer.1.down",  "layer.0.experts.down"};
    pod_transformer_array array;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_expect(pod_transformer_array_find(&model, names[i], &array), "%s", names[i]);
    }
    cr_expect_not(pod_transformer_array_find(&model, "positions", &array));
    cr_assert(pod_transformer_array_find(&model, "layer.1.experts.gate", &array));
    cr_expect_eq(array.groups, 8);
    cr_expect_eq(array.rows, 64);
    cr_expect_eq(array.columns, 32);
}

static void fill(const pod_transformer_array *array, pod_patch patch, pod_dtype dtype, float *out)
{
    const int64_t count = patch.rows * patch.columns;
    void *stored = calloc((size_t)count, sizeof(float));
    pod_transformer_fill_patch(array, 7, &patch, dtype, stored);
    pod_dtype_to_f32(dtype, out, stored, count);
    free(stored);
}

Test(transformer_data, patches_are_parts_of_the_whole_and_exact_in_bf16)
{
    enum { MOST = 8 * 64 * 128 };
    const pod_model model = parse(experts);
    static float whole[MOST];
    static float part[MOST];
    for (int64_t a = 0; a < pod_transformer_arrays(&model); a++) {
        const pod_transformer_array array = pod_transformer_array_at(&model, a);
        const int64_t rows = array.groups * array.rows;
        const pod_patch patch = {
            .row = 3, .rows = rows - 5, .column = 2, .columns = array.columns - 3};
        cr_assert_leq(rows * array.columns, MOST);
        fill(&array, (pod_patch){.rows = rows, .columns = array.columns}, POD_DTYPE_F32, whole);
        fill(&array, patch, POD_DTYPE_BF16, part);
        for (int64_t i = 0; i < patch.rows * patch.columns; i++) {
            const int64_t at = (3 + i / patch.columns) * array.columns + 2 + i % patch.columns;
            cr_assert_eq(part[i], whole[at], "%s %d", array.name, (int)i);
        }
    }
}

Test(transformer_data, a_matmul_of_inputs_near_one_gives_results_near_one)
{
    enum { MOST = 64 * 128 };
    const pod_model model = parse(dense);
    static float whole[MOST];
    pod_transformer_array array;
    cr_assert(pod_transformer_array_find(&model, "layer.1.in.0", &array));
    fill(&array, (pod_patch){.rows = 64, .columns = 128}, POD_DTYPE_F32, whole);
    double squares = 0;
    for (int64_t i = 0; i < MOST; i++) {
        squares += (double)whole[i] * (double)whole[i];
    }
    const double rms = sqrt(squares / 128);
    cr_expect(rms > 0.7 && rms < 1.42, "%g", rms);
}

Test(transformer_data, each_token_takes_top_k_experts_by_the_embedding)
{
    enum { VOCAB = 96, EXPERTS = 8, D = 64 };
    const pod_model model = parse(experts);
    static float rows[VOCAB * D];
    int loads[EXPERTS] = {0};
    pod_transformer_array array;
    cr_assert(pod_transformer_array_find(&model, "embedding", &array));
    fill(&array, (pod_patch){.rows = VOCAB, .columns = D}, POD_DTYPE_BF16, rows);
    for (int t = 0; t < VOCAB; t++) {
        int taken = 0;
        for (int e = 0; e < EXPERTS; e++) {
            const float value = rows[t * D + 4 * e]; /* every fourth column is marked */
            const int again = EXPERTS + (e + EXPERTS - 1) % EXPERTS; /* in another order */
            cr_expect_eq(value > 1.0F, rows[t * D + 4 * again] > 1.0F);
            cr_expect(value > 1.0F || value < 0.0F);
            taken += value > 1.0F;
            loads[e] += value > 1.0F;
        }
        cr_expect_eq(taken, 2);
    }
    for (int e = 0; e < EXPERTS; e++) {
        cr_expect(loads[e] > 8 && loads[e] < 40, "%d", loads[e]);
    }
}

/** Parts of a router in each other's place choose other experts. */
Test(transformer_data, halves_and_quarters_of_a_router_differ)
{
    enum { EXPERTS = 8, D = 1024 };
    const pod_model model = parse(
        "transformer:layers=1,d_model=1024,d_ff=8,heads=4,vocab=96,experts=8,top_k=2,moe_d_ff=8");
    static float router[D * EXPERTS];
    pod_transformer_array array;
    cr_assert(pod_transformer_array_find(&model, "layer.0.router", &array));
    fill(&array, (pod_patch){.rows = D, .columns = EXPERTS}, POD_DTYPE_BF16, router);
    for (int parts = 2; parts <= 4; parts *= 2) {
        int alike = 0;
        for (int row = 0; row < D / parts; row += 4) {
            for (int e = 0; e < EXPERTS; e++) {
                const int other = (row + D / parts) * EXPERTS + e;
                alike += router[row * EXPERTS + e] > 0.03F && router[other] > 0.03F;
            }
        }
        cr_expect_eq(alike, 0, "%d parts: %d marked elements are alike", parts, alike);
    }
}

Test(transformer_data, form_follows_the_model)
{
    const pod_model llama = parse(dense);
    const pod_model gpt = parse(learned);
    const pod_transformer_form a = pod_transformer_form_of(&llama);
    const pod_transformer_form b = pod_transformer_form_of(&gpt);
    cr_expect(a.norm == POD_NORM_RMS && a.function == POD_FUNCTION_SILU);
    cr_expect(b.norm == POD_NORM_LAYER && b.function == POD_FUNCTION_GELU);
    cr_expect_float_eq(pod_transformer_angle(&a, 3, 1, 4), 3 / 100.0, 1e-15);
    cr_expect_eq(b.rotary_base, 0);
    cr_expect(pod_transformer_token(&llama, 7, 5) < 96);
    cr_expect_neq(pod_transformer_token(&llama, 7, 5) == pod_transformer_target(&llama, 7, 5)
                      && pod_transformer_token(&llama, 7, 6)
                             == pod_transformer_target(&llama, 7, 6),
                  true);
}
