/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/exec.h  The arithmetic of ops on real shards of one chip.
 *
 *  Model: buffers are row-major in their dtype. A matmul takes its inputs as they are (already in
 *  the dtype), sums in f32 (int8: int32), adds to `out` in f32 if it accumulates and rounds once to
 *  out's dtype. Vector functions are those of program/program.h. Communication ops are not executed
 *  here. Threads: none. */
#pragma once

#include "program/program.h"

/** The storage of one chip: data[buffer], NULL where a buffer has none. */
typedef struct pod_shards {
    void **data;
} pod_shards;

/** Allocate (zeroed) every buffer of a program. */
pod_status pod_shards_init(pod_shards *shards, const pod_program *program, pod_error *err);
void pod_shards_fini(pod_shards *shards, const pod_program *program);

/** Execute a matmul or vector op. POD_E_NOMEM only. */
pod_status pod_op_exec(const pod_program *program, int32_t op, pod_shards *shards, pod_error *err);
