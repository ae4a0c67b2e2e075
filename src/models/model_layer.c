/* SPDX-License-Identifier: Apache-2.0 */
#include "models/model_layer.h"

#include "base/status.h"
#include "models/model.h"

#include <stddef.h>

static bool is_last_of(int64_t every, int64_t index)
{
    return every > 0 && (index + 1) % every == 0;
}

static bool layer_is_global(const pod_model *model, int64_t index)
{
    return model->window == 0 || is_last_of(model->global_every, index);
}

static bool layer_has_delta_rule(const pod_model *model, int64_t index)
{
    return model->delta_v_heads > 0 && !is_last_of(model->global_every, index);
}

static bool layer_has_experts(const pod_model *model, int64_t index)
{
    const int64_t every = model->moe_every > 0 ? model->moe_every : 1;
    return model->experts > 0 && index >= model->dense_layers && (index + 1) % every == 0;
}

enum { QUERY = 1U << POD_KEEP_QUERY, KEY = 1U << POD_KEEP_KEY, VALUE = 1U << POD_KEEP_VALUE };

static void add(pod_layer *layer, pod_layer_matmul matmul)
{
    if (matmul.count > 0 && matmul.n > 0 && matmul.k > 0) {
        POD_ASSERT(layer->nmatmuls < POD_LAYER_MATMULS_MAX);
        layer->matmul[layer->nmatmuls++] = matmul;
    }
}

/** A projection whose columns belong to `heads` heads, 0 = none: tensor can't cut it. */
static void project(pod_layer *layer, const char *name, const int64_t kn[2], int64_t heads,
                    unsigned kept)
{
    add(layer, (pod_layer_matmul){.name = name,
                                  .role = POD_ROLE_PROJECTION,
                                  .part = POD_PART_ATTENTION,
                                  .k = kn[0],
                                  .n = kn[1],
                                  .count = 1,
                                  .n_units = heads,
                                  .kept = kept});
}

/** Latent attention: one latent for keys and values, whose rotated part all heads share. */
static void latent_attention(const pod_model *model, pod_layer *layer)
{
    const int64_t d = model->d_model;
    const int64_t q = layer->heads * (model->head_dim + model->rope_dim);
    const int64_t kv = layer->heads * (model->head_dim + layer->v_dim);
    layer->qk_dim = model->head_dim + model->rope_dim;
    layer->kv_width = model->kv_lora + model->rope_dim;
    if (model->q_lora > 0) {
        project(layer, "query.latent", (const int64_t[2]){d, model->q_lora}, 0, QUERY);
        project(layer, "query", (const int64_t[2]){model->q_lora, q}, layer->heads, QUERY);
    } else {
        project(layer, "query", (const int64_t[2]){d, q}, layer->heads, QUERY);
    }
    if (model->index_top_k > 0) {
        const int64_t from = model->q_lora > 0 ? model->q_lora : d;
        layer->index_heads = model->index_heads;
        layer->index_dim = model->index_dim;
        layer->window = model->index_top_k;
        layer->kv_width += model->index_dim;
        project(layer, "index.query",
                (const int64_t[2]){from, model->index_heads * model->index_dim}, model->index_heads,
                QUERY);
        project(layer, "index.key", (const int64_t[2]){d, model->index_dim}, 0, KEY);
        project(layer, "index.weights", (const int64_t[2]){d, model->index_heads},
                model->index_heads, QUERY);
    }
    project(layer, "kv.latent", (const int64_t[2]){d, model->kv_lora + model->rope_dim}, 0,
            KEY | VALUE);
    project(layer, "kv", (const int64_t[2]){model->kv_lora, kv}, layer->heads, KEY | VALUE);
}

/** The gated delta rule: queries, keys, values and their gates, and two numbers a head that decay and write. */
static void delta_rule(const pod_model *model, pod_layer *layer)
{
    const int64_t keys = model->delta_k_heads * model->delta_k_dim;
    const int64_t values = model->delta_v_heads * model->delta_v_dim;
    layer->heads = model->delta_v_heads;
    layer->kv_heads = model->delta_k_heads;
    layer->qk_dim = model->delta_k_dim;
    layer->v_dim = model->delta_v_dim;
    layer->delta_chunk = model->delta_chunk;
    layer->delta_conv = model->delta_conv;
    project(layer, "query", (const int64_t[2]){model->d_model, keys}, layer->kv_heads, QUERY);
    project(layer, "key", (const int64_t[2]){model->d_model, keys}, layer->kv_heads, KEY);
    project(layer, "value", (const int64_t[2]){model->d_model, 2 * values}, layer->heads, VALUE);
    project(layer, "decay", (const int64_t[2]){model->d_model, 2 * layer->heads}, layer->heads,
            VALUE);
}

