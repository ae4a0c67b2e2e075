/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/blocking.h  A matmul's sizes, the block that a core's part of it uses, and what
 *  that moves. The model is in chip/matmul.h. */
#pragma once

#include "chip/chip.h"

/** Sizes of a block, in rows of A, the contracted axis and columns of B; all 0 = choose. */
typedef struct pod_matmul_block {
    int64_t m;
    int64_t k;
    int64_t n;
} pod_matmul_block;

typedef struct pod_matmul_args {
    int64_t m; /**< rows of A, >= 0 */
    int64_t k; /**< contracted axis, >= 0 */
    int64_t n; /**< columns of B, >= 0 */
    pod_dtype dtype;
    bool one_core;        /**< `--cores 1`: one core with its share of the HBM */
    bool weights_in_vmem; /**< B is in VMEM already and stays there */
    bool alone;           /**< run by itself: add the launch cost that benchmarks see */
    pod_matmul_block block;
} pod_matmul_args;

struct pod_blocking {
    pod_matmul_block block;
    int64_t steps;
    double hbm_bytes;   /**< all blocks read and written; exact below 2^53 */
    double first_bytes; /**< of the first blocks of A and B */
    double last_bytes;  /**< of the last block of C */
    double vmem_bytes;  /**< of weights that are read from VMEM */
};

/** Bytes of one element of C for inputs of `dtype`. Not collective. */
int pod_matmul_output_size(pod_dtype dtype);

/** Choose the block for a non-empty product, or take part->block when it is given.
 *  @param core  one core
 *  @return POD_E_NOFIT if the given block or the weights exceed the VMEM of the core */
pod_status pod_blocking_choose(const pod_chip_spec *core, const pod_matmul_args *part,
                               struct pod_blocking *out, pod_error *err);
