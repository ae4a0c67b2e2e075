/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/communication.h  What chips of a program send each other, as data: hlo/collectives.h and
 *  hlo/transfers.h read it. */
#pragma once

#include "hlo/groups.h"

typedef enum pod_hlo_how {
    POD_HLO_HOW_SYNC,
    POD_HLO_HOW_ASYNC,
    POD_HLO_HOW_FUSED,
    POD_HLO_HOW_SCATTER
} pod_hlo_how;

typedef struct pod_hlo_collective {
    /** that begins it, in the computation that runs it: itself, start or fusion */
    uint32_t instruction;
    uint32_t done;  /**< that waits for it there; `instruction` if it holds the core */
    uint32_t inner; /**< the collective's own instruction, which has its attributes */
    uint8_t opcode; /**< pod_hlo_opcode */
    pod_hlo_how how;
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
    /** collective[count], by `instruction`; also of what never runs */
    pod_hlo_collective *collective;
    uint32_t count;
    uint32_t capacity;
    pod_hlo_transfer *transfer; /**< transfer[ntransfers], by `instruction` */
    uint32_t ntransfers;
    uint32_t transfers_capacity;
} pod_hlo_collectives;
