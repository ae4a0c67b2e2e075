/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/mlp/conv.h  Private to workload/mlp/: one convolution.
 *
 *  Threads: none. */
#pragma once

#include "workload/mlp/mlp_state.h"

extern const pod_mlp_ops pod_conv_ops;
