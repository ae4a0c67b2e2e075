/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/file.h"
#include "base/names.h"
#include "base/units.h"
#include "cli/cli_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <unistd.h>

/* ---- results ---- */

pod_status pod_cli_finish(pod_cli *cli, pod_emit *emit, pod_error *err)
{
    if (cli->figure != NULL) {
        cli->figure->there = true;
        return pod_emit_figure(emit, cli->figure->column, &cli->figure->value, err);
    }
    const char *text = NULL;
    size_t size = 0;
    const pod_status st = pod_emit_finish(emit, &text, &size, err);
    if (st != POD_OK) {
        return st;
    }
    pod_text_append(&cli->output, text, size);
    return cli->output.out_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the output")
                                     : POD_OK;
}

pod_status pod_cli_deliver(const pod_cli *cli, pod_error *err)
{
    if (pod_par_rank(cli->par) != 0 || cli->output.size == 0) {
        return POD_OK;
    }
    if (cli->common.output_path != NULL && !cli->help) {
        return pod_file_write(cli->common.output_path, cli->output.data, cli->output.size, err);
    }
    errno = 0;
    if (fwrite(cli->output.data, 1, cli->output.size, stdout) != cli->output.size
        || fflush(stdout) != 0) {
        return pod_fail(err, POD_E_IO,
                        "cannot write to standard output: %s; give it somewhere to go, or "
                        "--output FILE",
                        strerror(errno));
    }
    return POD_OK;
}

/* ---- diagnostics ---- */

static bool speaks(const pod_cli *cli)
{
    return pod_par_rank(cli->par) == 0;
}

__attribute__((format(printf, 2, 0))) static void line(const char *kind, const char *format,
                                                       va_list args)
{
    (void)fprintf(stderr, "podsim: %s", kind);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
}

void pod_cli_warn(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && !cli->common.quiet) {
        va_list args;
        va_start(args, format);
        line("warning: ", format, args);
        va_end(args);
    }
}

void pod_cli_say(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && !cli->common.quiet) {
        va_list args;
        va_start(args, format);
        line("", format, args);
        va_end(args);
    }
}

void pod_cli_detail(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && cli->common.verbose) {
        va_list args;
        va_start(args, format);
        line("", format, args);
        va_end(args);
    }
}

void pod_cli_explain(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && cli->common.explain) {
        va_list args;
        va_start(args, format);
        line("", format, args);
        va_end(args);
    }
}

/* The listener of experiments: context is the pod_cli. */
static void hear_note(void *context, const char *text)
{
    pod_cli_say(context, "%s", text);
}

/* One line on stderr that is overwritten, when stderr is a terminal and -q was not given. */
static void hear_progress(void *context, int64_t done, int64_t total, const char *what)
{
    pod_cli *cli = context;
    if (what == NULL) {
        if (cli->progress_shown) {
            (void)fputs("\r\033[K", stderr);
        }
        cli->progress_shown = false;
        return;
    }
    if (!speaks(cli) || cli->common.quiet || isatty(STDERR_FILENO) == 0) {
        return;
    }
    if (total > 0) {
        (void)fprintf(stderr, "\rpodsim: %" PRId64 " of %" PRId64 " %s\033[K", done, total, what);
    } else {
        (void)fprintf(stderr, "\rpodsim: %.1f million %s\033[K", (double)done / 1e6, what);
    }
    (void)fflush(stderr);
    cli->progress_shown = true;
}

void pod_cli_init(pod_cli *cli, pod_par *par, pod_experiment_tables *tables)
{
    *cli = (pod_cli){.par = par, .tables = tables};
    cli->experiment = (pod_experiment){
        .par = par,
        .listener = {.context = cli, .note = hear_note, .progress = hear_progress},
    };
}

void pod_cli_fini(pod_cli *cli)
{
    pod_text_free(&cli->output);
    pod_cli_strings_free(cli);
    *cli = (pod_cli){0};
}

/* ---- commands ---- */

typedef struct command {
    const char *name;
    pod_cli_run *run;
    const char *summary;
} command;

/* clang-format off */
static const command commands[] = {
    {"slice", pod_cmd_slice, "what a slice is: chips, hosts, links, distances, bisection"},
    {"list", pod_cmd_list, "the tables: chips, slices, models, algorithms"},
    {"matmul", pod_cmd_matmul, "a matrix product on one chip"},
    {"attention", pod_cmd_attention, "an attention kernel on one chip"},
    {"copy", pod_cmd_copy, "an HBM copy on one chip"},
    {"collective", pod_cmd_collective, "all-reduce, all-gather, ..., and how near they come to the bound"},
    {"traffic", pod_cmd_traffic, "point-to-point traffic on a slice"},
    {"mesh", pod_cmd_mesh, "how a logical mesh lies on a slice"},
    {"step", pod_cmd_step, "a training step under one layout, and where its time goes"},
    {"compare", pod_cmd_compare, "a step under many layouts, fastest first"},
    {"hlo", pod_cmd_hlo, "a program that the TPU compiler wrote: what it executes"},
    {"validate", pod_cmd_validate, "published measurements rerun, and how far off they come out"},
    {"host", pod_cmd_host, "this machine, and how chips are placed on ranks"},
};
/* clang-format on */
enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static void print_commands(pod_text *out)
{
    pod_text_add(out, "Usage: podsim COMMAND [options]\n"
                      "       mpirun -n RANKS podsim COMMAND [options]\n\n"
                      "Predicts what a TPU pod slice does to a collective or a training step, and\n"
                      "proves the answer right by computing it. The output is the same for any\n"
                      "number of ranks up to the number of chips.\n\nCommands:\n");
    for (int i = 0; i < NCOMMANDS; i++) {
        pod_text_printf(out, "  %-11s %s\n", commands[i].name, commands[i].summary);
    }
    pod_text_add(out, "\npodsim COMMAND --help prints the options of a command, podsim --version\n"
                      "the version. Values take units (64KiB, 1GB, 90GB/s, 1us): K/M/G = 10^3…,\n"
                      "Ki/Mi/Gi = 2^10…. Times are simulated; bandwidths are one way; sizes of\n"
                      "collectives are the full buffer per chip.\n"
                      "Exit codes: 0 done, 1 a check failed, 2 usage, 3 the request can't be met,\n"
                      "4 file or system error, 70 internal error.\n");
}

pod_status pod_cli_execute(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    if (argc < 1) {
        return pod_fail(err, POD_E_USAGE, "no command; podsim --help lists them");
    }
    if (strcmp(argv[0], "--version") == 0) {
        pod_text_add(&cli->output, "podsim " PODSIM_VERSION "\n");
        return POD_OK;
    }
    if (strcmp(argv[0], "--help") == 0) {
        print_commands(&cli->output);
        return POD_OK;
    }
    const char *names[NCOMMANDS];
    for (int i = 0; i < NCOMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(argv[0], names[i]) == 0) {
            return commands[i].run(cli, argc, argv, err);
        }
    }
    if (argv[0][0] == '-') {
        static const char *const before[] = {"--help", "--version"};
        return pod_fail_unknown(err, POD_E_USAGE, "option before the command", argv[0], before, 2);
    }
    return pod_fail_unknown(err, POD_E_USAGE, "command", argv[0], names, NCOMMANDS);
}
