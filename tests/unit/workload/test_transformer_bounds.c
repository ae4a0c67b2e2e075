/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the reference of transformers: rounding as chips do stays within them, faults don't. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "reference_models.h"

#include "../sample.h"

enum { SEEDS = 1000, PIECES = 4 };

/** What is done to stored values, besides rounding them. */
typedef struct chips {
    pod_dtype dtype;
    const char *sites; /**< where partial sum 2 is left out, a comma after each; NULL = nowhere */
} chips;

static void stored(void *context, const char *site, int64_t piece, double *value, int64_t count)
{
    const chips *c = context;
    if (piece == POD_EMULATE_WEIGHTS) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const float wide = (float)value[i];
        value[i] =
            (double)(c->dtype == POD_DTYPE_BF16 ? pod_bf16_to_f32(pod_bf16_from_f32(wide)) : wide);
        if (c->sites != NULL && piece == 2 && strstr(c->sites, site) != NULL) {
            value[i] = 0;
        }
    }
}

/** Compare one result, if there is one of that name. */
static void result_compare(pod_transformer_check *check, const pod_transformer_reference *reference,
                           const pod_transformer_reference *emulated, const char *name)
{
    pod_transformer_values want;
    pod_transformer_values got;
    if (!pod_transformer_reference_find(reference, name, &want)) {
        return;
    }
    cr_assert(pod_transformer_reference_find(emulated, name, &got));
    const int64_t count = got.rows * got.columns;
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)got.value[i];
    }
    const pod_patch all = {.rows = got.rows, .columns = got.columns};
    pod_transformer_compare(check, &want, &all, POD_DTYPE_F32, values);
    free(values);
}

/** Compare the results of an emulated layout with the reference. */
static pod_transformer_check compare(const pod_model *model,
                                     const pod_transformer_reference *reference,
                                     const pod_transformer_reference *emulated)
{
    enum { WEIGHT = 1, MOMENT = 2 };
    static const char *const prefixes[] = {"gradient.", "weight.", "moment1.", "moment2.",
                                           "norms."};
    pod_transformer_check check = {.checked = 0};
    for (int64_t a = 0; a < pod_transformer_arrays(model); a++) {
        const pod_transformer_array array = pod_transformer_array_at(model, a);
        char of[POD_TRANSFORMER_NAME_MAX + 16];
        pod_transformer_values norms;
        (void)snprintf(of, sizeof of, "norms.%s", array.name);
        /* weights then move by the norms that chips found: command-line cases compare these */
        const bool moves_by_norms = pod_transformer_reference_find(reference, of, &norms);
        for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
            char name[POD_TRANSFORMER_NAME_MAX + 16];
            (void)snprintf(name, sizeof name, "%s%s", prefixes[p], array.name);
            if (!moves_by_norms || (p != WEIGHT && p != MOMENT)) {
                result_compare(&check, reference, emulated, name);
            }
        }
    }
    for (int64_t norm = 0; norm <= 2 * model->layers; norm++) {
        char name[32];
        (void)snprintf(name, sizeof name, "squares.%d", (int)norm);
        result_compare(&check, reference, emulated, name);
    }
    return check;
}

static pod_transformer_check run(pod_transformer_reference_args args, chips *c, int64_t mask_shift)
{
    const pod_emulation emulation = {
        .stored = stored, .context = c, .pieces = PIECES, .mask_shift = mask_shift};
    args.dtype = c->dtype;
    pod_transformer_reference *reference = small_compute(&args);
    args.emulation = &emulation;
    pod_transformer_reference *emulated = small_compute(&args);
    const pod_transformer_check check = compare(args.model, reference, emulated);
    pod_transformer_reference_free(reference);
    pod_transformer_reference_free(emulated);
    return check;
}

