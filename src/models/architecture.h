/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/architecture.h  The sizes of a model, as models/model.h reads them.
 *
 *  Ownership: plain value. Threads: none. */
#pragma once

#include <stdint.h>

typedef enum pod_model_kind {
    POD_MODEL_MATMUL,
    POD_MODEL_MLP,
    POD_MODEL_TRANSFORMER,
    POD_MODEL_RESNET, /**< models/resnet.h */
    POD_MODEL_CONV    /**< a convolution: m pictures, d_model channels in, d_ff out */
} pod_model_kind;

enum { POD_MODEL_NAME_MAX = 768 };

typedef struct pod_model {
    pod_model_kind kind;
    char name[POD_MODEL_NAME_MAX]; /**< as the user wrote it */
    int64_t layers;                /**< 1 for matmul */
    int64_t d_model;               /**< width of the input: K for matmul */
    int64_t d_ff;                  /**< width of the hidden layer: N for matmul */
    int64_t m;                     /**< rows of matmul, pictures of conv: its batch; else 0 */
    /* transformers */
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t vocab;
    int64_t mlp_matrices; /**< 2 (up, down) or 3 (gate, up, down) */
    int64_t tied;         /**< 1: the head is the embedding transposed */
    int64_t positions;    /**< trainable positions, d_model each; 0 = none */
    int64_t window;       /**< keys that a local layer sees; 0 = all layers are global */
    int64_t chunked; /**< 1: local layers see their own of consecutive windows, not the last keys */
    int64_t global_every;    /**< with a window: every n-th layer is global; 0 = none is */
    int64_t global_head_dim; /**< of global layers; 0 = as the others */
    int64_t global_kv_heads; /**< of global layers; 0 = as the others */
    int64_t experts;         /**< of a mixture-of-experts layer; 0 = all layers are dense */
    int64_t top_k;           /**< experts of a token */
    int64_t moe_d_ff;        /**< width of an expert */
    /** columns that attention gives and experts read and give, which another matmul brings to
     * d_model; 0 = d_model */
    int64_t expert_d_model;
    int64_t shared_d_ff;      /**< width of the experts that see every token, together */
    int64_t dense_layers;     /**< first layers without experts */
    int64_t moe_every;        /**< every n-th layer has experts; 0 = each */
    int64_t capacity_percent; /**< of an expert's fair share of tokens, what exceeds it is dropped;
                                 0 = nothing is dropped */
    int64_t q_lora;           /**< rank of the queries of latent attention; 0 = not compressed */
    int64_t kv_lora;          /**< rank of keys and values; 0 = no latent attention */
    int64_t rope_dim;         /**< with latent attention: rotated part, besides head_dim */
    int64_t v_head_dim;       /**< 0 = head_dim */
    int64_t index_top_k; /**< keys that a query sees, the best by an indexer's scores; 0 = all */
    int64_t index_heads; /**< of the indexer */
    int64_t index_dim;   /**< of its heads */
    int64_t shared_kv;   /**< 1: global layers use their keys as values */
    int64_t kv_shared_layers; /**< last layers that use the keys and values of earlier ones */
    int64_t wide_layers;      /**< last layers with twice d_ff */
    int64_t qk_norms;         /**< 1: norms of queries and keys, too */
    /** 1: norms after attention and MLP, too; 2: after the MLP; 3: after attention */
    int64_t post_norms;
    int64_t gated; /**< 1: attention's output is gated by a second half of the queries */
    /** of the gated delta rule, which all but every global_every-th layer has */
    int64_t delta_k_heads;
    int64_t delta_v_heads; /**< 0 = all layers have attention */
    int64_t delta_k_dim;
    int64_t delta_v_dim;
    int64_t delta_conv;      /**< tokens of the convolution before it */
    int64_t delta_chunk;     /**< tokens handled at once */
    int64_t layer_embedding; /**< width of a further embedding in each layer; 0 = none */
    int64_t parallel; /**< 1: attention and MLP have one norm and are added up, side by side */
    int64_t encoder;  /**< 1: all tokens of a sequence see each other */
    int64_t masked;   /**< tokens of a sequence that the head reads; 0 = all */
    int64_t
        head_dense; /**< 1: a d_model x d_model product, its function and a norm before the head */
    int64_t biases; /**< 1: matmuls, norms and the head have biases */
    int64_t image;  /**< side of a picture, of resnets and of transformers that read pictures */
    /** of transformers that read pictures: side of a patch. A token is a patch, one more the class; vocab counts
     * classes */
    int64_t patch;
    /* convolutions */
    int64_t conv_h; /**< of a picture */
    int64_t conv_w;
    int64_t conv_kh; /**< taps */
    int64_t conv_kw;
    int64_t conv_stride;
    /* resnets */
    int64_t blocks[4]; /**< residual blocks of each stage */
} pod_model;
