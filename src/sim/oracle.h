/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/oracle.h  Equal questions have equal answers: what collectives do on links, simulated once.
 *
 *  Model: a *cluster* is what runs on links of a machine from when they are idle until they are idle again. When
 *  each of its collectives ends on each chip, and what the links carry, depends on the schedules and on when each
 *  chip begins each of them, counted from the first, and on nothing else. An oracle is told the beginnings of one
 *  step and says the ends. What it has answered is in a memo, by all beginnings of the cluster so far: where a
 *  beginning is new, a net of its own runs the cluster, and no farther than the step needs to know.
 *
 *  Parts. A collective along some axes only is one for each row of chips along these: rows share no link, and one is as
 *  the other. So each row is a question of its own, and its net is folded to one row (net/cells.h).
 *
 *      v5p:8x8x16, all-reduce along y and z: 8 parts of 128 chips; where all of a part begin together, one net
 *
 *  Time. The step runs in parts. A beginning is known one launch before it happens: when all before T has happened,
 *  all beginnings before T + launch are known, so that ends before it can be told.
 *
 *  Ownership: the memo owns answers, an oracle borrows memo, machine and schedules. Threads: one. */
#pragma once

#include "sim/oracle_memo.h"

typedef struct pod_oracle pod_oracle;

/** A collective of a step. */
typedef struct pod_oracle_question {
    int32_t known_as; /**< equal numbers: equal schedules, in all steps of one memo */
    const pod_coll_schedule *schedule;
    pod_dtype dtype;
    bool shared; /**< as pod_collective_options.shared */
    /** bit by bit those that it may use: collectives without a common bit never meet */
    unsigned links;
    unsigned axes;   /**< pod_directions_axes */
    uint32_t number; /**< names it in answers */
} pod_oracle_question;

/** Something happens to a collective on a chip. */
typedef struct pod_oracle_answer {
    pod_time_ps time_ps;
    uint32_t number;
    int32_t cell;
    int32_t crossing; /**< 0: it ends; else as pod_collective_options.crossing */
} pod_oracle_answer;

/** Watching: what links of chosen cells carried, told when their cluster is over. Clusters come in any order, but those
 *  on the same links in the order of time. */
typedef struct pod_oracle_watch {
    void *context;
    const bool *cells; /**< cells[cell]: whether it is watched; borrowed */
    /** as busy and left of pod_net_client; `number` names the collective of a message */
    void (*busy)(void *context, int32_t cell, int port, pod_time_ps start_ps, pod_time_ps end_ps);
    void (*left)(void *context, int32_t cell, int port, uint32_t number, pod_time_ps now_ps);
} pod_oracle_watch;

/** The period of machines whose nets run beside an oracle (pod_machine.part_ps); 0: launches are too short for one. */
pod_time_ps pod_oracle_part_ps(pod_time_ps launch_ps);
/** @param memo     with a watch, of steps that watch the same cells
 *  @param machine  of one rank, with part_ps and launch_ps
 *  @param watch    NULL: nobody watches; copied
 *  @return POD_E_NOMEM */
pod_status pod_oracle_new(pod_oracle_memo *memo, const pod_machine *machine,
                          const pod_oracle_watch *watch, pod_oracle **oracle, pod_error *err);
void pod_oracle_free(pod_oracle *oracle);
/** A chip begins a collective. Where memory is short, pod_oracle_ask says so.
 *  @param time_ps  not before the limit of the last pod_oracle_ask
 *  @param order    of its messages to other slices (pod_collective_start) */
void pod_oracle_begin(pod_oracle *oracle, const pod_oracle_question *question, int32_t cell,
                      uint64_t order, pod_time_ps time_ps);
/** What happens next.
 *  @param next_ps        nothing else of the step happens before
 *  @param[out] limit_ps  all that happens before this time is known; POD_TIME_NEVER: nothing happens any more
 *  @param[out] answers   answers[*count] in the order of times, good until the next call
 *  @return POD_E_NOMEM, and what a simulation says */
pod_status pod_oracle_ask(pod_oracle *oracle, pod_time_ps next_ps, pod_time_ps *limit_ps,
                          const pod_oracle_answer **answers, int64_t *count, pod_error *err);
/** What the links of all clusters so far have carried: links[cell * POD_NET_PORTS_MAX + port], and message-hops. */
const pod_net_link_record *pod_oracle_links(const pod_oracle *oracle, int64_t *hops);
