/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_routes.h
 *  Private to workload/transformer/: what the ops of experts compute (program/numbers.h).
 *
 *  Model: of T tokens of a chip with k of E experts each, every expert gets T·k/E rows, its room: inputs are such
 *  (verify/transformer_data.h). Rows lie expert by expert. Over the mesh axis expert an all-to-all sends the rows of
 *  each chip's experts there, where they lie chip by chip; the same one brings results back. tf->rows says which
 *  numbers they are: those of the forward pass, or those that are made again.
 *
 *  All functions do nothing in a program without numbers, and mean the last core op.
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** Logits of the router, then rows and shares. @param again  in the backward pass */
void pod_tf_routes_logits(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t weights);
void pod_tf_routes_choose(pod_tf *tf, const pod_layer *layer, bool again);
/** `sent` stands for rows of the tokens x; of the derivatives dy by what came back. */
void pod_tf_routes_send(pod_tf *tf, const pod_layer *layer, int32_t x, int32_t sent);
void pod_tf_routes_send_back(pod_tf *tf, const pod_layer *layer, int32_t dy, int32_t sent);
/** `op` sums derivatives by shares over tensor, whose chips have parts of the rows' results; NONE: they are whole. */
void pod_tf_routes_shares_sum(pod_tf *tf, const pod_layer *layer, int32_t op);
/** An all-to-all of rows. @param to  NONE: in place */
void pod_tf_routes_exchange(pod_tf *tf, int32_t op, int32_t from, int32_t to);
/** y = the sum of each token's rows by shares; dxn = that of derivatives. */
void pod_tf_routes_return(pod_tf *tf, const pod_layer *layer, int32_t rows, int32_t y);
void pod_tf_routes_return_back(pod_tf *tf, const pod_layer *layer, int32_t rows, int32_t dxn);

/** Products of all experts with their rows. @param m  its row of the table @param weights  gathered */
void pod_tf_routes_product(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                           int32_t weights, int32_t rows);
void pod_tf_routes_by_input(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                            int32_t weights, int32_t rows);
/** @param rows  what up and gate multiplied, or the derivatives by what down gave */
void pod_tf_routes_by_weights(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                              int32_t rows, int32_t partial);
/** The function of an MLP, and back. */
void pod_tf_routes_function(pod_tf *tf, const pod_layer *layer);
void pod_tf_routes_function_back(pod_tf *tf, const pod_layer *layer);

/** Derivatives through the router, which no op costs: dxn += those by its input, over tensor a part, as shares have
 *  parts; its part of a bundle's gradient, of their sums. */
void pod_tf_routes_router_back(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t weights,
                               int32_t dxn);
void pod_tf_routes_router_gradient(pod_tf *tf, const pod_tf_bundle *bundle, int32_t partial);
