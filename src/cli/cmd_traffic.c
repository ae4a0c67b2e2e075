/* SPDX-License-Identifier: Apache-2.0 */
/* podsim traffic: point-to-point patterns. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/plot.h"
#include "cli/target.h"
#include "cli/trace.h"
#include "cli/traffic.h"
#include "cli/traffic_goal.h"

#include "base/units.h"
#include "net/packets.h"
#include "report/collective_trace.h"
#include "sim/run_watch.h"
#include "sim/traffic_packets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How rows differ, the last fastest. */
typedef enum dimension { SLICES, PATTERNS, ROUTINGS, LINKS, SIZES, LOADS, DIMENSIONS } dimension;

typedef struct traffic_row {
    const char *slice;
    const char *pattern;
    int64_t bytes;
    pod_traffic_result result;
    char busiest[48]; /* "0,0,0:+x" */
    double rate_GBps;
    const char *routing;
    const char *links;
    double load;
    pod_traffic_load_result loaded;
    double latency_us;
    const char *status;
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
    {.name = "routing", AT(routing)},
    {.name = "links", AT(links)},
    {.name = "load", .decimals = 4, AT(load)},
    {.name = "accepted", .decimals = 4, AT(loaded.accepted)},
    {.name = "latency_us", .title = "latency", .unit = "us", .decimals = 3, AT(latency_us)},
    {.name = "latency_cycles", .title = "latency", .unit = "cycles", .decimals = 2, AT(loaded.latency_cycles)},
    {.name = "max_latency_us", .title = "longest", .unit = "us", .decimals = 3,
     POD_TIME_FIELD(traffic_row, loaded.max_latency_ps, US)},
    {.name = "status", AT(status)},
};
/* clang-format on */
#undef AT
enum {
    SLICE_COLUMN,
    PATTERN_COLUMN,
    SIZE_COLUMN,
    TIME_COLUMN,
    FIRST_BYTE_COLUMN,
    MAX_BYTES_COLUMN = 6,
    ROUTING_COLUMN = 9,
    LINKS_COLUMN,
    LOAD_COLUMN,
    NCOLUMNS = sizeof columns / sizeof columns[0],
    MANY_MESSAGES = 1000000,
    ROWS_MAX = 100000
};

static const char about[] =
    "Patterns: pair (--from to --to), neighbor (each chip to all its neighbours), transpose\n"
    "(x,y,z) to (y,z,x), tornado (ceil(k/2) - 1 ahead along each axis), permutation (random,\n"
    "--seed), uniform (each to all others), hotspot (all to chip 0). All chips send at once.\n"
    "Columns: bytes = what one chip sends in all; time_us = until the last message is there;\n"
    "first_byte_us = launch and hops of the farthest message; mean_hops over messages;\n"
    "busiest_link = chip:direction; throughput = bytes a sending chip gets out per second.\n"
    "--load: messages of --bytes come at random, at so many rates of one link a chip, whether or "
    "not\n"
    "links keep up; accepted = what arrives, latency = from when a message comes to its last "
    "byte,\n"
    "a cycle = a message's time on a link, time_us = until all are there; saturated = accepts 5 %\n"
    "less than comes. --links packet: routers with virtual channels, flit by flit, up to 512 "
    "chips.\n";

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

/* ---- rows ---- */

/* Those that the options ask for. */
static int columns_count(const pod_cli_traffic *request)
{
    const bool packets =
        pod_cli_names_have(&request->links, POD_LINKS_PACKET) || request->links.count > 1;
    return request->loads.count > 0                 ? NCOLUMNS
           : request->routings.count > 0 || packets ? LOAD_COLUMN
                                                    : ROUTING_COLUMN;
}

