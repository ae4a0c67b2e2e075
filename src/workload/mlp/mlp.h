/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/mlp.h  Private to workload/mlp/: a layer of an MLP.
 *
 *  Ownership: borrows everything. Errors stick in mlp->stage.build.st. Threads: none. */
#pragma once

#include "workload/mlp/mlp_state.h"

extern const pod_mlp_ops pod_mlp_whole_ops;

/* ---- shared with mlp_ring.c ---- */

typedef enum pod_mlp_weight_index { POD_MLP_W1, POD_MLP_W2, POD_MLP_WEIGHTS } pod_mlp_weight_index;
pod_sharding pod_mlp_activations(const pod_mlp *mlp, const char *name, bool hidden);
void pod_mlp_weight_make(pod_mlp *mlp, int32_t layer, int index, pod_weight *weight);
int pod_mlp_use(int use, bool backward);
/** max(h, 0) in place. */
pod_array pod_mlp_relu(pod_mlp *mlp, int32_t layer, const pod_array *h);
/** (h > 0) · dh, in place of dh. */
pod_array pod_mlp_relu_backward(pod_mlp *mlp, int32_t layer, const pod_array *h,
                                const pod_array *dh);
