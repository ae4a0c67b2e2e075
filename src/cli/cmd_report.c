/* SPDX-License-Identifier: Apache-2.0 */
/* podsim report: a page from runs that are over. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"
#include "report/page.h"

#include <stdlib.h>

static const char about[] =
    "RUN.json is what any command printed with --format json. Several are shown beside one "
    "another:\n"
    "two layouts, two slices, before and after.\n";

typedef struct report_row {
    const char *file;
    char *command;
    int64_t rows;
} report_row;

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "file",    POD_FIELD(report_row, file)},
    {.name = "command", .field = POD_FIELD_TEXT, .offset = offsetof(report_row, command)},
    {.name = "rows",    POD_FIELD(report_row, rows)},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0], RUNS_MAX = 16 };

static pod_status write_page(pod_cli *cli, const pod_cli_file *files, int count, pod_error *err)
{
    pod_page_run runs[RUNS_MAX];
    for (int i = 0; i < count; i++) {
        runs[i] = (pod_page_run){.result = files[i].data, .result_size = files[i].size};
    }
    return pod_par_agree(cli->par,
                         pod_par_rank(cli->par) == 0 ? pod_page_write(
                             cli->common.html_path, PODSIM_VERSION, runs, count, err)
                                                     : POD_OK,
                         err);
}

static pod_status run(pod_cli *cli, pod_cli_file *files, int count, pod_error *err)
{
    pod_emit *emit = NULL;
    POD_TRY(pod_emit_new(cli->common.format, "report", columns, NCOLUMNS, &emit, err));
    pod_status st = POD_OK;
    for (int i = 0; st == POD_OK && i < count; i++) {
        report_row row = {.file = files[i].path};
        st = pod_page_run_check(files[i].path, files[i].data, files[i].size, &row.command,
                                &row.rows, err);
        if (st == POD_OK) {
            pod_emit_fields(emit, &row, NCOLUMNS);
        }
        free(row.command);
    }
    POD_THEN(st, write_page(cli, files, count, err));
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    pod_emit_free(emit);
    return st;
}

pod_status pod_cmd_report(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    const char *first = NULL;
    pod_cli_list further = {.count = 0};
    pod_cli_file files[RUNS_MAX] = {{.path = NULL}};
    const pod_cli_usage usage = {
        .synopsis = "RUN.json... --html FILE.html",
        .examples = "run.json --html run.html\n"
                    "before.json after.json --html both.html\n"
                    "fsdp.json tensor.json data.json --html layouts.html\n",
        .about = about,
        .groups = POD_CLI_HTML,
        .positional = &first,
        .further = &further,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    if (first == NULL || cli->common.html_path == NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "report of what, to where? e.g. podsim report run.json --html run.html");
    }
    if (further.count + 1 > RUNS_MAX) {
        return pod_fail(err, POD_E_USAGE, "%d runs; a page shows at most %d", further.count + 1,
                        RUNS_MAX);
    }
    for (int i = 0; i <= further.count; i++) {
        files[i].path = i == 0 ? first : further.text[i - 1];
    }
    cli->page_written = true;
    POD_TRY(pod_cli_read(cli, files, further.count + 1, err));
    const pod_status st = run(cli, files, further.count + 1, err);
    pod_cli_files_free(files, further.count + 1);
    return st;
}
