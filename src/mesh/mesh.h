/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/mesh.h  A mesh laid on slices: its axes and its devices. device_mesh.h makes it, describe.h
 *  fills in what its axes are like. */
#pragma once

#include "mesh/layout.h"

enum { POD_MESH_PHYSICAL_TEXT_MAX = 96 };

typedef struct pod_mesh_device {
    int32_t slice;
    int32_t chip; /**< number inside its slice */
    int32_t core; /**< 0 unless the mesh counts cores */
} pod_mesh_device;

typedef struct pod_mesh_axis_info {
    pod_mesh_axis axis;
    int32_t size;       /**< in all: inside · dcn_size */
    int32_t slice_size; /**< inside one slice */
    int32_t dcn_size;
    pod_mesh_parts parts; /**< inside one slice; none if the mesh is ordered */
    char physical[POD_MESH_PHYSICAL_TEXT_MAX];
    bool closed;
    int links;
    int32_t hops_max;
} pod_mesh_axis_info;

typedef struct pod_mesh {
    pod_logical_mesh logical; /**< resolved */
    int naxes;
    pod_mesh_axis_info axis[POD_MESH_AXES];
    bool ordered;  /**< JAX's own order of devices: axes have no parts */
    int32_t cores; /**< devices of a chip: 1 or 2 */
    int32_t nslices;
    int32_t nslice_devices;  /**< devices of one slice */
    int32_t ndevices;        /**< of all slices */
    pod_mesh_device *device; /**< device[ndevices], row-major */
    /** index_of[slice · nslice_devices + chip · cores + core] = place in device */
    int32_t *index_of;
} pod_mesh;
