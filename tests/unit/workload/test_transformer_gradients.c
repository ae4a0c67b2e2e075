/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the reference of transformers against central finite differences of its loss. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "reference_models.h"

/** One element of a weight, moved. */
typedef struct nudge {
    const char *name;
    int64_t element;
    double by;
} nudge;

static void move(void *context, const char *site, int64_t piece, double *value, int64_t count)
{
    const nudge *n = context;
    if (piece == POD_EMULATE_WEIGHTS && strcmp(site, n->name) == 0) {
        cr_assert(n->element < count);
        value[n->element] += n->by;
    }
}

static double loss_at(const pod_model *model, nudge *n)
{
    const pod_emulation emulation = {.stored = move, .context = n};
    pod_transformer_reference_args args = small_args(model);
    pod_transformer_values loss;
    args.emulation = &emulation;
    pod_transformer_reference *reference = small_compute(&args);
    cr_assert(pod_transformer_reference_find(reference, "loss", &loss));
    const double value = loss.value[0];
    pod_transformer_reference_free(reference);
    return value;
}

static double difference(const pod_model *model, const char *name, int64_t element)
{
    static const double step = 1e-5;
    nudge n = {.name = name, .element = element, .by = step};
    const double up = loss_at(model, &n);
    n.by = -step;
    return (up - loss_at(model, &n)) / (2 * step);
}

/** Elements of an array: those of token 0's row, and some others. */
static void array_check(const pod_model *model, const pod_transformer_reference *reference,
                        const pod_transformer_array *array)
{
    enum { ELEMENTS = 4 };
    char name[POD_TRANSFORMER_NAME_MAX + 16];
    pod_transformer_values gradient;
    (void)snprintf(name, sizeof name, "gradient.%s", array->name);
    cr_assert(pod_transformer_reference_find(reference, name, &gradient));
    const uint64_t count = (uint64_t)(gradient.rows * gradient.columns);
    double most = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        const int64_t at = (int64_t)pod_rng_below(5, (uint64_t)array->layer, (uint64_t)i, count);
        const double want = difference(model, array->name, at);
        const double got = gradient.value[at];
        most = fabs(got) > most ? fabs(got) : most;
        cr_expect_lt(fabs(got - want), 2e-9 + 1e-6 * gradient.largest, "%s[%d] of %s: %.9g %.9g",
                     array->name, (int)at, model->name, got, want);
    }
}

Test(transformer_gradients, are_the_slope_of_the_loss)
{
    for (int i = 0; i < SMALL_MODELS; i++) {
        const pod_model model = small_model(i);
        const pod_transformer_reference_args args = small_args(&model);
        pod_transformer_reference *reference = small_compute(&args);
        for (int64_t a = 0; a < pod_transformer_arrays(&model); a++) {
            const pod_transformer_array array = pod_transformer_array_at(&model, a);
            array_check(&model, reference, &array);
        }
        pod_transformer_reference_free(reference);
    }
}
