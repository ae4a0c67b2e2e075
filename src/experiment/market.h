/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/market.h  Slices that can be rented: what else a plan might take.
 *
 *  Model: the rows of slices.csv under the rates and settings of a run.
 *
 *  Errors: what pod_experiment_setup_init and the search say. Threads: one per rank. */
#pragma once

#include "experiment/plan.h"
#include "experiment/setup.h"

enum { POD_EXPERIMENT_SPEC_MAX = 96 };

typedef struct pod_experiment_market {
    const pod_experiment_tables *tables;
    pod_experiment_setup_request request; /**< of every slice; its slice is not used */
} pod_experiment_market;

/** A slice of a spec. Not collective. @param[out] setup  for pod_experiment_setup_fini, also after an error */
pod_status pod_experiment_market_setup(const pod_experiment_market *market, const char *spec,
                                       pod_experiment_setup *setup, pod_error *err);
/** The slice with twice the chips of a row: the squarest that is rented, or twice as many of the row's. */
void pod_experiment_market_doubled(const pod_experiment_market *market,
                                   const pod_experiment_plan_row *row, char *spec, size_t size);
/** Search a slice of a spec. Collective. @param[out] setup  for pod_experiment_setup_fini, also after an error */
pod_status pod_experiment_market_plan(pod_experiment *experiment,
                                      const pod_experiment_market *market,
                                      const pod_experiment_plan_question *question,
                                      const char *spec, pod_experiment_setup *setup,
                                      pod_experiment_plan_row *row, pod_error *err);
/** The smallest slice that holds a layout, of the generations of some slices. Not collective.
 *  @param[out] spec  "" if none does */
pod_status pod_experiment_market_holder(const pod_experiment_market *market,
                                        const pod_experiment_plan_question *question,
                                        const pod_experiment_setup *slices, int nslices, char *spec,
                                        size_t size, pod_error *err);
