/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a layer of the reference: projections, norms and rotation of queries and keys, latent attention. */
#include "workload/verify/reference_attention.h"

#include <math.h>

static pod_inexact make_rows(pod_reference_step *step, int64_t width)
{
    return pod_inexact_make(&step->ix, pod_reference_tokens(step), width);
}

/** A weight's result. */
static pod_inexact project_new(pod_reference_step *step, const pod_reference_state *state,
                               const char *name, const pod_inexact *a)
{
    pod_reference_weight *weight = pod_reference_weight_of(step, state, name);
    const pod_inexact out = make_rows(step, weight->array.columns);
    pod_reference_project(step, weight, pod_reference_input_terms(step), a, &out);
    return out;
}

static bool is_latent(const pod_reference_step *step)
{
    return step->args->model->kv_lora > 0;
}

static pod_inexact_attention attention_of(const pod_reference_step *step, const pod_layer *layer)
{
    return (pod_inexact_attention){
        .sequences = step->sequences,
        .seq = step->args->seq,
        .heads = layer->heads,
        .kv_heads = is_latent(step) ? layer->heads : layer->kv_heads,
        .qk_dim = layer->qk_dim,
        .v_dim = layer->v_dim,
        .window = layer->window,
        .chunked = layer->chunked,
        .all = layer->encoder,
        .context_terms = step->args->context_terms,
    };
}

/** Columns of each head, copied from `from` to `to`: of `width` from `first` of those of a head. */
typedef struct columns {
    int64_t heads;
    int64_t width;
    int64_t from_each; /**< columns of a head; 0: all heads read the same */
    int64_t from_first;
    int64_t to_each;
    int64_t to_first;
} columns;

static void copy_columns(const columns *of, const pod_inexact *from, const pod_inexact *to)
{
    for (int64_t r = 0; r < from->rows; r++) {
        for (int64_t h = 0; h < of->heads; h++) {
            const int64_t a = r * from->stride + h * of->from_each + of->from_first;
            const int64_t b = r * to->stride + h * of->to_each + of->to_first;
            for (int64_t i = 0; i < of->width; i++) {
                to->value[b + i] = from->value[a + i];
                to->square[b + i] = from->square[a + i];
            }
        }
    }
}

/** The way back of a copy: from += to. */
static void copy_columns_back(const columns *of, const pod_inexact *from, const pod_inexact *to)
{
    for (int64_t r = 0; r < from->rows; r++) {
        for (int64_t h = 0; h < of->heads; h++) {
            const int64_t a = r * from->stride + h * of->from_each + of->from_first;
            const int64_t b = r * to->stride + h * of->to_each + of->to_first;
            for (int64_t i = 0; i < of->width; i++) {
                from->value[a + i] += to->value[b + i];
                from->square[a + i] += to->square[b + i];
            }
        }
    }
}

/* ---- where columns lie ---- */

static columns query_columns(const pod_reference_step *step, const pod_layer *layer, bool gate)
{
    const int64_t halves = step->args->model->gated > 0 ? 2 : 1;
    return (columns){.heads = layer->heads,
                     .width = layer->qk_dim,
                     .from_each = halves * layer->qk_dim,
                     .from_first = gate ? layer->qk_dim : 0,
                     .to_each = layer->qk_dim};
}

static columns key_columns(const pod_reference_step *step, const pod_layer *layer)
{
    const int64_t dim = step->args->model->head_dim;
    return (columns){.heads = layer->heads,
                     .width = dim,
                     .from_each = dim + layer->v_dim,
                     .to_each = layer->qk_dim};
}

static columns rope_columns(const pod_reference_step *step, const pod_layer *layer)
{
    const pod_model *model = step->args->model;
    return (columns){.heads = layer->heads,
                     .width = model->rope_dim,
                     .from_first = model->kv_lora,
                     .to_each = layer->qk_dim,
                     .to_first = model->head_dim};
}

static columns value_columns(const pod_reference_step *step, const pod_layer *layer)
{
    const int64_t dim = step->args->model->head_dim;
    return (columns){.heads = layer->heads,
                     .width = layer->v_dim,
                     .from_each = dim + layer->v_dim,
                     .from_first = dim,
                     .to_each = layer->v_dim};
}

/* ---- the cache ---- */

/** What a cache of one byte adds: half a step of int8; of fp8 half a step at the value, or below the normal ones.
 *  @param of  columns with a scale of their own */
