/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/reference_update.h"

#include <math.h>

static const double wide = 0x1p-24; /* f32 */

/** A value and how far it may be off, as deviations. */
typedef struct moving {
    double value;
    double s;
} moving;

/** Stored in f32 after a few roundings of numbers as large as `size`. */
static void keep(const pod_inexact *array, int64_t i, moving m, double size)
{
    array->value[i] = m.value;
    array->square[i] = (float)(pod_square(m.s) + 4 * pod_square(wide * size));
}

/** By how much adam's first step moves a weight: m = 0.1 g, v = 0.001 g², both corrected. */
static double adam_step(double g)
{
    static const double epsilon = 1e-8;
    return g / (fabs(g) + epsilon);
}

/* The step is monotonic in g, so its largest change within the bound of g is at one of the ends. */
static moving adam_moving(double g, double s2)
{
    static const double whole = 1 + 0x1p-20; /* squares and bounds are rounded to f32 */
    const double bound = pod_transformer_lambda * sqrt(s2);
    const double moved = adam_step(g);
    const double up = adam_step(g + bound) - moved;
    const double down = moved - adam_step(g - bound);
    return (moving){.value = moved, .s = whole * (up > down ? up : down) / pod_transformer_lambda};
}

static void adam_moments(const pod_reference_moved *moved, int64_t i, double g, double s2)
{
    static const double beta1 = 0.9;
    static const double beta2 = 0.999;
    const double bound = pod_transformer_lambda * sqrt(s2);
    const moving m = {.value = (1 - beta1) * g, .s = (1 - beta1) * sqrt(s2)};
    const moving v = {.value = (1 - beta2) * g * g,
                      .s = (1 - beta2) * (2 * fabs(g) + bound) * sqrt(s2)};
    keep(&moved->moment[0], i, m, m.value);
    keep(&moved->moment[1], i, v, v.value);
}

/* ---- norms ---- */

static void norms_add(const pod_reference_step *step, const pod_reference_weight *weight,
                      pod_reference_norms *norms, double *error2)
{
    const pod_inexact *gradient = &weight->gradient;
    for (int64_t i = 0; i < gradient->rows * gradient->columns; i++) {
        const double g = gradient->value[i];
        const double s2 = (double)gradient->square[i];
        norms->weights += pod_square(weight->value.value[i]);
        if (step->args->optimizer == POD_OPTIMIZER_LARS) {
            norms->directions += pod_square(g);
            *error2 += pod_square(pod_transformer_lambda) * s2;
        } else {
            const double bound = pod_transformer_lambda * sqrt(s2);
            const double least = fabs(g) > bound ? adam_step(fabs(g) - bound) : 0;
            const double most = adam_step(fabs(g) + bound);
            norms->directions += pod_square(adam_step(g));
            norms->below += pod_square(least);
            norms->above += pod_square(most);
        }
    }
}

pod_reference_norms pod_reference_norms_of(const pod_reference_step *step,
                                           const pod_transformer_array *array)
{
    static const double sums = 0x1p-20; /* of f32 */
    const pod_model *model = step->args->model;
    const int part = pod_transformer_part(model, array);
    pod_reference_norms norms = {.weights = 0};
    double error2 = 0;
    for (int64_t i = 0; i < step->nweights; i++) {
        const pod_transformer_array *other = &step->weights[i].array;
        if (other->layer == array->layer && pod_transformer_part(model, other) == part) {
            norms_add(step, &step->weights[i], &norms, &error2);
        }
    }
    if (step->args->optimizer == POD_OPTIMIZER_LARS) {
        const double norm = sqrt(norms.directions);
        const double off = sqrt(error2);
        norms.below = norm > off ? pod_square(norm - off) : 0;
        norms.above = pod_square(norm + off);
    }
    norms.below *= 1 - sums;
    norms.above *= 1 + sums;
    return norms;
}

double pod_reference_trust(double weights, double directions)
{
    return weights > 0 && directions > 0 ? sqrt(weights / directions) : 1;
}

/* ---- weights ---- */

void pod_reference_update(const pod_reference_step *step, const pod_reference_weight *weight,
                          const pod_reference_norms *norms, const pod_reference_moved *moved)
{
    static const double eta = 0.001;
    static const double beta = 0.9;
    const pod_optimizer optimizer = pod_reference_optimizer_of(step, &weight->array);
    const double rate = step->args->rate;
    const double trust = norms != NULL ? pod_reference_trust(norms->weights, norms->directions) : 1;
    for (int64_t i = 0; i < moved->weight.rows * moved->weight.columns; i++) {
        const double w = weight->value.value[i];
        const double g = weight->gradient.value[i];
        const double s2 = (double)weight->gradient.square[i];
        moving by = {.value = g, .s = sqrt(s2)};
        if (optimizer == POD_OPTIMIZER_ADAM || optimizer == POD_OPTIMIZER_LAMB) {
            by = adam_moving(g, s2);
            adam_moments(moved, i, g, s2);
        }
        const double times = optimizer == POD_OPTIMIZER_LARS ? eta * trust : trust;
        by = (moving){.value = times * by.value, .s = times * by.s};
        const double largest = fabs(by.value) > trust ? fabs(by.value) : trust;
        if (moved->moment[0].value != NULL && moved->moment[1].value == NULL) {
            by.value += beta * moved->moment[0].value[i];
            keep(&moved->moment[0], i, by, by.value);
        }
        const moving after = {.value = w - rate * by.value, .s = rate * by.s};
        if (optimizer == POD_OPTIMIZER_SGD) { /* weights in the dtype of the step */
            moved->weight.value[i] = after.value;
            moved->weight.square[i] = (float)pod_square(after.s);
        } else {
            keep(&moved->weight, i, after, fabs(after.value) + rate * largest);
        }
    }
    if (optimizer == POD_OPTIMIZER_SGD) {
        pod_inexact_store(&step->ix, "update", &moved->weight, 1);
    }
}
