/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/search.h  Which meshes work on a slice: all of them, and the nearest to a wish.
 *
 *  Model: all ways to write the number of devices as an ordered product over the mesh's axes, of
 *  which the layout rules (mesh/layout.h) refuse some. Axes that have a size in the wish of
 *  pod_logical_mesh_list keep it.
 *
 *  The distance of two meshes is Σ |log(size / other size)|, so doubling one axis and halving
 *  another counts as much either way; ties go to the mesh that loses or adds fewer axes (size 1),
 *  then to the one whose later axes, which talk most, keep their size.
 *
 *  Ownership: plain storage; the list belongs to the caller. Threads: none (no state). */
#pragma once

#include "mesh/layout.h"

/** The nearest mesh that works, with the same axes and switches.
 *  @param wish  sizes >= 1, or POD_MESH_REST (no wish for that axis)
 *  @return false if none does */
bool pod_mesh_suggest(const pod_slice *slice, const pod_logical_mesh *wish, int32_t cores,
                      pod_logical_mesh *nearest);

/** All meshes with the axes and switches of `wish` that JAX lays on the slice.
 *  @param wish  POD_MESH_REST in every axis (any number of them) whose size is to be searched
 *  @param[out] list  array of *count meshes, earlier axes smallest first, for free(); NULL when
 *                    there are none
 *  @return POD_E_NOMEM */
pod_status pod_logical_mesh_list(const pod_slice *slice, const pod_logical_mesh *wish,
                                 int32_t cores, pod_logical_mesh **list, int *count,
                                 pod_error *err);
