/* SPDX-License-Identifier: Apache-2.0 */
/* podsim validate: rerun published measurements. Rows are dealt out to the ranks, and each runs whole on
 * one rank by itself, so that more ranks than a row has chips do no harm. */
#include "cli/measurement.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "id"},
    {.name = "class"},
    {.name = "metric"},
    {.name = "unit"},
    {.name = "published", .decimals = -1},
    {.name = "predicted", .decimals = 4},
    {.name = "error_frac", .title = "error", .decimals = 4},
    {.name = "within"},
    {.name = "status"},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "Runs the command line of every measurement and compares. within = 1 when the error is at "
    "most\n"
    "the tolerance of the row; status = ok, off (it isn't) or unsupported (podsim can't run it).\n"
    "Exit code 1 when any row is off or unsupported. A summary per class goes to stderr.\n"
    "Columns of the file: id,class,command,args,metric,value,unit,tolerance_frac,source,note;\n"
    "args with \" :: \" between two command lines ask for the ratio of their metrics.\n";

/* What came of a row: a plain value, so that ranks can hand it to each other. */
typedef struct outcome {
    int64_t status; /* pod_status */
    double predicted;
    char reason[POD_ERROR_TEXT_MAX];
} outcome;

static double error_frac(const pod_measurement *row, const outcome *result)
{
    return result->predicted / row->value - 1;
}

static bool is_supported(const outcome *result)
{
    return result->status == POD_OK || result->status == POD_E_CHECK;
}

static bool is_within(const pod_measurement *row, const outcome *result)
{
    return result->status == POD_OK && fabs(error_frac(row, result)) <= row->tolerance_frac;
}

static const char *verdict(const pod_measurement *row, const outcome *result)
{
    if (!is_supported(result)) {
        return "unsupported";
    }
    return is_within(row, result) ? "ok" : "off";
}

/* ---- running ---- */

/* What ends the command, and isn't the fault of a row. */
static bool is_fatal(pod_status st)
{
    return st == POD_E_INTERNAL || st == POD_E_NOMEM;
}

static pod_status run_share(const pod_cli *cli, const pod_measurement *rows, int count,
                            outcome *results, pod_error *err)
{
    pod_par *self = NULL;
    pod_status st = pod_par_self_new(&self, err);
    for (int i = pod_par_rank(cli->par); i < count && st == POD_OK; i += pod_par_size(cli->par)) {
        pod_error failure = {0};
        st = pod_measurement_predict(cli, self, &rows[i], &results[i].predicted, &failure);
        results[i].status = st;
        memcpy(results[i].reason, failure.text, sizeof results[i].reason);
        if (is_fatal(st)) {
            (void)pod_fail(err, st, "%s: %s", rows[i].id, failure.text);
        } else {
            st = POD_OK;
        }
    }
    pod_par_self_free(self);
    return st;
}

/* Every rank runs its share; then all know all. Collective. */
static pod_status run_all(const pod_cli *cli, const pod_measurement *rows, int count,
                          outcome *results, pod_error *err)
{
    const pod_status st = pod_par_agree(cli->par, run_share(cli, rows, count, results, err), err);
    if (st != POD_OK) {
        return st;
    }
    /* results of others are all zero bits, so a sum of words is a copy of the one that isn't */
    _Static_assert(sizeof(outcome) % sizeof(int64_t) == 0, "results travel as words");
    for (int i = 0; i < count; i++) {
        pod_par_sum_i64(cli->par, (int64_t *)(void *)&results[i],
                        (int)(sizeof(outcome) / sizeof(int64_t)));
    }
    return POD_OK;
}

/* ---- the summary ---- */

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct tally {
    int rows;
    int off;
    int unsupported;
    double worst;
    const char *worst_id; /* NULL when no row ran */
} tally;

/* @param errors  room for one number per row */
static tally say_class(const pod_cli *cli, const pod_measurement *rows, const outcome *results,
                       int count, const char *class_name, double *errors)
{
    tally sum = {.worst_id = NULL};
    int compared = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].class_name, class_name) != 0) {
            continue;
        }
        sum.rows++;
        if (!is_supported(&results[i])) {
            sum.unsupported++;
            continue;
        }
        sum.off += is_within(&rows[i], &results[i]) ? 0 : 1;
        errors[compared] = fabs(error_frac(&rows[i], &results[i]));
        if (sum.worst_id == NULL || errors[compared] > sum.worst) {
            sum.worst = errors[compared];
            sum.worst_id = rows[i].id;
        }
        compared++;
    }
    qsort(errors, (size_t)compared, sizeof *errors, compare_numbers);
    char figures[128] = "none ran";
    if (compared > 0) {
        const double median = (errors[compared / 2] + errors[(compared - 1) / 2]) / 2;
        (void)snprintf(figures, sizeof figures, "median error %.2f %%, worst %.2f %% (%s)",
                       median * 100, sum.worst * 100, sum.worst_id);
    }
    pod_cli_say(cli, "%s: %d row%s, %s, %d off, %d unsupported", class_name, sum.rows,
                sum.rows == 1 ? "" : "s", figures, sum.off, sum.unsupported);
    return sum;
}

