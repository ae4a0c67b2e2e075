/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/uses.h"

#include "base/grow.h"
#include "workload/build/product.h"

#include <stdio.h>
#include <stdlib.h>

void pod_build_use_declare(pod_build *build, void *weight, const char *phase, int32_t layer)
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

/** Gather an array over fsdp once use number - 1 - ahead is over. */
static void array_gather(pod_build *build, int32_t number)
{
    pod_use *use = &build->uses[number];
    const pod_array *weight = use->weight;
    const int dim = fsdp_dim(weight);
    const int32_t before = number - 1 - build->ahead;
    char name[POD_BUILD_NAME_MAX];
    if (dim < 0) {
        use->gathered = *weight;
        return;
    }
    (void)snprintf(name, sizeof name, "%s.gathered.%d", weight->sharding.array, (int)use->layer);
    use->gathered = pod_build_gather(build, use->phase, use->layer, weight, dim, name,
                                     before >= 0 ? build->uses[before].last_op : POD_OP_NONE);
}

void pod_build_use_ahead(pod_build *build, int32_t ahead)
{
    const bool recomputes = build->program->recomputes;
    build->program->recomputes = false; /* what a use waits for isn't computed again */
    while (build->st == POD_OK && build->gathered < build->nuses
           && build->gathered < build->next_use + ahead) {
        const int32_t number = build->gathered++;
        if (build->gather != NULL) {
            build->gather(build->gather_context, &build->uses[number]);
        } else {
            array_gather(build, number);
        }
    }
    build->program->recomputes = recomputes;
}

const pod_use *pod_build_use_begin(pod_build *build)
{
    static const pod_use nothing = {
        .gathered = {.buffer = POD_OP_NONE, .op = POD_OP_NONE}
    };
    if (build->st != POD_OK) {
        return &nothing;
    }
    POD_ASSERT(build->next_use < build->nuses);
    const int32_t number = build->next_use++;
    pod_build_use_ahead(build, build->ahead);
    return &build->uses[number];
}

const pod_array *pod_build_use(pod_build *build)
{
    return &pod_build_use_begin(build)->gathered;
}
