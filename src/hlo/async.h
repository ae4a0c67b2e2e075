/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/async.h  Which start each done waits for.
 *
 *  Model: `X-done(start)` or `X-done(X-update(start))` ends what `X-start` of the same X began; send and recv
 *  are starts. Every start has exactly one done. (Fusions around asynchronous collectives are paired
 *  by channel: hlo/collectives.h.)
 *  Not collective. Threads: none. */
#pragma once

#include "hlo/module.h"

/** @param[out] partner  partner[ninstructions]: of a start its done, of a done or update its start,
 *                       else POD_HLO_NONE
 *  @return POD_E_INVALID with both lines: a start without done or with two, a done without start */
pod_status pod_hlo_async_pair(const pod_hlo_module *module, uint32_t *partner, pod_error *err);
