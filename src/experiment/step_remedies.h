/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_remedies.h  What to change first to make a step faster: changes that were simulated.
 *
 *  Model: each change takes away a part of the time per FLOP of the model (so also per token). What it may gain
 *  at most is estimated from where the time goes; changes are simulated in the order of these estimates, until
 *  none that is left may gain more than the best one did. With step T, compute C, idle I and exposed time E of
 *  collectives over some mesh axes:
 *
 *      gather ahead      weights gathered only when they are used (E over fsdp): min(E, C)
 *      microbatches      a pipeline of S stages idles (S - 1)/(M + S - 1) of its slots; of twice the
 *                        microbatches M: I (1 - (M + S - 1)/(2M + S - 1)); of R rounds with R·M for M
 *      fewer of them     ops that HBM bounds read weights once for twice the rows: half their time
 *      batch             twice: E over other axes than tensor is the same for twice the rows, so is reading weights;
 *                        hosts make and send twice as much
 *      sharding          the next smaller tensor axis t' that JAX lays: E over tensor (1 - t'/t)
 *      collective matmul E over tensor
 *      sizes             of a shard in multiples of the MXU's, at most a quarter above the model's: the matmul time
 *                        that is padding
 *
 *  Ownership: plain values. Threads: one per rank. */
#pragma once

#include "experiment/step_routes.h"

typedef enum pod_experiment_step_change {
    POD_CHANGE_NONE,
    POD_CHANGE_GATHER_AHEAD,
    POD_CHANGE_MORE_MICROBATCHES,
    POD_CHANGE_FEWER_MICROBATCHES,
    POD_CHANGE_BATCH,
    POD_CHANGE_TENSOR,
    POD_CHANGE_COLLECTIVE_MATMUL,
    POD_CHANGE_SIZES,
    POD_CHANGES
} pod_experiment_step_change;

typedef struct pod_experiment_step_remedy {
    pod_experiment_step_change change; /**< POD_CHANGE_NONE: nothing that was tried gains 1 % */
    double gain_frac;                  /**< of the time per FLOP of the model */
    pod_logical_mesh mesh;             /**< that ran */
    pod_model model;                   /**< that ran */
    int64_t batch;
    int32_t microbatches;
} pod_experiment_step_remedy;

/** The change of those that apply to a case that gains most. What can't run or does not fit is left out. Collective.
 *  @param chip    rates that ran
 *  @param result  of the case
 *  @return POD_E_NOMEM, POD_E_INTERNAL */
pod_status pod_experiment_step_remedy_find(pod_experiment *experiment,
                                           const pod_experiment_step_case *run_case,
                                           const pod_chip_spec *chip, const pod_step_result *result,
                                           pod_experiment_step_remedy *remedy, pod_error *err);
