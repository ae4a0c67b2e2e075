/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace.h"

#include "base/file.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static pod_status list_failure(const char *text, pod_error *err)
{
    return pod_fail(err, POD_E_USAGE,
                    "--trace-chips is a list of chip numbers, as 0,5,8-11, or all; not '%s'", text);
}

/* A number at *text, which moves after it; -1 if there is none. */
static int64_t take_number(const char **text)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**text)) {
        return -1;
    }
    const long long number = strtoll(*text, &end, 10);
    *text = end;
    return number;
}

/* "0,5,8-11" into chosen[nchips]. */
static pod_status choose(const pod_cli *cli, int32_t nchips, bool *chosen, pod_error *err)
{
    const char *text = cli->common.trace_chips;
    const char *at = text;
    bool again = false;
    do {
        at += *at == ',' && at != text ? 1 : 0;
        const int64_t first = take_number(&at);
        int64_t last = first;
        if (*at == '-') {
            at++;
            last = take_number(&at);
        }
        if (first < 0 || last < first || (*at != ',' && *at != '\0')) {
            return list_failure(text, err);
        }
        if (last >= nchips) {
            return pod_fail(err, POD_E_USAGE,
                            "--trace-chips names chip %" PRId64 ", and the chips are 0 to %" PRId32,
                            last, nchips - 1);
        }
        for (int64_t chip = first; chip <= last; chip++) {
            again = again || chosen[chip];
            chosen[chip] = true;
        }
    } while (*at == ',');
    if (again) {
        pod_cli_warn(cli, "--trace-chips %s names a chip twice; it is listed once", text);
    }
    return POD_OK;
}

static pod_status chips_read(pod_cli_trace *trace, const pod_cli *cli, int32_t nchips,
                             pod_error *err)
{
    bool *chosen = calloc((size_t)nchips, sizeof *chosen);
    trace->chips = malloc((size_t)nchips * sizeof *trace->chips);
    pod_status status = chosen != NULL && trace->chips != NULL
                            ? POD_OK
                            : pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    if (status == POD_OK && strcmp(cli->common.trace_chips, "all") == 0) {
        memset(chosen, 1, (size_t)nchips * sizeof *chosen);
    } else if (status == POD_OK) {
        status = choose(cli, nchips, chosen, err);
    }
    for (int32_t chip = 0; status == POD_OK && chip < nchips; chip++) {
        if (chosen[chip]) {
            trace->chips[trace->watch.nchips++] = chip;
        }
    }
    trace->watch.chips = trace->chips;
    free(chosen);
    return status;
}

pod_status pod_cli_trace_init(pod_cli_trace *trace, const pod_cli *cli,
                              const pod_experiment_setup *setup, bool steps, pod_error *err)
{
    *trace = (pod_cli_trace){.trace = NULL};
    if (cli->common.trace_path == NULL && !(steps && cli->common.html_path != NULL)) {
        return POD_OK;
    }
    const pod_status status = pod_trace_new(&trace->trace, err);
    return status == POD_OK && cli->common.trace_chips != NULL
               ? chips_read(trace, cli, pod_experiment_setup_chips(setup), err)
               : status;
}

void pod_cli_trace_fini(pod_cli_trace *trace)
{
    pod_experiment_watch_fini(&trace->watch);
    pod_trace_free(trace->trace);
    free(trace->chips);
    *trace = (pod_cli_trace){.trace = NULL};
}

pod_experiment_watch *pod_cli_trace_watch(pod_cli_trace *trace)
{
    return trace->trace != NULL ? &trace->watch : NULL;
}

/* On rank 0. A page does without a timeline that is too long for one; --trace doesn't. */
static pod_status write_here(pod_cli *cli, pod_cli_trace *trace, pod_error *err)
{
    const char *text = NULL;
    size_t size = 0;
    const pod_status status = pod_trace_finish(trace->trace, &text, &size, err);
    if (status == POD_E_INVALID && cli->common.trace_path == NULL) {
        pod_cli_warn(cli, "the page has no timeline: %s", err->text);
        return POD_OK;
    }
    if (status == POD_OK && cli->common.html_path != NULL) {
        pod_text_append(&cli->page_trace, text, size);
    }
    return status == POD_OK && cli->common.trace_path != NULL
               ? pod_file_write(cli->common.trace_path, text, size, err)
               : status;
}

pod_status pod_cli_trace_write(pod_cli *cli, pod_cli_trace *trace, pod_error *err)
{
    if (trace->trace == NULL) {
        return POD_OK;
    }
    const pod_status status = pod_par_rank(cli->par) == 0 ? write_here(cli, trace, err) : POD_OK;
    return pod_par_agree(cli->par, status, err);
}

pod_status pod_cli_trace_step(pod_cli *cli, pod_cli_trace *trace, const pod_step_trace_args *step,
                              pod_error *err)
{
    pod_step_trace_args args = *step;
    args.timeline = &trace->watch.step;
    pod_status st = trace->trace != NULL && pod_par_rank(cli->par) == 0
                        ? pod_step_trace_add(trace->trace, &args, err)
                        : POD_OK;
    st = pod_par_agree(cli->par, st, err);
    return st == POD_OK ? pod_cli_trace_write(cli, trace, err) : st;
}