int64_t pod_model_kv_source(const pod_model *model, int64_t index)
{
    const int64_t own = model->layers - model->kv_shared_layers;
    int64_t source = index < own || model->kv_lora > 0 ? index : own - 1;
    while (source >= 0 && layer_is_global(model, source) != layer_is_global(model, index)) {
        source--;
    }
    return source;
}

static void projections(const pod_model *model, int64_t index, pod_layer *layer)
{
    if (layer_has_delta_rule(model, index)) {
        delta_rule(model, layer);
        return;
    }
    const bool global = layer_is_global(model, index);
    const bool own_kv = index < model->layers - model->kv_shared_layers;
    const int64_t dim =
        global && model->global_head_dim > 0 ? model->global_head_dim : model->head_dim;
    layer->heads = model->heads;
    layer->kv_heads =
        global && model->global_kv_heads > 0 ? model->global_kv_heads : model->kv_heads;
    layer->window = global ? 0 : model->window;
    layer->encoder = model->encoder > 0;
    layer->chunked = layer->window > 0 && model->chunked > 0;
    layer->qk_dim = dim;
    layer->v_dim = model->v_head_dim > 0 ? model->v_head_dim : dim;
    if (model->kv_lora > 0) {
        latent_attention(model, layer);
        return;
    }
    const int64_t kv[2] = {model->d_model, layer->kv_heads * dim};
    layer->kv_width = own_kv ? 2 * layer->kv_heads * dim : 0;
    const int64_t halves = model->gated > 0 ? 2 : 1;
    project(layer, "query", (const int64_t[2]){model->d_model, halves * layer->heads * dim},
            layer->heads, QUERY);
    if (own_kv && global && model->shared_kv > 0) {
        project(layer, "key", kv, layer->kv_heads, KEY | VALUE);
    } else if (own_kv) {
        project(layer, "key", kv, layer->kv_heads, KEY);
        project(layer, "value", kv, layer->kv_heads, VALUE);
    }
}

static void attention(const pod_model *model, int64_t index, pod_layer *layer)
{
    projections(model, index, layer);
    add(layer, (pod_layer_matmul){.name = "out",
                                  .role = POD_ROLE_OUT,
                                  .part = POD_PART_ATTENTION,
                                  .k = layer->heads * layer->v_dim,
                                  .n = layer->expert_d_model,
                                  .count = 1,
                                  .k_units = layer->heads,
                                  .kept = 1U << POD_KEEP_OUT});
}

/** The matmuls of an MLP of width d_ff: up with gate, or down. */
static void mlp_add(const pod_model *model, pod_layer *layer, pod_layer_role role,
                    pod_layer_part part, int64_t d_ff)
{
    const bool down = role == POD_ROLE_DOWN || role == POD_ROLE_EXPERTS_DOWN;
    const bool experts = role == POD_ROLE_EXPERTS_UP || role == POD_ROLE_EXPERTS_DOWN;
    const int64_t d = experts ? layer->expert_d_model : model->d_model;
    const char *const names[2][2] = {
        {"in",         "down"        },
        {"experts.in", "experts.down"}
    };
    add(layer, (pod_layer_matmul){.name = names[experts][down],
                                  .role = role,
                                  .part = part,
                                  .k = down ? d_ff : d,
                                  .n = down ? d : d_ff,
                                  .count = down || experts ? 1 : model->mlp_matrices - 1,
                                  .k_units = down ? d_ff : 0,
                                  .n_units = down ? 0 : d_ff,
                                  .kept = 1U << (down ? POD_KEEP_MLPWO : POD_KEEP_MLPWI)});
}

static void mlp(const pod_model *model, pod_layer *layer)
{
    mlp_add(model, layer, POD_ROLE_UP, POD_PART_IN, layer->d_ff);
    add(layer, (pod_layer_matmul){.name = "router",
                                  .role = POD_ROLE_ROUTER,
                                  .part = POD_PART_IN,
                                  .k = layer->expert_d_model,
                                  .n = layer->experts,
                                  .count = 1});
    for (int64_t i = 2; i < model->mlp_matrices; i++) {
        mlp_add(model, layer, POD_ROLE_EXPERTS_UP, POD_PART_EXPERTS_GATE, layer->moe_d_ff);
    }
    mlp_add(model, layer, POD_ROLE_EXPERTS_UP, POD_PART_EXPERTS_IN, layer->moe_d_ff);
    mlp_add(model, layer, POD_ROLE_EXPERTS_DOWN, POD_PART_EXPERTS_OUT, layer->moe_d_ff);
    mlp_add(model, layer, POD_ROLE_DOWN, POD_PART_OUT, layer->d_ff);
    if (layer->expert_d_model < model->d_model) {
        add(layer, (pod_layer_matmul){.name = "widen",
                                      .role = POD_ROLE_WIDEN,
                                      .part = POD_PART_OUT,
                                      .k = layer->expert_d_model,
                                      .n = model->d_model,
                                      .count = 1});
    }
}

