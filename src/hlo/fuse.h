/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/fuse.h  HBM bytes that fusions of a compiled program leave between its operations.
 *
 *  Model: a result in HBM that one operation of the same computation reads whole, and nothing else uses, needn't be
 *  written and read if both were one fusion. One of the two is elementwise with arithmetic, the other that or holds
 *  matmuls; what only moves data (copies, slices, stacks) stays, since what uses it may need it so.
 *
 *  Ownership: the caller frees. Threads: none. Not collective. Errors: POD_E_NOMEM. */
#pragma once

#include "hlo/program_plan.h"

typedef struct pod_hlo_fusable {
    /** spared[instruction]: bytes of one run that wouldn't pass through the HBM */
    int64_t *spared;
    int64_t results;     /**< such results, as written */
    int64_t total_bytes; /**< read and written in all runs */
} pod_hlo_fusable;

/** @param[out] fusable  for pod_hlo_fusable_fini in any case */
pod_status pod_hlo_fusable_find(const pod_hlo_program *program, pod_hlo_fusable *fusable,
                                pod_error *err);
void pod_hlo_fusable_fini(pod_hlo_fusable *fusable);
