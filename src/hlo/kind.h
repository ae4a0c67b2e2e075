/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/kind.h  What kind of work an instruction is.
 *
 *      nothing      names, tuples, bitcasts; instructions whose operands and results are all scalars or in
 *                   the memories of semaphores, contexts and scalars; custom calls that only name
 *                   (AllocateBuffer, ConcatBitcast, SliceId, …); AsyncCollective calls
 *      matmul       convolution, dot, a fusion that holds some (nested fusions too)
 *      elementwise  other fusions, arithmetic, what moves data, reductions; opcodes that aren't known
 *      gather       gather, scatter          sort    sort, topk, custom call TopK
 *      window       reduce-window, select-and-scatter
 *      custom       tpu_custom_call and targets that aren't known: the text doesn't say what they do
 *      host         copies to or from host memory, MoveToHost, MoveToDevice
 *      copy         copy-start, slice-start and the like: on a lane of their own
 *      collective   synchronous ones, starts, and fusions that begin one (hlo/collectives.h)
 *      transfer     send, recv
 *      wait         dones and updates
 *      enter        while, call, call-start, conditional: what they enter (hlo/analysis.h)
 *      attention, sparsecore    custom calls and calls, once more is known of them (hlo/cost.h)
 *
 *  Threads: any. Not collective. Nothing fails. */
#pragma once

#include "hlo/analysis.h"

typedef enum pod_hlo_kind {
    POD_HLO_KIND_NOTHING,
    POD_HLO_KIND_MATMUL,
    POD_HLO_KIND_ELEMENTWISE,
    POD_HLO_KIND_GATHER,
    POD_HLO_KIND_SORT,
    POD_HLO_KIND_WINDOW,
    POD_HLO_KIND_CUSTOM,
    POD_HLO_KIND_HOST,
    POD_HLO_KIND_COPY,
    POD_HLO_KIND_COLLECTIVE,
    POD_HLO_KIND_TRANSFER,
    POD_HLO_KIND_WAIT,
    POD_HLO_KIND_ENTER,
    POD_HLO_KIND_ATTENTION, /**< a custom call that hlo/kernels.h knows; pod_hlo_kind_of says custom */
    POD_HLO_KIND_SPARSECORE, /**< a call as a whole; pod_hlo_kind_of says enter */
    POD_HLO_KINDS
} pod_hlo_kind;

/** Kind of an instruction of a computation that is entered. A fusion around an asynchronous collective has the
 *  kind of its other work: whether it begins or ends a collective, hlo/collectives.h says. */
pod_hlo_kind pod_hlo_kind_of(const pod_hlo_analysis *analysis,
                             const pod_hlo_instruction *instruction);
/** "nothing", "matmul", …, static. */
const char *pod_hlo_kind_name(pod_hlo_kind kind);
