/* SPDX-License-Identifier: Apache-2.0 */
/* Experts of a layer of the reference. Of a token with router logits l, the top_k largest are chosen; their shares are
 * a = softmax over the chosen ones, and the layer adds Σ a_i · MLP_i(x). With a capacity each expert takes the first
 * `capacity` of the choices of a sequence, or of a chip's part of one, by tokens and within a token by falling logit;
 * the others are dropped.
 *
 *      δa_i = a_i (δl_i - Σ a_j δl_j)      δy = Σ a_i δr_i + r_i δa_i      dr_i = a_i dy      da_i = dy · r_i
 *      dl_i = a_i (da_i - Σ a_j da_j), with errors by the same product
 */
#include "workload/verify/reference_experts.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

/* ---- the choice ---- */

static int64_t capacity_chips(const pod_reference_step *step)
{
    return pod_max_i64(step->args->capacity_chips, 1);
}

static int64_t capacity_of(const pod_reference_step *step, const pod_layer *layer)
{
    enum { PERCENT = 100 };
    const int64_t percent = step->args->model->capacity_percent;
    const int64_t tokens = step->args->seq / capacity_chips(step);
    return percent > 0 ? pod_ceil_div(tokens * layer->top_k * percent, PERCENT * layer->experts)
                       : tokens;
}

/** The chip that has a token of a sequence: chip i the pieces i and, from the back, i. */
static int64_t chip_of(const pod_reference_step *step, int64_t position)
{
    const int64_t chips = capacity_chips(step);
    const int64_t tokens = step->args->seq / chips;
    const int64_t half = tokens / 2;
    if (!step->args->front_and_back || half == 0) {
        return position / tokens;
    }
    return position < chips * half ? position / half
                                   : chips - 1 - (position - chips * half) / (tokens - half);
}

/** The best expert that isn't chosen yet; the first of equals. */
static int32_t best_of(const double *logits, int64_t experts, const int32_t *chosen, int64_t n)
{
    int32_t best = -1;
    for (int32_t e = 0; e < experts; e++) {
        bool taken = false;
        for (int64_t i = 0; i < n; i++) {
            taken = taken || chosen[i] == e;
        }
        if (!taken && (best < 0 || logits[e] > logits[best])) {
            best = e;
        }
    }
    return best;
}

static bool is_among(const int32_t *chosen, int64_t n, int32_t expert)
{
    for (int64_t i = 0; i < n; i++) {
        if (chosen[i] == expert) {
            return true;
        }
    }
    return false;
}

/** Whether expert b's score may be above a's. */
static bool is_near(const double *logits, const float *square, int32_t a, int32_t b)
{
    const double error = sqrt((double)square[a] + (double)square[b]);
    return logits[a] - logits[b] <= pod_transformer_lambda * error;
}

/** Whether chips may have chosen so: each expert that they take may have a higher score than each that they leave. */
static bool may_choose(const pod_layer *layer, const int32_t *theirs, const double *logits,
                       const float *square, const int32_t *chosen)
{
    const int64_t k = layer->top_k;
    bool may = true;
    for (int64_t i = 0; i < k && may; i++) {
        may = theirs[i] >= 0 && theirs[i] < layer->experts && !is_among(theirs, i, theirs[i]);
        for (int64_t j = 0; j < k && may && !is_among(chosen, k, theirs[i]); j++) {
            may = is_among(theirs, k, chosen[j]) || is_near(logits, square, chosen[j], theirs[i]);
        }
    }
    return may;
}

