/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/layout.h  Where each mesh axis lies on one slice, by JAX's rules.
 *
 *  Model: the devices of a slice are a grid x, y, z (and core, where cores are devices). A mesh axis
 *  gets a list of parts, slowest first; a part is `size` positions of one physical axis, `stride`
 *  positions apart. Its text, which users may also write (`--placement`):
 *
 *      x          all of x                    x[4]     4 neighbours along x
 *      yz         y slower, z faster          x[4@2]   4 positions of x, 2 apart
 *      c          the cores of a chip
 *
 *  The rules are those of JAX 0.10.2, jax/_src/mesh_utils.py (create_device_mesh):
 *   1. v2 and v3 (cores): the devices in host order (hosts of 2x2 chips), reshaped; one tray of 8
 *      cores, or every run of 8 when the last mesh axis is 8, goes round its ring.
 *   2. v5e and v6e: 2x2, any 8 chips, and 4x4 if one mesh axis has all 16: a fixed order, reshaped.
 *   3. tpu7x (cores), x and y at most 2, up to 32 devices: host order, each 8 round their ring.
 *   4. Everything else: mesh axes from last to first, each takes the most whole physical axes that
 *      are left and multiply to its size; among equally many the first in the order x, y, z, core.
 *   5. If 4 fails and splitting is allowed, start again: each mesh axis, from last to first, takes
 *      divisors of what is left of the physical axes. The best choice has, in this order: the
 *      largest product of whole axes; the most whole axes; the largest product on axes that earlier
 *      choices have begun; more of x, then of y, then of z. Of the mesh axes that share a physical
 *      axis the last has stride 1.
 *   6. contiguous: only the shapes of a short list, with y and z exchanged before rule 4.
 *  Wrap and twist play no part. Meshes of chips on v2, v3 and tpu7x, which JAX doesn't have, follow
 *  rules 4 to 6.
 *
 *  In 1 to 3 there is an order of devices instead of parts.
 *
 *  Ownership: plain storage of the caller. Threads: none (no state). */
#pragma once

#include "mesh/logical.h"

enum {
    POD_MESH_CORE_AXIS = POD_AXES,         /**< the part axis that counts cores of a chip */
    POD_MESH_PHYSICAL_AXES = POD_AXES + 1, /**< x, y, z, core */
    POD_MESH_PARTS_MAX = 8
};

typedef struct pod_mesh_part {
    int axis; /**< 0 x, 1 y, 2 z, POD_MESH_CORE_AXIS */
    int32_t size;
    int32_t stride;
} pod_mesh_part;

typedef struct pod_mesh_parts {
    int count;
    pod_mesh_part part[POD_MESH_PARTS_MAX]; /**< slowest first; sizes above 1 */
} pod_mesh_parts;

typedef struct pod_layout {
    bool ordered; /**< the devices come in an order of JAX's own; there are no parts */
    pod_mesh_parts axis[POD_MESH_AXES]; /**< of mesh axis i of the logical mesh */
} pod_layout;

typedef enum pod_layout_refusal {
    POD_LAYOUT_OK,
    POD_LAYOUT_NEEDS_SPLIT,
    POD_LAYOUT_NOT_CONTIGUOUS
} pod_layout_refusal;

/** Lay a mesh on a slice by JAX's rules. No error text: callers that search many meshes need none.
 *  @param logical  resolved (pod_logical_mesh_resolve)
 *  @param[out] failed_axis  the mesh axis that found no place, or -1; may be NULL */
pod_layout_refusal pod_layout_jax(const pod_slice *slice, const pod_logical_mesh *logical,
                                  int32_t cores, pod_layout *layout, int *failed_axis);

/** The devices of an ordered layout.
 *  @param[out] order  order[i] = device i, as chip·cores + core; all devices of one slice */
void pod_layout_order(const pod_slice *slice, const pod_logical_mesh *logical, int32_t cores,
                      int32_t *order);

/** Dims of the slice with cores as fourth axis. */
void pod_layout_dims(const pod_slice *slice, int32_t cores, int32_t dims[POD_MESH_PHYSICAL_AXES]);

/** Parts as text, "-" if there are none. @return buf */
const char *pod_mesh_parts_print(const pod_mesh_parts *parts,
                                 const int32_t dims[POD_MESH_PHYSICAL_AXES], char *buf,
                                 size_t size);
