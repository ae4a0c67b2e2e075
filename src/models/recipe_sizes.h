/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/recipe_sizes.h  MaxText's keys that describe a model, as figures; models/decoder.h reads them.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** What describes a model that isn't named; the defaults are base.yml's. */
typedef struct pod_recipe_sizes {
    int64_t decoder; /**< number of the decoder_block (models/decoder.h) */
    int64_t scale;   /**< global_parameter_scale */
    int64_t emb_dim;
    int64_t query_heads;
    int64_t kv_heads;
    int64_t mlp_dim;
    int64_t layers;
    int64_t head_dim;
    int64_t vocab;
    int64_t mlp_matrices;
    int64_t tied;
    int64_t positions; /**< trainable ones; -1 = none */
    int64_t experts;
    int64_t top_k;
    int64_t moe_mlp_dim; /**< -1: as mlp_dim */
    int64_t shared_experts;
    int64_t dense_layers;
    int64_t moe_every;
    int64_t attention_out; /**< -1: as emb_dim */
    int64_t expert_in;     /**< -1: as emb_dim */
    int64_t latent;        /**< 1: attention_type is mla */
    int64_t q_lora;
    int64_t kv_lora;
    int64_t nope_dim;
    int64_t rope_dim;
    int64_t v_dim;
    int64_t indexer;
    int64_t indexer_top_k;
    int64_t indexer_heads;
    int64_t indexer_dim;
    int64_t window;
    /** 1: of every layer of a block whose layers are the same; no key of MaxText's says it */
    int64_t all_local;
    int64_t chunk;
    int64_t nope_interval; /**< -1: all layers see a chunk */
    int64_t cycle;         /**< inhomogeneous_layer_cycle_interval */
    int64_t global_head_dim;
    int64_t global_kv_heads;
    int64_t shared_kv;
    int64_t kv_shared_layers;
    int64_t double_wide;
    int64_t layer_embedding;
    int64_t delta_k_heads;
    int64_t delta_v_heads;
    int64_t delta_k_dim;
    int64_t delta_v_dim;
    int64_t delta_conv;
    int64_t delta_chunk;
    int64_t qk_norms;
    int64_t post_attention_norm;
    int64_t post_mlp_norm;
    bool given;       /**< a key that describes the model is there */
    bool named;       /**< model_name is there, too */
    bool short_cycle; /**< and is gemma4-e2b */
} pod_recipe_sizes;
