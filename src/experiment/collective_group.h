/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/collective_group.h  The groups of a collective: physical axes, or axes of a mesh; inside
 *  a slice, or over several.
 *
 *  Threads: none. */
#pragma once

#include "experiment/collective_request.h"
#include "ici/group.h"

enum { POD_EXPERIMENT_AXES_MAX = 96 };

/** Not collective.
 *  @param[out] group  for pod_group_fini when it is POD_OK
 *  @param[out] axes   what the groups span, as "xy", "dcn+xyz" or "x+y"
 *  @return POD_E_USAGE (an axis that isn't there), what pod_mesh_init and pod_group_init_axes say */
pod_status pod_experiment_collective_group(const pod_experiment_collective_request *request,
                                           const pod_slice *slice, pod_group *group,
                                           char axes[POD_EXPERIMENT_AXES_MAX], pod_error *err);

/** How the mesh of the request counts the ranks of a group: along its axes, row-major, a slice after the other.
 *  Not collective.
 *  @param[out] index_of_rank  index_of_rank[group->size]
 *  @return what pod_mesh_init and pod_mesh_group say */
pod_status pod_experiment_collective_mesh_order(const pod_experiment_collective_request *request,
                                                const pod_slice *slice, const pod_group *group,
                                                int32_t *index_of_rank, pod_error *err);
