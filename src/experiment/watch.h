/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/watch.h  Chips whose timeline is kept while a step or a collective is simulated.
 *
 *  Model: whoever wants a timeline (report/step_trace.h, report/collective_trace.h) hands a watch to the
 *  simulation and finds what was seen in it, on rank 0. Without chips of its own a watch sees chip 0 and
 *  the chip that is done last; where that is another one, the simulation runs a second time. Figures
 *  don't change.
 *
 *  Ownership: {0} or the chips at first; pod_experiment_watch_fini at the end. Threads: one per rank. */
#pragma once

#include "sim/run.h"
#include "sim/step_timeline.h"

typedef struct pod_experiment_watch {
    int32_t nchips;       /**< 0: chip 0 and the one that is done last */
    const int32_t *chips; /**< chips[nchips], of all slices; borrowed */
    pod_step_timeline step;
    pod_run_watch collective;
    int32_t found[2]; /**< what collective.chips points to when nchips is 0 */
} pod_experiment_watch;

void pod_experiment_watch_fini(pod_experiment_watch *watch);

/** pod_step_run, watched; watch NULL = not. Collective.
 *  @return what pod_step_run says; POD_E_NOMEM */
pod_status pod_experiment_watch_step(pod_experiment_watch *watch, const pod_step_args *args,
                                     pod_step_result *result, pod_error *err);
/** pod_run_collective, watched; watch NULL = not. Collective. */
pod_status pod_experiment_watch_collective(pod_experiment_watch *watch,
                                           const pod_run_collective_args *args,
                                           pod_run_result *result, pod_error *err);
