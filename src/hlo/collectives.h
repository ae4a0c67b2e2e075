/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/collectives.h  The collectives of a program: operation, bytes, groups, when they run.
 *
 *  Model: a collective is an instruction, a start with its done, or lies inside a fusion:
 *
 *      sync     all-gather(…)                      holds the core
 *      async    X-start … X-done; async-start of a computation that holds one
 *      fused    a fusion that holds AsyncCollectiveStart, fusions in between that repeat the collective
 *               with the same channel_id, and the fusion that holds AsyncCollectiveDone: one collective
 *      scatter  an all-reduce in a kCustom fusion, its channel not under way: a reduce-scatter
 *
 *  Bytes are those of podsim's convention: the result of an all-gather, else the operands, without
 *  padding. What an asynchronous one returns is what its done returns.
 *
 *  A transfer is a send over DCN: `_xla_megascale_*` say operation and target; the recv of the same
 *  rendezvous belongs to it.
 *
 *  Ownership: pod_hlo_collectives_fini frees. Threads: read-only after init. Not collective.
 *  Errors: POD_E_INVALID with the place, POD_E_RANGE, POD_E_NOMEM. */
#pragma once

#include "hlo/groups.h"

typedef enum pod_hlo_how {
    POD_HLO_HOW_SYNC,
    POD_HLO_HOW_ASYNC,
    POD_HLO_HOW_FUSED,
    POD_HLO_HOW_SCATTER
} pod_hlo_how;

typedef struct pod_hlo_collective {
    uint32_t
        instruction; /**< that begins it, in the computation that runs it: itself, start or fusion */
    uint32_t done;   /**< that waits for it there; `instruction` if it holds the core */
    uint32_t inner;  /**< the collective's own instruction, which has its attributes */
    uint8_t opcode;  /**< pod_hlo_opcode */
    uint8_t how;     /**< pod_hlo_how */
    int64_t bytes;
    int64_t result_bytes;
    int64_t channel; /**< -1 = none */
    uint32_t group;  /**< number in pool->group; POD_HLO_NONE for permutes */
    uint32_t pairs;  /**< number in pool->pairs; POD_HLO_NONE for others */
} pod_hlo_collective;

typedef struct pod_hlo_transfer {
    uint32_t instruction; /**< the send */
    uint32_t recv;        /**< the recv of the same rendezvous, or POD_HLO_NONE */
    int64_t bytes;        /**< the sent array */
    pod_hlo_span type;    /**< as written: ALL_REDUCE, ALL_GATHER, … */
    pod_hlo_span target;  /**< as written, "{1,2}x{0:15}"; may be empty */
} pod_hlo_transfer;

typedef struct pod_hlo_collectives {
    pod_hlo_groups_pool pool;
    pod_hlo_collective *collective; /**< collective[count], by `instruction` */
    uint32_t count;
    uint32_t capacity;
    pod_hlo_transfer *transfer; /**< transfer[ntransfers], by `instruction` */
    uint32_t ntransfers;
    uint32_t transfers_capacity;
} pod_hlo_collectives;

/** @param partner  of pod_hlo_async_pair */
pod_status pod_hlo_collectives_init(pod_hlo_collectives *collectives, const pod_hlo_module *module,
                                    const uint32_t *partner, pod_error *err);
void pod_hlo_collectives_fini(pod_hlo_collectives *collectives);

/** "all-reduce" of "ALL_REDUCE" into buf. @return buf */
const char *pod_hlo_transfer_name(const pod_hlo_module *module, const pod_hlo_transfer *transfer,
                                  char *buf, size_t size);
/** "sync", "async", "fused", "scatter", static. */
const char *pod_hlo_how_name(pod_hlo_how how);
