/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/memory.h  HBM that a program needs, from its text: arguments and the buffers alive at once.
 *
 *  Model: every result leaf in HBM is a buffer of its own, alive from its instruction to its last use,
 *  or another name of one:
 *
 *      get-tuple-element, tuple, bitcast, opt-barrier, add-dependency    what they name
 *      a done                                   what its start made (which is what the done returns)
 *      while                                    its init; the body's root is the loop's state
 *      dynamic-update-slice, fusions with such a root                    operand 0
 *      output_to_operand_aliasing               what it says
 *      results of ENTRY in input_output_alias   the argument
 *
 *  A computation needs the largest sum of its buffers alive at one instruction, with what that
 *  instruction enters; the state of a loop and parameters aren't part of it. Results of ENTRY live to
 *  its end. Against the compiler's own figure this is off by 1 % in the median and by up to 39 %.
 *
 *  Ownership: pod_hlo_memory_fini frees. Threads: none. Not collective. Errors: POD_E_INVALID (a bad
 *  alias, with its place), POD_E_RANGE (bytes beyond 2^62), POD_E_NOMEM. */
#pragma once

#include "hlo/analysis.h"

typedef struct pod_hlo_buffer {
    uint32_t instruction; /**< that makes it */
    uint32_t last;        /**< the last that uses it, in the same computation */
    int64_t bytes;
} pod_hlo_buffer;

typedef struct pod_hlo_memory {
    int64_t bytes;          /**< arguments in HBM and what ENTRY needs */
    int64_t argument_bytes; /**< of parameters of ENTRY in HBM */
    pod_hlo_buffer *buffer; /**< buffer[count], those of one computation together, by instruction */
    uint32_t count;
    uint32_t capacity;
    uint32_t *first; /**< first[computation]: its first buffer; `counts` many */
    uint32_t *counts;
    int64_t *need;  /**< need[computation]; 0 for those that aren't run */
    uint32_t *peak; /**< peak[computation]: the instruction at which it needs most */
} pod_hlo_memory;

pod_status pod_hlo_memory_init(pod_hlo_memory *memory, const pod_hlo_analysis *analysis,
                               pod_error *err);
void pod_hlo_memory_fini(pod_hlo_memory *memory);
