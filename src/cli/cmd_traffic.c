/* SPDX-License-Identifier: Apache-2.0 */
/* podsim traffic: point-to-point patterns. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/target.h"
#include "cli/trace.h"

#include "base/units.h"
#include "report/collective_trace.h"
#include "sim/run_watch.h"
#include "sim/traffic.h"

#include <math.h>
#include <string.h>

typedef struct traffic_row {
    const char *slice;
    const char *pattern;
    int64_t bytes;
    pod_traffic_result result;
    char busiest[48]; /* "0,0,0:+x" */
    double rate_GBps;
} traffic_row;

#define AT(field) POD_FIELD(traffic_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "pattern", .table_hidden = true, AT(pattern)},
    {.name = "bytes", .title = "size", .unit = "B", AT(bytes)},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2, POD_TIME_FIELD(traffic_row, result.time_ps, US)},
    {.name = "first_byte_us", .title = "first byte", .unit = "us", .decimals = 2,
     POD_TIME_FIELD(traffic_row, result.first_byte_ps, US)},
    {.name = "mean_hops", .title = "mean hops", .decimals = 3, AT(result.mean_hops)},
    {.name = "max_link_bytes", .title = "busiest link", .unit = "B", AT(result.links.max_bytes)},
    {.name = "busiest_link", .title = "which", AT(busiest)},
    {.name = "throughput_GBps_per_chip", .title = "per chip", .unit = "GB/s", .decimals = 2, AT(rate_GBps)},
};
/* clang-format on */
#undef AT
enum { PATTERN = 1, NCOLUMNS = sizeof columns / sizeof columns[0], MANY_MESSAGES = 1000000 };

static const char about[] =
    "Patterns: pair (--from to --to), neighbor (each chip to all its neighbours), transpose\n"
    "(x,y,z) to (y,z,x), tornado (ceil(k/2) - 1 ahead along each axis), permutation (random,\n"
    "--seed), uniform (each to all others), hotspot (all to chip 0). All chips send at once.\n"
    "Columns: bytes = what one chip sends in all; time_us = until the last message is there;\n"
    "first_byte_us = launch and hops of the farthest message; mean_hops over messages;\n"
    "busiest_link = chip:direction; throughput = bytes a sending chip gets out per second.\n";

/* Those of --pattern, in its order. */
typedef struct pattern_list {
    int count;
    pod_traffic_pattern pattern[POD_TRAFFIC_COUNT];
} pattern_list;

/* What the options say. */
typedef struct traffic_request {
    pattern_list patterns;
    pod_traffic_pattern pattern; /* the one that runs */
    pod_cli_sizes sizes;
    const char *from_text;
    const char *to_text;
    int32_t from;
    int32_t to;
    bool inside; /* of a program */
    bool force;
} traffic_request;

static pod_status add_pattern(pattern_list *list, const char *name, pod_error *err)
{
    pod_traffic_pattern pattern = POD_TRAFFIC_PAIR;
    POD_TRY(pod_traffic_parse(name, &pattern, err));
    for (int i = 0; i < list->count; i++) {
        if (list->pattern[i] == pattern) {
            return pod_fail(err, POD_E_USAGE, "--pattern names %s twice; name it once", name);
        }
    }
    list->pattern[list->count++] = pattern;
    return POD_OK;
}

/* A name, or several with commas between them. */
static pod_status read_patterns(const char *text, void *field, pod_error *err)
{
    char name[64];
    for (const char *at = text;; at++) {
        const size_t size = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)size, at);
        POD_TRY(add_pattern(field, name, err));
        at += size;
        if (*at == '\0') {
            return POD_OK;
        }
    }
}

static pod_status ends_check(const traffic_request *request, pod_error *err)
{
    const bool ends = request->from_text != NULL || request->to_text != NULL;
    for (int i = 0; i < request->patterns.count && request->patterns.count > 1; i++) {
        if (request->patterns.pattern[i] == POD_TRAFFIC_PAIR) {
            return pod_fail(err, POD_E_USAGE, "a pair runs alone; give --pattern pair by itself");
        }
    }
    if (request->pattern != POD_TRAFFIC_PAIR) {
        return ends ? pod_fail(err, POD_E_USAGE,
                               "--from and --to are for --pattern pair; %s has its own pairs",
                               pod_traffic_name(request->pattern))
                    : POD_OK;
    }
    POD_TRY(pod_cli_require(request->from_text, "--from", "0,0,0", err));
    return pod_cli_require(request->to_text, "--to", "1,0,0", err);
}

