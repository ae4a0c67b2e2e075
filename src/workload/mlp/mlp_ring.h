/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/mlp_ring.h  Private to workload/mlp/: the matmuls of an MLP over tensor piece by piece.
 *
 *  Threads: none. */
#pragma once

#include "workload/mlp/mlp_state.h"

extern const pod_mlp_ops pod_mlp_ring_ops;
