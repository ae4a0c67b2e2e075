/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/layout.h"

#include "base/text.h"

#include <inttypes.h>

static void list_add(pod_axis_list *list, pod_mesh_axis axis)
{
    list->axis[list->count++] = axis;
}

/** Put an axis of size > 1 where it belongs. */
static void axis_place(pod_work_layout *layout, const pod_mesh_axis_info *info)
{
    switch (info->axis) {
    case POD_MESH_DATA:
    case POD_MESH_SEQUENCE:
        list_add(&layout->rows, info->axis);
        break;
    case POD_MESH_FSDP:
    case POD_MESH_FSDP_TRANSPOSE:
        list_add(&layout->rows, info->axis);
        list_add(&layout->fsdp, info->axis);
        break;
    case POD_MESH_TENSOR:
        list_add(&layout->tensor, info->axis);
        break;
    case POD_MESH_PIPELINE:
        layout->stages = info->size;
        break;
    case POD_MESH_EXPERT:
        list_add(&layout->rows, info->axis);
        list_add(&layout->expert, info->axis);
        break;
    }
}

pod_status pod_work_layout_init(pod_work_layout *layout, const pod_mesh *mesh,
                                const pod_slice *slice, pod_error *err)
{
    *layout = (pod_work_layout){.mesh = mesh, .slice = slice, .stages = 1};
    for (int a = 0; a < POD_MESH_AXES; a++) {
        layout->size[a] = 1;
    }
    if (mesh->cores > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "steps run on chips, this mesh counts cores; use --devices chips");
    }
    for (int l = 0; l < mesh->naxes; l++) {
        const pod_mesh_axis_info *info = &mesh->axis[l];
        layout->size[info->axis] = info->size;
        if (info->size > 1) {
            axis_place(layout, info);
        }
    }
    return POD_OK;
}

int32_t pod_work_layout_pieces(const pod_work_layout *layout, const pod_axis_list *list)
{
    int32_t pieces = 1;
    for (int i = 0; i < list->count; i++) {
        pieces *= layout->size[list->axis[i]];
    }
    return pieces;
}

/** Coordinates of a chip, by position of the axes in the mesh. */
static void chip_coords(const pod_work_layout *layout, int32_t chip, int32_t *coords)
{
    pod_mesh_coords(layout->mesh, layout->mesh->index_of[chip], coords);
}

int32_t pod_work_layout_piece(const pod_work_layout *layout, const pod_axis_list *list,
                              int32_t chip)
{
    int32_t coords[POD_MESH_AXES];
    int32_t piece = 0;
    chip_coords(layout, chip, coords);
    for (int i = 0; i < list->count; i++) {
        const int l = pod_mesh_find(layout->mesh, list->axis[i]);
        piece = piece * layout->size[list->axis[i]] + coords[l];
    }
    return piece;
}

int32_t pod_work_layout_stage(const pod_work_layout *layout, int32_t chip)
{
    const pod_axis_list pipeline = {.count = layout->stages > 1, .axis = {POD_MESH_PIPELINE}};
    return pod_work_layout_piece(layout, &pipeline, chip);
}

int32_t pod_work_layout_stage_chip(const pod_work_layout *layout, int32_t chip, int32_t stage)
{
    int32_t coords[POD_MESH_AXES];
    const int l = pod_mesh_find(layout->mesh, POD_MESH_PIPELINE);
    chip_coords(layout, chip, coords);
    if (l >= 0) {
        coords[l] = stage;
    }
    const pod_mesh_device *device = &layout->mesh->device[pod_mesh_index(layout->mesh, coords)];
    return device->slice * layout->mesh->nslice_devices + device->chip;
}

unsigned pod_work_layout_mask(const pod_work_layout *layout, const pod_axis_list *list)
{
    unsigned mask = 0;
    for (int i = 0; i < list->count; i++) {
        mask |= 1U << pod_mesh_find(layout->mesh, list->axis[i]);
    }
    return mask;
}

pod_axis_list pod_axis_list_join(pod_axis_list a, const pod_axis_list *b)
{
    for (int i = 0; i < b->count; i++) {
        list_add(&a, b->axis[i]);
    }
    return a;
}

static void divisors_print(pod_text *text, int64_t size)
{
    enum { SHOWN_MAX = 24 };
    int shown = 0;
    for (int64_t d = 1; d <= size && d <= INT32_MAX && shown < SHOWN_MAX; d++) {
        if (size % d == 0) {
            pod_text_printf(text, "%s%" PRId64, shown++ > 0 ? ", " : "", d);
        }
    }
}

pod_status pod_work_divides(const pod_work_layout *layout, const char *what, int64_t size,
                            const pod_axis_list *list, pod_error *err)
{
    const int32_t pieces = pod_work_layout_pieces(layout, list);
    if (size % pieces == 0) {
        return POD_OK;
    }
    pod_text axes = {0};
    pod_text divisors = {0};
    for (int i = 0; i < list->count; i++) {
        pod_text_printf(&axes, "%s%s=%d", i > 0 ? "," : "", pod_mesh_axis_name(list->axis[i]),
                        (int)layout->size[list->axis[i]]);
    }
    divisors_print(&divisors, size);
    const pod_status st = pod_fail(
        err, POD_E_INVALID, "%s = %" PRId64 " does not divide over %s; its divisors are %s", what,
        size, axes.data ? axes.data : "", divisors.data ? divisors.data : "");
    pod_text_free(&axes);
    pod_text_free(&divisors);
    return st;
}
