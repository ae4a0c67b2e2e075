/* SPDX-License-Identifier: Apache-2.0 */
/* What the reference of transformers is asked, and how others are compared with it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference_models.h"

enum { DENSE = 0, GELU = 5, EXPERTS = 7, CAPACITY = 8 };

static pod_transformer_values find(const pod_transformer_reference *reference, const char *name)
{
    pod_transformer_values values;
    cr_assert(pod_transformer_reference_find(reference, name, &values), "%s", name);
    return values;
}

Test(transformer_reference, counts_what_is_beyond_its_bound)
{
    enum { ROWS = 4, COLUMNS = 5 };
    const pod_model model = small_model(DENSE);
    const pod_transformer_reference_args args = small_args(&model);
    pod_transformer_reference *reference = small_compute(&args);
    const pod_transformer_values want = find(reference, "gradient.layer.1.out");
    const pod_patch patch = {.row = 3, .rows = ROWS, .column = 7, .columns = COLUMNS};
    pod_transformer_check check = {.checked = 0};
    float got[ROWS * COLUMNS];
    for (int64_t i = 0; i < (int64_t)ROWS * COLUMNS; i++) {
        const int64_t at = (3 + i / COLUMNS) * want.columns + 7 + i % COLUMNS;
        got[i] = (float)(want.value[at]
                         + (i < 2    ? 0.9
                            : i == 2 ? 1.1
                                     : 0)
                               * (double)want.bound[at]);
    }
    got[3] = NAN;
    pod_transformer_compare(&check, &want, &patch, POD_DTYPE_F32, got);
    cr_expect_eq(check.checked, 20);
    cr_expect_eq(check.wrong, 2);
    cr_expect(check.share > 1.09 && check.share < 1.11, "%g", check.share);
    pod_transformer_reference_free(reference);
}

Test(transformer_reference, sgd_and_adam_move_weights_against_the_gradient)
{
    const pod_model model = small_model(DENSE);
    pod_transformer_reference_args args = small_args(&model);
    pod_transformer_array array;
    float before;
    cr_assert(pod_transformer_array_find(&model, "head", &array));
    pod_transformer_fill_patch(&array, args.seed, &(pod_patch){.rows = 1, .columns = 1},
                               POD_DTYPE_F32, &before);
    pod_transformer_reference *sgd = small_compute(&args);
    const double g = find(sgd, "gradient.head").value[0];
    cr_expect_float_eq(find(sgd, "weight.head").value[0], (double)before - 16 * g, 1e-15);
    args.optimizer = POD_OPTIMIZER_ADAM;
    args.rate = 0.25;
    pod_transformer_reference *adam = small_compute(&args);
    cr_expect_float_eq(find(adam, "weight.head").value[0],
                       (double)before - 0.25 * g / (fabs(g) + 1e-8), 1e-15);
    cr_expect_float_eq(find(adam, "moment1.head").value[0], 0.1 * g, 1e-15);
    cr_expect_float_eq(find(adam, "moment2.head").value[0], 0.001 * g * g, 1e-15);
    pod_transformer_reference_free(sgd);
    pod_transformer_reference_free(adam);
}

/** How far a layer's attention moves, and how large it is. */
static double moved_by(const pod_transformer_reference_args *args, double *size)
{
    static const char *const names[] = {"layer.1.query", "layer.1.key", "layer.1.value",
                                        "layer.1.out"};
    pod_transformer_reference *reference = small_compute(args);
    double moved = 0;
    *size = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[POD_TRANSFORMER_NAME_MAX + 8];
        pod_transformer_array array;
        (void)snprintf(name, sizeof name, "weight.%s", names[i]);
        const pod_transformer_values after = find(reference, name);
        const pod_patch all = {.rows = after.rows, .columns = after.columns};
        float *before = malloc((size_t)(after.rows * after.columns) * sizeof *before);
        cr_assert(pod_transformer_array_find(args->model, names[i], &array));
        pod_transformer_fill_patch(&array, args->seed, &all, POD_DTYPE_F32, before);
        for (int64_t e = 0; e < after.rows * after.columns; e++) {
            moved += pow(after.value[e] - (double)before[e], 2);
            *size += pow((double)before[e], 2);
        }
        free(before);
    }
    cr_expect_float_eq(find(reference, "norms.layer.1.query").value[0], *size, 1e-9 * *size);
    pod_transformer_reference_free(reference);
    return moved;
}

/* What all weights of a part move by is the rate times their norm (lars: times 0.001), whatever the gradients. */
Test(transformer_reference, lars_and_lamb_move_a_part_by_its_norm)
{
    const pod_model model = small_model(DENSE);
    pod_transformer_reference_args args = small_args(&model);
    double size = 0;
    args.optimizer = POD_OPTIMIZER_LARS;
    args.rate = 64;
    double moved = moved_by(&args, &size);
    cr_expect_float_eq(sqrt(moved), 0.064 * sqrt(size), 1e-9);
    args.optimizer = POD_OPTIMIZER_LAMB;
    args.rate = 0.25;
    moved = moved_by(&args, &size);
    cr_expect_float_eq(sqrt(moved), 0.25 * sqrt(size), 1e-9);
}

