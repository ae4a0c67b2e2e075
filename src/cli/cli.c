/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/file.h"
#include "base/units.h"
#include "engine/launcher.h"

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
    const pod_status st = pod_launcher_output_check((int64_t)cli->output.size, err);
    if (st != POD_OK) {
        return st;
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

void pod_cli_init(pod_cli *cli, pod_par *par, pod_experiment_tables *tables, pod_cli_run *execute)
{
    *cli = (pod_cli){.par = par, .tables = tables, .execute = execute};
    cli->experiment = (pod_experiment){
        .par = par,
        .listener = {.context = cli, .note = hear_note, .progress = hear_progress},
    };
}

void pod_cli_fini(pod_cli *cli)
{
    pod_text_free(&cli->output);
    pod_cli_strings_free(&cli->strings);
    *cli = (pod_cli){0};
}
