/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/collective_row.h  One collective by one algorithm at one size: simulated, held to its
 *  bound, and its bandwidths.
 *
 *      algbw = bytes / time;  busbw = algbw · 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and
 *      all-to-all, 1 for permute and broadcast (nccl-tests)
 *
 *  Ownership: plain values. Threads: one per rank. */
#pragma once

#include "collectives/bounds/bound.h"
#include "collectives/registry.h"
#include "experiment/collective_case.h"
#include "experiment/watch.h"
#include "sim/run.h"

enum { POD_EXPERIMENT_ALGORITHM_MAX = 96 };

/** What ran and what came out. */
typedef struct pod_experiment_collective_row {
    int64_t bytes;
    pod_dtype dtype;
    char algorithm[POD_EXPERIMENT_ALGORITHM_MAX];
    bool data;      /**< real numbers moved */
    bool predicted; /**< prediction is there; on rank 0 only */
    bool folded;    /**< one chip was simulated for all */
    pod_coll_prediction prediction;
    pod_coll_bound bound; /**< without launch */
    pod_run_result result;
    double algbw_GBps; /**< bandwidths are 0 at time 0 */
    double busbw_GBps;
    double bus_factor; /**< busbw / algbw */
    double bound_frac; /**< bound / time; 1 at time 0 */
} pod_experiment_collective_row;

/** Simulate one algorithm. Collective.
 *  @param algorithm  NULL = the cheapest predicted
 *  @param watch      NULL, or chips whose messages are kept
 *  @return POD_E_INTERNAL if it is faster than the bound; POD_E_USAGE, POD_E_INVALID, POD_E_RANGE, POD_E_NOMEM */
pod_status pod_experiment_collective_run(pod_experiment *experiment,
                                         pod_experiment_collective_case *run_case, int64_t bytes,
                                         const pod_coll_algorithm *algorithm,
                                         pod_experiment_watch *watch,
                                         pod_experiment_collective_row *row, pod_error *err);

/** True if an algorithm can run the case at this size. Not collective. */
bool pod_experiment_collective_fits(const pod_experiment_collective_case *run_case, int64_t bytes,
                                    pod_dtype dtype, const pod_coll_algorithm *algorithm);
