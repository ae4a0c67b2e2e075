/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/mlp_pieces.h  Private to workload/mlp/: matmuls with gathers and sums over tensor taken apart
 *  (collective matmul: Wang et al., Overlap Communication with Dependent Computation via Decomposition, ASPLOS 2023).
 *
 *  Model: n chips of a tensor group hold a piece of rows/n rows each, numbered as in workload/build/ring.h.
 *
 *      gather and multiply    each chip's piece travels both ways round the ring; a chip multiplies the pieces as they
 *                             come
 *      multiply and scatter   sums travel. For the piece of position p one sum comes from lower positions and one from
 *                             higher ones, each chip on the way adding its product, and p adds its own. Sums from
 *                             higher positions start n/2 chips away: chip i adds its product of piece s to the sum
 *                             that is s chips from its goal
 *
 *  Ownership: borrows everything. Errors stick in mlp->stage.build.st. Threads: none. */
#pragma once

#include "workload/build/ring.h"
#include "workload/mlp/mlp_state.h"

/** Pieces of the rows over tensor. */
typedef struct pod_pieces {
    const pod_axis_list *axes;
    pod_piece_ring ring;
} pod_pieces;

pod_pieces pod_pieces_of(const pod_mlp *mlp);

/** A sharding whose rows are cut over tensor, too. */
pod_sharding pod_pieces_cut(const pod_mlp *mlp, const pod_sharding *sharding);
/** Arrays that a layer keeps of a microbatch: the pieces of its input, then those of its first product. */
int pod_pieces_saved(const pod_mlp *mlp);
/** The array whose shards piece number s of all chips are. @param sharding  with rows whole over tensor */
pod_array pod_pieces_back(const pod_mlp *mlp, const pod_array *piece, int32_t s,
                          const pod_sharding *sharding);

/** Let pieces travel: arrays of rows/n rows.
 *  @param array        rows cut over tensor; each chip's shard is its own piece
 *  @param[out] pieces  pieces[s] for all s */
void pod_pieces_gather(pod_mlp *mlp, const char *phase, int32_t layer, const pod_array *array,
                       pod_array *pieces);

typedef struct pod_piece_product {
    const char *phase; /**< "fwd" or "bwd", static */
    int32_t layer;
    const pod_sharding *result; /**< of rows whole over tensor; partial sums are not added up */
    const pod_array *w;
} pod_piece_product;

/** @param into  to add to, or NULL */
pod_array pod_pieces_multiply(pod_mlp *mlp, const pod_piece_product *product,
                              const pod_array *piece, const pod_array *into);

typedef struct pod_piece_scatter {
    pod_piece_product product; /**< result: of the sum, with rows whole over tensor */
    const pod_array *pieces;
    pod_weight *weight; /**< whose gradient's pieces fill the gaps; NULL: none */
    const pod_array *x; /**< pieces, like those of the scatter */
} pod_piece_scatter;

/** @return the sum over tensor, rows cut over tensor */
pod_array pod_pieces_scatter(pod_mlp *mlp, const pod_piece_scatter *scatter);
