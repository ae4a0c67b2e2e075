/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_numbers.h
 *  Private to workload/transformer/: what the ops of a program with numbers compute (program/numbers.h).
 *
 *  Model: the ops, their times and their buffers are those of a program without. Buffers of the builder are sizes; each
 *  stands for a buffer of numbers at a time (pod_build_number), another one after an op that works in place. All
 *  functions do nothing in a program without; those that say what an op computes mean the last core op.
 *
 *  Bundles are numbers as they lie: the matrices of a part one after the other, row-major, as tensor cuts them; a chip
 *  stores one of equally many pieces of the whole. The embedding's table is cut along its columns.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "program/numbers.h"
#include "workload/transformer/transformer_state.h"

/** The program has numbers. @return POD_E_USAGE: a kind of model that has none; POD_E_NOMEM */
pod_status pod_tf_numbers_begin(pod_tf *tf);
bool pod_tf_numbers(const pod_tf *tf);

/* ---- buffers of numbers ---- */

int32_t pod_tf_number_new(pod_tf *tf, const char *name, pod_dtype dtype, int64_t rows,
                          int64_t columns);
/** What a buffer stands for. */
int32_t pod_tf_number(pod_tf *tf, int32_t buffer);
void pod_tf_number_set(pod_tf *tf, int32_t buffer, int32_t number);
/** Others of the same size, for which it stands from now on. */
int32_t pod_tf_number_next(pod_tf *tf, int32_t buffer);
/** They are filled before the step, or compared after it. */
void pod_tf_place(pod_tf *tf, pod_place_role role, int32_t number, const pod_tf_bundle *bundle,
                  const pod_axis_list *cut);
/** The first element of a matmul's weights in the bundle of its part; the first column of its result among those of
 *  all projections. */
int64_t pod_tf_weights_first(const pod_tf *tf, const pod_layer *layer,
                             const pod_layer_matmul *matmul);
int64_t pod_tf_column_first(const pod_tf *tf, const pod_layer *layer,
                            const pod_layer_matmul *matmul);

/* ---- what ops compute; arguments are buffers ---- */

/** Factors of products; `weights` and `column` as of pod_tf_factor. */
pod_tf_factor pod_tf_factor_forward(pod_tf *tf, const int32_t a_w_out[3], int64_t weights,
                                    int64_t column);
pod_tf_factor pod_tf_factor_by_input(pod_tf *tf, const int32_t a_w_out[3], int64_t weights,
                                     int64_t column, bool add);
pod_tf_factor pod_tf_factor_by_weights(pod_tf *tf, int32_t a, int32_t b, int64_t weights,
                                       int64_t column);
/** Likewise where a is the MLP's function of `wi`. */
pod_tf_factor pod_tf_factor_of_function(pod_tf *tf, int32_t wi, int32_t b);
/** @param rows  that it multiplies: all, or those from the factor's on */
void pod_tf_number_product(pod_tf *tf, const pod_tf_product *product, int64_t rows);

/** Buffers of numbers: a copy of `from`, rounded; the same columns of two. */
void pod_tf_number_copy(pod_tf *tf, int32_t from, int32_t to);
void pod_tf_number_columns(pod_tf *tf, int32_t from, int32_t to, int64_t first, int64_t columns);
/** y += x */
void pod_tf_number_add(pod_tf *tf, int32_t x, int32_t y);
/** xn = norm(x), or of x + more, for which x stands from now on. */
void pod_tf_number_norm(pod_tf *tf, int32_t x, int32_t more, int32_t xn);
/** dy += the derivative by x of its norm, from dxn; dy = that if `alone`. */
void pod_tf_number_norm_back(pod_tf *tf, int32_t x, int32_t dxn, int32_t dy, bool alone);
/** y = norm(y), dy = the derivative by what that norm read, `raw`, a buffer of numbers. */
void pod_tf_number_norm_alone(pod_tf *tf, int32_t y);
void pod_tf_number_norm_alone_back(pod_tf *tf, int32_t raw, int32_t dy);
void pod_tf_number_function(pod_tf *tf, int32_t wi, int32_t h);
void pod_tf_number_function_back(pod_tf *tf, int32_t wi, int32_t dh, int32_t dwi, bool in_place);
/** The function of numbers `before`, and the derivative by them. */
void pod_tf_number_function_of(pod_tf *tf, int32_t before, int32_t after);
void pod_tf_number_function_back_of(pod_tf *tf, int32_t before, int32_t by_after,
                                    int32_t by_before);

/** The last core op: rows of `to` are those of `from` in the other order, by pieces or by tokens (transformer_turns.h);
 *  the first ones, where `to` has fewer. */
pod_number pod_tf_number_turn_of_rows(pod_tf *tf, pod_number_view from, pod_number_view to);
void pod_tf_number_rows_turn(pod_tf *tf, pod_number_view from, pod_number_view to);

/** A collective that moves `from` to `to`, buffers of numbers; NONE is no op: then `to` was `from` all along.
 *  @param dims  of pod_op.dim and dim_out */
void pod_tf_number_move(pod_tf *tf, int32_t op, int32_t from, int32_t to, const int dims[2]);

/* ---- for what other files compute ---- */

pod_number pod_tf_number_begin(pod_number_function function);
/** A norm of the model's kind, or its way back. */
pod_number pod_tf_number_norm_of(const pod_tf *tf, bool back);
/** Parts of a buffer of numbers: rows and columns; all of it; a matrix from element `first` on. */
pod_number_view pod_tf_number_part(const pod_tf *tf, int32_t number, int64_t row, int64_t rows,
                                   int64_t column, int64_t columns);
pod_number_view pod_tf_number_whole(const pod_tf *tf, int32_t number);
pod_number_view pod_tf_number_matrix(const pod_tf *tf, int32_t number, int64_t first, int64_t rows,
                                     int64_t columns);
/** The next core op begins with it. */
void pod_tf_number_before(pod_tf *tf, const pod_number *number);
/** The last core op computes it. */
void pod_tf_number_compute(pod_tf *tf, const pod_number *number);
pod_kernel_activation pod_tf_number_activation(const pod_tf *tf);
