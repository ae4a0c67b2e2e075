/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of `podsim traffic` say. */
#include "cli/traffic.h"

#include "base/names.h"
#include "base/units.h"
#include "net/packets.h"
#include "sim/traffic_packets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const link_names[POD_LINKS_COUNT] = {"fluid", "packet"};
static const char *const routing_names[] = {
    [POD_ROUTING_MINIMAL] = "minimal", [POD_ROUTING_DIM_ORDER] = "dim_order"};
enum {
    ROUTINGS_COUNT = sizeof routing_names / sizeof *routing_names,
    LOAD_BYTES = 65536,
    MEASURED = 2000
};

const char *pod_cli_links_name(pod_cli_links links)
{
    return link_names[links];
}

const char *pod_cli_routing_name(pod_traffic_routing routing)
{
    return routing_names[routing];
}

/* A name, or several with commas between them, each once. */
static pod_status read_names(const char *text, const char *option, const char *const *names,
                             int nnames, pod_cli_names *list, pod_error *err)
{
    char name[64];
    list->count = 0;
    for (const char *at = text;; at++) {
        const size_t size = strcspn(at, ",");
        int found = 0;
        (void)snprintf(name, sizeof name, "%.*s", (int)size, at);
        while (found < nnames && strcmp(names[found], name) != 0) {
            found++;
        }
        if (found == nnames) {
            return pod_fail_unknown(err, POD_E_USAGE, option, name, names, nnames);
        }
        for (int i = 0; i < list->count; i++) {
            if (list->index[i] == found) {
                return pod_fail(err, POD_E_USAGE, "--%s names %s twice; name it once", option,
                                name);
            }
        }
        list->index[list->count++] = found;
        at += size;
        if (*at == '\0') {
            return POD_OK;
        }
    }
}

static pod_status read_patterns(const char *text, void *field, pod_error *err)
{
    const char *names[POD_TRAFFIC_COUNT];
    for (int i = 0; i < POD_TRAFFIC_COUNT; i++) {
        names[i] = pod_traffic_name((pod_traffic_pattern)i);
    }
    return read_names(text, "pattern", names, POD_TRAFFIC_COUNT, field, err);
}

static pod_status read_routings(const char *text, void *field, pod_error *err)
{
    return read_names(text, "routing", routing_names, ROUTINGS_COUNT, field, err);
}

static pod_status read_links(const char *text, void *field, pod_error *err)
{
    return read_names(text, "links", link_names, POD_LINKS_COUNT, field, err);
}

static pod_status add_load(pod_cli_loads *list, double load, pod_error *err)
{
    if (list->count == POD_CLI_LOADS_MAX) {
        return pod_fail(err, POD_E_RANGE, "--load has more than %d loads; give fewer",
                        POD_CLI_LOADS_MAX);
    }
    list->load[list->count++] = load;
    return POD_OK;
}

/* from:to:step, where the last may be a rounding error beyond `to`. @param text  cut in place */
static pod_status add_loads(pod_cli_loads *list, char *text, pod_error *err)
{
    static const double FINEST = 1e9; /* 0.1 + 2 x 0.1 is 0.3 */
    double value[3] = {0};
    char *part = text;
    for (int i = 0; i < 3; i++) {
        char *next = strchr(part, ':');
        if ((next == NULL) != (i == 2)) {
            return pod_fail(err, POD_E_USAGE, "a range of --load is FROM:TO:STEP, as 0.1:1:0.1");
        }
        if (next != NULL) {
            *next++ = '\0';
        }
        POD_TRY(pod_parse_double(part, "--load", 1e-6, 1, &value[i], err));
        part = next;
    }
    if (value[0] > value[1]) {
        return pod_fail(err, POD_E_USAGE, "--load %g:%g:%g holds no loads; FROM must be at most TO",
                        value[0], value[1], value[2]);
    }
    for (int i = 0; value[0] + i * value[2] <= value[1] + 1 / FINEST; i++) {
        POD_TRY(add_load(list, nearbyint((value[0] + i * value[2]) * FINEST) / FINEST, err));
    }
    return POD_OK;
}

