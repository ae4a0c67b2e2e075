/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/collective_case.h  A collective on one slice: its groups, its root or pairs, the rate of
 *  its links.
 *
 *  Ownership: init/fini on the caller's storage; borrows request and setup. Threads: one per rank. */
#pragma once

#include "experiment/collective_group.h"
#include "experiment/setup.h"

typedef struct pod_experiment_collective_case {
    const pod_experiment_collective_request *request;
    const pod_experiment_setup *setup;
    pod_group group;
    char axes[POD_EXPERIMENT_AXES_MAX]; /**< that the groups span */
    int32_t root;                       /**< rank in its group */
    int32_t *source_of;                 /**< permute: source_of[rank], -1 = none; else NULL */
    double link_bytes_per_s;            /**< in force for these groups */
    pod_time_ps launch_ps;              /**< the device's, and the host's unless inside a program */
    struct pod_coll_packings *packings; /**< trees of the sizes before */
    bool timing_only;                   /**< never moves data, whatever the experiment says */
    bool silence_noted;                 /**< that a permute sends nothing was noted */
    int data_noted; /**< the choice of data by size last noted: 0 none yet, 1 real, 2 none */
} pod_experiment_collective_case;

/** Not collective.
 *  @param[out] run_case  for pod_experiment_collective_case_fini, also after an error
 *  @return POD_E_INVALID, POD_E_USAGE, POD_E_TABLE, POD_E_NOMEM */
pod_status pod_experiment_collective_case_init(pod_experiment_collective_case *run_case,
                                               const pod_experiment_collective_request *request,
                                               const pod_experiment_setup *setup, pod_error *err);
void pod_experiment_collective_case_fini(pod_experiment_collective_case *run_case);

/** The element type for a size: what was asked for, else bf16, or int8 when the bytes are odd. Not collective.
 *  @return POD_E_USAGE when the size isn't whole elements of the type asked for */
pod_status pod_experiment_collective_dtype(const pod_experiment_collective_request *request,
                                           int64_t bytes, pod_dtype *dtype, pod_error *err);

/** True if nothing moves, whatever the algorithm: the launch is all there is. */
bool pod_experiment_collective_is_trivial(const pod_experiment_collective_case *run_case,
                                          int64_t bytes);

/** True for groups of 4,096 chips or more over several slices: one host stands for all where all chips do the
 *  same, and blocks that differ by an element are all as long as the longest, so that they do. Times then
 *  differ from those of all chips by up to 3e-4, as messages of the same moment may go in another order. */
bool pod_experiment_collective_is_large(const pod_experiment_collective_case *run_case);

/** The request that algorithms see; borrows the case. @param bytes  whole elements of dtype */
pod_coll_request
pod_experiment_collective_coll_request(const pod_experiment_collective_case *run_case,
                                       int64_t bytes, pod_dtype dtype);
/** True if its elements were rounded up to equal blocks. */
bool pod_experiment_collective_is_padded(const pod_experiment_collective_case *run_case,
                                         int64_t bytes, pod_dtype dtype);
