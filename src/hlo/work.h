/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/work.h  What an instruction has to do: kind, matmuls, vector operations, bytes. Knows no chip.
 *
 *  Model: kind and bytes are those of hlo/kind.h and hlo/bytes.h; matmuls inside fusions count to the fusion, those of
 *  nested fusions too. Each computation is added up once, callees before callers.
 *
 *  Ownership: new/free; borrows the analysis. Threads: read-only once made. Errors: those of hlo/bytes.h,
 *  POD_E_NOMEM. */
#pragma once

#include "hlo/bytes.h"
#include "hlo/kind.h"

typedef struct pod_hlo_work {
    pod_hlo_kind kind;
    pod_hlo_traffic traffic;
    int64_t flops;    /**< of matmuls */
    uint32_t largest; /**< number of the one with most FLOPs in analysis->matmul, or POD_HLO_NONE */
} pod_hlo_work;

typedef struct pod_hlo_works {
    const pod_hlo_analysis *analysis;
    const pod_hlo_module *module;
    pod_hlo_bytes bytes;
    bool counted;        /**< bytes are made */
    uint32_t *matmul_of; /**< matmul_of[instruction], number in analysis->matmul or POD_HLO_NONE */
    uint32_t *largest;   /**< largest[computation], likewise */
} pod_hlo_works;

pod_status pod_hlo_works_new(const pod_hlo_analysis *analysis, pod_hlo_works **works,
                             pod_error *err);
void pod_hlo_works_free(pod_hlo_works *works);

/** The work of one instruction. */
pod_status pod_hlo_work_of(const pod_hlo_works *works, uint32_t instruction, pod_hlo_work *work,
                           pod_error *err);
