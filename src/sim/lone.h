/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/lone.h  Collectives that have their links to themselves, simulated once.
 *
 *  Model: as long as nothing else moves over the links of a collective, what it does depends on its schedule, on the
 *  machine, and on when each chip begins, counted from the first. So the same again, in another layer or in a step of
 *  more layers, ends equally long after its beginnings and puts the same on every link. A table keeps
 *  beginnings, ends and links of what was simulated, by a net of its own (of exclusive links
 *  where the schedule allows it); whoever asks makes sure that nothing else was on the links (sim/step_lone.c).
 *
 *  Ownership: the table owns its entries. Threads: one. */
#pragma once

#include "sim/collective.h"
#include "sim/replay.h"

typedef struct pod_lone_table pod_lone_table;

typedef struct pod_lone_question {
    int64_t key[POD_LONE_KEY_WORDS];
    const pod_machine *machine; /**< of one rank */
    const pod_coll_schedule *schedule;
    pod_dtype dtype;
    bool shared;                 /**< as pod_collective_options.shared */
    const pod_time_ps *begin_ps; /**< begin_ps[cell], the first at 0 */
} pod_lone_question;

typedef struct pod_lone_answer {
    const pod_time_ps *end_ps;        /**< end_ps[cell] */
    const pod_net_link_record *links; /**< links[cell * POD_DIRECTIONS + direction] */
    int64_t hops;                     /**< message-hops of all cells */
    pod_time_ps took_ps;              /**< from the last beginning to the last end */
    unsigned directions;              /**< bit d: some link of direction d carried something */
} pod_lone_answer;

/** POD_E_NOMEM. */
pod_status pod_lone_new(pod_lone_table **table, pod_error *err);
void pod_lone_free(pod_lone_table *table);
/** Look it up, or simulate it. May be called from a handler of another net.
 *  @param[out] answer  good until the next call
 *  @return POD_E_NOMEM, and what a simulation says */
pod_status pod_lone_get(pod_lone_table *table, const pod_lone_question *question,
                        pod_lone_answer *answer, pod_error *err);
/** What is known of a key with any beginnings on so many cells. @return false: nothing */
bool pod_lone_get_any(const pod_lone_table *table, const int64_t *key, int32_t cells,
                      pod_lone_answer *answer);
/** The latest fold of a machine (step_fold.c), by what decides on it; where memory is short, none. */
typedef struct pod_lone_fold {
    bool fold_slices;
    int32_t period[POD_AXES];
} pod_lone_fold;
bool pod_lone_fold_get(const pod_lone_table *table, const int64_t *words, int64_t count,
                       pod_lone_fold *fold);
void pod_lone_fold_put(pod_lone_table *table, const int64_t *words, int64_t count,
                       const pod_lone_fold *fold);
/** What was simulated of collectives that share links. */
pod_replay_list *pod_lone_replays(pod_lone_table *table);
/** Names of ops that were not alone, so that the next step needn't find out again; where memory is short, none. */
void pod_lone_crowd(pod_lone_table *table, const char *name);
bool pod_lone_is_crowded(const pod_lone_table *table, const char *name);
