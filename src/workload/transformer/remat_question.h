/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/remat_question.h  Private to workload/: what the choice of what is kept depends on.
 *
 *  Ownership: borrows everything. Threads: none. */
#pragma once

#include "workload/build/request.h"

typedef struct pod_remat_question {
    const pod_step_request *request;
    int64_t layers; /**< of a stage */
    int64_t tokens; /**< of a chip, in all microbatches that are kept at once */
    int64_t tensor;
    double flops; /**< of the model, of a chip in the step */
} pod_remat_question;

/** @param work  its layout, rows and model_flops are there */
pod_remat_question pod_remat_question_of(const pod_step_request *request,
                                         const pod_step_work *work);
