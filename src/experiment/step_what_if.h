/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_what_if.h  A step on a chip of which one resource is faster.
 *
 *      elasticity = log(time / time') / log(factor): 1 where time falls in proportion
 *
 *  Threads: none. */
#pragma once

#include "experiment/step_routes.h"

enum {
    POD_WHAT_IF_ICI,
    POD_WHAT_IF_DCN,
    POD_WHAT_IF_HBM,
    POD_WHAT_IF_MXU,
    POD_WHAT_IF_VPU,
    POD_WHAT_IF_HOP,
    POD_WHAT_IF_LAUNCH,
    POD_WHAT_IF_KEYS
};
/** "ici", "dcn", "hbm", "mxu", "vpu", "hop", "launch". */
extern const char *const pod_experiment_what_if_key[POD_WHAT_IF_KEYS];

/** The chip with that resource `factor` times faster. Not collective. */
pod_chip_spec pod_experiment_what_if_chip(const pod_chip_spec *chip, int key, double factor);

typedef struct pod_experiment_what_if {
    double factor; /**< by which the resource was faster */
    pod_time_ps time_ps;
    double elasticity;
} pod_experiment_what_if;

/** By which all resources are probed. */
#define POD_WHAT_IF_PROBE 1.1
/** What a probe says: the step took base_ps, and takes time_ps with a resource POD_WHAT_IF_PROBE times faster. */
pod_experiment_what_if pod_experiment_what_if_of(pod_time_ps base_ps, pod_time_ps time_ps);

/** Probe one resource. Collective.
 *  @param chip     rates of the case as it is
 *  @param base_ps  its time with them */
pod_status pod_experiment_what_if_probe(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_chip_spec *chip, int key, pod_time_ps base_ps,
                                        pod_experiment_what_if *probe, pod_error *err);
/** Probe every resource. Collective.
 *  @param base_ps     time of the case as it is
 *  @param[out] probe  probe[POD_WHAT_IF_KEYS], in the order of the keys */
pod_status pod_experiment_what_if_all(pod_experiment *experiment,
                                      const pod_experiment_step_case *run_case, pod_time_ps base_ps,
                                      pod_experiment_what_if *probe, pod_error *err);
