/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/program.h  A compiled program as what every chip of a slice executes (program/program.h).
 *
 *  Model: the text's order is the schedule. Instructions become ops:
 *
 *      core         one at a time in the order of the text: a compute op (hlo/cost.h), left out if it takes no time
 *      copies       copy-start, slice-start: a copy op that begins when the core reaches it, one after the other;
 *                   its done holds the core until it is through. Bytes: the result once if one side is VMEM, twice
 *                   if both are HBM
 *      SparseCore   call-start: a copy op on a lane of its own with the bytes of all that it calls
 *      collectives  synchronous ones and scatters hold the core; asynchronous and fused ones begin when
 *                   reached and hold the core at their done. An all-reduce whose result is of a smaller type is a
 *                   reduce-scatter of the operand and an all-gather of the result
 *      transfers    a send over DCN with its recv: a collective over the slices, each chip with the same chip
 *                   of the others; its recv-done waits
 *      while        its body, as often as it is told to
 *
 *  A group of one chip moves nothing. Partitions lie on chips as hlo/devices.h says; a group of partitions is
 *  one of chips, recognized as a grid where it is one. Vectors are padded to whole elements a chip.
 *
 *  The plan of a program is made once; programs with more or fewer runs of its loops are emitted from it.
 *
 *  Ownership: new/free; borrows works, costs and what the options point to. Threads: read-only once
 *  made. Not collective. Errors: POD_E_INVALID with the place (partitions that aren't the chips, a transfer that
 *  fits other slices, what isn't modelled, named), POD_E_RANGE (more than POD_HLO_OPS_MAX ops), POD_E_NOMEM. */
#pragma once

#include "hlo/program_plan.h"

enum { POD_HLO_OPS_MAX = 2000000 };
/** Loops of at most so many trips are never cut. */
enum { POD_HLO_SHORT_TRIPS = 8 };

pod_status pod_hlo_program_new(const pod_hlo_works *works, const pod_hlo_costs *costs,
                               const pod_hlo_program_options *options, pod_hlo_program **program,
                               pod_error *err);
void pod_hlo_program_free(pod_hlo_program *program);

/** What was emitted: programs of one stage, and what each op is. */
typedef struct pod_hlo_emitted {
    pod_programs programs;
    /** instruction[op], or of a collective ninstructions + its number in run_as[]; POD_HLO_NONE:
     * joins others */
    uint32_t *instruction;
    int32_t capacity;
} pod_hlo_emitted;

/** @param trips  trips[loop of analysis->loops], how often each body runs
 *  @param[out] emitted  for pod_hlo_emitted_fini in any case */
pod_status pod_hlo_program_emit(const pod_hlo_program *program, const int64_t *trips,
                                pod_hlo_emitted *emitted, pod_error *err);
void pod_hlo_emitted_fini(pod_hlo_emitted *emitted);
