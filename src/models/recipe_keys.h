/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/recipe_keys.h  Private to models/recipe: MaxText's keys, where their values go, and what
 *  values they may have.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/recipe_figures.h"
#include "models/settings.h"

/** What describes a model that isn't named; the defaults are base.yml's. */
typedef struct pod_recipe_sizes {
    int64_t scale; /**< global_parameter_scale */
    int64_t emb_dim;
    int64_t query_heads;
    int64_t kv_heads;
    int64_t mlp_dim;
    int64_t layers;
    int64_t head_dim;
    int64_t vocab;
    int64_t mlp_matrices;
    int64_t tied;
    int64_t experts;
    int64_t top_k;
    int64_t moe_mlp_dim; /**< -1: as mlp_dim */
    int64_t shared_experts;
    int64_t dense_layers;
    int64_t moe_every;
    int64_t latent; /**< 1: attention_type is mla */
    int64_t q_lora;
    int64_t kv_lora;
    int64_t nope_dim;
    int64_t rope_dim;
    int64_t v_dim;
    int64_t window;
    int64_t qk_norms;
    int64_t post_attention_norm;
    int64_t post_mlp_norm;
    bool given; /**< a key that describes the model is there; the last member */
} pod_recipe_sizes;

/** All that keys write to. */
typedef struct pod_recipe_draft {
    pod_recipe recipe;
    pod_recipe_sizes sizes;
    int64_t matmul_dtype;     /**< a pod_dtype */
    int64_t context_strategy; /**< a pod_recipe_context */
    int64_t tokamax_splash;
    const char *model_name; /**< borrowed from the settings, or NULL */
} pod_recipe_draft;

/** The defaults of base.yml; blocks of layers with a window are 0: not said. */
pod_recipe_draft pod_recipe_draft_default(void);

/** Whether a key describes the model. */
bool pod_recipe_key_is_size(const char *key);

/** Take the value of a setting, and note its fate.
 *  @return POD_E_USAGE with the key */
pod_status pod_recipe_key_read(pod_setting *setting, pod_recipe_draft *draft, pod_error *err);