static void cache_round(const pod_reference_step *step, const columns *of, const pod_inexact *x)
{
    static const double fp8_unit = 0x1p-4;
    static const double fp8_least = 0x1p-10 / 448;
    static const double int8_half = 0.5 / 127;
    const bool int8 = step->args->cache == POD_DTYPE_INT8;
    for (int64_t r = 0; pod_dtype_size(step->args->cache) == 1 && r < x->rows; r++) {
        for (int64_t h = 0; h < of->heads; h++) {
            const int64_t at = r * x->stride + h * of->to_each + of->to_first;
            double largest = 0;
            for (int64_t i = at; i < at + of->width; i++) {
                largest = fabs(x->value[i]) > largest ? fabs(x->value[i]) : largest;
            }
            for (int64_t i = at; i < at + of->width; i++) {
                const double error = int8 ? int8_half * largest
                                          : fmax(fp8_unit * fabs(x->value[i]), fp8_least * largest);
                x->square[i] += (float)pod_square(error);
            }
        }
    }
}

/* ---- queries, keys, values ---- */

static pod_inexact_norm head_norm(const pod_reference_step *step, int64_t width)
{
    return (pod_inexact_norm){.site = "fwd.norm.qk", .form = &step->form, .width = width};
}

static pod_inexact norm_heads(pod_reference_step *step, const pod_inexact *x, int64_t width)
{
    const pod_inexact_norm norm = head_norm(step, width);
    const pod_inexact y = make_rows(step, x->columns);
    pod_inexact_norm_forward(&step->ix, &norm, x, &y);
    return y;
}

static void rotate_heads(pod_reference_step *step, const pod_layer *layer, const pod_inexact *x,
                         bool back)
{
    const pod_inexact_rotation rotation = {.site = back ? "bwd.rotate" : "fwd.rotate",
                                           .form = &step->form,
                                           .seq = step->args->seq,
                                           .width = layer->qk_dim,
                                           .rotated = is_latent(step) ? step->args->model->rope_dim
                                                                      : layer->qk_dim,
                                           .back = back};
    if (step->form.rotary_base > 0) {
        pod_inexact_rotate(&step->ix, &rotation, x);
    }
}

static void latent_heads(pod_reference_step *step, pod_reference_state *s)
{
    const pod_model *model = step->args->model;
    const pod_layer *layer = &s->layer;
    const columns keys = key_columns(step, layer);
    const columns rope = rope_columns(step, layer);
    const columns values = value_columns(step, layer);
    if (model->q_lora > 0) {
        s->query_latent = project_new(step, s, "query.latent", &s->xn);
        s->query_normed = norm_heads(step, &s->query_latent, model->q_lora);
        s->qkv.q = project_new(step, s, "query", &s->query_normed);
    } else {
        s->qkv.q = project_new(step, s, "query", &s->xn);
    }
    s->kv_latent = project_new(step, s, "kv.latent", &s->xn);
    const pod_inexact part = pod_inexact_part(&s->kv_latent, 0, model->kv_lora);
    s->kv_normed = norm_heads(step, &part, model->kv_lora);
    cache_round(step, &(columns){.heads = 1, .width = model->kv_lora}, &s->kv_normed);
    s->kv = project_new(step, s, "kv", &s->kv_normed);
    s->qkv.k = make_rows(step, layer->heads * layer->qk_dim);
    s->qkv.v = make_rows(step, layer->heads * layer->v_dim);
    copy_columns(&keys, &s->kv, &s->qkv.k);
    copy_columns(&rope, &s->kv_latent, &s->qkv.k);
    copy_columns(&values, &s->kv, &s->qkv.v);
}

/** Queries or keys as attention reads them, before rotation. */
static pod_inexact head_normed(pod_reference_step *step, const pod_layer *layer,
                               const pod_inexact *raw)
{
    const columns all = {.heads = 1, .width = raw->columns};
    if (step->args->model->qk_norms > 0) {
        return norm_heads(step, raw, layer->qk_dim);
    }
    const pod_inexact x = make_rows(step, raw->columns);
    copy_columns(&all, raw, &x);
    return x;
}

