/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/measurement.h"

#include "base/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char BETWEEN[] = " :: ";

/* ---- units ---- */

typedef enum dimension { PLAIN, SECONDS, FLOPS_PER_S, BYTES_PER_S } dimension;

static const char *const dimension_names[] = {"a plain number", "a time", "a rate of operations",
                                              "a bandwidth"};

typedef struct unit {
    const char *name; /* of a unit, or what the name of a column ends in or holds */
    dimension is;
    double size; /* in units of SI */
} unit;

static const unit units[] = {
    {"us",      SECONDS,     1e-6},
    {"ms",      SECONDS,     1e-3},
    {"s",       SECONDS,     1   },
    {"TFLOP/s", FLOPS_PER_S, 1e12},
    {"GB/s",    BYTES_PER_S, 1e9 },
    {"frac",    PLAIN,       1   },
    {"ratio",   PLAIN,       1   },
    {"B",       PLAIN,       1   },
};
enum { NUNITS = sizeof units / sizeof units[0] };

static const unit *unit_find(const char *name)
{
    for (int i = 0; i < NUNITS; i++) {
        if (strcmp(units[i].name, name) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text);
    const size_t tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* The unit in the name of a column. */
static unit unit_of_column(const char *column)
{
    static const unit tails[] = {
        {"_us", SECONDS, 1e-6},
        {"_ms", SECONDS, 1e-3},
        {"_s",  SECONDS, 1   },
    };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        if (ends_in(column, tails[i].name)) {
            return tails[i];
        }
    }
    if (strstr(column, "tflops") != NULL) {
        return (unit){"", FLOPS_PER_S, 1e12};
    }
    return strstr(column, "GBps") != NULL ? (unit){"", BYTES_PER_S, 1e9} : (unit){"", PLAIN, 1};
}

/* ---- the file ---- */

enum { ID, CLASS, COMMAND, ARGS, METRIC, VALUE, UNIT, TOLERANCE, SOURCE, NOTE, NCOLUMNS };

static const char *const column_names[NCOLUMNS] = {
    [ID] = "id",     [CLASS] = "class",   [COMMAND] = "command",
    [ARGS] = "args", [METRIC] = "metric", [VALUE] = "value",
    [UNIT] = "unit", [SOURCE] = "source", [TOLERANCE] = "tolerance_frac",
    [NOTE] = "note",
};

static pod_status check_unit(const pod_table *table, int row, const int *columns,
                             const pod_experiment_measurement *measured, pod_error *err)
{
    const unit *given = unit_find(measured->unit);
    if (given == NULL) {
        return pod_table_fail(table, row, columns[UNIT], err,
                              "unknown unit '%s'; valid: us, ms, s, TFLOP/s, GB/s, frac, ratio, B",
                              measured->unit);
    }
    if (strstr(measured->args, BETWEEN) != NULL) {
        return strcmp(given->name, "ratio") == 0
                   ? POD_OK
                   : pod_table_fail(table, row, columns[UNIT], err,
                                    "two command lines give a ratio; not '%s'", measured->unit);
    }
    const unit column = unit_of_column(measured->metric);
    return column.is == given->is
               ? POD_OK
               : pod_table_fail(table, row, columns[UNIT], err,
                                "'%s' is no unit of %s, which is %s; give one of its kind",
                                measured->unit, measured->metric, dimension_names[column.is]);
}

static pod_status read_row(const pod_table *table, int row, const int *columns,
                           pod_experiment_measurement *measured, pod_error *err)
{
    static const int needed[] = {ID, CLASS, COMMAND, METRIC};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (pod_table_text(table, row, columns[needed[i]])[0] == '\0') {
            return pod_table_fail(table, row, columns[needed[i]], err,
                                  "%s is empty; every measurement needs one",
                                  column_names[needed[i]]);
        }
    }
    *measured = (pod_experiment_measurement){
        .id = pod_table_text(table, row, columns[ID]),
        .class_name = pod_table_text(table, row, columns[CLASS]),
        .command = pod_table_text(table, row, columns[COMMAND]),
        .args = pod_table_text(table, row, columns[ARGS]),
        .metric = pod_table_text(table, row, columns[METRIC]),
        .unit = pod_table_text(table, row, columns[UNIT]),
    };
    POD_TRY(pod_table_double(table, row, columns[VALUE], 1e-30, 1e30, &measured->value, err));
    POD_TRY(
        pod_table_double(table, row, columns[TOLERANCE], 0, 1e3, &measured->tolerance_frac, err));
    return check_unit(table, row, columns, measured, err);
}

