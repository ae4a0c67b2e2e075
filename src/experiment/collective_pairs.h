/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/collective_pairs.h  The source of every rank of a permutation.
 *
 *      shift:x:1 on a group of 4 along x    0→1 1→2 2→3 3→0
 *      transpose of a group of 2x3          rank x + 2·y goes to the place of (y, x) in 3x2: y + 3·x
 *      a table                              source,target: ranks, or chips as "X,Y,Z"
 *
 *  Threads: none. */
#pragma once

#include "base/table.h"
#include "ici/group.h"

/** True for "transpose" and "shift:AXIS:N", which need no table. */
bool pod_experiment_pairs_are_named(const char *text);

/** Not collective.
 *  @param table  of pairs, or NULL: text says them
 *  @param[out] source_of  source_of[group->size], -1 where nobody sends
 *  @return POD_E_USAGE, POD_E_INVALID, POD_E_TABLE with position */
pod_status pod_experiment_pairs(const pod_slice *slice, const pod_group *group, const char *text,
                                const pod_table *table, int32_t *source_of, pod_error *err);
