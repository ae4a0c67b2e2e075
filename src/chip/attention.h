/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/attention.h  How long attention takes on one chip, done block by block in VMEM (flash attention).
 *
 *  Model: a kernel is a grid of blocks. Scores of queries with keys are never written to HBM: of one head, blocks of
 *  queries meet blocks of keys; blocks that the mask (causal, window, chunk) leaves empty are skipped, those that
 *  its edge cuts are *masked*, the others are *full*. A block is computed in pieces of at most 512 keys. Of a piece
 *  of q x c scores
 *
 *      mxu   = q·c · 2 · (products_qk · pad(qk_dim) + products_v · pad(v_dim)) / (peak of a device · sustained)
 *      vpu   = (q·c · (operations + 3 if masked) + elements that are added to · rescale) / (VPU rate · efficiency)
 *      block = pieces · max(mxu, vpu) + min(mxu, vpu) + block step
 *      time  = √((sequences · heads · Σ blocks)² + (bytes / HBM rate)²) + copies
 *
 *  pad: to the width of the arrays, so heads of 128 leave half of a 256-wide array idle. The exponential has a unit of
 *  its own and the scale is multiplied into the queries. Every piece rescales the running output (q · v_dim) by its new
 *  maximum, not so with an estimate of the maximum; backward it adds to dQ (q · qk_dim) and to dK and dV (c · (qk_dim +
 *  v_dim)). Copies go on beside the blocks, but where a head ends, its output leaves and the next one's inputs come: so
 *  neither hides the other whole.
 *
 *      kernel     products (qk, v)                         operations            HBM passes
 *      forward    1, 1   Q·Kᵀ; P·V                         attention_fwd_ops     1
 *      fused      3, 2   Q·Kᵀ, dQ, dK; dP, dV              attention_bwd_ops     4
 *      dq         2, 1   Q·Kᵀ, dQ; dP                      attention_bwd_ops - 3 2      (P isn't rounded for dV)
 *      dkv        2, 2   Q·Kᵀ, dK; dP, dV                  attention_bwd_ops - 1 2
 *
 *  Backward is the fused kernel, or the last two one after another (split). An HBM pass is Q, K, V and the output once.
 *  Everything is per JAX device: of a chip with two devices each has half of the heads of all sequences, half
 *  the HBM rate and one core. On a device of two cores both share the blocks of a kernel, and a block step costs
 *  half. Backward kernels sum dK and dV over queries and heads, so cores share whole sequences (JAX makes a mapped
 *  dimension of a kernel parallel): of one sequence one core works, of three the busier core does two. With megacore
 *  (MaxText's sa_bwd_dkv_megacore) the cores share the heads of keys.
 *
 *  JAX's splash kernel (serial), which MaxText takes unless use_tokamax_splash says otherwise, has nothing to compute
 *  beside a block's vector work: block = pieces · (mxu + vpu) + block step, forward. Its backward kernels are as above.
 *  Copies bring inputs [batch, sequence, head, dim] into head order and back: Q, K, V read and written once; backward
 *  Q, K, V, the output and their gradients.
 *
 *  Source of the form: 101 kernels of openxla/tokamax's autotuning data (validation/measurements.csv, class attention).
 *  Operations: forward, of a score: maximum, subtraction, sum, rounding, and a move; backward: 13 fit.
 *  Limits: loads of keys into the arrays for very few queries are not counted.
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/chip.h"
#include "chip/matmul.h"

/** Sizes of a block; 0 = 2048, 2048 and 512. Larger than the matrix of scores is the whole of it. */
typedef struct pod_attention_block {
    int64_t queries;
    int64_t keys;
    int64_t compute; /**< keys of a piece; pieces have at most 512 */
} pod_attention_block;

typedef struct pod_attention_args {
    int64_t sequences; /**< of this chip */
    int64_t heads;
    int64_t kv_heads;
    int64_t queries; /**< of a sequence; the last of its keys, or */
    int64_t keys;
    int64_t after;  /**< so many tokens later */
    int64_t window; /**< keys that a query sees, itself included; 0 = all before it */
    /** a query sees only keys of its own of consecutive chunks; 0 = there are none */
    int64_t chunk;
    int64_t qk_dim; /**< of a query or key of one head */
    int64_t v_dim;  /**< of a value */
    bool causal;
    bool backward;
    bool split;    /**< backward by two kernels, dkv and dq, instead of the fused one */
    bool megacore; /**< backward: cores of a device share heads of keys instead of sequences */
    /** forward's matmuls and vector work of a block alternate (JAX's splash kernel) */
    bool serial;
    bool max_estimate; /**< the maximum is estimated before: forward never rescales */
    bool copies;       /**< inputs are not in head order */
    bool one_core;     /**< one core of the chip with its share of the HBM does it all */
    bool shared_kv;    /**< values are (part of) the keys and read with them */
    pod_dtype dtype;   /**< of queries, keys, values */
    pod_dtype cache;   /**< of keys and values in HBM */
    bool paged;        /**< they lie in pages, which are read at paged_eff_frac of the HBM's rate */
    pod_attention_block block;
} pod_attention_args;

typedef enum pod_attention_part {
    POD_ATTENTION_FORWARD,
    POD_ATTENTION_FUSED,
    POD_ATTENTION_DQ,
    POD_ATTENTION_DKV,
} pod_attention_part;

/** What one kernel does with a score, a row and the bytes. */
typedef struct pod_attention_kernel {
    int qk_products;
    int v_products;
    double vpu_ops;     /**< vector operations of a score, those of the mask apart */
    double rescale_ops; /**< of an element of a running result, each piece */
    bool backward;      /**< its running results are those below, instead of the output */
    bool adds_to_dq;    /**< rows of queries, qk_dim wide */
    bool adds_to_dkv;   /**< rows of keys, qk_dim + v_dim wide */
    int hbm_passes;
} pod_attention_kernel;

typedef struct pod_attention_time {
    pod_time_ps time_ps; /**< copies included */
    /** what the largest term is: mxu, vpu, hbm (copies too) or launch (block steps) */
    pod_bound bound;
    int cores;          /**< that took part */
    pod_time_ps mxu_ps; /**< of all pieces */
    pod_time_ps vpu_ps;
    pod_time_ps grid_ps; /**< all blocks: the units' work as it overlaps, and the steps */
    pod_time_ps step_ps; /**< block steps in it */
    pod_time_ps hbm_ps;  /**< bytes of the kernel */
    pod_time_ps copies_ps;
    int64_t full_blocks;   /**< of one head */
    int64_t masked_blocks; /**< of one head */
    double scores; /**< of all sequences and heads, masked ones in computed blocks included */
    double seen;   /**< those that the mask leaves */
    double flops;  /**< of the products over the scores that the mask leaves, without padding */
    double peak_ops_per_s; /**< of the cores that took part */
} pod_attention_time;

/** The kernels of the table above. Not collective. */
pod_attention_kernel pod_attention_kernel_of(const pod_chip_spec *chip, pod_attention_part part);

/** Time of one kernel alone. Not collective.
 *  @param args    backward and split are not looked at
 *  @param kernel  borrowed
 *  @param[out] out  untouched on error; copies are not in it
 *  @return POD_OK; POD_E_RANGE if a size is negative, there are over 2^18 blocks of queries, or the time exceeds
 *          63 bits */
pod_status pod_attention_kernel_time_get(const pod_chip_spec *chip, const pod_attention_args *args,
                                         const pod_attention_kernel *kernel,
                                         pod_attention_time *out, pod_error *err);

/** Time of attention, by one kernel or by the two of a split backward pass. Not collective.
 *  @param[out] out  untouched on error
 *  @return as above */
pod_status pod_attention_time_get(const pod_chip_spec *chip, const pod_attention_args *args,
                                  pod_attention_time *out, pod_error *err);

/** FLOPs of the products over the scores that the mask leaves, without padding and repetition: a split backward pass
 *  has those of the fused kernel. Not collective. */
double pod_attention_flops(const pod_attention_args *args);

/** Blocks in force: defaults filled in, none larger than the scores. Not collective. */
pod_attention_block pod_attention_block_of(const pod_attention_args *args);

/** "2048x2048x512" into a block, every size >= 1. POD_E_USAGE. Not collective. */
pod_status pod_attention_block_parse(const char *text, pod_attention_block *block, pod_error *err);
