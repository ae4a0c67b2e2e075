/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/matmul.h  Private to workload/mlp/: one matmul.
 *
 *  Threads: none. */
#pragma once

#include "workload/mlp/mlp_state.h"

extern const pod_mlp_ops pod_matmul_ops;
/** Over tensor, piece by piece (workload/mlp/mlp_pieces.h): rows of A and dA are cut over tensor as well. */
extern const pod_mlp_ops pod_matmul_ring_ops;
