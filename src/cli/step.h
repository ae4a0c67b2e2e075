/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/step.h  Private to `podsim step` and `podsim compare`: what their options say, and how the figures
 *  of experiment/step_*.h are printed.
 *
 *  Threads: one per rank. */
#pragma once

#include "cli/faults.h"
#include "cli/options.h"
#include "cli/step_recipe.h"
#include "cli/target.h"
#include "experiment/step_faults.h"
#include "experiment/step_outcome.h"
#include "experiment/step_remedies.h"
#include "report/breakdown.h"
#include "report/findings.h"

enum { POD_STEP_SHARED_OPTIONS = 39 };
/** Options that step, compare and plan share; those with a field set it in a pod_experiment_step_request. */
extern const pod_cli_option pod_step_shared_option[POD_STEP_SHARED_OPTIONS];

/** What the options say, as given. */
typedef struct pod_step_texts {
    pod_cli_said said;   /**< of the shared options, and a recipe's values of others */
    int64_t seq_default; /**< of transformers; 0 = it must be given */
    const char *mesh;    /**< of step */
    pod_cli_list meshes; /**< of compare */
    const char *top;     /**< of compare */
    int64_t top_ops;     /**< of step: operations that its table shows */
    const char *ops;     /**< of step: a file of all */
    const char *what_if; /**< of step */
    const char *shapes;  /**< of step: a file of lengths */
    int64_t steps;       /**< with shapes: that run in all */
    double compile_s;    /**< with shapes: a program */
    double max_ms;       /**< of step: a token may take at most so long; 0 = any time */
    const char *collectives;
    const char *memory;
    const char *chakra;
    const char *goal;
    const char *inject; /**< of step in tests: faults (experiment/step_inject.h) */
} pod_step_texts;

static inline pod_step_texts pod_step_texts_make(void)
{
    return (pod_step_texts){
        .said = {.options = pod_step_shared_option, .count = POD_STEP_SHARED_OPTIONS}
    };
}

/** What is said of a shared option, or NULL. */
static inline const char *pod_step_text(const pod_step_texts *texts, const char *option)
{
    return pod_cli_said_text(&texts->said, option);
}

/** A model by name, by its sizes, or by Hugging Face's config.json. Collective.
 *  @return as pod_catalog_model and pod_hf_config_read; POD_E_IO */
pod_status pod_step_model_read(const char *text, pod_cli *cli, pod_model *model, pod_error *err);
/** Settings of a recipe, if there is one; what they drop of experts' tokens counts unless the model says it itself.
 *  @return POD_E_USAGE: they are for transformers */
pod_status pod_step_recipe_apply(pod_experiment_step_request *request, const pod_step_texts *texts,
                                 const pod_step_recipe *recipe, pod_error *err);
/** What the options that both share say. Reads the tables if they aren't there. Collective.
 *  @param recipe  whose values the texts have already; its batch is still missing
 *  @return POD_E_USAGE; POD_E_RANGE */
pod_status pod_step_request_read(pod_experiment_step_request *request, const pod_step_texts *texts,
                                 const pod_step_recipe *recipe, pod_cli *cli, pod_error *err);
/** The batch of the recipe on this slice unless the options say one; a note if it was another chip's. Local.
 *  @return as pod_recipe_batch */
pod_status pod_step_recipe_batch(const pod_step_recipe *recipe, const pod_step_texts *texts,
                                 const pod_cli *cli, const pod_slice *slice,
                                 pod_experiment_step_request *request, pod_error *err);
/** All chips at the clock that the recipe's flags ask for. Local. */
void pod_step_recipe_clock(const pod_step_recipe *recipe, pod_cli_targets *targets);
/** The options that a recipe stands for, for --explain. */
void pod_step_recipe_explain(const pod_step_recipe *recipe, const pod_step_texts *texts,
                             const pod_cli *cli, const pod_experiment_step_request *request,
                             const pod_logical_mesh *logical);
