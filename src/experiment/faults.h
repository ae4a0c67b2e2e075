/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/faults.h  What the faults of a slice cost, and which of them.
 *
 *  Model: what is asked is run again without any fault, with each fault repaired alone, and with each slow cable out
 *  (dead, so that routes and trees go round it). The fault whose repair gains most is the one that chips wait for.
 *
 *  Ownership: plain values. Threads: one per rank. */
#pragma once

#include "experiment/setup.h"

enum { POD_FAULT_ROWS_MAX = 16, POD_FAULT_NAME_MAX = 96 };

typedef struct pod_experiment_fault_row {
    char name[POD_FAULT_NAME_MAX];  /**< "chip 1,2,3", "link 1,2:+x" */
    char state[POD_FAULT_NAME_MAX]; /**< "1.3 times slower", "dead" */
    char option
        [POD_FAULT_NAME_MAX]; /**< of a slow cable, what takes it out: "--fail-link 1,2:+x"; else "" */
    pod_time_ps repaired_ps;
    /** with the cable out; 0 = it isn't a slow one, or nothing runs without it */
    pod_time_ps out_ps;
} pod_experiment_fault_row;

typedef struct pod_experiment_faults {
    int all;   /**< faults of the slice */
    int count; /**< of rows: the first POD_FAULT_ROWS_MAX */
    pod_time_ps time_ps;
    pod_time_ps healthy_ps;
    int blamed; /**< the row whose repair gains most */
    pod_experiment_fault_row row[POD_FAULT_ROWS_MAX];
} pod_experiment_faults;

/** Time what is asked on another setup. Collective.
 *  @param[out] time_ps  0 = it can't run there */
typedef pod_status pod_experiment_faults_time(void *context, const pod_experiment_setup *setup,
                                              pod_time_ps *time_ps, pod_error *err);

/** Find what the faults of a setup cost; the first that is timed is the setup without any. Without faults nothing is
 *  timed. Collective.
 *  @param time_ps  with all of them */
pod_status pod_experiment_faults_find(pod_experiment *experiment, const pod_experiment_setup *setup,
                                      pod_time_ps time_ps, pod_experiment_faults_time *time,
                                      void *context, pod_experiment_faults *faults, pod_error *err);

/** What the repair of the blamed one gains, of the time with all faults. */
double pod_experiment_faults_gain(const pod_experiment_faults *faults);
