/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/fit.h  Whether a step fits a chip's memory, what would, and which layouts there are to try.
 *
 *  Ownership: borrows its arguments. Threads: none. */
#pragma once

#include "workload/build/request.h"

/** Whether the work fits the HBM that a program may use. Not collective.
 *  @return POD_OK; POD_E_NOFIT with the sizes, the largest kind, and the smallest change that fits */
pod_status pod_step_fits(const pod_step_request *request, const pod_step_work *work,
                         const pod_chip_spec *chip, pod_error *err);

/** All layouts of data, fsdp and tensor, of a model with experts expert, too, that JAX lays on the slice, without
 *  their axes of size 1 and without repeats. Not collective.
 *  @param experts     of the model; 0 = none
 *  @param split_axes  also those that share physical axes
 *  @param[out] list   *count meshes, for free() */
pod_status pod_step_layouts(const pod_slice *slice, bool split_axes, int64_t experts,
                            pod_logical_mesh **list, int *count, pod_error *err);
