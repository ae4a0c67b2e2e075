/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/input.h  Private to workload/: how the batch of a step comes in.
 *
 *  Ownership: as workload/build/build.h. Threads: none. */
#pragma once

#include "workload/build/build.h"
#include "workload/build/request.h"

/** The ops by which the batch comes from the hosts to a chip (pod_step_input); before all others.
 *  @param stages  that share the batch: 1, then it is a chip of the first stage */
void pod_build_input(pod_build *build, const pod_step_input *input, int32_t stages);