Test(transformer_reference, an_untrained_models_loss_is_near_that_of_chance)
{
    const pod_model model = small_model(DENSE);
    const pod_transformer_reference_args args = small_args(&model);
    pod_transformer_reference *reference = small_compute(&args);
    const pod_transformer_values loss = find(reference, "loss");
    cr_expect(fabs(loss.value[0] - log(48)) < 1.5, "%g", loss.value[0]);
    cr_expect(loss.bound[0] > 0 && (double)loss.bound[0] < 0.1, "%g", (double)loss.bound[0]);
    pod_transformer_reference_free(reference);
}

Test(transformer_reference, a_batch_in_chunks_is_the_sum_of_its_sequences)
{
    enum { SEQUENCES = 70 }; /* of 9 tokens: two chunks of 56 */
    const pod_model model = small_model(GELU);
    pod_transformer_reference_args args = small_args(&model);
    args.batch = SEQUENCES;
    args.hidden = true;
    pod_transformer_reference *all = small_compute(&args);
    args.batch = 1;
    args.seq = 9;
    pod_transformer_reference *one = small_compute(&args);
    const pod_transformer_values a = find(all, "hidden.1");
    const pod_transformer_values b = find(one, "hidden.1");
    for (int64_t i = 0; i < b.rows * b.columns; i++) {
        cr_assert_float_eq(a.value[i], b.value[i], 1e-12);
    }
    cr_expect_eq(a.rows, SEQUENCES * 9);
    for (int64_t i = 0; i < a.rows * a.columns; i++) {
        cr_assert(a.bound[i] > 0);
    }
    pod_transformer_reference_free(all);
    pod_transformer_reference_free(one);
}

Test(transformer_reference, a_block_carries_all_results)
{
    const pod_model model = small_model(EXPERTS);
    const pod_transformer_reference_args args = small_args(&model);
    pod_error err = {0};
    pod_transformer_reference *a = small_compute(&args);
    pod_transformer_reference *b = NULL;
    void *from;
    void *to;
    size_t size;
    size_t other;
    cr_assert_eq(pod_transformer_reference_new(&args, &b, &err), POD_OK);
    cr_assert_eq(pod_transformer_reference_block(a, &from, &size, &err), POD_OK);
    cr_assert_eq(pod_transformer_reference_block(b, &to, &other, &err), POD_OK);
    cr_assert_eq(size, other);
    memcpy(to, from, size);
    const pod_transformer_values x = find(a, "gradient.layer.1.router");
    const pod_transformer_values y = find(b, "gradient.layer.1.router");
    cr_expect_eq(x.largest, y.largest);
    cr_expect(x.largest > 0);
    cr_expect_eq(x.bound[5], y.bound[5]);
    pod_transformer_reference_free(a);
    pod_transformer_reference_free(b);
}

/* ---- experts ---- */

Test(transformer_reference, choices_of_experts_are_clear)
{
    for (int i = EXPERTS; i <= CAPACITY; i++) {
        const pod_model model = small_model(i);
        for (uint64_t seed = 0; seed < 20; seed++) {
            pod_transformer_reference_args args = small_args(&model);
            args.seed = seed;
            pod_transformer_reference *reference = small_compute(&args);
            cr_expect_eq(pod_transformer_reference_near(reference), 0);
            pod_transformer_reference_free(reference);
        }
    }
}

/* Chips' choices in the first of two layers that the reference refuses, with this in its text. */
static void choices_refused(const pod_model *model, int32_t *expert, const char *text)
{
    const pod_transformer_choices choices[2] = {{.expert = expert}, {.expert = NULL}};
    pod_transformer_reference_args args = small_args(model);
    pod_transformer_reference *reference = NULL;
    pod_error err = {0};
    args.choices = choices;
    cr_assert_eq(pod_transformer_reference_new(&args, &reference, &err), POD_OK);
    cr_expect_eq(pod_transformer_reference_compute(reference, &err), POD_E_CHECK);
    cr_expect_not_null(strstr(err.text, text), "%s", err.text);
    pod_transformer_reference_free(reference);
}

Test(transformer_reference, another_clear_choice_is_an_error)
{
    const pod_model model = small_model(EXPERTS);
    int32_t expert[BATCH * SEQ * 2];
    for (int i = 0; i < BATCH * SEQ * 2; i++) {
        expert[i] = i % 2; /* all tokens to the first two of four */
    }
    choices_refused(&model, expert, "differ");
}

Test(transformer_reference, one_expert_twice_is_no_choice)
{
    const pod_model model = small_model(EXPERTS);
    int32_t expert[BATCH * SEQ * 2] = {0};
    char all[32];
    (void)snprintf(all, sizeof all, "of %d tokens", BATCH * SEQ); /* those that take it, too */
    choices_refused(&model, expert, all);
}