static void experts_choose(pod_reference_step *step, const pod_reference_state *s,
                           const pod_inexact *logits)
{
    const pod_layer *layer = &s->layer;
    const int64_t k = layer->top_k;
    const pod_transformer_choices *given = step->args->choices;
    for (int64_t t = 0; t < logits->rows; t++) {
        const double *value = logits->value + t * logits->stride;
        const float *square = logits->square + t * logits->stride;
        int32_t *chosen = s->rows.expert + t * k;
        for (int64_t i = 0; i < k; i++) {
            chosen[i] = best_of(value, layer->experts, chosen, i);
        }
        const int32_t next = best_of(value, layer->experts, chosen, k);
        step->near += next >= 0 && is_near(value, square, chosen[k - 1], next);
        if (given != NULL && given[s->number].expert != NULL) {
            const int64_t token = step->sequence * step->args->seq + t;
            const int32_t *theirs = given[s->number].expert + token * k;
            if (may_choose(layer, theirs, value, square, chosen)) {
                memcpy(chosen, theirs, (size_t)k * sizeof *chosen);
            } else {
                step->differ++;
            }
        }
    }
}

/** Shares of the chosen experts, with errors. */
static void shares_find(const pod_reference_state *s, const pod_inexact *logits)
{
    const int64_t k = s->layer.top_k;
    for (int64_t t = 0; t < logits->rows; t++) {
        const int32_t *chosen = s->rows.expert + t * k;
        const double *value = logits->value + t * logits->stride;
        const float *square = logits->square + t * logits->stride;
        double *a = s->rows.share.value + t * k;
        float *sa = s->rows.share.square + t * k;
        double sum = 0;
        double weighted = 0;
        for (int64_t i = 0; i < k; i++) {
            a[i] = exp(value[chosen[i]] - value[chosen[0]]);
            sum += a[i];
        }
        for (int64_t i = 0; i < k; i++) {
            a[i] /= sum;
            weighted += pod_square(a[i]) * (double)square[chosen[i]];
        }
        for (int64_t i = 0; i < k; i++) {
            const double own = (1 - 2 * a[i]) * (double)square[chosen[i]];
            sa[i] = (float)(pod_square(a[i]) * (own + weighted));
        }
    }
}

/** Give the choices of an expert that a chip has of all sequences a row each, or -1. @return the next row */
static int64_t chip_rows(const pod_reference_step *step, const pod_reference_state *s,
                         int32_t expert, int64_t chip, int64_t row)
{
    const int64_t k = s->layer.top_k;
    const int64_t capacity = capacity_of(step, &s->layer);
    int64_t taken = 0;
    for (int64_t c = 0; c < pod_reference_tokens(step) * k; c++) {
        const int64_t position = c / k % step->args->seq;
        taken = c % (step->args->seq * k) == 0 ? 0 : taken;
        if (s->rows.expert[c] != expert || chip_of(step, position) != chip) {
            continue;
        }
        s->rows.row[c] = taken < capacity ? (int32_t)row : -1;
        if (taken++ < capacity) {
            s->rows.token[row++] = (int32_t)(c / k);
        }
    }
    return row;
}

/** Expert by expert. */
static void sort_rows(const pod_reference_step *step, const pod_reference_state *s)
{
    int64_t row = 0;
    for (int32_t e = 0; e < s->layer.experts; e++) {
        s->rows.first[e] = row;
        for (int64_t chip = 0; chip < capacity_chips(step); chip++) {
            row = chip_rows(step, s, e, chip, row);
        }
    }
    s->rows.first[s->layer.experts] = row;
}

/* ---- forward ---- */

static pod_reference_weight *expert_matrix(const pod_reference_step *step,
                                           const pod_reference_state *s, int i)
{
    static const char *const names[POD_REFERENCE_MATRICES] = {"experts.gate", "experts.in"};
    return pod_reference_weight_of(step, s, names[i]);
}

/** One expert's part of a weight. */
static pod_reference_weight of_expert(const pod_reference_weight *weight, int64_t expert)
{
    pod_reference_weight part = *weight;
    const int64_t rows = weight->array.rows;
    part.value = pod_inexact_rows(&weight->value, expert * rows, rows);
    if (weight->rounded.value != NULL) {
        part.rounded = pod_inexact_rows(&weight->rounded, expert * rows, rows);
    }
    part.gradient = pod_inexact_rows(&weight->gradient, expert * rows, rows);
    return part;
}

