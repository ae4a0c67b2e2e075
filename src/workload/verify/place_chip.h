/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/place_chip.h  A step whose numbers are checked (workload/verify/place_check.h),
 *  and which tokens and pieces a chip of its layout has.
 *
 *  Ownership: borrows the check. Threads: any (no state). */
#pragma once

#include "workload/verify/place_state.h"
#include "workload/verify/transformer_reference.h"

typedef struct pod_place_check {
    const pod_step_request *request;
    const pod_step_work *work;
    const pod_transformer_reference *reference;
    uint64_t seed;
    int64_t narrays;
    pod_transformer_array *arrays; /**< arrays[narrays] */
    pod_transformer_check found;   /**< on this rank's chips */
    int64_t loss;
    bool digests;   /**< wanted: */
    int64_t digest; /**< of all bytes that are compared: a sum over chips and arrays */
    /** 1 + expert: choices[layer][batch · seq · top_k], of this rank's chips, others 0 */
    int32_t *choices;
    int64_t nchoices; /**< elements of it: 0 without experts */
    /** What comes into layers, bits of f32: followed[forward, backward][layer][batch · seq · d_model], likewise */
    uint32_t *followed;
    int64_t nfollowed; /**< elements of it: 0 unless matmuls are in a byte, or with muon: */
    /** matrices in its steps, followed[newton_at + step · newton_elements + first[array]] on */
    int64_t newton_at;
    int64_t newton_elements;
    int64_t *first;                /**< first[narrays] */
    bool follows;                  /**< the reference follows chips: that is compared, not taken */
    const pod_place_state *before; /**< what chips start from; NULL: the first step */
    pod_place_state *after;        /**< takes what they end with; NULL: nobody asks */
    /** Of tests, else NULL: whether a chip's buffer is left as the first step had it. */
    bool (*stale)(const void *context, int32_t chip, int32_t stage, int32_t buffer);
    const void *stale_context;
} pod_place_check;

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
/** How many of some rows or columns axes give to the chip, and the first of them. */
int64_t pod_place_share(const pod_place_chip *place, const pod_axis_list *axes, int64_t size,
                        int64_t *first);
/** Columns of the vocabulary, or of another size, that tensor gives to a chip, and the first of them. */
int64_t pod_place_tensor_share(const pod_place_chip *place, int64_t size, int64_t *first);

/** Where the chip's token `t` of a sequence is in it. */
int64_t pod_place_position_of(const pod_place_chip *place, int64_t t);
/** Where token `t` of a sequence, of those that a chip has, is in it. @param piece  of the mesh axis sequence; -1: the
 *  chip's own */
int64_t pod_place_position(const pod_place_check *check, int32_t chip, int32_t piece, int64_t t);
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
