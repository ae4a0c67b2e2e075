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

/** Matmuls of layers have operands of their own dtype, but those of routers. */
static pod_dtype operands_of(const pod_reference_step *step, const pod_reference_weight *weight)
{
    const bool own = weight->array.layer >= 0 && strstr(weight->array.name, "router") == NULL;
    return own ? step->args->operands : step->args->dtype;
}

void pod_reference_project(pod_reference_step *step, pod_reference_weight *weight, int64_t terms,
                           const pod_inexact *a, const pod_inexact *out)
{
    const pod_inexact_product product = {
        .site = weight->array.name, .terms = terms, .operands = operands_of(step, weight)};
    pod_inexact_matmul(&step->ix, &product, a, &weight->value, out);
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
}