Test(transformer_bounds, hold_for_a_thousand_seeds)
{
    static const pod_optimizer optimizers[] = {POD_OPTIMIZER_SGD, POD_OPTIMIZER_ADAM,
                                               POD_OPTIMIZER_LARS, POD_OPTIMIZER_LAMB};
    enum { TRIED = sizeof optimizers / sizeof optimizers[0] };
    chips kinds[2] = {{.dtype = POD_DTYPE_BF16}, {.dtype = POD_DTYPE_F32}};
    for (int number = 0; number < SEEDS; number = sample_next(number, 4)) {
        const uint64_t seed = (uint64_t)number;
        const pod_model model = small_model((int)(seed % SMALL_MODELS));
        pod_transformer_reference_args args = small_args(&model);
        args.seed = seed;
        args.optimizer = optimizers[seed / 2 % TRIED];
        args.rate = pod_transformer_rate(args.optimizer);
        args.activation_terms = seed % 3 == 0 ? 1 : PIECES;
        args.context_terms = seed % 7 == 0 ? PIECES : 1;
        args.input_terms = seed % 5 == 1 ? PIECES : 1;
        args.squares = seed % 2 == 0;
        args.gradient_terms = seed % 4 == 0 ? 1 : PIECES;
        const pod_transformer_check check = run(args, &kinds[seed % 5 == 0], 0);
        cr_expect_eq(check.wrong, 0, "seed %d of %s: %lld of %lld, %g", (int)seed, model.name,
                     (long long)check.wrong, (long long)check.checked, check.share);
    }
}

/** Bounds that are far too wide would find no fault either; errors reach a good part of these. */
Test(transformer_bounds, are_reached_to_a_tenth)
{
    for (int i = 0; i < SMALL_MODELS; i++) {
        const pod_model model = small_model(i);
        const pod_transformer_reference_args args = small_args(&model);
        chips c = {.dtype = POD_DTYPE_BF16};
        const pod_transformer_check check = run(args, &c, 0);
        cr_expect(check.share > 0.1 && check.share < 0.6, "%s: %g", model.name, check.share);
    }
}

/* ---- operands of one byte ---- */

enum { ROWS = 24, DEPTH = 40, COLUMNS = 32, OPERANDS = 200 };

/** Values of both signs, many of them small. */
static void operand_fill(uint64_t seed, const pod_inexact *x)
{
    for (int64_t i = 0; i < x->rows * x->columns; i++) {
        const double u = (double)(pod_rng_u64(seed, 0, (uint64_t)i) >> 11) * 0x1p-52 - 1;
        x->value[i] = u * u * u;
        x->square[i] = 0;
    }
}

/** As a matmul in a dtype reads it. @param[out] rounded  of as many elements */
static void operand_round(pod_dtype dtype, float most, const pod_inexact *x, double *rounded)
{
    double largest = 0;
    for (int64_t i = 0; i < x->rows * x->columns; i++) {
        largest = fmax(largest, fabs(x->value[i]));
    }
    for (int64_t i = 0; i < x->rows * x->columns; i++) {
        const float scaled = (float)(x->value[i] / largest) * most;
        char byte;
        float back;
        pod_dtype_from_f32(dtype, &byte, &scaled, 1);
        pod_dtype_to_f32(dtype, &back, &byte, 1);
        rounded[i] = (double)back * largest / (double)most;
    }
}

