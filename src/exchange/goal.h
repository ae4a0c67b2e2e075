/* SPDX-License-Identifier: Apache-2.0 */
/** @file exchange/goal.h  GOAL, the text form of LogGOPSim: messages and calculations of ranks, with dependencies.
 *
 *      num_ranks 2
 *      rank 0 {
 *        l1: calc 1500                       nanoseconds
 *        l2: send 4096b to 1 tag 7
 *        l2 requires l1                      l2 starts after l1 has ended
 *      }
 *      rank 1 {
 *        l1: recv 4096b from 0 tag 7         from -1, tag -1: any
 *        l2: calc 10
 *        l2 irequires l1                     l2 starts after l1 has begun
 *      }
 *
 *  A statement ends with its line. Labels hold inside their rank, before and after they are defined; label and tag may
 *  be missing (tag 0). `cpu C` and `nic C` are read and ignored. Comments are as in C.
 *
 *  Programs (program/program.h): rank r is chip r. calc is a compute op, of no time a join; messages are matched when
 *  they arrive: with the receive that was ready first of those that ask for them.
 *
 *  Ownership: init by reading, fini. Threads: none; not collective. Errors, with the line: POD_E_INVALID, POD_E_RANGE,
 *  POD_E_NOMEM. */
#pragma once

#include "base/text.h"
#include "ici/slice.h"
#include "program/program.h"

enum { POD_GOAL_ANY = -1, POD_GOAL_STATEMENTS_MAX = 4000000 };

typedef enum pod_goal_kind { POD_GOAL_CALC, POD_GOAL_SEND, POD_GOAL_RECV } pod_goal_kind;

typedef struct pod_goal_statement {
    pod_goal_kind kind;
    int32_t rank;
    int32_t line;
    int64_t label;  /**< place in text, or -1 */
    int64_t amount; /**< bytes, or nanoseconds */
    int32_t peer;   /**< or POD_GOAL_ANY */
    int32_t tag;    /**< or POD_GOAL_ANY */
} pod_goal_statement;

/** Statement `what` starts after statement `on` has ended, or begun. Places in statements. */
typedef struct pod_goal_dependency {
    int64_t what;
    int64_t on;
    int32_t line;
    bool begun;
} pod_goal_dependency;

typedef struct pod_goal {
    char *file;
    int32_t nranks;
    int64_t *first; /**< first[rank] … first[rank + 1): its statements, in the order of the file */
    int64_t nstatements;
    int64_t statements_room;
    pod_goal_statement *statements;
    int64_t ndependencies;
    int64_t dependencies_room;
    pod_goal_dependency *dependencies;
    int64_t ignored; /**< statements with cpu or nic */
    pod_text text;   /**< labels, each ended by a NUL */
} pod_goal;

/** Read a file. That messages have partners is checked, too, as far as it can be known before they are matched.
 *  @param file       its name, for errors
 *  @param[out] goal  for pod_goal_fini, also after an error */
pod_status pod_goal_read(const char *file, const char *text, size_t size, pod_goal *goal,
                         pod_error *err);
void pod_goal_fini(pod_goal *goal);

/** The programs of the chips of a slice. @param[out] programs  for pod_programs_fini, also after an error
 *  @return POD_E_INVALID for more ranks than chips, or statements of a rank that wait for each other */
pod_status pod_goal_programs(const pod_goal *goal, const pod_slice *slice, pod_programs *programs,
                             pod_error *err);
