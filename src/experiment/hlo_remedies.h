/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/hlo_remedies.h  What would make a compiled program faster, each tried by simulating it.
 *
 *      overlap      synchronous collectives begin when their operands are there and are waited for at their
 *                   first use in the same run of their computation
 *      scatter      all-reduces of whose result only a part of 1/group is used, as reduce-scatters
 *      by axes      all-gathers over one ring (ag1d) whose group spans several whole axes, axis by axis
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/hlo.h"

typedef enum pod_experiment_hlo_remedy_kind {
    POD_HLO_REMEDY_OVERLAP,
    POD_HLO_REMEDY_SCATTER,
    POD_HLO_REMEDY_BY_AXES,
    POD_HLO_REMEDIES
} pod_experiment_hlo_remedy_kind;

typedef struct pod_experiment_hlo_remedy {
    pod_experiment_hlo_remedy_kind kind;
    int collectives; /**< that it changes, as the text has them; 0 = none, not simulated */
    pod_time_ps time_ps;
} pod_experiment_hlo_remedy;

/** Collectives that a remedy would change: change[collective] is set. Not collective.
 *  @param change  of all collectives, POD_HLO_AS_IS at first
 *  @return how many */
int pod_experiment_hlo_remedy_mark(const pod_experiment_hlo_outcome *outcome,
                                   pod_experiment_hlo_remedy_kind kind, uint8_t *change);

/** Try all of them. Collective.
 *  @param[out] remedies  remedies[POD_HLO_REMEDIES], fastest first, those that change nothing last */
pod_status pod_experiment_hlo_remedies(pod_experiment *experiment,
                                       const pod_experiment_hlo_request *request,
                                       const pod_chip_spec *chip,
                                       const pod_experiment_hlo_outcome *outcome,
                                       pod_experiment_hlo_remedy *remedies, pod_error *err);
