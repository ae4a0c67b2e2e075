/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/slice_links.h  What the cables of a slice do: for a mesh, and in a collective.
 *
 *  Arrays have an entry per chip of one slice and direction: [chip * POD_DIRECTIONS + direction].
 *  Threads: one per rank. */
#pragma once

#include "experiment/collective_row.h"

/** The mesh axis that a cable serves: the one along which the two chips alone differ; -1 if they differ along several.
 *  Not collective.
 *  @param[out] axis_of  place in mesh->axis, or -1 */
void pod_experiment_links_of_mesh(const pod_slice *slice, const pod_mesh *mesh, int32_t *axis_of);

/** The part of a collective's time in which each link carried something, by the algorithm that is predicted
 *  cheapest. Collective.
 *  @param[out] busy_frac  0 to 1, on rank 0
 *  @return what pod_experiment_collective_run says */
pod_status pod_experiment_links_of_collective(pod_experiment *experiment,
                                              pod_experiment_collective_case *run_case,
                                              int64_t bytes, pod_experiment_collective_row *row,
                                              double *busy_frac, pod_error *err);
