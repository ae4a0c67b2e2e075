/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/inexact_attention.h  Private to workload/verify: attention with errors beside its values.
 *
 *  Model: of each sequence and head, with σ² for s² of a value (workload/verify/inexact.h),
 *
 *      S = scale · Q Kᵀ        σ²(S) = scale² (σ²(Q) K²ᵀ + Q² σ²(Kᵀ))
 *      P = softmax(S)          δP = P (δS - Σ P δS):      σ²(P) = P² ρ,  ρ = σ²(S) + Σ P² σ²(S) + u²
 *      O = P V                 δO = Σ P δS (V - O) + P δV:
 *                              σ²(O) <= (P² (2 σ²(S) + u²)) V² + 2 O² Σ P² σ²(S) + P² σ²(V)
 *
 *  the u² of P rounded for the product. Backward, with D = Σ dO O of a row:
 *
 *      dP = dO Vᵀ              σ²(dP) = σ²(dO) V²ᵀ + dO² σ²(Vᵀ)
 *      dS = P (dP - D)         σ²(dS) = ρ dS² + P² (σ²(dP) + σ²(D)) + u² dS²
 *      dV = Pᵀ dO, dQ = scale · dS K, dK = scale · dSᵀ Q: as products of arrays with these errors
 *
 *  Queries go through in blocks, so that no S×S array lies anywhere.
 *
 *  Ownership: the caller's arrays. Threads: none. */
#pragma once

#include "workload/verify/inexact.h"

typedef struct pod_inexact_attention {
    int64_t sequences;
    int64_t seq;
    int64_t heads;
    int64_t kv_heads;
    int64_t qk_dim;
    int64_t v_dim;
    int64_t window; /**< 0 = all keys before */
    bool chunked;
    bool all;              /**< a query sees all keys */
    int64_t context_terms; /**< chips that a sequence is cut over: partial sums of dK and dV */
} pod_inexact_attention;

/** Queries, keys and values [sequences · seq, heads · dim]. */
typedef struct pod_inexact_qkv {
    pod_inexact q;
    pod_inexact k;
    pod_inexact v;
} pod_inexact_qkv;

/** Bytes of an arena that either direction takes for itself. */
size_t pod_inexact_attention_bytes(const pod_inexact_attention *attention);

void pod_inexact_attend(pod_inexact_context *context, const pod_inexact_attention *attention,
                        const pod_inexact_qkv *in, const pod_inexact *out);
/** @param out  of attend  @param dout  its derivative  @param[out] d  derivatives of in, stored */
void pod_inexact_attend_backward(pod_inexact_context *context,
                                 const pod_inexact_attention *attention, const pod_inexact_qkv *in,
                                 const pod_inexact *out, const pod_inexact *dout,
                                 const pod_inexact_qkv *d);
