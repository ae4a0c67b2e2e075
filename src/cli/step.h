/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/step.h  Private to `podsim step` and `podsim compare`: what is asked for, one layout of it,
 *  and the row that comes out.
 *
 *  Model: the options (pod_step_texts) become an order (pod_step_order), which doesn't depend on the
 *  layout. An order, a slice and a mesh make a case: mesh, programs, memory. A case is simulated on a
 *  pod_par (all ranks together, or one rank by itself) and gives an outcome: a plain value, so
 *  that ranks can hand it to each other.
 *
 *  Ownership: init/fini pairs on the caller's storage; a case borrows order and target and must not
 *  move. Threads: one per rank. */
#pragma once

#include "cli/options.h"
#include "cli/target.h"
#include "mesh/device_mesh.h"
#include "sim/step.h"
#include "workload/step_request.h"
#include "workload/verify/reference.h"

/** What the options say, as given. */
typedef struct pod_step_texts {
    const char *model;
    pod_cli_list meshes; /**< of compare */
    const char *mesh;    /**< of step */
    const char *dcn_mesh;
    bool split_axes;
    const char *batch;
    const char *batch_per_chip;
    const char *seq;
    const char *dtype;
    const char *remat;
    const char *attention;
    const char *mode;
    const char *optimizer;
    const char *microbatches;
    const char *gather_ahead;
    const char *collective_matmul;
    const char *placement;
    bool exact;
    const char *prefetch;
    const char *input_bytes;
    const char *host_ms;
    /* of step */
    const char *what_if;
    const char *collectives;
    const char *memory;
} pod_step_texts;

typedef struct pod_step_order {
    const pod_step_texts *texts;
    pod_model model;
    int64_t batch;          /**< 0 = not given */
    int64_t batch_per_chip; /**< 0 = not given */
    pod_dtype dtype;
    pod_step_mode mode;
    pod_optimizer optimizer;
    pod_remat remat;
    pod_attention_kind attention;
    int64_t seq;
    int32_t microbatches;
    int32_t gather_ahead;
    bool collective_matmul;
    bool exact;
    pod_step_input input;
    bool best; /**< --placement best */
    bool jax;  /**< --placement jax; else texts->placement says it */
} pod_step_order;

/** Options that step and compare share, for their tables: POD_STEP_SHARED_OPTIONS of them. */
enum { POD_STEP_SHARED_OPTIONS = 19 };
void pod_step_shared_options(pod_step_texts *texts, pod_cli_option *options);

/** Hosts have something to do for the step. */
bool pod_step_has_input(const pod_step_order *order);
/** Reads the tables if they aren't there. Collective. POD_E_USAGE; POD_E_RANGE. */
pod_status pod_step_order_read(pod_step_order *order, const pod_step_texts *texts, pod_cli *cli,
                               pod_error *err);

enum { POD_STEP_PLACEMENT_MAX = 128 };

/** One layout. */
typedef struct pod_step_case {
    const pod_step_order *order;
    const pod_cli_target *target;
    pod_mesh mesh;
    char placement[POD_STEP_PLACEMENT_MAX]; /**< as printed */
    pod_step_request request;
    pod_step_work work;
} pod_step_case;

/** Lay the mesh and build the programs. Local.
 *  @param placement  NULL = by JAX's rules, or as --placement says
 *  @param[out] run_case  for pod_step_case_fini, also after an error
 *  @return what pod_mesh_init, pod_step_build and pod_step_fits say */
pod_status pod_step_case_init(pod_step_case *run_case, const pod_step_order *order,
                              const pod_cli_target *target, const pod_logical_mesh *logical,
                              const pod_placement *placement, pod_error *err);
void pod_step_case_fini(pod_step_case *run_case);

/** The same with --placement best: every placement is simulated, the fastest stays. Collective on
 *  `par`. */
pod_status pod_step_case_best(pod_step_case *run_case, pod_cli *cli, pod_par *par,
                              const pod_step_order *order, const pod_cli_target *target,
                              const pod_logical_mesh *logical, pod_error *err);

/** The machine of a case under some rates: borrows itself, so it must not move. */
typedef struct pod_step_machine {
    pod_machine machine;
    pod_dcn dcn;
} pod_step_machine;
void pod_step_machine_make(pod_step_machine *own, const pod_step_case *run_case, pod_cli *cli,
                           pod_par *par, const pod_chip_spec *chip);

/** Simulate, time only. Collective on `par`.
 *  @param chip  rates in force, those of the target or others for a what-if */
pod_status pod_step_case_run(const pod_step_case *run_case, pod_cli *cli, pod_par *par,
                             const pod_chip_spec *chip, pod_step_result *result, pod_error *err);

/** The same for given programs, those of the case or of a model with fewer layers. */
pod_status pod_step_case_simulate(const pod_step_case *run_case, pod_cli *cli, pod_par *par,
                                  const pod_chip_spec *chip, const pod_programs *programs,
                                  pod_step_result *result, pod_error *err);