typedef struct traffic_run {
    pod_cli *cli;
    const pod_cli_traffic *request;
    const pod_cli_targets *targets;
    int sizes[DIMENSIONS]; /* of each dimension */
    int count;             /* rows */
    pod_emit *emit;
    pod_findings findings;
    pod_cli_trace trace;
    pod_run_watch watch;
    pod_collective_trace timeline;
    pod_cli_plot plot;
    /* rows over packets that have been simulated, ahead[nahead], the first of them row
     * first_ahead */
    traffic_row *ahead;
    int first_ahead;
    int nahead;
    int32_t ends[2];  /* of a pair */
    traffic_row most; /* of a curve so far: it accepts most */
    bool saturated;   /* some row of it is */
} traffic_run;

/* What a row is about: it has traffic, for traffic_case_fini. */
typedef struct traffic_case {
    const pod_experiment_setup *setup;
    pod_traffic traffic;
    pod_traffic_load load; /* of load 0: a burst */
    pod_cli_links links;
} traffic_case;

/* Which of a dimension a row is. */
static int place(const traffic_run *run, int row, dimension which)
{
    for (int d = DIMENSIONS - 1; d > (int)which; d--) {
        row /= run->sizes[d];
    }
    return row % run->sizes[which];
}

static bool is_packet(const traffic_run *run, int row)
{
    return run->request->links.index[place(run, row, LINKS)] == POD_LINKS_PACKET;
}

static pod_status case_init(const traffic_run *run, int row, traffic_case *c, pod_error *err)
{
    const pod_cli_traffic *request = run->request;
    const pod_traffic_pattern pattern =
        (pod_traffic_pattern)request->patterns.index[place(run, row, PATTERNS)];
    const int64_t bytes = request->sizes.bytes[place(run, row, SIZES)];
    *c = (traffic_case){.setup = &run->targets->setup[place(run, row, SLICES)],
                        .links = is_packet(run, row) ? POD_LINKS_PACKET : POD_LINKS_FLUID};
    const pod_slice *slice = &c->setup->slice;
    int32_t ends[2] = {0, 0};
    if (pattern == POD_TRAFFIC_PAIR) {
        POD_TRY(pod_slice_chip_parse(slice, request->from_text, "--from", &ends[0], err));
        POD_TRY(pod_slice_chip_parse(slice, request->to_text, "--to", &ends[1], err));
    }
    POD_TRY(
        pod_experiment_bytes_check(c->setup, c->setup->chip.link_oneway_bytes_per_s, bytes, err));
    POD_TRY(pod_traffic_init(&c->traffic, slice, pattern, bytes, ends[0], ends[1],
                             run->cli->experiment.seed, err));
    c->traffic.routing =
        c->links == POD_LINKS_PACKET ? POD_ROUTING_DIM_ORDER
        : request->routings.count > 0
            ? (pod_traffic_routing)request->routings.index[place(run, row, ROUTINGS)]
            : POD_ROUTING_MINIMAL;
    c->load = (pod_traffic_load){
        .traffic = &c->traffic,
        .load = request->loads.count > 0 ? request->loads.load[place(run, row, LOADS)] : 0,
        .measured = request->measured,
        .seed = run->cli->experiment.seed};
    return POD_OK;
}

static pod_traffic_packets packets_of(const traffic_run *run, const traffic_case *c)
{
    const int64_t bytes = c->traffic.bytes;
    const int64_t flit = run->request->flit_bytes;
    return (pod_traffic_packets){.link_rate = pod_rate_make(c->setup->chip.link_oneway_bytes_per_s),
                                 .launch_ps =
                                     pod_chip_launch_ps(&c->setup->chip, run->request->inside),
                                 .flit_bytes = bytes < flit && bytes > 0 ? bytes : flit,
                                 .vcs = run->request->vcs,
                                 .buffer = run->request->buffer};
}

static const char *load_status(const pod_traffic_load *load, const pod_traffic_load_result *result)
{
    static const double SATURATED = 0.95;
    int64_t senders = 0;
    for (int32_t chip = 0; chip < load->traffic->slice->nchips; chip++) {
        senders += pod_traffic_messages(load->traffic, chip) > 0 ? 1 : 0;
    }
    const double offered =
        senders > 0 ? (double)result->messages / ((double)senders * (double)load->measured) : 0;
    return result->accepted < SATURATED * offered ? "saturated" : "ok";
}

