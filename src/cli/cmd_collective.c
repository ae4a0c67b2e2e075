/* SPDX-License-Identifier: Apache-2.0 */
/* podsim collective: one operation on all groups of a slice at once. */
#include "base/text.h"
#include "cli/collective.h"
#include "cli/command_list.h"
#include "cli/faults.h"
#include "cli/plot.h"
#include "cli/target.h"
#include "cli/trace.h"

#include "base/units.h"
#include "experiment/exchange_write.h"
#include "report/collective_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a row shows. */
typedef struct collective_row {
    const char *slice;
    const char *op;
    const char *axes;
    int32_t group;
    const char *dtype;
    const char *limit;
    const char *data;
    int64_t wrong;
    pod_experiment_collective_row row;
} collective_row;

#define AT(field) POD_FIELD(collective_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "op", .table_hidden = true, AT(op)},
    {.name = "axes", .table_hidden = true, AT(axes)},
    {.name = "group", .table_hidden = true, AT(group)},
    {.name = "algorithm", AT(row.algorithm)},
    {.name = "dtype", .title = "type", .minor = 4, AT(dtype)},
    {.name = "bytes", .title = "size", .unit = "B", AT(row.bytes)},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2,
     POD_TIME_FIELD(collective_row, row.result.time_ps, US)},
    {.name = "algbw_GBps", .title = "algbw", .unit = "GB/s", .decimals = 2, AT(row.algbw_GBps)},
    {.name = "busbw_GBps", .title = "busbw", .unit = "GB/s", .decimals = 2, AT(row.busbw_GBps)},
    {.name = "bound_us", .title = "bound", .unit = "us", .decimals = 2,
     POD_TIME_FIELD(collective_row, row.bound.time_ps, US)},
    {.name = "bound_frac", .title = "bound/time", .decimals = 4, .minor = 2, AT(row.bound_frac)},
    {.name = "limit", AT(limit)},
    {.name = "data", .minor = 5, AT(data)},
    {.name = "wrong", .title = "#wrong", .minor = 3, AT(wrong)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "Operations: all-reduce, all-gather, reduce-scatter, all-to-all, permute, broadcast. All\n"
    "groups run at once. bytes = the full buffer per chip, as in nccl-tests (all-gather: the\n"
    "gathered result; reduce-scatter: the input); algbw = bytes/time; busbw = algbw times\n"
    "2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter, all-to-all, 1 else.\n"
    "Times hold the launch cost. bound = what no algorithm can beat (without launch), limit what\n"
    "sets it: latency, link, bisection or hops. wrong = elements that differ in any bit.\n"
    "--pairs FILE has the columns source,target: ranks of a group (x fastest), or chips "
    "\"X,Y,Z\".\n";

/* State of one run of the command. */
typedef struct collective_run {
    pod_cli *cli;
    const pod_cli_collective *options;
    pod_emit *emit;
    pod_findings findings;
    pod_cli_plot plot;
    pod_cli_trace trace;
    pod_collective_trace timeline;
    int64_t wrong;
} collective_run;

static void add_row(pod_emit *emit, const pod_experiment_collective_case *run_case,
                    const pod_experiment_collective_row *row)
{
    const collective_row shown = {.slice = run_case->setup->slice.name,
                                  .op = pod_coll_op_name(run_case->request->op),
                                  .axes = run_case->axes,
                                  .group = run_case->group.size,
                                  .dtype = pod_dtype_name(row->dtype),
                                  .limit = pod_limit_name(row->bound.limit),
                                  .data = row->data ? "real" : "none",
                                  .wrong = row->data ? row->result.wrong : INT64_MIN,
                                  .row = *row};
    pod_emit_fields(emit, &shown, NCOLUMNS);
}

/* What is run on slices with other faults. */
typedef struct other_faults {
    collective_run *run;
    int64_t bytes;
    const pod_coll_algorithm *algorithm;
    char healthy[POD_EXPERIMENT_ALGORITHM_MAX]; /* what ran first, without any */
} other_faults;

static pod_status time_with_faults(void *context, const pod_experiment_setup *setup,
                                   pod_time_ps *time_ps, pod_error *err)
{
    other_faults *other = context;
    pod_experiment *experiment = &other->run->cli->experiment;
    pod_experiment_collective_case changed = {.request = NULL};
    pod_experiment_collective_row row;
    pod_error failure = {0};
    pod_status st = pod_experiment_collective_case_init(&changed, &other->run->options->request,
                                                        setup, &failure);
    changed.timing_only = true;
    st = pod_par_agree(experiment->par, st, &failure);
    if (st == POD_OK) {
        st = pod_experiment_collective_run(experiment, &changed, other->bytes, other->algorithm,
                                           NULL, &row, &failure);
    }
    if (st == POD_OK) {
        *time_ps = row.result.time_ps;
        if (other->healthy[0] == '\0') {
            memcpy(other->healthy, row.algorithm, sizeof other->healthy);
        }
    } else if (st != POD_E_INVALID && st != POD_E_USAGE && err != NULL) {
        *err = failure;
    }
    pod_experiment_collective_case_fini(&changed);
    return st == POD_E_INVALID || st == POD_E_USAGE ? POD_OK : st;
}

/* What the faults cost: the same on the slice with others. */
static pod_status compare_faults(collective_run *run, const pod_experiment_setup *setup,
                                 const pod_experiment_collective_row *row,
                                 const pod_coll_algorithm *algorithm, pod_error *err)
{
    other_faults other = {.run = run, .bytes = row->bytes, .algorithm = algorithm};
    pod_experiment_faults faults;
    char what[64];
    char how[2][POD_EXPERIMENT_ALGORITHM_MAX + 4];
    POD_TRY(pod_experiment_faults_find(&run->cli->experiment, setup, row->result.time_ps,
                                       time_with_faults, &other, &faults, err));
    (void)snprintf(what, sizeof what, "%lld bytes take ", (long long)row->bytes);
    (void)snprintf(how[0], sizeof how[0], " (%s)", row->algorithm);
    (void)snprintf(how[1], sizeof how[1], " (%s)", other.healthy);
    const pod_faults_words words = {.what = what,
                                    .how = how[0],
                                    .how_healthy = how[1],
                                    .wait_s =
                                        pod_time_to_s(row->result.time_ps - faults.healthy_ps)};
    pod_faults_note(&run->findings, &faults, &words);
    pod_cli_explain(run->cli, "  faults cost %.9g us - %.9g us (%s on the healthy slice)",
                    pod_time_to_us(row->result.time_ps), pod_time_to_us(faults.healthy_ps),
                    other.healthy);
    return POD_OK;
}

/* The messages of what ran into the timeline. */
static pod_status trace_row(collective_run *run, const pod_experiment_collective_case *run_case,
                            const pod_experiment_collective_row *row, pod_error *err)
{
    char bytes[POD_FORMAT_MAX];
    char title[160];
    pod_status st = POD_OK;
    if (run->trace.trace == NULL) {
        return POD_OK;
    }
    if (pod_par_rank(run->cli->par) == 0) {
        (void)snprintf(title, sizeof title, "%s %s by %s", pod_coll_op_name(run_case->request->op),
                       pod_format_bytes(row->bytes, bytes, sizeof bytes), row->algorithm);
        st = pod_collective_trace_add(&run->timeline, &run->trace.watch.collective, title,
                                      row->result.time_ps, err);
    }
    return pod_par_agree(run->cli->par, st, err);
}

/* A point of its slice's and algorithm's curve: by the word that was asked for, as `auto` and `xla` name many. */
static pod_status plot_row(collective_run *run, const pod_experiment_collective_case *run_case,
                           const pod_experiment_collective_row *row, pod_error *err)
{
    pod_plot_collective_row point = {.bytes = (double)row->bytes,
                                     .time_us = pod_time_to_us(row->result.time_ps),
                                     .busbw_GBps = row->busbw_GBps,
                                     .bound_us = pod_time_to_us(row->bound.time_ps),
                                     .bus_factor = row->bus_factor};
    const char *algorithm = run->options->named != NULL ? run->options->named->name : "auto";
    (void)snprintf(point.series, sizeof point.series, "%s %s", run_case->setup->slice.name,
                   run->options->all ? row->algorithm : algorithm);
    return pod_cli_plot_collective(&run->plot, run->cli, &point, err);
}

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const collective_run *run = figures;
    char title[96];
    (void)snprintf(title, sizeof title, "%s, rates %s", pod_coll_op_name(run->options->request.op),
                   pod_rates_name(run->cli->common.rates));
    return pod_plot_collectives(plot, title, run->plot.collectives, run->plot.count, err);
}

