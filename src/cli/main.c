/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/tables.h"
#include "engine/launcher.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* Ranks with different command lines would mix their results, or wait for each other for ever. Collective. */
static pod_status check_same(pod_par *par, int argc, char **argv, pod_error *err)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (int i = 1; i < argc; i++) {
        const size_t size = strlen(argv[i]) + 1; /* with its end, so that "a b" and "ab" differ */
        for (size_t c = 0; c < size; c++) {
            hash = (hash ^ (unsigned char)argv[i][c]) * UINT64_C(1099511628211);
        }
    }
    const int64_t mine = (int64_t)(hash >> 2);
    int64_t most[] = {mine, -mine};
    pod_par_max_i64(par, most, 2);
    return most[0] == -most[1]
               ? POD_OK
               : pod_fail(err, POD_E_USAGE,
                          "ranks have different command lines; give all of them the same one");
}

/* Runs the command line and delivers its output, also when a check failed: the numbers say what. So do rows of layouts
 * that can't run. */
static pod_status run(pod_par *par, int argc, char **argv, pod_error *err)
{
    const char **args = calloc((size_t)argc + 1, sizeof *args);
    if (args == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the command line");
    }
    for (int i = 1; i < argc; i++) {
        args[i - 1] = argv[i];
    }
    pod_status st = check_same(par, argc, argv, err);
    if (st != POD_OK) {
        free(args);
        return st;
    }
    pod_experiment_tables tables = {0};
    pod_cli cli;
    pod_cli_init(&cli, par, &tables, pod_cli_execute);
    pod_cli_line_set(&cli, argc - 1, args);
    st = pod_cli_execute(&cli, argc - 1, args, err);
    if (st == POD_OK || st == POD_E_CHECK || cli.output_stays) {
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

/* Before MPI starts and may die of it. */
static void warn_shared_memory(int argc, char **argv)
{
    char text[256];
    bool quiet = pod_launcher_rank() != 0;
    for (int i = 1; i < argc; i++) {
        quiet = quiet || strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--quiet") == 0;
    }
    if (!quiet && pod_launcher_shared_memory_short(text, sizeof text)) {
        (void)fprintf(stderr, "podsim: warning: %s\n", text);
    }
}

/* Programs and simulations of many layouts come and go: what one frees stays for the next. To return it to the system
 * and to get it back, zeroed page by page, costs more than to use it. */
static void keep_freed_memory(void)
{
    enum { OWN_MAPPING_BYTES = 256 << 20, KEPT_BYTES = 512 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

int main(int argc, char **argv)
{
    keep_freed_memory();
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, not a death, */
    (void)signal(SIGXFSZ, SIG_IGN); /* and so is a file beyond ulimit -f */
    pod_error err = {0};
    pod_par *par = NULL;
    warn_shared_memory(argc, argv);
    pod_status st = pod_par_start(&argc, &argv, &par, &err);
    if (st != POD_OK) {
        if (pod_launcher_rank() == 0 || st == POD_E_NOMEM) { /* the rest is the same on all ranks */
            print_error(&err);
        }
        return pod_status_exit_code(st);
    }
    st = pod_par_agree(par, run(par, argc, argv, &err), &err);
    if (st != POD_OK && pod_par_rank(par) == 0) {
        print_error(&err);
    }
    pod_par_stop(par);
    return pod_status_exit_code(st);
}
