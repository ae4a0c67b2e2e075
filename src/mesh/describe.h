/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/describe.h  The figures of a mesh axis: physical, closed, links, hops_max.
 *
 *  Model and meaning: mesh/device_mesh.h. The distance of two chips is that of a healthy slice. On a
 *  twisted slice walking once round axis a changes the other coordinates by twist[a], so a
 *  displacement d can be walked as d + Σ k_a (dims[a]·e_a - twist[a]) for any whole k; the shortest
 *  of those (Camarero et al., arXiv 1311.2019: the slice is a Cayley graph of Z^3 over a lattice). */
#pragma once

#include "mesh/mesh.h"

/** Hops of a shortest walk that changes the coordinates by `delta`. On an open axis delta must not
 *  leave it. */
int32_t pod_mesh_hops(const pod_slice *slice, const int32_t delta[POD_AXES]);

/** Fill in physical, closed, links and hops_max of mesh->axis[axis]. */
void pod_mesh_describe_axis(pod_mesh *mesh, const pod_slice *slice, int axis);
