/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/uses.h  Private to workload/: weights on their way to their uses.
 *
 *  Model: weights that are cut are gathered before each use. The uses of a program are declared first, in order;
 *  `ahead` of them (pod_build.ahead) are gathered while one is under way; 0: no overlap. How a weight is gathered
 *  is the model's (pod_build.gather). Arrays, by default: over fsdp, once use u - 1 - ahead is over, so at most
 *  `ahead` gathered weights wait while one is used.
 *
 *  Ownership: as workload/build/build.h. Threads: none. */
#pragma once

#include "workload/build/build.h"

/** Declare the next use of a weight. */
void pod_build_use_declare(pod_build *build, void *weight, const char *phase, int32_t layer);
/** The next declared use begins: it is gathered, and those `ahead` of it. */
const pod_use *pod_build_use_begin(pod_build *build);
/** The same of an array: the weight. The matmuls that read it until the next call are its use. */
const pod_array *pod_build_use(pod_build *build);
/** Gather `ahead` uses after the one under way, from here on. */
void pod_build_use_ahead(pod_build *build, int32_t ahead);
