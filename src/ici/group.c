/* SPDX-License-Identifier: Apache-2.0 */
#include "ici/group.h"

#include <stdlib.h>
#include <string.h>

/* Position of a coordinate on a dim: the dim's digit of it. */
static int32_t dim_digit(const pod_group_dim *dim, int32_t coord)
{
    return coord / dim->stride % dim->size;
}

static pod_status arrays_new(pod_group *group, int32_t nchips, pod_error *err)
{
    size_t n = (size_t)nchips;
    group->chips = nchips;
    group->chip_of = calloc(n, sizeof *group->chip_of);
    group->group_of = calloc(n, sizeof *group->group_of);
    group->rank_of = calloc(n, sizeof *group->rank_of);
    if (!group->chip_of || !group->group_of || !group->rank_of) {
        pod_group_fini(group);
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups of %d chips", (int)nchips);
    }
    return POD_OK;
}

void pod_group_fini(pod_group *group)
{
    if (group->inside) {
        pod_group_fini(group->inside);
        free(group->inside);
    }
    free(group->rank_of);
    free(group->group_of);
    free(group->chip_of);
    memset(group, 0, sizeof *group);
}

static pod_status dim_check(const pod_slice *slice, const pod_group_dim *dim, pod_error *err)
{
    if (dim->axis < 0 || dim->axis >= slice->naxes) {
        return pod_fail(err, POD_E_INVALID, "%s has no axis number %d; it has %d axes", slice->name,
                        dim->axis, slice->naxes);
    }
    int64_t span = (int64_t)dim->size * dim->stride;
    int32_t axis_size = slice->dims[dim->axis];
    if (dim->size < 1 || dim->stride < 1 || span > axis_size || axis_size % span != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "%d positions of stride %d do not fit axis %c of %d; size times stride "
                        "must divide the axis",
                        (int)dim->size, (int)dim->stride, 'x' + dim->axis, (int)axis_size);
    }
    return POD_OK;
}

/* Two dims of one axis are digits of the coordinate only if one lies wholly below the other. */
static pod_status dims_check_nesting(const pod_group_dim *a, const pod_group_dim *b, pod_error *err)
{
    const pod_group_dim *low = a->stride <= b->stride ? a : b;
    const pod_group_dim *high = low == a ? b : a;
    if (a->axis == b->axis && high->stride % (low->size * low->stride) != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "dims {%c, %d, %d} and {%c, %d, %d} overlap; the larger stride must be a "
                        "multiple of the other's size times stride",
                        'x' + low->axis, (int)low->size, (int)low->stride, 'x' + high->axis,
                        (int)high->size, (int)high->stride);
    }
    return POD_OK;
}

static bool dim_is_closed(const pod_slice *slice, const pod_group_dim *dim)
{
    return slice->wrap[dim->axis] && !pod_slice_axis_twisted(slice, dim->axis)
           && dim->size * dim->stride == slice->dims[dim->axis];
}

/* Copy the dims that count into the group, and the size of a group. */
static pod_status dims_take(pod_group *group, const pod_slice *slice, const pod_group_dim *dims,
                            int ndims, pod_error *err)
{
    group->size = 1;
    for (int i = 0; i < ndims; i++) {
        pod_status st = dim_check(slice, &dims[i], err);
        for (int j = 0; j < i && st == POD_OK; j++) {
            st = dims[i].size > 1 && dims[j].size > 1 ? dims_check_nesting(&dims[i], &dims[j], err)
                                                      : POD_OK;
        }
        if (st != POD_OK) {
            return st;
        }
        if (dims[i].size > 1) {
            group->dim[group->ndims] = dims[i];
            group->dim[group->ndims].closed = dim_is_closed(slice, &dims[i]);
            group->ndims++;
            group->size *= dims[i].size;
        }
    }
    group->count = slice->nchips / group->size;
    return POD_OK;
}

/* What a coordinate along an axis adds to the rank of a chip, and to the number of the chip that has rank 0 in its
 * group. */
typedef struct axis_share {
    int32_t rank;
    int32_t first;
} axis_share;