static void own_heads(pod_reference_step *step, pod_reference_state *s)
{
    const pod_layer *layer = &s->layer;
    const columns queries = query_columns(step, layer, false);
    const pod_inexact both = project_new(step, s, "query", &s->xn);
    s->query_raw = both;
    pod_inexact raw = both;
    if (step->args->model->gated > 0) {
        raw = make_rows(step, layer->heads * layer->qk_dim);
        copy_columns(&queries, &both, &raw);
    }
    s->qkv.q = head_normed(step, layer, &raw);
    if (s->source != NULL) {
        s->qkv.k = s->source->qkv.k;
        s->qkv.v = s->source->qkv.v;
        return;
    }
    s->dk = make_rows(step, layer->kv_heads * layer->qk_dim);
    s->dv = make_rows(step, layer->kv_heads * layer->v_dim);
    s->key_raw = project_new(step, s, "key", &s->xn);
    s->qkv.k = head_normed(step, layer, &s->key_raw);
    s->qkv.v = pod_reference_weight_of(step, s, "value") != NULL
                   ? project_new(step, s, "value", &s->xn)
                   : s->key_raw;
}

/** Keys and values in the cache; of latent attention the part of keys that isn't in the latent. */
static void heads_round(const pod_reference_step *step, const pod_reference_state *s)
{
    const pod_layer *layer = &s->layer;
    if (is_latent(step)) {
        const columns rope = rope_columns(step, layer);
        cache_round(step, &rope, &s->qkv.k);
        return;
    }
    const columns keys = {
        .heads = layer->kv_heads, .width = layer->qk_dim, .to_each = layer->qk_dim};
    const columns values = {
        .heads = layer->kv_heads, .width = layer->v_dim, .to_each = layer->v_dim};
    cache_round(step, &keys, &s->qkv.k);
    cache_round(step, &values, &s->qkv.v);
}

void pod_reference_attention(pod_reference_step *step, pod_reference_state *s)
{
    const pod_layer *layer = &s->layer;
    const pod_inexact_attention attention = attention_of(step, layer);
    const columns gates = query_columns(step, layer, true);
    if (is_latent(step)) {
        latent_heads(step, s);
    } else {
        own_heads(step, s);
    }
    rotate_heads(step, layer, &s->qkv.q, false);
    if (s->source == NULL) {
        rotate_heads(step, layer, &s->qkv.k, false);
        heads_round(step, s);
    }
    s->context = make_rows(step, layer->heads * layer->v_dim);
    pod_inexact_attend(&step->ix, &attention, &s->qkv, &s->context);
    s->gated = s->context;
    if (step->args->model->gated > 0) {
        s->gated = make_rows(step, s->context.columns);
        const size_t mark = step->ix.arena.used;
        const pod_inexact gate = make_rows(step, s->context.columns);
        copy_columns(&gates, &s->query_raw, &gate);
        pod_inexact_gate(&step->ix, &s->context, &gate, &s->gated);
        step->ix.arena.used = mark;
    }
    pod_reference_weight *out = pod_reference_weight_of(step, s, "out");
    s->out = make_rows(step, out->array.columns);
    pod_reference_project(step, out, step->args->activation_terms, &s->gated, &s->out);
}

/* ---- backward ---- */

/** A projection's way back: dxn += dout · weightᵀ. */
static void project_input_back(pod_reference_step *step, const pod_reference_state *s,
                               const char *name, const pod_inexact *a, const pod_inexact *dout,
                               const pod_inexact *da)
{
    enum { PRODUCTS = 3 };
    pod_reference_project_back(step, pod_reference_weight_of(step, s, name),
                               PRODUCTS * step->args->activation_terms, a, dout, da);
}

static pod_inexact make_cleared(pod_reference_step *step, int64_t width)
{
    const pod_inexact x = make_rows(step, width);
    pod_inexact_clear(&x);
    return x;
}

/** The derivative by what a norm of heads or latents read; stored so often, of a latent as partial sums, too. */
static pod_inexact norm_heads_back(pod_reference_step *step, const pod_inexact *x, int64_t width,
                                   const pod_inexact *dy, double roundings)
{
    const pod_inexact_norm norm = head_norm(step, width);
    const pod_inexact dx = make_rows(step, x->columns);
    pod_inexact_norm_backward(&step->ix, &norm, x, dy, &dx);
    pod_inexact_store(&step->ix, "bwd.norm.qk", &dx, roundings);
    return dx;
}

