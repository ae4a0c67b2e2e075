/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/placement.h"

#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What a placement is read for. */
typedef struct reader {
    const pod_slice *slice;
    int32_t dims[POD_MESH_PHYSICAL_AXES];
    int naxes; /**< physical axes that may be named; the core axis apart */
    int32_t cores;
    pod_error *err;
} reader;

static pod_status number_parse(const reader *r, const char **at, int32_t *value)
{
    char text[12];
    const size_t length = strspn(*at, "0123456789");
    if (length == 0 || length >= sizeof text) {
        return pod_fail(r->err, POD_E_USAGE,
                        "--placement: no number at '%s'; parts are x, x[4] or x[4@2]", *at);
    }
    memcpy(text, *at, length);
    text[length] = '\0';
    int64_t number;
    const pod_status st = pod_parse_i64(text, "--placement", 1, INT32_MAX, &number, r->err);
    *at += length;
    *value = st == POD_OK ? (int32_t)number : 0;
    return st;
}

/** Read "[4]" or "[4@2]" if it is there. */
static pod_status bracket_parse(const reader *r, const char **at, pod_mesh_part *part)
{
    part->size = r->dims[part->axis];
    part->stride = 1;
    if (**at != '[') {
        return POD_OK;
    }
    ++*at;
    pod_status st = number_parse(r, at, &part->size);
    if (st == POD_OK && **at == '@') {
        ++*at;
        st = number_parse(r, at, &part->stride);
    }
    if (st != POD_OK) {
        return st;
    }
    if (**at != ']') {
        return pod_fail(r->err, POD_E_USAGE, "--placement: ']' is missing at '%s'", *at);
    }
    ++*at;
    const int64_t span = (int64_t)part->size * part->stride;
    if (span > r->dims[part->axis] || r->dims[part->axis] % span != 0) {
        return pod_fail(r->err, POD_E_INVALID,
                        "%c[%d@%d] does not fit axis %c of %d; size times stride must divide it",
                        "xyzc"[part->axis], (int)part -> size, (int)part -> stride,
                        "xyzc"[part->axis], (int)r -> dims[part->axis]);
    }
    return POD_OK;
}

/** Append a part, joined with the one before if together they are one part. */
static bool parts_append(pod_mesh_parts *parts, const pod_mesh_part *part)
{
    pod_mesh_part *last = parts->count > 0 ? &parts->part[parts->count - 1] : NULL;
    if (part->size == 1) {
        return true;
    }
    if (last != NULL && last->axis == part->axis && last->stride == part->size * part->stride) {
        last->size *= part->size;
        last->stride = part->stride;
        return true;
    }
    if (parts->count == POD_MESH_PARTS_MAX) {
        return false;
    }
    parts->part[parts->count++] = *part;
    return true;
}

static pod_status parts_parse(const reader *r, const char **at, pod_mesh_parts *parts)
{
    parts->count = 0;
    if (**at == '\0' || **at == ',') {
        return pod_fail(r->err, POD_E_USAGE,
                        "--placement: a mesh axis without parts; write tensor:x,data:yz");
    }
    while (**at != '\0' && **at != ',') {
        const char letter = **at;
        const char *known = strchr("xyzc", letter);
        if (known == NULL) {
            return pod_fail(r->err, POD_E_USAGE,
                            "--placement: '%c' is no physical axis; parts are x, x[4] or x[4@2]",
                            letter);
        }
        pod_mesh_part part = {.axis = (int)(known - (const char *)"xyzc")};
        const bool exists = letter == 'c' ? r->cores > 1 : part.axis < r->naxes;
        if (!exists) {
            return pod_fail(r->err, POD_E_INVALID, "--placement: %s has no axis %c; it has %s%s",
                            r->slice->name, letter, r->naxes == 2 ? "x, y" : "x, y, z",
                            r->cores > 1 ? " and c (cores)" : "");
        }
        ++*at;
        const pod_status st = bracket_parse(r, at, &part);
        if (st != POD_OK) {
            return st;
        }
        if (!parts_append(parts, &part)) {
            return pod_fail(r->err, POD_E_USAGE, "--placement: more than %d parts of one mesh axis",
                            (int)POD_MESH_PARTS_MAX);
        }
    }
    return POD_OK;
}