/* @param shares  shares[coordinate along the axis]; @param pitch  chips between neighbours along it */
static void shares_fill(const pod_group *group, int axis, int32_t length, int32_t pitch,
                        axis_share *shares)
{
    for (int32_t coord = 0; coord < length; coord++) {
        int32_t weight = 1;
        shares[coord] = (axis_share){.first = coord * pitch};
        for (int i = 0; i < group->ndims; i++) {
            const pod_group_dim *dim = &group->dim[i];
            if (dim->axis == axis) {
                const int32_t digit = dim_digit(dim, coord);
                shares[coord].rank += weight * digit;
                shares[coord].first -= digit * dim->stride * pitch;
            }
            weight *= dim->size;
        }
    }
}

/* Chips in the order of their numbers: rank 0 of a group is its smallest chip, so it is met before the others. */
static void ranks_fill(pod_group *group, const int32_t dims[POD_AXES],
                       const axis_share *const shares[POD_AXES])
{
    int32_t count = 0;
    int32_t chip = 0;
    for (int32_t z = 0; z < dims[2]; z++) {
        for (int32_t y = 0; y < dims[1]; y++) {
            const int32_t row_rank = shares[1][y].rank + shares[2][z].rank;
            const int32_t row_first = shares[1][y].first + shares[2][z].first;
            for (int32_t x = 0; x < dims[0]; x++, chip++) {
                const int32_t rank = shares[0][x].rank + row_rank;
                const int32_t first = shares[0][x].first + row_first;
                const int32_t number = first == chip ? count++ : group->group_of[first];
                group->group_of[chip] = number;
                group->rank_of[chip] = rank;
                group->chip_of[(size_t)number * (size_t)group->size + (size_t)rank] = chip;
            }
        }
    }
}

pod_status pod_group_init_dims(pod_group *group, const pod_slice *slice, const pod_group_dim *dims,
                               int ndims, pod_error *err)
{
    memset(group, 0, sizeof *group);
    if (ndims > POD_GROUP_DIMS_MAX) {
        return pod_fail(err, POD_E_INVALID, "a group of %d dims; at most %d", ndims,
                        POD_GROUP_DIMS_MAX);
    }
    POD_TRY(dims_take(group, slice, dims, ndims, err));
    POD_TRY(arrays_new(group, slice->nchips, err));
    const int32_t *length = slice->dims;
    axis_share *shares =
        malloc(((size_t)length[0] + (size_t)length[1] + (size_t)length[2]) * sizeof *shares);
    if (shares == NULL) {
        pod_group_fini(group);
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups of %d chips",
                        (int)slice->nchips);
    }
    axis_share *const of_axis[POD_AXES] = {shares, shares + length[0],
                                           shares + length[0] + length[1]};
    int32_t pitch = 1;
    for (int axis = 0; axis < POD_AXES; axis++) {
        shares_fill(group, axis, length[axis], pitch, of_axis[axis]);
        pitch *= length[axis];
    }
    ranks_fill(group, length, (const axis_share *const *)of_axis);
    free(shares);
    return POD_OK;
}

pod_status pod_group_init_axes(pod_group *group, const pod_slice *slice, unsigned axes,
                               pod_error *err)
{
    pod_group_dim dims[POD_AXES];
    int ndims = 0;
    memset(group, 0, sizeof *group);
    for (int a = 0; a < POD_AXES; a++) {
        if ((axes >> a & 1U) == 0) {
            continue;
        }
        if (a >= slice->naxes) {
            return pod_fail(err, POD_E_INVALID, "%s has no axis %c; it has %d axes", slice->name,
                            'x' + a, slice->naxes);
        }
        dims[ndims++] = (pod_group_dim){.axis = a, .size = slice->dims[a], .stride = 1};
    }
    return pod_group_init_dims(group, slice, dims, ndims, err);
}

/* Number the lists by their smallest chip and fill chip_of; group_of holds the list of each chip. */
static void lists_renumber(pod_group *group, const int32_t *chips)
{
    int32_t n = group->count * group->size;
    int32_t *number_of_list = group->chip_of; /* free until the lists are copied */
    for (int32_t list = 0; list < group->count; list++) {
        number_of_list[list] = -1;
    }
    int32_t count = 0;
    for (int32_t chip = 0; chip < group->chips; chip++) {
        int32_t list = group->group_of[chip];
        if (list < 0) {
            continue;
        }
        if (number_of_list[list] < 0) {
            number_of_list[list] = count++;
        }
        group->group_of[chip] = number_of_list[list];
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t chip = chips[i];
        group->rank_of[chip] = i % group->size;
    }
    for (int32_t chip = 0; chip < group->chips; chip++) {
        if (group->group_of[chip] >= 0) {
            group->chip_of[group->group_of[chip] * group->size + group->rank_of[chip]] = chip;
        }
    }
}