/** The mesh of `--mesh` (as `mesh`, or NULL) and `--dcn-mesh`, or of the recipe. Local.
 *  @return as pod_logical_mesh_parse; with a recipe as pod_experiment_recipe_mesh */
pod_status pod_step_mesh_read(const pod_step_recipe *recipe, const pod_step_texts *texts,
                              const char *mesh, const pod_slice *slice, pod_logical_mesh *logical,
                              pod_error *err);

/** A line for each option that was given and that changes nothing of such steps: by their mode, type or mesh.
 *  @param by_recipe  a recipe may have given some; those aren't told of
 *  @param size       by pod_mesh_axis, all slices together, of several meshes the largest; NULL = not known yet
 *  @param nslices    0 = likewise
 *  @param data_slices  over which the mesh axis data goes, of several meshes the most; 0 = likewise */
void pod_step_idle_say(const pod_cli *cli, const pod_step_texts *texts, bool by_recipe,
                       const pod_experiment_step_request *request, const int32_t *size, int nslices,
                       int data_slices);

enum { POD_STEP_COLUMNS = 24 };
/** The columns of `podsim step`: the table shows the host's if there is input, those of DCN with several
 *  slices; where real numbers are asked for, what is wrong with them on a narrow terminal, too. */
void pod_step_columns(pod_emit_column *columns, const pod_experiment_step_request *request,
                      bool several_slices, pod_experiment_data data);
/** The cells of those columns. */
void pod_step_emit(pod_emit *emit, const pod_experiment_step_request *request,
                   const pod_slice *slice, const pod_experiment_step_outcome *outcome);

/** Which algorithm each collective ran, for --explain. POD_E_NOMEM. */
pod_status pod_step_explain_collectives(const pod_cli *cli, const pod_programs *programs,
                                        const pod_step_result *result, pod_error *err);
/** Of any programs: the collectives that cost most, and what the links carry. POD_E_NOMEM. */
pod_status pod_step_notes_network(pod_findings *findings, const pod_slice *slice,
                                  const pod_programs *programs, const pod_step_result *result,
                                  pod_error *err);
/** What a step has to say below its row. Local. POD_E_NOMEM.
 *  @param top  operations that are listed */
pod_status pod_step_notes(pod_findings *findings, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result, int64_t top,
                          const pod_experiment_step_faults *faults,
                          const pod_experiment_step_remedy *remedy, pod_error *err);
/** Where the time of a step goes; with faults, what chips wait for them. */
void pod_step_breakdown(const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                        const pod_step_result *result, const pod_experiment_step_faults *faults,
                        pod_breakdown *breakdown);
/** What they cost, in words. @param what  of pod_faults_words */
void pod_step_faults_note(pod_findings *findings, const char *what, const pod_breakdown *breakdown,
                          const pod_experiment_faults *faults);

/** Of inference: whose time the table shows; and below it times a token, rates, and the least time by a closed form.
 * Local. */
void pod_step_serving_heading(pod_findings *findings, const pod_experiment_step_request *asked);
void pod_step_serving_note(pod_findings *findings, const pod_experiment_step_case *run_case,
                           const pod_chip_spec *chip, const pod_step_result *result);
/** With real numbers: what decoded tokens are. Local. */
void pod_step_tokens_note(pod_findings *findings, const pod_experiment_step_outcome *outcome);
/** Share of the HBM's rate that the weights and cache of an inference step take. Local. */
double pod_step_hbm_rate_frac(const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                              double step_s);

enum { POD_STEP_SHAPES_MAX = 64 };
/** `--shapes FILE`: lengths of sequences, and how often batches of each come. */
typedef struct pod_step_shapes {
    int count; /**< 0: one length is asked for */
    int64_t longest;
    int64_t seq[POD_STEP_SHAPES_MAX];
    double weight[POD_STEP_SHAPES_MAX];
} pod_step_shapes;

