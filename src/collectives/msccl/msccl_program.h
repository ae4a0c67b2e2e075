/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/msccl/msccl_program.h  What the reader hands to the compiler of msccl.h; for them only. */
#pragma once

#include "collectives/msccl/msccl.h"

#define POD_MSCCL_TYPE_LIST(X)                                                                     \
    X(MSCCL_S, "s", true, false)                                                                   \
    X(MSCCL_R, "r", false, true)                                                                   \
    X(MSCCL_RCS, "rcs", true, true)                                                                \
    X(MSCCL_RRC, "rrc", false, true)                                                               \
    X(MSCCL_RRS, "rrs", true, true)                                                                \
    X(MSCCL_RRCS, "rrcs", true, true)                                                              \
    X(MSCCL_CPY, "cpy", false, false)                                                              \
    X(MSCCL_RE, "re", false, false)                                                                \
    X(MSCCL_NOP, "nop", false, false)

#define POD_MSCCL_TYPE_ENUM(name, text, sends, receives) name,
typedef enum msccl_type { POD_MSCCL_TYPE_LIST(POD_MSCCL_TYPE_ENUM) MSCCL_TYPES } msccl_type;
#undef POD_MSCCL_TYPE_ENUM

/* Where an element begins, both from 1. */
typedef struct msccl_at {
    int line;
    int column;
} msccl_at;

typedef struct msccl_place {
    char buffer; /* 'i', 'o', 's' */
    int32_t chunk;
} msccl_place;

typedef struct msccl_step {
    msccl_at at;
    msccl_type type;
    msccl_place src;
    msccl_place dst;
    int32_t chunks;
    int32_t dep_tb; /* -1 = none */
    int32_t dep_step;
} msccl_step;

typedef struct msccl_tb {
    msccl_at at;
    int32_t gpu;
    int32_t id;
    int32_t send; /* peer, -1 = none */
    int32_t recv;
    int32_t chan;
    int32_t first_step;
    int32_t steps;
} msccl_tb;

typedef struct msccl_gpu {
    msccl_at at;
    int32_t scratch; /* chunks */
    int32_t first_tb;
    int32_t tbs;
} msccl_gpu;

struct pod_msccl {
    char *file;
    char name[64]; /* "file:" and the algo's name */
    pod_coll_op op;
    int32_t chunks; /* of the vector */
    bool in_place;
    int32_t ngpus;
    msccl_gpu *gpus;
    int32_t ntbs;
    msccl_tb *tbs;
    int32_t nsteps;
    msccl_step *steps;
};

static inline bool msccl_sends(msccl_type type)
{
    return type == MSCCL_S || type == MSCCL_RCS || type == MSCCL_RRS || type == MSCCL_RRCS;
}

static inline bool msccl_receives(msccl_type type)
{
    return type == MSCCL_R || type == MSCCL_RCS || type == MSCCL_RRC || type == MSCCL_RRS
           || type == MSCCL_RRCS;
}

/** The vector has a block for each chip: what it gathers, keeps of a sum, or exchanges. */
static inline bool msccl_has_blocks(pod_coll_op op)
{
    return op == POD_ALL_GATHER || op == POD_REDUCE_SCATTER || op == POD_ALL_TO_ALL;
}

/** Chunks of such a block: chunk r·k + j of the vector is part j of rank r's. 1 where there are none. */
static inline int32_t msccl_own_chunks(const pod_msccl *msccl, int32_t ngpus)
{
    return msccl_has_blocks(msccl->op) ? msccl->chunks / ngpus : 1;
}

/** A fault of a tb, or of its step when that is >= 0. */
pod_status pod_msccl_blame(const pod_msccl *msccl, const msccl_tb *tb, int32_t step,
                           const char *what, pod_error *err);

/** Who sends to whom: per tb (arrays of ntbs), -1 = nobody. */
typedef struct msccl_links {
    int32_t *sender;       /* tb at the other end of what it receives */
    int32_t *receiver;     /* and of what it sends */
    int32_t *send_channel; /* connections that share a chip have different channels */
    int32_t *recv_channel;
    int32_t channels;
} msccl_links;

/** Pair up sends and receives. @return POD_E_TABLE for what nobody receives or sends; POD_E_NOMEM */
pod_status pod_msccl_connect(const pod_msccl *msccl, msccl_links *links, pod_error *err);
void pod_msccl_links_fini(msccl_links *links);