/* Keeps the rows of one class. */
static pod_status select_class(pod_experiment_measurement *rows, int *count, const char *class_name,
                               pod_error *err)
{
    const char **names = calloc((size_t)*count, sizeof *names);
    if (names == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the names of classes");
    }
    int nnames = 0;
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        int known = 0;
        while (known < nnames && strcmp(names[known], rows[i].class_name) != 0) {
            known++;
        }
        if (known == nnames) {
            names[nnames++] = rows[i].class_name;
        }
        if (strcmp(rows[i].class_name, class_name) == 0) {
            rows[kept++] = rows[i];
        }
    }
    const pod_status st =
        kept > 0 ? POD_OK : pod_fail_unknown(err, POD_E_USAGE, "class", class_name, names, nnames);
    free(names);
    *count = kept;
    return st;
}

pod_status pod_experiment_measurements_read(const pod_table *table, const char *class_name,
                                            pod_experiment_measurement **rows, int *count,
                                            pod_error *err)
{
    POD_TRY(pod_table_expect(table, column_names, NCOLUMNS, false, err));
    int columns[NCOLUMNS];
    for (int i = 0; i < NCOLUMNS; i++) {
        columns[i] = pod_table_column(table, column_names[i]);
    }
    *count = pod_table_rows(table);
    if (*count == 0) {
        return pod_fail_at(err, POD_E_TABLE, pod_table_name(table), 1, 1,
                           "no measurements; give at least one row");
    }
    pod_status st = pod_table_unique(table, &columns[ID], 1, err);
    pod_experiment_measurement *all = st == POD_OK ? calloc((size_t)*count, sizeof *all) : NULL;
    if (st == POD_OK && all == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for %d measurements", *count);
    }
    for (int i = 0; i < *count && st == POD_OK; i++) {
        st = read_row(table, i, columns, &all[i], err);
    }
    if (st == POD_OK && class_name != NULL) {
        st = select_class(all, count, class_name, err);
    }
    if (st != POD_OK) {
        free(all);
        return st;
    }
    *rows = all;
    return POD_OK;
}

/* ---- running ---- */

/* A row and who runs its command lines. */
typedef struct row_run {
    const pod_experiment_measurement *row;
    pod_experiment_figure *figure;
    void *context;
    pod_par *self;
} row_run;

/* Metrics that say whether a step fits the HBM: 1 if podsim agrees, else 0. */
static const char FITS[] = "fits";
static const char DOES_NOT_FIT[] = "does not fit";

static pod_status run_fit(const row_run *run, const char *args, double *value, pod_error *err)
{
    pod_error refusal = {0};
    const pod_status st =
        run->figure(run->context, run->self, run->row->command, args, "hbm_frac", value, &refusal);
    if (st != POD_OK && st != POD_E_NOFIT) {
        *err = refusal;
        return st;
    }
    *value = (st == POD_OK) == (strcmp(run->row->metric, FITS) == 0) ? 1 : 0;
    return POD_OK;
}

static pod_status run_line(const row_run *run, const char *args, double *value, pod_error *err)
{
    if (strcmp(run->row->metric, FITS) == 0 || strcmp(run->row->metric, DOES_NOT_FIT) == 0) {
        return run_fit(run, args, value, err);
    }
    return run->figure(run->context, run->self, run->row->command, args, run->row->metric, value,
                       err);
}

/* The metric of each command line, one or two. @param text  the args, cut in place */
static pod_status run_lines(const row_run *run, char *text, double *value, pod_error *err)
{
    char *second = strstr(text, BETWEEN);
    if (second == NULL) {
        return run_line(run, text, value, err);
    }
    *second = '\0';
    second += sizeof BETWEEN - 1;
    if (strstr(second, BETWEEN) != NULL) {
        return pod_fail(err, POD_E_USAGE, "more than two command lines; a ratio is of two");
    }
    double below = 0;
    POD_TRY(run_line(run, text, value, err));
    POD_TRY(run_line(run, second, &below, err));
    if (below == 0) {
        POD_TRY(pod_fail(err, POD_E_USAGE, "the second %s is 0; a ratio needs another",
                         run->row->metric));
    }
    *value /= below;
    return POD_OK;
}

/* The figure in the unit of the measurement. */
static pod_status predict(const row_run *run, double *value, pod_error *err)
{
    const pod_experiment_measurement *row = run->row;
    char *text = strdup(row->args);
    if (text == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a command line");
    }
    *value = 0;
    const pod_status st = run_lines(run, text, value, err);
    const unit *given = unit_find(row->unit);
    if (st == POD_OK && given != NULL && given->is != PLAIN) {
        *value *= unit_of_column(row->metric).size / given->size;
    }
    free(text);
    return st;
}

