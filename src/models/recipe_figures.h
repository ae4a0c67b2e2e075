/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/recipe_figures.h  A MaxText run as plain figures; models/recipe.h reads them.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "base/dtype.h"
#include "models/model.h"

/** In the order of MaxText's mesh_axes, slowest first. */
typedef enum pod_recipe_axis {
    POD_RECIPE_DILOCO,
    POD_RECIPE_DATA,
    POD_RECIPE_PIPELINE,
    POD_RECIPE_FSDP,
    POD_RECIPE_FSDP_TRANSPOSE,
    POD_RECIPE_SEQUENCE,
    POD_RECIPE_CONTEXT,
    POD_RECIPE_CONTEXT_ULYSSES,
    POD_RECIPE_CONTEXT_AUTOREGRESSIVE,
    POD_RECIPE_TENSOR,
    POD_RECIPE_TENSOR_TRANSPOSE,
    POD_RECIPE_TENSOR_SEQUENCE,
    POD_RECIPE_EXPERT,
    POD_RECIPE_AUTOREGRESSIVE,
    POD_RECIPE_AXES
} pod_recipe_axis;

enum { POD_RECIPE_REST = -1, POD_RECIPE_MESH_TEXT_MAX = 160, POD_RECIPE_REMAT_TEXT_MAX = 256 };

/** Where remat_policy=custom has a tensor wait for the backward pass. */
typedef enum pod_recipe_place {
    POD_RECIPE_REMAT, /**< nowhere: it is computed again */
    POD_RECIPE_DEVICE,
    POD_RECIPE_OFFLOAD
} pod_recipe_place;

/** Tensors of a layer. */
typedef enum pod_recipe_tensor {
    POD_RECIPE_INPUT,
    POD_RECIPE_QUERY,
    POD_RECIPE_KEY,
    POD_RECIPE_VALUE,
    POD_RECIPE_QKV,
    POD_RECIPE_ATTENTION_CONTEXT,
    POD_RECIPE_OUT,
    POD_RECIPE_MLPWI, /**< with its parts: both mlpwi_0 and mlpwi_1 are needed to have it */
    POD_RECIPE_MLPWI_0,
    POD_RECIPE_MLPWI_1,
    POD_RECIPE_MLPWO,
    POD_RECIPE_MOE_MLPWI_0,
    POD_RECIPE_MOE_MLPWI_1,
    POD_RECIPE_MOE_MLPWO,
    POD_RECIPE_TENSORS
} pod_recipe_tensor;

/** Blocks of the attention kernel, in queries and keys: forward, and of the backward kernels. */
typedef struct pod_recipe_blocks {
    int64_t q;
    int64_t kv;
    int64_t kv_compute;
    int64_t q_dkv;
    int64_t kv_dkv;
    int64_t kv_dkv_compute;
    int64_t q_dq;
    int64_t kv_dq;
    int64_t fused; /**< 1: one backward kernel; 0: one for keys and values, one for queries */
} pod_recipe_blocks;

typedef enum pod_recipe_optimizer {
    POD_RECIPE_ADAM,
    POD_RECIPE_SGD,
    POD_RECIPE_MUON
} pod_recipe_optimizer;

typedef enum pod_recipe_context {
    POD_RECIPE_ALL_GATHER,
    POD_RECIPE_RING,
    POD_RECIPE_ULYSSES
} pod_recipe_context;

enum { POD_RECIPE_WI, POD_RECIPE_WO, POD_RECIPE_WEIGHTS }; /**< up with gate; down */
enum { POD_RECIPE_FORWARD, POD_RECIPE_DLHS, POD_RECIPE_DRHS, POD_RECIPE_PRODUCTS };

/** A tile of a grouped matmul, by the names of MaxText's keys. */
typedef struct pod_recipe_tile {
    int64_t batch_seq;
    int64_t embed;
    int64_t mlp;
} pod_recipe_tile;

/** Numerics of a matmul's operands. */
typedef enum pod_recipe_scaling {
    POD_RECIPE_DYNAMIC, /**< absmax: scales from each tensor */
    POD_RECIPE_STATIC   /**< fixed scales */
} pod_recipe_scaling;

typedef struct pod_recipe {
    char model[POD_MODEL_NAME_MAX]; /**< a name of models.csv or transformer:…; "" = not named */
    double per_device_batch;
    int64_t seq;
    int64_t ici[POD_RECIPE_AXES]; /**< sizes inside a slice, one may be POD_RECIPE_REST */
    int64_t dcn[POD_RECIPE_AXES]; /**< over slices, likewise */
    int64_t split_axes;

    pod_dtype matmul_dtype; /**< of `quantization`, or bf16 */
    pod_dtype dtype;        /**< of activations */
    pod_dtype weight_dtype;
    pod_dtype mu_dtype;   /**< first moment */
    pod_dtype grad_dtype; /**< gradients when they are added up */
    pod_recipe_scaling weight_scaling;
    pod_recipe_scaling activation_scaling;
    pod_recipe_scaling gradient_scaling;

    const char *remat_policy;          /**< static */
    int64_t place[POD_RECIPE_TENSORS]; /**< pod_recipe_place, of custom */
    /** 1: qkv_proj is one matmul, and there are no query_proj, key_proj, value_proj */
    int64_t fused_qkv;

    int64_t plain_attention; /**< 1: scores in HBM */
    pod_recipe_blocks blocks;
    pod_recipe_blocks local_blocks; /**< of layers with a window */
    int64_t tokamax_splash;         /**< 0: JAX's splash kernel */
    int64_t megacore_backward; /**< 1: attention's backward kernels run on all cores of a device */
    int64_t max_estimate;      /**< 1: no running maximum */
    int64_t context_balance;
    pod_recipe_context context_strategy;

    int64_t megablox;
    int64_t sparse_matmul; /**< 1: grouped matmuls without dropping */
    int64_t tokamax_gmm;
    double capacity_factor; /**< -1: nothing is dropped */
    pod_recipe_tile tile[POD_RECIPE_WEIGHTS][POD_RECIPE_PRODUCTS];
    int64_t random_routing;
    int64_t f32_weight_sum;
    int64_t shard_experts_on_fsdp;
    int64_t
        two_stage_experts; /**< weights over two axes of fsdp are gathered over one after the other */
    int64_t two_stage_dense;

    int64_t vocab_tiling;
    /** 0: rows of the embedding are gathered, not multiplied by a 0-1 matrix */
    int64_t iota_embed;
    int64_t gradient_accumulation;
    int64_t pipeline_microbatches; /**< -1: as many as stages */
    int64_t pipeline_repeats;      /**< -1: as layers and stages say */
    int64_t pipeline_layers;       /**< of a visit to a stage */
    int64_t pipeline_delay;        /**< 1: activations are forwarded beside the next pass */
    int64_t pipeline_gather_once;  /**< 1: weights are gathered once for all passes */
    int64_t pipeline_gather_by_rounds;
    int64_t optimizer;         /**< POD_RECIPE_ADAM, … */
    int64_t collective_matmul; /**< xla_flags ask for it */
    int64_t offloads_gathers;  /**< likewise: gathers run on the SparseCores, two ahead */
    int64_t p_state;           /**< likewise: of the clock, 0 to 7; -1: the chip's own */
} pod_recipe;