/* Groups as they stand; `all`: of all chips. */
static pod_status lists_take(pod_group *group, const pod_slice *slice, const int32_t *chips,
                             int32_t count, int32_t size, bool all, pod_error *err)
{
    memset(group, 0, sizeof *group);
    const int64_t listed = (int64_t)count * size;
    if (count < 1 || size < 1 || (all ? listed != slice->nchips : listed > slice->nchips)) {
        return pod_fail(err, POD_E_INVALID, "%d groups of %d chips; %s has %d chips", (int)count,
                        (int)size, slice->name, (int)slice->nchips);
    }
    group->size = size;
    group->count = count;
    POD_TRY(arrays_new(group, slice->nchips, err));
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        group->group_of[chip] = -1;
        group->rank_of[chip] = -1;
    }
    for (int32_t i = 0; i < count * size; i++) {
        bool exists = chips[i] >= 0 && chips[i] < slice->nchips;
        if (!exists || group->group_of[chips[i]] >= 0) {
            pod_group_fini(group);
            return pod_fail(err, POD_E_INVALID, "chip %d is %s; each of the chips 0 to %d once",
                            (int)chips[i], exists ? "in two places" : "not in the slice",
                            (int)slice->nchips - 1);
        }
        group->group_of[chips[i]] = i / size;
    }
    lists_renumber(group, chips);
    return POD_OK;
}

pod_status pod_group_init_lists(pod_group *group, const pod_slice *slice, const int32_t *chips,
                                int32_t count, int32_t size, pod_error *err)
{
    return lists_take(group, slice, chips, count, size, true, err);
}

/* ---- sets of chips ---- */

/* Which coordinates the chips of the first group have on an axis, from the least on: seen[coordinate - least]. */
static int32_t axis_coords(const pod_group *lists, const pod_slice *slice, int axis, bool *seen)
{
    int32_t distinct = 0;
    int32_t least = INT32_MAX;
    int32_t coords[POD_AXES];
    memset(seen, 0, (size_t)slice->dims[axis] * sizeof *seen);
    for (int32_t rank = 0; rank < lists->size; rank++) {
        pod_slice_coords(slice, lists->chip_of[rank], coords);
        least = coords[axis] < least ? coords[axis] : least;
    }
    for (int32_t rank = 0; rank < lists->size; rank++) {
        pod_slice_coords(slice, lists->chip_of[rank], coords);
        distinct += seen[coords[axis] - least] ? 0 : 1;
        seen[coords[axis] - least] = true;
    }
    return distinct;
}

/* The smallest coordinate of at least `from` that is seen, or `end`. */
static int32_t next_seen(const bool *seen, int32_t from, int32_t end)
{
    while (from < end && !seen[from]) {
        from++;
    }
    return from;
}

/* Dims of one axis, from the smallest stride: each is the longest run of multiples of its stride.
 * What they make is compared with the lists afterwards. @return dims added, or -1 if there is no room */
static int axis_dims(const bool *seen, int32_t distinct, int axis, int32_t axis_size,
                     pod_group_dim *dims, int room)
{
    int ndims = 0;
    int32_t below = 1; /* coordinates that the dims so far make */
    int32_t span = 1;
    while (below < distinct) {
        const int32_t stride = next_seen(seen, span, axis_size);
        if (stride == axis_size || ndims == room) {
            return -1;
        }
        int32_t size = 1;
        while ((int64_t)size * stride < axis_size && seen[size * stride]) {
            size++;
        }
        dims[ndims++] = (pod_group_dim){.axis = axis, .size = size, .stride = stride};
        span = size * stride;
        below *= size;
    }
    return below == distinct ? ndims : -1;
}

