/* SPDX-License-Identifier: Apache-2.0 */
/* podsim list: the tables that podsim works from. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include "base/names.h"
#include "collectives/registry.h"
#include "models/catalog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char about[] =
    "TABLE is chips, slices, models, recipes or algorithms. CSV and JSON hold all columns of a "
    "table, the\n"
    "table format those that fit a screen. The names of the columns of chips are the KEYs of "
    "--set.\n";

/* A CSV table shown as it is. `shown` names the columns of the table format, ending with NULL. */
typedef struct listing {
    const char *name;
    const char *shown[16];
} listing;

/* clang-format 14 crashes on lists in designated lists: */
/* clang-format off */
/* In the order of the tables in list_table. */
static const listing listings[] = {
    {.name = "chips",
     .shown = {"chip", "cores", "mxu_dim", "peak_bf16_TFLOPs", "hbm_GiB", "hbm_GBps", "ici_axes",
               "link_vendor_GBps", "link_book_GBps", "hop_latency_us", "dcn_chip_GBps", NULL}},
    {.name = "slices",
     .shown = {"chip", "accelerator_type", "shape", "chips", "hosts", "wrap", "twisted", NULL}},
    {.name = "recipes", .shown = {"recipe", "chip", "source", NULL}},
};
/* clang-format on */
enum { NLISTINGS = sizeof listings / sizeof listings[0], COLUMNS_MAX = 256 };

static bool is_shown(const listing *list, const char *column)
{
    for (int i = 0; list->shown[i] != NULL; i++) {
        if (strcmp(list->shown[i], column) == 0) {
            return true;
        }
    }
    return false;
}

/* A field that reads as a number stays one in JSON and is aligned as one. */
static void emit_field(pod_emit *emit, const char *text)
{
    char *end = NULL;
    const long long whole = strtoll(text, &end, 10);
    if (text[0] != '\0' && *end == '\0') {
        pod_emit_i64(emit, whole);
        return;
    }
    const double value = strtod(text, &end);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && isfinite(value)) {
        pod_emit_double(emit, value);
    } else {
        pod_emit_text(emit, text);
    }
}

static pod_status emit_table(pod_cli *cli, const listing *list, const pod_table *table,
                             pod_error *err)
{
    pod_emit_column columns[COLUMNS_MAX];
    const int ncolumns = pod_table_columns(table);
    if (ncolumns > COLUMNS_MAX) {
        return pod_fail(err, POD_E_TABLE,
                        "the table of %s has %d columns; at most %d can be listed", list->name,
                        ncolumns, COLUMNS_MAX);
    }
    for (int i = 0; i < ncolumns; i++) {
        const char *name = pod_table_column_name(table, i);
        columns[i] =
            (pod_emit_column){.name = name, .decimals = -1, .table_hidden = !is_shown(list, name)};
    }
    pod_emit *emit = NULL;
    pod_status st = pod_emit_new(cli->common.format, "list", columns, ncolumns, &emit, err);
    for (int row = 0; row < pod_table_rows(table) && st == POD_OK; row++) {
        for (int i = 0; i < ncolumns; i++) {
            emit_field(emit, pod_table_text(table, row, i));
        }
    }
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    pod_emit_free(emit);
    return st;
}

static pod_status list_table(pod_cli *cli, const listing *list, pod_error *err)
{
    POD_TRY(pod_cli_tables_load(cli, NULL, 0, err));
    const pod_table *const tables[] = {cli->tables->chips, cli->tables->slices,
                                       cli->tables->recipes};
    return emit_table(cli, list, tables[list - listings], err);
}

/* A row of the list of models: the sizes up to `parallel` were there first, params_B and source follow them. */
static void emit_model(pod_emit *emit, const pod_catalog_row *row)
{
    enum { FIRST_SIZES = 31 };
    int64_t value = 0;
    pod_emit_text(emit, row->name);
    for (int i = 0; pod_model_size(&row->model, i, &value) != NULL; i++) {
        if (i == FIRST_SIZES) {
            emit_field(emit, row->params_B);
            pod_emit_text(emit, row->source);
        }
        pod_emit_i64(emit, value);
    }
    pod_emit_double(emit, (double)pod_model_weights(&row->model) / 1e9);
}

