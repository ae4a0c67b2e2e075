/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/exchange_write.h  Steps and collectives as traces that other programs read (exchange/).
 *
 *  Model: the programs run once more, every chip watched, so that each op's time on each chip is known.
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/collective_row.h"
#include "experiment/step_simulate.h"

/** Programs that ran, with what each op took on each chip, on rank 0. */
typedef struct pod_experiment_written {
    pod_programs own;             /**< of a collective; else empty */
    const pod_programs *programs; /**< borrowed, or own */
    const pod_experiment_setup *setup;
    const pod_chip_spec *chip;
    pod_machine machine;
    pod_dcn dcn; /**< what the machine points to */
    pod_step_result result;
    pod_time_ps **took; /**< took[chip][op] */
    const char *algorithm;
    bool jitter;
} pod_experiment_written;

/** The programs of a step. Collective. @param[out] written  for pod_experiment_written_fini, also after an error */
pod_status pod_experiment_write_step(pod_experiment *experiment,
                                     const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, pod_experiment_written *written,
                                     pod_error *err);
/** A collective. Collective.
 *  @param algorithm  NULL = the cheapest predicted
 *  @param launched   after the launch by the host, if it has one */
pod_status pod_experiment_write_collective(pod_experiment *experiment,
                                           const pod_experiment_collective_case *run_case,
                                           int64_t bytes, const pod_coll_algorithm *algorithm,
                                           bool launched, pod_experiment_written *written,
                                           pod_error *err);
void pod_experiment_written_fini(pod_experiment_written *written);

/** Write PREFIX.N.et of each chip, and PREFIX.groups.json if groups have names; where one can't be written none stays.
 *  Rank 0 writes. Collective. POD_E_IO, POD_E_NOMEM. */
pod_status pod_experiment_write_chakra(pod_experiment *experiment,
                                       const pod_experiment_written *written, const char *prefix,
                                       pod_error *err);
/** Write the GOAL text of all chips. Rank 0 writes. Collective. POD_E_IO, POD_E_NOMEM. */
pod_status pod_experiment_write_goal(pod_experiment *experiment,
                                     const pod_experiment_written *written, const char *path,
                                     pod_error *err);
