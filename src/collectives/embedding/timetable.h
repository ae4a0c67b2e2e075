/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/timetable.h  When links carry the chunks of an all-reduce, up and down trees.
 *
 *  Model: vertices are the ranks, links the live hops along the group's axes. Time goes in slots: a link carries a
 *  chunk in one, a slow one in several, and a hop takes some more. Chunk after chunk has a tree of its own, whose root
 *  has the sum at a time z of the chunk's own. What goes down a cable at z + t comes up it so much before z: a
 *  tree takes two slots of each of its cables, as long before z as after it. It is grown like Dijkstra's, by the
 *  earliest time at which both slots are free, so it goes where the trees before it left room. Times z lie as far apart
 *  as the busiest cable needs for a chunk when trees share all cables evenly.
 *
 *  The slots only say in which order a link carries its messages. Then each goes as early as that order, and what it
 *  brings, allow (end_ps).
 *
 *  Example, 3 in a row (open), a slot for a chunk and none for a hop, root 1, chunks a b at z = 1, 2:
 *
 *      slot        0    1    2
 *      0 to 1      a    b    .
 *      2 to 1      a    b    .
 *      1 to 0      .    a    b
 *      1 to 2      .    a    b
 *
 *  Ranks are taken in the order of their numbers (axes.h), so axes by other names make no difference.
 *
 *  Time: chunks · roots · links · (log ranks + slots that are taken). Ownership: make allocates, fini frees.
 *  Threads: none. */
#pragma once

#include "collectives/embedding/axes.h"

typedef struct pod_timetable_message {
    int32_t slot;
    int32_t link; /**< (sender · naxes + axis) · 2 + minus */
    int32_t chunk;
    bool sums; /**< up, towards the root */
} pod_timetable_message;

typedef struct pod_timetable {
    int32_t nranks;
    int32_t nways; /**< two along each axis */
    int32_t chunks;
    int32_t count;                  /**< two for each chunk and each rank but its root */
    pod_timetable_message *message; /**< message[count], in the order of their slots */
    int32_t *root;                  /**< root[chunk] */
    pod_time_ps end_ps;             /**< the last message has come */
} pod_timetable;

typedef struct pod_timetable_args {
    const pod_coll_axes *axes;
    const double *slowness; /**< pod_coll_axes_slowness; NULL = no link is slow */
    bool
        equal_slots; /**< slow links have as many slots as others, and are late by the clock alone */
    int32_t left_out; /**< a link of the cable that nothing goes over; -1 = none */
    int32_t chunks;
    int32_t roots;    /**< of so many in the middle, the one whose tree is done first is taken */
    int32_t evenness; /**< what a tree more over a cable is worth, in 1/16 of a hop */
    pod_time_ps chunk_ps;
    pod_time_ps hop_ps;
    pod_time_ps enough_ps; /**< no timetable is wanted that can't end before; 0 = any is */
} pod_timetable_args;

/** @param[out] found  false: links don't lead to every rank, or not in time; there is no timetable
 *  @return POD_E_NOMEM */
pod_status pod_timetable_make(pod_timetable *table, const pod_timetable_args *args, bool *found,
                              pod_error *err);
void pod_timetable_fini(pod_timetable *table);