/** A transformer's step from few of its layers (step_periodic.c). @param[out] done  false: the step has too few
 *  layers, or `--exact` asks for all; then result is untouched */
pod_status pod_step_periodic(const pod_step_case *run_case, pod_cli *cli, pod_par *par,
                             const pod_chip_spec *chip, pod_step_result *result, bool *done,
                             pod_error *err);

/** The numbers of all layouts of an order against one chip (workload/verify/reference.h). Collective.
 *  @param reference  made before from any case of the order */
pod_status pod_step_reference_make(pod_cli *cli, const pod_step_case *run_case,
                                   pod_reference **reference, pod_error *err);

/** What real numbers came out as. */
typedef struct pod_step_numbers {
    bool checked;
    double max_rel_err;
    int64_t wrong;
} pod_step_numbers;

/** Simulate with real numbers and compare. Collective on all ranks. */
pod_status pod_step_case_run_data(const pod_step_case *run_case, pod_cli *cli,
                                  const pod_chip_spec *chip, const pod_reference *reference,
                                  pod_step_result *result, pod_step_numbers *numbers,
                                  pod_error *err);

/** Whether --data, or the size, asks for real numbers; says the choice on stderr.
 *  @param bytes  that all chips together need; < 0: there are no numbers to compute */
bool pod_step_wants_data(const pod_cli *cli, int64_t bytes);

/** One row of output: a plain value. */
typedef struct pod_step_outcome {
    int64_t status; /**< pod_status: why the rest is not there, or POD_OK */
    char reason[POD_ERROR_TEXT_MAX];
    char mesh[POD_MESH_TEXT_MAX];
    char dcn_mesh[POD_MESH_TEXT_MAX];
    char placement[POD_STEP_PLACEMENT_MAX];
    char remat[POD_REMAT_NAME_MAX];
    int64_t batch;
    int64_t time_ps;
    pod_step_figures figures;
    double compute_s;
    double exposed_ici_s;
    double exposed_dcn_s;
    double exposed_host_s;
    double idle_s;
    int64_t data; /**< 1 = real */
    double max_rel_err;
    int64_t wrong;
} pod_step_outcome;

/** @param chip     rates that ran
 *  @param numbers  NULL without data */
void pod_step_outcome_get(const pod_step_case *run_case, const pod_chip_spec *chip,
                          const pod_step_result *result, const pod_step_numbers *numbers,
                          pod_step_outcome *outcome);

enum { POD_STEP_COLUMNS = 24 };
/** The columns of `podsim step`: the table shows the host's if there is input, those of DCN with several
 *  slices. */
void pod_step_columns(pod_emit_column *columns, const pod_step_order *order, bool several_slices);
/** The cells of those columns. */
void pod_step_emit(pod_emit *emit, const pod_step_order *order, const pod_slice *slice,
                   const pod_step_outcome *outcome);
/** POD_E_CHECK when numbers were wrong. */
pod_status pod_step_verdict(const pod_step_outcome *outcome, pod_error *err);

/** What the table of step shows below its row. Local. POD_E_NOMEM. */
pod_status pod_step_notes(pod_emit *emit, const pod_step_case *run_case, const pod_chip_spec *chip,
                          const pod_step_result *result, pod_error *err);

/** What crosses slices: required against available rate, on the table and for --explain, with the input. Local. */
void pod_step_dcn_note(pod_emit *emit, const pod_step_case *run_case, const pod_chip_spec *chip,
                       const pod_step_result *result);
void pod_step_dcn_explain(const pod_cli *cli, const pod_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result);

/** `--collectives FILE` and `--memory FILE`. Rank 0 writes. POD_E_IO, POD_E_NOMEM. */
pod_status pod_step_files_write(const pod_cli *cli, const pod_step_case *run_case,
                                const pod_step_result *result, pod_error *err);

/* ---- what if ---- */

/** A resource that `--what-if` makes faster. */
typedef struct pod_what_if {
    bool all; /**< `all`: every resource, one after the other */
    int key;  /**< place in pod_what_if_keys */
    double factor;
} pod_what_if;

enum { POD_WHAT_IF_KEYS = 7 };
extern const char *const pod_what_if_keys[POD_WHAT_IF_KEYS];

/** "ici=2" or "all". POD_E_USAGE. */
pod_status pod_what_if_parse(const char *text, pod_what_if *what, pod_error *err);
/** The chip with that resource `factor` times faster. */
pod_chip_spec pod_what_if_chip(const pod_chip_spec *chip, int key, double factor);
/** Rows of `--what-if all`. Collective. */
pod_status pod_what_if_table(pod_cli *cli, const pod_step_case *run_case, pod_time_ps base_ps,
                             pod_error *err);
