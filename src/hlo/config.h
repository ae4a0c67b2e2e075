/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/config.h  What the compiler says about an instruction in backend_config.
 *
 *  Model: JSON (in older texts a string that holds JSON), of which these fields count:
 *
 *      window_config.estimated_cycles                    the emitter's own estimate
 *      collective_algorithm_config.emitter, .strategy, .debug
 *      custom_call_config.cost_estimate.flops, .bytes_accessed, .transcendentals
 *      known_trip_count.n
 *
 *  A config that isn't JSON has none of them. A field that isn't a whole number is an error.
 *  Threads: none. Not collective. */
#pragma once

#include "hlo/json.h"
#include "hlo/module.h"

typedef struct pod_hlo_config {
    int64_t cycles;       /**< -1 = not given, or INT64_MAX, with which the compiler says unknown */
    pod_hlo_span emitter; /**< empty if not given, likewise the next two; escapes as written */
    pod_hlo_span strategy;
    pod_hlo_span debug;
    int64_t flops;          /**< of cost_estimate, -1 = not given */
    int64_t bytes_accessed; /**< likewise */
    int64_t transcendentals;
    int64_t trips; /**< known_trip_count, -1 = not given */
} pod_hlo_config;

/** @return POD_E_INVALID with the place */
pod_status pod_hlo_config_read(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                               pod_hlo_config *config, pod_error *err);
