/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/loops.h  How often the body of each while loop runs.
 *
 *  Model: `while(init), condition=C, body=B`. C's root is a compare of a loop variable, element i of the
 *  state, with a bound; init's element i is a constant, `start`; B's root adds a constant, `step`, to it.
 *
 *      LT  trips = max(0, ceil((bound - start) / step))      LE  bound + 1
 *      GT, GE with a negative step: mirrored
 *      EQ, NE, a step away from the bound: unknown
 *
 *  start isn't always 0 and step isn't always 1. Values are followed through copies, converts,
 *  bitcasts, barriers, tuples, fusions, calls, and elements of loop states that bodies hand on unchanged;
 *  a value that arises otherwise is unknown. known_trip_count in backend_config wins; what the text
 *  doesn't tell, the caller may (`--trip NAME=N`).
 *
 *  What a computation makes of its parameters is worked out once per element of its root, so that calls
 *  which double at each level cost no more than one each.
 *
 *  Ownership: pod_hlo_loops is the caller's, freed by pod_hlo_loops_fini. Threads: none.
 *  Not collective. Errors: POD_E_INVALID with the place, POD_E_RANGE (trips beyond 2^62), POD_E_NOMEM. */
#pragma once

#include "hlo/module.h"

typedef struct pod_hlo_loop {
    uint32_t instruction; /**< the while */
    int64_t trips;        /**< -1 = the text doesn't tell */
} pod_hlo_loop;

typedef struct pod_hlo_loops {
    pod_hlo_loop *loop; /**< loop[count], in the order of the text */
    uint32_t count;
} pod_hlo_loops;

/** Trips of all loops of a module. */
pod_status pod_hlo_loops_init(pod_hlo_loops *loops, const pod_hlo_module *module, pod_error *err);
void pod_hlo_loops_fini(pod_hlo_loops *loops);
/** The loop of a while instruction. */
pod_hlo_loop *pod_hlo_loop_of(const pod_hlo_loops *loops, uint32_t instruction);
