/* SPDX-License-Identifier: Apache-2.0 */
/* podsim validate: rerun published measurements. Rows are dealt out to the ranks, and each runs whole on
 * one rank by itself, so that more ranks than a row has chips do no harm. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/figure.h"
#include "cli/options.h"
#include "cli/plot.h"
#include "cli/tables.h"
#include "experiment/measurement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What a row shows. */
typedef struct validate_row {
    pod_experiment_measurement published;
    pod_experiment_measured measured;
    int32_t within;
    const char *status;
} validate_row;

#define AT(field) POD_FIELD(validate_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "id", AT(published.id)},
    {.name = "class", .minor = 2, AT(published.class_name)},
    {.name = "metric", AT(published.metric)},
    {.name = "unit", AT(published.unit)},
    {.name = "published", .decimals = -1, AT(published.value)},
    {.name = "predicted", .decimals = 4, AT(measured.predicted)},
    {.name = "error_frac", .title = "error", .decimals = 4, AT(measured.error_frac)},
    {.name = "within", .minor = 1, AT(within)},
    {.name = "status", AT(status)},
};

static const pod_emit_column class_columns[] = {
    {.name = "class", POD_FIELD(pod_experiment_class, name)},
    {.name = "rows", POD_FIELD(pod_experiment_class, rows)},
    {.name = "median_error_frac", POD_FIELD(pod_experiment_class, median_error_frac)},
    {.name = "p90_error_frac", POD_FIELD(pod_experiment_class, p90_error_frac)},
    {.name = "worst_error_frac", POD_FIELD(pod_experiment_class, worst_error_frac)},
    {.name = "bias_frac", POD_FIELD(pod_experiment_class, bias_frac)},
    {.name = "worst", POD_FIELD(pod_experiment_class, worst_id)},
    {.name = "off", POD_FIELD(pod_experiment_class, off)},
    {.name = "unsupported", POD_FIELD(pod_experiment_class, unsupported)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "Runs the command line of every measurement and compares. within = 1 when the error is at "
    "most\n"
    "the tolerance of the row; status = ok, off (it isn't) or unsupported (podsim can't run it).\n"
    "Exit code 1 when any row is off or unsupported. A summary per class goes to stderr.\n"
    "Columns of the file: id,class,command,args,metric,value,unit,tolerance_frac,source,note;\n"
    "args with \" :: \" between two command lines ask for the ratio of their metrics.\n";

/* A line per class, in order of appearance. POD_E_CHECK when a row is off or unsupported. */
static pod_status summarize(const pod_cli *cli, const pod_experiment_measurement *rows,
                            const pod_experiment_measured *measured, int count, pod_error *err)
{
    pod_experiment_class *classes = NULL;
    int nclasses = 0;
    int off = 0;
    int unsupported = 0;
    POD_TRY(pod_experiment_classes(rows, measured, count, &classes, &nclasses, err));
    for (int i = 0; i < count; i++) {
        if (!measured[i].supported) {
            pod_cli_warn(cli, "%s is unsupported: %s", rows[i].id, measured[i].reason);
        }
    }
    for (int i = 0; i < nclasses; i++) {
        const pod_experiment_class *sum = &classes[i];
        char figures[192] = "none ran";
        if (sum->worst_id != NULL) {
            (void)snprintf(figures, sizeof figures,
                           "median error %.2f %%, worst %.2f %% (%s), nine tenths within %.2f %%, "
                           "bias %+.2f %%",
                           sum->median_error_frac * 100, sum->worst_error_frac * 100, sum->worst_id,
                           sum->p90_error_frac * 100, sum->bias_frac * 100);
        }
        pod_cli_say(cli, "%s: %d row%s, %s, %d off, %d unsupported", sum->name, sum->rows,
                    pod_text_plural(sum->rows), figures, sum->off, sum->unsupported);
        off += sum->off;
        unsupported += sum->unsupported;
    }
    free(classes);
    return off + unsupported == 0
               ? POD_OK
               : pod_fail(err, POD_E_CHECK,
                          "of %d measurements %d are off and %d unsupported; all should be within "
                          "their tolerance",
                          count, off, unsupported);
}

/* ---- the command ---- */

static void emit_row(pod_emit *emit, const pod_experiment_measurement *row,
                     const pod_experiment_measured *measured)
{
    validate_row shown = {.published = *row,
                          .measured = *measured,
                          .within = measured->within ? 1 : 0,
                          .status = measured->within ? "ok" : "off"};
    if (!measured->supported) {
        shown.measured.predicted = NAN;
        shown.measured.error_frac = NAN;
        shown.within = INT32_MIN;
        shown.status = "unsupported";
    }
    pod_emit_fields(emit, &shown, NCOLUMNS);
}

/* A summary per class; stderr says it, too. */
static pod_status find(const pod_experiment_measurement *rows,
                       const pod_experiment_measured *measured, int count, pod_findings *findings,
                       pod_error *err)
{
    pod_experiment_class *classes = NULL;
    int nclasses = 0;
    POD_TRY(pod_experiment_classes(rows, measured, count, &classes, &nclasses, err));
    pod_findings_table(findings, "classes", class_columns,
                       sizeof class_columns / sizeof *class_columns, "Classes:");
    for (int i = 0; i < nclasses; i++) {
        if (classes[i].worst_id == NULL) { /* none ran */
            classes[i].median_error_frac = NAN;
            classes[i].p90_error_frac = NAN;
            classes[i].worst_error_frac = NAN;
            classes[i].bias_frac = NAN;
        }
        pod_findings_row(findings, &classes[i], "%s", classes[i].name);
    }
    pod_findings_data_only(findings);
    free(classes);
    return POD_OK;
}

/* What the picture shows. */
typedef struct comparisons {
    const pod_experiment_measurement *rows;
    const pod_experiment_measured *measured;
    int count;
} comparisons;

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const comparisons *all = figures;
    pod_plot_validation_row *points = calloc((size_t)all->count + 1, sizeof *points);
    if (points == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the picture");
    }
    for (int i = 0; i < all->count; i++) {
        points[i] = (pod_plot_validation_row){.class_name = all->rows[i].class_name,
                                              .published = all->rows[i].value,
                                              .predicted = all->measured[i].predicted};
    }
    const pod_status st = pod_plot_validation(plot, points, all->count, err);
    free(points);
    return st;
}

typedef struct validation {
    pod_cli *cli;
    const pod_experiment_measurement *rows;
    pod_emit *emit;
} validation;

static pod_status figure_of(void *context, pod_par *self, const char *command, const char *args,
                            const char *metric, double *value, pod_error *err)
{
    const validation *v = context;
    return pod_cli_figure_of(v->cli, self, command, args, metric, value, err);
}

static void hear_row(void *context, int row, const pod_experiment_measured *measured)
{
    const validation *v = context;
    emit_row(v->emit, &v->rows[row], measured);
    pod_cli_rows_next(v->cli, v->emit);
}

/* Rows as wide as those that will come, twice off. */
static void add_samples(const validation *v, int count)
{
    for (int i = 0; i < count && pod_cli_rows_come(v->cli); i++) {
        const pod_experiment_measured none = {.supported = false};
        const pod_experiment_measured off = {
            .supported = true, .predicted = -2 * v->rows[i].value, .error_frac = -1};
        emit_row(v->emit, &v->rows[i], &none);
        emit_row(v->emit, &v->rows[i], &off);
    }
}

static pod_status run_rows(pod_cli *cli, const pod_experiment_measurement *rows, int count,
                           pod_error *err)
{
    validation v = {.cli = cli, .rows = rows};
    pod_findings findings = {0};
    pod_experiment_measured *measured = calloc((size_t)count, sizeof *measured);
    pod_status st = measured != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for results");
    POD_THEN(st, pod_emit_new(cli->common.format, "validate", columns, NCOLUMNS, &v.emit, err));
    st = pod_par_agree(cli->par, st, err);
    if (st == POD_OK) {
        add_samples(&v, count);
        pod_cli_rows_begin(cli, v.emit, &findings);
        st = pod_experiment_measurements_run(&cli->experiment, rows, count, figure_of, hear_row, &v,
                                             measured, err);
    }
    POD_THEN(st, find(rows, measured, count, &findings, err));
    POD_THEN(st, pod_cli_report(cli, v.emit, &findings, err));
    if (st == POD_OK) {
        const comparisons all = {.rows = rows, .measured = measured, .count = count};
        st = pod_cli_plot_write(cli, add_plot, &all, err);
    }
    POD_THEN(st, summarize(cli, rows, measured, count, err));
    pod_findings_fini(&findings);
    pod_emit_free(v.emit);
    free(measured);
    return st;
}

static pod_status run(pod_cli *cli, const char *path, const char *class_name, pod_error *err)
{
    static const char own[] = "validation/measurements.csv";
    pod_cli_file file = {.path = path != NULL ? path : own, .own = path == NULL};
    pod_table *table = NULL;
    pod_experiment_measurement *rows = NULL;
    int count = 0;
    pod_status st = pod_cli_tables_load(cli, &file, 1, err);
    POD_THEN(st, pod_table_parse(file.path, file.data, file.size, &table, err));
    POD_THEN(st, pod_experiment_measurements_read(table, class_name, &rows, &count, err));
    POD_THEN(st, run_rows(cli, rows, count, err));
    free(rows);
    pod_table_free(table);
    pod_cli_files_free(&file, 1);
    return st;
}

typedef struct validate_options {
    const char *path;
    const char *class_name;
} validate_options;

#define AT(field) POD_CLI_FIELD(validate_options, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"measurements", 0, POD_CLI_TEXT, AT(path), "FILE",
     "the measurements (default: those that come with podsim)", .matters = true},
    {"class", 0, POD_CLI_TEXT, AT(class_name), "CLASS",
     "only rows of this class, as collective-large (default: all)", .matters = true},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_validate(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    validate_options own = {.path = NULL};
    const pod_cli_usage usage = {
        .synopsis = "[--measurements FILE] [--class CLASS]",
        .examples = "--class matmul\n"
                    "--class collective-large\n"
                    "--class topology --format csv\n",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_PLOT | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
    };
    const pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    return st != POD_OK || cli->help ? st : run(cli, own.path, own.class_name, err);
}
