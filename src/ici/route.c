/* SPDX-License-Identifier: Apache-2.0 */
#include "ici/route.h"

#include <stdlib.h>

#include "ici/route_state.h"

/* Beyond, a slice is not searched through for mazes. */
enum { MAZE_CHIPS_MAX = 1024, MAZE_DEAD_MIN = 4 };

static pod_route_kind route_kind(const pod_slice *slice)
{
    if (!slice->twisted) {
        return POD_ROUTE_GRID;
    }
    return pod_slice_is_lattice(slice) ? POD_ROUTE_LATTICE : POD_ROUTE_SEARCH;
}

/* Plain slices: shorter axes first, wrapped ones before open ones, so that the cyclic orders of paths are the same
 * whatever the axes are called. */
static void axis_order_fill(pod_router *router)
{
    const pod_slice *slice = router->slice;
    int *order = router->axis_order;
    for (int a = 0; a < POD_AXES; a++) {
        int at = a;
        for (; at > 0 && router->kind == POD_ROUTE_GRID; at--) {
            const int before = order[at - 1];
            if (slice->dims[before] != slice->dims[a] ? slice->dims[before] < slice->dims[a]
                                                      : slice->wrap[before] || !slice->wrap[a]) {
                break;
            }
            order[at] = before;
        }
        order[at] = a;
    }
}

static void tables_fill(pod_router *router)
{
    const pod_slice *slice = router->slice;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        pod_slice_coords(slice, chip, router->coords[chip]);
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            router->neighbor[chip][d] = pod_slice_neighbor(slice, chip, d);
        }
    }
    for (int i = 0; i < slice->nfaults; i++) {
        const pod_fault *fault = &slice->faults[i];
        if (fault->kind == POD_FAULT_LINK_DEAD) {
            int32_t other = pod_slice_neighbor(slice, fault->chip, fault->direction);
            router->neighbor[fault->chip][fault->direction] = -1;
            router->neighbor[other][pod_direction_reverse(fault->direction)] = -1;
        }
    }
}

/* Minimal vectors on a plain slice: on each axis the shorter way, or both if they are equal. */
static int grid_vectors(const pod_slice *slice, const int32_t *src, const int32_t *dst,
                        int32_t vectors[POD_VECTORS_MAX][POD_AXES])
{
    int32_t first[POD_AXES];
    unsigned ties = 0;
    for (int a = 0; a < POD_AXES; a++) {
        int32_t n = slice->dims[a];
        int32_t d = dst[a] - src[a];
        if (slice->wrap[a]) {
            int32_t ahead = d < 0 ? d + n : d;
            ties |= ahead > 0 && ahead == n - ahead ? 1U << a : 0U;
            d = ahead <= n - ahead ? ahead : ahead - n;
        }
        first[a] = d;
    }
    int nvectors = 0;
    for (unsigned flip = 0; flip < 8; flip++) {
        if ((flip & ~ties) != 0) {
            continue;
        }
        for (int a = 0; a < POD_AXES; a++) {
            vectors[nvectors][a] = (flip >> a & 1U) != 0 ? -first[a] : first[a];
        }
        nvectors++;
        if (ties == 0) {
            break;
        }
    }
    return nvectors;
}

/* One path per cyclic order of the axes that the vector moves along. @return their number */
static int vector_paths(const pod_router *router, const int32_t vector[POD_AXES], pod_path *paths)
{
    int naxes = 0;
    uint8_t direction[POD_AXES];
    int32_t hops[POD_AXES];
    int32_t nhops = 0;
    for (int i = 0; i < POD_AXES; i++) {
        const int a = router->axis_order[i];
        if (vector[a] != 0) {
            direction[naxes] = (uint8_t)(2 * a + (vector[a] < 0 ? 1 : 0));
            hops[naxes] = vector[a] < 0 ? -vector[a] : vector[a];
            nhops += hops[naxes];
            naxes++;
        }
    }
    for (int first = 0; first < naxes; first++) {
        pod_path *path = &paths[first];
        path->nsegments = naxes;
        path->nhops = nhops;
        for (int i = 0; i < naxes; i++) {
            int from = first + i < naxes ? first + i : first + i - naxes;
            path->direction[i] = direction[from];
            path->hops[i] = hops[from];
        }
    }
    return naxes;
}

