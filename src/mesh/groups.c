/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/device_mesh.h"

#include <stdlib.h>

/** A part with its weight in the row-major position over the chosen mesh axes. */
typedef struct digit {
    pod_mesh_part part;
    int32_t weight;
} digit;

enum { DIGITS_MAX = POD_MESH_AXES * POD_MESH_PARTS_MAX };

static bool digit_before(const digit *a, const digit *b)
{
    return a->part.axis != b->part.axis ? a->part.axis < b->part.axis
                                        : a->part.stride < b->part.stride;
}

/** Parts of the chosen axes, in the order of physical axes, small strides first. */
static int digits_collect(const pod_mesh *mesh, unsigned axes, digit *digits)
{
    int count = 0;
    int32_t weight = 1;
    for (int l = mesh->naxes - 1; l >= 0; l--) {
        const pod_mesh_parts *parts = &mesh->axis[l].parts;
        for (int i = parts->count - 1; i >= 0 && (axes >> l & 1U) != 0; i--) {
            digits[count++] = (digit){.part = parts->part[i], .weight = weight};
            weight *= parts->part[i].size;
        }
    }
    for (int i = 1; i < count; i++) {
        const digit moving = digits[i];
        int at = i;
        for (; at > 0 && digit_before(&moving, &digits[at - 1]); at--) {
            digits[at] = digits[at - 1];
        }
        digits[at] = moving;
    }
    return count;
}

/** Dims from sorted digits; digits of one axis that follow each other become one dim. */
static int dims_merge(const digit *digits, int count, pod_group_dim *dims)
{
    int ndims = 0;
    for (int i = 0; i < count; i++) {
        const pod_mesh_part *part = &digits[i].part;
        pod_group_dim *last = ndims > 0 ? &dims[ndims - 1] : NULL;
        if (last != NULL && last->axis == part->axis && last->size * last->stride == part->stride) {
            last->size *= part->size;
        } else {
            dims[ndims++] =
                (pod_group_dim){.axis = part->axis, .size = part->size, .stride = part->stride};
        }
    }
    return ndims;
}

static void ranks_number(const digit *digits, int count, int32_t size, int32_t *index_of_rank)
{
    for (int32_t rank = 0; rank < size; rank++) {
        int32_t rest = rank;
        index_of_rank[rank] = 0;
        for (int i = 0; i < count; i++) {
            index_of_rank[rank] += rest % digits[i].part.size * digits[i].weight;
            rest /= digits[i].part.size;
        }
    }
}

/** Split a position over the mesh axes (sizes size[]) into the part along `axes` and the rest, both
 *  row-major. */
static void split_position(const pod_mesh *mesh, unsigned axes, const int32_t *size,
                           const int32_t *coords, int32_t *rank, int32_t *number)
{
    *rank = 0;
    *number = 0;
    for (int l = 0; l < mesh->naxes; l++) {
        int32_t *into = (axes >> l & 1U) != 0 ? rank : number;
        *into = *into * size[l] + coords[l];
    }
}

static pod_status group_from_lists(const pod_mesh *mesh, const pod_slice *slice, unsigned axes,
                                   int32_t group_size, pod_group *group, pod_error *err)
{
    int32_t size[POD_MESH_AXES];
    int32_t coords[POD_MESH_AXES];
    int32_t *chips = malloc((size_t)slice->nchips * sizeof *chips);
    if (chips == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for groups of %d chips", (int)slice->nchips);
    }
    for (int l = 0; l < mesh->naxes; l++) {
        size[l] = mesh->axis[l].slice_size;
    }
    for (int32_t i = 0; i < mesh->ndevices; i++) {
        if (mesh->device[i].slice == 0) {
            int32_t rank;
            int32_t number;
            pod_mesh_coords(mesh, i, coords);
            split_position(mesh, axes, size, coords, &rank, &number);
            chips[number * group_size + rank] = mesh->device[i].chip;
        }
    }
    const pod_status st =
        pod_group_init_lists(group, slice, chips, slice->nchips / group_size, group_size, err);
    free(chips);
    return st;
}

pod_status pod_mesh_group(const pod_mesh *mesh, const pod_slice *slice, unsigned axes,
                          pod_group *group, int32_t *index_of_rank, pod_error *err)
{
    if (mesh->cores > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "groups of chips need a mesh of chips; this one counts cores");
    }
    digit digits[DIGITS_MAX];
    pod_group_dim dims[DIGITS_MAX];
    int32_t group_size = 1;
    for (int l = 0; l < mesh->naxes; l++) {
        group_size *= (axes >> l & 1U) != 0 ? mesh->axis[l].slice_size : 1;
    }
    if (mesh->ordered) {
        for (int32_t rank = 0; index_of_rank != NULL && rank < group_size; rank++) {
            index_of_rank[rank] = rank;
        }
        return group_from_lists(mesh, slice, axes, group_size, group, err);
    }
    const int count = digits_collect(mesh, axes, digits);
    if (index_of_rank != NULL) {
        ranks_number(digits, count, group_size, index_of_rank);
    }
    return pod_group_init_dims(group, slice, dims, dims_merge(digits, count, dims), err);
}

int32_t pod_mesh_slices_of(const pod_mesh *mesh, unsigned axes)
{
    int32_t count = 1;
    for (int l = 0; l < mesh->naxes; l++) {
        count *= (axes >> l & 1U) != 0 ? mesh->axis[l].dcn_size : 1;
    }
    return count;
}

void pod_mesh_slice_groups(const pod_mesh *mesh, unsigned axes, int32_t *slices)
{
    int32_t size[POD_MESH_AXES];
    int32_t coords[POD_MESH_AXES];
    const int32_t group_size = pod_mesh_slices_of(mesh, axes);
    POD_ASSERT(mesh->naxes > 0 && mesh->naxes <= POD_MESH_AXES);
    for (int l = 0; l < mesh->naxes; l++) {
        size[l] = mesh->axis[l].dcn_size;
    }
    for (int32_t slice = 0; slice < mesh->nslices; slice++) {
        int32_t rest = slice;
        int32_t rank;
        int32_t number;
        for (int l = mesh->naxes - 1; l >= 0; l--) {
            coords[l] = rest % size[l];
            rest /= size[l];
        }
        split_position(mesh, axes, size, coords, &rank, &number);
        slices[number * group_size + rank] = slice;
    }
}

pod_status pod_mesh_group_joined(const pod_mesh *mesh, const pod_slice *slice, unsigned axes,
                                 pod_group *group, pod_error *err)
{
    const int32_t span = pod_mesh_slices_of(mesh, axes);
    pod_group inside;
    pod_status st = pod_mesh_group(mesh, slice, axes, &inside, NULL, err);
    if (st != POD_OK || span == 1) {
        *group = st == POD_OK ? inside : (pod_group){0};
        return st;
    }
    int32_t *slices = malloc((size_t)mesh->nslices * sizeof *slices);
    if (slices == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for groups of %d slices", (int)mesh->nslices);
    } else {
        pod_mesh_slice_groups(mesh, axes, slices);
        st = pod_group_init_slices(group, &inside, mesh->nslices, slices, span, err);
    }
    free(slices);
    pod_group_fini(&inside);
    return st;
}