/** From the queries to dxn, through their latent if they have one. */
static void latent_query_back(pod_reference_step *step, pod_reference_state *s,
                              const pod_inexact *dq, const pod_inexact *dxn)
{
    const pod_model *model = step->args->model;
    const double terms = (double)step->args->activation_terms;
    if (model->q_lora == 0) {
        project_input_back(step, s, "query", &s->xn, dq, dxn);
        return;
    }
    const pod_inexact dnormed = make_cleared(step, model->q_lora);
    project_input_back(step, s, "query", &s->query_normed, dq, &dnormed);
    pod_inexact_store(&step->ix, "bwd.latent", &dnormed, terms);
    const pod_inexact dlatent =
        norm_heads_back(step, &s->query_latent, model->q_lora, &dnormed, 2 * terms - 1);
    project_input_back(step, s, "query.latent", &s->xn, &dlatent, dxn);
}

static void latent_heads_back(pod_reference_step *step, pod_reference_state *s,
                              const pod_inexact_qkv *d, const pod_inexact *dxn)
{
    const pod_model *model = step->args->model;
    const pod_layer *layer = &s->layer;
    const double terms = (double)step->args->activation_terms;
    const columns keys = key_columns(step, layer);
    const columns rope = rope_columns(step, layer);
    const columns values = value_columns(step, layer);
    const columns all = {.heads = 1, .width = model->kv_lora};
    latent_query_back(step, s, &d->q, dxn);
    const pod_inexact dkv = make_cleared(step, s->kv.columns);
    copy_columns_back(&keys, &dkv, &d->k);
    copy_columns_back(&values, &dkv, &d->v);
    const pod_inexact dnormed = make_cleared(step, model->kv_lora);
    project_input_back(step, s, "kv", &s->kv_normed, &dkv, &dnormed);
    pod_inexact_store(&step->ix, "bwd.latent", &dnormed, terms);
    const pod_inexact part = pod_inexact_part(&s->kv_latent, 0, model->kv_lora);
    const pod_inexact by_norm =
        norm_heads_back(step, &part, model->kv_lora, &dnormed, 2 * terms - 1);
    const pod_inexact dlatent = make_cleared(step, s->kv_latent.columns);
    copy_columns(&all, &by_norm, &dlatent);
    copy_columns_back(&rope, &dlatent, &d->k);
    /* the rotated part is the sum over all heads, on the chips of tensor and then over them */
    const pod_inexact rotated = pod_inexact_part(&dlatent, model->kv_lora, model->rope_dim);
    pod_inexact_store(&step->ix, "bwd.latent.rotated", &rotated, 1 + terms);
    project_input_back(step, s, "kv.latent", &s->xn, &dlatent, dxn);
}

static pod_inexact head_norm_back(pod_reference_step *step, const pod_layer *layer,
                                  const pod_inexact *raw, const pod_inexact *dx)
{
    return step->args->model->qk_norms > 0 ? norm_heads_back(step, raw, layer->qk_dim, dx, 1) : *dx;
}

/** The weight that makes a layer's values: its keys', if these are its values, too. */
static pod_reference_weight *values_weight(const pod_reference_step *step,
                                           const pod_reference_state *s)
{
    pod_reference_weight *value = pod_reference_weight_of(step, s, "value");
    return value != NULL ? value : pod_reference_weight_of(step, s, "key");
}

/** All keys of a query get a part of its derivative by the result, P of it, and these add up to 1: rows of dv have
 *  errors in common, which a bias adds up whole. */
static void values_bias_back(pod_reference_step *step, pod_reference_weight *weight,
                             const pod_layer *layer, const pod_inexact *dcontext)
{
    const pod_reference_weight *bias = pod_reference_bias_of(step, weight);
    const int64_t each = layer->heads / layer->kv_heads * layer->v_dim;
    for (int64_t i = 0; bias != NULL && i < dcontext->rows * dcontext->columns; i++) {
        const int64_t c = i % dcontext->columns;
        const int64_t at = i / dcontext->columns * dcontext->stride + c;
        bias->gradient.square[c / each * layer->v_dim + c % layer->v_dim] += dcontext->square[at];
    }
}

