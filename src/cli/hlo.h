/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/hlo.h  Private to `podsim hlo`: options, files, and what is printed.
 *
 *  Threads: one per rank. */
#pragma once

#include "cli/options.h"
#include "cli/tables.h"
#include "cli/target.h"
#include "experiment/hlo_faults.h"
#include "experiment/hlo_ops.h"
#include "experiment/hlo_remedies.h"
#include "hlo/facts.h"
#include "hlo/sidecar.h"
#include "report/op_lines.h"

#include <limits.h>

/** What the options say, as given. */
typedef struct pod_hlo_texts {
    const char *file;
    const char *other; /**< a second program, to be compared; or NULL */
    bool facts;
    const char *schedule; /**< "text", or NULL */
    const char *module;   /**< name of the program in a profile, or NULL */
    const char *device_order;
    const char *sidecar;
    pod_cli_list trips;
    pod_cli_list branches;
    /* of the step */
    const char *mesh;
    const char *dcn_mesh;
    bool split_axes;
    const char *cost;
    const char *algorithm;
    const char *attention;
    const char *kernels;
    pod_cli_list custom_calls;
    pod_cli_list scales;
    const char *what_if;
    bool exact;
    const char *top;
    const char *by;
    const char *measured; /**< a profile, or NULL */
    const char *measured_step;
    int64_t measured_chip;
    const char *max_error; /**< "10%", or NULL */
    const char *calibrate;
    const char *ops;
    const char *collectives;
    const char *memory;
    const char *links;
} pod_hlo_texts;

/** What the command line names, read. */
typedef struct pod_hlo_inputs {
    pod_cli_file text;
    pod_cli_file sidecar; /**< path NULL = there is none */
    pod_cli_file order;   /**< path NULL = --device-order is no file */
    pod_cli_file scales;  /**< path NULL = --scale names none */
    char sidecar_name[PATH_MAX];
    pod_table *table;
    pod_hlo_sidecar known;
} pod_hlo_inputs;

/** How the options want the text read. */
static inline pod_hlo_reading pod_hlo_reading_of(const pod_hlo_texts *texts)
{
    return (pod_hlo_reading){.text_order = texts->schedule != NULL, .module = texts->module};
}

/** Warnings on stderr that a text gives rise to. */
void pod_hlo_say_text(const pod_cli *cli, const pod_hlo_inputs *inputs,
                      const pod_hlo_analysis *analysis, int64_t argument_bytes);

/** The step: everything but --facts. Collective. */
pod_status pod_hlo_step(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *inputs,
                        const pod_hlo_choices *choices, pod_error *err);

/** A program that is ready to be run, for who asked for it. */
typedef struct pod_hlo_asked {
    const pod_experiment_hlo_request *request;
} pod_hlo_asked;
typedef pod_status pod_hlo_act(pod_cli *cli, const pod_hlo_asked *asked, void *context,
                               pod_error *err);
/** Read a program and lay it on its slice; then act. What is asked lives as long as the act. Collective. */
pod_status pod_hlo_ask(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *inputs,
                       const pod_hlo_choices *choices, pod_hlo_act *act, void *context,
                       pod_error *err);

/** Two programs, operation by operation (hlo_compare.c). Collective. */
pod_status pod_hlo_compare(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *a,
                           const pod_hlo_inputs *b, const pod_hlo_choices *choices, pod_error *err);

/** `--custom-call` and `--scale`, its file too, as structs; names are heap.
 *  Both are for pod_hlo_marks_fini. POD_E_USAGE, POD_E_TABLE. */
typedef struct pod_hlo_marks {
    pod_hlo_custom *custom;
    int ncustom;
    pod_hlo_scale *scale;
    int nscales;
} pod_hlo_marks;
pod_status pod_hlo_marks_read(pod_hlo_marks *marks, const pod_hlo_texts *texts,
                              const pod_hlo_inputs *inputs, pod_error *err);
void pod_hlo_marks_fini(pod_hlo_marks *marks);

