/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t axis_hops(const pod_slice *slice, int axis, int32_t delta)
{
    const int32_t there = abs(delta) % slice->dims[axis];
    const int32_t back = slice->dims[axis] - there;
    return slice->wrap[axis] && back < there ? back : there;
}

/** The lattice vectors are at most two axes long, so two turns either way reach the shortest. */
enum { LATTICE_REACH = 2 };

static int32_t twisted_hops(const pod_slice *slice, const int32_t delta[POD_AXES])
{
    const int side = 2 * LATTICE_REACH + 1;
    int32_t best = INT32_MAX;
    for (int turn = 0; turn < side * side * side; turn++) {
        const int turns[POD_AXES] = {turn % side - LATTICE_REACH,
                                     turn / side % side - LATTICE_REACH,
                                     turn / (side * side) - LATTICE_REACH};
        int32_t hops = 0;
        for (int b = 0; b < POD_AXES; b++) {
            int32_t walk = delta[b] + turns[b] * slice->dims[b];
            for (int a = 0; a < POD_AXES; a++) {
                walk -= turns[a] * slice->twist[a][b];
            }
            hops += abs(walk);
        }
        best = hops < best ? hops : best;
    }
    return best;
}

int32_t pod_mesh_hops(const pod_slice *slice, const int32_t delta[POD_AXES])
{
    if (slice->twisted) {
        return twisted_hops(slice, delta);
    }
    int32_t hops = 0;
    for (int a = 0; a < POD_AXES; a++) {
        hops += axis_hops(slice, a, delta[a]);
    }
    return hops;
}

static const pod_mesh_part *find_part(const pod_mesh_parts *parts, int axis)
{
    for (int i = 0; i < parts->count; i++) {
        if (parts->part[i].axis == axis) {
            return &parts->part[i];
        }
    }
    return NULL;
}

/** True if the last position of the part is one stride before its first, over a wrap that lands
 *  inside the group. */
static bool part_closes(const pod_slice *slice, const pod_mesh_parts *parts,
                        const pod_mesh_part *part)
{
    const int a = part->axis;
    if (a == POD_MESH_CORE_AXIS) {
        return true;
    }
    if (!slice->wrap[a] || part->size * part->stride != slice->dims[a]) {
        return false;
    }
    for (int b = 0; b < POD_AXES; b++) {
        const int32_t shift = slice->twisted ? abs(slice->twist[a][b]) : 0;
        const pod_mesh_part *other = find_part(parts, b);
        if (shift == 0 || b == a) {
            continue;
        }
        if (other == NULL || other->size * other->stride != slice->dims[b]
            || shift % other->stride != 0) {
            return false;
        }
    }
    return true;
}

/** Both ways along an axis, or one if the part is a pair that its wrap doesn't close. */
static int part_links(const pod_slice *slice, const pod_mesh_part *part)
{
    if (part->axis == POD_MESH_CORE_AXIS) {
        return 0;
    }
    const bool wraps =
        slice->wrap[part->axis] && part->size * part->stride == slice->dims[part->axis];
    return part->size > 2 || wraps ? 2 : 1;
}

/** Hops of the step in which part `moving` counts up and all faster parts go back to 0; with
 *  moving = -1 the step from the last device to the first. */
static int32_t step_hops(const pod_slice *slice, const pod_mesh_parts *parts, int moving)
{
    int32_t delta[POD_MESH_PHYSICAL_AXES] = {0};
    for (int i = parts->count - 1; i >= 0 && i >= moving; i--) {
        const pod_mesh_part *part = &parts->part[i];
        delta[part->axis] += (i == moving ? 1 : 1 - part->size) * part->stride;
    }
    return pod_mesh_hops(slice, delta);
}

static void describe_parts(const pod_mesh *mesh, const pod_slice *slice, pod_mesh_axis_info *info)
{
    const pod_mesh_parts *parts = &info->parts;
    int links[POD_MESH_PHYSICAL_AXES] = {0};
    info->closed = true;
    for (int i = 0; i < parts->count; i++) {
        const int axis = parts->part[i].axis;
        const int here = part_links(slice, &parts->part[i]);
        info->closed = info->closed && part_closes(slice, parts, &parts->part[i]);
        links[axis] = here > links[axis] ? here : links[axis];
    }
    info->links = links[0] + links[1] + links[2];
    const bool closing = info->closed && info->dcn_size == 1 && parts->count > 0;
    for (int moving = closing ? -1 : 0; moving < parts->count; moving++) {
        const int32_t hops = step_hops(slice, parts, moving);
        info->hops_max = hops > info->hops_max ? hops : info->hops_max;
    }
    int32_t dims[POD_MESH_PHYSICAL_AXES];
    pod_layout_dims(slice, mesh->cores, dims);
    pod_mesh_parts_print(parts, dims, info->physical, sizeof info->physical);
}