/* The figures of a row, but for which one it is. */
static void row_fill(traffic_row *row, const traffic_case *c)
{
    const bool load = c->load.load > 0;
    if (load) {
        const double rate = c->setup->chip.link_oneway_bytes_per_s;
        row->result = (pod_traffic_result){.time_ps = row->loaded.end_ps,
                                           .first_byte_ps = INT64_MIN,
                                           .messages = row->loaded.messages,
                                           .mean_hops = row->loaded.mean_hops,
                                           .links = row->loaded.links};
        row->rate_GBps = row->loaded.accepted * rate / 1e9;
        row->latency_us = row->loaded.latency_ps / (double)POD_PS_PER_US;
    } else {
        const double time_s = pod_time_to_s(row->result.time_ps);
        const bool moved = row->result.links.total_bytes > 0;
        row->rate_GBps = moved && time_s > 0 ? (double)c->traffic.bytes / time_s / 1e9 : 0;
    }
    row->load = c->load.load;
    row->bytes = c->traffic.bytes;
    if (row->result.links.busiest_chip >= 0) {
        (void)link_text(&c->setup->slice, &row->result.links, row->busiest, sizeof row->busiest);
    }
}

/* What is borrowed by a row. */
static void row_name(traffic_row *row, const traffic_case *c)
{
    row->slice = c->setup->slice.name;
    row->pattern = pod_traffic_name(c->traffic.pattern);
    row->routing = pod_cli_routing_name(c->traffic.routing);
    row->links = pod_cli_links_name(c->links);
    row->status = c->load.load > 0 ? load_status(&c->load, &row->loaded) : NULL;
}

/* A run of very many messages says so first, and one that may not fit the machine's memory is refused. */
static pod_status check_room(const pod_cli *cli, const pod_machine *machine, const traffic_case *c,
                             pod_error *err)
{
    const pod_traffic *traffic = &c->traffic;
    pod_traffic_need need;
    if (c->load.load > 0) {
        pod_traffic_load_need_get(machine, &c->load, &need);
    } else {
        pod_traffic_need_get(machine, traffic, &need);
    }
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
    const bool squared = traffic->pattern == POD_TRAFFIC_UNIFORM && c->load.load == 0;
    (void)snprintf(remedy, sizeof remedy, "use a slice of %d chips or fewer",
                   (int)((squared ? sqrt(smaller) : smaller) * traffic->slice->nchips));
    return pod_experiment_room_fail(what, needed, room, remedy, err);
}

/* Over fluid links. Collective. */
static pod_status fluid_run(traffic_run *run, traffic_case *c, traffic_row *row, pod_error *err)
{
    pod_cli *cli = run->cli;
    const pod_experiment_setup *setup = c->setup;
    const pod_time_ps launch_ps =
        c->load.load > 0 ? 0 : pod_chip_launch_ps(&setup->chip, run->request->inside);
    const pod_machine machine = pod_experiment_machine(
        &cli->experiment, setup, setup->chip.link_oneway_bytes_per_s, launch_ps);
    POD_TRY(check_room(cli, &machine, c, err));
    pod_status st =
        c->load.load > 0
            ? pod_traffic_load_run(&machine, &c->load, &row->loaded, err)
            : pod_traffic_run(&machine, &c->traffic,
                              run->timeline.trace != NULL ? &run->watch : NULL, &row->result, err);
    if (st == POD_OK && c->load.load == 0) {
        explain(cli, &machine, &c->traffic, &row->result);
    }
    return st;
}

