/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/attention.h  How long attention takes on one chip, done block by block in VMEM (flash attention).
 *
 *  Model: scores of queries with keys are never written to HBM. Queries and keys are cut into blocks of
 *  2048 (as public recipes set MaxText's kernels); blocks that no query of theirs may see are left out, those on
 *  the diagonal are computed whole. A head of E elements is padded to the array's columns or rows, so
 *  heads of 128 leave half of a 256-wide array idle. Per score:
 *
 *      forward    2 products (Q·Kᵀ, P·V)                                  9 vector operations
 *      backward   5 products: scores and dP again, then dV, dK, dQ        13
 *
 *  Vector operations of a score: mask 2, scale, maximum, subtract, exponential, sum, rescale, rounding.
 *  The products of a block run beside the vector work of another:
 *
 *      mxu  = scores · 2 · Σ padded head / (peak · sustained)
 *      vpu  = scores · operations / (VPU rate · efficiency)
 *      hbm  = bytes of Q, K, V, O (backward: also dO, dQ, dK, dV, twice) / (HBM rate · efficiency)
 *      time = max(mxu, vpu, hbm)
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/chip.h"

typedef struct pod_attention_args {
    int64_t sequences; /**< of this chip */
    int64_t heads;
    int64_t kv_heads;
    int64_t queries; /**< of a sequence; the last of its keys */
    int64_t keys;
    int64_t window; /**< keys that a query sees, itself included; 0 = all before it */
    int64_t qk_dim; /**< of a query or key of one head */
    int64_t v_dim;  /**< of a value */
    bool causal;
    bool backward;
    bool shared_kv;  /**< values are (part of) the keys and read with them */
    pod_dtype cache; /**< of keys and values in HBM */
} pod_attention_args;

typedef struct pod_attention_time {
    pod_time_ps time_ps;
    pod_time_ps mxu_ps;
    pod_time_ps vpu_ps;
    pod_time_ps hbm_ps;
    double scores; /**< of all sequences and heads, masked ones in computed blocks included */
    double flops;  /**< of the products, without padding */
} pod_attention_time;

/** Not collective.
 *  @param[out] out  untouched on error
 *  @return POD_OK; POD_E_RANGE if a size is negative or the time exceeds 63 bits */
pod_status pod_attention_time_get(const pod_chip_spec *chip, const pod_attention_args *args,
                                  pod_attention_time *out, pod_error *err);
