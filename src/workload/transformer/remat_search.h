/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/remat_search.h  Private to workload/: the plan of least recomputation that fits HBM.
 *
 *  Ownership: borrows everything. Threads: none. */
#pragma once

#include "chip/attention.h"
#include "models/model.h"
#include "workload/transformer/remat.h"

typedef struct pod_remat_question {
    const pod_model *model;
    const pod_chip_spec *chip;
    pod_dtype dtype; /**< of products */
    int64_t layers;  /**< of a stage */
    int64_t tokens;  /**< of a chip, in all microbatches that are kept at once */
    int64_t seq;
    int64_t tensor;
    bool plain;   /**< attention keeps its scores */
    double flops; /**< of the model, of a chip in the step */
} pod_remat_question;

/** Try plans from the cheapest on. @param fits  builds a plan and says whether it fits
 *  @param[out] plan  the first that fits; if none does, the one that needs least HBM
 *  @return what fits says */
pod_status pod_remat_search(const pod_remat_question *question,
                            pod_status (*fits)(void *context, pod_remat_plan plan, bool *fits,
                                               pod_error *err),
                            void *context, pod_remat_plan *plan, pod_error *err);
