/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/tables.h"

#include <signal.h>
#include <stdlib.h>

static void print_error(const pod_error *err)
{
    (void)fputs(err->status == POD_E_CHECK ? "podsim: check failed: " : "podsim: error: ", stderr);
    if (err->file[0] != '\0' && err->line > 0) {
        (void)fprintf(stderr, "%s:%d:%d: ", err->file, err->line, err->column);
    } else if (err->file[0] != '\0') {
        (void)fprintf(stderr, "%s: ", err->file);
    }
    (void)fprintf(stderr, "%s\n", err->text[0] != '\0' ? err->text : pod_status_text(err->status));
}

/* Runs the command line and delivers its output, also when a check failed: the numbers say what. */
static pod_status run(pod_par *par, int argc, char **argv, pod_error *err)
{
    const char **args = calloc((size_t)argc + 1, sizeof *args);
    if (args == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the command line");
    }
    for (int i = 1; i < argc; i++) {
        args[i - 1] = argv[i];
    }
    pod_experiment_tables tables = {0};
    pod_cli cli;
    pod_cli_init(&cli, par, &tables, pod_cli_execute);
    pod_status st = pod_cli_execute(&cli, argc - 1, args, err);
    if (st == POD_OK || st == POD_E_CHECK) {
        pod_error failure = {0};
        const pod_status delivered = pod_cli_deliver(&cli, &failure);
        if (delivered != POD_OK) {
            *err = failure;
            st = delivered;
        }
    }
    pod_cli_fini(&cli);
    pod_experiment_tables_fini(&tables);
    free(args);
    return st;
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, not a death */
    pod_error err = {0};
    pod_par *par = NULL;
    pod_status st = pod_par_start(&argc, &argv, &par, &err);
    if (st != POD_OK) {
        print_error(&err);
        return pod_status_exit_code(st);
    }
    st = pod_par_agree(par, run(par, argc, argv, &err), &err);
    if (st != POD_OK && pod_par_rank(par) == 0) {
        print_error(&err);
    }
    pod_par_stop(par);
    return pod_status_exit_code(st);
}