static pod_status find_dims(const pod_group *lists, const pod_slice *slice, pod_group_dim *dims,
                            int *ndims, pod_error *err)
{
    *ndims = 0;
    for (int a = 0; a < slice->naxes && *ndims >= 0; a++) {
        bool *seen = malloc((size_t)slice->dims[a] * sizeof *seen);
        if (seen == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for the groups of %d chips",
                            (int)slice->nchips);
        }
        const int32_t distinct = axis_coords(lists, slice, a, seen);
        const int more = axis_dims(seen, distinct, a, slice->dims[a], dims + *ndims,
                                   POD_GROUP_DIMS_MAX - *ndims);
        *ndims = more < 0 ? -1 : *ndims + more;
        free(seen);
    }
    return POD_OK;
}

/* Are the lists groups of the grid? Both number groups by their smallest chip, so of all chips equal groups have equal
 * numbers. */
static bool grid_has(const pod_group *grid, const pod_group *lists)
{
    for (int32_t g = 0; g < lists->count; g++) {
        const int32_t *chips = lists->chip_of + (ptrdiff_t)g * lists->size;
        for (int32_t rank = 1; rank < lists->size; rank++) {
            if (grid->group_of[chips[rank]] != grid->group_of[chips[0]]) {
                return false;
            }
        }
    }
    return grid->size == lists->size;
}

static pod_status sets_take(pod_group *group, const pod_slice *slice, const int32_t *chips,
                            int32_t count, int32_t size, bool all, pod_error *err)
{
    pod_group_dim dims[POD_GROUP_DIMS_MAX];
    int ndims = 0;
    pod_group grid = {.ndims = 0};
    POD_TRY(lists_take(group, slice, chips, count, size, all, err));
    pod_status st = find_dims(group, slice, dims, &ndims, err);
    const pod_status made = st == POD_OK && ndims > 0
                                ? pod_group_init_dims(&grid, slice, dims, ndims, NULL)
                                : POD_E_INVALID;
    if (st != POD_OK || made == POD_E_NOMEM) {
        pod_group_fini(group);
        return st != POD_OK ? st
                            : pod_fail(err, POD_E_NOMEM, "no memory for the groups of %d chips",
                                       (int)slice->nchips);
    }
    if (made == POD_OK && grid_has(&grid, group)) {
        pod_group_fini(group);
        *group = grid;
    } else {
        pod_group_fini(&grid);
    }
    return POD_OK;
}

pod_status pod_group_init_sets(pod_group *group, const pod_slice *slice, const int32_t *chips,
                               int32_t count, int32_t size, pod_error *err)
{
    return sets_take(group, slice, chips, count, size, true, err);
}

pod_status pod_group_init_some(pod_group *group, const pod_slice *slice, const int32_t *chips,
                               int32_t count, int32_t size, bool ordered, pod_error *err)
{
    return ordered ? lists_take(group, slice, chips, count, size, false, err)
                   : sets_take(group, slice, chips, count, size, false, err);
}

/* ---- several slices ---- */

/* A copy of the groups of one slice, owned by the group that spans slices. */
static pod_status inside_copy(pod_group *group, const pod_group *inside, pod_error *err)
{
    const int32_t nchips = pod_group_chips(inside);
    const size_t bytes = (size_t)nchips * sizeof *inside->chip_of;
    group->inside = malloc(sizeof *group->inside);
    if (!group->inside) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups of %d chips", (int)nchips);
    }
    *group->inside = *inside;
    POD_TRY(arrays_new(group->inside, nchips, err));
    memcpy(group->inside->chip_of, inside->chip_of, bytes);
    memcpy(group->inside->group_of, inside->group_of, bytes);
    memcpy(group->inside->rank_of, inside->rank_of, bytes);
    return POD_OK;
}

/* Group and rank of every chip of slice `slice`, the place-th of the slices in list `list`. */
static void slice_fill(pod_group *group, int32_t slice, int32_t list, int32_t place)
{
    const pod_group *inside = group->inside;
    const int32_t nchips = pod_group_chips(inside);
    for (int32_t chip = 0; chip < nchips; chip++) {
        group->group_of[slice * nchips + chip] = list * inside->count + inside->group_of[chip];
        group->rank_of[slice * nchips + chip] = place * inside->size + inside->rank_of[chip];
    }
}