static pod_inexact rows_of(const pod_reference_state *s, const pod_inexact *array, int64_t expert)
{
    const int64_t first = s->rows.first[expert];
    return pod_inexact_rows(array, first, s->rows.first[expert + 1] - first);
}

static void rows_gather(const pod_reference_state *s, const pod_inexact *x, const pod_inexact *rows)
{
    for (int64_t r = 0; r < s->rows.first[s->layer.experts]; r++) {
        const int64_t token = s->rows.token[r];
        memcpy(rows->value + r * rows->stride, x->value + token * x->stride,
               (size_t)x->columns * sizeof(double));
        memcpy(rows->square + r * rows->stride, x->square + token * x->stride,
               (size_t)x->columns * sizeof(float));
    }
}

static void expert_forward(pod_reference_step *step, pod_reference_state *s, int64_t expert)
{
    const pod_inexact x = rows_of(s, &s->rows.x, expert);
    const pod_inexact h = rows_of(s, &s->rows.h, expert);
    const pod_inexact y = rows_of(s, &s->rows.y, expert);
    pod_inexact hidden[POD_REFERENCE_MATRICES] = {{.rows = 0}};
    for (int i = 0; i < POD_REFERENCE_MATRICES; i++) {
        const pod_reference_weight *all = expert_matrix(step, s, i);
        if (all != NULL) {
            pod_reference_weight weight = of_expert(all, expert);
            hidden[i] = rows_of(s, &s->rows.hidden[i], expert);
            pod_reference_project(step, &weight, pod_reference_input_terms(step), &x, &hidden[i]);
        }
    }
    pod_reference_weight down = of_expert(pod_reference_weight_of(step, s, "experts.down"), expert);
    pod_inexact_function(&step->ix, step->form.function, &hidden[0], &hidden[1], &h);
    pod_reference_project(step, &down, step->args->activation_terms, &h, &y);
}

/** y += Σ share · row. */
static void rows_combine(const pod_reference_state *s)
{
    const int64_t k = s->layer.top_k;
    for (int64_t c = 0; c < s->y.rows * k; c++) {
        const int64_t row = s->rows.row[c];
        const double a = s->rows.share.value[c];
        const double sa = (double)s->rows.share.square[c];
        for (int64_t i = 0; row >= 0 && i < s->y.columns; i++) {
            const double r = s->rows.y.value[row * s->rows.y.stride + i];
            const double sr = (double)s->rows.y.square[row * s->rows.y.stride + i];
            s->y.value[c / k * s->y.stride + i] += a * r;
            s->y.square[c / k * s->y.stride + i] +=
                (float)(pod_square(a) * sr + pod_square(r) * sa);
        }
    }
}

static void rows_make(pod_reference_step *step, pod_reference_state *s)
{
    const int64_t choices = pod_reference_tokens(step) * s->layer.top_k;
    pod_reference_rows *rows = &s->rows;
    pod_arena *arena = &step->ix.arena;
    rows->first = pod_arena_take(arena, (size_t)(s->layer.experts + 1) * sizeof *rows->first);
    rows->token = pod_arena_take(arena, (size_t)choices * sizeof *rows->token);
    rows->row = pod_arena_take(arena, (size_t)choices * sizeof *rows->row);
    rows->expert = pod_arena_take(arena, (size_t)choices * sizeof *rows->expert);
    rows->share = pod_inexact_make(&step->ix, pod_reference_tokens(step), s->layer.top_k);
    rows->x = pod_inexact_make(&step->ix, choices, step->args->model->d_model);
    rows->y = pod_inexact_make(&step->ix, choices, step->args->model->d_model);
    rows->h = pod_inexact_make(&step->ix, choices, s->layer.moe_d_ff);
    for (int i = 0; i < POD_REFERENCE_MATRICES; i++) {
        if (expert_matrix(step, s, i) != NULL) {
            rows->hidden[i] = pod_inexact_make(&step->ix, choices, s->layer.moe_d_ff);
        }
    }
}

