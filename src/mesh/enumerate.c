/* SPDX-License-Identifier: Apache-2.0 */
/** All placements of a mesh.
 *
 *  A placement gives each physical axis a row: how many of its positions each mesh axis has, and in
 *  which order they nest (who has stride 1, who comes next). The order_search fills row after row; on 4x4
 *  with data=4,tensor=4 and splitting:
 *
 *      x            y
 *      tensor       data                       tensor:x,data:y
 *      tensor,data  tensor,data                tensor:x[2]y[2],data:x[2@2]y[2@2], and other nestings
 *
 *  data:x,tensor:y is the first one again with x and y exchanged, which a healthy slice can't tell
 *  apart: rows of equal axes are listed in falling order only. */
#include "mesh/placement.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {
    int32_t size[POD_MESH_AXES];
    int nest[POD_MESH_AXES]; /**< nest[i]: mesh axis with the i-th smallest stride */
    int nested;              /**< mesh axes that have more than one position */
} row;

typedef struct order_search {
    const pod_slice *slice;
    const pod_logical_mesh *logical;
    int32_t wanted[POD_MESH_AXES]; /**< what is left of the mesh axes */
    row rows[POD_AXES];
    pod_placement *list;
    int count;
    int64_t room;
    bool out_of_memory;
} order_search;

static bool axes_are_alike(const pod_slice *slice, int p, int q)
{
    return !slice->twisted && slice->nfaults == 0 && slice->dims[p] == slice->dims[q]
           && slice->wrap[p] == slice->wrap[q];
}

static int row_compare(const row *a, const row *b)
{
    for (int l = POD_MESH_AXES - 1; l >= 0; l--) {
        if (a->size[l] != b->size[l]) {
            return a->size[l] < b->size[l] ? -1 : 1;
        }
    }
    for (int i = 0; i < a->nested; i++) {
        if (a->nest[i] != b->nest[i]) {
            return a->nest[i] < b->nest[i] ? -1 : 1;
        }
    }
    return 0;
}

/** True unless an earlier axis that looks the same has a smaller row. */
static bool row_is_in_order(const order_search *s, int p)
{
    for (int q = 0; q < p; q++) {
        if (axes_are_alike(s->slice, p, q) && row_compare(&s->rows[q], &s->rows[p]) < 0) {
            return false;
        }
    }
    return true;
}

static void add_placement(order_search *s)
{
    if (!POD_GROW(s->list, s->room, s->count + 1)) {
        s->out_of_memory = true;
        return;
    }
    pod_placement *placement = &s->list[s->count++];
    *placement = (pod_placement){.naxes = s->logical->naxes};
    memcpy(placement->axis, s->logical->axis, sizeof placement->axis);
    for (int p = 0; p < POD_AXES; p++) {
        int32_t stride = 1;
        for (int i = 0; i < s->rows[p].nested; i++) {
            const int l = s->rows[p].nest[i];
            pod_mesh_parts *parts = &placement->parts[l];
            parts->part[parts->count++] =
                (pod_mesh_part){.axis = p, .size = s->rows[p].size[l], .stride = stride};
            stride *= s->rows[p].size[l];
        }
    }
}

static void fill_row(order_search *s, int p, int l, int32_t left);

/** Row p is complete: go on with the next, or keep the placement. */
static void row_done(order_search *s, int p)
{
    if (!row_is_in_order(s, p) || s->out_of_memory) {
        return;
    }
    if (p + 1 < POD_AXES) {
        s->rows[p + 1].nested = 0;
        fill_row(s, p + 1, s->logical->naxes - 1, s->slice->dims[p + 1]);
        return;
    }
    for (int l = 0; l < s->logical->naxes; l++) {
        if (s->wanted[l] != 1) {
            return;
        }
    }
    add_placement(s);
}

/** Every order of the mesh axes nest[from..] of row p. */
static void nest_row(order_search *s, int p, int from)
{
    row *r = &s->rows[p];
    if (from >= r->nested) {
        row_done(s, p);
        return;
    }
    for (int i = from; i < r->nested; i++) {
        const row kept = *r;
        r->nest[from] = kept.nest[i];
        r->nest[i] = kept.nest[from];
        nest_row(s, p, from + 1);
        *r = kept;
    }
}

/** Give mesh axis l and those before it positions of physical axis p, of which `left` are left. */
static void fill_row(order_search *s, int p, int l, int32_t left)
{
    row *r = &s->rows[p];
    if (l < 0) {
        if (left == 1) {
            nest_row(s, p, 0);
        }
        return;
    }
    const row kept = *r;
    for (int32_t size = left; size >= 1; size--) {
        const bool part = size > 1 && size < s->slice->dims[p];
        if (left % size != 0 || s->wanted[l] % size != 0 || (part && !s->logical->split_axes)) {
            continue;
        }
        *r = kept;
        r->size[l] = size;
        if (size > 1) {
            r->nest[r->nested++] = l;
        }
        s->wanted[l] /= size;
        fill_row(s, p, l - 1, left / size);
        s->wanted[l] *= size;
    }
    *r = kept;
}

pod_status pod_placement_list(const pod_slice *slice, const pod_logical_mesh *logical,
                              pod_placement **list, int *count, pod_error *err)
{
    order_search s = {.slice = slice, .logical = logical};
    memcpy(s.wanted, logical->size, sizeof s.wanted);
    fill_row(&s, 0, logical->naxes - 1, slice->dims[0]);
    if (s.out_of_memory) {
        free(s.list);
        return pod_fail(err, POD_E_NOMEM, "no memory for the placements of a mesh");
    }
    *list = s.list;
    *count = s.count;
    return POD_OK;
}
