/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of a collective: physical axes, or axes of a mesh; inside a slice, or over several. */
#include "cli/collective.h"

#include "mesh/device_mesh.h"

#include <stdlib.h>
#include <string.h>

static pod_status mesh_axes(const pod_mesh *mesh, const char *text, unsigned *axes, pod_error *err)
{
    pod_mesh_axis axis;
    *axes = 0;
    for (const char *name = text;; name++) {
        const size_t length = strcspn(name, ",");
        const pod_status st = pod_mesh_axis_parse(name, length, &axis, err);
        if (st != POD_OK) {
            return st;
        }
        const int index = pod_mesh_find(mesh, axis);
        if (index < 0) {
            return pod_fail(err, POD_E_USAGE, "--axis %s is not an axis of --mesh; name one of it",
                            pod_mesh_axis_name(axis));
        }
        *axes |= 1U << index;
        name += length;
        if (*name == '\0') {
            return POD_OK;
        }
    }
}

static void mesh_axes_text(const pod_mesh *mesh, unsigned axes, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < mesh->naxes; i++) {
        if ((axes & (1U << i)) != 0 && used < size) {
            const int wrote = snprintf(text + used, size - used, "%s%s", used > 0 ? "+" : "",
                                       mesh->axis[i].physical);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

/* The groups `inside` every slice become groups over several slices. Takes over `inside`. */
static pod_status span_slices(pod_collective_case *run_case, pod_group *inside,
                              const int32_t *slice_list, int32_t span, pod_error *err)
{
    if (span < 2) {
        run_case->group = *inside;
        return POD_OK;
    }
    const pod_status st = pod_group_init_slices(
        &run_case->group, inside, run_case->target->slice.nslices, slice_list, span, err);
    pod_group_fini(inside);
    return st;
}

static pod_status mesh_slices(pod_collective_case *run_case, const pod_mesh *mesh, unsigned axes,
                              pod_group *inside, pod_error *err)
{
    int32_t *list = malloc((size_t)mesh->nslices * sizeof *list);
    if (list == NULL) {
        pod_group_fini(inside);
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups");
    }
    pod_mesh_slice_groups(mesh, axes, list);
    const pod_status st = span_slices(run_case, inside, list, pod_mesh_slices_of(mesh, axes), err);
    free(list);
    return st;
}

static pod_status mesh_group(pod_collective_case *run_case, pod_error *err)
{
    const pod_collective_texts *texts = run_case->request->texts;
    const pod_slice *slice = &run_case->target->slice;
    pod_logical_mesh logical;
    pod_status st = pod_logical_mesh_parse(texts->mesh, texts->dcn_mesh, &logical, err);
    if (st != POD_OK) {
        return st;
    }
    logical.split_axes = texts->split_axes;
    pod_mesh mesh;
    st = pod_mesh_init(&mesh, slice, &logical, err);
    if (st != POD_OK) {
        return st;
    }
    unsigned axes = 0;
    pod_group inside;
    st = mesh_axes(&mesh, texts->mesh_axis, &axes, err);
    if (st == POD_OK) {
        mesh_axes_text(&mesh, axes, run_case->axes, sizeof run_case->axes);
        st = pod_mesh_group(&mesh, slice, axes, &inside, NULL, err);
    }
    if (st == POD_OK) {
        st = mesh_slices(run_case, &mesh, axes, &inside, err);
    }
    pod_mesh_fini(&mesh);
    return st;
}

/* Without --axes a group is all chips there are, of all slices. */
static pod_status axes_group(pod_collective_case *run_case, pod_error *err)
{
    const char *text = run_case->request->texts->axes;
    const pod_slice *slice = &run_case->target->slice;
    const int32_t span = text == NULL ? slice->nslices : 1;
    unsigned axes = (1U << slice->naxes) - 1;
    pod_status st = text == NULL ? POD_OK : pod_axes_parse(text, slice, &axes, err);
    if (st != POD_OK) {
        return st;
    }
    char letters[8];
    (void)snprintf(run_case->axes, sizeof run_case->axes, "%s%s", span > 1 ? "dcn+" : "",
                   pod_axes_name(axes, letters));
    pod_group inside;
    st = pod_group_init_axes(&inside, slice, axes, err);
    return st == POD_OK ? span_slices(run_case, &inside, NULL, span, err) : st;
}

pod_status pod_collective_group(pod_collective_case *run_case, pod_error *err)
{
    return run_case->request->texts->mesh != NULL ? mesh_group(run_case, err)
                                                  : axes_group(run_case, err);
}
