/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/device_mesh.h  A logical mesh laid on a slice, or on several slices.
 *
 *  Model: device i of the mesh, in row-major order of the mesh axes (the last one fastest), is a
 *  chip of a slice (or a core of it). Inside a slice the order comes from JAX's rules
 *  (mesh/layout.h) or from a placement by hand (mesh/placement.h). Over several slices it is JAX's
 *  create_hybrid_device_mesh: the coordinate along an axis is dcn · size inside + inside, slices
 *  are numbered row-major over the dcn sizes, and every slice is laid the same way.
 *
 *  For each axis, the figures of `podsim mesh`:
 *   physical  the parts, slowest first, as in mesh/layout.h ("xy", "x[4@4]z", "-" for size 1);
 *             "ring:xy" or "list:xy" when the devices come in an order of JAX's own, with the axes
 *             along which chips differ; over several slices "dcn" or "dcn+xy".
 *   closed    every part closes: its last position is one stride before its first, over the wrap.
 *             On a twisted slice crossing the wrap of x moves along other axes too: the ring closes
 *             only if the mesh axis has those axes as well. Of an order of JAX's own: all steps,
 *             and the one from last to first, are at most one hop, over more than two chips. Slices
 *             and the cores of a chip are all joined, so they don't open a ring. Size 1 is closed.
 *   links     directions in which a chip in the middle has a next or previous device. A chip at the
 *             end of an open part has one less. Parts with a stride share their links with the
 *             groups between them.
 *   hops_max  longest way, over ICI, from one device to the next along the axis (from the last to
 *             the first too, if the ring closes).
 *
 *  Ownership: init allocates device[] and index_of[], fini frees. Threads: read-only after init. */
#pragma once

#include "ici/group.h"
#include "mesh/layout.h"
#include "mesh/mesh.h"
#include "mesh/placement.h"
#include "mesh/resolve.h"

/** Lay a mesh by JAX's rules.
 *  @param logical  -1 allowed
 *  @return POD_E_INVALID: "wrong product", "axis needs a split" or "not contiguous", each with the
 *          nearest mesh that works; POD_E_USAGE (contiguous over several slices), POD_E_RANGE,
 *          POD_E_NOMEM */
pod_status pod_mesh_init(pod_mesh *mesh, const pod_slice *slice, const pod_logical_mesh *logical,
                         pod_error *err);

/** Lay a mesh by hand. The switches split_axes and contiguous play no part.
 *  @return POD_E_INVALID (a part missing, used twice or of the wrong size), else as pod_mesh_init */
pod_status pod_mesh_init_placed(pod_mesh *mesh, const pod_slice *slice,
                                const pod_logical_mesh *logical, const pod_placement *placement,
                                pod_error *err);

void pod_mesh_fini(pod_mesh *mesh);

/** Place of a mesh axis in mesh->axis, or -1. */
int pod_mesh_find(const pod_mesh *mesh, pod_mesh_axis axis);
/** Mesh coordinates of device `index`. @param coords  mesh->naxes, in the mesh's order */
void pod_mesh_coords(const pod_mesh *mesh, int32_t index, int32_t *coords);
int32_t pod_mesh_index(const pod_mesh *mesh, const int32_t *coords);

/** "12", "12.1" (core), "2:12" (slice) or "2:12.1" into buf. @return buf */
const char *pod_mesh_device_print(const pod_mesh *mesh, int32_t index, char *buf, size_t size);

/** Groups of chips that differ only along some mesh axes, inside a slice (the dcn part left out).
 *
 *  The group is a grid when the mesh has parts: its dims are the parts in the order of the physical
 *  axes, parts of one axis that fit together merged, so that algorithms see the largest rings. So
 *  ranks need not count as the mesh does: rank r is position index_of_rank[r] of the row-major order
 *  over the chosen mesh axes. An ordered mesh gives lists, and ranks count as the mesh does.
 *  @param axes           bit i = mesh->axis[i]; 0 = groups of one chip
 *  @param index_of_rank  NULL, or room for the product of the slice_sizes of the axes
 *  @return POD_E_INVALID for a mesh of cores, else as pod_group_init_dims and _lists */
pod_status pod_mesh_group(const pod_mesh *mesh, const pod_slice *slice, unsigned axes,
                          pod_group *group, int32_t *index_of_rank, pod_error *err);

/** Number of slices that a group over `axes` spans: the product of their dcn_sizes. */
int32_t pod_mesh_slices_of(const pod_mesh *mesh, unsigned axes);
/** Groups of slices that differ only along `axes`.
 *  @param[out] slices  nslices entries: slices[group · pod_mesh_slices_of + rank], groups numbered
 *                      by their smallest slice, ranks row-major over the mesh axes */
void pod_mesh_slice_groups(const pod_mesh *mesh, unsigned axes, int32_t *slices);

/** The groups of pod_mesh_group, joined where their axes go on over slices: those that a collective over the
 *  axes has. Not collective.
 *  @return as pod_mesh_group and pod_group_init_slices; after an error there is nothing to free */
pod_status pod_mesh_group_joined(const pod_mesh *mesh, const pod_slice *slice, unsigned axes,
                                 pod_group *group, pod_error *err);