/** A step that was simulated, and what is printed of it. */
typedef struct pod_hlo_report {
    const pod_hlo_texts *texts;
    const pod_hlo_inputs *inputs;
    const pod_experiment_hlo_text *text;
    const pod_experiment_hlo_request *request;
    const pod_experiment_setup *setup;
    const pod_chip_spec *chip;
    const pod_experiment_hlo_outcome *outcome;
    const pod_hlo_memory *memory;
    pod_time_ps other_ps; /**< the step with the other --cost */
    int64_t hbm_bytes;    /**< of a chip, and whether the compiler says it */
    bool hbm_of_compiler;
    int64_t argument_bytes;
    int top;
    bool grouped; /**< by pod_hlo_by_names[by] */
    int by;
    char module[POD_HLO_NAME_MAX + 1];
    bool advised; /**< for a table: what else was simulated */
    pod_experiment_hlo_faults faults;
    pod_experiment_hlo_remedy remedies[POD_HLO_REMEDIES];
    pod_experiment_hlo_unknown unknown[POD_HLO_UNKNOWNS_MAX];
    int nunknown;
} pod_hlo_report;

/** `--by`: what takes the time by source line, kind, … instead of the row (hlo_by.c). */
pod_status pod_hlo_by(pod_cli *cli, const pod_hlo_report *report, pod_error *err);
/** Names of --by, in the order of its rows. */
enum { POD_HLO_BYS = 4 };
extern const char *const pod_hlo_by_names[POD_HLO_BYS];

/** "10%" of --max-error as 0.1. POD_E_USAGE */
pod_status pod_hlo_max_error(const char *text, double *part, pod_error *err);
/** `--measured`: a profile beside the prediction instead of the row (hlo_measured.c). Collective.
 *  POD_E_CHECK beyond --max-error; the rows are printed all the same. */
pod_status pod_hlo_measured(pod_cli *cli, const pod_hlo_report *report, pod_error *err);

/** The row, and below the table what takes the time. */
pod_status pod_hlo_print(pod_cli *cli, const pod_hlo_report *report, const char *what_if,
                         pod_error *err);
/** What else was simulated: remedies, kernels that aren't known (hlo_advice.c). */
void pod_hlo_note_advice(pod_findings *findings, const pod_hlo_report *report);
/** Where the time goes, top operations, loops (hlo_notes.c). */
pod_status pod_hlo_notes(pod_findings *findings, const pod_hlo_report *report, pod_error *err);

/** `--ops`, `--collectives`, `--memory`, `--links`. Rank 0 writes. POD_E_IO, POD_E_NOMEM. */
pod_status pod_hlo_files_write(const pod_cli *cli, const pod_hlo_report *report, pod_error *err);
/** The same tables for a page, on rank 0. POD_E_NOMEM. */
pod_status pod_hlo_files_find(pod_findings *findings, const pod_hlo_report *report, pod_error *err);

/** `--trace`: simulates every iteration once more, with chips watched. Collective.
 *  @return POD_E_INVALID for too many events, POD_E_RANGE for too many ops; POD_E_IO, POD_E_NOMEM */
pod_status pod_hlo_trace(pod_cli *cli, const pod_hlo_report *report, pod_error *err);

/* ---- of an instruction ---- */

enum { POD_HLO_CELL_MAX = 512 };

/** Room for the texts of a line. */
typedef struct pod_hlo_op_texts {
    char name[POD_HLO_CELL_MAX];
    char opcode[POD_HLO_CELL_MAX];
    char computation[POD_HLO_CELL_MAX];
    char op_name[POD_HLO_CELL_MAX];
    char source[POD_HLO_CELL_MAX];
} pod_hlo_op_texts;
/** An operation as a line, whose texts are in `texts` (hlo_files.c). Not collective. */
void pod_hlo_op_line(const pod_hlo_report *report, const pod_experiment_hlo_op *op,
                     pod_hlo_op_texts *texts, pod_op_line *line);
/** Its name or op_name, cut, into buf. @return buf */
const char *pod_hlo_print_name(const pod_hlo_module *module, uint32_t instruction, char *buf,
                               size_t size);
const char *pod_hlo_print_op_name(const pod_hlo_module *module, uint32_t instruction, char *buf,
                                  size_t size);
/** "FILE:LINE" that it comes from, cut, into buf, "" if the text doesn't tell. @param size  at least POD_HLO_CELL_MAX
 *  @return buf */
const char *pod_hlo_print_source(const pod_hlo_module *module, uint32_t instruction, char *buf,
                                 size_t size);