static const pod_minimal *lattice_minimal(const pod_router *router, int32_t src, int32_t dst)
{
    const int32_t *from = router->coords[src];
    const int32_t *to = router->coords[dst];
    const int32_t vector[POD_AXES] = {to[0] - from[0], to[1] - from[1], to[2] - from[2]};
    return &router->minimal[pod_lattice_displacement(router->slice, vector)];
}

/* Paths of the slice as if no link were dead. */
static int healthy_paths(const pod_router *router, int32_t src, int32_t dst, pod_path *paths)
{
    int npaths = 0;
    if (router->kind == POD_ROUTE_GRID) {
        int32_t vectors[POD_VECTORS_MAX][POD_AXES];
        int nvectors =
            grid_vectors(router->slice, router->coords[src], router->coords[dst], vectors);
        for (int i = 0; i < nvectors; i++) {
            npaths += vector_paths(router, vectors[i], &paths[npaths]);
        }
    } else if (router->kind == POD_ROUTE_LATTICE) {
        const pod_minimal *minimal = lattice_minimal(router, src, dst);
        for (int32_t i = 0; i < minimal->nvectors; i++) {
            npaths += vector_paths(router, minimal->vector[i], &paths[npaths]);
        }
    }
    return npaths;
}

static bool path_is_live(const pod_router *router, int32_t src, const pod_path *path)
{
    int32_t at = src;
    for (int32_t i = 0; i < path->nsegments; i++) {
        for (int32_t hop = 0; hop < path->hops[i] && at >= 0; hop++) {
            at = router->neighbor[at][path->direction[i]];
        }
    }
    return at >= 0;
}

static int keep_live_paths(const pod_router *router, int32_t src, pod_path *paths, int npaths)
{
    int kept = 0;
    for (int i = 0; i < npaths; i++) {
        if (path_is_live(router, src, &paths[i])) {
            if (kept != i) {
                paths[kept] = paths[i];
            }
            kept++;
        }
    }
    return kept;
}

/* The kept search of a destination, made now if it is the first time. */
static const uint8_t *ways_to(const pod_router *router, int32_t dst)
{
    uint8_t *ways = atomic_load(&router->ways[dst]);
    if (ways) {
        return ways;
    }
    uint8_t *mine = pod_search_ways(router, dst);
    POD_ASSERT(mine != NULL);
    if (atomic_compare_exchange_strong(&router->ways[dst], &ways, mine)) {
        return mine;
    }
    free(mine);
    return ways;
}

int pod_router_paths(const pod_router *router, int32_t src, int32_t dst, pod_path *paths)
{
    if (src == dst) {
        return 0;
    }
    int npaths = healthy_paths(router, src, dst, paths);
    if (router->has_dead_links) {
        npaths = keep_live_paths(router, src, paths, npaths);
    }
    if (npaths == 0) {
        npaths = pod_search_paths(router, ways_to(router, dst), src, dst, paths);
        POD_ASSERT(npaths > 0);
    }
    return npaths;
}

int32_t pod_router_hops(const pod_router *router, int32_t src, int32_t dst)
{
    if (router->kind == POD_ROUTE_LATTICE && !router->has_dead_links) {
        return lattice_minimal(router, src, dst)->hops;
    }
    pod_path paths[POD_ROUTE_PATHS_MAX];
    return pod_router_paths(router, src, dst, paths) > 0 ? paths[0].nhops : 0;
}

int32_t pod_router_neighbor(const pod_router *router, int32_t chip, int direction)
{
    return router->neighbor[chip][direction];
}

/* Refuse dead links between which some pair has no route of few enough turns. */
static pod_status maze_check_destination(const pod_router *router, int32_t dst, pod_error *err)
{
    uint8_t *ways = pod_search_ways(router, dst);
    if (!ways) {
        return pod_fail(err, POD_E_NOMEM, "no memory to search %s", router->slice->name);
    }
    pod_path paths[POD_ROUTE_PATHS_MAX];
    pod_status st = POD_OK;
    for (int32_t src = 0; src < router->slice->nchips && st == POD_OK; src++) {
        int npaths = healthy_paths(router, src, dst, paths);
        if (src == dst || keep_live_paths(router, src, paths, npaths) > 0
            || pod_search_paths(router, ways, src, dst, paths) > 0) {
            continue;
        }
        char from[40];
        char to[40];
        st = pod_fail(
            err, POD_E_INVALID,
            "dead links of %s leave a maze between %s and %s; a route may turn at most "
            "%d times",
            router->slice->name, pod_slice_chip_text(router->slice, src, from, sizeof from),
            pod_slice_chip_text(router->slice, dst, to, sizeof to), POD_PATH_SEGMENTS_MAX - 1);
    }
    free(ways);
    return st;
}

