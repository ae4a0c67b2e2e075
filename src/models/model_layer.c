/* SPDX-License-Identifier: Apache-2.0 */
#include "models/model_layer.h"

static bool layer_is_global(const pod_model *model, int64_t index)
{
    return model->window == 0
           || (model->global_every > 0 && (index + 1) % model->global_every == 0);
}

static bool layer_has_experts(const pod_model *model, int64_t index)
{
    const int64_t every = model->moe_every > 0 ? model->moe_every : 1;
    return model->experts > 0 && index >= model->dense_layers && (index + 1) % every == 0;
}

static void project(pod_layer *layer, int64_t k, int64_t n, int64_t count, int64_t heads)
{
    if (count > 0) {
        layer->projection[layer->nprojections++] =
            (pod_layer_projection){.k = k, .n = n, .count = count, .heads = (int)heads};
    }
}

/** Latent attention: one latent for keys and values, whose rotated part all heads share. */
static void latent_attention(const pod_model *model, pod_layer *layer)
{
    const int64_t q = layer->heads * (model->head_dim + model->rope_dim);
    const int64_t kv = layer->heads * (model->head_dim + layer->v_dim);
    layer->qk_dim = model->head_dim + model->rope_dim;
    layer->kv_width = model->kv_lora + model->rope_dim;
    if (model->q_lora > 0) {
        project(layer, model->d_model, model->q_lora, 1, 0);
        project(layer, model->q_lora, q, 1, layer->heads);
    } else {
        project(layer, model->d_model, q, 1, layer->heads);
    }
    project(layer, model->d_model, layer->kv_width, 1, 0);
    project(layer, model->kv_lora, kv, 1, layer->heads);
}

static void attention(const pod_model *model, int64_t index, pod_layer *layer)
{
    const bool global = layer_is_global(model, index);
    const bool own_kv = index < model->layers - model->kv_shared_layers;
    const int64_t dim =
        global && model->global_head_dim > 0 ? model->global_head_dim : model->head_dim;
    layer->heads = model->heads;
    layer->kv_heads =
        global && model->global_kv_heads > 0 ? model->global_kv_heads : model->kv_heads;
    layer->window = global ? 0 : model->window;
    layer->qk_dim = dim;
    layer->v_dim = model->v_head_dim > 0 ? model->v_head_dim : dim;
    if (model->kv_lora > 0) {
        latent_attention(model, layer);
        return;
    }
    const int64_t matrices = global && model->shared_kv ? 1 : 2;
    layer->kv_width = own_kv ? 2 * layer->kv_heads * dim : 0;
    project(layer, model->d_model, layer->heads * dim, 1, layer->heads);
    project(layer, model->d_model, layer->kv_heads * dim, own_kv ? matrices : 0, layer->kv_heads);
}

pod_layer pod_model_layer(const pod_model *model, int64_t index)
{
    pod_layer layer = {.heads = 0};
    attention(model, index, &layer);
    if (layer_has_experts(model, index)) {
        layer.experts = model->experts;
        layer.top_k = model->top_k;
        layer.moe_d_ff = model->moe_d_ff;
        layer.d_ff = model->shared_d_ff;
    } else {
        layer.d_ff = model->d_ff * (index >= model->layers - model->wide_layers ? 2 : 1);
    }
    return layer;
}

int64_t pod_layer_attention_weights(const pod_model *model, const pod_layer *layer)
{
    int64_t weights = layer->heads * layer->v_dim * model->d_model;
    for (int i = 0; i < layer->nprojections; i++) {
        const pod_layer_projection *p = &layer->projection[i];
        weights += p->k * p->n * p->count;
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
    const int64_t experts = active ? layer->top_k : layer->experts;
    const int64_t width = layer->d_ff + experts * layer->moe_d_ff;
    return pod_layer_attention_weights(model, layer) + model->mlp_matrices * model->d_model * width
           + model->d_model * layer->experts + layer_embedding_weights(model);
}

int64_t pod_model_embeddings(const pod_model *model)
{
    const int64_t one = model->tied ? 0 : model->vocab * model->d_model;
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
    const int64_t global = model->window > 0 && model->global_every > 0 ? model->global_every : 1;
    const int64_t moe = model->experts > 0 && model->moe_every > 0 ? model->moe_every : 1;
    return (pod_layer_pattern){.periodic = model->kv_shared_layers == 0 && model->wide_layers == 0,
                               .prefix = model->experts > 0 ? model->dense_layers : 0,
                               .period = common_multiple(global, moe)};
}
