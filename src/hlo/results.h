/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/results.h  Do results have the dims that operands, attributes, groups and computations give?
 *
 *  Model: of an instruction whose result follows from the rest of it, the dims as written are compared with those
 *  that follow; element types and layouts are not, since compilers fuse conversions into what computes. Opcodes
 *  that aren't known, custom calls, gathers and the halves of asynchronous operations are taken as written.
 *
 *  Ownership: none. Threads: any (no state). Not collective.
 *  Errors: POD_E_INVALID at the instruction, with both lists of dims. */
#pragma once

#include "hlo/module.h"

/** All instructions but matmuls and collectives. */
pod_status pod_hlo_results_check(const pod_hlo_module *module, pod_error *err);

/** A collective, which may be a start. @param last  whose shape is the result: itself or its done
 *  @param size  devices of a group */
pod_status pod_hlo_results_check_collective(const pod_hlo_module *module,
                                            const pod_hlo_instruction *collective,
                                            const pod_hlo_instruction *last, int64_t size,
                                            pod_error *err);

/** Dims of a result that are known. */
pod_status pod_hlo_results_expect(const pod_hlo_module *module,
                                  const pod_hlo_instruction *instruction, const int64_t *dims,
                                  uint32_t count, pod_error *err);

/** More dims than these are taken as written. */
enum { POD_HLO_RESULT_DIMS_MAX = 64 };
