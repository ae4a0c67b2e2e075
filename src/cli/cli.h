/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/cli.h  What all commands share: one run of one command line.
 *
 *  Model: main.c starts the ranks and hands the command line to pod_cli_execute (cli/commands.h), which finds the
 *  command in its table and calls it. A command parses its options (cli/options.h), loads tables
 *  (cli/tables.h), computes, and leaves its result as text in cli->output; main.c delivers that. So
 *  a command can also be run inside another one (`validate`), which takes one of its figures instead.
 *
 *  Every rank does all of this with the same arguments and the same tables, so that every rank comes
 *  to the same status by itself. What can fail on one rank alone (a file on rank 0, memory) is agreed
 *  before anyone branches.
 *
 *  stdout: results only. stderr: rank 0 only, as `podsim: …`.
 *
 *  Ownership: pod_cli is the caller's storage; pod_cli_init / pod_cli_fini. Threads: one per rank. */
#pragma once

#include "base/emit.h"
#include "base/text.h"
#include "chip/chip.h"
#include "cli/strings.h"
#include "experiment/experiment.h"
#include "experiment/tables.h"
#include "report/findings.h"

#include <stdbool.h>
#include <stdint.h>

/** What the common options say (CLI.md). */
typedef struct pod_cli_common {
    const char *slice; /**< --slice of commands that take one; then also in slices */
    pod_cli_list slices;
    const char *wrap; /**< NULL = as the table says */
    pod_rates rates;
    pod_cli_list settings;
    pod_cli_list fail_links;
    pod_cli_list slow_links;
    pod_cli_list slow_chips;
    pod_cli_list slow_hosts;
    pod_cli_list slow_nics;
    pod_cli_list failed_dcn;
    bool hosts_work; /**< set by a command in which hosts of one slice have something to do */
    pod_format format;
    bool wide;
    int width; /**< of tables: columns of the terminal; POD_EMIT_WIDE; 0 = as wide as they get */
    const char *output_path; /**< NULL = standard output */
    const char *trace_path;  /**< a timeline; NULL = none */
    const char *trace_chips; /**< NULL = chip 0 and the one done last */
    const char *plot_path;   /**< a picture; NULL = none */
    const char *html_path;   /**< a page; NULL = none */
    bool explain;
    bool verbose;
    bool quiet;
} pod_cli_common;

/** What a command line that runs inside another one is asked for. */
typedef struct pod_cli_figure {
    const char *column;
    double value;
    bool there; /**< it has been found */
} pod_cli_figure;

/** Who runs a command line for its values (src/api): nothing is printed then. */
typedef struct pod_cli_taker {
    void *context;
    /** The rows, before they become a text. */
    pod_status (*take)(void *context, const pod_emit *emit, pod_error *err);
    pod_text said; /**< what a person would see on stderr, a line each; progress apart */
} pod_cli_taker;

/** A file that an option names to be written. */
typedef struct pod_cli_write {
    const char *option; /**< without dashes */
    const char *path;
} pod_cli_write;
enum { POD_CLI_WRITES_MAX = 16 };

typedef struct pod_cli pod_cli;

/** A command: its name is argv[0]. Collective. */
typedef pod_status pod_cli_run(pod_cli *cli, int argc, const char **argv, pod_error *err);

