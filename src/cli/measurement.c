/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measurement.h"

#include "base/names.h"

#include <stdlib.h>
#include <string.h>

static const char BETWEEN[] = " :: ";

enum { WORDS_MAX = 128 };

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
                             const pod_measurement *measured, pod_error *err)
{
    const unit *given = unit_find(measured->unit);
    if (given == NULL) {
        return pod_table_fail(table, row, columns[UNIT], err,
                              "unknown unit '%s'; valid: us, ms, s, TFLOP/s, GB/s, frac, ratio",
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
                           pod_measurement *measured, pod_error *err)
{
    static const int needed[] = {ID, CLASS, COMMAND, METRIC};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (pod_table_text(table, row, columns[needed[i]])[0] == '\0') {
            return pod_table_fail(table, row, columns[needed[i]], err,
                                  "%s is empty; every measurement needs one",
                                  column_names[needed[i]]);
        }
    }
    *measured = (pod_measurement){
        .id = pod_table_text(table, row, columns[ID]),
        .class_name = pod_table_text(table, row, columns[CLASS]),
        .command = pod_table_text(table, row, columns[COMMAND]),
        .args = pod_table_text(table, row, columns[ARGS]),
        .metric = pod_table_text(table, row, columns[METRIC]),
        .unit = pod_table_text(table, row, columns[UNIT]),
    };
    pod_status st =
        pod_table_double(table, row, columns[VALUE], 1e-30, 1e30, &measured->value, err);
    if (st == POD_OK) {
        st = pod_table_double(table, row, columns[TOLERANCE], 0, 1e3, &measured->tolerance_frac,
                              err);
    }
    return st == POD_OK ? check_unit(table, row, columns, measured, err) : st;
}

/* Keeps the rows of one class. */
static pod_status select_class(pod_measurement *rows, int *count, const char *class_name,
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

pod_status pod_measurements_read(const pod_table *table, const char *class_name,
                                 pod_measurement **rows, int *count, pod_error *err)
{
    pod_status st = pod_table_expect(table, column_names, NCOLUMNS, false, err);
    if (st != POD_OK) {
        return st;
    }
    int columns[NCOLUMNS];
    for (int i = 0; i < NCOLUMNS; i++) {
        columns[i] = pod_table_column(table, column_names[i]);
    }
    *count = pod_table_rows(table);
    if (*count == 0) {
        return pod_fail_at(err, POD_E_TABLE, pod_table_name(table), 1, 1,
                           "no measurements; give at least one row");
    }
    st = pod_table_unique(table, &columns[ID], 1, err);
    pod_measurement *all = st == POD_OK ? calloc((size_t)*count, sizeof *all) : NULL;
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

/* ---- a command line ---- */

/* What a row may run, and which options of its own it leaves to us. */
typedef struct runnable {
    const char *command;
    bool takes_data;
    bool takes_rates;
} runnable;

static const runnable runnables[] = {
    {"slice",      false, true },
    {"matmul",     false, true },
    {"attention",  false, true },
    {"copy",       false, true },
    {"collective", true,  true },
    {"traffic",    false, true },
    {"mesh",       false, false},
    {"step",       true,  true },
    {"compare",    true,  true },
};
enum { NRUNNABLES = sizeof runnables / sizeof runnables[0] };

static pod_status find_runnable(const char *command, const runnable **found, pod_error *err)
{
    const char *names[NRUNNABLES];
    for (int i = 0; i < NRUNNABLES; i++) {
        names[i] = runnables[i].command;
        if (strcmp(names[i], command) == 0) {
            *found = &runnables[i];
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "command of a measurement", command, names,
                            NRUNNABLES);
}

typedef struct words {
    const char *word[WORDS_MAX];
    int count;
    bool full;
} words;

static void add_word(words *line, const char *word)
{
    line->full = line->full || line->count == WORDS_MAX;
    if (!line->full) {
        line->word[line->count++] = word;
    }
}

/* Is this the option, as "--data" or "--data=real"? */
static bool is_option(const char *word, const char *option)
{
    const size_t length = strlen(option);
    return strncmp(word, option, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

static bool has_option(const words *line, const char *option)
{
    for (int i = 0; i < line->count; i++) {
        if (is_option(line->word[i], option)) {
            return true;
        }
    }
    return false;
}

/* The words of one command line. @param text  cut into words in place */
static pod_status split(const pod_cli *cli, const char *command, char *text, words *line,
                        pod_error *err)
{
    const runnable *found = NULL;
    pod_status st = find_runnable(command, &found, err);
    if (st != POD_OK) {
        return st;
    }
    POD_ASSERT(found != NULL);
    add_word(line, command);
    if (found->takes_rates) {
        for (int i = 0; i < cli->common.settings.count; i++) {
            add_word(line, "--set");
            add_word(line, cli->common.settings.text[i]);
        }
    }
    char *rest = NULL;
    for (char *word = strtok_r(text, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        add_word(line, word);
    }
    if (has_option(line, "--output") || has_option(line, "--help")) {
        return pod_fail(err, POD_E_USAGE, "--output and --help leave nothing to compare; omit it");
    }
    if (found->takes_rates && cli->common.rates != POD_RATES_MEASURED
        && !has_option(line, "--rates")) {
        add_word(line, "--rates");
        add_word(line, pod_rates_name(cli->common.rates));
    }
    if (found->takes_data && !has_option(line, "--data")) {
        add_word(line, "--data");
        add_word(line, "none");
    }
    add_word(line, "--format");
    add_word(line, "csv");
    add_word(line, "--quiet");
    return line->full ? pod_fail(err, POD_E_USAGE, "over %d words in one command line", WORDS_MAX)
                      : POD_OK;
}

/* The figure in the only row of an output. */
static pod_status read_metric(const pod_text *output, const pod_measurement *row, double *value,
                              pod_error *err)
{
    pod_table *table = NULL;
    pod_status st = pod_table_parse(row->command, output->data, output->size, &table, err);
    if (st != POD_OK) {
        return st;
    }
    const int column = pod_table_column(table, row->metric);
    if (pod_table_rows(table) != 1) {
        st = pod_fail(err, POD_E_USAGE, "gives %d rows; ask for one", pod_table_rows(table));
    } else if (column < 0) {
        st = pod_fail(err, POD_E_USAGE, "podsim %s has no column '%s'; name one of those it prints",
                      row->command, row->metric);
    } else {
        st = pod_table_double(table, 0, column, -1e300, 1e300, value, err);
    }
    pod_table_free(table);
    return st;
}

static pod_status run_line(const pod_cli *cli, pod_par *par, const pod_measurement *row, char *text,
                           double *value, pod_error *err)
{
    words line = {.count = 0};
    pod_status st = split(cli, row->command, text, &line, err);
    if (st != POD_OK) {
        return st;
    }
    pod_cli inner;
    pod_cli_init(&inner, par, cli->tables);
    st = pod_cli_execute(&inner, line.count, line.word, err);
    if (st == POD_OK || st == POD_E_CHECK) {
        const pod_status read = read_metric(&inner.output, row, value, st == POD_OK ? err : NULL);
        st = st == POD_OK ? read : st;
    }
    pod_cli_fini(&inner);
    return st;
}

/* The metric of each command line, one or two. */
static pod_status run_lines(const pod_cli *cli, pod_par *par, const pod_measurement *row,
                            char *text, double *value, pod_error *err)
{
    char *second = strstr(text, BETWEEN);
    if (second == NULL) {
        return run_line(cli, par, row, text, value, err);
    }
    *second = '\0';
    second += sizeof BETWEEN - 1;
    if (strstr(second, BETWEEN) != NULL) {
        return pod_fail(err, POD_E_USAGE, "more than two command lines; a ratio is of two");
    }
    double below = 0;
    pod_status st = run_line(cli, par, row, text, value, err);
    if (st == POD_OK) {
        st = run_line(cli, par, row, second, &below, err);
    }
    if (st == POD_OK && below == 0) {
        st = pod_fail(err, POD_E_USAGE, "the second %s is 0; a ratio needs another", row->metric);
    }
    if (st == POD_OK) {
        *value /= below;
    }
    return st;
}

pod_status pod_measurement_predict(const pod_cli *cli, pod_par *par, const pod_measurement *row,
                                   double *value, pod_error *err)
{
    char *text = strdup(row->args);
    if (text == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a command line");
    }
    *value = 0;
    const pod_status st = run_lines(cli, par, row, text, value, err);
    const unit *given = unit_find(row->unit);
    if (st == POD_OK && given != NULL && given->is != PLAIN) {
        *value *= unit_of_column(row->metric).size / given->size;
    }
    free(text);
    return st;
}
