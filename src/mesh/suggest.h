/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/suggest.h  The nearest mesh that works, for error messages.
 *
 *  Model: all ways to write the number of devices as an ordered product over the mesh's axes that
 *  the layout rules accept. The distance of two meshes is Σ |log(size / other size)|, so doubling
 *  one axis and halving another counts as much either way; ties go to the mesh that loses or
 *  adds fewer axes (size 1), then to the one whose later axes, which talk most, keep their size. */
#pragma once

#include "mesh/layout.h"

/** The nearest mesh that works, with the same axes and switches.
 *  @param logical  sizes >= 1, or POD_MESH_REST (no wish for that axis)
 *  @return false if none does */
bool pod_mesh_suggest(const pod_slice *slice, const pod_logical_mesh *logical, int32_t cores,
                      pod_logical_mesh *nearest);
