/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/hlo.h  The step of a compiled program (hlo/program.h) on a slice.
 *
 *  Model: loops of at most POD_HLO_SHORT_TRIPS trips run every iteration, all with `exact`. Of a longer one that isn't
 *  inside another, a iterations stand for the rest (a = 4 or 5, even or odd as its trips L; loops inside it run whole):
 *
 *      X = X0 + Σ_l (L - a)/2 · (X_l - X0)
 *
 *  X0 with every long loop at a, X_l with loop l at a + 2, X any time or count of bytes.
 *
 *  Ownership: init/fini on the caller's storage; a program borrows text, tables and setup. Threads: one per rank. */
#pragma once

#include "experiment/setup.h"
#include "hlo/memory.h"
#include "hlo/passes.h"
#include "hlo/program.h"
#include "sim/step.h"

/** A text read and looked at, before any slice is known. */
typedef struct pod_experiment_hlo_text {
    pod_hlo_module *module;
    pod_hlo_analysis analysis;
    bool analyzed;
    pod_hlo_works *works;
    pod_hlo_pass *pass; /**< pass[instruction] */
} pod_experiment_hlo_text;

/** Not collective. @param reading  of pod_hlo_parse
 *  @param[out] text  for pod_experiment_hlo_text_fini, also after an error */
pod_status pod_experiment_hlo_text_init(pod_experiment_hlo_text *text, const char *file,
                                        const char *bytes, size_t size,
                                        const pod_hlo_reading *reading,
                                        const pod_hlo_choices *choices, pod_error *err);
void pod_experiment_hlo_text_fini(pod_experiment_hlo_text *text);

/** How a text is run. */
typedef struct pod_experiment_hlo_request {
    const pod_experiment_hlo_text *text;
    const pod_experiment_setup *setup;
    const pod_hlo_devices *devices; /**< of the partitions */
    pod_hlo_cost_options cost;
    pod_hlo_algorithms algorithms;
    const uint8_t *change; /**< pod_hlo_change of each collective; NULL = none */
    bool exact;
    bool link_records;
    const pod_step_observer *observer; /**< of a run with all iterations; NULL = nobody watches */
    /** With an observer: called once on every rank when the run is over, with what ran; or NULL. */
    pod_status (*observed)(void *context, const pod_hlo_emitted *emitted,
                           const pod_step_result *result, pod_error *err);
    void *context; /**< for observed */
} pod_experiment_hlo_request;

enum { POD_EXPERIMENT_HLO_REASON_MAX = 192 };

/** What ran a collective or transfer. */
typedef struct pod_experiment_hlo_ran {
    char algorithm
        [POD_STEP_ALGORITHM_MAX]; /**< "" = none: a group of one chip, or it isn't reached */
    char reason
        [POD_EXPERIMENT_HLO_REASON_MAX]; /**< why not what the text or --algorithm says; "" = it is that */
} pod_experiment_hlo_ran;

typedef struct pod_experiment_hlo_outcome {
    pod_hlo_program *program; /**< its costs are gone */
    pod_step_result result;   /**< times and bytes of the whole step; without records of ops */
    /** time_ps[instruction]: sums over runs and cells, of what runs on the core or copies; after
     * them those of collectives, time_ps[pod_experiment_hlo_sum(…)] */
    int64_t *time_ps;
    int64_t *exposed_ps;         /**< likewise */
    pod_experiment_hlo_ran *ran; /**< ran[number in program->run_as] */
    int64_t simulated_ops;
    int simulations;
} pod_experiment_hlo_outcome;

/** Simulate a text. Collective.
 *  @param chip  rates in force, those of the setup or others for a what-if
 *  @param[out] outcome  for pod_experiment_hlo_outcome_fini, also after an error
 *  @return what hlo/program.h and sim/step.h say */
pod_status pod_experiment_hlo(pod_experiment *experiment, const pod_experiment_hlo_request *request,
                              const pod_chip_spec *chip, pod_experiment_hlo_outcome *outcome,
                              pod_error *err);
void pod_experiment_hlo_outcome_fini(pod_experiment_hlo_outcome *outcome);

/** Place in time_ps and exposed_ps of a collective or transfer, by its number in program->run_as. */
uint32_t pod_experiment_hlo_sum(const pod_hlo_program *program, uint32_t run);

/** Sums over all runs that follow from costs alone. */
typedef struct pod_experiment_hlo_totals {
    double mxu_flops; /**< attention's included */
    int64_t hbm_read_bytes;
    int64_t hbm_write_bytes;
    int64_t unknown_calls; /**< runs of custom calls of which only a lower bound is known */
    double unknown_s;
} pod_experiment_hlo_totals;
pod_experiment_hlo_totals pod_experiment_hlo_totals_of(const pod_hlo_program *program);

/** Runs of an instruction in one step. */
int64_t pod_experiment_hlo_runs(const pod_hlo_program *program, uint32_t instruction);
/** Mean over chips of a sum over cells, in seconds. */
double pod_experiment_hlo_mean_s(const pod_experiment_hlo_outcome *outcome, int64_t sum_ps);
