/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/file.h"
#include "base/units.h"
#include "cli/terminal.h"
#include "engine/launcher.h"
#include "report/page.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

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
    POD_TRY(cli->taker != NULL ? cli->taker->take(cli->taker->context, emit, err) : POD_OK);
    if (cli->common.html_path != NULL && !cli->page_written) {
        pod_emit_keep_json(emit);
        POD_TRY(pod_emit_json(emit, &cli->page, err));
    }
    pod_emit_fit(emit, cli->common.width);
    POD_TRY(pod_emit_finish(emit, &text, &size, err));
    pod_text_append(&cli->output, text, size);
    return cli->output.out_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the output")
                                     : POD_OK;
}

bool pod_cli_wants_findings(const pod_cli *cli)
{
    return (cli->common.format != POD_FORMAT_CSV || cli->common.html_path != NULL)
           && cli->figure == NULL;
}

pod_status pod_cli_report(pod_cli *cli, pod_emit *emit, pod_findings *findings, pod_error *err)
{
    if (cli->line.size > 0) {
        pod_findings_say(findings, POD_FINDING_DATA, "line", "%s", cli->line.data);
    }
    if (cli->common.html_path != NULL) {
        pod_emit_keep_json(emit);
    }
    POD_TRY(pod_findings_print(findings, emit, err));
    for (int i = 0; i < findings->count; i++) {
        if (findings->list[i].place == POD_FINDING_AFTER) {
            pod_cli_say_last(cli, "%s", findings->list[i].text.data);
        }
    }
    return pod_cli_finish(cli, emit, err);
}

/* Whole at once. */
static pod_status put_output(const char *text, size_t size, pod_error *err)
{
    POD_TRY(pod_launcher_output_check((int64_t)size, err));
    errno = 0;
    if (size == 0) {
        return POD_OK;
    }
    if (fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0) {
        if (errno == EPIPE) { /* whoever read has read enough, as head does */
            return POD_OK;
        }
        return pod_fail(err, POD_E_IO,
                        "cannot write to standard output: %s; give it somewhere to go, or "
                        "--output FILE",
                        strerror(errno));
    }
    return POD_OK;
}

static pod_status write_page(const pod_cli *cli, pod_error *err)
{
    const pod_page_run run = {.result = cli->page.data,
                              .result_size = cli->page.size,
                              .trace = cli->page_trace.data,
                              .trace_size = cli->page_trace.size};
    return pod_page_write(cli->common.html_path, PODSIM_VERSION, &run, 1, err);
}

static pod_status write_output(const pod_cli *cli, pod_error *err)
{
    if (cli->page.size > 0) {
        POD_TRY(write_page(cli, err));
    }
    if (cli->taker != NULL) {
        return POD_OK;
    }
    if (cli->common.output_path != NULL && !cli->help) {
        return pod_file_write(cli->common.output_path, cli->output.data, cli->output.size, err);
    }
    return put_output(cli->output.data, cli->output.size, err);
}

void pod_cli_line_set(pod_cli *cli, int argc, const char **argv)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-+=./,:*@%";
    pod_text_add(&cli->line, "podsim");
    for (int i = 0; i < argc; i++) {
        const bool plain = argv[i][0] != '\0' && argv[i][strspn(argv[i], safe)] == '\0';
        pod_text_add(&cli->line, plain ? " " : " '");
        for (const char *c = argv[i]; *c != '\0'; c++) {
            if (*c == '\'') {
                pod_text_add(&cli->line, "'\\''");
            } else {
                pod_text_append(&cli->line, c, 1);
            }
        }
        pod_text_add(&cli->line, plain ? "" : "'");
    }
}

/* ---- diagnostics ---- */

static bool speaks(const pod_cli *cli)
{
    return pod_par_rank(cli->par) == 0;
}

bool pod_cli_is_narrow(const pod_cli *cli)
{
    return cli->common.width > 0 && cli->common.format == POD_FORMAT_TABLE;
}

bool pod_cli_rows_come(const pod_cli *cli)
{
    const pod_format format = cli->common.format;
    return speaks(cli) && cli->figure == NULL && cli->common.output_path == NULL
           && (format == POD_FORMAT_CSV
               || (format == POD_FORMAT_TABLE && pod_cli_terminal_columns(STDOUT_FILENO) > 0));
}

static void clear_progress(const pod_cli *cli)
{
    if (cli->progress_shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
}

void pod_cli_rows_begin(pod_cli *cli, pod_emit *emit, pod_findings *findings)
{
    if (!pod_cli_rows_come(cli)) {
        return;
    }
    if (cli->common.html_path != NULL) {
        pod_emit_keep_json(emit);
    }
    pod_findings_head(findings, emit);
    pod_emit_fit(emit, cli->common.width);
    cli->rows_status = pod_emit_settle(emit, &cli->rows_error);
    cli->rows_began = true;
}

void pod_cli_rows_next(pod_cli *cli, pod_emit *emit)
{
    const char *text = NULL;
    size_t size = 0;
    if (!cli->rows_began || cli->rows_status != POD_OK) {
        return;
    }
    cli->rows_status = pod_emit_take(emit, &text, &size, &cli->rows_error);
    if (cli->rows_status == POD_OK) {
        clear_progress(cli);
        cli->rows_status = put_output(text, size, &cli->rows_error);
    }
}

/* One line, broken where a terminal ends. */
static void put_line(const char *text, size_t size)
{
    const int columns = pod_cli_terminal_columns(STDERR_FILENO);
    pod_text wrapped = {0};
    pod_text_wrap(&wrapped, text, size, (size_t)columns, "    ");
    (void)fputs(wrapped.data != NULL ? wrapped.data : "", stderr);
    pod_text_free(&wrapped);
}

__attribute__((format(printf, 3, 0))) static void line(const pod_cli *cli, const char *kind,
                                                       const char *format, va_list args)
{
    pod_text text = {0};
    if (cli->taker != NULL) {
        pod_text_add(&cli->taker->said, kind);
        pod_text_vprintf(&cli->taker->said, format, args);
        pod_text_add(&cli->taker->said, "\n");
        return;
    }
    pod_text_printf(&text, "podsim: %s", kind);
    pod_text_vprintf(&text, format, args);
    put_line(text.data != NULL ? text.data : "", text.size);
    pod_text_free(&text);
}

void pod_cli_warn(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && !cli->common.quiet) {
        va_list args;
        va_start(args, format);
        line(cli, "warning: ", format, args);
        va_end(args);
    }
}

