/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/traffic.h  Private to `podsim traffic`: what its options say.
 *
 *  Threads: one per rank. */
#pragma once

#include "cli/options.h"

#include "sim/traffic.h"

typedef enum pod_cli_links { POD_LINKS_FLUID, POD_LINKS_PACKET, POD_LINKS_COUNT } pod_cli_links;
const char *pod_cli_links_name(pod_cli_links links);
const char *pod_cli_routing_name(pod_traffic_routing routing);

/** Those of --pattern, --routing or --links, in their order. */
typedef struct pod_cli_names {
    int count;
    int index[POD_TRAFFIC_COUNT];
} pod_cli_names;
bool pod_cli_names_have(const pod_cli_names *list, int index);

enum { POD_CLI_LOADS_MAX = 1024 };
typedef struct pod_cli_loads {
    int count;
    double load[POD_CLI_LOADS_MAX];
} pod_cli_loads;

typedef struct pod_cli_traffic {
    pod_cli_names patterns;
    pod_cli_names routings; /**< none: what the links go by */
    pod_cli_names links;
    pod_cli_loads loads; /**< none: a burst */
    pod_cli_sizes sizes;
    int64_t one_size[1];
    const char *goal; /**< a text that says the messages; NULL: a pattern does */
    const char *from_text;
    const char *to_text;
    int64_t measured; /**< cycles; 0 = not said, and so on */
    int64_t flit_bytes;
    int32_t vcs;
    int32_t buffer;
    bool inside; /**< of a program */
    bool force;
} pod_cli_traffic;

enum { POD_CLI_TRAFFIC_OPTIONS = 14 };
extern const pod_cli_option pod_cli_traffic_option[POD_CLI_TRAFFIC_OPTIONS];

/** Options that need each other or exclude each other; what isn't said. Must not move afterwards. POD_E_USAGE. */
pod_status pod_cli_traffic_complete(pod_cli_traffic *request, const pod_cli_common *common,
                                    pod_error *err);