Test(transformer_bounds, of_operands_of_one_byte_hold)
{
    static const struct {
        pod_dtype dtype;
        float most;
    } kinds[] = {
        {POD_DTYPE_INT8, 127},
        {POD_DTYPE_FP8,  448},
    };
    static char memory[1 << 20];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        double share = 0;
        for (uint64_t seed = 0; seed < OPERANDS; seed++) {
            static double rounded[2][DEPTH * (ROWS + COLUMNS)];
            pod_inexact_context ix = {
                .roundoff = 0x1p-24, .arena = {.data = memory, .size = sizeof memory}
            };
            const pod_inexact a = pod_inexact_make(&ix, ROWS, DEPTH);
            const pod_inexact b = pod_inexact_make(&ix, DEPTH, COLUMNS);
            const pod_inexact c = pod_inexact_make(&ix, ROWS, COLUMNS);
            const pod_inexact_product product = {.terms = 1, .operands = kinds[k].dtype};
            operand_fill(2 * seed, &a);
            operand_fill(2 * seed + 1, &b);
            pod_inexact_matmul(&ix, &product, &a, &b, &c);
            operand_round(kinds[k].dtype, kinds[k].most, &a, rounded[0]);
            operand_round(kinds[k].dtype, kinds[k].most, &b, rounded[1]);
            for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
                double got = 0;
                for (int64_t d = 0; d < DEPTH; d++) {
                    got +=
                        rounded[0][i / COLUMNS * DEPTH + d] * rounded[1][d * COLUMNS + i % COLUMNS];
                }
                share = fmax(share, fabs(got - c.value[i]) / (6 * sqrt((double)c.square[i])));
            }
        }
        cr_expect(share > 0.4 && share < 0.9, "%s: %g", pod_dtype_name(kinds[k].dtype), share);
    }
}

static void leave_out(const pod_model *model, const char *sites, bool gradient)
{
    pod_transformer_reference_args args = small_args(model);
    chips c = {.dtype = POD_DTYPE_BF16, .sites = sites};
    args.activation_terms = gradient ? 1 : PIECES;
    args.gradient_terms = gradient ? PIECES : 1;
    const pod_transformer_check check = run(args, &c, 0);
    cr_expect_gt(check.wrong, 0, "%s of %s, %d", sites, model->name, gradient);
}

/** With one expert a token its share is 1, whatever the router says. */
static bool has_gradient(const pod_model *model, const pod_transformer_array *array)
{
    return array->fill != POD_FILL_ROUTER || model->top_k > 1;
}

Test(transformer_bounds, a_gradient_without_a_microbatch_is_found)
{
    for (int i = 0; i < SMALL_MODELS; i++) {
        const pod_model model = small_model(i);
        for (int64_t a = 0; a < pod_transformer_arrays(&model); a++) {
            const pod_transformer_array array = pod_transformer_array_at(&model, a);
            if (array.layer >= 0 && has_gradient(&model, &array)) {
                leave_out(&model, array.name, true);
            }
        }
    }
}

/** Over tensor, forward and backward: what goes together through one collective. */
Test(transformer_bounds, a_partial_sum_left_out_is_found)
{
    enum { NAMES = 5, SITES = 256 };
    static const char *const together[][NAMES] = {
        {"out",   NULL,           NULL,    NULL,           NULL        },
        {"down",  "experts.down", NULL,    NULL,           NULL        },
        {"query", "key",          "value", "query.latent", "kv.latent" },
        {"in",    "in.0",         "in.1",  "experts.gate", "experts.in"}
    };
    for (int i = 0; i < SMALL_MODELS * 2; i++) {
        const pod_model model = small_model(i / 2);
        for (size_t t = 0; t < sizeof together / sizeof together[0]; t++) {
            char sites[SITES] = "";
            for (int n = 0; n < NAMES && together[t][n] != NULL; n++) {
                const size_t used = strlen(sites);
                (void)snprintf(sites + used, SITES - used, "layer.%d.%s,", i % 2, together[t][n]);
            }
            leave_out(&model, sites, false);
        }
    }
}

Test(transformer_bounds, a_mask_off_by_one_is_found)
{
    for (int i = 0; i < SMALL_MODELS; i++) {
        const pod_model model = small_model(i);
        const pod_transformer_reference_args args = small_args(&model);
        chips c = {.dtype = POD_DTYPE_BF16};
        const pod_transformer_check check = run(args, &c, 1);
        cr_expect(check.wrong > 0 || model.encoder > 0, "%s", model.name); /* which has no mask */
    }
}
