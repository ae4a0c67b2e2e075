/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/step_programs.h  Private to workload/: programs of a step under a plan, and their memory.
 *
 *  Ownership: fills a work, whose layout, rows, model_flops and plan are there; what it had of programs and memory
 *  goes. Threads: none. */
#pragma once

#include "workload/build/request.h"

/** Programs of all layers under work->plan, and their memory. @return as pod_step_build */
pod_status pod_step_programs_make(const pod_step_request *request, pod_step_work *work,
                                  pod_error *err);

/** Their memory alone, to the byte: from programs of few layers (workload/transformer/periodic.h) and of few
 *  microbatches where those of a training step repeat, and then work has no programs.
 *  @param[out] always_bytes  of the stage with least: what is there all the time with any plan as narrow
 *  @return as pod_step_build */
pod_status pod_step_memory_find(const pod_step_request *request, pod_step_work *work,
                                int64_t *always_bytes, pod_error *err);
