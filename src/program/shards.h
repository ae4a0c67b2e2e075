/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/shards.h  The numbers that a chip holds while a step runs.
 *
 *  Model: whole buffers (POD_BUFFER_WHOLE) are there all the time. Numbers (POD_BUFFER_NUMBERS) come when they are
 *  first written, or are there before the step if they are given, and go after their last reader, unless they are
 *  persistent.
 *
 *  Ownership: init allocates data[], fini frees what is left: a caller that takes a buffer sets its pointer to NULL.
 *  Threads: none. */
#pragma once

#include "program/program.h"

/** The storage of one chip: data[buffer], NULL where a buffer has none. */
typedef struct pod_shards {
    void **data;
    int32_t
        *readers; /**< readers[buffer] of numbers: reads to come, after the last of which they go */
} pod_shards;

/** Bytes that real data needs on one chip: of all whole buffers, and of numbers at most at once: each from the op that
 *  makes it to the last that reads it, in program order. What other ops than those of the core make is there from the
 *  last op on that they wait for, and what they read until an op that waits for them. INT64_MAX if that exceeds 63
 *  bits, or without memory. */
int64_t pod_program_data_bytes(const pod_program *program);

/** Allocate (zeroed) every buffer that is whole, and the numbers that are given. POD_E_NOMEM; fini is fine then too. */
pod_status pod_shards_init(pod_shards *shards, const pod_program *program, pod_error *err);
void pod_shards_fini(pod_shards *shards, const pod_program *program);

/** Before an op reads a buffer. @return POD_E_INTERNAL: nothing has been written there yet */
pod_status pod_shards_read(const pod_shards *shards, const pod_program *program, const pod_op *op,
                           int32_t buffer, pod_error *err);
/** Before it writes one: numbers are made, as zeros. POD_E_NOMEM. */
pod_status pod_shards_write(pod_shards *shards, const pod_program *program, int32_t buffer,
                            pod_error *err);
/** After it has read one: numbers go with their last reader, unless they are persistent. */
void pod_shards_release(pod_shards *shards, const pod_program *program, int32_t buffer);