void pod_cli_say(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && !cli->common.quiet) {
        va_list args;
        va_start(args, format);
        line(cli, "", format, args);
        va_end(args);
    }
}

void pod_cli_say_last(pod_cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pod_text_add(&cli->last_words, cli->taker != NULL ? "" : "podsim: ");
    pod_text_vprintf(&cli->last_words, format, args);
    pod_text_add(&cli->last_words, "\n");
    va_end(args);
}

static void say_last_words(const pod_cli *cli)
{
    const char *text = cli->common.quiet ? NULL : cli->last_words.data;
    if (cli->taker != NULL) {
        pod_text_add(&cli->taker->said, text != NULL ? text : "");
        return;
    }
    while (text != NULL && *text != '\0') {
        const size_t size = strcspn(text, "\n");
        put_line(text, size);
        text += size + 1;
    }
}

void pod_cli_detail(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && cli->common.verbose) {
        va_list args;
        va_start(args, format);
        line(cli, "", format, args);
        va_end(args);
    }
}

void pod_cli_explain(const pod_cli *cli, const char *format, ...)
{
    if (speaks(cli) && cli->common.explain) {
        va_list args;
        va_start(args, format);
        line(cli, "", format, args);
        va_end(args);
    }
}

pod_status pod_cli_deliver(const pod_cli *cli, pod_error *err)
{
    if (!speaks(cli) || (cli->output.size == 0 && !cli->rows_began)) {
        return POD_OK;
    }
    if (cli->rows_status != POD_OK && err != NULL) {
        *err = cli->rows_error;
    }
    POD_TRY(cli->rows_status);
    POD_TRY(write_output(cli, err));
    say_last_words(cli);
    return POD_OK;
}

/* The listener of experiments: context is the pod_cli. */
static void hear_note(void *context, const char *text)
{
    pod_cli_say(context, "%s", text);
}

static double now_s(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ", 12 s left" once there is something to go by. */
static void add_time_left(pod_cli *cli, int64_t done, int64_t total, pod_text *text)
{
    static const double SOON_S = 1;
    const double now = now_s();
    if (!cli->progress_shown) {
        cli->progress_start_s = now;
    }
    const double taken = now - cli->progress_start_s;
    if (taken > SOON_S && done > 0 && done < total) {
        const double left = taken * (double)(total - done) / (double)done;
        pod_text_printf(text, left < 120 ? ", %.0f s left" : ", %.0f min left",
                        left < 120 ? left : left / 60);
    }
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t progress_on_screen;

/* The line of progress goes before the program does. */
static void end_at_signal(int number)
{
    static const char clear[] = "\r\033[K";
    if (progress_on_screen != 0 && write(STDERR_FILENO, clear, sizeof clear - 1) < 0) {
        progress_on_screen = 0; /* nobody sees it */
    }
    (void)raise(number); /* by default now */
}

static void watch_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction own = {.sa_handler = end_at_signal, .sa_flags = (int)SA_RESETHAND};
        struct sigaction before;
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
            (void)sigaction(ends[i], &own, NULL);
        }
    }
}

/* One line on stderr that is overwritten, when stderr is a terminal and -q was not given. */
static void hear_progress(void *context, int64_t done, int64_t total, const char *what)
{
    pod_cli *cli = context;
    if (cli->taker != NULL) {
        return;
    }
    if (what == NULL) {
        clear_progress(cli);
        cli->progress_shown = false;
        progress_on_screen = 0;
        return;
    }
    if (!speaks(cli) || cli->common.quiet || isatty(STDERR_FILENO) == 0) {
        return;
    }
    pod_text text = {0};
    const int columns = pod_cli_terminal_columns(STDERR_FILENO);
    if (total > 0) {
        pod_text_printf(&text, "podsim: %" PRId64 " of %" PRId64 " %s", done, total, what);
        add_time_left(cli, done, total, &text);
    } else {
        pod_text_printf(&text, "podsim: %.1f million %s", (double)done / 1e6, what);
    }
    /* what reached the last column would begin a second line, which \r doesn't overwrite */
    const int most = columns > 0 ? columns - 1 : INT_MAX;
    if (!cli->progress_shown) {
        watch_signals();
    }
    cli->progress_shown = true;
    progress_on_screen = 1; /* before the line is: who reads it may end the program at once */
    (void)fprintf(stderr, "\r%.*s\033[K", most, text.data != NULL ? text.data : "");
    (void)fflush(stderr);
    pod_text_free(&text);
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
    pod_text_free(&cli->last_words);
    pod_text_free(&cli->line);
    pod_text_free(&cli->page);
    pod_text_free(&cli->page_trace);
    pod_cli_strings_free(&cli->strings);
    *cli = (pod_cli){0};
}
