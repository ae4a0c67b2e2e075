/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/measurement.h  Private to `podsim validate`: a file of published measurements, and what
 *  podsim says to one of them.
 *
 *  Model: a measurement is a podsim command line (`command` and `args`, words split at blanks, no
 *  quotes), the column of its CSV output to look at (`metric`), and the published value in a unit:
 *
 *      unit                          metric
 *      us, ms, s                     a column of times: its name ends in _us, _ms or _s
 *      TFLOP/s                       its name holds tflops
 *      GB/s                          its name holds GBps
 *      frac                          any other column: taken as it is
 *      ratio                         args hold " :: ": the metric of the first command line over
 *                                    that of the second; or any other column, taken as it is
 *
 *  A command line runs as if typed, without numbers unless it asks for them (`--data none`; times
 *  don't depend on it), its output is read as a table and must have one row.
 *
 *  Ownership: a measurement borrows from its table. Threads: one per rank. */
#pragma once

#include "cli/cli.h"

/** One row of the file. */
typedef struct pod_measurement {
    const char *id;
    const char *class_name;
    const char *command;
    const char *args;
    const char *metric;
    const char *unit;
    double value; /**< published, > 0 */
    double tolerance_frac;
} pod_measurement;

/** Read the measurements of a table. Not collective.
 *  @param class_name  only rows of this class; NULL = all
 *  @param[out] rows   rows[*count], heap memory of the caller, in order of the table
 *  @return POD_OK; POD_E_TABLE at the field: unknown or missing columns, no rows, an id or class that is
 *          empty, an id that occurs twice, a value or tolerance that is no such number, an unknown unit, one
 *          that doesn't fit the metric or the args; POD_E_USAGE: no such class; POD_E_NOMEM */
pod_status pod_measurements_read(const pod_table *table, const char *class_name,
                                 pod_measurement **rows, int *count, pod_error *err);

/** Run the command line, or both of a ratio, on one rank.
 *  @param cli         of the command that validates; its tables are loaded, its --rates and --set hold
 *                     for the rows too
 *  @param par         the rank by itself
 *  @param[out] value  in the unit of the measurement
 *  @return POD_OK; POD_E_CHECK: it ran, but computed wrong numbers; POD_E_NOMEM, POD_E_INTERNAL; any
 *          other status: podsim can't run it, err says why */
pod_status pod_measurement_predict(const pod_cli *cli, pod_par *par, const pod_measurement *row,
                                   double *value, pod_error *err);