/** What the lines of an ordered mesh along one axis look like. */
typedef struct line_figures {
    bool varies[POD_MESH_PHYSICAL_AXES]; /**< x, y, z, core */
    bool closed;
    int links;
    int32_t hops_max;
} line_figures;

/** Bits of the directions in which a shortest walk from a to b can start; *hops its length. */
static unsigned walk_directions(const pod_slice *slice, int32_t a, int32_t b, bool *varies,
                                int32_t *hops)
{
    int32_t from[POD_AXES];
    int32_t to[POD_AXES];
    unsigned directions = 0;
    *hops = 0;
    pod_slice_coords(slice, a, from);
    pod_slice_coords(slice, b, to);
    for (int i = 0; i < POD_AXES; i++) {
        const int32_t delta = to[i] - from[i];
        const int32_t shortest = axis_hops(slice, i, delta);
        *hops += shortest;
        if (delta == 0) {
            continue;
        }
        varies[i] = true;
        const bool inside = shortest == abs(delta);
        const bool around = slice->wrap[i] && shortest == slice->dims[i] - abs(delta);
        const unsigned plus = (inside && delta > 0) || (around && delta < 0);
        const unsigned minus = (inside && delta < 0) || (around && delta > 0);
        directions |= (plus | minus << 1) << (2 * i);
    }
    return directions;
}

/** One step of a line: from its device `index` to `next`. */
static void line_step(const pod_mesh *mesh, const pod_slice *slice, int32_t index, int32_t next,
                      line_figures *figures, unsigned *directions, int32_t *hops)
{
    const pod_mesh_device *a = &mesh->device[index];
    const pod_mesh_device *b = &mesh->device[next];
    *directions |= walk_directions(slice, a->chip, b->chip, figures->varies, hops);
    figures->varies[POD_MESH_CORE_AXIS] |= a->core != b->core;
}

/** The line of devices along a mesh axis inside a slice that starts at `first`. */
static void describe_line(const pod_mesh *mesh, const pod_slice *slice, int32_t first,
                          int32_t stride, int32_t count, line_figures *figures)
{
    unsigned toward_last = 0;
    int32_t chips = 1;
    int32_t hops = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t here = first + i * stride;
        unsigned directions = 0;
        if (i > 0) {
            line_step(mesh, slice, here, here - stride, figures, &directions, &hops);
        }
        if (i + 1 < count) {
            line_step(mesh, slice, here, here + stride, figures, &directions, &hops);
            figures->hops_max = hops > figures->hops_max ? hops : figures->hops_max;
            figures->closed = figures->closed && hops <= 1;
            chips += hops > 0;
        }
        const int links = __builtin_popcount(directions);
        figures->links = links > figures->links ? links : figures->links;
    }
    line_step(mesh, slice, first, first + (count - 1) * stride, figures, &toward_last, &hops);
    figures->closed = figures->closed && hops <= 1 && chips != 2;
}

static void describe_order(const pod_mesh *mesh, const pod_slice *slice, int axis,
                           pod_mesh_axis_info *info)
{
    const int32_t count = info->slice_size;
    line_figures figures = {.closed = true};
    int32_t stride = 1;
    for (int l = axis + 1; l < mesh->naxes; l++) {
        stride *= mesh->axis[l].size;
    }
    for (int32_t i = 0; i < mesh->ndevices; i++) {
        if (mesh->device[i].slice == 0 && i / stride % info->size == 0) {
            describe_line(mesh, slice, i, stride, count, &figures);
        }
    }
    info->closed = figures.closed;
    info->links = figures.links;
    info->hops_max = figures.hops_max;
    size_t used = 0;
    (void)snprintf(info->physical, sizeof info->physical, "%s:", figures.closed ? "ring" : "list");
    used = strlen(info->physical);
    for (int a = 0; a < POD_MESH_PHYSICAL_AXES; a++) {
        if (figures.varies[a]) {
            info->physical[used++] = "xyzc"[a];
        }
    }
    info->physical[used] = '\0';
}

void pod_mesh_describe_axis(pod_mesh *mesh, const pod_slice *slice, int axis)
{
    pod_mesh_axis_info *info = &mesh->axis[axis];
    info->links = 0;
    info->hops_max = 0;
    if (info->slice_size == 1) {
        info->closed = true;
        (void)snprintf(info->physical, sizeof info->physical, "-");
    } else if (mesh->ordered) {
        describe_order(mesh, slice, axis, info);
    } else {
        describe_parts(mesh, slice, info);
    }
    if (info->dcn_size > 1) {
        char inside[POD_MESH_PHYSICAL_TEXT_MAX - 4];
        (void)snprintf(inside, sizeof inside, "%.*s", (int)sizeof inside - 1, info->physical);
        const bool none = info->slice_size == 1;
        (void)snprintf(info->physical, sizeof info->physical, "dcn%s%s", none ? "" : "+",
                       none ? "" : inside);
    }
}