static pod_status read_loads(const char *text, void *field, pod_error *err)
{
    pod_cli_loads *list = field;
    char item[64];
    list->count = 0;
    for (const char *at = text;; at++) {
        const size_t size = strcspn(at, ",");
        double load = 0;
        if (size >= sizeof item) {
            return pod_fail(err, POD_E_USAGE,
                            "--load has an item of %zu characters; give loads as 0.5", size);
        }
        (void)snprintf(item, sizeof item, "%.*s", (int)size, at);
        if (strchr(item, ':') != NULL) {
            POD_TRY(add_loads(list, item, err));
        } else {
            POD_TRY(pod_parse_double(item, "--load", 1e-6, 1, &load, err));
            POD_TRY(add_load(list, load, err));
        }
        at += size;
        if (*at == '\0') {
            return POD_OK;
        }
    }
}

bool pod_cli_names_have(const pod_cli_names *list, int index)
{
    bool found = false;
    for (int i = 0; i < list->count; i++) {
        found = found || list->index[i] == index;
    }
    return found;
}

static pod_status ends_check(const pod_cli_traffic *request, pod_error *err)
{
    const bool ends = request->from_text != NULL || request->to_text != NULL;
    if (!pod_cli_names_have(&request->patterns, POD_TRAFFIC_PAIR)) {
        return ends ? pod_fail(err, POD_E_USAGE,
                               "--from and --to are for --pattern pair; %s has its own pairs",
                               pod_traffic_name((pod_traffic_pattern)request->patterns.index[0]))
                    : POD_OK;
    }
    if (request->patterns.count > 1) {
        return pod_fail(err, POD_E_USAGE, "a pair runs alone; give --pattern pair by itself");
    }
    POD_TRY(pod_cli_require(request->from_text, "--from", "0,0", err));
    return pod_cli_require(request->to_text, "--to", "1,0", err);
}

/* Options that need each other, or exclude each other. */
static pod_status request_check(const pod_cli_traffic *request, const pod_cli_common *common,
                                pod_error *err)
{
    const bool load = request->loads.count > 0;
    const bool packets = pod_cli_names_have(&request->links, POD_LINKS_PACKET);
    const char *lonely = request->vcs > 0          ? "--vcs"
                         : request->buffer > 0     ? "--buffer"
                         : request->flit_bytes > 0 ? "--flit-bytes"
                                                   : NULL;
    POD_TRY(ends_check(request, err));
    if (!load) {
        POD_TRY(pod_cli_require(request->sizes.count > 0 ? "" : NULL, "--bytes", "1MiB", err));
    }
    if (request->measured > 0 && !load) {
        return pod_fail(err, POD_E_USAGE, "--cycles is for open-loop traffic; give --load, too");
    }
    if (lonely != NULL && !packets) {
        return pod_fail(err, POD_E_USAGE, "%s is for packets; give --links packet, too", lonely);
    }
    if (request->flit_bytes > 0 && load) {
        return pod_fail(err, POD_E_USAGE,
                        "with --load a message is one flit, of --bytes; drop --flit-bytes");
    }
    if (packets && pod_cli_names_have(&request->routings, POD_ROUTING_MINIMAL)) {
        return pod_fail(err, POD_E_USAGE,
                        "packets go by --routing dim_order only; give that, or --links fluid");
    }
    if (load && request->inside) {
        return pod_fail(err, POD_E_USAGE, "--load has no launch; drop --launch");
    }
    return common->trace_path != NULL && (load || packets)
               ? pod_fail(err, POD_E_USAGE, "--trace shows a burst over fluid links; drop %s",
                          load ? "--load" : "--links packet")
               : POD_OK;
}

/* What a GOAL text says itself, or has no place for. */
static pod_status goal_check(const pod_cli_traffic *request, const pod_cli_common *common,
                             pod_error *err)
{
    const struct {
        const char *option;
        bool given;
    } others[] = {
        {"--pattern",    request->patterns.count > 0},
        {"--bytes",      request->sizes.count > 0   },
        {"--load",       request->loads.count > 0   },
        {"--links",      request->links.count > 0   },
        {"--routing",    request->routings.count > 0},
        {"--from",       request->from_text != NULL },
        {"--to",         request->to_text != NULL   },
        {"--force",      request->force             },
        {"--cycles",     request->measured > 0      },
        {"--vcs",        request->vcs > 0           },
        {"--buffer",     request->buffer > 0        },
        {"--flit-bytes", request->flit_bytes > 0    },
        {"--plot",       common->plot_path != NULL  },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i].given) {
            return pod_fail(err, POD_E_USAGE, "--goal says all messages; leave %s out",
                            others[i].option);
        }
    }
    return POD_OK;
}