/* What ends the run, and isn't the fault of a row. */
static bool is_fatal(pod_status st)
{
    return st == POD_E_INTERNAL || st == POD_E_NOMEM;
}

static pod_status run_row(const row_run *run, pod_experiment_measured *measured, pod_error *err)
{
    const pod_experiment_measurement *row = run->row;
    pod_error failure = {0};
    double value = 0;
    const pod_status st = predict(run, &value, &failure);
    *measured = (pod_experiment_measured){.status = st};
    memcpy(measured->reason, failure.text, sizeof measured->reason);
    if (is_fatal(st)) {
        return pod_fail(err, st, "%s: %s", row->id, failure.text);
    }
    measured->supported = st == POD_OK || st == POD_E_CHECK;
    if (measured->supported) {
        measured->predicted = value;
        measured->error_frac = value / row->value - 1;
        measured->within = st == POD_OK && fabs(measured->error_frac) <= row->tolerance_frac;
    }
    return POD_OK;
}

pod_status pod_experiment_measurements_run(pod_experiment *experiment,
                                           const pod_experiment_measurement *rows, int count,
                                           pod_experiment_figure *figure,
                                           pod_experiment_heard *heard, void *context,
                                           pod_experiment_measured *measured, pod_error *err)
{
    enum { ROWS_A_RANK = 8 }; /* so that ranks seldom wait for each other */
    pod_par *par = experiment->par;
    const int ranks = pod_par_size(par);
    const int together = ranks == 1 ? 1 : ROWS_A_RANK * ranks;
    row_run run = {.figure = figure, .context = context};
    pod_status st = pod_par_agree(par, pod_par_self_new(&run.self, err), err);
    for (int from = 0; from < count && st == POD_OK; from += together) {
        const int end = count - from < together ? count : from + together;
        for (int i = from + pod_par_rank(par); i < end && st == POD_OK; i += ranks) {
            run.row = &rows[i];
            st = run_row(&run, &measured[i], err);
        }
        st = pod_par_agree(par, st, err);
        POD_THEN(st, pod_experiment_share(par, measured + from, end - from, sizeof *measured, NULL,
                                          err));
        for (int i = from; i < end && st == POD_OK && heard != NULL; i++) {
            heard(context, i, &measured[i]);
        }
    }
    pod_par_self_free(run.self);
    return st;
}

/* ---- the summary ---- */

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* @param errors  room for one number per row */
static pod_experiment_class class_tally(const pod_experiment_measurement *rows,
                                        const pod_experiment_measured *measured, int count,
                                        const char *name, double *errors)
{
    pod_experiment_class sum = {.name = name};
    int compared = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].class_name, name) != 0) {
            continue;
        }
        sum.rows++;
        if (!measured[i].supported) {
            sum.unsupported++;
            continue;
        }
        sum.off += measured[i].within ? 0 : 1;
        errors[compared] = fabs(measured[i].error_frac);
        sum.bias_frac += measured[i].error_frac;
        if (sum.worst_id == NULL || errors[compared] > sum.worst_error_frac) {
            sum.worst_error_frac = errors[compared];
            sum.worst_id = rows[i].id;
        }
        compared++;
    }
    qsort(errors, (size_t)compared, sizeof *errors, compare_numbers);
    if (compared > 0) {
        sum.median_error_frac = (errors[compared / 2] + errors[(compared - 1) / 2]) / 2;
        sum.p90_error_frac = errors[(9 * compared + 9) / 10 - 1];
        sum.bias_frac /= compared;
    }
    return sum;
}

pod_status pod_experiment_classes(const pod_experiment_measurement *rows,
                                  const pod_experiment_measured *measured, int count,
                                  pod_experiment_class **classes, int *nclasses, pod_error *err)
{
    double *errors = calloc((size_t)count + 1, sizeof *errors);
    pod_experiment_class *all = calloc((size_t)count + 1, sizeof *all);
    *classes = NULL;
    *nclasses = 0;
    if (errors == NULL || all == NULL) {
        free(errors);
        free(all);
        return pod_fail(err, POD_E_NOMEM, "no memory for the summary");
    }
    for (int i = 0; i < count; i++) {
        int known = 0;
        while (known < *nclasses && strcmp(all[known].name, rows[i].class_name) != 0) {
            known++;
        }
        if (known == *nclasses) {
            all[(*nclasses)++] = class_tally(rows, measured, count, rows[i].class_name, errors);
        }
    }
    free(errors);
    *classes = all;
    return POD_OK;
}