/* Packets are simulated by one rank: a row each, of those that come next. Collective. */
static pod_status packets_run(traffic_run *run, int first, pod_error *err)
{
    pod_par *par = run->cli->par;
    pod_status st = POD_OK;
    run->first_ahead = first;
    run->nahead = 0;
    while (run->nahead < pod_par_size(par) && first + run->nahead < run->count
           && is_packet(run, first + run->nahead)) {
        run->nahead++;
    }
    const int own = pod_par_rank(par);
    if (own < run->nahead) {
        traffic_case c;
        traffic_row *row = &run->ahead[own];
        *row = (traffic_row){.slice = NULL};
        st = case_init(run, first + own, &c, err);
        const pod_traffic_packets how = packets_of(run, &c);
        if (st == POD_OK && c.load.load > 0) {
            st = pod_traffic_packets_load(&how, &c.load, &row->loaded, err);
        } else if (st == POD_OK) {
            st = pod_traffic_packets_run(&how, &c.traffic, &row->result, err);
        }
        pod_traffic_fini(&c.traffic);
    }
    st = pod_par_agree(par, st, err);
    POD_THEN(st, pod_experiment_share(par, run->ahead, run->nahead, sizeof *run->ahead, NULL, err));
    return st;
}

/* The messages of a size into the timeline. Without --trace-chips of a pair its two ends, else chip 0. */
static pod_status trace_row(traffic_run *run, const traffic_row *row, pod_error *err)
{
    char size[POD_FORMAT_MAX];
    char title[96];
    pod_status st = POD_OK;
    if (run->timeline.trace == NULL) {
        return POD_OK;
    }
    if (pod_par_rank(run->cli->par) == 0) {
        (void)snprintf(title, sizeof title, "%s %s", row->pattern,
                       pod_format_bytes(row->bytes, size, sizeof size));
        st = pod_collective_trace_add(&run->timeline, &run->watch, title, row->result.time_ps, err);
    }
    return pod_par_agree(run->cli->par, st, err);
}

/* A point of its curve: of all that is said but size or load. */
static pod_status plot_row(traffic_run *run, const traffic_row *row, pod_error *err)
{
    const bool load = row->load > 0;
    pod_plot_collective_row point = {.bytes = load ? row->load : (double)row->bytes,
                                     .time_us = load ? row->latency_us
                                                     : pod_time_to_us(row->result.time_ps),
                                     .busbw_GBps = row->rate_GBps};
    char size[POD_FORMAT_MAX] = "";
    if (load && run->sizes[SIZES] > 1) {
        (void)pod_format_bytes(row->bytes, size, sizeof size);
    }
    (void)snprintf(point.series, sizeof point.series, "%s %s %s %s %s", row->slice, row->pattern,
                   row->routing, row->links, size);
    return pod_cli_plot_collective(&run->plot, run->cli, &point, err);
}

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const traffic_run *run = figures;
    char title[96];
    (void)snprintf(title, sizeof title, "traffic, rates %s",
                   pod_rates_name(run->cli->common.rates));
    return pod_plot_traffic(plot, title, run->request->loads.count > 0, run->plot.collectives,
                            run->plot.count, err);
}

/* What a curve of open-loop traffic comes to, at its last row. */
static void saturation_say(traffic_run *run, int number, const traffic_row *row)
{
    if (place(run, number, LOADS) == 0) {
        run->most = (traffic_row){.load = 0};
        run->saturated = false;
    }
    if (row->loaded.accepted > run->most.loaded.accepted) {
        run->most = *row;
    }
    run->saturated = run->saturated || strcmp(row->status, "saturated") == 0;
    if (place(run, number, LOADS) == run->sizes[LOADS] - 1 && run->saturated) {
        char size[POD_FORMAT_MAX];
        pod_findings_say(&run->findings, POD_FINDING_BELOW, "saturation",
                         "%s, %s, %s, %s links, %s: accepts at most %.4f of a link's rate, at load "
                         "%g",
                         row->slice, row->pattern, row->routing, row->links,
                         pod_format_bytes(row->bytes, size, sizeof size), run->most.loaded.accepted,
                         run->most.load);
    }
}

