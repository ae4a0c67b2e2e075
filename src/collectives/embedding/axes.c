/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/axes.h"

#include <math.h>
#include <stdlib.h>

/* The dims of the group that make up one axis, the one with the smallest stride first. */
typedef struct axis_dims {
    int ndims;
    int dim[POD_GROUP_DIMS_MAX];
} axis_dims;

static pod_status axes_allocate(pod_coll_axes *axes, pod_error *err)
{
    const size_t entries = (size_t)axes->nranks * (size_t)(axes->naxes ? axes->naxes : 1);
    axes->position = calloc(entries, sizeof *axes->position);
    axes->hop = calloc(2 * entries, sizeof *axes->hop);
    if (!axes->position || !axes->hop) {
        pod_coll_axes_fini(axes);
        return pod_fail(err, POD_E_NOMEM, "no memory for the rings of %d chips; use fewer chips",
                        (int)axes->nranks);
    }
    return POD_OK;
}

void pod_coll_axes_fini(pod_coll_axes *axes)
{
    free(axes->hop);
    free(axes->position);
    axes->hop = NULL;
    axes->position = NULL;
}

/* Find the dim that continues an axis: same physical axis, stride = what the axis covers so far. */
static int continuation(const pod_group *group, int physical, int32_t stride, unsigned used)
{
    for (int d = 0; d < group->ndims; ++d) {
        const pod_group_dim *dim = &group->dim[d];
        if ((used >> d & 1U) == 0 && dim->size > 1 && dim->axis == physical
            && dim->stride == stride) {
            return d;
        }
    }
    return -1;
}

/* Start of an axis: the unused dim with the smallest stride. */
static int innermost(const pod_group *group, unsigned used)
{
    int best = -1;
    for (int d = 0; d < group->ndims; ++d) {
        if ((used >> d & 1U) == 0 && group->dim[d].size > 1
            && (best < 0 || group->dim[d].stride < group->dim[best].stride)) {
            best = d;
        }
    }
    return best;
}

static void join_dims(pod_coll_axes *axes, const pod_group *group, axis_dims *joined)
{
    unsigned used = 0;
    for (int d = innermost(group, used); d >= 0; d = innermost(group, used)) {
        pod_coll_axis *axis = &axes->axis[axes->naxes];
        axis_dims *dims = &joined[axes->naxes++];
        const int physical = group->dim[d].axis;
        *axis = (pod_coll_axis){.length = 1, .stride = group->dim[d].stride, .physical = physical};
        for (int next = d; next >= 0;
             next = continuation(group, physical, axis->stride * axis->length, used)) {
            used |= 1U << next;
            dims->dim[dims->ndims++] = next;
            axis->length *= group->dim[next].size;
            axis->closed = group->dim[next].closed;
        }
    }
}

/* Which of two axes comes first whatever they are called, so that permuted axes are treated the same. */
static bool comes_before(const pod_coll_axis *a, const pod_coll_axis *b)
{
    if (a->length != b->length) {
        return a->length < b->length;
    }
    return a->closed != b->closed ? a->closed : a->stride < b->stride;
}

/* Insertion keeps the order of equals. */
static void axes_order(pod_coll_axes *axes, axis_dims *joined)
{
    for (int a = 1; a < axes->naxes; ++a) {
        const pod_coll_axis axis = axes->axis[a];
        const axis_dims dims = joined[a];
        int at = a;
        for (; at > 0 && comes_before(&axis, &axes->axis[at - 1]); --at) {
            axes->axis[at] = axes->axis[at - 1];
            joined[at] = joined[at - 1];
        }
        axes->axis[at] = axis;
        joined[at] = dims;
    }
}

static bool link_is_dead(const pod_coll_request *request, int32_t rank, int direction)
{
    const pod_group *group = request->group;
    for (int32_t g = 0; g < group->count && request->slice->nfaults > 0; ++g) {
        const int32_t chip = group->chip_of[(int64_t)g * group->size + rank];
        if (!(pod_slice_link_slowness(request->slice, chip, direction) > 0.0)) {
            return true;
        }
    }
    return false;
}

