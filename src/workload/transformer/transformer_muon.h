/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_muon.h
 *  Private to workload/transformer/: numbers of Muon (transformer_update.h has its costs).
 *
 *  Model: a chip stores of each matrix of a layer a slice along the longer side, as the products of Newton and Schulz
 *  want it; other optimizers store equal pieces of the bundle as it lies. What is gathered comes slice after slice, and
 *  the pass that brings it to the layout of matmuls makes matrices of it; gradients are cut into slices by theirs.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** `count` matrices of a matmul, one after the other, in the chip's piece of a bundle and in the whole of it. */
typedef struct pod_tf_slices {
    bool wide; /**< the longer side is that of the columns */
    int64_t count;
    int64_t rows; /**< of a slice */
    int64_t columns;
    int64_t first; /**< element of the piece */
    int64_t whole; /**< likewise of the bundle */
    int64_t pitch; /**< columns of a whole matrix */
} pod_tf_slices;

/** What the products of one kind of matrix leave: buffers of numbers. */
typedef struct pod_tf_newton {
    pod_tf_slices slices;
    pod_axis_list axes; /**< over which a matrix is cut, */
    int32_t pieces;     /**< into so many */
    int32_t made;       /**< by the last product, before what chips exchange of it */
    int32_t gram;
    int32_t square;
} pod_tf_newton;

/** @return how many kinds of matrices a layer's bundle has */
int pod_tf_slices_of(const pod_tf *tf, const pod_tf_bundle *bundle,
                     pod_tf_slices slices[POD_LAYER_MATMULS_MAX]);
/** Matrices of a bundle; 1 of the ends of the model. */
int64_t pod_tf_muon_matrices(const pod_tf *tf, const pod_tf_bundle *bundle);
/** The last core op puts a gathered bundle into the order of matrices, or a gradient into that of slices. */
void pod_tf_muon_relayout(pod_tf *tf, const pod_tf_bundle *bundle, int32_t buffer, bool back);

/** The last core op begins the steps of a kind: its matrices of norm 1, by their sums of squares.
 *  @param to  the bundle's pieces */
void pod_tf_newton_begin(pod_tf *tf, const pod_tf_bundle *bundle, const pod_tf_newton *newton,
                         int64_t norm_row, int32_t to);
/** The last core op is product `which` of a step: gram, square, step. @param x  [2]: the pieces before it and after */
void pod_tf_newton_product(pod_tf *tf, pod_tf_newton *newton, int which, const int32_t x[2]);
/** `op` exchanges what it made; POD_OP_NONE: it is whole. */
void pod_tf_newton_exchange(pod_tf *tf, pod_tf_newton *newton, int which, int32_t op);
/** The bundle's pieces in a step, compared. */
int32_t pod_tf_newton_pieces(pod_tf *tf, const pod_tf_bundle *bundle);
