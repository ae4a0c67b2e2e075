/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/measurement.h  Published measurements, what podsim says to them, and how far off it is.
 *
 *  Model: a measurement is a podsim command line (`command` and `args`), the figure of it to look at
 *  (`metric`), and the published value in a unit:
 *
 *      unit                          metric
 *      us, ms, s                     a column of times: its name ends in _us, _ms or _s
 *      TFLOP/s                       its name holds tflops
 *      GB/s                          its name holds GBps
 *      frac                          any other column, as it is
 *      ratio                         args hold " :: ": the metric of the first command line over
 *                                    that of the second; or any other column, as it is
 *
 *  Whoever knows the command lines gives a function that runs one and returns a figure; rows are dealt out to
 *  the ranks, and each runs whole on one rank by itself. Ranks exchange them every few rows.
 *
 *  Ownership: a measurement borrows from its table. Threads: one per rank. */
#pragma once

#include "base/table.h"
#include "experiment/experiment.h"

/** One row of the file. */
typedef struct pod_experiment_measurement {
    const char *id;
    const char *class_name;
    const char *command;
    const char *args;
    const char *metric;
    const char *unit;
    double value; /**< published, > 0 */
    double tolerance_frac;
} pod_experiment_measurement;

/** Read the measurements of a table. Not collective.
 *  @param class_name  only rows of this class; NULL = all
 *  @param[out] rows   rows[*count], heap memory of the caller, in order of the table
 *  @return POD_OK; POD_E_TABLE at the field: unknown or missing columns, no rows, an id or class that is
 *          empty, an id that occurs twice, a value or tolerance that is no such number, an unknown unit, one
 *          that doesn't fit the metric or the args; POD_E_USAGE: no such class; POD_E_NOMEM */
pod_status pod_experiment_measurements_read(const pod_table *table, const char *class_name,
                                            pod_experiment_measurement **rows, int *count,
                                            pod_error *err);

/** The figure of one command line, run on a rank by itself.
 *  @param args        its words, separated by blanks
 *  @param[out] value  in the unit of the metric's name
 *  @return POD_OK; POD_E_CHECK: it ran, but computed wrong numbers; POD_E_NOMEM, POD_E_INTERNAL; any
 *          other status: podsim can't run it, err says why */
typedef pod_status pod_experiment_figure(void *context, pod_par *self, const char *command,
                                         const char *args, const char *metric, double *value,
                                         pod_error *err);

/** What came of a measurement: a plain value. */
typedef struct pod_experiment_measured {
    int64_t status;    /**< pod_status */
    bool supported;    /**< it ran; else the figures are 0 */
    bool within;       /**< its numbers are right, and the error is at most the tolerance */
    double predicted;  /**< in the unit of the measurement */
    double error_frac; /**< predicted / published - 1 */
    char reason[POD_ERROR_TEXT_MAX]; /**< why it isn't supported */
} pod_experiment_measured;

/** Who hears of rows as they are final, in their order: on every rank. May be NULL. */
typedef void pod_experiment_heard(void *context, int row, const pod_experiment_measured *measured);

/** Run all rows. Collective.
 *  @param context        of figure and heard
 *  @param[out] measured  measured[count]
 *  @return POD_E_NOMEM and POD_E_INTERNAL of any row, naming it */
pod_status pod_experiment_measurements_run(pod_experiment *experiment,
                                           const pod_experiment_measurement *rows, int count,
                                           pod_experiment_figure *figure,
                                           pod_experiment_heard *heard, void *context,
                                           pod_experiment_measured *measured, pod_error *err);

/** The rows of one class together. */
typedef struct pod_experiment_class {
    const char *name;
    int rows;
    int off;
    int unsupported;
    double median_error_frac; /**< of absolute errors, as the next two */
    double p90_error_frac;    /**< nine tenths of the rows are no further off */
    double worst_error_frac;
    double bias_frac;     /**< mean error, with its sign */
    const char *worst_id; /**< NULL when no row ran */
} pod_experiment_class;

/** Classes in order of appearance. Not collective.
 *  @param[out] classes  (*nclasses), for free()
 *  @return POD_E_NOMEM */
pod_status pod_experiment_classes(const pod_experiment_measurement *rows,
                                  const pod_experiment_measured *measured, int count,
                                  pod_experiment_class **classes, int *nclasses, pod_error *err);
