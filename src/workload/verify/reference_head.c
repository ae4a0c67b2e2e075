/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the reference: its norm, a dense product before it, and the logits of the tokens that it reads. */
#include "workload/verify/reference_head.h"

static pod_inexact new_like(pod_reference_step *step, const pod_inexact *x)
{
    return pod_inexact_make(&step->ix, x->rows, x->columns);
}

static void head_dense(pod_reference_step *step, pod_reference_head *s)
{
    pod_reference_weight *weight = pod_reference_end_of(step, "dense");
    const pod_inexact none = {.rows = 0};
    const pod_inexact_norm norm = {
        .site = "fwd.norm", .form = &step->form, .width = step->args->model->d_model};
    const pod_inexact_product product = {.site = "fwd.dense", .terms = 1};
    s->out = s->xn;
    if (weight != NULL) {
        s->hidden = new_like(step, &s->xn);
        s->h = new_like(step, &s->xn);
        s->out = new_like(step, &s->xn);
        pod_reference_multiply(step, &product, pod_reference_bias_of(step, weight), &s->xn,
                               &weight->value, &s->hidden);
        pod_inexact_function(&step->ix, step->form.function, &none, &s->hidden, &s->h);
        pod_inexact_norm_forward(&step->ix, &norm, &s->h, &s->out);
    }
}

/** From the derivative by what the dense head gives to that by what it reads, stored, in place. */
static void head_dense_back(pod_reference_step *step, const pod_reference_head *s,
                            const pod_inexact *d)
{
    pod_reference_weight *weight = pod_reference_end_of(step, "dense");
    const pod_inexact none = {.rows = 0};
    const pod_inexact_norm norm = {
        .site = "bwd.norm", .form = &step->form, .width = step->args->model->d_model};
    if (weight != NULL) {
        const pod_inexact dh = new_like(step, d);
        pod_inexact_norm_backward(&step->ix, &norm, &s->h, d, &dh);
        pod_inexact_store(&step->ix, "bwd.norm", &dh, 1);
        pod_inexact_function_backward(&step->ix, step->form.function, &none, &s->hidden, &dh);
        pod_inexact_clear(d);
        pod_reference_project_back(step, weight, 1, &s->xn, &s->hidden, d);
        pod_inexact_store(&step->ix, "bwd.dense", d, 1);
    }
}

/** Products with the head, or with the embedding transposed. */
static pod_inexact head_product(pod_reference_step *step, const pod_inexact *xn)
{
    const pod_reference_weight *own = pod_reference_end_of(step, "head");
    const pod_reference_weight *weight =
        own != NULL ? own : pod_reference_end_of(step, "embedding");
    const pod_inexact_product product = {
        .site = "fwd.head", .transpose_b = own == NULL, .terms = pod_reference_input_terms(step)};
    const pod_inexact logits = pod_inexact_make(&step->ix, xn->rows, step->args->model->vocab);
    pod_reference_multiply(step, &product, pod_reference_end_of(step, "head.bias"), xn,
                           &weight->value, &logits);
    return logits;
}

/** dxn, stored, and the gradient. */
static void head_product_back(pod_reference_step *step, const pod_inexact *xn,
                              const pod_inexact *dlogits, const pod_inexact *dxn)
{
    const pod_reference_weight *own = pod_reference_end_of(step, "head");
    const pod_reference_weight *weight =
        own != NULL ? own : pod_reference_end_of(step, "embedding");
    const pod_inexact_product input = {
        .site = "bwd.head", .transpose_b = own != NULL, .terms = step->args->activation_terms};
    const pod_inexact_product gradient = {.site = weight->array.name,
                                          .transpose_a = true,
                                          .accumulate = true,
                                          .terms = step->args->gradient_terms};
    pod_inexact_matmul(&step->ix, &input, dlogits, &weight->value, dxn);
    pod_inexact_matmul(&step->ix, &gradient, own != NULL ? xn : dlogits, own != NULL ? dlogits : xn,
                       &weight->gradient);
    pod_reference_bias_back(step, pod_reference_end_of(step, "head.bias"), dlogits);
}

int64_t pod_reference_head_tokens(const pod_reference_step *step)
{
    const int64_t masked = step->args->model->masked;
    return masked > 0 ? masked : step->args->seq;
}

int64_t pod_reference_head_row(const pod_reference_step *step, int64_t row)
{
    const int64_t each = pod_reference_head_tokens(step);
    const int64_t sequence = row / each;
    return sequence * step->args->seq
           + pod_transformer_head_position(step->args->model, step->args->seed, step->args->seq,
                                           step->sequence + sequence, row % each);
}

/** Rows of the head out of those of all tokens, or back into zeros. */
static void head_pick(const pod_reference_step *step, bool back, const pod_inexact *all,
                      const pod_inexact *some)
{
    for (int64_t i = 0; i < some->rows * some->columns; i++) {
        const int64_t c = i % some->columns;
        const int64_t from = pod_reference_head_row(step, i / some->columns) * all->stride + c;
        const int64_t at = i / some->columns * some->stride + c;
        *(back ? &all->value[from] : &some->value[at]) = back ? some->value[at] : all->value[from];
        *(back ? &all->square[from] : &some->square[at]) =
            back ? some->square[at] : all->square[from];
    }
}

static pod_inexact_norm head_row_norm(const pod_reference_step *step, const char *site)
{
    return (pod_inexact_norm){
        .site = site, .form = &step->form, .width = step->args->model->d_model};
}

pod_inexact pod_reference_head_logits(pod_reference_step *step, const pod_inexact *x,
                                      pod_reference_head *s)
{
    const int64_t rows = step->sequences * pod_reference_head_tokens(step);
    const pod_inexact_norm norm = head_row_norm(step, "fwd.norm");
    s->x = pod_inexact_make(&step->ix, rows, step->args->model->d_model);
    head_pick(step, false, x, &s->x);
    s->xn = new_like(step, &s->x);
    pod_inexact_norm_forward(&step->ix, &norm, &s->x, &s->xn);
    head_dense(step, s);
    return head_product(step, &s->out);
}

pod_inexact pod_reference_head_back(pod_reference_step *step, const pod_reference_head *s,
                                    const pod_inexact *dlogits)
{
    const pod_inexact_norm norm = head_row_norm(step, "bwd.norm");
    const pod_inexact dxn = new_like(step, &s->x);
    const pod_inexact dx = new_like(step, &s->x);
    const pod_inexact dy =
        pod_inexact_make(&step->ix, pod_reference_tokens(step), step->args->model->d_model);
    head_product_back(step, &s->out, dlogits, &dxn);
    head_dense_back(step, s, &dxn);
    pod_inexact_norm_backward(&step->ix, &norm, &s->x, &dxn, &dx);
    pod_inexact_store(&step->ix, "bwd.norm", &dx, 1);
    pod_inexact_clear(&dy);
    head_pick(step, true, &dy, &dx);
    return dy;
}
