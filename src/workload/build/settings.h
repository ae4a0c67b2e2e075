/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/settings.h  How a transformer's step is carried out, beside what is kept: kernels, context
 *  parallelism, experts, states of the optimizer.
 *
 *  Model: all zero is what `podsim step` does when nothing is said. Recipes (models/recipe.h) and options set them.
 *
 *  Ownership: plain value. Threads: none. */
#pragma once

#include "chip/attention.h"
#include "chip/matmul.h"

#include <stdbool.h>
#include <stdint.h>

/** How tokens of a sequence that lie on several chips (mesh axis sequence) come to see each other:
 *
 *      all-gather  keys and values of all tokens, once forward and once for the whole backward pass
 *      ring        keys and values travel round the axis, each step under the scores of the block before
 *      ulysses     all-to-alls of heads against tokens, before attention and after it */
typedef enum pod_context_parallel {
    POD_CONTEXT_ALL_GATHER,
    POD_CONTEXT_RING,
    POD_CONTEXT_ULYSSES
} pod_context_parallel;

/** Blocks of attention's kernels; all 0 = the kernel's own. */
typedef struct pod_attention_blocks {
    pod_attention_block forward;
    pod_attention_block backward;
} pod_attention_blocks;

/** A tile of an expert's matmul: rows, and columns of the model's and of the expert's width. 0 = chosen. */
typedef struct pod_expert_tile {
    int64_t rows;
    int64_t embed;
    int64_t mlp;
} pod_expert_tile;

/** Numerics of quantised matmuls: fixed scales, or from each array's largest value. */
typedef enum pod_quantization {
    POD_QUANTIZATION_DEFAULT, /**< dynamic for int8, static for fp8 */
    POD_QUANTIZATION_STATIC,
    POD_QUANTIZATION_DYNAMIC
} pod_quantization;

/** A circular pipeline (workload/build/circular.h) instead of 1F1B. */
typedef struct pod_circular {
    bool on;
    int32_t layers;  /**< of a visit to a stage; 0: as repeats say */
    int32_t repeats; /**< how often a microbatch goes round the stages; 0: as layers say */
    /** a stage's output is used two passes later, so that messages overlap with a pass */
    bool delayed;
    bool gather_once;      /**< weights are gathered once for all passes */
    bool gather_by_rounds; /**< or once for all microbatches of a round, forward and backward */
} pod_circular;

typedef struct pod_step_settings {
    pod_circular circular;
    pod_attention_blocks blocks;       /**< of attention that sees all keys */
    pod_attention_blocks local_blocks; /**< of layers with a window; 0 = the same */
    bool split_backward;               /**< two backward kernels instead of one */
    bool serial_attention;             /**< JAX's splash kernel (chip/attention.h) */
    bool megacore_backward; /**< attention's backward kernels run on all cores of a device */
    bool max_estimate;      /**< the maximum of scores is estimated before */
    pod_context_parallel context;
    /** each chip has one piece of a sequence, and the last one's work is largest; else a front
     * and a back piece, and all do the same */
    bool context_unbalanced;
    /** pieces of tokens whose logits exist at once; 0 = 1. More: the head runs forward again in
     * the backward pass */
    int32_t vocab_tiles;
    /** rows of the embedding are read, not made by a product with a 0-1 matrix */
    bool embed_by_rows;
    bool narrow_mu;      /**< adam's first moment in bf16 */
    bool narrow_weights; /**< weights stored in bf16 */
    bool megablox;       /**< experts' matmuls are JAX's kernel, not tokamax's (chip/grouped.h) */
    pod_expert_tile expert_tile[2][3]; /**< of up and gate, of down; by pod_grouped_op */
    /** weights over two axes of fsdp are gathered over one after the other: experts', others */
    bool two_stage_experts;
    bool two_stage_dense;
    bool narrow_weight_sum; /**< experts' results are summed in bf16 */
    /** tokens choose experts by their scores; else at random, as benchmarks do */
    bool real_routing;
    double expert_balance; /**< rows of the busiest chip of expert over the mean; 0 = 1 */
    pod_quantization quantize_weights;
    pod_quantization quantize_activations; /**< and gradients */
    bool narrow_gathers;                   /**< quantised weights are gathered as such */
    bool dcn_after; /**< gradients are summed over slices after the backward pass, not beside it */
    unsigned
        norm_axes; /**< of resnets: 1 << POD_MESH_…: over which the sums of norms go; 0 = a chip's own pictures */
    bool full_scores; /**< MFU counts scores that the mask hides, too */
} pod_step_settings;
