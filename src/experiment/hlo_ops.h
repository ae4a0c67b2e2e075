/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/hlo_ops.h  What took time in a compiled program that was run: instructions, collectives, transfers.
 *
 *  Ownership: the caller frees the list. Threads: none. Not collective. Errors: POD_E_NOMEM. */
#pragma once

#include "experiment/hlo.h"

typedef struct pod_experiment_hlo_op {
    uint32_t instruction;
    uint32_t sum;  /**< place in outcome->time_ps and exposed_ps */
    uint32_t cost; /**< in program->cost_of; POD_HLO_NONE of a collective or transfer */
    pod_hlo_kind kind;
    bool core; /**< it runs on the core, so that its time is the step's */
    int64_t runs;
    double time_s;    /**< of all runs, mean over chips */
    double exposed_s; /**< what the core waits for it */
} pod_experiment_hlo_op;

/** @param[out] ops  longest first, ties by place; to be freed */
pod_status pod_experiment_hlo_ops(const pod_experiment_hlo_outcome *outcome,
                                  pod_experiment_hlo_op **ops, uint32_t *count, pod_error *err);

/** Part of the step: of an op on the core its time, of others what the core waits for. */
static inline double pod_experiment_hlo_part_s(const pod_experiment_hlo_op *op)
{
    return op->core ? op->time_s : op->exposed_s;
}
