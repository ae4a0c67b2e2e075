/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_lacks.h
 *  Private to workload/transformer/: what has no real numbers yet, and sizes that they need.
 *
 *  Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** What may be asked for and has no real numbers yet. */
typedef struct pod_tf_lack {
    bool asked;
    const char *what;
} pod_tf_lack;

/** @return POD_E_INVALID with the first that is asked for */
pod_status pod_tf_lacks_first(const pod_tf_lack *lacks, size_t count, pod_error *err);
/** Of steps that train or go forward. @return POD_E_USAGE with the feature of a layout that has no numbers yet;
 *  POD_E_INVALID with what would divide */
pod_status pod_tf_lacks_layout(const pod_step_request *request, const pod_work_layout *layout,
                               pod_error *err);
/** Of all steps with experts. @return POD_E_USAGE, POD_E_INVALID */
pod_status pod_tf_lacks_experts(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err);
/** @return POD_E_USAGE with the feature of a model that has none */
pod_status pod_tf_lacks_model(const pod_model *model, pod_error *err);
