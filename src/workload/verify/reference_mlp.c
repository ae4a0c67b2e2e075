/* SPDX-License-Identifier: Apache-2.0 */
/* The dense MLP of a layer of the reference, beside its experts. */
#include "workload/verify/reference_mlp.h"

#include "workload/verify/reference_experts.h"

/** Gate, if there is one, and up. */
static pod_reference_weight *dense_matrix(const pod_reference_step *step,
                                          const pod_reference_state *state, int i)
{
    static const char *const names[2] = {"in.0", "in.1"};
    return step->args->model->mlp_matrices > 2 ? pod_reference_weight_of(step, state, names[i])
           : i == 1                            ? pod_reference_weight_of(step, state, "in")
                                               : NULL;
}

void pod_reference_mlp(pod_reference_step *step, pod_reference_state *s)
{
    const int64_t tokens = pod_reference_tokens(step);
    const int64_t width = s->layer.d_ff;
    s->y = pod_inexact_make(&step->ix, tokens, step->args->model->d_model);
    for (int i = 0; i < POD_REFERENCE_MATRICES && width > 0; i++) {
        pod_reference_weight *weight = dense_matrix(step, s, i);
        if (weight != NULL) {
            s->hidden[i] = pod_inexact_make(&step->ix, tokens, width);
            pod_reference_project(step, weight, pod_reference_input_terms(step), &s->xn2,
                                  &s->hidden[i]);
        }
    }
    if (width > 0) {
        s->h = pod_inexact_make(&step->ix, tokens, width);
        pod_inexact_function(&step->ix, step->form.function, &s->hidden[0], &s->hidden[1], &s->h);
        pod_reference_project(step, pod_reference_weight_of(step, s, "down"),
                              step->args->activation_terms, &s->h, &s->y);
    } else {
        pod_inexact_clear(&s->y);
    }
    if (s->layer.experts > 0) {
        pod_reference_experts(step, s);
    }
}

void pod_reference_mlp_back(pod_reference_step *step, pod_reference_state *s, const pod_inexact *dy,
                            const pod_inexact *dxn)
{
    enum { PRODUCTS = 3 };
    const size_t mark = step->ix.arena.used;
    if (s->layer.experts > 0) {
        pod_reference_experts_back(step, s, dy, dxn);
    }
    if (s->layer.d_ff == 0) {
        return;
    }
    const pod_inexact dh = pod_inexact_make(&step->ix, pod_reference_tokens(step), s->layer.d_ff);
    pod_inexact_clear(&dh);
    pod_reference_project_back(step, pod_reference_weight_of(step, s, "down"), 1, &s->h, dy, &dh);
    pod_inexact_store(&step->ix, "bwd.h", &dh, 1);
    pod_inexact_function_backward(&step->ix, step->form.function, &s->hidden[0], &s->hidden[1],
                                  &dh);
    for (int i = 0; i < POD_REFERENCE_MATRICES; i++) {
        pod_reference_weight *weight = dense_matrix(step, s, i);
        if (weight != NULL) {
            pod_reference_project_back(step, weight, PRODUCTS * step->args->activation_terms,
                                       &s->xn2, &s->hidden[i], dxn);
        }
    }
    step->ix.arena.used = mark;
}
