/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_outcome.h  The figures of one layout of a step.
 *
 *  Ownership: a plain value, so that ranks can hand it to each other. Threads: none. */
#pragma once

#include "experiment/step_numbers.h"

/** Where the time of a step goes; what limits a step is one of them. */
typedef enum pod_step_part {
    POD_STEP_PART_MXU, /**< ops that HBM does not bound */
    POD_STEP_PART_HBM, /**< ops that it bounds */
    POD_STEP_PART_ICI, /**< exposed, as the next two */
    POD_STEP_PART_DCN,
    POD_STEP_PART_HOST,
    POD_STEP_PART_IDLE,
    POD_STEP_PARTS
} pod_step_part;

typedef struct pod_experiment_step_outcome {
    int64_t status;    /**< pod_status: why the rest is not there, or POD_OK */
    int64_t candidate; /**< its place among those of a search */
    char reason[POD_ERROR_TEXT_MAX];
    char mesh[POD_MESH_TEXT_MAX]; /**< with its sizes filled in once it is laid */
    char dcn_mesh[POD_MESH_TEXT_MAX];
    char placement[POD_EXPERIMENT_PLACEMENT_MAX];
    char remat[POD_REMAT_NAME_MAX]; /**< what ran; "" if nothing did */
    int64_t batch;
    int64_t microbatches; /**< what ran, or was bounded */
    /** of a search: what the step can't be faster than (sim/step.h); 0 = not found */
    pod_time_ps bound_ps;
    /** of a chip, of a layout that doesn't fit; 0 = it fits, or nobody knows */
    int64_t needs_bytes;
    int64_t slower; /**< 1: not simulated, as its bound is above the time of enough others */
    pod_time_ps time_ps;
    pod_step_figures figures;
    double compute_s;   /**< with what is exposed and idle the step time; means over chips */
    double hbm_bound_s; /**< the part of compute_s in ops that HBM bounds */
    double exposed_ici_s;
    double exposed_dcn_s;
    double exposed_host_s;
    double idle_s;
    int64_t limit; /**< pod_step_part */
    int64_t data;  /**< 1 = real numbers; else numbers is 0 */
    pod_experiment_step_numbers numbers;
} pod_experiment_step_outcome;

/** The parts of a step that ran: they add up to its time. */
void pod_experiment_step_parts(const pod_experiment_step_outcome *outcome,
                               double part_s[POD_STEP_PARTS]);
/** What limits a step that ran, its largest part: "mxu", "hbm", "ici", "dcn", "host" or "idle" (as
 *  experiment/step_limit.h settles it). Static. */
const char *pod_experiment_step_limit(const pod_experiment_step_outcome *outcome);

/** Names of a mesh into an outcome, as given or, once it is laid, with all sizes. */
void pod_experiment_step_outcome_mesh(pod_experiment_step_outcome *outcome,
                                      const pod_logical_mesh *logical);
/** What a case is: its mesh, placement, batch, recomputation. */
void pod_experiment_step_outcome_case(const pod_experiment_step_case *run_case,
                                      pod_experiment_step_outcome *outcome);
/** The same, and the figures of a step that takes as long as its bound, all of it compute. */
void pod_experiment_step_outcome_bound(const pod_experiment_step_case *run_case,
                                       const pod_chip_spec *chip, pod_time_ps bound_ps,
                                       pod_experiment_step_outcome *outcome);
/** The same, and the figures of a run.
 *  @param chip     rates that ran
 *  @param numbers  NULL without data */
void pod_experiment_step_outcome_get(const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, const pod_step_result *result,
                                     const pod_experiment_step_numbers *numbers,
                                     pod_experiment_step_outcome *outcome);
/** Why a layout has no figures. */
void pod_experiment_step_outcome_fail(const pod_experiment_step_request *request, pod_status status,
                                      const pod_error *failure,
                                      pod_experiment_step_outcome *outcome);

/** POD_E_CHECK when numbers were wrong. */
pod_status pod_experiment_step_verdict(const pod_experiment_step_outcome *outcome, pod_error *err);

/** Simulate a case, with numbers or time only as the experiment says or by size; outcome->limit is the largest part,
 *  ties not settled. Collective.
 *  @param watch        NULL, or chips whose timeline is kept
 *  @param[out] result  for pod_step_result_fini */
pod_status pod_experiment_step(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                               const pod_chip_spec *chip, pod_experiment_watch *watch,
                               pod_step_result *result, pod_experiment_step_outcome *outcome,
                               pod_error *err);
