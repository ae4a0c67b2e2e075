/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/bytes.h  What an instruction reads and writes in each memory, and its vector operations.
 *
 *  Model: for each operand what is read, for each result leaf what is written.
 *
 *      operand, inside the fusion (through bitcast, reshape and nested fusions; one with
 *      output_to_operand_aliasing is a bitcast), is used
 *        as first operand of dynamic-slice, slice, gather          the results' bytes
 *        as first operand of dynamic-update-slice, scatter         0
 *        not at all, by the root tuple, a collective or an AsyncCollective call     0
 *        as index of a slice                                       0
        element by element (arithmetic, copy, transpose, pad), for what only slices or gathers are taken of
                                                                  the part of it that the results are
 *        otherwise                                                 all of it
 *      result leaf that is (through bitcast)
 *        a dynamic-update-slice                                    its update
 *        a scatter                                                 its updates
 *        a parameter, a collective's                               0
 *        anything else                                             all of it
 *
 *  An instruction that is no fusion follows the same rules. A start of a copy reads and writes what its done
 *  returns. Collectives, transfers, dones and what is entered have no bytes here.
 *
 *  Vector operations: one per result element of arithmetic inside (what only moves data: none), input
 *  elements of a reduce, results times window of a window operation (a dim that every window holds whole is
 *  reduced once: 1; of arithmetic in a fusion of which only slices are taken, those), and for a sort of k operands of r
 *  rows of n: r · n · k · L(L+1)/2 with L = ceil(log2 n).
 *
 *  Ownership: pod_hlo_bytes_fini frees. Threads: read-only after init. Not collective.
 *  Errors: POD_E_RANGE (sums beyond 2^62), POD_E_NOMEM, what hlo/matmul.h refuses of windows. */
#pragma once

#include "hlo/analysis.h"

/** a + b, at most POD_HLO_COUNT_MAX. */
static inline int64_t pod_hlo_add(int64_t a, int64_t b)
{
    return a > POD_HLO_COUNT_MAX - b ? POD_HLO_COUNT_MAX : a + b;
}

typedef struct pod_hlo_traffic {
    int64_t hbm_read;
    int64_t hbm_write;
    int64_t vmem;   /**< read and written in VMEM or CMEM */
    int64_t host;   /**< read and written in the host's memory */
    int64_t gather; /**< of hbm_read and hbm_write: rows that gathers pick and scatters put */
    int64_t ops;    /**< of the vector units */
} pod_hlo_traffic;

/** How a fused computation uses a parameter. */
typedef struct pod_hlo_usage {
    bool whole;       /**< all of it is read */
    int64_t sliced;   /**< bytes of the slices that are taken of it, gathers included */
    int64_t gathered; /**< those of gathers */
} pod_hlo_usage;

typedef struct pod_hlo_bytes {
    const pod_hlo_analysis *analysis;
    uint32_t *first;      /**< first[computation]: its parameter 0 in `usage` */
    pod_hlo_usage *usage; /**< usage[first[c] + parameter] */
    /** returns[computation]: parameter that its root hands on, or POD_HLO_NONE */
    uint32_t *returns;
    int64_t *ops; /**< ops[computation], nested fusions included */
} pod_hlo_bytes;

pod_status pod_hlo_bytes_init(pod_hlo_bytes *bytes, const pod_hlo_analysis *analysis,
                              pod_error *err);
void pod_hlo_bytes_fini(pod_hlo_bytes *bytes);

/** Traffic of one run of an instruction of a computation that is entered. */
pod_status pod_hlo_traffic_of(const pod_hlo_bytes *bytes, const pod_hlo_instruction *instruction,
                              pod_hlo_traffic *traffic, pod_error *err);
/** Bytes of what slices and gathers cut out of an instruction's result in its computation, if nothing else is done with
 *  it; -1 if something is. */
int64_t pod_hlo_cut_of(const pod_hlo_bytes *bytes, uint32_t instruction);