pod_status pod_group_init_slices(pod_group *group, const pod_group *inside, int32_t nslices,
                                 const int32_t *slice_list, int32_t span, pod_error *err)
{
    memset(group, 0, sizeof *group);
    if (span < 2 || nslices < span || nslices % span != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "groups over %d of %d slices; the number must divide the slices", (int)span,
                        (int)nslices);
    }
    const int64_t all = (int64_t)nslices * pod_group_chips(inside);
    if (all > INT32_MAX) {
        return pod_fail(err, POD_E_RANGE, "%lld chips in %d slices; use fewer", (long long)all,
                        (int)nslices);
    }
    *group = (pod_group){
        .size = inside->size * span, .count = inside->count * (nslices / span), .slices = span};
    pod_status st = inside_copy(group, inside, err);
    POD_THEN(st, arrays_new(group, (int32_t)all, err));
    if (st != POD_OK) {
        pod_group_fini(group);
        return st;
    }
    memset(group->group_of, -1, (size_t)all * sizeof *group->group_of);
    for (int32_t i = 0; i < nslices; i++) {
        const int32_t slice = slice_list ? slice_list[i] : i;
        const bool exists = slice >= 0 && slice < nslices;
        if (!exists || group->group_of[slice * pod_group_chips(inside)] >= 0) {
            pod_group_fini(group);
            return pod_fail(err, POD_E_INVALID, "slice %d is %s; each of the slices 0 to %d once",
                            (int)slice, exists ? "in two places" : "not there", (int)nslices - 1);
        }
        slice_fill(group, slice, i / span, i % span);
    }
    for (int32_t chip = 0; chip < (int32_t)all; chip++) {
        const size_t first = (size_t)group->group_of[chip] * (size_t)group->size;
        group->chip_of[first + (size_t)group->rank_of[chip]] = chip;
    }
    return POD_OK;
}

pod_status pod_axes_parse(const char *text, const pod_slice *slice, unsigned *axes, pod_error *err)
{
    unsigned mask = 0;
    bool none = strcmp(text, "none") == 0;
    for (const char *c = none ? "" : text; *c != '\0'; c++) {
        unsigned bit = *c >= 'x' && *c <= 'z' ? 1U << (*c - 'x') : 0U;
        if (bit == 0 || (mask & bit) != 0) {
            return pod_fail(err, POD_E_USAGE,
                            "\"%s\" does not name axes; write none or letters out of x, y, z, "
                            "each once",
                            text);
        }
        if (*c - 'x' >= slice->naxes) {
            return pod_fail(err, POD_E_INVALID, "%s has no axis %c; it has %s", slice->name, *c,
                            slice->naxes == 2 ? "x and y" : "x, y and z");
        }
        mask |= bit;
    }
    if (!none && mask == 0) {
        return pod_fail(err, POD_E_USAGE, "no axes given; write none or letters out of x, y, z");
    }
    *axes = mask;
    return POD_OK;
}

const char *pod_axes_name(unsigned axes, char buf[8])
{
    size_t used = 0;
    for (int a = 0; a < POD_AXES; a++) {
        if ((axes >> a & 1U) != 0) {
            buf[used++] = (char)('x' + a);
        }
    }
    buf[used] = '\0';
    if (used == 0) {
        memcpy(buf, "none", sizeof "none");
    }
    return buf;
}

/* Bit a is set when chips of the first group differ on axis a. */
static unsigned differing_axes(const pod_slice *slice, const pod_group *group)
{
    int32_t first[POD_AXES];
    unsigned axes = 0;
    pod_slice_coords(slice, group->chip_of[0] % slice->nchips, first);
    for (int32_t rank = 1; rank < group->size; rank++) {
        int32_t coords[POD_AXES];
        pod_slice_coords(slice, group->chip_of[rank] % slice->nchips, coords);
        for (int a = 0; a < POD_AXES; a++) {
            axes |= coords[a] != first[a] ? 1U << a : 0U;
        }
    }
    return axes;
}

int pod_group_links(const pod_slice *slice, const pod_group *group)
{
    const unsigned axes = differing_axes(slice, group);
    int links = 0;
    for (int axis = 0; axis < POD_AXES; axis++) {
        const bool driven = (axes >> axis & 1U) != 0;
        links += !driven ? 0 : slice->dims[axis] > 2 ? 2 : 1;
    }
    return links;
}
