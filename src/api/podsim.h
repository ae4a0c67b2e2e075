/* SPDX-License-Identifier: Apache-2.0 */
/** @file podsim.h  libpodsim: what collectives, training steps and compiled programs cost on a TPU pod slice.
 *
 *  Model: a question is a command of podsim with its options (docs/commands), without their dashes:
 *
 *      const podsim_option options[] = {{"slice", "v5p:4x4x4"}, {"op", "all-reduce"}, {"bytes", "1GiB"}, {NULL, NULL}};
 *      podsim *context = podsim_open();
 *      podsim_result *result = NULL;
 *      if (podsim_collective(context, options, &result) != PODSIM_OK) {
 *          fprintf(stderr, "%s\n", podsim_error(context));
 *      } else {
 *          printf("%g us\n", podsim_collective_at(result, 0)->time_us);
 *      }
 *      podsim_result_free(result);
 *      podsim_close(context);
 *
 *  Options, values, defaults and errors are those of the command line, and so are the figures. Only how results are
 *  printed has no option here: `format`, `output`, `wide` and `help` are refused.
 *
 *  Results: rows as structs, whose fields are named like the columns of --format csv and have their units. The
 *  library allocates them; later versions may append fields, and never change or move one. Every column, also one
 *  without a field, is there by name; the whole result is there as the JSON of --format json.
 *
 *  Errors: a code and, of the last call in a context, one line of text. Nothing is printed, and nothing exits but for
 *  two cases that leave no way back: memory that runs out in the midst of a simulation, and a bug in podsim.
 *
 *  Threads: a context and its results belong to one thread at a time; threads with a context each don't disturb each
 *  other. MPI: podsim_open needs none and starts none.
 *
 *  Ownership: texts and rows belong to their result, podsim_error to its context. A result outlives its context. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** The codes are the exit codes of the command line. */
typedef enum podsim_code {
    PODSIM_OK = 0,
    PODSIM_CHECK = 1, /**< a check failed; there is a result all the same */
    PODSIM_USAGE = 2, /**< an option is unknown, missing or no value of its kind */
    PODSIM_INPUT =
        3, /**< the request can't be met, or a file of it can't be read as what it is; where rows say of
                            layouts why, there is a result */
    PODSIM_SYSTEM = 4, /**< files, memory, the installation */
    PODSIM_INTERNAL = 70
} podsim_code;

typedef struct podsim podsim;               /**< a context */
typedef struct podsim_result podsim_result; /**< an answer */

/** One option of a question; a list ends with {NULL, NULL}. What the command line repeats comes several times. */
typedef struct podsim_option {
    const char *name;  /**< as "slice"; "" = an argument without dashes, as the file of hlo */
    const char *value; /**< NULL of options without one */
} podsim_option;

/** "0.1.0" */
const char *podsim_version(void);

/** A context of this process alone. @return NULL without memory */
podsim *podsim_open(void);
/** A context of all ranks of a communicator, given as MPI_Comm_c2f(it): they share the work of each question and all
 *  get the answer. Every call in it is collective, with the same arguments. The communicator is duplicated; the caller
 *  has initialised MPI, with MPI_THREAD_MULTIPLE if several threads have such contexts, and closes before MPI_Finalize.
 *  @return NULL if MPI isn't initialised, or without memory */
podsim *podsim_open_comm(int fortran_communicator);
void podsim_close(podsim *context);

/** What was wrong in the last call of the context, one line that says what would be right; "" after PODSIM_OK. */
const char *podsim_error(const podsim *context);

/** Ask. @param[out] result  for podsim_result_free; NULL after an error that leaves none */
podsim_code podsim_slice(podsim *context, const podsim_option *options, podsim_result **result);
podsim_code podsim_collective(podsim *context, const podsim_option *options,
                              podsim_result **result);
podsim_code podsim_step(podsim *context, const podsim_option *options, podsim_result **result);
podsim_code podsim_compare(podsim *context, const podsim_option *options, podsim_result **result);
podsim_code podsim_plan(podsim *context, const podsim_option *options, podsim_result **result);
podsim_code podsim_hlo(podsim *context, const podsim_option *options, podsim_result **result);
/** Any command that prints rows, by name: "serve", "mesh", "chip", "list", … */
podsim_code podsim_ask(podsim *context, const char *command, const podsim_option *options,
                       podsim_result **result);
void podsim_result_free(podsim_result *result);

/* Figures that don't apply: NAN, PODSIM_NONE or NULL by type. */
#define PODSIM_NONE INT64_MIN

