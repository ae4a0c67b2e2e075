/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/model_layer.h  What one layer of a transformer consists of.
 *
 *  Model: a layer is attention and an MLP, each behind a norm and beside a residual path.
 *
 *      attention   projections of the input to queries, keys and values, scores of each query with the
 *                  keys it sees, and a projection back
 *      latent attention (DeepSeek)  queries and keys with values each through a narrow matrix first
 *      MLP         up (and gate), elementwise, down; or a router, top_k of `experts` such MLPs for each
 *                  token, and one that all tokens pass
 *
 *  Layers follow a pattern: local and global attention by turns, dense layers first, experts in every
 *  n-th. After `prefix` layers it repeats every `period`, if `periodic` at all.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/model.h"

#include <stdbool.h>

enum { POD_LAYER_PROJECTIONS_MAX = 4 };

/** `count` matrices [k, n]. */
typedef struct pod_layer_projection {
    int64_t k;
    int64_t n;
    int64_t count;
    int heads; /**< heads that its columns belong to, 0 = none: tensor can't cut it */
} pod_layer_projection;

typedef struct pod_layer {
    int64_t heads;
    int64_t kv_heads;
    int64_t qk_dim;   /**< of a query or key of one head */
    int64_t v_dim;    /**< of a value of one head */
    int64_t kv_width; /**< elements a token adds to a KV cache */
    int64_t window;   /**< 0 = sees all keys */
    int64_t d_ff;     /**< of the dense MLP, or of the shared experts; 0 = none */
    int64_t experts;  /**< 0 = none */
    int64_t top_k;
    int64_t moe_d_ff;
    int nprojections;
    pod_layer_projection projection[POD_LAYER_PROJECTIONS_MAX];
} pod_layer;

/** Layer number `index` of a transformer. */
pod_layer pod_model_layer(const pod_model *model, int64_t index);

/** Weights of the projections before attention, and of the one behind it. */
int64_t pod_layer_attention_weights(const pod_model *model, const pod_layer *layer);
/** Weights of a layer; `active`: those that a token passes. */
int64_t pod_layer_weights(const pod_model *model, const pod_layer *layer, bool active);
/** Weights of the embeddings that aren't multiplied with. */
int64_t pod_model_embeddings(const pod_model *model);

typedef struct pod_layer_pattern {
    bool periodic;
    int64_t prefix;
    int64_t period;
} pod_layer_pattern;

pod_layer_pattern pod_model_pattern(const pod_model *model);