/* What --explain says of rows whose messages come at random, or go as packets. */
static void row_explain(const traffic_run *run, const traffic_case *c, const traffic_row *row)
{
    const bool packets = c->links == POD_LINKS_PACKET;
    const pod_traffic_load_result *loaded = &row->loaded;
    if (row->load > 0) {
        pod_cli_explain(run->cli,
                        "%s, load %g, %s links: %lld messages, %lld of them measured; a cycle = "
                        "%lld bytes / %g "
                        "GB/s = %g us; accepted = arrived / (senders x %lld cycles) = %.9g",
                        row->pattern, row->load, row->links, (long long)loaded->begun,
                        (long long)loaded->messages, (long long)row->bytes,
                        c->setup->chip.link_oneway_bytes_per_s / 1e9,
                        pod_time_to_us(loaded->cycle_ps), (long long)c->load.measured,
                        loaded->accepted);
    } else if (packets) {
        pod_cli_explain(run->cli,
                        "%s, %lld bytes a chip: %lld messages, %lld flits at a hop; a packet alone "
                        "takes %d (hops + "
                        "1) + %d cycles",
                        row->pattern, (long long)row->bytes, (long long)row->result.messages,
                        (long long)row->result.links.hops, POD_PACKETS_HOP_CYCLES,
                        POD_PACKETS_END_CYCLES);
    }
}

static pod_status run_row(traffic_run *run, int number, pod_error *err)
{
    traffic_case c;
    traffic_row row = {.slice = NULL};
    pod_status st = pod_par_agree(run->cli->par, case_init(run, number, &c, err), err);
    if (st == POD_OK && c.links == POD_LINKS_PACKET) {
        if (number >= run->first_ahead + run->nahead) {
            st = packets_run(run, number, err);
        }
        row = run->ahead[number - run->first_ahead];
    } else if (st == POD_OK) {
        st = fluid_run(run, &c, &row, err);
    }
    if (st == POD_OK) {
        row_fill(&row, &c);
        row_name(&row, &c);
        row_explain(run, &c, &row);
        pod_emit_fields(run->emit, &row, columns_count(run->request));
        pod_cli_rows_next(run->cli, run->emit);
        if (row.load > 0) {
            saturation_say(run, number, &row);
        }
        st = trace_row(run, &row, err);
    }
    POD_THEN(st, plot_row(run, &row, err));
    pod_run_watch_fini(&run->watch);
    pod_traffic_fini(&c.traffic);
    return st;
}

static pod_status rows_count(traffic_run *run, pod_error *err)
{
    const pod_cli_traffic *request = run->request;
    const int sizes[DIMENSIONS] = {run->targets->count,
                                   request->patterns.count,
                                   request->routings.count > 0 ? request->routings.count : 1,
                                   request->links.count,
                                   request->sizes.count,
                                   request->loads.count > 0 ? request->loads.count : 1};
    int64_t count = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        run->sizes[d] = sizes[d];
        count *= sizes[d];
        if (count > ROWS_MAX) {
            return pod_fail(err, POD_E_RANGE, "these lists ask for more than %d rows; give fewer",
                            ROWS_MAX);
        }
    }
    run->count = (int)count;
    return POD_OK;
}

/* ---- the table ---- */

static void add_headings(traffic_run *run)
{
    const pod_cli_traffic *request = run->request;
    pod_findings *findings = &run->findings;
    for (int i = 0; i < run->targets->count; i++) {
        const pod_experiment_setup *setup = &run->targets->setup[i];
        pod_findings_say(findings, POD_FINDING_ABOVE, "settings",
                         "podsim traffic: %s, %d chip%s, %s", setup->slice.name,
                         setup->slice.nchips, pod_text_plural(setup->slice.nchips),
                         request->patterns.count > 1
                             ? "several patterns"
                             : pod_traffic_name((pod_traffic_pattern)request->patterns.index[0]));
        pod_findings_say(findings, POD_FINDING_ABOVE, "rates",
                         "rates %s: link %g GB/s one way, hop %g us, launch %g us",
                         pod_rates_name(run->cli->common.rates),
                         setup->chip.link_oneway_bytes_per_s / 1e9,
                         pod_time_to_us(setup->chip.hop_latency_ps),
                         request->loads.count > 0
                             ? 0
                             : pod_time_to_us(pod_chip_launch_ps(&setup->chip, request->inside)));
    }
    if (request->loads.count > 0) {
        pod_findings_say(findings, POD_FINDING_ABOVE, "load",
                         "load 1 = the rate of a link; a cycle = a message on a link; %lld cycles "
                         "measured after %lld",
                         (long long)request->measured, (long long)request->measured / 2);
    }
    if (pod_cli_names_have(&request->links, POD_LINKS_PACKET)) {
        pod_findings_say(findings, POD_FINDING_ABOVE, "packets",
                         "packets: %d virtual channels of %d flits, %d cycles a hop", request->vcs,
                         request->buffer, POD_PACKETS_HOP_CYCLES);
    }
}

