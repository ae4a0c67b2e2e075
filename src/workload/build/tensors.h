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
#include "models/model_layer.h"
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

/** What a buffer of numbers of a transformer is, for those that fill and compare them. Bundles and their gradients are
 *  the matrices of a part of a layer one after the other, each as tensor cuts it, padded, and cut over the mesh axes of
 *  `cut` into equal pieces. With muon a layer's piece has a slice of each matrix, along its longer side. */
typedef enum pod_place_role {
    POD_PLACE_TOKENS, /**< [rows, 1]: of all chips of `cut`, one after the other; less the first of the chip's part */
    POD_PLACE_TARGETS, /**< [rows, 1]: likewise of this chip alone */
    /** [rows, 1]: in its sequence, of each token of this chip, or of all chips of `cut`, sequence by sequence */
    POD_PLACE_POSITIONS,
    /** [rows, 1]: likewise of one sequence, of this chip's tokens, then those of the chip before it along `cut`, … */
    POD_PLACE_RING_POSITIONS,
    /** [rows, 1]: of all rows of the chips of `cut`, which they are piece by piece (transformer_turns.h) */
    POD_PLACE_TURNED_ROWS,
    POD_PLACE_POSITION_ROWS, /**< as tokens: rows of trainable positions; -1 but on one chip of tensor */
    POD_PLACE_POSITION_GRADIENTS, /**< likewise on all of them */
    POD_PLACE_HEAD_ROWS,          /**< [rows, 1]: of this chip's, those that the head reads */
    POD_PLACE_PICTURES,           /**< [rows, pixels]: patches of this chip's pictures */
    POD_PLACE_PATCH_ROWS,         /**< as of a bias, -1 for the class of a picture */
    POD_PLACE_BIAS_ROWS,          /**< zeros: the only row of a bias */
    POD_PLACE_BIAS_ONCE,          /**< likewise, -1 but on one chip of tensor */
    POD_PLACE_WEIGHTS,
    POD_PLACE_SHARES, /**< of a bundle: 1 over the chips of tensor that have the same element */
    POD_PLACE_MOMENT, /**< zeros */
    POD_PLACE_UPDATED,
    POD_PLACE_FIRST_MOMENT, /**< after the update, as the second */
    POD_PLACE_SECOND_MOMENT,
    POD_PLACE_GRADIENT,
    POD_PLACE_NORMS,  /**< [2, 1]: sums of squares of a bundle's whole part */
    POD_PLACE_LOGITS, /**< [tokens of this chip, columns of its part of the vocabulary] */
    POD_PLACE_LOSS,   /**< [1, 1]: the sum over this chip's tokens */
    /** [tokens, d_model] of a layer, if its matmuls are in a byte: what it starts from, and the derivative by what it
     *  gives; of a chip's own piece of them, where tensor cuts rows */
    POD_PLACE_LAYER_INPUT,
    POD_PLACE_LAYER_DERIVATIVE,
    POD_PLACE_NEWTON, /**< of muon: a bundle's matrices after `newton` steps of Newton and Schulz */
    /* of inference (workload/verify/place_infer.h); filled: */
    POD_PLACE_EMBEDDED,        /**< [tokens, d_model]: what goes into the first layer */
    POD_PLACE_TOKEN_POSITIONS, /**< [tokens, 1] */
    POD_PLACE_KEY_POSITIONS,   /**< [sequences · keys, 1] */
    POD_PLACE_CACHE_READ,      /**< [sequences · keys, 1]: the row of the cache that each is in */
    POD_PLACE_CACHE_WRITE,     /**< [tokens, 1]: likewise of new tokens */
    POD_PLACE_CACHE,           /**< [rows, …] of a layer: filled, and taken after the step */
    POD_PLACE_CACHE_SCALES,    /**< likewise */
    POD_PLACE_CHOICES,         /**< [tokens, experts of a token] of a layer: taken */
    POD_PLACE_SQUARES, /**< [tokens, 1 or 2]: sums of rows for norm `part`, 0 or 1, of a layer; taken */
    POD_PLACE_LAST_LOGITS /**< [sequences, columns of a part of the vocabulary]: taken */
} pod_place_role;

typedef struct pod_place {
    pod_place_role role;
    int32_t stage;
    int32_t buffer;
    int32_t layer; /**< -1: the ends */
    int32_t
        part; /**< of a layer: pod_layer_part; of the ends: POD_PLACE_EMBEDDING, POD_PLACE_HEAD */
    int32_t microbatch;
    int32_t newton;
    pod_axis_list cut;
    pod_axis_list across; /**< of inference: d_model of each matrix is cut over these */
} pod_place;

enum {
    POD_PLACE_EMBEDDING = POD_LAYER_PARTS,
    POD_PLACE_HEAD,
    POD_PLACE_TABLE /**< by rows, tied or not */
};

typedef struct pod_tensors {
    int32_t count;
    pod_tensor *item;
    int32_t nplaces;
    pod_place *places;
} pod_tensors;

void pod_tensors_fini(pod_tensors *tensors);
/** Add a copy. POD_E_NOMEM. */
pod_status pod_tensors_add(pod_tensors *tensors, const pod_tensor *tensor, pod_error *err);
pod_status pod_tensors_place(pod_tensors *tensors, const pod_place *place, pod_error *err);
