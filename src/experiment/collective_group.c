/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/collective_group.h"

#include <stdio.h>

static void mesh_axes_text(const pod_mesh *mesh, unsigned positions, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < mesh->naxes; i++) {
        if ((positions & (1U << i)) != 0 && used < size) {
            const int wrote = snprintf(text + used, size - used, "%s%s", used > 0 ? "+" : "",
                                       mesh->axis[i].physical);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

static pod_status mesh_group(const pod_experiment_collective_request *request,
                             const pod_slice *slice, pod_group *group, char *axes, pod_error *err)
{
    pod_mesh mesh;
    POD_TRY(pod_mesh_init(&mesh, slice, request->mesh, err));
    mesh_axes_text(&mesh, request->mesh_axes, axes, POD_EXPERIMENT_AXES_MAX);
    const pod_status st = pod_mesh_group_joined(&mesh, slice, request->mesh_axes, group, err);
    pod_mesh_fini(&mesh);
    return st;
}

/* Without axes a group is all chips there are, of all slices. */
static pod_status axes_group(const char *text, const pod_slice *slice, pod_group *group, char *axes,
                             pod_error *err)
{
    const int32_t span = text == NULL ? slice->nslices : 1;
    unsigned mask = (1U << slice->naxes) - 1;
    POD_TRY(text == NULL ? POD_OK : pod_axes_parse(text, slice, &mask, err));
    char letters[8];
    (void)snprintf(axes, POD_EXPERIMENT_AXES_MAX, "%s%s", span > 1 ? "dcn+" : "",
                   pod_axes_name(mask, letters));
    if (span < 2) {
        return pod_group_init_axes(group, slice, mask, err);
    }
    pod_group inside;
    pod_status st = pod_group_init_axes(&inside, slice, mask, err);
    if (st == POD_OK) {
        st = pod_group_init_slices(group, &inside, slice->nslices, NULL, span, err);
        pod_group_fini(&inside);
    }
    return st;
}

pod_status pod_experiment_collective_group(const pod_experiment_collective_request *request,
                                           const pod_slice *slice, pod_group *group,
                                           char axes[POD_EXPERIMENT_AXES_MAX], pod_error *err)
{
    return request->mesh != NULL ? mesh_group(request, slice, group, axes, err)
                                 : axes_group(request->axes, slice, group, axes, err);
}

pod_status pod_experiment_collective_mesh_order(const pod_experiment_collective_request *request,
                                                const pod_slice *slice, const pod_group *group,
                                                int32_t *index_of_rank, pod_error *err)
{
    pod_mesh mesh;
    POD_TRY(pod_mesh_init(&mesh, slice, request->mesh, err));
    pod_group inside = {0};
    const pod_status st =
        pod_mesh_group(&mesh, slice, request->mesh_axes, &inside, index_of_rank, err);
    for (int32_t rank = inside.size; st == POD_OK && rank < group->size; rank++) {
        index_of_rank[rank] = index_of_rank[rank - inside.size] + inside.size;
    }
    pod_group_fini(&inside);
    pod_mesh_fini(&mesh);
    return st;
}
