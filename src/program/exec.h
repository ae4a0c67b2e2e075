/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/exec.h  The arithmetic of ops on real shards of one chip.
 *
 *  Model: buffers are row-major in their dtype. A matmul takes its inputs as they lie in their buffers
 *  (floats of one dtype; the op's own dtype sets only its speed), sums in f32, adds to `out` in f32 if
 *  it accumulates and rounds once to out's dtype. Vector functions are those of program/program.h, in
 *  f32, rounded once. Communication ops are not executed here.
 *
 *  Ownership: init allocates data[] and every buffer, fini frees what is left: a caller that takes a
 *  buffer sets its pointer to NULL. Threads: none. */
#pragma once

#include "program/shards.h"

/** Execute a matmul, convolution or vector op; other kinds and ops without buffers do nothing.
 *  @return POD_E_NOMEM; POD_E_RANGE (a matrix of 2^31 elements or more); POD_E_INVALID (a dtype
 *          that has no arithmetic here) */
pod_status pod_op_exec(const pod_program *program, int32_t op, pod_shards *shards, pod_error *err);
