/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/bounds/span.h"

#include <stdlib.h>
#include <string.h>

static int32_t chip_of(const pod_span *span, int32_t group, int32_t rank)
{
    const pod_group *g = span->request->group;
    return g->chip_of[(int64_t)group * g->size + rank];
}

/* True when blocks of `size` positions along an axis hold every group. */
static bool blocks_hold(const pod_span *span, int axis, int32_t size)
{
    const pod_group *group = span->request->group;
    for (int32_t g = 0; g < group->count; ++g) {
        int32_t first[POD_AXES];
        pod_slice_coords(span->request->slice, chip_of(span, g, 0), first);
        for (int32_t r = 1; r < group->size; ++r) {
            int32_t at[POD_AXES];
            pod_slice_coords(span->request->slice, chip_of(span, g, r), at);
            if (at[axis] / size != first[axis] / size) {
                return false;
            }
        }
    }
    return true;
}

/* The dims of a grid nest, so that its groups fill blocks as long as their longest dim reaches. */
static void find_grid_extents(pod_span *span)
{
    const pod_group *group = span->request->group;
    for (int a = 0; a < POD_AXES; a++) {
        span->extent[a] = 1;
    }
    for (int i = 0; i < group->ndims; i++) {
        const pod_group_dim *dim = &group->dim[i];
        const int32_t reach = dim->size * dim->stride;
        span->extent[dim->axis] = reach > span->extent[dim->axis] ? reach : span->extent[dim->axis];
    }
}

static void find_extents(pod_span *span)
{
    for (int a = 0; a < POD_AXES; ++a) {
        const int32_t length = span->request->slice->dims[a];
        int32_t size = 1;
        while (size < length && (length % size != 0 || !blocks_hold(span, a, size))) {
            ++size;
        }
        span->extent[a] = size;
    }
}

static bool is_whole(const pod_span *span)
{
    return memcmp(span->extent, span->request->slice->dims, sizeof span->extent) == 0;
}

static int32_t box_at(const pod_span *span, const int32_t coords[POD_AXES])
{
    int32_t box = 0;
    for (int a = POD_AXES - 1; a >= 0; --a) {
        box = box * (span->request->slice->dims[a] / span->extent[a]) + coords[a] / span->extent[a];
    }
    return box;
}

int32_t pod_span_box(const pod_span *span, int32_t group)
{
    return span->box_of[chip_of(span, group, 0)];
}

static bool path_stays(const pod_span *span, const pod_path *path, int32_t chip)
{
    const int32_t box = span->box_of[chip];
    for (int32_t s = 0; s < path->nsegments; ++s) {
        for (int32_t h = 0; h < path->hops[s]; ++h) {
            chip = pod_router_neighbor(span->router, chip, path->direction[s]);
            if (span->box_of[chip] != box) {
                return false;
            }
        }
    }
    return true;
}

/* Whether all minimal routes inside the box of chip 0 stay there. On a plain slice they do. On a
 * twisted one the way over a wrap can be as short; all its boxes are the same. */
