/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/check_state.h  What check.c and check_blocks.c share; for them only. */
#pragma once

#include "collectives/schedule/check.h"

/* What a slot holds. A block is named by a number (all-to-all: source · n + destination); -1 = nothing.
 * The contributing ranks are a bit set kept beside. */
typedef struct pod_check_message {
    int32_t from;
    int32_t slots;
    int32_t first; /* slot it was sent from */
    int32_t pitch; /* from one slot sent to the next */
    /* followed by the words of its slots */
    uint64_t content[];
} pod_check_message;

typedef struct pod_check_cursor {
    int32_t next_send;
    int32_t next_recv;
    int32_t steps;
} pod_check_cursor;

typedef struct pod_checker {
    const pod_coll_schedule *schedule;
    pod_error *err;
    pod_coll_fault *where;
    int32_t n;
    int64_t words;   /* of a slot: block, bit set, who wrote it: channel, step + 1; 0 = nobody */
    uint64_t **work; /* [part]: [rank][slot][words] */
    pod_check_cursor *cursors; /* [channel][rank] */
    int64_t *box_base;         /* [channel]: first of its mailboxes */
    pod_check_message **box;   /* [channel][rank][step] */
    int64_t boxes;
    pod_coll_place *places;
} pod_checker;

#define POD_CHECK_NO_BLOCK UINT64_MAX

static inline uint64_t *pod_check_slot(const pod_checker *c, int32_t part, int32_t rank,
                                       int32_t slot)
{
    const int64_t slots = c->schedule->parts[part].slots;
    return c->work[part] + (rank * slots + slot) * c->words;
}

/** Fill what a rank has at the start of an operation. */
void pod_check_fill(const pod_checker *c, int32_t part, int32_t rank);
/** Whether a rank has at the end what the operation promises. */
bool pod_check_ends_right(const pod_checker *c, int32_t part, int32_t rank);
