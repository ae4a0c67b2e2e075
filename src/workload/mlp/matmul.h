/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/matmul.h  Private to workload/mlp/: one matmul.
 *
 *  Threads: none. */
#pragma once

#include "workload/mlp/mlp_state.h"

extern const pod_mlp_ops pod_matmul_ops;
