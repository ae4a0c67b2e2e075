/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/loss.h  How long the head's product with softmax and cross entropy takes on one chip, logits never kept.
 *
 *  Model: logits are rows [m, k] · head [k, n]; only the loss, or the derivatives of rows and head, come out.
 *
 *  Fused is one kernel, a grid of rows x columns x contraction in tiles of tile_m x tile_k x tile_n:
 *
 *      logits    each step: 2 · tile_m · pad(tile_k) · pad(tile_n) / (peak · sustained) + 1 vector operation
 *                a logit (accumulation), beside the copies of the rows' tile (once where k is one tile) and the head's
 *      softmax   once a tile of logits: loss_fwd_ops, backward loss_bwd_ops, vector operations a logit
 *      backward  then each step again: two products and their accumulation, beside the copies of both operands
 *                and the reading of the derivatives' f32 tiles, which are written before the next step
 *                begins; the head's derivative is not read for the first rows. At the end both are
 *                rounded to bf16: 4 bytes read, 2 written
 *      every step costs a block step
 *
 *  Chunked is the compiler's loop over chunks of tile_m rows and tile_n columns (k whole): the product beside
 *  the reading of its part of the head, loss_chunk_ops vector operations a logit and the start of a kernel;
 *  a head whose columns don't divide is padded by a copy first. Backward has three products, three starts,
 *  and reads and writes the head's f32 derivative.
 *
 *  Per JAX device: two devices of a chip share the rows. Fused kernels run on the cores of grouped matmuls.
 *  Source of the form: 55 kernels of openxla/tokamax's autotuning data (validation/measurements.csv, class loss),
 *  and what its kernels read and write. Of the chunked backward pass there is no row.
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/chip.h"
#include "chip/matmul.h"

typedef struct pod_loss_args {
    int64_t m; /**< rows of this chip */
    int64_t k; /**< width of a row */
    int64_t n; /**< columns of the head: the vocabulary */
    pod_dtype dtype;
    bool chunked; /**< the compiler's loop instead of one kernel */
    bool backward;
    int cores;             /**< of the chip that take part; 0 = those that are used */
    pod_matmul_block tile; /**< 0 = 1024 x 512 x 2048; chunked: k is not looked at */
} pod_loss_args;

typedef struct pod_loss_time {
    pod_time_ps time_ps;
    pod_bound bound; /**< the largest of mxu, vpu, hbm and launch (steps or starts) */
    int cores;       /**< that took part */
    pod_matmul_block tile;
    int64_t steps;         /**< on one device */
    int64_t flops;         /**< of 1 product forward, 3 backward, without padding */
    int64_t hbm_bytes;     /**< of all devices */
    double peak_ops_per_s; /**< of the cores that took part */
    double ops_per_s;      /**< flops / time; 0 when time is 0 */
    double peak_frac;      /**< ops_per_s / peak_ops_per_s */
    /* the terms of one device */
    pod_time_ps mxu_ps;
    pod_time_ps vpu_ps;
    pod_time_ps hbm_ps;
    pod_time_ps step_ps;
} pod_loss_time;

/** Not collective.
 *  @param[out] out  untouched on error
 *  @return POD_OK; POD_E_RANGE if a size is below 1 or flops, bytes or time exceed 63 bits; POD_E_NOFIT if
 *          the tile of a fused kernel needs more VMEM than there is */
pod_status pod_loss_time_get(const pod_chip_spec *chip, const pod_loss_args *args,
                             pod_loss_time *out, pod_error *err);

/** The formula with its numbers, for --explain, one line into buf (always terminated). Not collective. @return buf */
const char *pod_loss_explain(const pod_loss_time *time, char *buf, size_t size);