/** A slice (docs/commands/slice.md). */
typedef struct podsim_slice_row {
    const char *slice;
    const char *chip;
    const char *dims; /**< "4x4x8" */
    int64_t chips;    /**< of one slice */
    int64_t hosts;    /**< virtual machines */
    int64_t slices;
    const char *wrap; /**< axes that close */
    int64_t twisted;  /**< 0 or 1 */
    int64_t links;    /**< cables */
    int64_t diameter_hops;
    double mean_hops;
    int64_t bisection_links;
    double bisection_GBps; /**< one way */
} podsim_slice_row;

/** One algorithm at one size (docs/commands/collective.md). */
typedef struct podsim_collective_row {
    const char *slice;
    const char *op;
    const char *axes;
    int64_t group; /**< chips in each group */
    const char *algorithm;
    const char *dtype;
    int64_t bytes; /**< the full buffer of a chip */
    double time_us;
    double algbw_GBps;
    double busbw_GBps;
    double bound_us; /**< no algorithm is faster */
    double bound_frac;
    const char *limit;
    const char *data; /**< "real" or "none" */
    int64_t wrong;    /**< elements; of real data */
} podsim_collective_row;

/** A step under one layout: of step (docs/commands/step.md) and of compare (docs/commands/compare.md). */
typedef struct podsim_step_row {
    const char *slice;
    const char *model;
    const char *mesh;
    const char *dcn_mesh; /**< over slices */
    const char *placement;
    int64_t batch;
    int64_t seq;
    const char *dtype;
    const char *remat;
    const char *mode;
    double step_time_s;
    double tokens_per_s_per_chip;
    double model_tflops_per_chip;
    double mfu_frac;
    double compute_s;
    double exposed_ici_s;
    double exposed_dcn_s;
    double exposed_host_s;
    double idle_s;
    double hbm_bytes_per_chip;
    double hbm_frac;
    const char *limit;
    int64_t rank;       /**< of compare: 1 is the fastest */
    const char *status; /**< of compare: "ok", or why there is no time */
    const char *reason; /**< of compare: in words */
    double bound_s;     /**< of compare: no step of this layout is faster */
} podsim_step_row;

/** The best layout on one slice (docs/commands/plan.md). */
typedef struct podsim_plan_row {
    int64_t rank;
    const char *slice;
    int64_t chips;
    const char *mesh;
    const char *dcn_mesh;
    const char *remat;
    int64_t microbatches;
    int64_t batch;
    double step_time_s;
    double tokens_per_s;
    double tokens_per_s_per_chip;
    double mfu_frac;
    double hbm_frac;
    double cost_per_million_tokens;
    double run_cost;
    double days;
    const char *limit;
    double bound_s;
    int64_t candidates; /**< layouts that were looked at */
    const char *status;
} podsim_plan_row;

/** A compiled program (docs/commands/hlo.md). */
typedef struct podsim_hlo_row {
    const char *slice;
    const char *module;
    int64_t partitions;
    double step_time_s;
    double compute_s;
    double exposed_ici_s;
    double exposed_dcn_s;
    double exposed_hbm_s;
    double exposed_host_s;
    double idle_s;
    double compiler_s; /**< what XLA's own cost model says */
    double mxu_flops_per_chip;
    double mxu_frac;
    double hbm_read_bytes;
    double hbm_write_bytes;
    double hbm_bytes_per_chip;
    double hbm_frac;
    int64_t unknown_calls; /**< custom calls without a known time, */
    double unknown_s;      /**< and what they were taken to last */
    int64_t instructions;
} podsim_hlo_row;

/** Row `row` from 0; NULL beyond the last, or if the result is another command's. */
const podsim_slice_row *podsim_slice_at(const podsim_result *result, size_t row);
const podsim_collective_row *podsim_collective_at(const podsim_result *result, size_t row);
const podsim_step_row *podsim_step_at(const podsim_result *result, size_t row);
const podsim_plan_row *podsim_plan_at(const podsim_result *result, size_t row);
const podsim_hlo_row *podsim_hlo_at(const podsim_result *result, size_t row);

size_t podsim_result_rows(const podsim_result *result);
size_t podsim_result_columns(const podsim_result *result);
/** The name of a column; NULL beyond the last. */
const char *podsim_result_column(const podsim_result *result, size_t column);
/** A cell by the name of its column, as --format csv has it; NULL if it is empty or not there. */
const char *podsim_result_text(const podsim_result *result, size_t row, const char *column);
/** NAN if it is no number, empty or not there. */
double podsim_result_number(const podsim_result *result, size_t row, const char *column);
/** The result as --format json prints it, with what tables say around their rows ("findings"). */
const char *podsim_result_json(const podsim_result *result);
/** Warnings, notes and explanations, each line with its end: what the command line prints on stderr. On rank 0 of a
 *  communicator; "" elsewhere, and if there are none. */
const char *podsim_result_messages(const podsim_result *result);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
