/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/reference.h  A step on one chip, and the check of any layout against it.
 *
 *  Model: the same model built for a mesh of one chip, executed op by op. Beside each value goes a
 *  bound of how far a layout that adds in another order can be from it. With u = 2^-8 (bf16; f32:
 *  2^-24) and n roundings at most on the way of any sum (the chips, one for each microbatch, and the
 *  product's own):
 *
 *      C = A·B    |A||B| <= 1/u and A, B whole numbers: every partial sum is exact, in any order;
 *                 what is left comes from the operands:  E_C = (|A| + E_A)(|B| + E_B) - |A||B|
 *                 else  E_C += ((1 + u)^n - 1 + k·2^-23) · (|A| + E_A)(|B| + E_B)
 *      relu       E; its derivative where the sign is not sure (|a| <= E_a > 0): all of |b| + E_b
 *      others     to first order in their inputs' E, and rounding where that is not 0
 *
 *  E = 0 throughout means: every layout must give the same bits. An element is *wrong* when it differs
 *  by more than E. The relative error is |difference| over the largest |value| of its array.
 *
 *  Use: pod_reference_new on every rank, pod_reference_compute on rank 0, then share: broadcast the blob
 *  of rank 0 and pod_reference_take it elsewhere. For each layout a pod_step_check with
 *  pod_step_check_load and _store as the callbacks of sim/step.h; afterwards add `wrong` and
 *  `checked` over the ranks and take the largest `error_bits`.
 *
 *  Ownership: new/free; a check borrows reference and work. Threads: none. */
#pragma once

#include "workload/build/request.h"

typedef struct pod_reference pod_reference;

/** What the reference must look like. Local.
 *  @param request  its model, batch, dtype, mode and optimizer count; its mesh gives only the number
 *                  of chips, for the bound: use the request with most chips and microbatches
 *  @return POD_E_RANGE, POD_E_NOMEM and what pod_step_build says */
pod_status pod_reference_new(const pod_step_request *request, uint64_t seed,
                             pod_reference **reference, pod_error *err);
void pod_reference_free(pod_reference *reference);

/** Execute the step. Local. */
pod_status pod_reference_compute(pod_reference *reference, pod_error *err);

/** The computed arrays as one block of memory: borrowed. */
void pod_reference_blob(const pod_reference *reference, char **data, size_t *size);
/** Take such a block (from malloc) instead of computing. @return POD_E_INTERNAL if it doesn't fit */
pod_status pod_reference_take(pod_reference *reference, char *data, size_t size, pod_error *err);

/** Elements of the reference that have a bound above 0. */
int64_t pod_reference_inexact(const pod_reference *reference);

/** The check of one layout. */
typedef struct pod_step_check {
    const pod_reference *reference;
    const pod_step_work *work;
    int64_t wrong;   /**< elements beyond their bound, on this rank's chips */
    int64_t checked; /**< elements compared */
    /** largest relative error, as the bits of a double: they order the same way */
    int64_t error_bits;
} pod_step_check;

/** Largest relative error of a check. */
double pod_step_check_error(const pod_step_check *check);

/** Callbacks of pod_step_args; context is a pod_step_check. */
void pod_step_check_load(void *context, int32_t chip, const pod_program *program, void **buffers);
void pod_step_check_store(void *context, int32_t chip, const pod_program *program, void **buffers);
