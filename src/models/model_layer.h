/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/model_layer.h  What one layer of a transformer consists of.
 *
 *  Model: a layer is attention and an MLP, each after a norm and beside a residual path.
 *
 *      attention   projections of the input to queries, keys and values, scores of each query with the
 *                  keys it sees, and a projection back
 *      latent attention (DeepSeek)  queries and keys with values each through a narrow matrix first; with an
 *                  indexer a query sees the keys of its best scores only
 *      gated delta rule (Qwen3-Next)  in place of attention: a state of qk_dim x v_dim a head, chunk by chunk
 *      MLP         up (and gate), elementwise, down; or a router, top_k of `experts` such MLPs for each
 *                  token, and one that all tokens pass
 *
 *  Its matmuls are one table (pod_layer.matmul): the ops of a step, inference, recomputation, counts of
 *  weights and rooflines are read from it. In the order in which a token passes them, for llama3.1-8b:
 *
 *      name     part       k      n      count  cut over tensor  result kept as
 *      query    attention  4096   4096   1      n, 32 heads      query
 *      key      attention  4096   1024   1      n, 8 heads       key
 *      value    attention  4096   1024   1      n, 8 heads       value
 *      out      attention  4096   4096   1      k, 32 heads      out
 *      in       in         4096   14336  2      n                mlpwi
 *      down     out        14336  4096   1      k                mlpwo
 *
 *  Layers follow a pattern: local and global attention alternate, dense layers come first, experts in
 *  every n-th. After `prefix` layers it repeats every `period`, if `periodic` at all.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/architecture.h"

#include <stdbool.h>

/** What of a layer may be kept from forward to backward (workload/build/remat.h). */
typedef enum pod_keep {
    POD_KEEP_INPUT,
    POD_KEEP_QUERY,
    POD_KEEP_KEY,
    POD_KEEP_VALUE,
    POD_KEEP_CONTEXT,
    POD_KEEP_OUT,
    POD_KEEP_MLPWI,
    POD_KEEP_MLPWO,
    POD_KEEP_NORMS,
    POD_KEEP_SCORES,
    POD_KEEP_COUNT
} pod_keep;

/** Weights of a layer that are gathered together. */
typedef enum pod_layer_part {
    POD_PART_ATTENTION,
    POD_PART_IN, /**< before the activation function of the MLP: up and gate; the router */
    POD_PART_OUT,
    POD_PART_EXPERTS_GATE,
    POD_PART_EXPERTS_IN,
    POD_PART_EXPERTS_OUT,
    POD_LAYER_PARTS
} pod_layer_part;

typedef enum pod_layer_role {
    POD_ROLE_PROJECTION, /**< of queries, keys, values */
    POD_ROLE_OUT,        /**< of attention */
    POD_ROLE_UP,
    POD_ROLE_ROUTER,
    POD_ROLE_EXPERTS_UP,
    POD_ROLE_EXPERTS_DOWN,
    POD_ROLE_DOWN,
    POD_ROLE_WIDEN /**< from what experts give to d_model, where that is narrower */
} pod_layer_role;

enum { POD_LAYER_MATMULS_MAX = 14 };

/** `count` matmuls [rows, k] · [k, n]; of experts `count` for each of them. */
typedef struct pod_layer_matmul {
    const char *name; /**< "query", static */
    pod_layer_role role;
    pod_layer_part part;
    int64_t k;
    int64_t n;
    int64_t count;
    int64_t k_units; /**< tensor cuts k in so many units (heads, or all of k); 0 = it doesn't */
    int64_t n_units; /**< likewise n */
    unsigned kept;   /**< bits 1 << POD_KEEP_…: all of them kept, the result is at hand */
} pod_layer_matmul;

typedef struct pod_layer {
    int64_t heads;
    int64_t kv_heads;
    int64_t qk_dim;      /**< of a query or key of one head */
    int64_t v_dim;       /**< of a value of one head */
    int64_t kv_width;    /**< elements a token adds to a KV cache */
    int64_t window;      /**< 0 = sees all keys */
    bool encoder;        /**< tokens see those after them, too */
    bool chunked;        /**< the window doesn't slide: a token sees those before it in its own */
    int64_t index_heads; /**< of the scorer that chooses `window` keys for each query; 0 = none */
    int64_t index_dim;
    /** tokens of a chunk of the gated delta rule, in place of attention; 0 = attention. heads,
     * v_dim: of values; kv_heads, qk_dim: of queries and keys */
    int64_t delta_chunk;
    int64_t delta_conv;
    int64_t expert_d_model; /**< columns that experts read and give: d_model, or fewer */
    int64_t d_ff;           /**< of the dense MLP, or of the shared experts; 0 = none */
    int64_t experts;        /**< 0 = none */
    int64_t top_k;
    int64_t moe_d_ff;
    int nmatmuls;
    pod_layer_matmul matmul[POD_LAYER_MATMULS_MAX];
} pod_layer;

/** Layer number `index` of a transformer. */
pod_layer pod_model_layer(const pod_model *model, int64_t index);

/** The layer whose keys and values a layer reads: itself, or of the last layers that share them the last one before
 *  these that sees as far; -1: there is none. */
int64_t pod_model_kv_source(const pod_model *model, int64_t index);

/** The first matmul of a role, or NULL. */
const pod_layer_matmul *pod_layer_find(const pod_layer *layer, pod_layer_role role);
/** Sizes of a matmul on one of `tensor` chips; units are rounded up. */
int64_t pod_layer_matmul_k(const pod_layer_matmul *matmul, int64_t tensor);
int64_t pod_layer_matmul_n(const pod_layer_matmul *matmul, int64_t tensor);
/** Whether n is its longer side; of equal ones that which tensor cuts. */
static inline bool pod_layer_matmul_is_wide(const pod_layer_matmul *matmul)
{
    return matmul->n > matmul->k || (matmul->n == matmul->k && matmul->k_units == 0);
}
/** Whether a token passes only top_k of the layer's experts. */
bool pod_layer_matmul_of_experts(const pod_layer_matmul *matmul);
/** Columns of the projections to queries, keys and values on one of `tensor` chips, `count` included. */
int64_t pod_layer_projection_width(const pod_layer *layer, int64_t tensor);

/** Weights of the projections before attention, and of the one after it. */
int64_t pod_layer_attention_weights(const pod_layer *layer);
/** Weights of a layer; `active`: those that a token passes. */
int64_t pod_layer_weights(const pod_model *model, const pod_layer *layer, bool active);
/** FLOPs of the gated delta rule, of a token forward; linear in the length. */
double pod_layer_delta_flops(const pod_layer *layer);
/** Biases of its matmuls, 0 where there are none. */
int64_t pod_layer_biases(const pod_model *model, const pod_layer *layer);
/** Weights of the embeddings, or of the patches', and of positions: all that is before the first layer. */
int64_t pod_model_embeddings(const pod_model *model);
/** Weights of the head, and of what is before it. */
int64_t pod_model_head(const pod_model *model);

typedef struct pod_layer_pattern {
    bool periodic;
    int64_t prefix;
    int64_t period;
} pod_layer_pattern;

pod_layer_pattern pod_model_pattern(const pod_model *model);