/* A line per class, in order of appearance. POD_E_CHECK when a row is off or unsupported. */
static pod_status summarize(const pod_cli *cli, const pod_measurement *rows, const outcome *results,
                            int count, pod_error *err)
{
    double *errors = calloc((size_t)count, sizeof *errors);
    if (errors == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the summary");
    }
    int off = 0;
    int unsupported = 0;
    for (int i = 0; i < count; i++) {
        if (!is_supported(&results[i])) {
            pod_cli_warn(cli, "%s is unsupported: %s", rows[i].id, results[i].reason);
        }
    }
    for (int i = 0; i < count; i++) {
        int first = 0;
        while (strcmp(rows[first].class_name, rows[i].class_name) != 0) {
            first++;
        }
        if (first == i) {
            const tally sum = say_class(cli, rows, results, count, rows[i].class_name, errors);
            off += sum.off;
            unsupported += sum.unsupported;
        }
    }
    free(errors);
    return off + unsupported == 0
               ? POD_OK
               : pod_fail(err, POD_E_CHECK,
                          "of %d measurements %d are off and %d unsupported; all should be within "
                          "their tolerance",
                          count, off, unsupported);
}

/* ---- the command ---- */

static void emit_row(pod_emit *emit, const pod_measurement *row, const outcome *result)
{
    pod_emit_text(emit, row->id);
    pod_emit_text(emit, row->class_name);
    pod_emit_text(emit, row->metric);
    pod_emit_text(emit, row->unit);
    pod_emit_double(emit, row->value);
    if (is_supported(result)) {
        pod_emit_double(emit, result->predicted);
        pod_emit_double(emit, error_frac(row, result));
        pod_emit_i64(emit, is_within(row, result) ? 1 : 0);
    } else {
        pod_emit_none(emit);
        pod_emit_none(emit);
        pod_emit_none(emit);
    }
    pod_emit_text(emit, verdict(row, result));
}

static pod_status run_rows(pod_cli *cli, const pod_measurement *rows, int count, pod_error *err)
{
    pod_emit *emit = NULL;
    outcome *results = calloc((size_t)count, sizeof *results);
    pod_status st = results != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for results");
    st = pod_par_agree(cli->par, st, err);
    if (st == POD_OK) {
        st = run_all(cli, rows, count, results, err);
    }
    if (st == POD_OK) {
        st = pod_emit_new(cli->common.format, "validate", columns, NCOLUMNS, &emit, err);
    }
    for (int i = 0; i < count && st == POD_OK; i++) {
        emit_row(emit, &rows[i], &results[i]);
    }
    if (st == POD_OK) {
        st = pod_cli_finish(cli, emit, err);
    }
    if (st == POD_OK) {
        st = summarize(cli, rows, results, count, err);
    }
    pod_emit_free(emit);
    free(results);
    return st;
}

static pod_status run(pod_cli *cli, const char *path, const char *class_name, pod_error *err)
{
    static const char own[] = "validation/measurements.csv";
    pod_cli_file file = {.path = path != NULL ? path : own, .own = path == NULL};
    pod_table *table = NULL;
    pod_measurement *rows = NULL;
    int count = 0;
    pod_status st = pod_cli_tables_load(cli, &file, 1, err);
    if (st == POD_OK) {
        st = pod_table_parse(file.path, file.data, file.size, &table, err);
    }
    if (st == POD_OK) {
        st = pod_measurements_read(table, class_name, &rows, &count, err);
    }
    if (st == POD_OK) {
        st = run_rows(cli, rows, count, err);
    }
    free(rows);
    pod_table_free(table);
    pod_cli_files_free(&file, 1);
    return st;
}

pod_status pod_cmd_validate(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    const char *path = NULL;
    const char *class_name = NULL;
    /* clang-format off */
    const pod_cli_option own[] = {
        {"measurements", 0, POD_CLI_TEXT, &path, "FILE",
         "the measurements (default: those that come with podsim)"},
        {"class", 0, POD_CLI_TEXT, &class_name, "CLASS",
         "only rows of this class, as collective-large (default: all)"},
    };
    /* clang-format on */
    const pod_cli_usage usage = {
        .synopsis = "[--measurements FILE] [--class CLASS]",
        .about = about,
        .groups = POD_CLI_RATES,
        .options = own,
        .noptions = (int)(sizeof own / sizeof own[0]),
    };
    const pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    return st != POD_OK || cli->help ? st : run(cli, path, class_name, err);
}