/* The comparison without faults is a finding, and --explain shows it: only they need it. */
static bool wants_faults(const pod_cli *cli, const pod_experiment_setup *setup)
{
    return pod_experiment_setup_faults(setup) > 0
           && (pod_cli_wants_findings(cli) || cli->common.explain);
}

static pod_status run_one(collective_run *run, pod_experiment_collective_case *run_case,
                          int64_t bytes, const pod_coll_algorithm *algorithm, pod_error *err)
{
    pod_experiment_collective_row row;
    pod_status st = pod_experiment_collective_run(&run->cli->experiment, run_case, bytes, algorithm,
                                                  pod_cli_trace_watch(&run->trace), &row, err);
    POD_THEN(st, trace_row(run, run_case, &row, err));
    if (st != POD_OK) {
        return st;
    }
    pod_collective_explain(run->cli, run_case, &row);
    add_row(run->emit, run_case, &row);
    pod_cli_rows_next(run->cli, run->emit);
    run->wrong += row.result.wrong;
    st = plot_row(run, run_case, &row, err);
    if (st != POD_OK) {
        return st;
    }
    return wants_faults(run->cli, run_case->setup)
               ? compare_faults(run, run_case->setup, &row, algorithm, err)
               : POD_OK;
}

static pod_status run_size(collective_run *run, pod_experiment_collective_case *run_case,
                           int64_t bytes, pod_error *err)
{
    const pod_cli_collective *options = run->options;
    if (!options->all || pod_experiment_collective_is_trivial(run_case, bytes)) {
        return run_one(run, run_case, bytes, options->named, err);
    }
    pod_dtype dtype = POD_DTYPE_BF16;
    POD_TRY(pod_experiment_collective_dtype(&options->request, bytes, &dtype, err));
    for (int i = 0; i < pod_coll_algorithm_count(); i++) {
        const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
        if (pod_experiment_collective_fits(run_case, bytes, dtype, algorithm)) {
            POD_TRY(run_one(run, run_case, bytes, algorithm, err));
        }
    }
    return POD_OK;
}

