/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/spread.h  How the chunks of one rank spread to all others, by the clock.
 *
 *  Model: vertices are the ranks, links the live hops along the group's axes. A link carries a chunk in chunk_ps, and
 *  it is there hop_ps later. Whenever a link is free, it takes of the chunks that its rank has, and that nobody has
 *  sent to the other end, the one that fewest ranks have or wait for: the rarest first, of equally rare ones the
 *  first. So no link is idle that could be of use, and each chunk has a tree of its own. Arrivals come before links
 *  that fall free at the same time, or these would take older chunks.
 *
 *  Example, 4 chunks a b c d round a closed ring of 4 with root 0, a chunk takes 1, a hop 0:
 *
 *      time        0    1    2
 *      0 to 1      a    c    d
 *      0 to 3      b    d    c
 *      1 to 2      .    a    c
 *      3 to 2      .    b    d
 *      2 to 3      .    .    a
 *      2 to 1      .    .    b
 *
 *  Each link and the ranks at both its ends have the messages in their order: the steps of a *way*, one of the two
 *  along an axis. A step of a rank sends one message over its link of the way, or takes one that has come by that
 *  way, or both: then it sends first. What has come is taken before the sends that begin after it.
 *
 *  Time: messages · chunks / 64 + messages · the chunks to choose from. Ownership: grow allocates, fini frees. Threads:
 *  none. */
#pragma once

#include "collectives/embedding/axes.h"

typedef struct pod_spread_message {
    pod_time_ps start_ps;
    int32_t link; /**< (sender · naxes + axis) · 2 + minus */
    int32_t chunk;
    int32_t send_step; /**< of the sender, */
    int32_t recv_step; /**< and of the receiver, in the way of the link */
} pod_spread_message;

/** Messages of a step; -1 = none. */
typedef struct pod_spread_step {
    int32_t sent;
    int32_t received;
} pod_spread_step;

typedef struct pod_spread {
    int32_t nranks;
    int32_t nways; /**< two along each axis */
    int32_t chunks;
    int32_t count;               /**< messages: one for each chunk and each rank but the root */
    pod_spread_message *message; /**< message[count], in the order of their starts */
    int32_t *brought; /**< brought[rank · chunks + chunk]: the message that does; -1 at the root */
    int32_t *first_step;   /**< first_step[rank · nways + way]: in step, and its end */
    pod_spread_step *step; /**< of all ranks and ways */
    pod_time_ps end_ps;    /**< the last message has come */
} pod_spread;

typedef struct pod_spread_args {
    const pod_coll_axes *axes;
    const bool *left_out; /**< left_out[link]; NULL = none. Routed hops are always left out */
    int32_t root;
    int32_t chunks;
    pod_time_ps chunk_ps;
    pod_time_ps hop_ps;
} pod_spread_args;

/** Whether links that aren't left out lead from the root to every rank. The chunks of the arguments don't count.
 *  @return POD_E_NOMEM */
pod_status pod_spread_reaches(const pod_spread_args *args, bool *reaches, pod_error *err);

/** Where links don't lead to every rank, there are fewer messages.
 *  @return POD_E_NOMEM */
pod_status pod_spread_grow(pod_spread *spread, const pod_spread_args *args, pod_error *err);
void pod_spread_fini(pod_spread *spread);
