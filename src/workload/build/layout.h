/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/layout.h  Which mesh axes cut what.
 *
 *  Model: rows of the batch (tokens) are cut over every axis that holds different rows: data, fsdp
 *  and sequence. Weights are cut over fsdp and tensor; layers over pipeline. fsdp_transpose is a
 *  second axis of fsdp. Axes of size 1 cut
 *  nothing and are left out. In the notation of mesh/sharding.h, for an MLP:
 *
 *      X[rows_{data,fsdp,sequence}, d_model]      W1[d_model_fsdp, d_ff_tensor]
 *      H[rows_{data,fsdp,sequence}, d_ff_tensor]  W2[d_ff_{tensor,fsdp}, d_model]
 *
 *  The collectives of a step follow from these cuts (workload/build/build.h).
 *
 *  Ownership: borrows mesh and slice; plain value. Threads: none. */
#pragma once

#include "mesh/device_mesh.h"
#include "mesh/sharding.h"

typedef struct pod_work_layout {
    const pod_mesh *mesh;
    const pod_slice *slice;
    int32_t size[POD_MESH_AXES]; /**< by pod_mesh_axis, all slices together; 1 if not in the mesh */
    pod_axis_list rows;          /**< all but tensor and pipeline, in the order of the mesh */
    pod_axis_list fsdp;          /**< fsdp, fsdp_transpose, both or nothing */
    pod_axis_list tensor;        /**< tensor or nothing */
    pod_axis_list expert;        /**< expert or nothing */
    int32_t stages;              /**< size of pipeline */
} pod_work_layout;

/** Not collective.
 *  @return POD_E_INVALID: a mesh of cores */
pod_status pod_work_layout_init(pod_work_layout *layout, const pod_mesh *mesh,
                                const pod_slice *slice, pod_error *err);

/** Product of the sizes of a list's axes. */
int32_t pod_work_layout_pieces(const pod_work_layout *layout, const pod_axis_list *list);
/** Which of those pieces a chip has; the first axis of the list counts most.
 *  @param chip  slice · chips of a slice + number in its slice */
int32_t pod_work_layout_piece(const pod_work_layout *layout, const pod_axis_list *list,
                              int32_t chip);
/** Pipeline stage of a chip, numbered likewise. */
int32_t pod_work_layout_stage(const pod_work_layout *layout, int32_t chip);
/** The chip with the same coordinates but for the stage, numbered likewise. */
int32_t pod_work_layout_stage_chip(const pod_work_layout *layout, int32_t chip, int32_t stage);
/** Mask of mesh->axis positions of a list, as pod_mesh_group takes it. */
unsigned pod_work_layout_mask(const pod_work_layout *layout, const pod_axis_list *list);

/** `a` followed by the axes of `b`. */
pod_axis_list pod_axis_list_join(pod_axis_list a, const pod_axis_list *b);

/** Check that `size` of something, called `what` ("d_ff"), divides over the axes of a list.
 *  @return POD_E_INVALID naming both and the divisors of size */
pod_status pod_work_divides(const pod_work_layout *layout, const char *what, int64_t size,
                            const pod_axis_list *list, pod_error *err);
