/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_experts.h
 *  Private to workload/transformer/: experts of a layer.
 *
 *  Model: of T tokens with k experts each, R = k·T rows go to experts. They are sorted by expert, and one kernel
 *  does the matmuls of all experts (chip/grouped.h), on all cores of a chip: MaxText's megablox, or tokamax's where
 *  use_tokamax_gmm says so and nothing is quantised. (tokamax's alone runs on one of v5p's two cores.)
 *  Rows move through HBM (elements of d = d_model, 2 bytes each):
 *
 *      send       repeat and sort: 3·R·d; again when what is before the function isn't kept
 *      return     unsort and sum by weights: 5·R·d in f32, 3 in bf16; again in the backward pass, as the derivative of
 *                 the sum reads the rows; with them the down projection, unless its result is kept (mlpwo): then 2·R·d
 *      backward   10·R·d, 7 with a sum in bf16: of return 5 or 2, of send 5
 *
 *  Routing: the router's matmul in f32, the choice of k of E experts, and, where routing is real instead of
 *  random, a gather of R scalars forward, again, and a scatter backward, one by one (scalar_gather_ns of chips.csv).
 *  With a capacity of c % of an expert's fair share there is room for c/100 · R rows, all experts have the same
 *  number, and rows are sent and brought back by products with 0-1 masks (MaxText's dropping).
 *  Over the mesh axis expert rows go to their experts' chips and back; the busiest chip has expert_balance
 *  times the mean.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** One grouped matmul of rows [m, k] with the k x n weights of each of `experts` on this chip, with the tile of the
 *  settings. @param role  POD_ROLE_EXPERTS_UP (of gate, too) or _DOWN @param size  m, k, n */
void pod_tf_experts_product(pod_tf *tf, const char *name, pod_layer_role role, pod_grouped_op op,
                            int64_t experts, const int64_t size[3],
                            const int32_t touch[POD_OP_TOUCHES_MAX]);
/** Router, rows to their experts, up and gate. @param wi  what is before the function comes here */
void pod_tf_experts_hidden(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t wi, bool again);
/** Down and back to the tokens. @param h  after the function @param y  output of the layer's MLP */
void pod_tf_experts_output(pod_tf *tf, const pod_layer *layer, int32_t h, int32_t y, bool again);
/** What backward reads of a down projection that is kept. */
void pod_tf_experts_kept(pod_tf *tf, const pod_layer *layer);
/** From the derivative by the output to that after the function.
 *  @return the sum of derivatives by shares over tensor, under way: what goes through the router waits for it; or
 *          POD_OP_NONE */
int32_t pod_tf_experts_out_backward(pod_tf *tf, const pod_layer *layer, const pod_tf_mlp *mlp,
                                    int32_t dh, int32_t dy);
/** From the derivative before the function to that by the normed input. */
void pod_tf_experts_in_backward(pod_tf *tf, const pod_layer *layer, const pod_tf_mlp *mlp,
                                int32_t xn, int32_t dwi, int32_t dxn);