/** @param dgate  derivatives by the gates, if gated */
static void own_heads_back(pod_reference_step *step, pod_reference_state *s,
                           const pod_inexact_qkv *d, const pod_inexact *dgate,
                           const pod_inexact *dcontext, const pod_inexact *dxn)
{
    const pod_layer *layer = &s->layer;
    const columns queries = query_columns(step, layer, false);
    const columns gates = query_columns(step, layer, true);
    pod_inexact raw = s->query_raw;
    if (dgate != NULL) {
        raw = make_rows(step, layer->heads * layer->qk_dim);
        copy_columns(&queries, &s->query_raw, &raw);
    }
    pod_inexact dq = head_norm_back(step, layer, &raw, &d->q);
    if (dgate != NULL) {
        const pod_inexact both = make_cleared(step, s->query_raw.columns);
        copy_columns_back(&queries, &both, &dq);
        copy_columns_back(&gates, &both, dgate);
        dq = both;
    }
    project_input_back(step, s, "query", &s->xn, &dq, dxn);
    if (s->source != NULL) {
        return;
    }
    pod_inexact dk = head_norm_back(step, layer, &s->key_raw, &d->k);
    pod_reference_weight *value = pod_reference_weight_of(step, s, "value");
    values_bias_back(step, values_weight(step, s), layer, dcontext);
    if (value != NULL) {
        project_input_back(step, s, "value", &s->xn, &d->v, dxn);
    } else {
        pod_inexact_add(&step->ix, "bwd.shared.kv", &dk, &d->v, &dk);
    }
    project_input_back(step, s, "key", &s->xn, &dk, dxn);
}

/** Layers that share keys and values add up their derivatives; the layer that makes them adds its own. */
static void keys_shared_back(pod_reference_step *step, pod_reference_state *s,
                             const pod_inexact_qkv *d, const pod_inexact *dcontext)
{
    pod_reference_state *to = s->source;
    if (to == NULL && s->shared) {
        pod_inexact_add(&step->ix, "bwd.shared.k", &d->k, &s->dk, &d->k);
        pod_inexact_add(&step->ix, "bwd.shared.v", &d->v, &s->dv, &d->v);
    }
    if (to == NULL) {
        return;
    }
    if (to->shared) {
        pod_inexact_add(&step->ix, "bwd.shared.k", &d->k, &to->dk, &to->dk);
        pod_inexact_add(&step->ix, "bwd.shared.v", &d->v, &to->dv, &to->dv);
    } else {
        const columns k = {.heads = 1, .width = d->k.columns};
        const columns v = {.heads = 1, .width = d->v.columns};
        copy_columns(&k, &d->k, &to->dk);
        copy_columns(&v, &d->v, &to->dv);
        to->shared = true;
    }
    values_bias_back(step, values_weight(step, to), &s->layer, dcontext);
}

void pod_reference_attention_back(pod_reference_step *step, pod_reference_state *s,
                                  const pod_inexact *dout, const pod_inexact *dxn)
{
    const pod_layer *layer = &s->layer;
    const pod_inexact_attention attention = attention_of(step, layer);
    const columns gates = query_columns(step, layer, true);
    const bool gated = step->args->model->gated > 0;
    const size_t mark = step->ix.arena.used;
    const pod_inexact dcontext = make_cleared(step, s->context.columns);
    const pod_inexact dgate = gated ? make_rows(step, s->context.columns) : dcontext;
    const pod_inexact_qkv d = {.q = make_rows(step, s->qkv.q.columns),
                               .k = make_rows(step, s->qkv.k.columns),
                               .v = make_rows(step, s->qkv.v.columns)};
    pod_reference_project_back(step, pod_reference_weight_of(step, s, "out"), 1, &s->gated, dout,
                               &dcontext);
    pod_inexact_store(&step->ix, "bwd.context", &dcontext, 1);
    if (gated) {
        copy_columns(&gates, &s->query_raw, &dgate);
        pod_inexact_gate_backward(&step->ix, &s->context, &dgate, &dcontext);
    }
    pod_inexact_attend_backward(&step->ix, &attention, &s->qkv, &s->context, &dcontext, &d);
    keys_shared_back(step, s, &d, &dcontext);
    rotate_heads(step, layer, &d.q, true);
    rotate_heads(step, layer, &d.k, true);
    if (is_latent(step)) {
        latent_heads_back(step, s, &d, dxn);
    } else {
        own_heads_back(step, s, &d, gated ? &dgate : NULL, &dcontext, dxn);
    }
    step->ix.arena.used = mark;
}
