/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/traffic_goal.h"

#include "base/text.h"
#include "cli/tables.h"
#include "cli/target.h"
#include "cli/trace.h"

#include "base/units.h"
#include "exchange/goal.h"
#include "experiment/exchange.h"
#include "report/step_trace.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct goal_row {
    const char *slice;
    const char *pattern;
    int32_t ranks;
    int64_t messages;
    int64_t bytes;
    pod_time_ps time_ps;
    double compute_us;
    double mean_hops;
    int64_t max_link_bytes;
    char busiest[48]; /* "0,0,0:+x" */
} goal_row;

#define AT(field) POD_FIELD(goal_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "pattern", .table_hidden = true, AT(pattern)},
    {.name = "ranks", AT(ranks)},
    {.name = "messages", AT(messages)},
    {.name = "bytes", .title = "size", .unit = "B", AT(bytes)},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2, POD_TIME_FIELD(goal_row, time_ps, US)},
    {.name = "compute_us", .title = "calc", .unit = "us", .decimals = 2, AT(compute_us)},
    {.name = "mean_hops", .title = "mean hops", .decimals = 3, AT(mean_hops)},
    {.name = "max_link_bytes", .title = "busiest link", .unit = "B", AT(max_link_bytes)},
    {.name = "busiest_link", .title = "which", AT(busiest)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

/* What is sent in all. */
static void count(const pod_goal *goal, const pod_experiment_setup *setup, goal_row *row)
{
    int64_t hops = 0;
    for (int64_t i = 0; i < goal->nstatements; i++) {
        const pod_goal_statement *s = &goal->statements[i];
        if (s->kind == POD_GOAL_SEND) {
            row->messages++;
            row->bytes += s->amount;
            hops += s->peer != s->rank ? pod_router_hops(setup->router, s->rank, s->peer) : 0;
        }
    }
    row->mean_hops = row->messages > 0 ? (double)hops / (double)row->messages : 0;
}

/* No message, and no sum of them, is more than times and links can count. */
static pod_status bytes_check(const pod_goal *goal, const pod_experiment_setup *setup,
                              pod_error *err)
{
    const int64_t most_ps = INT64_MAX / 8;
    int64_t sum_ps = 0;
    int64_t sum_bytes = 0;
    for (int64_t i = 0; i < goal->nstatements; i++) {
        const pod_goal_statement *s = &goal->statements[i];
        pod_error why = {0};
        const bool calc = s->kind == POD_GOAL_CALC;
        sum_ps += calc ? s->amount * POD_PS_PER_NS : 0;
        sum_bytes += calc ? 0 : s->amount;
        if (calc && sum_ps > most_ps) {
            return pod_fail_at(err, POD_E_RANGE, goal->file, s->line, 0,
                               "all calculations together are longer than podsim counts, %.3g s",
                               pod_time_to_s(most_ps));
        }
        if (!calc
            && pod_experiment_bytes_check(setup, setup->chip.link_oneway_bytes_per_s, sum_bytes,
                                          &why)
                   != POD_OK) {
            return pod_fail_at(err, POD_E_RANGE, goal->file, s->line, 0,
                               "all messages together: %s", why.text);
        }
    }
    return POD_OK;
}

static pod_status print(pod_cli *cli, const pod_experiment_setup *setup, const pod_goal *goal,
                        const pod_step_result *result, pod_time_ps launch_ps, pod_error *err)
{
    pod_emit *emit = NULL;
    pod_findings findings = {0};
    const pod_slice *slice = &setup->slice;
    char chip[40];
    goal_row row = {.slice = slice->name,
                    .pattern = "goal",
                    .ranks = goal->nranks,
                    .time_ps = result->time_ps + launch_ps,
                    .compute_us = pod_time_to_us(result->compute_ps) / (double)goal->nranks,
                    .max_link_bytes = result->links.max_bytes};
    count(goal, setup, &row);
    if (result->links.busiest_chip >= 0) {
        (void)snprintf(row.busiest, sizeof row.busiest, "%s:%s",
                       pod_slice_chip_text(slice, result->links.busiest_chip, chip, sizeof chip),
                       pod_direction_name(result->links.busiest_direction));
    }
    pod_findings_say(&findings, POD_FINDING_ABOVE, "settings",
                     "podsim traffic: %s, %d chip%s, %s, %d rank%s", slice->name, slice->nchips,
                     pod_text_plural(slice->nchips), goal->file, (int)goal->nranks,
                     pod_text_plural(goal->nranks));
    pod_findings_say(&findings, POD_FINDING_ABOVE, "rates",
                     "rates %s: link %g GB/s one way, hop %g us, launch %g us",
                     pod_rates_name(cli->common.rates), setup->chip.link_oneway_bytes_per_s / 1e9,
                     pod_time_to_us(setup->chip.hop_latency_ps), pod_time_to_us(launch_ps));
    pod_status st = pod_emit_new(cli->common.format, "traffic", columns, NCOLUMNS, &emit, err);
    st = pod_par_agree(cli->par, st, err);
    if (st == POD_OK) {
        pod_emit_fields(emit, &row, NCOLUMNS);
        st = pod_cli_report(cli, emit, &findings, err);
    }
    pod_findings_fini(&findings);
    pod_emit_free(emit);
    return st;
}

static pod_status write_trace(pod_cli *cli, const pod_experiment_setup *setup, const pod_goal *goal,
                              const pod_programs *programs, const pod_step_result *result,
                              pod_cli_trace *trace, pod_error *err)
{
    const pod_step_trace_args args = {
        .slice = &setup->slice, .programs = programs, .result = result, .title = goal->file};
    return pod_cli_trace_step(cli, trace, &args, err);
}

static pod_status run(pod_cli *cli, const pod_experiment_setup *setup, const pod_goal *goal,
                      bool inside, pod_error *err)
{
    const pod_experiment_exchange_options how = {.file = goal->file};
    pod_programs programs = {.nstages = 0};
    pod_step_result result = {.nstages = 0};
    pod_cli_trace trace = {.trace = NULL};
    pod_status st = bytes_check(goal, setup, err);
    POD_THEN(st, pod_goal_programs(goal, &setup->slice, &programs, err));
    st = pod_par_agree(cli->par, st, err);
    POD_THEN(st, pod_cli_trace_init(&trace, cli, setup, false, err));
    POD_THEN(st, pod_experiment_exchange_run(&cli->experiment, setup, &setup->chip, &programs, &how,
                                             pod_cli_trace_watch(&trace), &result, err));
    if (st == POD_OK && goal->ignored > 0) {
        pod_cli_say(
            cli,
            "cpu and nic of %lld statements are ignored: a chip calculates one after the other",
            (long long)goal->ignored);
    }
    if (st == POD_OK) {
        pod_cli_explain(
            cli,
            "%lld statements, %lld dependencies; launch %g us, then %g us; %lld messages "
            "at a hop, %lld bytes over all links",
            (long long)goal->nstatements, (long long)goal->ndependencies,
            pod_time_to_us(pod_chip_launch_ps(&setup->chip, inside)),
            pod_time_to_us(result.time_ps), (long long)result.links.hops,
            (long long)result.links.total_bytes);
    }
    POD_THEN(st, print(cli, setup, goal, &result, pod_chip_launch_ps(&setup->chip, inside), err));
    POD_THEN(st, write_trace(cli, setup, goal, &programs, &result, &trace, err));
    pod_cli_trace_fini(&trace);
    pod_step_result_fini(&result);
    pod_programs_fini(&programs);
    return st;
}

pod_status pod_cli_traffic_goal(pod_cli *cli, const char *path, bool inside, pod_error *err)
{
    pod_cli_file file = {.path = path};
    if (cli->experiment.seed != 0) {
        return pod_fail(err, POD_E_USAGE, "--goal has no random choices; leave --seed out");
    }
    pod_cli_targets targets = {0};
    pod_goal goal = {.file = NULL};
    pod_status st = pod_cli_targets_init(&targets, cli, &file, 1, err);
    if (st == POD_OK && (targets.count > 1 || targets.setup[0].slice.nslices > 1)) {
        st = pod_fail(
            err, POD_E_INVALID, "--goal runs inside one slice, and %s %s; give one of them",
            targets.setup[0].slice.name, targets.count > 1 ? "isn't the only one" : "is several");
    }
    if (st == POD_OK) {
        st = pod_par_agree(cli->par, pod_goal_read(path, file.data, file.size, &goal, err), err);
    }
    POD_THEN(st, run(cli, &targets.setup[0], &goal, inside, err));
    pod_goal_fini(&goal);
    pod_cli_files_free(&file, 1);
    pod_cli_targets_fini(&targets);
    return st;
}