/* Between its neighbours the slice has a cable that is dead. */
static bool beside_dead_link(const pod_slice *slice, int32_t chip)
{
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        if (pod_slice_neighbor(slice, chip, d) >= 0
            && !(pod_slice_link_slowness(slice, chip, d) > 0.0)) {
            return true;
        }
    }
    return false;
}

static pod_status dead_links_check(const pod_router *router, pod_error *err)
{
    const pod_slice *slice = router->slice;
    pod_status st = pod_search_check_whole(router, err);
    int ndead = 0;
    for (int i = 0; i < slice->nfaults; i++) {
        ndead += slice->faults[i].kind == POD_FAULT_LINK_DEAD ? 1 : 0;
    }
    for (int32_t dst = 0; ndead >= MAZE_DEAD_MIN && st == POD_OK && dst < slice->nchips; dst++) {
        if (slice->nchips <= MAZE_CHIPS_MAX || beside_dead_link(slice, dst)) {
            st = maze_check_destination(router, dst, err);
        }
    }
    return st;
}

/* A message carries its path: runs of POD_PATH_RUN_MAX hops at most, a few for each axis. */
static pod_status length_check(const pod_slice *slice, pod_error *err)
{
    int32_t segments = 0;
    int32_t hops = 0;
    for (int a = 0; a < POD_AXES; a++) {
        const int32_t farthest = slice->wrap[a] ? slice->dims[a] / 2 : slice->dims[a] - 1;
        segments += (farthest + POD_PATH_RUN_MAX - 1) / POD_PATH_RUN_MAX;
        hops += farthest;
    }
    return segments <= POD_PATH_SEGMENTS_MAX
               ? POD_OK
               : pod_fail(
                   err, POD_E_RANGE,
                   "the farthest chips of %s are %d hops apart; at most %d can be simulated: "
                   "make its longest axis shorter",
                   slice->name, (int)hops, POD_PATH_SEGMENTS_MAX * POD_PATH_RUN_MAX);
}

pod_status pod_router_new(const pod_slice *slice, pod_router **router, pod_error *err)
{
    *router = NULL;
    if (slice->nchips > POD_ROUTER_CHIPS_MAX) {
        return pod_fail(err, POD_E_RANGE, "%s has %d chips; at most %d can be simulated",
                        slice->name, (int)slice->nchips, POD_ROUTER_CHIPS_MAX);
    }
    POD_TRY(length_check(slice, err));
    size_t n = (size_t)slice->nchips;
    pod_router *r = calloc(1, sizeof *r);
    if (!r) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the router of %s", slice->name);
    }
    r->slice = slice;
    r->kind = route_kind(slice);
    r->has_dead_links = pod_slice_has_dead_links(slice);
    r->coords = calloc(n, sizeof *r->coords);
    r->neighbor = calloc(n, sizeof *r->neighbor);
    bool searches = r->has_dead_links || r->kind == POD_ROUTE_SEARCH;
    r->ways = searches ? calloc(n, sizeof *r->ways) : NULL;
    r->minimal = r->kind == POD_ROUTE_LATTICE ? pod_lattice_new(slice) : NULL;
    if (!r->coords || !r->neighbor || (searches && !r->ways)
        || (r->kind == POD_ROUTE_LATTICE && !r->minimal)) {
        pod_router_free(r);
        return pod_fail(err, POD_E_NOMEM, "no memory for the router of %s", slice->name);
    }
    axis_order_fill(r);
    tables_fill(r);
    pod_status st = r->has_dead_links ? dead_links_check(r, err) : POD_OK;
    if (st != POD_OK) {
        pod_router_free(r);
        return st;
    }
    *router = r;
    return POD_OK;
}

void pod_router_free(pod_router *router)
{
    if (!router) {
        return;
    }
    for (int32_t i = 0; router->ways && i < router->slice->nchips; i++) {
        free(atomic_load(&router->ways[i]));
    }
    free(router->minimal);
    free(router->ways);
    free(router->neighbor);
    free(router->coords);
    free(router);
}