void pod_reference_experts(pod_reference_step *step, pod_reference_state *s)
{
    rows_make(step, s);
    const size_t mark = step->ix.arena.used;
    const pod_inexact logits =
        pod_inexact_make(&step->ix, pod_reference_tokens(step), s->layer.experts);
    const pod_inexact_product product = {.site = "fwd.router", .accumulate = true, .terms = 1};
    pod_inexact_clear(&logits);
    pod_inexact_matmul(&step->ix, &product, &s->xn2,
                       &pod_reference_weight_of(step, s, "router")->value, &logits);
    experts_choose(step, s, &logits);
    shares_find(s, &logits);
    sort_rows(step, s);
    step->ix.arena.used = mark;
    rows_gather(s, &s->xn2, &s->rows.x);
    for (int64_t e = 0; e < s->layer.experts; e++) {
        if (s->rows.first[e + 1] > s->rows.first[e]) {
            expert_forward(step, s, e);
        }
    }
    rows_combine(s);
    pod_inexact_store(&step->ix, "fwd.experts", &s->y, 1 + (double)step->args->activation_terms);
}

/* ---- backward ---- */

/** Derivatives by the rows, and by their shares. */
static void rows_combine_back(const pod_reference_state *s, const pod_inexact *dy,
                              const pod_inexact *drows, const pod_inexact *dshare)
{
    const int64_t k = s->layer.top_k;
    for (int64_t c = 0; c < dy->rows * k; c++) {
        const int64_t row = s->rows.row[c];
        const double a = s->rows.share.value[c];
        const double sa = (double)s->rows.share.square[c];
        double value = 0;
        double square = 0;
        for (int64_t i = 0; row >= 0 && i < dy->columns; i++) {
            const double r = s->rows.y.value[row * s->rows.y.stride + i];
            const double sr = (double)s->rows.y.square[row * s->rows.y.stride + i];
            const double d = dy->value[c / k * dy->stride + i];
            const double sd = (double)dy->square[c / k * dy->stride + i];
            drows->value[row * drows->stride + i] = a * d;
            drows->square[row * drows->stride + i] =
                (float)(pod_square(a) * sd + pod_square(d) * sa);
            value += d * r;
            square += pod_square(d) * sr + pod_square(r) * sd;
        }
        dshare->value[c] = value;
        dshare->square[c] = (float)square;
    }
}

/** Derivatives by the logits, 0 for experts that weren't chosen. */
static void shares_back(const pod_reference_state *s, const pod_inexact *dshare,
                        const pod_inexact *dlogits)
{
    const int64_t k = s->layer.top_k;
    pod_inexact_clear(dlogits);
    for (int64_t t = 0; t < dlogits->rows; t++) {
        const double *a = s->rows.share.value + t * k;
        const float *sa = s->rows.share.square + t * k;
        const double *da = dshare->value + t * k;
        const float *sda = dshare->square + t * k;
        double mean = 0;
        double common = 0;
        for (int64_t i = 0; i < k; i++) {
            mean += a[i] * da[i];
            common += pod_square(a[i]) * (double)sda[i] + (double)sa[i] * pod_square(da[i]);
        }
        for (int64_t i = 0; i < k; i++) {
            const int64_t at = t * dlogits->stride + s->rows.expert[t * k + i];
            dlogits->value[at] = a[i] * (da[i] - mean);
            dlogits->square[at] = (float)((double)sa[i] * pod_square(da[i] - mean)
                                          + pod_square(a[i]) * ((double)sda[i] + common));
        }
    }
}

