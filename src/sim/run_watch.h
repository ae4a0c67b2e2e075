/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/run_watch.h  Messages of a collective, or of traffic, on the links of chosen chips.
 *  Ownership: a watcher is storage of the caller, with its first four members at first, fini at the end.
 *  Threads: one per rank. */
#pragma once

#include "base/dtype.h"
#include "collectives/schedule/schedule.h"
#include "engine/par.h"
#include "net/net.h"

/** A message (or fragment) of a collective on a link of a watched chip. */
typedef struct pod_run_message {
    pod_time_ps start_ps; /**< joined the link */
    pod_time_ps end_ps;   /**< its tail left the link */
    int32_t watch;        /**< index of the chip in pod_run_watch.chips */
    int32_t port;         /**< direction of ici/slice.h, or a port of net/dcn_ports.h */
    int32_t source;       /**< chip that sent it */
    int32_t target;       /**< chip that it is for; -1 if several of its kind are under way */
    int32_t channel;
    int32_t step; /**< of the sender; of traffic: its number among the sender's messages */
    int32_t part; /**< -1: traffic, whose channel, slots and reduces mean nothing */
    int32_t slot; /**< first of the blocks sent (schedule.h) */
    int32_t slots;
    int32_t reduces; /**< 1: the target adds it, 0: stores it */
    int64_t bytes;   /**< of the whole message */
} pod_run_message;

/** What is watched, and then what was seen. pod_run_watch_fini frees it. */
typedef struct pod_run_watch {
    int32_t nchips;
    const int32_t *chips;      /**< chips[nchips], of all slices; borrowed */
    int64_t nmessages;         /**< on rank 0, elsewhere 0 */
    pod_run_message *messages; /**< in order of watch, start, port, end, channel, step; heap */
} pod_run_watch;

void pod_run_watch_fini(pod_run_watch *watch);

typedef struct pod_run_watcher {
    pod_run_watch *watch;
    const pod_coll_schedule *schedule; /**< of a collective, or NULL */
    pod_dtype dtype;
    const struct pod_traffic *traffic; /**< whose tags are (source, number), or NULL */
    /** With traffic: receiver and size of a message by its sender and number. */
    void (*message)(const struct pod_traffic *traffic, int32_t source, int32_t number,
                    int32_t *target, int64_t *bytes);
    pod_run_message *messages; /**< of this rank's chips */
    int64_t count;
    int64_t capacity;
    bool out_of_memory;
} pod_run_watcher;

/** A message has left a link of a cell, from a handler of that cell. */
void pod_run_watcher_note(pod_run_watcher *watcher, int32_t cell, int port, pod_net_tag tag,
                          int32_t source, pod_time_ps joined_ps, pod_time_ps now_ps);
/** Gather all messages in watcher->watch on rank 0, sorted. Collective. @return POD_E_NOMEM */
pod_status pod_run_watcher_finish(pod_run_watcher *watcher, pod_par *par, pod_error *err);
void pod_run_watcher_fini(pod_run_watcher *watcher);
