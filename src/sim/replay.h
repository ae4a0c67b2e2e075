/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/replay.h  Collectives that share links with one another, simulated once.
 *
 *  Model: a *cluster* is what runs on the links of a machine from when they are idle until they are idle again. When
 *  each of its collectives ends on each chip, and what the links carry, depends on the schedules and on when each
 *  chip begins each of them, counted from the first, and on nothing else. A record of it stands for the same again:
 *  as long as every beginning is as recorded, to the picosecond, so is every end. Whoever replays a record checks the
 *  beginnings one by one, and that nothing else is on the links meanwhile (sim/step_replay.c).
 *
 *  Ownership: the list owns its records. Threads: one. */
#pragma once

#include "base/status.h"
#include "ici/slice.h"
#include "net/net.h"

/** What stands for a schedule and a machine: equal keys, equal both. */
enum { POD_LONE_KEY_WORDS = 12 };

typedef struct pod_replay_op {
    int64_t key[POD_LONE_KEY_WORDS];
    uint32_t name_hash;
    int32_t place; /**< collectives of the program from the record's first op to this one */
} pod_replay_op;

typedef struct pod_replay {
    int32_t cells;
    int32_t nops;
    int32_t from_front; /**< collectives of the program before the first op, */
    int32_t from_back;  /**< and from it to the end */
    bool barred;        /**< it is not to be replayed any more */
    int64_t run;        /**< in which it was made, or last replayed whole */
    unsigned directions;
    int64_t hops;               /**< message-hops of all cells */
    pod_replay_op *ops;         /**< ops[nops], in the order of their first beginnings */
    pod_time_ps *begin_ps;      /**< begin_ps[op * cells + cell], from that of op 0 on cell 0 */
    pod_time_ps *end_ps;        /**< end_ps[op * cells + cell], from the same */
    int32_t *turn;              /**< turn[op * cells + cell]: ops that the cell began before it */
    pod_net_link_record *links; /**< links[cell * POD_DIRECTIONS + direction] */
} pod_replay;

typedef struct pod_replay_list {
    pod_replay **record; /**< record[count], the oldest first */
    int64_t room;
    int64_t count;
    int64_t bytes;
    int64_t run;        /**< number of this run, of all that use the list */
    int64_t used;       /**< how often one was replayed whole */
    int64_t hops_least; /**< message-hops for each beginning: what takes less is simulated again
                             sooner than replayed in vain */
    bool in_place; /**< records are replayed only as far from the front or the back of the program
                        as they were made */
} pod_replay_list;

/** pod_replay_list.hops_least of a new list. */
enum { POD_REPLAY_HOPS_LEAST = 64 };

/** Zeroed but for its sizes. POD_E_NOMEM. */
pod_status pod_replay_new(int32_t nops, int32_t cells, pod_replay **replay, pod_error *err);
void pod_replay_free(pod_replay *replay);

/** Take over a record, unless it is known or too much is kept already: then it is freed. Where memory is short, too. */
void pod_replay_add(pod_replay_list *list, pod_replay *replay);
/** What came was not as recorded: neither will be what comes later. Bar the records but for those made or replayed
 *  whole in this run. */
void pod_replay_bar(pod_replay_list *list);
void pod_replay_list_fini(pod_replay_list *list);
