/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/collective_pairs.h  The source of every rank of a permutation.
 *
 *      shift:x:1 on a group of 4 along x    0→1 1→2 2→3 3→0
 *      shift:tensor:1 on groups along the mesh axis tensor: each to the next in the mesh's order, the last to the
 *                                           first (JAX's ppermute)
 *      transpose of a group of 2x3          rank x + 2·y goes to the place of (y, x) in 3x2: y + 3·x
 *      a table                              source,target: ranks, or chips as "X,Y,Z"
 *
 *  Threads: none. */
#pragma once

#include "experiment/collective_request.h"
#include "ici/group.h"

/** True for "transpose" and "shift:AXIS:N", which need no table. */
bool pod_experiment_pairs_are_named(const char *text);

/** Not collective.
 *  A shift along a physical axis that the group doesn't span is refused; one by a multiple of the axis is not, though
 *  it sends nothing (pod_experiment_pairs_send_nothing).
 *  @param request  its pairs, or its table of them
 *  @param[out] source_of  source_of[group->size], -1 where nobody sends
 *  @return POD_E_USAGE, POD_E_INVALID, POD_E_TABLE with position */
pod_status pod_experiment_pairs(const pod_experiment_collective_request *request,
                                const pod_slice *slice, const pod_group *group, int32_t *source_of,
                                pod_error *err);

/** True when every rank keeps its vector or gets none. */
bool pod_experiment_pairs_send_nothing(const int32_t *source_of, int32_t ranks);
