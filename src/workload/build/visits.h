/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/visits.h  Private to workload/: which layers a stage of a pipeline has, and when.
 *
 *  Model: 1F1B has one run of layers a stage. A circular pipeline (workload/build/circular.h) has one for every round,
 *  and layers before the pipeline.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "workload/build/layout.h"
#include "workload/build/request.h"

typedef struct pod_stage pod_stage;

/** Layers of a stage. Its local layers are numbered visit by visit; then come those that stand before the pipeline. */
typedef struct pod_visits {
    int32_t layers;  /**< of a visit */
    int32_t repeats; /**< visits of a microbatch; 1F1B: 1 */
    int32_t outer;   /**< layers before the pipeline, whose batch all stages share; 1F1B: 0 */
} pod_visits;

/** Whether a request asks for one: of a single stage there is none. */
bool pod_circular_is_on(const pod_step_request *request, int32_t stages);
/** Layers, stages and microbatches fit each other, circular or not.
 *  @return POD_E_INVALID, or POD_E_USAGE, saying what would */
pod_status pod_circular_check(const pod_step_request *request, const pod_work_layout *layout,
                              pod_error *err);
/** Of a request that passed the check. */
pod_visits pod_circular_visits(const pod_step_request *request, int32_t stages);

/** A local layer as it is counted over all stages, and back. */
int32_t pod_stage_layer(const pod_stage *stage, int32_t local);
int32_t pod_stage_local(const pod_stage *stage, int32_t layer);
/** The first layer of the visit under way, or of those before the pipeline. */
int32_t pod_stage_first_layer(const pod_stage *stage);
/** No microbatch will come after this one to what is under way in the backward pass. */
bool pod_stage_part_is_last(const pod_stage *stage);
/** The stage has the model's input, or its output; of a circular pipeline all have. */
bool pod_stage_has_input(const pod_stage *stage);
bool pod_stage_has_output(const pod_stage *stage);