struct pod_cli {
    pod_par *par;
    pod_experiment_tables *tables; /**< borrowed; shared by commands of one process */
    /** on par, under --data and --seed; notes and progress go to stderr */
    pod_experiment experiment;
    pod_cli_common common;
    pod_cli_write writes[POD_CLI_WRITES_MAX];
    int nwrites;
    const char *summary; /**< of the command that runs; NULL = of none */
    /** --help or --help-all was given: output holds it, and the command has nothing to do */
    bool help;
    bool help_all; /**< it was --help-all */
    bool man;      /**< as a manual page */
    /** typed[ntyped]: words for cli/complete.h, whose answer is the output; or NULL */
    const char *const *typed;
    int ntyped;
    pod_text output;
    pod_text last_words;      /**< lines for stderr below the output */
    pod_text line;            /**< the command line, as one would type it */
    bool page_written;        /**< the command writes the page of --html itself */
    pod_text page;            /**< of --html: what format json prints, */
    pod_text page_trace;      /**< and the timeline; empty = none */
    bool output_stays;        /**< the output says what the error is about: it is delivered, too */
    pod_cli_figure *figure;   /**< instead of an output, or NULL */
    pod_cli_taker *taker;     /**< takes rows and lines beside it, or NULL */
    pod_cli_strings *strings; /**< what the options point to */
    bool progress_shown;
    double progress_start_s; /**< when what is shown began */
    bool rows_began;         /**< rows come (pod_cli_rows_begin), */
    pod_status rows_status;  /**< and what the first that didn't says */
    pod_error rows_error;
    pod_cli_run *execute; /**< how a command runs another command line: pod_cli_execute */
};

/** The experiment of a pod_cli borrows it: it must not move. */
void pod_cli_init(pod_cli *cli, pod_par *par, pod_experiment_tables *tables, pod_cli_run *execute);
void pod_cli_fini(pod_cli *cli);

/** Remember the command line, quoted as a shell wants it, for the data of a run. */
void pod_cli_line_set(pod_cli *cli, int argc, const char **argv);
/** The finished emitter's text becomes the output; or the figure that was asked for is taken from its only row. */
pod_status pod_cli_finish(pod_cli *cli, pod_emit *emit, pod_error *err);
/** A run says more than its rows: not as CSV, and not where one figure is asked for. */
bool pod_cli_wants_findings(const pod_cli *cli);
/** Findings, and then as pod_cli_finish; those of POD_FINDING_AFTER go to stderr. */
pod_status pod_cli_report(pod_cli *cli, pod_emit *emit, pod_findings *findings, pod_error *err);
/** Rows may come while the command works: as CSV on standard output, as a table on a terminal. The same on every call;
 *  of this rank. */
bool pod_cli_rows_come(const pod_cli *cli);
/** Where rows come, those in the emitter were samples, at least as wide as what will come: columns become as wide, and
 *  the headings of the findings are said. Elsewhere, where nobody adds samples, without effect. Not collective. */
void pod_cli_rows_begin(pod_cli *cli, pod_emit *emit, pod_findings *findings);
/** A row is final: where rows come it goes to standard output at once, in place of progress. What fails is said by
 *  pod_cli_deliver. Not collective. */
void pod_cli_rows_next(pod_cli *cli, pod_emit *emit);
/** Write the output to where the options say, but for rows that have come. Rank 0 writes; the others return POD_OK.
 *  Not collective. POD_E_IO. */
pod_status pod_cli_deliver(const pod_cli *cli, pod_error *err);

/** True where a table is made for a terminal: rows that nobody reads become one line. */
bool pod_cli_is_narrow(const pod_cli *cli);

/** Lines on stderr of rank 0, broken where a terminal ends: `podsim: warning: …` unless -q; `podsim: …` unless -q; the
 *  same below the output; the same with -v only; `podsim: …` with --explain only. */
__attribute__((format(printf, 2, 3))) void pod_cli_warn(const pod_cli *cli, const char *format,
                                                        ...);
__attribute__((format(printf, 2, 3))) void pod_cli_say(const pod_cli *cli, const char *format, ...);
__attribute__((format(printf, 2, 3))) void pod_cli_say_last(pod_cli *cli, const char *format, ...);
__attribute__((format(printf, 2, 3))) void pod_cli_detail(const pod_cli *cli, const char *format,
                                                          ...);
__attribute__((format(printf, 2, 3))) void pod_cli_explain(const pod_cli *cli, const char *format,
                                                           ...);
