/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/sharding.h  Arrays cut over mesh axes, and what a sharded matmul must communicate.
 *
 *  Notation of the scaling book (chapter "Sharded Matrices"), with the names of podsim's mesh axes:
 *
 *      A[I_data, J_tensor]        dim I cut over data, dim J over tensor
 *      W[D_{fsdp,tensor}, F]      dim D cut over fsdp, each piece again over tensor
 *      C[I_data, K] {U_tensor}    chips along tensor hold partial sums that are still to be added
 *
 *  A mesh axis may cut an array once. An axis that is not named holds copies.
 *
 *  A product C = A·B contracts the dims that A and B share. The four cases of the book:
 *   1. The contracting dim is whole in both                 no communication
 *   2. It is cut in one operand:  A[I, J_X]·B[J, K]         all-gather that operand over X
 *   3. It is cut the same way in both:   A[I, J_X]·B[J_X, K]       multiply, then sum: all-reduce over X, or
 *                                                           reduce-scatter if C is to be cut by X
 *   4. Both other dims are cut by X: A[I_X, J]·B[J, K_X]    refused: C[I_X, K_X] would hold only the
 *                                                           diagonal blocks; gather one first
 *  With several axes on the contracting dim, the outer axes that both have in common stay cut (case
 *  3) and the rest is gathered (case 2).
 *
 *  After the product C is brought to the wanted sharding: partial sums over an axis that is to cut C
 *  are reduce-scattered, others all-reduced; axes that no longer cut a dim are gathered, or, if they
 *  are to cut another dim instead, exchanged by an all-to-all; axes that held copies and are to cut
 *  now cost nothing (each chip keeps its piece).
 *
 *  Ownership: plain storage of the caller. Threads: none (no state). */
#pragma once

#include "mesh/logical.h"

enum {
    POD_SHARDED_DIMS_MAX = 4,
    POD_SHARDED_NAME_MAX = 8,
    POD_SHARDING_TEXT_MAX = 256,
    POD_RESHARD_STEPS_MAX = 24
};

/** Mesh axes, the outermost cut first. */
typedef struct pod_axis_list {
    int count;
    pod_mesh_axis axis[POD_MESH_AXES];
} pod_axis_list;

typedef struct pod_sharded_dim {
    char name[POD_SHARDED_NAME_MAX];
    pod_axis_list cut;
} pod_sharded_dim;

typedef struct pod_sharding {
    char array[POD_SHARDED_NAME_MAX];
    int ndims;
    pod_sharded_dim dim[POD_SHARDED_DIMS_MAX];
    pod_axis_list partial; /**< sums over these axes are not done yet */
} pod_sharding;

typedef enum pod_reshard_op {
    POD_RESHARD_ALL_GATHER,     /**< dim `dim` gets whole over the axes */
    POD_RESHARD_REDUCE_SCATTER, /**< partial sums added; dim `dim` cut by the axes */
    POD_RESHARD_ALL_REDUCE,     /**< partial sums added; no dim changes (dim -1) */
    POD_RESHARD_ALL_TO_ALL,     /**< the axes cut dim `to_dim` instead of `dim` */
    POD_RESHARD_KEEP_PIECE      /**< every chip keeps its piece of dim `dim`; no communication */
} pod_reshard_op;

/** One step over the inner axes of a dim: for all but all-reduce `axes` are the last of the list of
 *  the dim that is cut by them (before or after the step). */
typedef struct pod_reshard_step {
    char array[POD_SHARDED_NAME_MAX];
    pod_reshard_op op;
    int dim;
    int to_dim; /**< of all-to-all, else -1 */
    pod_axis_list axes;
} pod_reshard_step;

/** How to compute C = A·B: operand steps, the product of what is then local, result steps. */
typedef struct pod_sharded_matmul {
    int nbefore;
    pod_reshard_step before[POD_RESHARD_STEPS_MAX]; /**< steps on A and B */
    pod_sharding a;                                 /**< as multiplied */
    pod_sharding b;
    pod_sharding product; /**< C as the local products leave it */
    int nafter;
    pod_reshard_step after[POD_RESHARD_STEPS_MAX]; /**< steps on C */
} pod_sharded_matmul;

/** Parse the notation above. Blanks are free.
 *  @return POD_E_USAGE (not in this notation, no such mesh axis), POD_E_INVALID (an axis that cuts
 *          twice, a dim named twice) */
pod_status pod_sharding_parse(const char *text, pod_sharding *sharding, pod_error *err);
/** The notation above into buf. @return buf */
const char *pod_sharding_print(const pod_sharding *sharding, char *buf, size_t size);

/** Sizes of a chip's shard.
 *  @param dim_size   sharding->ndims sizes of the whole array
 *  @param axis_size  size of each mesh axis, indexed by pod_mesh_axis
 *  @param[out] shard_size  sharding->ndims sizes
 *  @return POD_E_INVALID if a dim doesn't divide, with the dim and its divisors */
pod_status pod_sharding_shard(const pod_sharding *sharding, const int64_t *dim_size,
                              const int32_t axis_size[POD_MESH_AXES], int64_t *shard_size,
                              pod_error *err);

/** What C = A·B needs.
 *  @param a, b  operands as they lie; every dim name of A, B and C is in exactly two of them
 *  @param c     the result as it is wanted; what it names as partial stays unsummed
 *  @return POD_E_INVALID: case 4, partial operands, dims that don't match, partial sums wanted that
 *          the product doesn't have */
pod_status pod_sharded_matmul_plan(const pod_sharding *a, const pod_sharding *b,
                                   const pod_sharding *c, pod_sharded_matmul *plan, pod_error *err);

/** "all-gather B over fsdp (dim J)" into buf. @return buf */
const char *pod_reshard_step_print(const pod_reshard_step *step, const pod_sharding *array,
                                   char *buf, size_t size);
