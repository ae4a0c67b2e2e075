/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/device_mesh.h"

#include "base/units.h"
#include "mesh/describe.h"
#include "mesh/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pod_mesh_find(const pod_mesh *mesh, pod_mesh_axis axis)
{
    for (int i = 0; i < mesh->naxes; i++) {
        if (mesh->axis[i].axis == axis) {
            return i;
        }
    }
    return -1;
}

void pod_mesh_coords(const pod_mesh *mesh, int32_t index, int32_t *coords)
{
    for (int i = mesh->naxes - 1; i >= 0; i--) {
        coords[i] = index % mesh->axis[i].size;
        index /= mesh->axis[i].size;
    }
}

int32_t pod_mesh_index(const pod_mesh *mesh, const int32_t *coords)
{
    int32_t index = 0;
    for (int i = 0; i < mesh->naxes; i++) {
        index = index * mesh->axis[i].size + coords[i];
    }
    return index;
}

const char *pod_mesh_device_print(const pod_mesh *mesh, int32_t index, char *buf, size_t size)
{
    const pod_mesh_device *device = &mesh->device[index];
    char slice[16] = "";
    char core[16] = "";
    if (mesh->nslices > 1) {
        (void)snprintf(slice, sizeof slice, "%d:", (int)device->slice);
    }
    if (mesh->cores > 1) {
        (void)snprintf(core, sizeof core, ".%d", (int)device->core);
    }
    (void)snprintf(buf, size, "%s%d%s", slice, (int)device->chip, core);
    return buf;
}

/** What position `digit` along a mesh axis adds to the number of a device inside its slice: its parts' positions. */
static int32_t device_share(const pod_mesh_parts *parts, const pod_slice *slice, int32_t cores,
                            int32_t digit)
{
    int32_t position[POD_MESH_PHYSICAL_AXES] = {0};
    for (int i = parts->count - 1; i >= 0; i--) {
        position[parts->part[i].axis] += digit % parts->part[i].size * parts->part[i].stride;
        digit /= parts->part[i].size;
    }
    const int32_t chip =
        position[0] + slice->dims[0] * (position[1] + slice->dims[1] * position[2]);
    return chip * cores + position[POD_MESH_CORE_AXIS];
}

/** Devices of one slice in row-major order of the sizes inside it: axis by axis, the last first, what is there so far
 *  is repeated for each position. */
static void slice_order(const pod_layout *layout, const pod_slice *slice,
                        const pod_logical_mesh *logical, int32_t cores, int32_t *order)
{
    if (layout->ordered) {
        pod_layout_order(slice, logical, cores, order);
        return;
    }
    int32_t count = 1;
    order[0] = 0;
    for (int l = logical->naxes - 1; l >= 0; l--) {
        for (int32_t digit = logical->size[l] - 1; digit >= 0; digit--) {
            const int32_t share = device_share(&layout->axis[l], slice, cores, digit);
            for (int32_t i = 0; i < count; i++) {
                order[digit * count + i] = order[i] + share;
            }
        }
        count *= logical->size[l];
    }
    POD_ASSERT(count == slice->nchips * cores);
}

/** Slice of a device, and its row-major place inside it. */
static void split_slice(const pod_mesh *mesh, int32_t index, int32_t *slice, int32_t *in_slice)
{
    int32_t coords[POD_MESH_AXES] = {0};
    *slice = 0;
    *in_slice = mesh->nslices == 1 ? index : 0;
    if (mesh->nslices == 1) {
        return;
    }
    pod_mesh_coords(mesh, index, coords);
    for (int l = 0; l < mesh->naxes; l++) {
        const pod_mesh_axis_info *axis = &mesh->axis[l];
        *in_slice = *in_slice * axis->slice_size + coords[l] % axis->slice_size;
        *slice = *slice * axis->dcn_size + coords[l] / axis->slice_size;
    }
}

/** Fill device[] and index_of[] from the order inside a slice. */
static void place_devices(pod_mesh *mesh, const int32_t *order)
{
    for (int32_t i = 0; i < mesh->ndevices; i++) {
        int32_t slice;
        int32_t in_slice;
        split_slice(mesh, i, &slice, &in_slice);
        pod_mesh_device *device = &mesh->device[i];
        *device = (pod_mesh_device){.slice = slice, .chip = order[in_slice]};
        if (mesh->cores > 1) {
            device->chip = order[in_slice] / mesh->cores;
            device->core = order[in_slice] % mesh->cores;
        }
        mesh->index_of[slice * mesh->nslice_devices + order[in_slice]] = i;
    }
}