/* The ends of a pair need the slice. */
static pod_status read_ends(const pod_slice *slice, traffic_request *request, pod_error *err)
{
    if (slice->nslices > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "traffic runs inside one slice, and %s is %d; give one of them",
                        slice->name, slice->nslices);
    }
    if (request->pattern != POD_TRAFFIC_PAIR) {
        return POD_OK;
    }
    POD_TRY(pod_slice_chip_parse(slice, request->from_text, "--from", &request->from, err));
    return pod_slice_chip_parse(slice, request->to_text, "--to", &request->to, err);
}

/* "1,2:+x", the busiest link of a run that moved something. */
static const char *link_text(const pod_slice *slice, const pod_link_summary *links, char *buf,
                             size_t size)
{
    char chip[40];
    (void)snprintf(buf, size, "%s:%s",
                   pod_slice_chip_text(slice, links->busiest_chip, chip, sizeof chip),
                   pod_direction_name(links->busiest_direction));
    return buf;
}

static void explain(const pod_cli *cli, const pod_machine *machine, const pod_traffic *traffic,
                    const pod_traffic_result *result)
{
    pod_cli_explain(
        cli,
        "%s, %lld bytes a chip: %lld messages, mean %.9g hops; an uncontended one takes "
        "launch %g us + hops x %g us + bytes / %g GB/s a path",
        pod_traffic_name(traffic->pattern), (long long)traffic->bytes, (long long)result->messages,
        result->mean_hops, pod_time_to_us(machine->launch_ps),
        pod_time_to_us(machine->hop_latency_ps), machine->link_bytes_per_s / 1e9);
    if (result->links.busiest_chip >= 0) {
        char link[48];
        pod_cli_explain(cli,
                        "busiest link: %s, %lld bytes, busy %g us of the %g us simulated; %lld "
                        "events (a message at a hop), %lld bytes over all links",
                        link_text(traffic->slice, &result->links, link, sizeof link),
                        (long long)result->links.busiest_bytes,
                        pod_time_to_us(result->links.busy_ps), pod_time_to_us(result->time_ps),
                        (long long)result->links.hops, (long long)result->links.total_bytes);
    }
}

static void add_row(pod_emit *emit, const pod_traffic *traffic, const pod_traffic_result *result)
{
    const pod_slice *slice = traffic->slice;
    const double time_s = pod_time_to_s(result->time_ps);
    const bool moved = result->links.total_bytes > 0;
    traffic_row row = {.slice = slice->name,
                       .pattern = pod_traffic_name(traffic->pattern),
                       .bytes = traffic->bytes,
                       .result = *result,
                       .rate_GBps =
                           moved && time_s > 0 ? (double)traffic->bytes / time_s / 1e9 : 0};
    if (result->links.busiest_chip >= 0) {
        (void)link_text(slice, &result->links, row.busiest, sizeof row.busiest);
    }
    pod_emit_fields(emit, &row, NCOLUMNS);
}

/* The messages of a size into the timeline. Without --trace-chips of a pair its two ends, else chip 0. */
static pod_status trace_row(const pod_cli *cli, const traffic_request *request,
                            pod_collective_trace *timeline, const pod_run_watch *watch,
                            int64_t bytes, const pod_traffic_result *result, pod_error *err)
{
    char size[POD_FORMAT_MAX];
    char title[96];
    pod_status st = POD_OK;
    if (timeline->trace == NULL) {
        return POD_OK;
    }
    if (pod_par_rank(cli->par) == 0) {
        (void)snprintf(title, sizeof title, "%s %s", pod_traffic_name(request->pattern),
                       pod_format_bytes(bytes, size, sizeof size));
        st = pod_collective_trace_add(timeline, watch, title, result->time_ps, err);
    }
    return pod_par_agree(cli->par, st, err);
}

