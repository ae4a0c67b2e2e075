/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/hamilton.h"

#include <stdlib.h>

/* Rank at given positions along the axes; -1 without memory is left to the caller. */
static int32_t *rank_table(const pod_coll_axes *axes)
{
    int32_t *table = malloc((size_t)axes->nranks * sizeof *table);
    for (int32_t r = 0; table && r < axes->nranks; ++r) {
        int32_t index = 0;
        for (int a = axes->naxes - 1; a >= 0; --a) {
            index = index * axes->axis[a].length + axes->position[(int64_t)r * axes->naxes + a];
        }
        table[index] = r;
    }
    return table;
}

/* The axis to go up and down along; -1 = none. */
static int choose_axis(const pod_coll_axes *axes)
{
    for (int a = 0; a < axes->naxes; ++a) {
        const int32_t n = axes->axis[a].length;
        const int32_t rest = axes->nranks / n;
        const bool closes = axes->axis[a].closed && !axes->quotient && n >= 3;
        if (rest == 1 ? closes || (axes->axis[a].closed && n == 2)
                      : rest % 2 == 0 || n == 2 || closes) {
            return a;
        }
    }
    return -1;
}

/* Index into the rank table of position r of the snake over all axes but e, with e at zero. */
static int32_t snake_index(const pod_coll_axes *axes, int e, int32_t r)
{
    int32_t index = 0;
    int32_t weight = 1;
    for (int a = 0; a < axes->naxes; ++a) {
        const int32_t length = axes->axis[a].length;
        if (a != e) {
            const int32_t at = r % length;
            r /= length;
            index += weight * (r % 2 == 0 ? at : length - 1 - at);
        }
        weight *= length;
    }
    return index;
}

static void cycle_walk(const pod_coll_axes *axes, int e, const int32_t *table, int32_t *cycle)
{
    const int32_t n = axes->axis[e].length;
    const int32_t rest = axes->nranks / n;
    int32_t weight = 1;
    for (int a = 0; a < e; ++a) {
        weight *= axes->axis[a].length;
    }
    int32_t at = 0;
    cycle[at++] = table[snake_index(axes, e, 0)];
    for (int32_t r = 0; r < rest; ++r) {
        for (int32_t i = 1; i < n; ++i) {
            const int32_t position = r % 2 == 0 ? i : n - i;
            cycle[at++] = table[snake_index(axes, e, r) + weight * position];
        }
    }
    for (int32_t r = rest - 1; r >= 1; --r) {
        cycle[at++] = table[snake_index(axes, e, r)];
    }
}

/* Walk the grid of a group. */
static pod_status cycle_of_grid(const pod_coll_axes *axes, int32_t *cycle, pod_error *err)
{
    const int e = choose_axis(axes);
    if (e < 0) {
        return pod_fail(err, POD_E_INVALID,
                        "no ring passes through all %d chips of this group (its axes are open, and "
                        "odd or alone); use %s",
                        (int)axes->nranks, axes->naxes == 1 ? "line" : "bucket");
    }
    int32_t *table = rank_table(axes);
    if (!table) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a ring of %d chips; use fewer",
                        (int)axes->nranks);
    }
    cycle_walk(axes, e, table, cycle);
    free(table);
    return POD_OK;
}

pod_status pod_coll_hamilton_axes(pod_coll_axes *axes, const pod_coll_request *request,
                                  pod_error *err)
{
    const int32_t n = request->group->size;
    int32_t *cycle = malloc((size_t)n * sizeof *cycle);
    if (!cycle) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a ring of %d chips; use fewer", (int)n);
    }
    for (int32_t r = 0; r < n; ++r) {
        cycle[r] = r;
    }
    pod_status st = POD_OK;
    int physical = -1;
    if (request->group->ndims > 0) {
        pod_coll_axes grid;
        st = pod_coll_axes_init(&grid, request, err);
        st = st == POD_OK && n > 1 ? cycle_of_grid(&grid, cycle, err) : st;
        physical = st == POD_OK && grid.naxes == 1 && !grid.quotient ? grid.axis[0].physical : -1;
        pod_coll_axes_fini(&grid);
    }
    POD_THEN(st, pod_coll_axes_init_cycles(axes, request, cycle, 1, err));
    if (st == POD_OK && axes->naxes == 1) {
        axes->axis[0].physical = physical; /* one closed axis is its own cycle */
    }
    free(cycle);
    return st;
}
