/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/reference_step.h"

#include <string.h>

int64_t pod_reference_tokens(const pod_reference_step *step)
{
    return step->sequences * step->args->seq;
}

pod_reference_weight *pod_reference_weight_of(const pod_reference_step *step,
                                              const pod_reference_state *state, const char *name)
{
    for (int64_t i = 0; i < step->nweights; i++) {
        const char *of = step->weights[i].array.name;
        if (step->weights[i].array.layer == state->number
            && strcmp(strchr(strchr(of, '.') + 1, '.') + 1, name) == 0) {
            return &step->weights[i];
        }
    }
    return NULL;
}

pod_reference_weight *pod_reference_end_of(const pod_reference_step *step, const char *name)
{
    for (int64_t i = 0; i < step->nweights; i++) {
        if (strcmp(step->weights[i].array.name, name) == 0) {
            return &step->weights[i];
        }
    }
    return NULL;
}

int64_t pod_reference_input_terms(const pod_reference_step *step)
{
    return pod_max_i64(step->args->input_terms, 1);
}

/** Matmuls of layers have operands of their own dtype, but those of routers. */
static pod_dtype operands_of(const pod_reference_step *step, const pod_reference_weight *weight)
{
    const bool own = weight->array.layer >= 0 && strstr(weight->array.name, "router") == NULL;
    return own ? step->args->operands : step->args->dtype;
}

pod_reference_weight *pod_reference_bias_of(const pod_reference_step *step,
                                            pod_reference_weight *weight)
{
    return step->args->model->biases > 0 ? weight + 1 : NULL;
}

void pod_reference_multiply(pod_reference_step *step, const pod_inexact_product *product,
                            const pod_reference_weight *bias, const pod_inexact *a,
                            const pod_inexact *weight, const pod_inexact *out)
{
    static const double wide = 0x1p-24; /* of f32 sums */
    const bool several = product->terms > 1;
    const double sums = (double)a->columns * pod_square(wide / step->ix.roundoff);
    const double part =
        (several ? (double)product->terms : 0) * pod_square(step->ix.roundoff) + pod_square(wide);
    pod_inexact_product added = *product;
    if (bias == NULL) {
        pod_inexact_matmul(&step->ix, product, a, weight, out);
        return;
    }
    for (int64_t i = 0; i < out->rows * out->columns; i++) {
        const int64_t at = i / out->columns * out->stride + i % out->columns;
        out->value[at] = bias->value.value[i % out->columns];
        out->square[at] = (float)(part * pod_square(out->value[at]));
    }
    added.accumulate = true;
    pod_inexact_matmul(&step->ix, &added, a, weight, out);
    pod_inexact_store(&step->ix, product->site, out, (double)product->terms + sums);
}

void pod_reference_bias_back(pod_reference_step *step, const pod_reference_weight *bias,
                             const pod_inexact *dout)
{
    const pod_inexact_product sum = {.site = "bias",
                                     .transpose_a = true,
                                     .accumulate = true,
                                     .terms = step->args->gradient_terms,
                                     .operands = step->args->dtype};
    const size_t mark = step->ix.arena.used;
    if (bias == NULL) {
        return;
    }
    const pod_inexact ones = pod_inexact_make(&step->ix, dout->rows, 1);
    pod_inexact_clear(&ones);
    for (int64_t r = 0; r < ones.rows; r++) {
        ones.value[r] = 1;
    }
    pod_inexact_matmul(&step->ix, &sum, &ones, dout, &bias->gradient);
    step->ix.arena.used = mark;
}

void pod_reference_project(pod_reference_step *step, pod_reference_weight *weight, int64_t terms,
                           const pod_inexact *a, const pod_inexact *out)
{
    const pod_inexact_product product = {
        .site = weight->array.name, .terms = terms, .operands = operands_of(step, weight)};
    pod_reference_multiply(step, &product, pod_reference_bias_of(step, weight), a, &weight->value,
                           out);
}

void pod_reference_project_back(pod_reference_step *step, pod_reference_weight *weight,
                                int64_t terms, const pod_inexact *a, const pod_inexact *dout,
                                const pod_inexact *da)
{
    const pod_inexact_product input = {.site = weight->array.name,
                                       .transpose_b = true,
                                       .accumulate = true,
                                       .terms = terms,
                                       .operands = operands_of(step, weight)};
    const pod_inexact_product gradient = {.site = weight->array.name,
                                          .transpose_a = true,
                                          .accumulate = true,
                                          .terms = step->args->gradient_terms,
                                          .operands = operands_of(step, weight)};
    pod_inexact_matmul(&step->ix, &input, dout, &weight->value, da);
    pod_inexact_matmul(&step->ix, &gradient, a, dout, &weight->gradient);
    pod_reference_bias_back(step, pod_reference_bias_of(step, weight), dout);
}
