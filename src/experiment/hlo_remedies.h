/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/hlo_remedies.h  What would make a compiled program faster, each tried by simulating it.
 *
 *      overlap      synchronous collectives begin when their operands are there and are waited for at their
 *                   first use in the same run of their computation
 *      scatter      all-reduces of whose result only a part of 1/group is used, as reduce-scatters
 *      by axes      all-gathers over one ring (ag1d) whose group spans several whole axes, axis by axis
 *      order        partitions on other chips, so that groups that aren't rings of neighbours are
 *                   (experiment/hlo_order.h)
 *      fuse         results that one operation writes to the HBM for another one aren't (hlo/fuse.h)
 *
 *  Kernels of which only a lower bound is known aren't slow or fast: what the step would be if they took ten times
 *  that is simulated beside the remedies.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/hlo.h"

typedef enum pod_experiment_hlo_remedy_kind {
    POD_HLO_REMEDY_OVERLAP,
    POD_HLO_REMEDY_SCATTER,
    POD_HLO_REMEDY_BY_AXES,
    POD_HLO_REMEDY_ORDER,
    POD_HLO_REMEDY_FUSE,
    POD_HLO_REMEDIES
} pod_experiment_hlo_remedy_kind;

typedef struct pod_experiment_hlo_remedy {
    pod_experiment_hlo_remedy_kind kind;
    int count; /**< collectives (order: groups, fuse: results) that it changes, as the text has them; 0 = none, not
                    simulated */
    pod_time_ps time_ps;
    int64_t bytes;           /**< fuse: read and written less, all runs */
    pod_hlo_devices devices; /**< order: the other one */
} pod_experiment_hlo_remedy;

/** Collectives that a remedy would change: change[collective] is set. Not collective.
 *  @param change  of all collectives, POD_HLO_AS_IS at first
 *  @return how many */
int pod_experiment_hlo_remedy_mark(const pod_experiment_hlo_outcome *outcome,
                                   pod_experiment_hlo_remedy_kind kind, uint8_t *change);

/** Try all of them. Collective.
 *  @param[out] remedies  remedies[POD_HLO_REMEDIES], fastest first, those that change nothing last; for
 *                        pod_experiment_hlo_remedies_fini in any case */
pod_status pod_experiment_hlo_remedies(pod_experiment *experiment,
                                       const pod_experiment_hlo_request *request,
                                       const pod_chip_spec *chip,
                                       const pod_experiment_hlo_outcome *outcome,
                                       pod_experiment_hlo_remedy *remedies, pod_error *err);
void pod_experiment_hlo_remedies_fini(pod_experiment_hlo_remedy *remedies);

/** A kernel of which only a lower bound is known. */
typedef struct pod_experiment_hlo_unknown {
    uint32_t instruction;
    int64_t runs;
    pod_time_ps bound_ps; /**< of one run */
    pod_time_ps given_ps; /**< of one run, as if somebody had said so */
    pod_time_ps time_ps;  /**< the step with it */
} pod_experiment_hlo_unknown;

enum { POD_HLO_UNKNOWNS_MAX = 3 };

/** Those whose bounds add up to most, each simulated as if it took POD_HLO_UNKNOWN_TIMES its bound. Collective.
 *  @param[out] unknown  unknown[POD_HLO_UNKNOWNS_MAX]
 *  @param[out] count    of them */
enum { POD_HLO_UNKNOWN_TIMES = 10 };
pod_status
pod_experiment_hlo_unknowns(pod_experiment *experiment, const pod_experiment_hlo_request *request,
                            const pod_chip_spec *chip, const pod_experiment_hlo_outcome *outcome,
                            pod_experiment_hlo_unknown *unknown, int *count, pod_error *err);