static pod_status mesh_build(pod_mesh *mesh, const pod_slice *slice, const pod_layout *layout,
                             pod_error *err)
{
    const pod_logical_mesh *logical = &mesh->logical;
    mesh->naxes = logical->naxes;
    mesh->ordered = layout->ordered;
    for (int l = 0; l < logical->naxes; l++) {
        mesh->axis[l] = (pod_mesh_axis_info){.axis = logical->axis[l],
                                             .size = logical->size[l] * logical->dcn_size[l],
                                             .slice_size = logical->size[l],
                                             .dcn_size = logical->dcn_size[l],
                                             .parts = layout->axis[l]};
    }
    int32_t *order = calloc((size_t)mesh->nslice_devices, sizeof *order);
    mesh->device = malloc((size_t)mesh->ndevices * sizeof *mesh->device);
    mesh->index_of = malloc((size_t)mesh->ndevices * sizeof *mesh->index_of);
    if (order == NULL || mesh->device == NULL || mesh->index_of == NULL) {
        free(order);
        pod_mesh_fini(mesh);
        return pod_fail(err, POD_E_NOMEM, "no memory for a mesh of %d devices",
                        (int)mesh->ndevices);
    }
    slice_order(layout, slice, logical, mesh->cores, order);
    place_devices(mesh, order);
    for (int l = 0; l < mesh->naxes; l++) {
        pod_mesh_describe_axis(mesh, slice, l);
    }
    free(order);
    return POD_OK;
}

/** Everything that comes before the layout. */
static pod_status mesh_begin(pod_mesh *mesh, const pod_slice *slice,
                             const pod_logical_mesh *logical, pod_error *err)
{
    *mesh = (pod_mesh){.logical = *logical, .nslices = slice->nslices};
    pod_status st = pod_logical_mesh_resolve(&mesh->logical, slice, err);
    POD_THEN(st, pod_logical_mesh_cores(logical, slice, &mesh->cores, err));
    if (st != POD_OK) {
        return st;
    }
    int64_t ndevices;
    mesh->nslice_devices = slice->nchips * mesh->cores;
    if (!pod_mul_i64(mesh->nslice_devices, slice->nslices, &ndevices) || ndevices > INT32_MAX) {
        return pod_fail(err, POD_E_RANGE, "%s has more devices than a mesh can number",
                        slice->name);
    }
    mesh->ndevices = (int32_t)ndevices;
    return POD_OK;
}

static pod_status fail_split(const pod_mesh *mesh, const pod_slice *slice, int failed,
                             pod_error *err)
{
    char works[POD_MESH_TEXT_MAX];
    pod_logical_mesh nearest;
    const bool found = pod_mesh_suggest(slice, &mesh->logical, mesh->cores, &nearest);
    return pod_fail(err, POD_E_INVALID,
                    "axis needs a split: %s=%d is no product of whole axes of %s that later mesh "
                    "axes left; --split-axes allows parts of axes%s%s%s",
                    pod_logical_mesh_axis_name(&mesh->logical, failed),
                    (int)mesh->logical.size[failed], slice->name, found ? ", and " : "",
                    found ? pod_logical_mesh_print(&nearest, works, sizeof works) : "",
                    found ? " works without" : "");
}

static pod_status fail_contiguous(const pod_mesh *mesh, const pod_slice *slice, pod_error *err)
{
    char text[POD_MESH_TEXT_MAX];
    char works[POD_MESH_TEXT_MAX];
    pod_logical_mesh nearest;
    const bool found = pod_mesh_suggest(slice, &mesh->logical, mesh->cores, &nearest);
    return pod_fail(
        err, POD_E_INVALID,
        "not contiguous: JAX has no layout of %s on %s that keeps hosts together; leave "
        "out --contiguous%s%s%s",
        pod_logical_mesh_print(&mesh->logical, text, sizeof text), slice->name,
        found ? ", or use " : " (no mesh of these axes works with it)",
        found ? pod_logical_mesh_print(&nearest, works, sizeof works) : "",
        found ? ", which works" : "");
}

pod_status pod_mesh_init(pod_mesh *mesh, const pod_slice *slice, const pod_logical_mesh *logical,
                         pod_error *err)
{
    if (logical->contiguous && slice->nslices > 1) {
        return pod_fail(err, POD_E_USAGE,
                        "JAX's meshes over several slices know no --contiguous; leave it out");
    }
    POD_TRY(mesh_begin(mesh, slice, logical, err));
    pod_layout layout;
    int failed;
    switch (pod_layout_jax(slice, &mesh->logical, mesh->cores, &layout, &failed)) {
    case POD_LAYOUT_OK:
        return mesh_build(mesh, slice, &layout, err);
    case POD_LAYOUT_NEEDS_SPLIT:
        return fail_split(mesh, slice, failed, err);
    case POD_LAYOUT_NOT_CONTIGUOUS:
        return fail_contiguous(mesh, slice, err);
    }
    return POD_E_INTERNAL;
}

pod_status pod_mesh_init_placed(pod_mesh *mesh, const pod_slice *slice,
                                const pod_logical_mesh *logical, const pod_placement *placement,
                                pod_error *err)
{
    pod_layout layout;
    POD_TRY(mesh_begin(mesh, slice, logical, err));
    POD_TRY(pod_layout_place(slice, &mesh->logical, mesh->cores, placement, &layout, err));
    return mesh_build(mesh, slice, &layout, err);
}

void pod_mesh_fini(pod_mesh *mesh)
{
    free(mesh->index_of);
    free(mesh->device);
    mesh->index_of = NULL;
    mesh->device = NULL;
}
