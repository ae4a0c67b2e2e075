/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/reference_layer.h"

#include "workload/verify/reference_attention.h"
#include "workload/verify/reference_mlp.h"

static bool normed_after(const pod_reference_step *step, bool of_mlp)
{
    enum { OF_MLP = 2, OF_ATTENTION = 3 };
    const int64_t norms = step->args->model->post_norms;
    return norms > 0 && norms != (of_mlp ? OF_ATTENTION : OF_MLP);
}

static pod_inexact_norm row_norm(const pod_reference_step *step, const char *site)
{
    return (pod_inexact_norm){
        .site = site, .form = &step->form, .width = step->args->model->d_model};
}

static pod_inexact new_rows(pod_reference_step *step)
{
    return pod_inexact_make(&step->ix, pod_reference_tokens(step), step->args->model->d_model);
}

/** The norm of x. */
static pod_inexact norm_new(pod_reference_step *step, const char *site, const pod_inexact *x)
{
    const pod_inexact_norm norm = row_norm(step, site);
    const pod_inexact y = new_rows(step);
    pod_inexact_norm_forward(&step->ix, &norm, x, &y);
    return y;
}

pod_inexact pod_reference_layer(pod_reference_step *step, pod_reference_state *state,
                                int64_t number, const pod_inexact *x)
{
    const bool parallel = step->args->model->parallel > 0;
    *state = (pod_reference_state){
        .number = number, .layer = pod_model_layer(step->args->model, number), .x = *x};
    const int64_t source = pod_model_kv_source(step->args->model, number);
    state->source = source != number ? state - number + source : NULL;
    state->xn = norm_new(step, "fwd.norm", x);
    pod_reference_attention(step, state);
    const pod_inexact out =
        normed_after(step, false) ? norm_new(step, "fwd.norm.post", &state->out) : state->out;
    state->x1 = parallel ? out : new_rows(step); /* what the MLP gives is added to it */
    if (!parallel) {
        pod_inexact_add(&step->ix, "fwd.residual", x, &out, &state->x1);
    }
    state->xn2 = parallel ? state->xn : norm_new(step, "fwd.norm", &state->x1);
    pod_reference_mlp(step, state);
    const pod_inexact y =
        normed_after(step, true) ? norm_new(step, "fwd.norm.post", &state->y) : state->y;
    const pod_inexact x2 = new_rows(step);
    pod_inexact_add(&step->ix, "fwd.residual", &state->x1, &y, &x2);
    if (parallel) { /* partial sums of both together are stored and added */
        pod_inexact_store(&step->ix, "fwd.parallel", &x2, (double)step->args->activation_terms);
        pod_inexact_add(&step->ix, "fwd.residual", x, &x2, &x2);
    }
    return x2;
}

/** The derivative by what a norm read, stored. */
static pod_inexact norm_new_back(pod_reference_step *step, const pod_inexact *x,
                                 const pod_inexact *dy)
{
    const pod_inexact_norm norm = row_norm(step, "bwd.norm");
    const pod_inexact dx = new_rows(step);
    pod_inexact_norm_backward(&step->ix, &norm, x, dy, &dx);
    return dx;
}

/** dy += the derivative through a norm, stored once. */
static void residual_back(pod_reference_step *step, const pod_inexact *x, const pod_inexact *dxn,
                          const pod_inexact *dy)
{
    const pod_inexact dx = norm_new_back(step, x, dxn);
    pod_inexact_add(&step->ix, "bwd.residual", dy, &dx, dy);
}

/** What comes back to an output before its norm. */
static pod_inexact output_back(pod_reference_step *step, bool of_mlp, const pod_inexact *output,
                               const pod_inexact *dy)
{
    if (!normed_after(step, of_mlp)) {
        return *dy;
    }
    const pod_inexact dx = norm_new_back(step, output, dy);
    pod_inexact_store(&step->ix, "bwd.norm.post", &dx, 1);
    return dx;
}

void pod_reference_layer_back(pod_reference_step *step, pod_reference_state *state,
                              const pod_inexact *dy)
{
    enum { PRODUCTS = 3 };
    const bool parallel = step->args->model->parallel > 0;
    const double stored = (double)(PRODUCTS * step->args->activation_terms);
    const size_t mark = step->ix.arena.used;
    const pod_inexact dxn2 = new_rows(step);
    pod_inexact_clear(&dxn2);
    const pod_inexact dout2 = output_back(step, true, &state->y, dy);
    pod_reference_mlp_back(step, state, &dout2, &dxn2);
    if (!parallel) {
        pod_inexact_store(&step->ix, "bwd.mlp", &dxn2, stored);
        residual_back(step, &state->x1, &dxn2, dy);
    }
    const pod_inexact dxn = parallel ? dxn2 : new_rows(step);
    if (!parallel) {
        pod_inexact_clear(&dxn);
    }
    const pod_inexact dout = output_back(step, false, &state->out, dy);
    pod_reference_attention_back(step, state, &dout, &dxn);
    pod_inexact_store(&step->ix, "bwd.attention.in", &dxn, stored);
    residual_back(step, &state->x, &dxn, dy);
    step->ix.arena.used = mark;
}

/* ---- sizes ---- */

/** Columns that a token's arrays have, those of the residual path and of heads beside what matmuls give. The way back
 * has fewer. */
static int64_t layer_width(const pod_reference_step *step, const pod_layer *layer)
{
    enum { ROWS = 8, HEADS = 8, PROJECTIONS = 3, CHOICES = 4 };
    const int64_t d = step->args->model->d_model;
    int64_t width = ROWS * d + HEADS * layer->heads * (layer->qk_dim + layer->v_dim) + layer->d_ff
                    + layer->kv_heads * (layer->qk_dim + layer->v_dim)
                    + layer->top_k * (layer->moe_d_ff + d + CHOICES) + layer->experts;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const int64_t rows = pod_layer_matmul_of_experts(m) ? layer->top_k : 1;
        width += rows * m->count * m->n * (m->role == POD_ROLE_PROJECTION ? PROJECTIONS : 1);
    }
    return width;
}

size_t pod_reference_layer_bytes(const pod_reference_step *step, int64_t number)
{
    const pod_layer layer = pod_model_layer(step->args->model, number);
    return pod_inexact_bytes(pod_reference_tokens(step), layer_width(step, &layer))
           + (size_t)(layer.experts + 1) * sizeof(int64_t);
}