/* A run of very many messages says so first, and one that may not fit the machine's memory is refused. */
static pod_status check_room(const pod_cli *cli, const pod_machine *machine,
                             const pod_traffic *traffic, pod_error *err)
{
    pod_traffic_need need;
    pod_traffic_need_get(machine, traffic, &need);
    const double needed = (double)need.bytes;
    const double room = pod_experiment_room_bytes(&cli->experiment);
    if (needed <= room && need.messages < MANY_MESSAGES) {
        return POD_OK;
    }
    char what[POD_EXPERIMENT_TEXT_MAX];
    char remedy[64];
    (void)snprintf(what, sizeof what, "%lld messages over %lld paths (--pattern %s, %d chips)",
                   (long long)need.messages, (long long)need.fragments,
                   pod_traffic_name(traffic->pattern), traffic->slice->nchips);
    if (needed <= room) {
        pod_experiment_note(&cli->experiment, "%s may take %.3g GiB of memory, and a while", what,
                            needed / (double)POD_BYTES_PER_GIB);
        return POD_OK;
    }
    const double smaller = room / needed;
    const bool squared = traffic->pattern == POD_TRAFFIC_UNIFORM;
    (void)snprintf(remedy, sizeof remedy, "use a slice of %d chips or fewer",
                   (int)((squared ? sqrt(smaller) : smaller) * traffic->slice->nchips));
    return pod_experiment_room_fail(what, needed, room, remedy, err);
}

static void add_heading(const pod_cli *cli, pod_findings *findings,
                        const pod_experiment_setup *setup, const traffic_request *request)
{
    pod_findings_say(findings, POD_FINDING_ABOVE, "settings", "podsim traffic: %s, %d chip%s, %s",
                     setup->slice.name, setup->slice.nchips, pod_cli_plural(setup->slice.nchips),
                     request->patterns.count > 1 ? "several patterns"
                                                 : pod_traffic_name(request->pattern));
    pod_findings_say(findings, POD_FINDING_ABOVE, "rates",
                     "rates %s: link %g GB/s one way, hop %g us, launch %g us",
                     pod_rates_name(cli->common.rates), setup->chip.link_oneway_bytes_per_s / 1e9,
                     pod_time_to_us(setup->chip.hop_latency_ps),
                     pod_time_to_us(pod_chip_launch_ps(&setup->chip, request->inside)));
}

/* The rows of one pattern. */
static pod_status run_pattern(pod_cli *cli, const pod_experiment_setup *setup,
                              const traffic_request *request, pod_run_watch *watch,
                              pod_collective_trace *timeline, pod_emit *emit, pod_error *err)
{
    const double rate = setup->chip.link_oneway_bytes_per_s;
    const pod_machine machine = pod_experiment_machine(
        &cli->experiment, setup, rate, pod_chip_launch_ps(&setup->chip, request->inside));
    pod_status st = POD_OK;
    for (int i = 0; i < request->sizes.count && st == POD_OK; i++) {
        pod_traffic traffic = {.slice = NULL};
        pod_traffic_result result;
        st = pod_experiment_bytes_check(setup, rate, request->sizes.bytes[i], err);
        if (st == POD_OK) {
            st =
                pod_traffic_init(&traffic, &setup->slice, request->pattern, request->sizes.bytes[i],
                                 request->from, request->to, cli->experiment.seed, err);
        }
        st = pod_par_agree(cli->par, st, err);
        if (st == POD_OK) {
            st = check_room(cli, &machine, &traffic, err);
        }
        if (st == POD_OK) {
            st = pod_traffic_run(&machine, &traffic, timeline->trace != NULL ? watch : NULL,
                                 &result, err);
        }
        if (st == POD_OK) {
            explain(cli, &machine, &traffic, &result);
            add_row(emit, &traffic, &result);
            st = trace_row(cli, request, timeline, watch, traffic.bytes, &result, err);
        }
        pod_run_watch_fini(watch);
        pod_traffic_fini(&traffic);
    }
    return st;
}

