/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/memory.h  HBM that a program needs.
 *
 *  Model: persistent buffers all the time; given ones from the start to the op that last reads them;
 *  the others from the op that first writes them to the op that last reads them, in program order;
 *  buffers of one stack until the last of them is read. The peak is the largest sum over ops; by_kind is its
 *  composition at that op. Threads: none. */
#pragma once

#include "program/program.h"

typedef struct pod_memory_use {
    int64_t peak_bytes;
    int32_t peak_op;
    int64_t by_kind[POD_MEMORY_KINDS]; /**< adds up to peak_bytes */
} pod_memory_use;

pod_status pod_program_memory(const pod_program *program, pod_memory_use *use, pod_error *err);

/** What lives when. */
typedef struct pod_liveness {
    int64_t *bytes; /**< bytes[nops + 1]: that live at each op, the last after all ops */
    int32_t *first; /**< first[nbuffers]: op from which on a buffer exists, */
    int32_t *last;  /**< last[nbuffers]: and until which; first > last if none touches it */
} pod_liveness;

/** @param[out] live  for pod_liveness_fini, also after an error: POD_E_NOMEM */
pod_status pod_liveness_find(const pod_program *program, pod_liveness *live, pod_error *err);
void pod_liveness_fini(pod_liveness *live);
/** What lives at an op, or after all of them (nops), by kind. */
void pod_liveness_kinds(const pod_program *program, const pod_liveness *live, int32_t op,
                        int64_t by_kind[POD_MEMORY_KINDS]);
