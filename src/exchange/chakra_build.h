/* SPDX-License-Identifier: Apache-2.0 */
/** @file exchange/chakra_build.h  What the files that make programs of traces share. Private. */
#pragma once

#include "exchange/chakra_program.h"

/* How the chips of a meeting wait for each other. */
typedef enum chakra_wait { WAIT_ALL, WAIT_ROOT, ROOT_WAITS, WAIT_NOBODY } chakra_wait;

/* Nodes that are one operation of several chips: of a collective all its chips', of a message send and receive. */
typedef struct chakra_meeting {
    /* b->member[first … first + count): places of nodes, the root's first if there is one */
    int64_t first;
    int32_t count;
    chakra_wait wait;
    int32_t group; /* program group; POD_OP_NONE of messages */
    int32_t sources;
    int32_t number; /* of its messages from it on, or of the collective */
} chakra_meeting;

typedef struct chakra_builder {
    const pod_chakra_graph *graphs;
    const pod_chakra_groups *groups;
    const pod_chakra_options *options;
    pod_programs *programs;
    pod_chakra_told *told;
    int32_t nchips; /* of all slices */
    int64_t nnodes;
    int64_t *first;   /* first[chip]: place of its first node */
    int32_t *chip_of; /* chip_of[place] */
    /* by_id[first[chip] … first[chip + 1]): places of its nodes, smallest ids first */
    int64_t *by_id;
    int64_t *main_of; /* main_of[place]: the node that it is one with, or itself */
    /* twin[place]: the node that is one with it, or -1: the receive of a send in a permute */
    int64_t *twin;
    int64_t *first_dep; /* first_dep[place]: in dep */
    int64_t *dep;       /* places */
    int32_t *meeting;   /* meeting[place], or -1 */
    chakra_meeting *meetings;
    int64_t nmeetings;
    int64_t meetings_room;
    int64_t *member;
    int64_t nmembers;
    int64_t members_room;
    int32_t messages;    /* numbers of messages so far */
    int32_t collectives; /* likewise */
    /* group_of[pg]: program group; then of masks of dimensions; -2 = not made yet */
    int32_t *group_of;
    pod_error *err;
} chakra_builder;

static inline const pod_chakra_node *chakra_node(const chakra_builder *b, int64_t place)
{
    const int32_t chip = b->chip_of[place];
    return &b->graphs[chip].nodes[place - b->first[chip]];
}

static inline const pod_chakra_graph *chakra_graph(const chakra_builder *b, int64_t place)
{
    return &b->graphs[b->chip_of[place]];
}

static inline pod_status chakra_no_memory(const chakra_builder *b)
{
    return pod_fail(b->err, POD_E_NOMEM, "no memory for traces of %lld nodes",
                    (long long)b->nnodes);
}

/** Who meets whom (chakra_meet.c). */
pod_status pod_chakra_meet(chakra_builder *b);
/** The groups that collectives go by (chakra_meet_groups.c): a key for each group of chips that counts for itself, its
 *  program group, and what tells it from others of that group. */
typedef struct chakra_key {
    int32_t key; /* place in group_of */
    int32_t group;
    int32_t number;
    int32_t root; /* its first chip, or -1: that of rank 0 */
} chakra_key;
pod_status pod_chakra_key(chakra_builder *b, int64_t place, chakra_key *key);
/** Prepare: program groups of all that the trace defines. */
pod_status pod_chakra_keys(chakra_builder *b);
/** Chips of all slices, or of one if `inside`, as one group; its program group. */
pod_status pod_chakra_all_chips(chakra_builder *b, bool inside, int32_t *group);
/** Nothing waits for itself (chakra_order.c). */
pod_status pod_chakra_check_order(chakra_builder *b);