/* How far off such predictions are, and the figures in force that no row of this chip fixes. */
static void add_origins(const pod_cli *cli, pod_findings *findings,
                        const pod_experiment_collective_case *run_case, const pod_cli_sizes *sizes)
{
    static const int64_t LARGE_BYTES = INT64_C(1) << 20;
    int64_t smallest = INT64_MAX;
    int64_t largest = 0;
    const pod_chip_spec *chip = &run_case->setup->chip;
    const char *names[7];
    int n = 0;
    names[n++] = "link_eff_frac";
    names[n++] = "hop_latency_us";
    names[n++] = "collective_launch_us";
    if (run_case->launch_ps > chip->collective_launch_ps) {
        names[n++] = "host_launch_us";
    }
    if (run_case->link_bytes_per_s < chip->link_oneway_bytes_per_s) {
        names[n++] = "multi_axis_eff_frac";
    }
    if (run_case->setup->slice.nslices > 1) {
        names[n++] = "dcn_eff_frac";
        names[n++] = "dcn_latency_us";
    }
    pod_cli_explain_origins(cli, chip, names, n);
    for (int i = 0; i < sizes->count; i++) {
        smallest = sizes->bytes[i] < smallest ? sizes->bytes[i] : smallest;
        largest = sizes->bytes[i] > largest ? sizes->bytes[i] : largest;
    }
    if (run_case->request->op == POD_PERMUTE) {
        pod_cli_heading_accuracy(cli, chip, "permute", findings);
        return;
    }
    if (smallest < LARGE_BYTES) {
        pod_cli_heading_accuracy(cli, chip, "collective-small", findings);
    }
    if (largest >= LARGE_BYTES) {
        pod_cli_heading_accuracy(cli, chip, "collective-large", findings);
    }
}

