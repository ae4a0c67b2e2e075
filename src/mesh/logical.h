/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/logical.h  The mesh a user asks for: named axes with sizes.
 *
 *  Names: a mesh may name its axes as its user likes (`x_batch=4,mdl2=8`); where it lies on a slice doesn't depend on
 *  names. A step asks what an axis is for: it takes those of pod_mesh_axis and their aliases (dp, tp, model, …) only
 *  (pod_logical_mesh_meant).
 *
 *  Model: `--mesh fsdp=16,tensor=4` is the mesh of one slice, slowest axis first, as JAX orders it:
 *  the last axis talks most and is laid first. `--dcn-mesh data=2` multiplies the axis of the same
 *  name over the slices; an axis named only there comes in front, with size 1 inside a slice. One
 *  size of each list may be -1: the rest of the devices (or slices).
 *
 *  A mesh counts chips, or, with `cores`, the cores of chips whose cores are devices of their own in
 *  JAX (v2, v3, tpu7x).
 *
 *  Ownership: plain storage of the caller. Threads: none (no state). */
#pragma once

#include "ici/slice.h"

typedef enum pod_mesh_axis {
    POD_MESH_DATA,
    POD_MESH_FSDP,
    POD_MESH_TENSOR,
    POD_MESH_SEQUENCE,
    POD_MESH_EXPERT,
    POD_MESH_PIPELINE,
    POD_MESH_FSDP_TRANSPOSE /**< a second axis of fsdp */
} pod_mesh_axis;

enum {
    POD_MESH_MEANINGS =
        POD_MESH_FSDP_TRANSPOSE + 1, /**< from here on: axes that only their user knows */
    POD_MESH_AXES = 8,               /**< of one mesh */
    POD_MESH_NAME_MAX = 32,
    POD_MESH_TEXT_MAX = POD_MESH_AXES * (POD_MESH_NAME_MAX + 12), /**< room for any mesh as text */
    POD_MESH_REST = -1 /**< a size still to be computed */
};

typedef struct pod_logical_mesh {
    int naxes;
    pod_mesh_axis axis[POD_MESH_AXES];
    char name[POD_MESH_AXES][POD_MESH_NAME_MAX]; /**< the user's; "" = that of `axis` */
    int32_t size[POD_MESH_AXES];                 /**< inside one slice */
    int32_t dcn_size[POD_MESH_AXES];             /**< slices along this axis */
    bool split_axes; /**< a physical axis may be shared by several mesh axes */
    bool contiguous; /**< chips of one host must stay together */
    bool cores;      /**< devices are cores, not chips */
} pod_logical_mesh;

/** "data" … "fsdp_transpose", static. */
const char *pod_mesh_axis_name(pod_mesh_axis axis);
/** The axis called name[0..length).
 *  @return POD_E_USAGE with the nearest name */
pod_status pod_mesh_axis_parse(const char *name, size_t length, pod_mesh_axis *axis,
                               pod_error *err);

/** Parse `--mesh` and `--dcn-mesh`, names as they are; the three switches become false. The lists share an axis where
 *  they give it one name, or names of one meaning (data, dp).
 *  @param dcn_mesh  NULL or "" when there is none
 *  @return POD_E_USAGE (empty, repeated or more axes than POD_MESH_AXES, no name, no number, -1 twice), POD_E_INVALID
 *          (size zero or below -1), POD_E_RANGE */
pod_status pod_logical_mesh_parse(const char *mesh, const char *dcn_mesh, pod_logical_mesh *logical,
                                  pod_error *err);
/** Hold a mesh to axes that mean something to a step; names become those of pod_mesh_axis_name.
 *  @return POD_E_USAGE (a name without meaning, with the nearest; two of one meaning) */
pod_status pod_logical_mesh_meant(pod_logical_mesh *logical, pod_error *err);
/** Name of axis `index` of a mesh, borrowed from it. */
const char *pod_logical_mesh_axis_name(const pod_logical_mesh *logical, int index);
/** The axis of a mesh that is called name[0..length): by its name, else by its meaning.
 *  @param what  how the error begins, as "--axis"
 *  @return POD_E_USAGE with the nearest name of the mesh */
pod_status pod_logical_mesh_axis_find(const pod_logical_mesh *logical, const char *what,
                                      const char *name, size_t length, int *index, pod_error *err);

/** "fsdp=16,tensor=4" into buf, the sizes inside a slice; axes that only span slices are left out
 *  unless nothing else is there. @return buf */
const char *pod_logical_mesh_print(const pod_logical_mesh *logical, char *buf, size_t size);
/** "data=2" into buf, the sizes over slices; "" when there is one slice. @return buf */
const char *pod_logical_mesh_print_dcn(const pod_logical_mesh *logical, char *buf, size_t size);

/** Size of an axis inside a slice; 1 where the mesh does not name it. */
int32_t pod_logical_mesh_size(const pod_logical_mesh *logical, pod_mesh_axis axis);

/** Leave out the axes that have size 1 in and across slices; at least one stays. */
void pod_logical_mesh_compact(pod_logical_mesh *logical);

/** Devices on a chip: the cores if the mesh counts cores, else 1.
 *  @return POD_E_INVALID if it counts cores and this chip's cores are no devices of their own */
pod_status pod_logical_mesh_cores(const pod_logical_mesh *logical, const pod_slice *slice,
                                  int32_t *cores, pod_error *err);