static pod_status run(pod_cli *cli, const pod_experiment_setup *setup, traffic_request *request,
                      pod_cli_trace *trace, pod_emit *emit, pod_error *err)
{
    const bool pair = request->pattern == POD_TRAFFIC_PAIR;
    const int32_t ends[] = {pair ? request->from : 0, request->to};
    pod_run_watch watch = {.nchips = trace->watch.nchips, .chips = trace->watch.chips};
    pod_collective_trace timeline;
    pod_findings findings = {0};
    if (watch.nchips == 0) {
        watch.nchips = pair ? 2 : 1;
        watch.chips = ends;
    }
    add_heading(cli, &findings, setup, request);
    pod_collective_trace_init(&timeline, trace->trace, &setup->slice);
    pod_status st = POD_OK;
    for (int i = 0; i < request->patterns.count && st == POD_OK; i++) {
        request->pattern = request->patterns.pattern[i];
        st = run_pattern(cli, setup, request, &watch, &timeline, emit, err);
    }
    pod_collective_trace_fini(&timeline);
    pod_experiment_progress_end(&cli->experiment);
    if (st == POD_OK) {
        st = pod_cli_report(cli, emit, &findings, err);
    }
    pod_findings_fini(&findings);
    return st;
}

#define AT(field) POD_CLI_FIELD(traffic_request, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"pattern", 0, POD_CLI_READ, AT(patterns), "NAME,...",
     "pair, neighbor, transpose, tornado, permutation, uniform or hotspot; or several of them",
     .read = read_patterns, .example = "uniform", .matters = true},
    {"bytes", 0, POD_CLI_SIZES, AT(sizes), "LIST",
     "bytes that a chip sends: 1KiB,64MiB or 1KiB:1GiB:4 (from:to:factor)", .example = "1MiB", .matters = true},
    {"from", 0, POD_CLI_TEXT, AT(from_text), "X,Y,Z",
     "sender of a pair", .matters = true},
    {"to", 0, POD_CLI_TEXT, AT(to_text), "X,Y,Z",
     "receiver of a pair", .matters = true},
    {"launch", 0, POD_CLI_CHOICE, AT(inside), "host|device",
     "run from the host, as benchmarks do, or inside a program (default: host)"},
    {"force", 0, POD_CLI_FLAG, AT(force), NULL,
     "also where the messages may not fit the machine's memory"},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_traffic(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    traffic_request request = {.from = -1, .to = -1};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --pattern NAME --bytes LIST",
        .examples = "--slice v5e:8x8 --pattern transpose --bytes 1MiB\n"
                    "--slice v5e:4x4 --pattern pair --from 0,0 --to 3,3 --bytes 16MiB\n"
                    "--slice v4:4x4x4 --pattern uniform --bytes 1KiB:1MiB:32\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_RATES | POD_CLI_SEED
                  | POD_CLI_EXPLAIN | POD_CLI_TRACE | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &request,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    request.pattern = request.patterns.pattern[0];
    POD_TRY(ends_check(&request, err));
    cli->experiment.force = request.force;
    pod_cli_targets targets = {0};
    pod_cli_trace trace = {.trace = NULL};
    pod_emit *emit = NULL;
    pod_status st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    if (st == POD_OK) {
        st = read_ends(&targets.setup[0].slice, &request, err);
    }
    if (st == POD_OK) {
        pod_emit_column shown[NCOLUMNS];
        memcpy(shown, columns, sizeof shown);
        shown[PATTERN].table_hidden = request.patterns.count == 1;
        st = pod_emit_new(cli->common.format, "traffic", shown, NCOLUMNS, &emit, err);
    }
    if (st == POD_OK) {
        st = pod_cli_trace_init(&trace, cli, &targets.setup[0], false, err);
    }
    if (st == POD_OK) {
        st = run(cli, &targets.setup[0], &request, &trace, emit, err);
    }
    if (st == POD_OK) {
        st = pod_cli_trace_write(cli, &trace, err);
    }
    pod_cli_trace_fini(&trace);
    pod_emit_free(emit);
    pod_cli_targets_fini(&targets);
    return st;
}