/* A name as long as the longest that will come, of most of them. */
static const char *sample_name(const collective_run *run,
                               const pod_experiment_collective_case *run_case, int64_t bytes,
                               pod_dtype dtype)
{
    static const char *const compilers[] = {"xla:2xone:ring", "xla:short:2xboth:xy/yx",
                                            "xla:6xone:yxz/xzy/zyx/yxz/xzy/zyx"};
    const pod_cli_collective *options = run->options;
    const char *name = options->named != NULL ? options->named->name : "scatter_relay";
    if (strcmp(name, "xla") == 0 || options->all) {
        name = compilers[run_case->group.ndims > 2 ? 2 : run_case->group.ndims > 1];
    }
    for (int i = 0; i < pod_coll_algorithm_count() && options->all; i++) {
        const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
        if (strlen(algorithm->name) > strlen(name)
            && pod_experiment_collective_fits(run_case, bytes, dtype, algorithm)) {
            name = algorithm->name;
        }
    }
    return name;
}

/* Rows at least as wide as what will come, for most algorithms on most slices: times of a ring through all chips whose
 * links carry the bytes four times. */
static void add_samples(collective_run *run, const pod_experiment_collective_case *run_case)
{
    static const double LOADS = 4;
    static const double MOST_US = 1e9;
    const pod_cli_collective *options = run->options;
    const pod_experiment_collective_request *request = &options->request;
    const pod_chip_spec *chip = &run_case->setup->chip;
    for (int i = 0; i < options->sizes.count; i++) {
        const int64_t bytes = options->sizes.bytes[i];
        const double moved_us =
            fmin(LOADS * (double)bytes / run_case->link_bytes_per_s * 1e6, MOST_US);
        pod_experiment_collective_row row = {.bytes = bytes, .data = true, .bound_frac = 1};
        row.bound.limit = request->op == POD_ALL_TO_ALL ? POD_LIMIT_BISECTION : POD_LIMIT_LATENCY;
        row.bound.time_ps = 2 * run_case->group.size * chip->hop_latency_ps
                            + (pod_time_ps)(moved_us * (double)POD_PS_PER_US);
        row.result.time_ps = run_case->launch_ps + row.bound.time_ps;
        row.algbw_GBps = POD_DIRECTIONS * run_case->link_bytes_per_s / 1e9;
        row.busbw_GBps = row.algbw_GBps;
        if (pod_experiment_collective_dtype(request, bytes, &row.dtype, NULL) == POD_OK) {
            (void)snprintf(row.algorithm, sizeof row.algorithm, "%s",
                           sample_name(run, run_case, bytes, row.dtype));
            add_row(run->emit, run_case, &row);
        }
    }
}

