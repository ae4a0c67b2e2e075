/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/mlp_program.h  Private to workload/: what one chip does for a step of an MLP or a matmul.
 *
 *  Model: workload/build/stage.h; ops hold data.
 *
 *  Threads: none. */
#pragma once

#include "workload/build/request.h"

/** The program of stage `number`. @return status of pod_step_build */
pod_status pod_mlp_program(const pod_step_request *request, pod_step_work *work, int32_t number,
                           pod_error *err);
