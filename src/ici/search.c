/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "ici/route_state.h"

int32_t pod_search_hops(const pod_router *router, int32_t chip, int32_t *hops, int32_t *queue)
{
    int32_t n = router->slice->nchips;
    for (int32_t i = 0; i < n; i++) {
        hops[i] = -1;
    }
    int32_t reached = 0;
    hops[chip] = 0;
    queue[reached++] = chip;
    for (int32_t head = 0; head < reached; head++) {
        int32_t at = queue[head];
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            int32_t next = router->neighbor[at][d];
            if (next >= 0 && hops[next] < 0) {
                hops[next] = hops[at] + 1;
                queue[reached++] = next;
            }
        }
    }
    return reached;
}

/* Links are dead in both directions, so hops from dst are hops to dst. */
uint8_t *pod_search_ways(const pod_router *router, int32_t dst)
{
    size_t n = (size_t)router->slice->nchips;
    int32_t *hops = calloc(n, sizeof *hops);
    int32_t *queue = calloc(n, sizeof *queue);
    uint8_t *ways = hops && queue ? calloc(n, sizeof *ways) : NULL;
    if (ways) {
        pod_search_hops(router, dst, hops, queue);
    }
    for (size_t chip = 0; ways && chip < n; chip++) {
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            int32_t next = router->neighbor[chip][d];
            bool nearer = next >= 0 && hops[next] == hops[chip] - 1;
            ways[chip] |= (uint8_t)(nearer ? 1U << d : 0U);
        }
    }
    free(queue);
    free(hops);
    return ways;
}

static int lowest_direction(unsigned ways)
{
    int d = 0;
    while ((ways >> d & 1U) == 0) {
        d++;
    }
    return d;
}

/* The shortest path that leaves by `direction` and goes straight on wherever it can.
 * @return false if it has too many segments */
static bool path_follow(const pod_router *router, const uint8_t *ways, int32_t src, int32_t dst,
                        int direction, pod_path *path)
{
    path->nsegments = 0;
    path->nhops = 0;
    for (int32_t at = src; at != dst; at = router->neighbor[at][direction]) {
        bool straight = path->nhops == 0 || (ways[at] >> direction & 1U) != 0;
        direction = straight ? direction : lowest_direction(ways[at]);
        if (path->nhops == 0 || !straight || path->hops[path->nsegments - 1] == POD_PATH_RUN_MAX) {
            if (path->nsegments == POD_PATH_SEGMENTS_MAX) {
                return false;
            }
            path->direction[path->nsegments] = (uint8_t)direction;
            path->hops[path->nsegments] = 0;
            path->nsegments++;
        }
        path->hops[path->nsegments - 1]++;
        path->nhops++;
    }
    return true;
}

int pod_search_paths(const pod_router *router, const uint8_t *ways, int32_t src, int32_t dst,
                     pod_path *paths)
{
    int npaths = 0;
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        bool leads = (ways[src] >> d & 1U) != 0;
        npaths += leads && path_follow(router, ways, src, dst, d, &paths[npaths]) ? 1 : 0;
    }
    return npaths;
}

static pod_status parts_fail(const pod_router *router, int32_t *hops, int32_t *queue,
                             pod_error *err)
{
    const pod_slice *slice = router->slice;
    int32_t size = pod_search_hops(router, 0, hops, queue);
    int32_t other = 0;
    while (hops[other] >= 0) {
        other++;
    }
    int32_t other_size = pod_search_hops(router, other, hops, queue);
    bool more = size + other_size < slice->nchips;
    char first[40];
    char second[40];
    return pod_fail(err, POD_E_INVALID,
                    "dead links cut %s into parts: %d chips with %s, %d with %s%s; keep a live "
                    "link between them",
                    slice->name, (int)size, pod_slice_chip_text(slice, 0, first, sizeof first),
                    (int)other_size, pod_slice_chip_text(slice, other, second, sizeof second),
                    more ? ", and more" : "");
}

pod_status pod_search_check_whole(const pod_router *router, pod_error *err)
{
    size_t n = (size_t)router->slice->nchips;
    int32_t *hops = calloc(n, sizeof *hops);
    int32_t *queue = calloc(n, sizeof *queue);
    pod_status st = POD_OK;
    if (!hops || !queue) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to search %s", router->slice->name);
    } else if (pod_search_hops(router, 0, hops, queue) < router->slice->nchips) {
        st = parts_fail(router, hops, queue, err);
    }
    free(queue);
    free(hops);
    return st;
}
