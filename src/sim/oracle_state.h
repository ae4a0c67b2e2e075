/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/oracle_state.h  What the halves of an oracle share: clusters and their memo (oracle.c), and nets that run
 *  clusters (oracle_live.c). For these two only. */
#pragma once

#include "sim/directions.h"
#include "sim/oracle.h"

/* The cells of a row of chips along some axes: a machine folded to one row, and which cell of it stands for which. Cell
 * i of a row is cell_of[i] + the row's first cell. */
typedef struct frame {
    pod_machine machine;
    int32_t ncells;    /* 0: not made yet */
    int32_t *local_of; /* local_of[cell] */
    int32_t *cell_of;  /* cell_of[ncells]: of the row that begins with cell 0 */
} frame;

/* A collective that some chip has begun. */
typedef struct asked {
    pod_oracle_question question;
    const frame *row;      /* of its parts */
    const int32_t *number; /* number[cell] of its part */
    struct part *parts;    /* parts[nparts] */
    int32_t nparts;
    int32_t left; /* parts that aren't over */
} asked;

/* What of it one row of chips does. */
typedef struct part {
    asked *of;
    struct cluster *cluster; /* NULL: not yet */
    int32_t first;           /* its first cell, then */
} part;

typedef struct beginning {
    pod_time_ps time_ps;
    int32_t cell;
    int32_t member; /* the number of its collective in the cluster */
    int64_t number; /* in the order in which the oracle was told */
    uint64_t order;
    part *what;
    uint64_t hash[2]; /* of the cluster's, up to this one */
} beginning;

/* A net that runs a cluster: time 0 is a multiple of the period before the first beginning. */
typedef struct live {
    pod_net *net;
    const struct cluster *of;
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
    unsigned axes; /* of all its collectives */
    const frame *row;
    int32_t first;         /* its first cell */
    const asked **members; /* collectives, by their first beginnings */
    int64_t nmembers;
    int64_t members_room;
    part **parts;
    int64_t nparts;
    int64_t parts_room;
    int64_t cells; /* of all parts: so many beginnings are to come */
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

/* Directions of links, and ports to other slices. */
enum { ORACLE_LINKS = POD_DIRECTIONS + 1 };

struct pod_oracle {
    pod_oracle_memo *memo;
    const pod_machine *machine;
    pod_oracle_watch watch; /* .cells is NULL: nobody watches */
    int32_t cells;
    frame rows[POD_DIRECTIONS_AXES_ALL + 1]; /* by axes */
    cluster **holds;    /* holds[cell * ORACLE_LINKS + link]: who uses it, or NULL */
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

static inline int32_t oracle_cell(const frame *row, int32_t first, int32_t local)
{
    return row->cell_of[local] + first;
}

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
