/* SPDX-License-Identifier: Apache-2.0 */
/** @file mesh/resolve.h  A mesh held against a slice: every size known, products that fit.
 *
 *  Threads: none (no state). */
#pragma once

#include "mesh/logical.h"

/** Fill in the -1, and check that sizes multiply to the devices of a slice and dcn_sizes to the
 *  slices.
 *  @return POD_E_INVALID "wrong product", with the nearest mesh that works */
pod_status pod_logical_mesh_resolve(pod_logical_mesh *logical, const pod_slice *slice,
                                    pod_error *err);