/** More experts than columns can steer: their scores are near each other for many tokens. */
static const char crowded[] = "transformer:layers=1,d_model=8,d_ff=16,heads=2,vocab=48,"
                              "mlp_matrices=3,experts=64,top_k=4,moe_d_ff=8";

Test(transformer_reference, more_near_choices_than_one_percent_are_an_error)
{
    pod_model model;
    pod_error err = {0};
    pod_transformer_reference *reference = NULL;
    cr_assert_eq(pod_model_parse(crowded, NULL, &model, &err), POD_OK, "%s", err.text);
    const pod_transformer_reference_args args = small_args(&model);
    cr_assert_eq(pod_transformer_reference_new(&args, &reference, &err), POD_OK);
    cr_expect_eq(pod_transformer_reference_compute(reference, &err), POD_E_CHECK);
    cr_expect_not_null(strstr(err.text, "nearer than their error"), "%s", err.text);
    cr_expect_gt(pod_transformer_reference_near(reference), 0);
    pod_transformer_reference_free(reference);
}

/* ---- decoding ---- */

Test(transformer_reference, decoded_tokens_are_judged_by_logits)
{
    const pod_model model = small_model(DENSE);
    pod_transformer_reference_args args = small_args(&model);
    args.mode = POD_STEP_DECODE;
    pod_transformer_reference *reference = small_compute(&args);
    const pod_transformer_values logits = find(reference, "logits");
    int verdicts[3] = {0};
    cr_assert_eq(logits.rows, BATCH * SEQ);
    for (int32_t token = 0; token < 48; token++) {
        verdicts[pod_transformer_judge(&logits, 4, token, 1)]++;
    }
    cr_expect_eq(verdicts[POD_TOKEN_SAME], 1);
    cr_expect_gt(verdicts[POD_TOKEN_WRONG], 40);
    pod_transformer_reference_free(reference);
}

Test(transformer_reference, of_each_class_one_decoded_token_is_the_right_one)
{
    enum { CLASSES = 4 };
    const pod_model model = small_model(DENSE);
    pod_transformer_reference_args args = small_args(&model);
    args.mode = POD_STEP_DECODE;
    pod_transformer_reference *reference = small_compute(&args);
    const pod_transformer_values logits = find(reference, "logits");
    int same[CLASSES] = {0};
    for (int32_t token = 0; token < 48; token++) {
        same[token % CLASSES] +=
            pod_transformer_judge(&logits, 4, token, CLASSES) == POD_TOKEN_SAME;
    }
    for (int i = 0; i < CLASSES; i++) {
        cr_expect_eq(same[i], 1);
    }
    pod_transformer_reference_free(reference);
}

Test(transformer_reference, tokens_given_take_the_place_of_its_own)
{
    const pod_model model = small_model(DENSE);
    pod_transformer_reference_args args = small_args(&model);
    int32_t tokens[BATCH * SEQ];
    for (int64_t i = 0; i < BATCH * SEQ; i++) {
        tokens[i] = pod_transformer_token(&model, args.seed, i);
    }
    args.mode = POD_STEP_FORWARD;
    pod_transformer_reference *own = small_compute(&args);
    args.tokens = tokens;
    tokens[SEQ - 1] = (tokens[SEQ - 1] + 1) % 48; /* the last of the first sequence */
    pod_transformer_reference *given = small_compute(&args);
    const pod_transformer_values a = find(own, "logits");
    const pod_transformer_values b = find(given, "logits");
    for (int64_t row = 0; row < BATCH * SEQ; row++) {
        const bool same = memcmp(a.value + row * 48, b.value + row * 48, 48 * sizeof(double)) == 0;
        cr_expect_eq(same, row != SEQ - 1, "row %d", (int)row);
    }
    pod_transformer_reference_free(own);
    pod_transformer_reference_free(given);
}

/* ---- refusals ---- */

static void refuse(const char *text, pod_dtype dtype, int64_t seq, const char *why)
{
    pod_model model;
    pod_error err = {0};
    pod_transformer_reference *reference = NULL;
    cr_assert_eq(pod_model_parse(text, NULL, &model, &err), POD_OK, "%s", err.text);
    pod_transformer_reference_args args = small_args(&model);
    args.dtype = dtype;
    args.seq = seq;
    cr_expect_eq(pod_transformer_reference_new(&args, &reference, &err), POD_E_INVALID, "%s", why);
    cr_expect_not_null(strstr(err.text, why), "%s", err.text);
    pod_transformer_reference_free(reference);
}

Test(transformer_reference, says_what_has_no_real_numbers)
{
    refuse(SMALL3 ",expert_d_model=16", POD_DTYPE_BF16, SEQ, "narrow experts");
    refuse(SMALL3 ",layer_embedding=4", POD_DTYPE_BF16, SEQ, "embeddings of layers");
    refuse(SMALL3, POD_DTYPE_INT8, SEQ, "use bf16 or f32");
    refuse(small_models[GELU], POD_DTYPE_BF16, 17, "use --seq 16");
}
