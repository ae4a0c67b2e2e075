/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/uses.h  Private to workload/: weights on their way to their uses.
 *
 *  Model: weights that are cut over fsdp are gathered before each use. The uses of a program are
 *  declared first, in order; use u may be gathered once use u - 1 - ahead is over, so at most
 *  `ahead` gathered weights wait while one is used. ahead = 0: no overlap.
 *
 *  Ownership: as workload/build/build.h. Threads: none. */
#pragma once

#include "workload/build/build.h"

/** Declare the next use of a weight. */
void pod_build_use_declare(pod_build *build, const pod_array *weight, const char *phase,
                           int32_t layer);
/** The weight of the next use, gathered over fsdp. The products that read it until the next call are
 *  its use. */
const pod_array *pod_build_use(pod_build *build);