/* The rank one position further; group 0 stands for all, which are translations of it. */
static pod_coll_hop hop_along(const pod_coll_request *request, const pod_coll_axes *axes, int axis,
                              int32_t rank, int minus)
{
    const pod_group *group = request->group;
    const pod_coll_axis *line = &axes->axis[axis];
    const int32_t at = axes->position[(int64_t)rank * axes->naxes + axis];
    if (!line->closed && at == (minus ? 0 : line->length - 1)) {
        return (pod_coll_hop){.rank = -1, .direction = -1};
    }
    const int direction = 2 * line->physical + minus;
    int32_t chip = group->chip_of[rank];
    for (int32_t h = 0; h < line->stride; ++h) {
        chip = pod_slice_neighbor(request->slice, chip, direction);
        POD_ASSERT(chip >= 0);
    }
    POD_ASSERT(group->group_of[chip] == group->group_of[group->chip_of[rank]]);
    const bool one_link = line->stride == 1 && !link_is_dead(request, rank, direction);
    return (pod_coll_hop){.rank = group->rank_of[chip],
                          .direction = one_link ? (int8_t)direction : -1};
}

pod_status pod_coll_axes_init(pod_coll_axes *axes, const pod_coll_request *request, pod_error *err)
{
    const pod_group *group = request->group;
    *axes = (pod_coll_axes){.nranks = group->size};
    if (group->ndims == 0 && group->size > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "these groups are no grid of chips, so they have no axes; use ring");
    }
    axis_dims joined[POD_GROUP_DIMS_MAX] = {{0}};
    join_dims(axes, group, joined);
    if (pod_slice_is_lattice(request->slice) && group->size == request->slice->nchips) {
        axes->quotient = true;
        for (int a = 0; a < axes->naxes; ++a) {
            axes->axis[a].closed = true;
        }
    } else {
        axes_order(axes, joined);
    }
    POD_TRY(axes_allocate(axes, err));
    for (int32_t rank = 0; rank < group->size; ++rank) {
        pod_coll_place place;
        pod_coll_place_make(group, rank, &place);
        for (int a = 0; a < axes->naxes; ++a) {
            int32_t position = 0;
            for (int k = joined[a].ndims - 1; k >= 0; --k) {
                const int d = joined[a].dim[k];
                position = position * group->dim[d].size + place.index[d];
            }
            axes->position[(int64_t)rank * axes->naxes + a] = position;
            for (int minus = 0; minus < 2; ++minus) {
                axes->hop[((int64_t)rank * axes->naxes + a) * 2 + minus] =
                    hop_along(request, axes, a, rank, minus);
            }
        }
    }
    return POD_OK;
}

/* The one link from a rank to another, the same in every group; -1 = routed. */
static int8_t direction_between(const pod_coll_request *request, int32_t from, int32_t to)
{
    const pod_group *group = request->group;
    for (int direction = 0; direction < 2 * request->slice->naxes; ++direction) {
        bool all = !link_is_dead(request, from, direction);
        for (int32_t g = 0; g < group->count && all; ++g) {
            const int32_t *chip_of = group->chip_of + (int64_t)g * group->size;
            all = pod_slice_neighbor(request->slice, chip_of[from], direction) == chip_of[to];
        }
        if (all) {
            return (int8_t)direction;
        }
    }
    return -1;
}

pod_status pod_coll_axes_init_cycles(pod_coll_axes *axes, const pod_coll_request *request,
                                     const int32_t *cycle, int ncycles, pod_error *err)
{
    const int32_t n = request->group->size;
    *axes = (pod_coll_axes){.nranks = n, .naxes = n > 1 ? ncycles : 0};
    POD_TRY(axes_allocate(axes, err));
    for (int a = 0; a < axes->naxes; ++a) {
        axes->axis[a] = (pod_coll_axis){.length = n, .closed = true, .stride = 1, .physical = -1};
        const int32_t *at = cycle + (int64_t)a * n;
        for (int32_t i = 0; i < n; ++i) {
            const int32_t next = at[(i + 1) % n];
            const int32_t last = at[(i + n - 1) % n];
            const int64_t entry = (int64_t)at[i] * ncycles + a;
            axes->position[entry] = i;
            axes->hop[2 * entry] = (pod_coll_hop){next, direction_between(request, at[i], next)};
            axes->hop[2 * entry + 1] =
                (pod_coll_hop){last, direction_between(request, at[i], last)};
        }
    }
    return POD_OK;
}

