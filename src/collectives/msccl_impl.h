/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/msccl_impl.h  A parsed program and its schedule. Private to msccl*.c. */
#pragma once

#include "collectives/msccl.h"

typedef enum msccl_type {
    MSCCL_SEND,
    MSCCL_RECV,
    MSCCL_RCS,
    MSCCL_RRS,
    MSCCL_RRC,
    MSCCL_RRCS,
    MSCCL_COPY,
    MSCCL_REDUCE,
    MSCCL_NOP
} msccl_type;

/* A place in a buffer: 'i', 'o' or 's', and the first chunk. */
typedef struct msccl_place {
    char buffer;
    int32_t chunk;
} msccl_place;

typedef struct msccl_step {
    msccl_type type;
    msccl_place src;
    msccl_place dst;
    int32_t chunks;
    int32_t dep_tb; /* -1 = none */
    int32_t dep_step;
    int line;
} msccl_step;

typedef struct msccl_tb {
    int32_t gpu;
    int32_t id;
    int32_t send; /* peer, -1 = none */
    int32_t recv;
    int32_t chan;
    int32_t first_step; /* steps[first_step … first_step + nsteps) */
    int32_t nsteps;
    int line;
} msccl_tb;

struct pod_msccl {
    char name[POD_COLL_NAME_MAX];
    char file[POD_ERROR_FILE_MAX];
    pod_coll_op op;
    int32_t ngpus;
    int32_t chunks;  /* of the vector */
    int32_t scratch; /* the most of any gpu */
    bool inplace;
    int32_t ntbs;
    msccl_tb *tbs; /* by gpu, then as in the file */
    int32_t nsteps;
    msccl_step *steps;
};

typedef struct msccl_schedule {
    pod_coll_schedule base;
    pod_coll_part part;
    int32_t *tb_of; /* tb_of[channel * ranks + rank], -1 = none */
    int32_t *first; /* steps of thread block t: steps[first[t] … first[t + 1]) */
    pod_coll_step *steps;
} msccl_schedule;

/* What building needs besides. */
typedef struct msccl_builder {
    const pod_msccl *program;
    msccl_schedule *out;
    int32_t *channel_of;  /* [thread block] */
    int32_t *at;          /* first step made of file step i, at[nsteps] = all */
    int32_t *spare;       /* [thread block]: its slots for sums that are only passed on */
    int32_t init_channel; /* copies the input where it has a buffer of its own; -1 = none */
    int32_t input_slot;
    int32_t scratch_slot;
} msccl_builder;

/** The thread block of a gpu that sends to a peer on a chan (or, as receiver, receives from it); -1 = none. */
int32_t pod_msccl_find_tb(const pod_msccl *program, int32_t gpu, int32_t peer, int32_t chan,
                          bool receiver);
/** Number the channels: thread blocks that send to each other, directly or through others, share one.
 *  POD_E_TABLE when a peer has no matching thread block. */
pod_status pod_msccl_channels_find(msccl_builder *b, int32_t *nchannels, pod_error *err);
/** Fill in tb_of. POD_E_TABLE when a gpu has two thread blocks in one channel. */
pod_status pod_msccl_channels_fill(msccl_builder *b, int32_t nchannels, pod_error *err);