pod_layer pod_model_layer(const pod_model *model, int64_t index)
{
    pod_layer layer = {.expert_d_model =
                           model->expert_d_model > 0 ? model->expert_d_model : model->d_model};
    attention(model, index, &layer);
    if (layer_has_experts(model, index)) {
        layer.experts = model->experts;
        layer.top_k = model->top_k;
        layer.moe_d_ff = model->moe_d_ff;
        layer.d_ff = model->shared_d_ff;
    } else {
        layer.d_ff = model->d_ff * (index >= model->layers - model->wide_layers ? 2 : 1);
    }
    mlp(model, &layer);
    return layer;
}

/* ---- what the table says ---- */

const pod_layer_matmul *pod_layer_find(const pod_layer *layer, pod_layer_role role)
{
    for (int i = 0; i < layer->nmatmuls; i++) {
        if (layer->matmul[i].role == role) {
            return &layer->matmul[i];
        }
    }
    return NULL;
}

static int64_t cut(int64_t size, int64_t units, int64_t tensor)
{
    return units > 0 ? size / units * ((units + tensor - 1) / tensor) : size;
}

int64_t pod_layer_matmul_k(const pod_layer_matmul *matmul, int64_t tensor)
{
    return cut(matmul->k, matmul->k_units, tensor);
}

int64_t pod_layer_matmul_n(const pod_layer_matmul *matmul, int64_t tensor)
{
    return cut(matmul->n, matmul->n_units, tensor);
}

bool pod_layer_matmul_of_experts(const pod_layer_matmul *matmul)
{
    return matmul->role == POD_ROLE_EXPERTS_UP || matmul->role == POD_ROLE_EXPERTS_DOWN;
}

int64_t pod_layer_projection_width(const pod_layer *layer, int64_t tensor)
{
    int64_t width = 0;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        width += m->role == POD_ROLE_PROJECTION ? pod_layer_matmul_n(m, tensor) * m->count : 0;
    }
    return width;
}

int64_t pod_layer_attention_weights(const pod_layer *layer)
{
    int64_t weights = 0;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        weights += m->part == POD_PART_ATTENTION ? m->k * m->n * m->count : 0;
    }
    return weights;
}

/** Of the further embedding of a layer: a gate, a projection back, and its share of the first one. */
static int64_t layer_embedding_weights(const pod_model *model)
{
    return 3 * model->d_model * model->layer_embedding;
}

int64_t pod_layer_weights(const pod_model *model, const pod_layer *layer, bool active)
{
    int64_t weights = layer_embedding_weights(model);
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const int64_t of = active ? layer->top_k : layer->experts;
        weights += m->k * m->n * m->count * (pod_layer_matmul_of_experts(m) ? of : 1);
    }
    return weights;
}

double pod_layer_delta_flops(const pod_layer *layer)
{
    const double chunk = (double)layer->delta_chunk;
    const double keys = (double)layer->qk_dim;
    const double values = (double)layer->v_dim;
    /* of a token and head: K·Kᵀ, Q·Kᵀ and its product with the values, the triangular system; Q·S, K·S, Kᵀ·V */
    return (double)layer->heads
           * (2 * chunk * (2 * keys + values) + chunk * (keys + values) + 6 * keys * values);
}

int64_t pod_layer_biases(const pod_model *model, const pod_layer *layer)
{
    int64_t biases = 0;
    for (int i = 0; i < layer->nmatmuls && model->biases > 0; i++) {
        biases += layer->matmul[i].n * layer->matmul[i].count;
    }
    return biases;
}

int64_t pod_model_head(const pod_model *model)
{
    const int64_t d = model->d_model;
    const int64_t biases =
        model->biases > 0 ? model->vocab + (model->head_dense > 0 ? 3 * d : 0) : 0;
    return model->vocab * d + (model->head_dense > 0 ? d * d : 0) + biases;
}

int64_t pod_model_embeddings(const pod_model *model)
{
    const int64_t patch = POD_PICTURE_CHANNELS * model->patch * model->patch;
    const int64_t table = model->tied > 0 ? 0 : model->vocab;
    const int64_t one = (model->positions + (model->patch > 0 ? patch : table)) * model->d_model;
    return one + model->layers * model->vocab * model->layer_embedding;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t multiple = a;
    while (multiple % b != 0) {
        multiple += a;
    }
    return multiple;
}

pod_layer_pattern pod_model_pattern(const pod_model *model)
{
    const bool mixed = model->window > 0 || model->delta_v_heads > 0;
    const int64_t global = mixed && model->global_every > 0 ? model->global_every : 1;
    const int64_t moe = model->experts > 0 && model->moe_every > 0 ? model->moe_every : 1;
    return (pod_layer_pattern){.periodic = model->kv_shared_layers == 0 && model->wide_layers == 0,
                               .prefix = model->experts > 0 ? model->dense_layers : 0,
                               .period = common_multiple(global, moe)};
}