int32_t pod_coll_axes_number(const pod_coll_axes *axes, int32_t rank)
{
    int32_t number = 0;
    for (int a = axes->naxes - 1; a >= 0; --a) {
        number = number * axes->axis[a].length + axes->position[(int64_t)rank * axes->naxes + a];
    }
    return number;
}

pod_status pod_coll_axes_slowness(const pod_coll_axes *axes, const pod_coll_request *request,
                                  double **slowness, pod_error *err)
{
    const pod_group *group = request->group;
    const int32_t hops = axes->nranks * axes->naxes * 2;
    double most = 1.0;
    *slowness = NULL;
    if (request->slice->nfaults == 0) {
        return POD_OK;
    }
    double *slow = malloc(((size_t)hops + 1) * sizeof *slow);
    if (slow == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    for (int32_t hop = 0; hop < hops; ++hop) {
        const int direction = axes->hop[hop].direction;
        slow[hop] = 1.0;
        for (int32_t g = 0; g < group->count && direction >= 0; ++g) {
            const int32_t chip = group->chip_of[(int64_t)g * group->size + hop / (2 * axes->naxes)];
            slow[hop] = fmax(slow[hop], pod_slice_link_slowness(request->slice, chip, direction));
        }
        most = fmax(most, slow[hop]);
    }
    if (most > 1.0) {
        *slowness = slow;
    } else {
        free(slow);
    }
    return POD_OK;
}

void pod_coll_axes_repeat(const pod_coll_axes *axes, const pod_coll_request *request,
                          const int32_t *every, pod_coll_schedule *schedule)
{
    bool grid = request->slice->nfaults == 0 && request->group->ndims > 0 && !axes->quotient
                && pod_coll_parts_equal(schedule);
    for (int a = 0; a < axes->naxes; ++a) {
        grid = grid && axes->axis[a].physical >= 0;
    }
    for (int p = 0; p < POD_AXES; ++p) {
        schedule->repeat[p] = grid ? 1 : 0;
    }
    for (int a = 0; a < axes->naxes && grid; ++a) {
        const pod_coll_axis *axis = &axes->axis[a];
        const int32_t round = every != NULL ? every[a] : 1;
        const int32_t positions = axis->closed ? round : axis->length;
        int32_t *repeat = &schedule->repeat[axis->physical];
        const int32_t apart = positions > 1 ? positions * axis->stride : 1;
        *repeat = apart > *repeat ? apart : *repeat; /* axes of one axis of the slice nest */
    }
}

bool pod_coll_axes_linked(const pod_coll_axes *axes)
{
    const int64_t hops = (int64_t)axes->nranks * axes->naxes * 2;
    for (int64_t i = 0; i < hops; ++i) {
        if (axes->hop[i].rank >= 0 && axes->hop[i].direction < 0) {
            return false;
        }
    }
    return true;
}

bool pod_coll_axes_symmetric(const pod_coll_axes *axes)
{
    for (int a = 0; a < axes->naxes; ++a) {
        if (!axes->axis[a].closed) {
            return false;
        }
    }
    return true;
}

pod_status pod_coll_wants_closed(const pod_coll_request *request, const char *name,
                                 const char *instead, pod_error *err)
{
    pod_coll_axes axes;
    pod_status st = pod_coll_axes_init(&axes, request, err);
    if (st == POD_OK && !pod_coll_axes_symmetric(&axes)) {
        st = pod_fail(err, POD_E_INVALID,
                      "%s needs closed axes, and this group has an open one; "
                      "use %s",
                      name, instead);
    }
    pod_coll_axes_fini(&axes);
    return st;
}
