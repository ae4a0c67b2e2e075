/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/tolerance.h  Private to workload/: how far apart two orders of addition can be.
 *
 *  Model: workload/verify/reference.h. A program is executed once; beside the buffers lies bound[buffer], an
 *  array of floats like the buffer, or NULL where every order gives the same bits.
 *  Ownership: init/fini; program and shards are borrowed. Threads: none. */
#pragma once

#include "program/exec.h"

typedef struct pod_bounds {
    const pod_program *program;
    pod_shards *shards;
    double roundings; /**< most additions and roundings on the way of a sum */
    float **bound;    /**< bound[nbuffers] */
} pod_bounds;

pod_status pod_bounds_init(pod_bounds *bounds, const pod_program *program, pod_shards *shards,
                           double roundings, pod_error *err);
void pod_bounds_fini(pod_bounds *bounds);

/** Execute op `number` of the program, one without communication, and bound its result.
 *  @return POD_E_NOMEM and what pod_op_exec says */
pod_status pod_bounds_exec(pod_bounds *bounds, int32_t number, pod_error *err);
