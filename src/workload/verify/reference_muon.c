/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/reference_muon.h"

#include <math.h>

static const double muon_beta = 0.95;
static const double newton_factor[3] = {3.4445, -4.7750, 2.0315};

static int64_t least_side(const pod_transformer_array *array)
{
    return array->rows < array->columns ? array->rows : array->columns;
}

size_t pod_reference_newton_bytes(const pod_transformer_array *array)
{
    enum { SQUARES = 3, MATRICES = 2, OPERANDS = 4, ALIGN = 1 << 10 };
    const int64_t r = least_side(array);
    const int64_t elements = array->rows * array->columns;
    return SQUARES * pod_inexact_bytes(r, r) + MATRICES * pod_inexact_bytes(1, elements) + ALIGN
           + OPERANDS * (size_t)(elements + r * r) * sizeof(float);
}

/* ---- directions ---- */

void pod_reference_newton_begin(const pod_reference_step *step, const pod_reference_weight *weight,
                                const pod_inexact *x)
{
    const pod_transformer_array *array = &weight->array;
    const int64_t size = array->rows * array->columns;
    const double u2 = pod_square(step->ix.roundoff);
    for (int64_t g = 0; g < array->groups; g++) {
        double norm2 = 0;
        double error2 = 0;
        for (int64_t i = g * size; i < (g + 1) * size; i++) {
            const double direction = (1 + muon_beta) * weight->gradient.value[i];
            const double s2 = pod_square(1 + muon_beta) * (double)weight->gradient.square[i]
                              + u2 * pod_square(direction);
            x->value[i] = direction;
            x->square[i] = (float)s2;
            norm2 += pod_square(direction);
            error2 += s2;
        }
        for (int64_t i = g * size; i < (g + 1) * size; i++) {
            const double unit = norm2 > 0 ? x->value[i] / sqrt(norm2) : 0;
            const double s2 =
                norm2 > 0 ? ((double)x->square[i] + pod_square(unit) * error2) / norm2 : 0;
            x->value[i] = unit;
            x->square[i] = (float)(s2 + u2 * pod_square(unit));
        }
    }
}

/* ---- steps ---- */

/** B = b A + c A A of a matrix, stored. @param wide  A = X Xᵀ */
static pod_inexact square_of(pod_inexact_context *ix, const pod_inexact *x, bool wide,
                             int64_t terms)
{
    static const double twice = 1.4142135623730951; /* both factors have the same errors */
    const int64_t r = wide ? x->rows : x->columns;
    const pod_inexact a = pod_inexact_make(ix, r, r);
    const pod_inexact b = pod_inexact_make(ix, r, r);
    const pod_inexact_product gram = {
        .site = "newton.gram", .transpose_a = !wide, .transpose_b = wide, .terms = terms};
    const pod_inexact_product again = {.site = "newton.square", .accumulate = true, .terms = 1};
    pod_inexact_clear(&a);
    pod_inexact_clear(&b);
    pod_inexact_matmul(ix, &gram, x, x, &a);
    pod_inexact_matmul(ix, &again, &a, &a, &b);
    for (int64_t i = 0; i < r * r; i++) {
        b.value[i] = newton_factor[1] * a.value[i] + newton_factor[2] * b.value[i];
        b.square[i] = (float)pod_square(fabs(newton_factor[1]) * sqrt((double)a.square[i])
                                        + twice * newton_factor[2] * sqrt((double)b.square[i]));
    }
    pod_inexact_store(ix, "newton.square", &b, 1);
    return b;
}

void pod_reference_newton_step(pod_reference_step *step, const pod_transformer_array *array,
                               const float *before, const pod_inexact *x)
{
    pod_inexact_context *ix = &step->ix;
    const bool wide = array->columns >= array->rows;
    const size_t mark = ix->arena.used;
    const pod_inexact_product product = {.site = "newton.step", .accumulate = true, .terms = 1};
    for (int64_t g = 0; g < array->groups; g++) {
        const pod_inexact out = pod_inexact_rows(x, g * array->rows, array->rows);
        pod_inexact chips = pod_inexact_make(ix, array->rows, array->columns);
        const float *theirs = before + g * array->rows * array->columns;
        for (int64_t i = 0; i < chips.rows * chips.columns; i++) {
            chips.value[i] = (double)theirs[i];
        }
        chips.square = NULL; /* exact */
        const pod_inexact b = square_of(ix, &chips, wide, step->args->gradient_terms);
        pod_inexact_clear(&out);
        pod_inexact_matmul(ix, &product, wide ? &b : &chips, wide ? &chips : &b, &out);
        for (int64_t i = 0; i < chips.rows * chips.columns; i++) {
            out.value[i] += newton_factor[0] * chips.value[i];
        }
        pod_inexact_store(ix, "newton.step", &out, 1);
        ix->arena.used = mark;
    }
}

/* ---- weights ---- */

void pod_reference_muon(const pod_reference_step *step, const pod_reference_weight *weight,
                        const float *last, const pod_reference_moved *moved)
{
    static const double wide = 0x1p-24; /* f32 */
    static const double most = 1.25;    /* 1.21 and rounding */
    const double rate = step->args->rate;
    for (int64_t i = 0; i < moved->weight.rows * moved->weight.columns; i++) {
        const double w = weight->value.value[i];
        const double g = weight->gradient.value[i];
        const double s2 = (double)weight->gradient.square[i];
        const double by = last != NULL ? (double)last[i] : 0;
        const double s = last != NULL ? 0 : most / pod_transformer_lambda;
        moved->moment[0].value[i] = g;
        moved->moment[0].square[i] = (float)(s2 + 4 * pod_square(wide * g));
        moved->weight.value[i] = w - rate * by;
        moved->weight.square[i] =
            (float)(pod_square(rate * s) + 4 * pod_square(wide * (fabs(w) + rate * most)));
    }
}
