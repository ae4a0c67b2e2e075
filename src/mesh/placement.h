/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/placement.h  Mesh axes on physical axes by hand, and all ways to do it.
 *
 *  Model: `tensor:x,data:yz` gives mesh axis after mesh axis its parts, slowest first, in the
 *  notation of mesh/layout.h: `x`, `x[4]` (4 neighbours), `x[4@2]` (4 positions, 2 apart). The parts
 *  of a physical axis must tile it: strides 1, then size·stride of the part before, up to the whole
 *  axis. In a mesh of cores `c` is the cores of a chip. Slices of a multi-slice mesh are placed as
 *  `--dcn-mesh` says, not here.
 *
 *  Ownership: plain storage; the list of pod_placement_list belongs to the caller. Threads: none. */
#pragma once

#include "mesh/layout.h"

typedef struct pod_placement {
    int naxes;
    pod_mesh_axis axis[POD_MESH_AXES];
    pod_mesh_parts parts[POD_MESH_AXES];
} pod_placement;

/** Parse `tensor:x,data:yz[4@2]` for a slice. A letter without brackets is the whole axis.
 *  @param cores  1, or 2 for a mesh of cores
 *  @return POD_E_USAGE (no such mesh axis, named twice, not in this notation), POD_E_INVALID (an axis
 *          the slice doesn't have, a size or stride that doesn't divide it) */
pod_status pod_placement_parse(const char *text, const pod_slice *slice, int32_t cores,
                               pod_placement *placement, pod_error *err);
/** "tensor:x,data:yz"; mesh axes without parts are left out. @return buf */
const char *pod_placement_print(const pod_placement *placement, const pod_slice *slice,
                                int32_t cores, char *buf, size_t size);

/** The layout of a mesh under a placement.
 *  @param logical  resolved
 *  @return POD_E_INVALID: a mesh axis without place, of another size than its parts, or a physical
 *          axis that the parts don't tile */
pod_status pod_layout_place(const pod_slice *slice, const pod_logical_mesh *logical, int32_t cores,
                            const pod_placement *placement, pod_layout *layout, pod_error *err);

/** All placements of a mesh on a slice: whole physical axes, and, with split_axes, also parts of
 *  them, in every nesting. Physical axes that a healthy slice can't tell apart (same size and wrap,
 *  no twist) are not exchanged with each other: one of the equal placements is listed. The order
 *  depends on nothing but the arguments.
 *  @param logical  resolved, chips only
 *  @param[out] list  array of *count placements, for free(); NULL when there are none
 *  @return POD_E_NOMEM */
pod_status pod_placement_list(const pod_slice *slice, const pod_logical_mesh *logical,
                              pod_placement **list, int *count, pod_error *err);
