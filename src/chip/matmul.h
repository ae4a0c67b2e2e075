/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/matmul.h  How long a matmul takes on one chip, and why.
 *
 *  Model: C[m,n] = A[m,k] · B[k,n]. B is the weights and stands still in the systolic arrays:
 *  ceil(k/dim)·ceil(n/dim) tiles, through each of which the m rows of A stream, one row a cycle,
 *  at least a group of 8 (bf16[8,128] @ bf16[128,128] every 8 cycles: scaling book, tpus.md,
 *  appendix). The next tile loads while the current one is multiplied, so the arrays fill and drain once (2·dim
 *  cycles). Rows divide over the arrays of a core. On two cores m or n is halved, whichever is
 *  quicker.
 *
 *      mxu   = ceil(tiles · ceil(m/8) / arrays) · 8 rows · 2 · dim² / (array's peak · sustained)
 *
 *  A and B pass through VMEM in blocks (bm x bk, bk x bn), each block of A and B read from HBM when
 *  it is not the one already there, C written once; two buffers of each, so that the next block
 *  loads while the current one is multiplied. Loops: m outside, then n, then k, or n outside, then m, then k:
 *
 *      A is read ceil(n/bn) times, once if bk = k and n is inside m; B likewise ceil(m/bm) times
 *      hbm   = bytes / (HBM rate · efficiency) + (steps - 1) · block step
 *      time  = launch + first blocks in + max(mxu, the rest of hbm, vmem) + last block out + fill
 *
 *  A block that is given stands for a hand-written kernel (Pallas): its grid steps are taken by the
 *  scalar unit between pieces of work while copies go on, so (steps - 1) · block step is not part of
 *  hbm but adds to mxu. 0.33 us fits MMv5e-008; a public TPU kernel counts 0.31 (tpu-inference, gated
 *  delta net).
 *
 *  The block is the one that moves the fewest bytes among those that fit the VMEM set aside for
 *  blocks, then the one with the fewest steps, then the one that exposes least. Results are of the
 *  type that the compiler gives: bf16 for bf16 and fp8, f32 for f32, int32 for int8.
 *
 *      bound = what the largest of these is: mxu, hbm, vmem or launch, which counts steps of a given block
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/blocking.h"

typedef enum pod_bound {
    POD_BOUND_MXU,
    POD_BOUND_HBM,
    POD_BOUND_VMEM,
    POD_BOUND_LAUNCH,
    POD_BOUND_VPU, /**< of kernels with vector work: attention, grouped matmuls */
} pod_bound;

typedef struct pod_matmul_time {
    pod_time_ps time_ps;
    pod_bound bound;
    int cores;              /**< cores that took part */
    pod_matmul_block block; /**< of one core, clipped to its part; 0 if there was nothing to do */
    int64_t flops;          /**< 2·m·k·n, without padding */
    int64_t hbm_bytes;      /**< read and written, by all cores together */
    double peak_ops_per_s;  /**< of the cores that took part */
    double ops_per_s;       /**< flops / time; 0 when time is 0 */
    double peak_frac;       /**< ops_per_s / peak_ops_per_s */
    int64_t steps;          /**< blocks that one core goes through */
    /* the terms of the formula, per core */
    pod_time_ps launch_ps;
    pod_time_ps mxu_ps;
    pod_time_ps hbm_ps;     /**< all HBM time, the exposed ends included */
    pod_time_ps exposed_ps; /**< first blocks in and last block out */
    pod_time_ps vmem_ps;
    pod_time_ps fill_ps;
    pod_time_ps grid_ps; /**< steps of a given block, beside mxu */
} pod_matmul_time;

/** "mxu", "hbm", "vmem", "launch" or "vpu", static. Not collective. */
const char *pod_bound_name(pod_bound bound);

/** Three sizes with an x between, each >= 1. POD_E_USAGE. Not collective.
 *  @param form  what would be right, for the message: "MxKxN as in 512x1024x1024"
 *  @param[out] sizes  untouched on error */
pod_status pod_matmul_sizes_parse(const char *text, const char *option, const char *form,
                                  int64_t sizes[3], pod_error *err);

/** "512x1024x1024" into a block, every size >= 1. POD_E_USAGE. Not collective. */
pod_status pod_matmul_block_parse(const char *text, pod_matmul_block *block, pod_error *err);

/** Time of one matmul. Not collective.
 *  @param[out] out  untouched on error
 *  @return POD_OK; POD_E_RANGE if a size is negative or flops, bytes or time exceed 63 bits;
 *          POD_E_NOFIT if a given block or weights_in_vmem needs more VMEM than a core has */
pod_status pod_matmul_time_get(const pod_chip_spec *chip, const pod_matmul_args *args,
                               pod_matmul_time *out, pod_error *err);

/** The mxu term alone, in seconds: all cores, m or n divided over them, whichever is quicker. No fill.
 *  Not collective. @param args  m, k, n >= 0 and dtype */
double pod_matmul_mxu_s(const pod_chip_spec *chip, const pod_matmul_args *args);
/** The arrays of a core at `steps` steps, in seconds: each passes 8 rows through one tile. Not collective. */
double pod_matmul_steps_s(const pod_chip_spec *core, pod_dtype dtype, double steps);
/** Filling and draining the arrays once, in seconds. Not collective. */
double pod_matmul_fill_s(const pod_chip_spec *chip);

/** The formula with its numbers, for --explain, one line into buf (always terminated).
 *  Not collective. @return buf */
const char *pod_matmul_explain(const pod_matmul_time *time, char *buf, size_t size);
