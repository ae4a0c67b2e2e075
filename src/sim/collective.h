/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/collective.h  The chips' side of a collective: steps of a schedule over the net.
 *
 *  Model: one pod_collective is one instance of a schedule on all groups of a slice at once. It
 *  keeps, for each chip of this rank and each channel, how many sends have been issued and how many
 *  receives are complete, and follows the semantics of collectives/schedule/schedule.h. With data, it moves
 *  real elements between the chips' work buffers; without, only sizes. Chips are named by their cells
 *  (net/machine.h), which differ from chip numbers on a folded machine only.
 *
 *  Steps with a direction go over that link; others are routed over all minimal paths. In an ordered
 *  schedule a chip hands each link one message at a time, lowest (priority, channel, step) first.
 *
 *  Threads: one per rank. */
#pragma once

#include "base/dtype.h"
#include "collectives/schedule/schedule.h"
#include "net/machine.h"

enum { POD_TAG_COLLECTIVE = 1 };

typedef struct pod_collective pod_collective;

typedef struct pod_collective_options {
    const pod_machine *machine;        /**< borrowed */
    pod_net *net;                      /**< borrowed */
    const pod_coll_schedule *schedule; /**< borrowed */
    uint32_t instance;                 /**< names it in tags */
    pod_dtype dtype;
    bool shared; /**< keeps more than two links of a chip busy: messages get the machine's
                      shared_frac of the links' rate */
    bool data;   /**< allocate work buffers and move elements */
    /** Called when all steps of a chip are done; may be NULL. */
    void (*done)(void *context, int32_t cell, uint32_t instance);
    /** Called when one more channel of a chip, or one less (change = 1, -1), has a message to or from another
     *  slice under way: sent and not gone, or due and not here. May be NULL. */
    void (*crossing)(void *context, int32_t cell, uint32_t instance, int change);
    void *context;
} pod_collective_options;

/** Local: POD_E_NOMEM only. */
pod_status pod_collective_new(const pod_collective_options *options, pod_collective **out,
                              pod_error *err);
void pod_collective_free(pod_collective *collective);

/** Let the engine bring near what handlers read of a chip (pod_engine_near_add). For a collective that lives until
 *  the engine has stopped. */
void pod_collective_near(const pod_collective *collective);

/** Work buffer of a part on a chip of this rank (slots as in schedule.h), NULL without data. The
 *  owner fills it before pod_collective_start and reads it after done. */
void *pod_collective_work(pod_collective *collective, int32_t cell, int32_t part);

/** A chip of this rank begins. From one of its handlers.
 *  @param order  of its messages to other slices (pod_machine_paths) */
void pod_collective_start(pod_collective *collective, int32_t cell, uint32_t order);

/** Hand on what the net says about messages whose tag names this instance. */
void pod_collective_arrived(pod_collective *collective, int32_t cell, pod_net_tag tag,
                            pod_payload *payload);
void pod_collective_sent(pod_collective *collective, int32_t cell, pod_net_tag tag);
/** Where the net's links carry one message at a time: a port that was awaited is free. */
void pod_collective_freed(pod_collective *collective, int32_t cell, int port);

/** True while the chip has steps to do; text says what it waits for. */
bool pod_collective_blocked(const pod_collective *collective, int32_t cell, char *text,
                            size_t size);