pod_status pod_cli_traffic_complete(pod_cli_traffic *request, const pod_cli_common *common,
                                    pod_error *err)
{
    if (request->goal != NULL) {
        return goal_check(request, common, err);
    }
    POD_TRY(pod_cli_require(request->patterns.count > 0 ? "" : NULL, "--pattern", "uniform", err));
    POD_TRY(request_check(request, common, err));
    if (request->sizes.count == 0) {
        request->one_size[0] = LOAD_BYTES;
        request->sizes = (pod_cli_sizes){.bytes = request->one_size, .count = 1};
    }
    if (request->links.count == 0) {
        request->links = (pod_cli_names){.count = 1, .index = {POD_LINKS_FLUID}};
    }
    request->measured = request->measured > 0 ? request->measured : MEASURED;
    request->flit_bytes = request->flit_bytes > 0 ? request->flit_bytes : POD_TRAFFIC_FLIT_BYTES;
    request->vcs = request->vcs > 0 ? request->vcs : POD_PACKETS_VCS;
    request->buffer = request->buffer > 0 ? request->buffer : POD_PACKETS_BUFFER;
    return POD_OK;
}

#define AT(field) POD_CLI_FIELD(pod_cli_traffic, field)
/* clang-format off */
const pod_cli_option pod_cli_traffic_option[POD_CLI_TRAFFIC_OPTIONS] = {
    {"pattern", 0, POD_CLI_READ, AT(patterns), "NAME,...",
     "pair, neighbor, transpose, tornado, permutation, uniform or hotspot; or several of them",
     .read = read_patterns, .matters = true},
    {"goal", 0, POD_CLI_TEXT, AT(goal), "FILE",
     "instead of a pattern: messages and calculations of a GOAL text (LogGOPSim)"},
    {"bytes", 0, POD_CLI_SIZES, AT(sizes), "LIST",
     "bytes that a chip sends, with --load of a message (there by default 64KiB): 1KiB,64MiB or 1KiB:1GiB:4",
     .matters = true},
    {"load", 0, POD_CLI_READ, AT(loads), "LIST",
     "messages come at random, at so many rates of one link a chip: 0.1,0.5 or 0.1:1:0.1 (from:to:step)",
     .read = read_loads, .matters = true},
    {"links", 0, POD_CLI_READ, AT(links), "NAME,...",
     "fluid: messages share links; packet: flits, virtual channels, credits (default: fluid)",
     .read = read_links, .matters = true},
    {"routing", 0, POD_CLI_READ, AT(routings), "NAME,...",
     "minimal: all shortest paths in equal shares; dim_order: along x, then y, then z (default: minimal; packets: "
     "dim_order)", .read = read_routings, .matters = true},
    {"from", 0, POD_CLI_TEXT, AT(from_text), "X,Y,Z",
     "sender of a pair", .matters = true},
    {"to", 0, POD_CLI_TEXT, AT(to_text), "X,Y,Z",
     "receiver of a pair", .matters = true},
    {"launch", 0, POD_CLI_CHOICE, AT(inside), "host|device",
     "run from the host, as benchmarks do, or inside a program (default: host)"},
    {"force", 0, POD_CLI_FLAG, AT(force), NULL,
     "also where the messages may not fit the machine's memory"},
    {"cycles", 0, POD_CLI_COUNT, AT(measured), "N",
     "--load: cycles measured, after half as many (default: 2000)", .min = 4, .max = 1000000,
     .group = "Packets and load"},
    {"vcs", 0, POD_CLI_COUNT, AT(vcs), "N",
     "packets: virtual channels of an input (default: 8)", .min = 1, .max = POD_PACKETS_VCS_MAX,
     .group = "Packets and load"},
    {"buffer", 0, POD_CLI_COUNT, AT(buffer), "N",
     "packets: flits that a virtual channel holds (default: 8)", .min = 1, .max = POD_PACKETS_BUFFER_MAX,
     .group = "Packets and load"},
    {"flit-bytes", 0, POD_CLI_BYTES, AT(flit_bytes), "SIZE",
     "packets without --load: bytes of a flit (default: 512)", .group = "Packets and load"},
};
/* clang-format on */
#undef AT
