/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/oracle_state.h  What the halves of an oracle share: clusters and their memo (oracle.c), and nets that run
 *  clusters (oracle_live.c). For these two only. */
#pragma once

#include "sim/oracle.h"

/* A collective that some chip has begun, or will. */
typedef struct asked {
    pod_oracle_question question;
    struct cluster *cluster; /* NULL: not yet */
    int32_t member;          /* its number there */
    int32_t begun;           /* chips that have */
} asked;

typedef struct beginning {
    pod_time_ps time_ps;
    int32_t cell;
    int64_t number; /* in the order in which the oracle was told */
    uint64_t order;
    asked *what;
    uint64_t hash[2]; /* of the cluster's, up to this one */
} beginning;

/* A net that runs a cluster: time 0 is a multiple of the period before the first beginning. */
typedef struct live {
    pod_net *net;
    const struct cluster *of;
    pod_machine machine;
    bool exclusive;
    bool enough; /* something happened that is news */
    pod_time_ps zero_ps;
    pod_time_ps until_ps; /* in its own time */
    pod_collective **collectives;
    int64_t ncollectives;
    int64_t room;
    int64_t fed; /* beginnings that it has been told */
    int64_t ended;
    oracle_outcome *outcomes; /* from the start, as in oracle_entry */
    int64_t count;
    int64_t outcomes_room;
    const pod_oracle_watch *watch; /* NULL: nobody watches */
    oracle_sight *sights;
    int64_t nsights;
    int64_t sights_room;
    bool out_of_memory;
} live;

typedef struct cluster {
    unsigned links;
    asked **members;
    int64_t nmembers;
    int64_t members_room;
    beginning *beginnings;
    int64_t count;
    int64_t room;
    pod_time_ps base_ps;
    uint64_t hash[2];
    int64_t hashed;      /* beginnings */
    int64_t kept;        /* so many are followed by the next in the memo */
    oracle_entry *known; /* NULL: not looked up since the last beginning, or unknown */
    oracle_entry own;    /* known, if the memo is full: for the first `owned` beginnings */
    int64_t owned;
    int64_t given; /* outcomes that the step has been told */
    live *net;
} cluster;

struct pod_oracle {
    pod_oracle_memo *memo;
    const pod_machine *machine;
    pod_oracle_watch watch; /* .cells is NULL: nobody watches */
    int32_t cells;
    beginning *waiting; /* waiting[nwaiting], from `next` on sorted if so */
    int64_t waiting_room;
    int64_t nwaiting;
    int64_t next;
    bool sorted;
    int64_t told;
    asked **asked_of; /* by number */
    int64_t asked_room;
    int64_t nasked;
    cluster **clusters;
    int64_t clusters_room;
    int64_t nclusters;
    pod_oracle_answer *answers;
    int64_t answers_room;
    int64_t nanswers;
    pod_net_link_record *links;
    int64_t hops;
    bool out_of_memory;
};

static inline pod_time_ps oracle_part_of(const pod_oracle *oracle, pod_time_ps time_ps)
{
    return time_ps & ~(oracle->machine->part_ps - 1);
}

/** When something begins or happens, on which cell, and as which of those there. */
typedef struct oracle_moment {
    pod_time_ps time_ps;
    int64_t number;
    int32_t cell;
} oracle_moment;

/** For qsort: by time, then by cell, then by number. */
static inline int oracle_order(oracle_moment a, oracle_moment b)
{
    if (a.time_ps != b.time_ps) {
        return a.time_ps < b.time_ps ? -1 : 1;
    }
    if (a.cell != b.cell) {
        return a.cell < b.cell ? -1 : 1;
    }
    return a.number < b.number ? -1 : a.number > b.number;
}

/** NULL is fine. */
void pod_oracle_live_free(live *net);
/** Run a cluster until something happens that the step hasn't been told, or until a limit, and keep it. */
pod_status pod_oracle_live_run(pod_oracle *oracle, cluster *c, pod_time_ps limit_ps,
                               pod_error *err);
