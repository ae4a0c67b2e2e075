/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/periodic.h
 *  What a step of many layers needs, from programs of few: layers of transformers repeat.
 *
 *  Model: instead of all L layers, two models with fewer are built, of a and a + p layers: p is the period of the
 *  pattern of layers, for each stage of a pipeline, and a equal to L modulo p. What p further layers add is the same
 *  again for the rest:
 *
 *      X(L) = X(a + p) + (L - a - p) / p · (X(a + p) - X(a))        X: bytes, whole numbers
 *
 *  Memory: the bytes that live at an op are linear in the numbers of layers before and after its own, so the peak is
 *  at an op of the first or of the last layers of their phase, and those are in the small programs: what lives there
 *  grows by the same with each period (one of the pattern). The peak is the largest of the sums for all layers.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/model.h"
#include "program/memory.h"

typedef struct pod_periodic {
    int64_t layers; /**< of the full model */
    int64_t stages;
    int64_t prefix; /**< layers before the pattern begins */
    int64_t period;
    int64_t few;   /**< layers of the smaller model */
    int64_t more;  /**< of the larger */
    int64_t times; /**< periods from there to the full model, >= 1 */
} pod_periodic;

/** Whether so many layers repeat that what a plan of recomputation keeps of them can be estimated. */
bool pod_periodic_repeats(const pod_model *model, int32_t stages);

/** Few layers that show both ends of the memory of a stage.
 *  @return false: the layers don't repeat, or too few times to be worth it */
bool pod_periodic_memory_find(const pod_model *model, int32_t stages, pod_periodic *periodic);

/** What a stage's full program needs, from those of few layers and of a period more.
 *  @param periodic     of pod_periodic_memory_find
 *  @param[out] same    whether their ops are the same layer by layer; if not, nothing is known of the full program
 *  @param[out] use     as pod_program_memory has it, to the byte; peak_op is POD_OP_NONE
 *  @return POD_E_NOMEM */
pod_status pod_periodic_memory(const pod_periodic *periodic, const pod_program *few,
                               const pod_program *more, bool *same, pod_memory_use *use,
                               pod_error *err);
