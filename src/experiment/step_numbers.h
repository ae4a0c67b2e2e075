/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_numbers.h  Steps with real numbers, against one chip (workload/verify/reference.h).
 *
 *  Threads: one per rank. */
#pragma once

#include "experiment/step_simulate.h"
#include "workload/verify/place_state.h"
#include "workload/verify/reference.h"
#include "workload/verify/transformer_reference.h"

/** Real numbers or none, as the experiment says or by size: of memory, and of the time of one core; notes what the size
 *  decided. Collective.
 *  @param bytes          of pod_step_work.data_bytes
 *  @param multiply_adds  of a case (pod_experiment_step_multiply_adds)
 *  @param cases          that are run; one chip does it once more
 *  @return POD_E_NOFIT if real numbers don't fit this machine */
pod_status pod_experiment_step_choose_data(const pod_experiment *experiment, int64_t bytes,
                                           int64_t multiply_adds, int cases, bool *real,
                                           pod_error *err);
/** What all chips together compute in matmuls; INT64_MAX if more. */
int64_t pod_experiment_step_multiply_adds(const pod_experiment_step_case *run_case);

/** A step on one chip: of rows (mlp, matmul), or of a transformer. */
typedef struct pod_experiment_reference {
    pod_reference *rows;
    pod_transformer_reference *transformer;
    int64_t capacity_chips; /**< pod_experiment_capacity_chips */
} pod_experiment_reference;

static inline bool pod_experiment_reference_is_there(const pod_experiment_reference *reference)
{
    return reference->rows != NULL || reference->transformer != NULL;
}

void pod_experiment_reference_free(pod_experiment_reference *reference);

/** A step of a transformer on one chip. Collective. @param[out] reference  to be freed, also after an error */
pod_status pod_experiment_reference_run(pod_experiment *experiment,
                                        const pod_transformer_reference_args *args,
                                        pod_transformer_reference **reference, pod_error *err);

/** Each rank's part of words to all: one rank has a word, on others it is 0. Collective. */
void pod_experiment_words_share(pod_experiment *experiment, void *words, int64_t count);

/** The experts that chips chose, layer by layer. Collective.
 *  @param expert  expert[count]: of each rank's chips 1 + expert, 0 elsewhere; then the expert on all ranks; lent
 *  @return choices[layers], to be freed; NULL without memory, or without experts */
pod_transformer_choices *pod_experiment_choices_share(pod_experiment *experiment, int64_t layers,
                                                      int32_t *expert, int64_t count);

/** Partial sums that chips add up, of all layouts that are compared. */
typedef struct pod_experiment_terms {
    int64_t activations;   /**< chips of tensor */
    int64_t context;       /**< of derivatives by keys and values: chips of sequence */
    int64_t gradients;     /**< chips, times microbatches */
    int64_t weight_pieces; /**< chips of tensor in each; 0: they differ */
} pod_experiment_terms;

/** Chips each of which gives experts a capacity for its own part of a sequence: layouts where they are as many, and
 *  those without a capacity, have the same numbers on one chip. */
int64_t pod_experiment_capacity_chips(const pod_step_request *request,
                                      const pod_work_layout *layout);

/** The numbers of layouts of a request, on one chip. Collective.
 *  @param run_case  any case of the request
 *  @param terms     NULL: those of the case
 *  @param before    what the step starts from, after another one; NULL: the first step
 *  @param[out] reference  pod_experiment_reference_free, also after an error */
pod_status pod_experiment_step_reference(pod_experiment *experiment,
                                         const pod_experiment_step_case *run_case,
                                         const pod_experiment_terms *terms,
                                         const pod_place_state *before,
                                         pod_experiment_reference *reference, pod_error *err);

/** What real numbers came out as. */
typedef struct pod_experiment_step_numbers {
    double max_rel_err;
    int64_t wrong;
    int64_t checked;      /**< elements of outputs, gradients and weights compared */
    int64_t inexact;      /**< of them: sums that may round differently by order */
    int64_t tokens;       /**< inference: decoded */
    int64_t near;         /**< of them: not the reference's, but nearer to it than their error */
    int64_t near_experts; /**< choices of tokens' experts nearer than their error; on rank 0 */
    int64_t digest;       /**< with a fault: of all bytes that were compared */
} pod_experiment_step_numbers;

/** Of tests: what goes wrong in a run (sim/step.h), and where a second step begins (workload/verify/place_check.h). */
typedef struct pod_experiment_tamper {
    void (*tamper)(const void *context, int32_t chip, const pod_program *program, int32_t op,
                   bool arrived, void *data);
    bool (*stale)(const void *context, int32_t chip, int32_t stage, int32_t buffer);
    const void *context;
    const pod_place_state *before;
    pod_place_state *after;
} pod_experiment_tamper;

/** What ranks' chips end a step with, to all of them. Collective. @return elements that differ between ranks, or that
 *  no chip has of weights */
int64_t pod_experiment_state_share(pod_experiment *experiment, pod_place_state *state);

/** Simulate with real numbers and compare. Where elements differ and scores of experts are nearer than their error, the
 *  step is run once more against a reference that takes the chips' choices of these. Where matmuls are in a byte and
 *  nothing differs, it is, too: layer by layer, each from what chips had before it. Collective.
 *  @param tamper       of transformers; NULL: nothing goes wrong
 *  @param watch        NULL, or chips whose timeline is kept
 *  @param[out] result  for pod_step_result_fini */
pod_status pod_experiment_step_run_data(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_chip_spec *chip,
                                        const pod_experiment_reference *reference,
                                        const pod_experiment_tamper *tamper,
                                        pod_experiment_watch *watch, pod_step_result *result,
                                        pod_experiment_step_numbers *numbers, pod_error *err);
