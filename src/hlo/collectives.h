/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/collectives.h  The collectives of a program: operation, bytes, groups, when they run.
 *
 *  Model: a collective is an instruction, a start with its done, or lies inside a fusion:
 *
 *      sync     all-gather(…)                      holds the core
 *      async    X-start … X-done; async-start of a computation that holds one
 *      fused    a fusion that holds AsyncCollectiveStart, fusions in between that repeat the collective
 *               with the same channel_id, and the fusion that holds AsyncCollectiveDone: one collective
 *      scatter  an all-reduce in a kCustom fusion, its channel not under way: a reduce-scatter
 *
 *  Bytes are those of podsim's convention: the result of an all-gather, else the operands, without
 *  padding. What an asynchronous one returns is what its done returns.
 *
 *  A transfer is a send over DCN: `_xla_megascale_*` say operation and target; the recv of the same
 *  rendezvous belongs to it.
 *
 *  Ownership: pod_hlo_collectives_fini frees. Threads: read-only after init. Not collective.
 *  Errors: POD_E_INVALID with the place, POD_E_RANGE, POD_E_NOMEM. */
#pragma once

#include "hlo/communication.h"

/** @param partner  of pod_hlo_async_pair */
pod_status pod_hlo_collectives_init(pod_hlo_collectives *collectives, const pod_hlo_module *module,
                                    const uint32_t *partner, pod_error *err);
void pod_hlo_collectives_fini(pod_hlo_collectives *collectives);

/** "sync", "async", "fused", "scatter", static. */
const char *pod_hlo_how_name(pod_hlo_how how);