/** From the derivatives by an expert's results to those by its rows, in place of them. */
static void expert_back(pod_reference_step *step, pod_reference_state *s, int64_t expert,
                        const pod_inexact *drows)
{
    const pod_inexact x = rows_of(s, &s->rows.x, expert);
    const pod_inexact h = rows_of(s, &s->rows.h, expert);
    const pod_inexact d = rows_of(s, drows, expert);
    const int64_t terms = POD_REFERENCE_MATRICES * step->args->activation_terms;
    const size_t mark = step->ix.arena.used;
    const pod_inexact dh = pod_inexact_make(&step->ix, h.rows, h.columns);
    pod_reference_weight down = of_expert(pod_reference_weight_of(step, s, "experts.down"), expert);
    pod_inexact hidden[POD_REFERENCE_MATRICES] = {{.rows = 0}};
    for (int i = 0; i < POD_REFERENCE_MATRICES; i++) {
        if (expert_matrix(step, s, i) != NULL) {
            hidden[i] = rows_of(s, &s->rows.hidden[i], expert);
        }
    }
    pod_inexact_clear(&dh);
    pod_reference_project_back(step, &down, 1, &h, &d, &dh);
    pod_inexact_store(&step->ix, "bwd.experts.h", &dh, 1);
    pod_inexact_function_backward(&step->ix, step->form.function, &hidden[0], &hidden[1], &dh);
    pod_inexact_clear(&d);
    for (int i = 0; i < POD_REFERENCE_MATRICES; i++) {
        if (hidden[i].value != NULL) {
            pod_reference_weight weight = of_expert(expert_matrix(step, s, i), expert);
            pod_reference_project_back(step, &weight, terms, &x, &hidden[i], &d);
        }
    }
    pod_inexact_store(&step->ix, "bwd.experts.rows", &d, (double)terms);
    step->ix.arena.used = mark;
}

/** dxn += the derivatives by a token's rows. */
static void rows_scatter(const pod_reference_state *s, const pod_inexact *drows,
                         const pod_inexact *dxn)
{
    for (int64_t r = 0; r < s->rows.first[s->layer.experts]; r++) {
        const int64_t token = s->rows.token[r];
        for (int64_t i = 0; i < dxn->columns; i++) {
            dxn->value[token * dxn->stride + i] += drows->value[r * drows->stride + i];
            dxn->square[token * dxn->stride + i] += drows->square[r * drows->stride + i];
        }
    }
}

void pod_reference_experts_back(pod_reference_step *step, pod_reference_state *s,
                                const pod_inexact *dy, const pod_inexact *dxn)
{
    const int64_t tokens = pod_reference_tokens(step);
    const int64_t k = s->layer.top_k;
    const size_t mark = step->ix.arena.used;
    const pod_inexact drows = pod_inexact_make(&step->ix, tokens * k, dy->columns);
    const pod_inexact dshare = pod_inexact_make(&step->ix, tokens, k);
    const pod_inexact dlogits = pod_inexact_make(&step->ix, tokens, s->layer.experts);
    const pod_inexact all = pod_inexact_rows(&drows, 0, s->rows.first[s->layer.experts]);
    rows_combine_back(s, dy, &drows, &dshare);
    pod_inexact_store(&step->ix, "bwd.experts.results", &all, 1);
    shares_back(s, &dshare, &dlogits);
    pod_inexact_store(&step->ix, "bwd.router", &dlogits, 1);
    for (int64_t e = 0; e < s->layer.experts; e++) {
        if (s->rows.first[e + 1] > s->rows.first[e]) {
            expert_back(step, s, e, &drows);
        }
    }
    rows_scatter(s, &drows, dxn);
    pod_inexact_store(&step->ix, "bwd.experts", dxn, (double)k);
    pod_reference_project_back(step, pod_reference_weight_of(step, s, "router"), 1, &s->xn2,
                               &dlogits, dxn);
    step->ix.arena.used = mark;
}
