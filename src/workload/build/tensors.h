/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/tensors.h  The arrays of a model that have a meaning outside one program.
 *
 *  Model: for real data each of these is found by its name in the programs of any layout: inputs and
 *  weights are filled before the step, outputs, gradients and updated weights compared after it.
 *  With microbatches or stages an array lies in several pieces: a tensor is one piece, some rows of
 *  the array, in one buffer of one stage, cut over mesh axes as its sharding says.
 *
 *  Ownership: init/fini. Threads: none. */
#pragma once

#include "mesh/sharding.h"
#include "program/program.h"

enum { POD_TENSOR_NAME_MAX = 24 };

typedef enum pod_tensor_role {
    POD_TENSOR_INPUT,    /**< filled with dense data */
    POD_TENSOR_TARGET,   /**< the derivative of the loss: filled, few elements per column */
    POD_TENSOR_WEIGHT,   /**< filled, few elements per column; compared after the step */
    POD_TENSOR_MOMENT,   /**< zero before the step */
    POD_TENSOR_GRADIENT, /**< compared after the step */
    POD_TENSOR_OUTPUT    /**< compared after the step */
} pod_tensor_role;

typedef struct pod_tensor {
    char name[POD_TENSOR_NAME_MAX]; /**< "W1.0" */
    pod_tensor_role role;
    int32_t stage;
    int32_t buffer;
    int64_t rows; /**< of the whole array */
    int64_t columns;
    int64_t row_first; /**< this piece is rows [row_first, row_first + row_count) */
    int64_t row_count;
    pod_sharding sharding; /**< of the piece */
    int32_t shift;         /**< as of pod_array */
} pod_tensor;

typedef struct pod_tensors {
    int32_t count;
    pod_tensor *item;
} pod_tensors;

void pod_tensors_fini(pod_tensors *tensors);
/** Add a copy. POD_E_NOMEM. */
pod_status pod_tensors_add(pod_tensors *tensors, const pod_tensor *tensor, pod_error *err);