static bool routes_stay(const pod_span *span)
{
    const pod_slice *slice = span->request->slice;
    if (!slice->twisted || is_whole(span)) {
        return true;
    }
    if (slice->nchips / span->nboxes > POD_SPAN_SEARCH_MAX / 4) {
        return false;
    }
    pod_path paths[POD_ROUTE_PATHS_MAX];
    for (int32_t a = 0; a < slice->nchips; ++a) {
        for (int32_t b = 0; b < slice->nchips; ++b) {
            if (span->box_of[a] != 0 || span->box_of[b] != 0) {
                continue;
            }
            const int count = pod_router_paths(span->router, a, b, paths);
            for (int p = 0; p < count; ++p) {
                if (!path_stays(span, &paths[p], a)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* Neighbours and rates of a chip's links. Inside the slice a neighbour is `pitch` chips away. */
static void find_links_of(pod_span *span, int32_t chip, const int32_t at[POD_AXES])
{
    const pod_slice *slice = span->request->slice;
    int32_t *next = &span->next[chip * POD_DIRECTIONS];
    int32_t pitch = 1;
    for (int axis = 0; axis < POD_AXES; axis++) {
        const int plus = 2 * axis;
        next[plus] =
            at[axis] + 1 < slice->dims[axis] ? chip + pitch : pod_slice_neighbor(slice, chip, plus);
        next[plus + 1] = at[axis] > 0 ? chip - pitch : pod_slice_neighbor(slice, chip, plus + 1);
        pitch *= slice->dims[axis];
    }
    for (int d = 0; d < POD_DIRECTIONS && span->part != NULL; d++) {
        const double slowness = next[d] >= 0 ? pod_slice_link_slowness(slice, chip, d) : 0.0;
        span->part[chip * POD_DIRECTIONS + d] = slowness > 0.0 ? 1.0 / slowness : 0.0;
    }
}

/* Boxes and links of all chips. */
static void find_chips(pod_span *span)
{
    const int32_t *dims = span->request->slice->dims;
    int32_t at[POD_AXES];
    int32_t chip = 0;
    for (at[2] = 0; at[2] < dims[2]; at[2]++) {
        for (at[1] = 0; at[1] < dims[1]; at[1]++) {
            for (at[0] = 0; at[0] < dims[0]; at[0]++, chip++) {
                span->box_of[chip] = box_at(span, at);
                find_links_of(span, chip, at);
            }
        }
    }
}

static bool stays_in_box(const pod_span *span, int32_t chip, int direction)
{
    const int32_t next = span->next[chip * POD_DIRECTIONS + direction];
    return next >= 0 && span->box_of[next] == span->box_of[chip];
}

/* Boxes whose messages stay in them: a dead link sends some around. */
static void close_boxes(pod_span *span)
{
    const pod_slice *slice = span->request->slice;
    const bool stay = routes_stay(span);
    for (int32_t b = 0; b < span->nboxes; ++b) {
        span->closed_in[b] = stay;
    }
    for (int32_t chip = 0; chip < slice->nchips && span->part != NULL; ++chip) {
        for (int d = 0; d < POD_DIRECTIONS; ++d) {
            if (stays_in_box(span, chip, d) && !(pod_span_part(span, chip, d) > 0.0)) {
                span->closed_in[span->box_of[chip]] = false;
            }
        }
    }
}

static void count_links(pod_span *span)
{
    for (int32_t chip = 0; chip < span->request->slice->nchips; ++chip) {
        const int32_t box = span->box_of[chip];
        for (int d = 0; d < POD_DIRECTIONS; ++d) {
            const double part = pod_span_part(span, chip, d);
            const bool inside = stays_in_box(span, chip, d);
            span->all_links += part;
            span->box_links[box] += inside ? part : 0.0;
            span->chip_links[chip] += inside || !span->closed_in[box] ? part : 0.0;
        }
    }
}

pod_status pod_span_init(pod_span *span, const pod_coll_request *request, const pod_router *router,
                         pod_error *err)
{
    const pod_slice *slice = request->slice;
    *span = (pod_span){.request = request, .router = router, .nboxes = 1};
    if (request->group->ndims > 0) {
        find_grid_extents(span);
    } else {
        find_extents(span);
    }
    for (int a = 0; a < POD_AXES; ++a) {
        span->nboxes *= slice->dims[a] / span->extent[a];
    }
    const size_t chips = (size_t)slice->nchips;
    span->next = calloc(chips * POD_DIRECTIONS, sizeof *span->next);
    span->part = slice->nfaults > 0 ? calloc(chips * POD_DIRECTIONS, sizeof *span->part) : NULL;
    span->box_of = calloc(chips, sizeof *span->box_of);
    span->chip_links = calloc(chips, sizeof *span->chip_links);
    span->closed_in = calloc((size_t)span->nboxes, sizeof *span->closed_in);
    span->box_links = calloc((size_t)span->nboxes, sizeof *span->box_links);
    if (!span->next || (!span->part && slice->nfaults > 0) || !span->box_of || !span->chip_links
        || !span->closed_in || !span->box_links) {
        pod_span_fini(span);
        return pod_fail(err, POD_E_NOMEM, "no memory for the bounds on %d chips; use fewer chips",
                        (int)slice->nchips);
    }
    find_chips(span);
    close_boxes(span);
    count_links(span);
    bool dead = false;
    for (int f = 0; f < slice->nfaults; ++f) {
        dead = dead || slice->faults[f].kind == POD_FAULT_LINK_DEAD;
    }
    span->searched = slice->twisted || dead;
    return POD_OK;
}

void pod_span_fini(pod_span *span)
{
    free(span->part);
    free(span->next);
    free(span->box_links);
    free(span->closed_in);
    free(span->chip_links);
    free(span->box_of);
    *span = (pod_span){0};
}

/* The positions of a group on an axis: every so many chips, all the way round, or both ends of one cable. */
static bool axis_is_even(const pod_span *span, int axis)
{
    const pod_slice *slice = span->request->slice;
    const pod_group *group = span->request->group;
    int32_t ranks = 1;
    int32_t stride = slice->dims[axis];
    for (int i = 0; i < group->ndims; i++) {
        if (group->dim[i].axis == axis) {
            ranks *= group->dim[i].size;
            stride = group->dim[i].stride < stride ? group->dim[i].stride : stride;
        }
    }
    const bool whole = ranks * stride == slice->dims[axis];
    return ranks == 1 || (whole && (slice->wrap[axis] || slice->dims[axis] == 2));
}

bool pod_span_periods(const pod_span *span, int32_t period[POD_AXES])
{
    const pod_slice *slice = span->request->slice;
    const bool grid = span->request->group->ndims > 0;
    bool even = true;
    for (int axis = 0; axis < POD_AXES; axis++) {
        const bool twisted = pod_slice_axis_twisted(slice, axis) && !is_whole(span);
        const bool same = span->extent[axis] == 1 || (grid && !twisted && axis_is_even(span, axis));
        period[axis] = slice->nfaults > 0 ? slice->dims[axis] : span->extent[axis];
        period[axis] = slice->nfaults == 0 && same ? 1 : period[axis];
        even = even && period[axis] == 1;
    }
    return even;
}

/* ---- distances ---- */

pod_status pod_span_distances_init(pod_span_distances *distances, const pod_span *span,
                                   pod_error *err)
{
    const pod_slice *slice = span->request->slice;
    const size_t n = (size_t)span->request->group->size;
    int32_t longest = 1;
    for (int a = 0; a < POD_AXES; ++a) {
        longest = slice->dims[a] > longest ? slice->dims[a] : longest;
    }
    *distances = (pod_span_distances){
        .ecc_hops = calloc(n, sizeof *distances->ecc_hops),
        .sum_hops = calloc(n, sizeof *distances->sum_hops),
        .at = calloc(3 * (size_t)longest, sizeof *distances->at),
    };
    if (!distances->ecc_hops || !distances->sum_hops || !distances->at) {
        pod_span_distances_fini(distances);
        return pod_fail(err, POD_E_NOMEM, "no memory for the distances of %zu chips; use fewer", n);
    }
    return POD_OK;
}

void pod_span_distances_fini(pod_span_distances *distances)
{
    free(distances->at);
    free(distances->sum_hops);
    free(distances->ecc_hops);
    *distances = (pod_span_distances){0};
}

static int32_t hops_between(const pod_span *span, int32_t group, int32_t a, int32_t b)
{
    return pod_router_hops(span->router, chip_of(span, group, a), chip_of(span, group, b));
}

/* One rank against all others, pair by pair. @return a rank farthest from it */
static int32_t measure_rank(const pod_span *span, int32_t group, int32_t rank,
                            pod_span_distances *out)
{
    int32_t far = rank;
    out->ecc_hops[rank] = 0;
    out->sum_hops[rank] = 0.0;
    for (int32_t other = 0; other < span->request->group->size; ++other) {
        if (other == rank) {
            continue;
        }
        const int32_t hops = hops_between(span, group, rank, other);
        out->sum_hops[rank] += (double)hops;
        out->closest_hops = hops < out->closest_hops ? hops : out->closest_hops;
        if (hops > out->ecc_hops[rank]) {
            out->ecc_hops[rank] = hops;
            far = other;
        }
    }
    return far;
}

static int32_t axis_distance(const pod_slice *slice, int axis, int32_t a, int32_t b)
{
    const int32_t direct = a < b ? b - a : a - b;
    const int32_t around = slice->dims[axis] - direct;
    return slice->wrap[axis] && around < direct ? around : direct;
}

/* Plain slices: distances are sums over the axes, so it is enough to know how many ranks have each
 * coordinate. The sums hold for any group, the eccentricities for grids. */
static void measure_axis(const pod_span *span, int32_t group, int axis, pod_span_distances *out)
{
    const pod_slice *slice = span->request->slice;
    const int32_t n = span->request->group->size;
    const int32_t length = slice->dims[axis];
    int32_t *ranks_at = out->at;
    int32_t *ecc_at = ranks_at + length;
    int32_t *sum_at = ecc_at + length;
    int32_t coords[POD_AXES];
    memset(ranks_at, 0, 3 * (size_t)length * sizeof *ranks_at);
    for (int32_t r = 0; r < n; ++r) {
        pod_slice_coords(slice, chip_of(span, group, r), coords);
        ++ranks_at[coords[axis]];
    }
    for (int32_t a = 0; a < length; ++a) {
        for (int32_t b = 0; b < length && ranks_at[a] > 0; ++b) {
            const int32_t hops = ranks_at[b] > 0 ? axis_distance(slice, axis, a, b) : 0;
            ecc_at[a] = hops > ecc_at[a] ? hops : ecc_at[a];
            sum_at[a] += hops * ranks_at[b];
        }
    }
    for (int32_t r = 0; r < n; ++r) {
        pod_slice_coords(slice, chip_of(span, group, r), coords);
        out->ecc_hops[r] += ecc_at[coords[axis]];
        out->sum_hops[r] += (double)sum_at[coords[axis]];
    }
}

static void measure_axes(const pod_span *span, int32_t group, pod_span_distances *out)
{
    const int32_t n = span->request->group->size;
    memset(out->ecc_hops, 0, (size_t)n * sizeof *out->ecc_hops);
    memset(out->sum_hops, 0, (size_t)n * sizeof *out->sum_hops);
    for (int a = 0; a < POD_AXES; ++a) {
        measure_axis(span, group, a, out);
    }
}

/* Too many ranks to look at every pair. */
static void measure_roughly(const pod_span *span, int32_t group, pod_span_distances *out)
{
    const pod_slice *slice = span->request->slice;
    const int32_t n = span->request->group->size;
    const bool symmetric = pod_slice_is_lattice(slice) && slice->nfaults == 0 && n == slice->nchips;
    const int32_t far = measure_rank(span, group, 0, out);
    const double sum = symmetric ? out->sum_hops[0] : (double)(n - 1);
    measure_rank(span, group, far, out);
    const int32_t farthest = out->ecc_hops[far];
    if (!slice->twisted) {
        measure_axes(span, group, out);
    }
    for (int32_t r = 0; r < n; ++r) {
        out->ecc_hops[r] = symmetric || r == far ? farthest : (farthest + 1) / 2;
        out->sum_hops[r] = slice->twisted ? sum : out->sum_hops[r];
    }
    out->closest_hops = 1;
}

/* All chips of a healthy slice whose axes all close: each is as far from the others. */
static bool is_same_from_all(const pod_span *span)
{
    const pod_slice *slice = span->request->slice;
    bool closed = true;
    for (int axis = 0; axis < POD_AXES; axis++) {
        closed = closed && (slice->wrap[axis] || slice->dims[axis] == 1);
    }
    return closed && slice->nfaults == 0 && span->request->group->size == slice->nchips;
}

void pod_span_measure(const pod_span *span, int32_t group, pod_span_distances *distances)
{
    const pod_group *g = span->request->group;
    const int32_t n = g->size;
    distances->closest_hops = INT32_MAX;
    if (!span->searched && g->ndims > 0) {
        measure_axes(span, group, distances);
        for (int d = 0; d < g->ndims; ++d) {
            const pod_group_dim *dim = &g->dim[d];
            if (dim->size > 1 && dim->stride < distances->closest_hops) {
                distances->closest_hops = dim->stride;
            }
        }
    } else if (n <= POD_SPAN_SEARCH_MAX) {
        measure_rank(span, group, 0, distances);
        const bool same = is_same_from_all(span);
        for (int32_t r = 1; r < n; ++r) {
            if (same) {
                distances->ecc_hops[r] = distances->ecc_hops[0];
                distances->sum_hops[r] = distances->sum_hops[0];
            } else {
                measure_rank(span, group, r, distances);
            }
        }
    } else {
        measure_roughly(span, group, distances);
    }
    distances->farthest_hops = 0;
    distances->radius_hops = INT32_MAX;
    for (int32_t r = 0; r < n; ++r) {
        const int32_t ecc = distances->ecc_hops[r];
        distances->farthest_hops = ecc > distances->farthest_hops ? ecc : distances->farthest_hops;
        distances->radius_hops = ecc < distances->radius_hops ? ecc : distances->radius_hops;
    }
}
