/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/periodic.h
 *  Steps of transformers repeat layer by layer: how few layers say what all of them do.
 *
 *  Model: instead of all L layers, two models with fewer are simulated, of a and a + p layers: p is twice the period
 *  of the pattern of layers (gathers some uses ahead may make even and odd layers differ), for each stage of a
 *  pipeline, and a equal to L modulo p. What p further layers add is the same again for the rest:
 *
 *      X(L) = X(a + p) + (L - a - p) / p · (X(a + p) - X(a))        X: times and bytes, whole numbers (sim/step.h)
 *
 *  An op of the full program is like the op of the same name in the layer that stands for its own: the same
 *  from the front or from the back where that exists, else one in the middle of the same phase of the pattern.
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

/** So many layers that the middle is steady with every model known.
 *  @return false: the layers don't repeat, or too few times to be worth it */
bool pod_periodic_find(const pod_model *model, int32_t stages, pod_periodic *periodic);

/** The same for memory, with periods of the pattern and few layers that show both ends of it. */
bool pod_periodic_memory_find(const pod_model *model, int32_t stages, pod_periodic *periodic);

/** The fewest layers that may do: one period. Whether they do is seen by what the ops in them take, which p further
 *  layers between them must not change (pod_periodic_twins).
 *  @return false: as above, or one period is what pod_periodic_find has */
bool pod_periodic_find_fewest(const pod_model *model, int32_t stages, pod_periodic *periodic);

/** For each op of a stage's full program the one of the larger small program that stands for it.
 *  @param[out] stand_in  stand_in[full->nops], for free(); POD_OP_NONE where there is none
 *  @return POD_E_NOMEM */
pod_status pod_periodic_ops(const pod_periodic *periodic, const pod_program *full,
                            const pod_program *more, int32_t **stand_in, pod_error *err);

/** What a stage's full program needs, from those of few layers and of a period more.
 *  @param periodic     of pod_periodic_memory_find
 *  @param[out] same    whether their ops are the same layer by layer; if not, nothing is known of the full program
 *  @param[out] use     as pod_program_memory has it, to the byte; peak_op is POD_OP_NONE
 *  @return POD_E_NOMEM */
pod_status pod_periodic_memory(const pod_periodic *periodic, const pod_program *few,
                               const pod_program *more, bool *same, pod_memory_use *use,
                               pod_error *err);

/** For each op of a stage's smaller program its twin in the larger: the same op of the same layer, counted from the
 *  front in the first half of the stage's layers and from the back in the second, so that the further layers lie
 *  between.
 *  @param[out] twin  twin[few->nops], for free(); POD_OP_NONE where there is none
 *  @return POD_E_NOMEM */
pod_status pod_periodic_twins(const pod_periodic *periodic, const pod_program *few,
                              const pod_program *more, int32_t **twin, pod_error *err);

/** For each op of a middle layer of a stage's larger program the same op a period later, for every layer of one period.
 *  Where these take longer or less long, further layers change by as much again and times aren't linear in them.
 *  @param[out] next  next[more->nops], for free(); POD_OP_NONE outside those layers
 *  @return POD_E_NOMEM */
pod_status pod_periodic_nexts(const pod_periodic *periodic, const pod_program *more, int32_t **next,
                              pod_error *err);
