/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_turns.h
 *  Private to workload/transformer/: what transformer_pieces.h multiplies, and numbers of rows in pieces.
 *
 *  Model: the T rows of n chips of tensor lie in the order of tokens, or turned: piece by piece, that of this chip
 *  first, then those of the chips before it. In a turned array the same rows are of piece s on all chips, so that all
 *  chips have one program. Row r of either order is row names[r] of the other: in the order of tokens the pieces of
 *  chip i are i - s, and s is i - (i - s). n = 4, chip 1:
 *
 *      piece of 4 in the order of tokens     0  1  2  3
 *      which of the turned ones              1  0  3  2
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

enum { POD_TF_PRODUCTS_MAX = 8 };

/** Matmuls of all rows of this chip's tokens. */
typedef struct pod_tf_products {
    const char *pass; /**< name of the permutes of pieces, static */
    const char *sum;  /**< of the all-reduce without them, static */
    int32_t buffer;   /**< whose rows are gathered or summed */
    int64_t tiles;    /**< > 1: rows are multiplied in so many parts, one after another */
    int count;
    pod_tf_product product[POD_TF_PRODUCTS_MAX];
} pod_tf_products;

/** A sum under way. */
typedef struct pod_tf_summing {
    const pod_tf_products *products; /**< NULL: nothing is summed */
    int32_t away;                    /**< of pieces: how far from its chip the next sum is */
    bool other_way;                  /**< and whether it comes from lower positions */
    int32_t waits[2];                /**< ops that the next piece or the end waits for */
    int32_t arrived[2];              /**< numbers that they bring; POD_OP_NONE: none yet */
    int32_t turned;                  /**< numbers that products read, */
    int32_t raw;                     /**< what norms of latents read; POD_OP_NONE: no latents */
    int32_t beside;                  /**< and to which they are added; POD_OP_NONE: none */
} pod_tf_summing;

/** Numbers turned, or back, by the last core op. POD_OP_NONE: none. */
int32_t pod_tf_pieces_turn(pod_tf *tf, int32_t number);
/** Gathering: an array for the pieces as they come, turned. */
typedef struct pod_tf_pieces_come {
    int32_t gathered; /**< all rows, turned */
    int32_t made;     /**< what the products make, turned */
} pod_tf_pieces_come;

pod_tf_pieces_come pod_tf_pieces_gather_begin(pod_tf *tf, const pod_tf_products *products);
/** The last core op copies piece `piece` to the others. @param arrived  its numbers */
void pod_tf_pieces_gathered(pod_tf *tf, const pod_tf_pieces_come *g, int32_t piece,
                            int32_t arrived);
/** A product of piece `piece` as it computes. */
pod_tf_product pod_tf_pieces_gathered_product(pod_tf *tf, const pod_tf_pieces_come *g,
                                              const pod_tf_product *product, int32_t piece,
                                              int32_t arrived);
/** All rows in the order of tokens: of what was gathered, for which `buffer` stands from now on, and of what the
 *  products make. */
void pod_tf_pieces_gather_end(pod_tf *tf, const pod_tf_pieces_come *g,
                              const pod_tf_products *products);

/** A sum under way in pieces: what products read, and what is there before (POD_OP_NONE: nothing). */
void pod_tf_pieces_sum_begin(pod_tf *tf, pod_tf_summing *s);
/** The last core op begins the sum of a piece with that and with what has come. @return f32 */
int32_t pod_tf_pieces_sum_from(pod_tf *tf, const pod_tf_summing *s, int32_t piece, int32_t arrived);
/** A product of piece `piece` that is added to it. @param first  nothing is there yet */
pod_tf_product pod_tf_pieces_sum_product(pod_tf *tf, const pod_tf_summing *s,
                                         const pod_tf_product *product, int32_t piece, int32_t sum,
                                         bool first);
/** Columns of what products read that they have written: derivatives of latents, in the order of tokens when all is
 *  summed. */
void pod_tf_pieces_sum_columns(pod_tf *tf, const pod_tf_summing *s, int64_t first, int64_t columns);
/** It, rounded. */
int32_t pod_tf_pieces_sum_round(pod_tf *tf, int32_t sum);
/** The sums of both sides together. */
int32_t pod_tf_pieces_sum_both(pod_tf *tf, int32_t own, int32_t other);

/** Numbers like `number` that an op moves it to. */
int32_t pod_tf_pieces_move(pod_tf *tf, int32_t op, int32_t number);
/** A collective of all rows: `buffer` stands for what it gives. */
void pod_tf_pieces_whole(pod_tf *tf, int32_t op, int32_t buffer, bool gather);