static void add_heading(const pod_cli *cli, pod_findings *findings,
                        const pod_experiment_collective_case *run_case, const pod_cli_sizes *sizes)
{
    const pod_slice *slice = &run_case->setup->slice;
    const pod_chip_spec *chip = &run_case->setup->chip;
    const int32_t groups = slice->nchips * slice->nslices / run_case->group.size;
    const pod_logical_mesh *mesh = run_case->request->mesh;
    pod_text axes = {0};
    for (int i = 0; mesh != NULL && i < mesh->naxes; i++) {
        if ((run_case->request->mesh_axes >> i & 1U) != 0) {
            pod_text_printf(&axes, "%s%s", axes.size > 0 ? "," : ", mesh axis ",
                            pod_logical_mesh_axis_name(mesh, i));
        }
    }
    pod_findings_say(
        findings, POD_FINDING_ABOVE, "settings",
        "podsim collective: %s on %s, %d chip%s: %d group%s of %d over %s%s",
        pod_coll_op_name(run_case->request->op), slice->name, slice->nchips * slice->nslices,
        pod_text_plural(slice->nchips * slice->nslices), groups, pod_text_plural(groups),
        run_case->group.size, run_case->axes, axes.size > 0 ? axes.data : "");
    pod_text_free(&axes);
    pod_findings_say(findings, POD_FINDING_ABOVE, "rates",
                     "rates %s: link %g GB/s one way, hop %g us, launch %g us",
                     pod_rates_name(chip->rates), run_case->link_bytes_per_s / 1e9,
                     pod_time_to_us(chip->hop_latency_ps), pod_time_to_us(run_case->launch_ps));
    if (slice->nslices > 1) {
        pod_findings_say(
            findings, POD_FINDING_ABOVE, "rates", "DCN: %g GB/s a chip one way, latency %g us",
            chip->dcn_bytes_per_s * chip->dcn_eff_frac / 1e9, pod_time_to_us(chip->dcn_latency_ps));
    }
    add_origins(cli, findings, run_case, sizes);
}

/* What other programs read. */
static pod_status write_exchange(const collective_run *run,
                                 const pod_experiment_collective_case *run_case, pod_error *err)
{
    const pod_cli_collective *options = run->options;
    pod_experiment *experiment = &run->cli->experiment;
    const char *const paths[] = {options->chakra, options->goal};
    pod_status st = POD_OK;
    for (int i = 0; i < 2 && st == POD_OK; i++) {
        pod_experiment_written written = {.programs = NULL};
        if (paths[i] == NULL) {
            continue;
        }
        /* `traffic --goal` launches by itself */
        st = pod_experiment_write_collective(experiment, run_case, options->sizes.bytes[0],
                                             options->named, i == 0, &written, err);
        POD_THEN(st, i == 0 ? pod_experiment_write_chakra(experiment, &written, paths[i], err)
                            : pod_experiment_write_goal(experiment, &written, paths[i], err));
        pod_experiment_written_fini(&written);
    }
    return st;
}

/* What can't be asked is refused before the first row comes. */
static pod_status check_sizes(const collective_run *run,
                              const pod_experiment_collective_case *run_case, pod_error *err)
{
    const pod_cli_sizes *sizes = &run->options->sizes;
    for (int i = 0; i < sizes->count; i++) {
        const int64_t bytes = sizes->bytes[i];
        pod_dtype dtype = POD_DTYPE_BF16;
        POD_TRY(pod_experiment_collective_dtype(run_case->request, bytes, &dtype, err));
        if (!pod_experiment_collective_is_trivial(run_case, bytes)) {
            POD_TRY(pod_experiment_bytes_check(run_case->setup, run_case->link_bytes_per_s, bytes,
                                               err));
        }
    }
    return POD_OK;
}

/* @param cases  cases[targets->count], zeroed */
static pod_status run_cases(collective_run *run, const pod_cli_targets *targets,
                            pod_experiment_collective_case *cases, pod_error *err)
{
    const pod_cli_collective *options = run->options;
    const bool come = pod_cli_rows_come(run->cli);
    pod_status st = POD_OK;
    for (int i = 0; i < targets->count && st == POD_OK; i++) {
        st = pod_experiment_collective_case_init(&cases[i], &options->request, &targets->setup[i],
                                                 err);
        POD_THEN(st, check_sizes(run, &cases[i], err));
        st = pod_par_agree(run->cli->par, st, err);
        if (st == POD_OK) {
            add_heading(run->cli, &run->findings, &cases[i], &options->sizes);
        }
        if (st == POD_OK && come) {
            add_samples(run, &cases[i]);
        }
    }
    pod_cli_rows_begin(run->cli, run->emit, &run->findings);
    for (int i = 0; i < targets->count * options->sizes.count && st == POD_OK; i++) {
        st = run_size(run, &cases[i / options->sizes.count],
                      options->sizes.bytes[i % options->sizes.count], err);
    }
    POD_THEN(st, write_exchange(run, &cases[0], err));
    return st;
}

