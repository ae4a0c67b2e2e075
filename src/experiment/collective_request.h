/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/collective_request.h  What is asked of a collective, whatever the slice.
 *
 *  Ownership: plain values, pointers borrowed. Threads: read-only. */
#pragma once

#include "base/dtype.h"
#include "base/table.h"
#include "collectives/msccl/msccl.h"
#include "collectives/schedule/schedule.h"
#include "mesh/device_mesh.h"

typedef struct pod_experiment_collective_request {
    pod_coll_op op;
    /* What a group is: physical axes, or axes of a mesh that JAX lays. */
    const char *axes; /**< "x", "xyz"; NULL = all chips of all slices, or as the mesh says */
    const pod_logical_mesh *mesh; /**< or NULL */
    unsigned mesh_axes;           /**< bit i: a group spans axis i of that mesh */
    bool dtype_given;             /**< else bf16, or int8 when the bytes are odd */
    pod_dtype dtype;
    const char *root;             /**< of a broadcast, as "0,0,0"; NULL = the first chip */
    const char *pairs;            /**< of a permute: "shift:x:1" or "transpose" … */
    const pod_table *pairs_table; /**< … or a table of sources and targets */
    const pod_msccl *program;     /**< of the algorithm `file`, else NULL */
    bool inside;                  /**< of a program: without the host's launch */
} pod_experiment_collective_request;
