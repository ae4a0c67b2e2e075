/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/place_chip.h  Private to workload/verify: which tokens and pieces a chip of a layout has.
 *
 *  Ownership: borrows the check. Threads: any (no state). */
#pragma once

#include "workload/verify/place_check.h"

/** A chip and where it is in the mesh. */
typedef struct pod_place_chip {
    const pod_place_check *check;
    int32_t chip;
    int32_t coordinate[POD_MESH_AXES]; /**< by pod_mesh_axis */
} pod_place_chip;

pod_place_chip pod_place_chip_of(const pod_place_check *check, int32_t chip);

/** Number of the chip's piece of what some axes cut, in the order of the mesh, as collectives put pieces together. */
int64_t pod_place_piece(const pod_place_chip *place, const pod_axis_list *cut);
/** The chip that has piece `piece` and is elsewhere in the same place. */
pod_place_chip pod_place_with_piece(const pod_place_chip *place, const pod_axis_list *cut,
                                    int64_t piece);
/** Columns of the vocabulary, or of another size, that tensor gives to a chip, and the first of them. */
int64_t pod_place_tensor_share(const pod_place_chip *place, int64_t size, int64_t *first);

/** Where the chip's token `t` of a sequence is in it. */
int64_t pod_place_position_of(const pod_place_chip *place, int64_t t);
/** The token of a chip's row. */
int64_t pod_place_token(const pod_place_chip *place, int32_t microbatch, int64_t row);

/** A row of what the chip's head reads. */
typedef struct pod_place_head_row {
    int64_t token; /**< of the batch */
    int64_t row;   /**< of the chip's */
    int64_t of;    /**< among the rows of all heads */
} pod_place_head_row;

/** Of a sequence each chip has those parts of what the head reads that lie in its own parts of the sequence. */
pod_place_head_row pod_place_head_row_of(const pod_place_chip *place, int32_t microbatch,
                                         int64_t row);
