/* SPDX-License-Identifier: Apache-2.0 */
/** @file exchange/goal_write.h  Programs as GOAL (goal.h): a rank for each chip.
 *
 *  Model: an op of the core or the host is a calc (oN of op N, the host's on cpu 1, copies on cpu 2), messages are
 *  messages, and a collective the steps of its schedule: oNcCsS sends, oNcCrS receives, in step S of channel C, after
 *  what collectives/schedule/schedule.h says they wait for; oNb begins and oN ends it. Its messages have a tag for each
 *  channel and step of the receiver. Chips that pass a message on don't appear.
 *
 *  Ownership: borrows all. Threads: none; not collective. Errors: POD_E_NOMEM, and what `schedule` says. */
#pragma once

#include "base/text.h"
#include "collectives/schedule/schedule.h"
#include "program/program.h"

typedef struct pod_goal_written {
    const pod_programs *programs;
    int32_t nchips;                 /**< of all slices */
    const pod_time_ps *const *took; /**< took[chip][op]: of ops of core and host, and of copies */
    /** The schedule of a collective; stays the context's. */
    pod_status (*schedule)(void *context, const pod_op *op, const pod_coll_schedule **schedule,
                           pod_error *err);
    void *context;
} pod_goal_written;

/** @param[in,out] text  appended to */
pod_status pod_goal_write(const pod_goal_written *what, pod_text *text, pod_error *err);
