/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/chakra_program.h"
#include "fuzz.h"

#include <string.h>

enum { CHIPS = 2, NODES_MAX = 4096 };

static void said(const pod_error *err)
{
    POD_ASSERT(err->text[0] != '\0' && strchr(err->text, '\n') == NULL);
}

/* The same trace on both chips of a slice. */
static void build(const pod_chakra_graph *graph, const pod_chakra_groups *groups)
{
    static const bool open[POD_AXES] = {false, false, false};
    static const pod_chip_spec chip;
    const pod_chakra_graph graphs[CHIPS] = {*graph, *graph};
    pod_slice slice;
    pod_programs programs;
    pod_chakra_told told;
    pod_error err = {0};
    POD_ASSERT(pod_slice_make("v4", 3, (const int32_t[]){CHIPS, 1, 1}, open, false, &slice, &err)
               == POD_OK);
    const pod_chakra_options options = {.slice = &slice, .chip = &chip};
    if (pod_chakra_programs(graphs, groups, &options, &programs, &told, &err) != POD_OK) {
        said(&err);
    }
    pod_programs_fini(&programs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pod_chakra_graph graph;
    pod_chakra_groups groups = {.count = 0};
    pod_error err = {0};
    if (pod_chakra_read("my.0.et", data, size, &groups, &graph, &err) != POD_OK) {
        said(&err);
    } else if (graph.nnodes <= NODES_MAX) {
        build(&graph, &groups);
    }
    pod_chakra_graph_fini(&graph);
    pod_chakra_groups_fini(&groups);
    return 0;
}
