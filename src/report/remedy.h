/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/remedy.h  What to change first to make a step faster, and what that may gain.
 *
 *  Model: each remedy takes away a part of the time per token. With compute C, exposed time E of one kind
 *  of communication, idle time I and step T:
 *
 *      batch        E over data, fsdp, sequence or slices does not grow with the batch, and the doubled compute
 *                   hides C more of it: T' = (2 (T - E) + max(0, E - C)) / 2 for the same tokens
 *      sharding     E over tensor grows with the batch; the next smaller tensor axis t' that the slice
 *                   takes: T' = T - E (1 - t'/t)
 *      microbatches a pipeline of S stages idles (S - 1)/(M + S - 1) of its slots; twice the
 *                   microbatches: T' = T - I (1 - (M + S - 1)/(2M + S - 1))
 *      gather ahead weights gathered only when they are used: as far as C hides E, T' = T - min(E, C)
 *      padding      matmuls fill tiles of the array only in part: T' = T - (time of what is padded)
 *      accumulate   fewer microbatches, or a larger batch: ops that HBM bounds read weights once for
 *                   twice the rows, T' = T - hbm_bound/2
 *  gain = 1 - T'/T. These are estimates from the breakdown, not simulations.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "report/breakdown.h"

typedef struct pod_remedy_facts {
    const pod_breakdown *breakdown;
    int32_t tensor;         /**< sizes of mesh axes */
    int32_t smaller_tensor; /**< the next smaller one that can be laid; 0 = none */
    int32_t stages;         /**< pipeline */
    int32_t microbatches;
    int32_t gather_ahead;
    bool batch_is_fixed; /**< matmul: its rows are the model's */
    double padding_s;    /**< mean matmul time that goes into padding (pod_padding_s) */
    int mxu_dim;
} pod_remedy_facts;

enum { POD_REMEDY_TEXT_MAX = 160 };

typedef struct pod_remedy {
    char text[POD_REMEDY_TEXT_MAX]; /**< "" when nothing would gain 1 % */
    double gain_frac;               /**< of the time per token */
} pod_remedy;

/** The remedy with the largest gain. */
void pod_remedy_find(const pod_remedy_facts *facts, pod_remedy *remedy);

/** Mean time of matmuls that their padding to whole tiles of the array takes. */
double pod_padding_s(const pod_programs *programs, const pod_step_result *result, int mxu_dim);