/* Rows as wide as most that will come. */
static void add_samples(traffic_run *run)
{
    static const double MOST_US = 1e6;
    for (int i = 0; i < run->count; i++) {
        traffic_case c;
        if (case_init(run, i, &c, NULL) != POD_OK) {
            continue;
        }
        const pod_chip_spec *chip = &c.setup->chip;
        const double moved_us = 8 * (double)c.traffic.bytes / chip->link_oneway_bytes_per_s * 1e6;
        traffic_row row = {.rate_GBps = 999, .latency_us = 999, .load = c.load.load};
        row.result = (pod_traffic_result){
            .time_ps = (pod_time_ps)(fmin(moved_us + 999, MOST_US) * (double)POD_PS_PER_US),
            .first_byte_ps = 99 * POD_PS_PER_US,
            .mean_hops = 9};
        row.result.links.max_bytes = 4 * c.traffic.bytes;
        row.loaded.accepted = 1;
        row.loaded.latency_cycles = 9999;
        row.loaded.max_latency_ps = 9999 * POD_PS_PER_US;
        row.bytes = c.traffic.bytes;
        (void)snprintf(row.busiest, sizeof row.busiest, "%s",
                       c.setup->slice.naxes > 2 ? "0,0,0:+x" : "0,0:+x");
        row_name(&row, &c);
        row.status = c.load.load > 0 ? "saturated" : NULL;
        pod_emit_fields(run->emit, &row, columns_count(run->request));
        pod_traffic_fini(&c.traffic);
    }
}

static pod_status table_new(traffic_run *run, pod_error *err)
{
    const pod_cli_traffic *request = run->request;
    const bool load = request->loads.count > 0;
    pod_emit_column shown[NCOLUMNS];
    memcpy(shown, columns, sizeof shown);
    shown[SLICE_COLUMN].table_hidden = run->targets->count == 1;
    shown[PATTERN_COLUMN].table_hidden = request->patterns.count == 1;
    shown[ROUTING_COLUMN].table_hidden = request->routings.count < 2;
    shown[LINKS_COLUMN].table_hidden = request->links.count == 1;
    shown[SIZE_COLUMN].table_hidden = load && request->sizes.count == 1;
    shown[TIME_COLUMN].table_hidden = load;
    shown[FIRST_BYTE_COLUMN].table_hidden = load;
    shown[MAX_BYTES_COLUMN].table_hidden = load;
    return pod_emit_new(run->cli->common.format, "traffic", shown, columns_count(request),
                        &run->emit, err);
}

/* All rows can be asked for, before the first comes. */
static pod_status rows_check(const traffic_run *run, pod_error *err)
{
    for (int i = 0; i < run->targets->count; i++) {
        const pod_slice *slice = &run->targets->setup[i].slice;
        if (slice->nslices > 1) {
            return pod_fail(err, POD_E_INVALID,
                            "traffic runs inside one slice, and %s is %d; give one of them",
                            slice->name, slice->nslices);
        }
    }
    for (int i = 0; i < run->count; i++) {
        traffic_case c;
        POD_TRY(case_init(run, i, &c, err));
        const pod_traffic_packets how = packets_of(run, &c);
        pod_status st = POD_OK;
        if (c.load.load > 0 && c.traffic.bytes == 0) {
            st = pod_fail(err, POD_E_USAGE,
                          "--load needs messages of at least 1 byte; give --bytes 64KiB");
        } else if (c.links == POD_LINKS_PACKET) {
            st = pod_traffic_packets_check(&how, &c.traffic, c.load.load, err);
        }
        pod_traffic_fini(&c.traffic);
        POD_TRY(st);
    }
    return POD_OK;
}