/** Reads the file, if there is one. Collective. @return POD_E_USAGE, POD_E_TABLE, POD_E_IO */
pod_status pod_step_shapes_read(pod_cli *cli, const pod_step_texts *texts, pod_step_shapes *shapes,
                                pod_error *err);
/** A row for each way of padding: programs that are compiled, steps that run. Collective.
 *  @return as a step of the first length that fails */
pod_status pod_step_shapes_run(pod_cli *cli, const pod_step_texts *texts,
                               const pod_step_shapes *shapes, pod_experiment_step_request *request,
                               const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                               pod_error *err);

enum { POD_STEP_BATCHES_MAX = 64 };
/** `--batch 8,16,32`. */
typedef struct pod_step_batches {
    int count; /**< 0: one batch is asked for */
    int64_t batch[POD_STEP_BATCHES_MAX];
    char first[24];
} pod_step_batches;

/** A list of batches, also of one where --max-ms-per-token is said, out of the texts, which keep the first. Must stay
 *  as long as they. POD_E_USAGE. */
pod_status pod_step_batches_take(pod_step_batches *batches, pod_step_texts *texts, pod_error *err);
/** A row for each, and the largest that takes at most max_ms a token (0: none is picked). Collective.
 *  @return POD_E_NOFIT if none fits or none is quick enough */
pod_status pod_step_batches_run(pod_cli *cli, const pod_step_batches *batches, double max_ms,
                                pod_experiment_step_request *request,
                                const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                                pod_error *err);

/** How long chips wait for their batch, if they do, and what would hide it. Local. */
void pod_step_input_note(pod_findings *findings, const pod_experiment_step_case *run_case,
                         const pod_chip_spec *chip, const pod_step_result *result);
/** How many weights are prefetched into VMEM, and what that saves. Local. */
void pod_step_prefetch_note(pod_findings *findings, const pod_experiment_step_case *run_case);
/** What crosses slices: required against available rate, on the table and for --explain, with the input. Local. */
void pod_step_dcn_note(pod_findings *findings, const pod_experiment_step_case *run_case,
                       const pod_chip_spec *chip, const pod_step_result *result);
void pod_step_dcn_explain(const pod_cli *cli, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result);
/** How numbers were compared, for --explain; nothing for an outcome without numbers. */
void pod_step_numbers_explain(const pod_cli *cli, const pod_experiment_step_outcome *outcome);

/** `--ops`, `--collectives` and `--memory FILE`. Rank 0 writes. POD_E_IO, POD_E_NOMEM. */
pod_status pod_step_files_write(const pod_cli *cli, const pod_step_texts *texts,
                                const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                                const pod_step_result *result, pod_error *err);

/* ---- what if ---- */

/** A resource that `--what-if` makes faster. */
typedef struct pod_what_if {
    bool all; /**< `all`: every resource, one after the other */
    int key;  /**< place in pod_experiment_what_if_key */
    double factor;
} pod_what_if;

/** "ici=2" or "all". POD_E_USAGE. */
pod_status pod_what_if_parse(const char *text, pod_what_if *what, pod_error *err);
struct pod_experiment_what_if;
/** Rows of `--what-if all` of a command. @param probe  of each key */
pod_status pod_what_if_print(pod_cli *cli, const char *command, pod_time_ps base_ps,
                             const struct pod_experiment_what_if *probe, pod_error *err);
/** Rows of `--what-if all`. Collective. */
pod_status pod_what_if_table(pod_cli *cli, const pod_experiment_step_case *run_case,
                             pod_time_ps base_ps, pod_error *err);

/** The step with faults in it, for tests. Collective. @return also POD_E_CHECK: one isn't found */
pod_status pod_step_inject(pod_cli *cli, pod_experiment_step_case *run_case,
                           const pod_chip_spec *chip, const char *what, pod_error *err);