pod_status pod_placement_parse(const char *text, const pod_slice *slice, int32_t cores,
                               pod_placement *placement, pod_error *err)
{
    reader r = {.slice = slice, .naxes = slice->naxes, .cores = cores, .err = err};
    pod_layout_dims(slice, cores, r.dims);
    *placement = (pod_placement){0};
    const char *at = text;
    for (;;) {
        pod_mesh_axis axis;
        const size_t length = strcspn(at, ":,");
        if (at[length] != ':') {
            return pod_fail(err, POD_E_USAGE,
                            "--placement: '%.*s' is no AXIS:PARTS, as in tensor:x,data:yz",
                            (int)length, at);
        }
        pod_status st = pod_mesh_axis_parse(at, length, &axis, err);
        if (st != POD_OK) {
            return st;
        }
        for (int i = 0; i < placement->naxes; i++) {
            if (placement->axis[i] == axis) {
                return pod_fail(err, POD_E_USAGE, "--placement names %s twice; name each axis once",
                                pod_mesh_axis_name(axis));
            }
        }
        at += length + 1;
        st = parts_parse(&r, &at, &placement->parts[placement->naxes]);
        placement->axis[placement->naxes++] = axis;
        if (st != POD_OK || *at == '\0') {
            return st;
        }
        at++;
    }
}

const char *pod_placement_print(const pod_placement *placement, const pod_slice *slice,
                                int32_t cores, char *buf, size_t size)
{
    int32_t dims[POD_MESH_PHYSICAL_AXES];
    char parts[POD_MESH_TEXT_MAX];
    size_t used = 0;
    pod_layout_dims(slice, cores, dims);
    buf[0] = '\0';
    for (int i = 0; i < placement->naxes && used < size; i++) {
        if (placement->parts[i].count > 0) {
            pod_mesh_parts_print(&placement->parts[i], dims, parts, sizeof parts);
            const int written = snprintf(buf + used, size - used, "%s%s:%s", used > 0 ? "," : "",
                                         pod_mesh_axis_name(placement->axis[i]), parts);
            used += written > 0 ? (size_t)written : 0;
        }
    }
    return buf;
}

static int64_t parts_product(const pod_mesh_parts *parts)
{
    int64_t product = 1;
    for (int i = 0; i < parts->count; i++) {
        product *= parts->part[i].size;
    }
    return product;
}

/** The next part of a physical axis must have the stride that the ones below reach. */
static bool find_stride(const pod_layout *layout, int naxes, int physical, int32_t stride,
                        int32_t *size, int *users)
{
    *users = 0;
    for (int l = 0; l < naxes; l++) {
        for (int i = 0; i < layout->axis[l].count; i++) {
            const pod_mesh_part *part = &layout->axis[l].part[i];
            if (part->axis == physical && part->stride == stride) {
                *size = part->size;
                ++*users;
            }
        }
    }
    return *users == 1;
}

static pod_status check_tiles(const pod_layout *layout, int naxes, const pod_slice *slice,
                              int32_t cores, pod_error *err)
{
    int32_t dims[POD_MESH_PHYSICAL_AXES];
    pod_layout_dims(slice, cores, dims);
    for (int p = 0; p < POD_MESH_PHYSICAL_AXES; p++) {
        int32_t size = 1;
        int users = 0;
        for (int32_t stride = 1; stride < dims[p]; stride *= size) {
            if (!find_stride(layout, naxes, p, stride, &size, &users)) {
                return pod_fail(err, POD_E_INVALID,
                                "placement: %s at stride %d of axis %c of %d; the parts of an axis "
                                "must tile it, as x[4] and x[%d@4] do",
                                users == 0 ? "nothing" : "two parts", (int)stride, "xyzc"[p],
                                (int)dims[p], (int)(dims[p] / 4 > 1 ? dims[p] / 4 : 2));
            }
        }
    }
    return POD_OK;
}

static int placement_find(const pod_placement *placement, pod_mesh_axis axis)
{
    for (int i = 0; i < placement->naxes; i++) {
        if (placement->axis[i] == axis) {
            return i;
        }
    }
    return -1;
}

pod_status pod_layout_place(const pod_slice *slice, const pod_logical_mesh *logical, int32_t cores,
                            const pod_placement *placement, pod_layout *layout, pod_error *err)
{
    int used = 0;
    *layout = (pod_layout){0};
    for (int l = 0; l < logical->naxes; l++) {
        const int at = placement_find(placement, logical->axis[l]);
        if (at >= 0) {
            layout->axis[l] = placement->parts[at];
            used++;
        }
        const int64_t product = parts_product(&layout->axis[l]);
        if (product != logical->size[l]) {
            return pod_fail(
                err, POD_E_INVALID,
                "placement gives %s %d devices, the mesh %d; the parts must multiply to "
                "the size of the axis",
                pod_mesh_axis_name(logical->axis[l]), (int)product, (int)logical->size[l]);
        }
    }
    if (used < placement->naxes) {
        return pod_fail(err, POD_E_INVALID,
                        "placement names a mesh axis that --mesh does not have; give it a size");
    }
    return check_tiles(layout, logical->naxes, slice, cores, err);
}
