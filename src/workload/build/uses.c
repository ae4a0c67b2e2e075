/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/uses.h"

#include "base/grow.h"
#include "workload/build/product.h"

#include <stdio.h>
#include <stdlib.h>

void pod_build_use_declare(pod_build *build, const pod_array *weight, const char *phase,
                           int32_t layer)
{
    if (build->st != POD_OK) {
        return;
    }
    if (!pod_grow_by_count(&build->uses, build->nuses, sizeof *build->uses)) {
        build->st = pod_fail(build->err, POD_E_NOMEM, "out of memory for uses of weights");
        return;
    }
    build->uses[build->nuses++] =
        (pod_use){.weight = weight, .phase = phase, .layer = layer, .last_op = POD_OP_NONE};
}

/** The dim of a weight that fsdp cuts, or -1. */
static int fsdp_dim(const pod_array *weight)
{
    for (int d = 0; d < 2; d++) {
        const pod_axis_list *cut = &weight->sharding.dim[d].cut;
        if (cut->count > 0 && cut->axis[cut->count - 1] == POD_MESH_FSDP) {
            return d;
        }
    }
    return -1;
}

static void use_gather(pod_build *build, int32_t number)
{
    pod_use *use = &build->uses[number];
    const int dim = fsdp_dim(use->weight);
    const int32_t before = number - 1 - build->ahead;
    char name[POD_BUILD_NAME_MAX];
    if (dim < 0) {
        use->gathered = *use->weight;
        return;
    }
    (void)snprintf(name, sizeof name, "%s.gathered.%d", use->weight->sharding.array,
                   (int)use->layer);
    use->gathered = pod_build_gather(build, use->phase, use->layer, use->weight, dim, name,
                                     before >= 0 ? build->uses[before].last_op : POD_OP_NONE);
}

const pod_array *pod_build_use(pod_build *build)
{
    static const pod_array nothing = {.buffer = POD_OP_NONE, .op = POD_OP_NONE};
    if (build->st != POD_OK) {
        return &nothing;
    }
    POD_ASSERT(build->next_use < build->nuses);
    const int32_t number = build->next_use++;
    while (build->gathered < build->nuses && build->gathered <= number + build->ahead) {
        use_gather(build, build->gathered++);
    }
    return &build->uses[number].gathered;
}