/* The columns of those rows. @return their number */
static int model_columns(pod_emit_column *columns)
{
    enum { FIRST_SIZES = 31, SHOWN_SIZES = 7 };
    const pod_model none = {.kind = POD_MODEL_TRANSFORMER};
    const char *name = NULL;
    int64_t value = 0;
    int count = 0;
    columns[count++] = (pod_emit_column){.name = "model"};
    for (int i = 0; (name = pod_model_size(&none, i, &value)) != NULL; i++) {
        if (i == FIRST_SIZES) {
            columns[count++] = (pod_emit_column){.name = "params_B", .table_hidden = true};
            columns[count++] = (pod_emit_column){.name = "source", .table_hidden = true};
        }
        const bool shown =
            i < SHOWN_SIZES || strcmp(name, "experts") == 0 || strcmp(name, "top_k") == 0;
        columns[count++] = (pod_emit_column){.name = name, .table_hidden = !shown};
    }
    columns[count++] =
        (pod_emit_column){.name = "counted_B", .title = "weights", .unit = "1e9", .decimals = 2};
    return count;
}

static pod_status list_models(pod_cli *cli, pod_error *err)
{
    pod_emit_column columns[COLUMNS_MAX];
    pod_catalog_row *rows = NULL;
    pod_emit *emit = NULL;
    int count = 0;
    pod_status st = pod_cli_tables_load(cli, NULL, 0, err);
    POD_THEN(st, pod_catalog_list(&cli->tables->maxtext, &rows, &count, err));
    POD_THEN(st,
             pod_emit_new(cli->common.format, "list", columns, model_columns(columns), &emit, err));
    for (int i = 0; i < count && st == POD_OK; i++) {
        emit_model(emit, &rows[i]);
    }
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    pod_emit_free(emit);
    free(rows);
    return st;
}

static pod_status list_algorithms(pod_cli *cli, pod_error *err)
{
    static const pod_emit_column columns[] = {
        {.name = "algorithm"},
        {.name = "auto"},
        {.name = "operations"},
        {.name = "summary"},
    };
    pod_emit *emit = NULL;
    pod_status st = pod_emit_new(cli->common.format, "list", columns, 4, &emit, err);
    for (int i = 0; i < pod_coll_algorithm_count() && st == POD_OK; i++) {
        const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
        pod_text ops = {0};
        for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
            if ((algorithm->ops & (1U << op)) != 0) {
                pod_text_printf(&ops, "%s%s", ops.size > 0 ? " " : "",
                                pod_coll_op_name((pod_coll_op)op));
            }
        }
        pod_emit_text(emit, algorithm->name);
        pod_emit_text(emit, algorithm->auto_ops != 0 ? "yes" : "no");
        pod_emit_text(emit, ops.size > 0 ? ops.data : "");
        pod_emit_text(emit, algorithm->summary);
        pod_text_free(&ops);
    }
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    pod_emit_free(emit);
    return st;
}

pod_status pod_cmd_list(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    static const char *const names[] = {"chips", "slices", "models", "recipes", "algorithms"};
    enum { NAMES = sizeof names / sizeof names[0] };
    const char *what = NULL;
    const pod_cli_usage usage = {
        .synopsis = "chips|slices|models|recipes|algorithms",
        .examples = "models\n"
                    "chips --format csv\n"
                    "slices\n",
        .about = about,
        .positional = &what,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    if (what == NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "list what? Give chips, slices, models, recipes or algorithms");
    }
    for (int i = 0; i < NLISTINGS; i++) {
        if (strcmp(what, listings[i].name) == 0) {
            return list_table(cli, &listings[i], err);
        }
    }
    if (strcmp(what, "models") == 0) {
        return list_models(cli, err);
    }
    return strcmp(what, "algorithms") == 0
               ? list_algorithms(cli, err)
               : pod_fail_unknown(err, POD_E_USAGE, "table", what, names, NAMES);
}