static pod_status run_rows(traffic_run *run, pod_error *err)
{
    const pod_cli_traffic *request = run->request;
    const int32_t ends_count = request->patterns.index[0] == POD_TRAFFIC_PAIR ? 2 : 1;
    pod_status st = rows_check(run, err);
    if (st == POD_OK && run->cli->common.trace_path != NULL && run->targets->count > 1) {
        st = pod_fail(err, POD_E_USAGE, "--trace shows one --slice; here are %d",
                      run->targets->count);
    }
    POD_THEN(st, table_new(run, err));
    POD_THEN(st, pod_cli_trace_init(&run->trace, run->cli, &run->targets->setup[0], false, err));
    run->ahead = calloc((size_t)pod_par_size(run->cli->par), sizeof *run->ahead);
    if (st == POD_OK && run->ahead == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for rows");
    }
    st = pod_par_agree(run->cli->par, st, err);
    if (st != POD_OK) {
        return st;
    }
    run->watch =
        (pod_run_watch){.nchips = run->trace.watch.nchips, .chips = run->trace.watch.chips};
    if (run->watch.nchips == 0) {
        traffic_case c;
        if (case_init(run, 0, &c, NULL) == POD_OK && ends_count == 2) {
            run->ends[0] = c.traffic.from;
            run->ends[1] = c.traffic.to;
        }
        pod_traffic_fini(&c.traffic);
        run->watch.nchips = ends_count;
        run->watch.chips = run->ends;
    }
    pod_collective_trace_init(&run->timeline, run->trace.trace, &run->targets->setup[0].slice);
    add_headings(run);
    if (pod_cli_rows_come(run->cli)) {
        add_samples(run);
    }
    pod_cli_rows_begin(run->cli, run->emit, &run->findings);
    for (int i = 0; i < run->count && st == POD_OK; i++) {
        st = run_row(run, i, err);
    }
    pod_collective_trace_fini(&run->timeline);
    pod_experiment_progress_end(&run->cli->experiment);
    POD_THEN(st, pod_cli_report(run->cli, run->emit, &run->findings, err));
    POD_THEN(st, pod_cli_trace_write(run->cli, &run->trace, err));
    POD_THEN(st, pod_cli_plot_write(run->cli, add_plot, run, err));
    return st;
}

pod_status pod_cmd_traffic(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_cli_traffic request = {.inside = false};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --pattern NAME --bytes LIST|--load LIST",
        .examples =
            "--slice v5e:8x8 --pattern transpose --bytes 1MiB\n"
            "--slice v5e:4x4 --pattern pair --from 0,0 --to 3,3 --bytes 16MiB\n"
            "--slice v5e:8x8 --pattern uniform,tornado --load 0.1:1:0.1 --links fluid,packet\n",
        .about = about,
        .groups = POD_CLI_SLICES | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_RATES | POD_CLI_SEED
                  | POD_CLI_EXPLAIN | POD_CLI_TRACE | POD_CLI_PLOT | POD_CLI_HTML,
        .options = pod_cli_traffic_option,
        .noptions = POD_CLI_TRAFFIC_OPTIONS,
        .fields = &request,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    POD_TRY(pod_cli_traffic_complete(&request, &cli->common, err));
    if (request.goal != NULL) {
        return pod_cli_traffic_goal(cli, request.goal, request.inside, err);
    }
    cli->experiment.force = request.force;
    pod_cli_targets targets = {0};
    traffic_run run = {.cli = cli, .request = &request, .targets = &targets};
    pod_status st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    if (st == POD_OK) {
        st = rows_count(&run, err);
    }
    if (st == POD_OK) {
        st = run_rows(&run, err);
    }
    pod_cli_trace_fini(&run.trace);
    pod_cli_plot_fini(&run.plot);
    pod_findings_fini(&run.findings);
    pod_emit_free(run.emit);
    free(run.ahead);
    pod_cli_targets_fini(&targets);
    return st;
}