static pod_status run_targets(collective_run *run, const pod_cli_targets *targets, pod_error *err)
{
    pod_experiment_collective_case *cases = calloc((size_t)targets->count, sizeof *cases);
    pod_status st = cases != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for slices");
    st = pod_par_agree(run->cli->par, st, err);
    POD_THEN(st, run_cases(run, targets, cases, err));
    for (int i = 0; i < targets->count && cases != NULL; i++) {
        pod_experiment_collective_case_fini(&cases[i]);
    }
    free(cases);
    return st;
}

static pod_status run_all(pod_cli *cli, pod_cli_collective *options, pod_error *err)
{
    collective_run run = {.cli = cli, .options = options};
    pod_cli_targets targets = {0};
    const int nextra = options->file.path != NULL ? 1 : 0;
    pod_emit_column shown[NCOLUMNS];
    for (int i = 0; i < NCOLUMNS; i++) {
        shown[i] = columns[i];
    }
    shown[0].table_hidden = cli->common.slices.count < 2;
    pod_status st = pod_cli_targets_init(&targets, cli, &options->file, nextra, err);
    POD_THEN(st, pod_cli_collective_parse(options, err));
    POD_THEN(st, pod_emit_new(cli->common.format, "collective", shown, NCOLUMNS, &run.emit, err));
    if (st == POD_OK && cli->common.trace_path != NULL && targets.count > 1) {
        st = pod_fail(err, POD_E_USAGE, "--trace shows one --slice; here are %d", targets.count);
    }
    if (st == POD_OK && (options->chakra != NULL || options->goal != NULL) && targets.count > 1) {
        st = pod_fail(err, POD_E_USAGE, "--chakra and --goal are of one --slice; here are %d",
                      targets.count);
    }
    if (st == POD_OK) {
        st = pod_cli_trace_init(&run.trace, cli, &targets.setup[0], false, err);
        pod_collective_trace_init(&run.timeline, run.trace.trace, &targets.setup[0].slice);
    }
    POD_THEN(st, run_targets(&run, &targets, err));
    POD_THEN(st, pod_cli_report(cli, run.emit, &run.findings, err));
    POD_THEN(st, pod_cli_trace_write(cli, &run.trace, err));
    POD_THEN(st, pod_cli_plot_write(cli, add_plot, &run, err));
    pod_cli_plot_fini(&run.plot);
    pod_collective_trace_fini(&run.timeline);
    pod_cli_trace_fini(&run.trace);
    if (st == POD_OK && run.wrong > 0) {
        st = pod_fail(err, POD_E_CHECK,
                      "%lld elements are wrong; each must equal the serial "
                      "reference in every bit",
                      (long long)run.wrong);
    }
    pod_findings_fini(&run.findings);
    pod_emit_free(run.emit);
    pod_cli_targets_fini(&targets);
    return st;
}

pod_status pod_cmd_collective(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_cli_collective options = {.all = false};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --op OP --bytes LIST",
        .examples =
            "--slice v5p:4x4x4 --op all-reduce --bytes 1KiB:1GiB:16 --data none\n"
            "--slice v5e:8x8 --op all-gather --bytes 64MiB --algorithm all --data none\n"
            "--slice v5e:4x4 --op all-reduce --bytes 1MiB --mesh fsdp=4,tensor=4 --axis fsdp\n",
        .about = about,
        .groups = POD_CLI_SLICES | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_DCN | POD_CLI_RATES
                  | POD_CLI_DATA | POD_CLI_SEED | POD_CLI_EXPLAIN | POD_CLI_TRACE | POD_CLI_PLOT
                  | POD_CLI_HTML,
        .options = pod_cli_collective_option,
        .noptions = POD_CLI_COLLECTIVE_OPTIONS,
        .fields = &options,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    pod_status st = pod_cli_collective_complete(&options, err);
    POD_THEN(st, run_all(cli, &options, err));
    pod_cli_collective_fini(&options);
    return st;
}
