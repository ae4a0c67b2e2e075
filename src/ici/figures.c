/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "ici/route_state.h"

/* Mean distance over the ordered pairs of a ring or line of n, a chip with itself included. */
static double axis_mean_hops(int32_t n, bool wrap)
{
    double size = n;
    if (!wrap) {
        return (size * size - 1) / (3 * size);
    }
    return n % 2 == 0 ? size / 4 : (size * size - 1) / (4 * size);
}

static void grid_distances(const pod_slice *slice, pod_slice_figures *figures)
{
    figures->diameter_hops = 0;
    figures->mean_hops = 0;
    for (int a = 0; a < POD_AXES; a++) {
        int32_t n = slice->dims[a];
        figures->diameter_hops += slice->wrap[a] ? n / 2 : n - 1;
        figures->mean_hops += axis_mean_hops(n, slice->wrap[a]);
    }
}

static void lattice_distances(const pod_router *router, pod_slice_figures *figures)
{
    int64_t total = 0;
    figures->diameter_hops = 0;
    for (int32_t i = 0; i < router->slice->nchips; i++) {
        int32_t hops = router->minimal[i].hops;
        total += hops;
        figures->diameter_hops = hops > figures->diameter_hops ? hops : figures->diameter_hops;
    }
    figures->mean_hops = (double)total / router->slice->nchips;
}

static void search_distances(const pod_router *router, pod_slice_figures *figures)
{
    int32_t n = router->slice->nchips;
    int32_t *hops = calloc((size_t)n, sizeof *hops);
    int32_t *queue = calloc((size_t)n, sizeof *queue);
    POD_ASSERT(hops && queue);
    int64_t total = 0;
    figures->diameter_hops = 0;
    for (int32_t src = 0; src < n; src++) {
        pod_search_hops(router, src, hops, queue);
        int32_t farthest = hops[queue[n - 1]]; /* the search visits in order of distance */
        figures->diameter_hops =
            farthest > figures->diameter_hops ? farthest : figures->diameter_hops;
        for (int32_t dst = 0; dst < n; dst++) {
            total += hops[dst];
        }
    }
    figures->mean_hops = (double)total / n / n;
    free(queue);
    free(hops);
}

/* Live cables of a cut, and what they carry one way in links of full rate. */
typedef struct cut {
    int64_t cables;
    double links;
} cut;

/* The cables of axis `axis` that leave position `at` in + direction. */
static cut plane_cut(const pod_slice *slice, int axis, int32_t at)
{
    const int32_t n = slice->dims[axis];
    if (at == n - 1 && !slice->wrap[axis]) {
        return (cut){.cables = 0};
    }
    if (slice->nfaults == 0) {
        return (cut){.cables = slice->nchips / n, .links = slice->nchips / n};
    }
    cut found = {.cables = 0};
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        int32_t coords[POD_AXES];
        pod_slice_coords(slice, chip, coords);
        const double slowness =
            coords[axis] == at ? pod_slice_link_slowness(slice, chip, 2 * axis) : 0;
        found.cables += slowness > 0 ? 1 : 0;
        found.links += slowness > 0 ? 1 / slowness : 0;
    }
    return found;
}

static void cut_add(cut *sum, cut other)
{
    sum->cables += other.cables;
    sum->links += other.links;
}

/* Cables between the positions [from, from + size) of an axis and the rest. A twisted wrap of
 * another axis moves by half of this one, so all its cables cross. */
static cut halving_cut(const pod_slice *slice, int axis, int32_t from, int32_t size)
{
    const int32_t n = slice->dims[axis];
    cut sum = plane_cut(slice, axis, (from + n - 1) % n);
    cut_add(&sum, plane_cut(slice, axis, (from + size - 1) % n));
    for (int other = 0; other < POD_AXES; other++) {
        if (slice->twist[other][axis] != 0) {
            cut_add(&sum, plane_cut(slice, other, slice->dims[other] - 1));
        }
    }
    return sum;
}

/* Fewest cables, and least that cables carry, over all halvings. */
static void find_bisection(const pod_slice *slice, pod_slice_figures *figures)
{
    cut fewest = {.cables = INT64_MAX, .links = HUGE_VAL};
    for (int a = 0; a < POD_AXES; a++) {
        const int32_t n = slice->dims[a];
        /* A line is halved only at its middle: the first part starts at 0 and has n/2 positions,
         * rounded down or up. A ring is halved from every position. */
        const int32_t step = slice->wrap[a] ? 1 : n - n / 2;
        for (int32_t from = 0; n > 1 && from < n; from += step) {
            const cut here = halving_cut(slice, a, from, n / 2);
            fewest.cables = here.cables < fewest.cables ? here.cables : fewest.cables;
            fewest.links = here.links < fewest.links ? here.links : fewest.links;
        }
    }
    const bool none = fewest.cables == INT64_MAX;
    figures->bisection_cables = none ? 0 : fewest.cables;
    figures->bisection_links = none ? 0 : fewest.links;
}

pod_status pod_slice_figures_find(const pod_slice *slice, pod_slice_figures *figures,
                                  pod_error *err)
{
    if (!slice->twisted && !pod_slice_has_dead_links(slice)) {
        figures->cables = pod_slice_cables(slice);
        find_bisection(slice, figures);
        grid_distances(slice, figures);
        return POD_OK;
    }
    pod_router *router = NULL;
    pod_status st = pod_router_new(slice, &router, err);
    if (st == POD_OK) {
        pod_router_figures(router, figures);
    }
    pod_router_free(router);
    return st;
}

void pod_router_figures(const pod_router *router, pod_slice_figures *figures)
{
    const pod_slice *slice = router->slice;
    figures->cables = pod_slice_cables(slice);
    find_bisection(slice, figures);
    if (router->has_dead_links || router->kind == POD_ROUTE_SEARCH) {
        search_distances(router, figures);
    } else if (router->kind == POD_ROUTE_LATTICE) {
        lattice_distances(router, figures);
    } else {
        grid_distances(slice, figures);
    }
}
