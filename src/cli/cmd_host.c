/* SPDX-License-Identifier: Apache-2.0 */
/* podsim host: this machine, and how chips are placed on ranks. The only output that depends on where
 * it runs. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/target.h"

#include "base/units.h"
#include "engine/placement.h"

#include <stdlib.h>

static const char about[] =
    "What hwloc sees of this machine; with --slice, which chips each rank holds; and mpirun lines\n"
    "that suit both. Chips go to ranks in contiguous blocks, ranks in the order of nodes, sockets\n"
    "and cores, so that neighbours share a socket.\n";

/* One key and value a row, as a slice file has them. */
static void add_text(pod_emit *emit, const char *key, const char *value)
{
    pod_emit_text(emit, key);
    pod_emit_text(emit, value);
}

static void add_i64(pod_emit *emit, const char *key, int64_t value)
{
    char text[POD_FORMAT_MAX];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    add_text(emit, key, text);
}

static void add_facts(pod_emit *emit, const pod_cli *cli, const pod_host_facts *facts)
{
    char memory[POD_FORMAT_MAX];
    add_text(emit, "machine", facts->machine[0] != '\0' ? facts->machine : "unknown");
    add_i64(emit, "nodes", facts->nodes);
    add_i64(emit, "packages", facts->packages);
    add_i64(emit, "numa_nodes", facts->numa_nodes);
    add_i64(emit, "cores", facts->cores);
    add_i64(emit, "threads", facts->threads);
    add_text(emit, "memory", pod_format_bytes(facts->memory_bytes, memory, sizeof memory));
    add_i64(emit, "ranks", pod_par_size(cli->par));
    add_text(emit, "oversubscribed", pod_par_oversubscribed(cli->par) ? "yes" : "no");
}

/* Chips are numbered x fastest. */
static pod_status add_placement(pod_emit *emit, const pod_cli *cli, const pod_slice *slice,
                                pod_error *err)
{
    const int ranks = pod_par_size(cli->par);
    const int32_t chips = slice->nchips * slice->nslices;
    int32_t *first = malloc(((size_t)ranks + 1) * sizeof *first);
    if (first == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the placement");
    }
    pod_placement_blocks(chips, ranks, first);
    for (int rank = 0; rank < ranks; rank++) {
        char key[48];
        char value[64];
        (void)snprintf(key, sizeof key, "rank_%d", rank);
        (void)snprintf(value, sizeof value, "chips %d to %d", first[rank], first[rank + 1] - 1);
        add_text(emit, key, value);
    }
    free(first);
    return POD_OK;
}

/* At most one rank per core is quickest, one per chip is the picture. */
static void add_suggestion(pod_emit *emit, const pod_slice *slice, const pod_host_facts *facts)
{
    const char *name = slice != NULL ? slice->name : "v5p:4x4x4";
    const int64_t chips = slice != NULL ? (int64_t)slice->nchips * slice->nslices : 64;
    const int64_t cores = (int64_t)facts->cores * facts->nodes;
    const int64_t ranks = cores < chips ? cores : chips;
    char text[256];
    (void)snprintf(text, sizeof text,
                   "mpirun -n %lld --map-by core --bind-to core podsim collective --slice %s --op "
                   "all-reduce --bytes 1MiB",
                   (long long)(ranks > 0 ? ranks : 1), name);
    add_text(emit, "one_rank_per_core", text);
    (void)snprintf(
        text, sizeof text,
        "mpirun -n %lld --oversubscribe --bind-to none podsim collective --slice %s --op "
        "all-reduce --bytes 1MiB",
        (long long)chips, name);
    add_text(emit, "one_rank_per_chip", text);
}

pod_status pod_cmd_host(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    static const pod_emit_column columns[] = {{.name = "key"}, {.name = "value"}};
    const pod_cli_usage usage = {
        .synopsis = "[--slice SPEC]",
        .examples = "\n"
                    "--slice v5p:4x4x4\n"
                    "--format json\n",
        .about = about,
        .groups = POD_CLI_SLICE,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    pod_host_facts facts;
    pod_cli_targets targets = {0};
    pod_emit *emit = NULL;
    st = pod_host_facts_get(cli->par, &facts, err);
    if (st == POD_OK && cli->common.slices.count > 0) {
        st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    }
    POD_THEN(st, pod_emit_new(cli->common.format, "host", columns, 2, &emit, err));
    if (st == POD_OK) {
        add_facts(emit, cli, &facts);
    }
    const pod_slice *slice = targets.count > 0 ? &targets.setup[0].slice : NULL;
    if (st == POD_OK && slice != NULL) {
        st = add_placement(emit, cli, slice, err);
    }
    if (st == POD_OK) {
        add_suggestion(emit, slice, &facts);
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    pod_cli_targets_fini(&targets);
    return st;
}
