/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of floods: shortest everywhere, and on slices that look the same from every chip all of one shape. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "collectives/embedding/flood_trees.h"

static int32_t *neighbors(const pod_slice *slice)
{
    int32_t *neighbor = malloc((size_t)slice->nchips * POD_DIRECTIONS * sizeof *neighbor);
    cr_assert(neighbor != NULL);
    for (int32_t c = 0; c < slice->nchips; c++) {
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            neighbor[c * POD_DIRECTIONS + d] = pod_slice_neighbor(slice, c, d);
        }
    }
    return neighbor;
}

static pod_slice slice_of(const int32_t dims[POD_AXES], bool closed, bool twisted)
{
    const bool wrap[POD_AXES] = {closed, closed, closed};
    pod_slice slice;
    pod_error err = {0};
    cr_assert_eq(pod_slice_make("v5p", 3, dims, wrap, twisted, &slice, &err), POD_OK, "%s",
                 err.text);
    return slice;
}

/** Every rank hangs on one that is a hop nearer, and distances are those of a search from the root. */
static void check_shortest(const pod_flood_trees *trees)
{
    const int32_t n = trees->n;
    int32_t *hops = malloc((size_t)n * sizeof *hops);
    int32_t *queue = malloc((size_t)n * sizeof *queue);
    for (int32_t root = 0; root < n; root++) {
        cr_assert_eq(pod_flood_search(trees->neighbor, n, root, hops, queue), n);
        for (int32_t rank = 0; rank < n; rank++) {
            const int64_t at = (int64_t)root * n + rank;
            cr_assert_eq(trees->hops[at], hops[rank], "from %d to %d", root, rank);
            if (rank != root) {
                const int32_t before =
                    trees->neighbor[rank * POD_DIRECTIONS + (trees->parent[at] ^ 1)];
                cr_assert_eq(hops[before], hops[rank] - 1);
            }
        }
    }
    free(hops);
    free(queue);
}

/** Fewest and most trees over a link of a direction. */
static void loads(const pod_flood_trees *trees, int direction, int32_t *least, int32_t *most)
{
    int32_t *load = calloc((size_t)trees->n, sizeof *load);
    for (int32_t root = 0; root < trees->n; root++) {
        for (int32_t rank = 0; rank < trees->n; rank++) {
            if (rank != root && trees->parent[(int64_t)root * trees->n + rank] == direction) {
                load[rank]++;
            }
        }
    }
    *least = INT32_MAX;
    *most = 0;
    for (int32_t rank = 0; rank < trees->n; rank++) {
        *least = load[rank] < *least ? load[rank] : *least;
        *most = load[rank] > *most ? load[rank] : *most;
    }
    free(load);
}

static void check(const int32_t dims[POD_AXES], bool closed, bool twisted, bool moved)
{
    const pod_slice slice = slice_of(dims, closed, twisted);
    int32_t *neighbor = neighbors(&slice);
    pod_flood_trees trees;
    int32_t total = 0;
    cr_assert(pod_flood_trees_init(&trees, neighbor, slice.nchips));
    cr_expect_eq(trees.moved, moved);
    check_shortest(&trees);
    for (int d = 0; moved && d < POD_DIRECTIONS; d++) {
        int32_t least;
        int32_t most;
        loads(&trees, d, &least, &most);
        cr_expect_eq(least, most, "direction %d", d);
        total += most;
    }
    cr_expect(!moved || total == slice.nchips - 1);
    pod_flood_trees_fini(&trees);
    free(neighbor);
}

Test(flood_trees, twisted_slices_look_alike_from_every_chip)
{
    check((const int32_t[POD_AXES]){4, 4, 8}, true, true, true);
    check((const int32_t[POD_AXES]){4, 8, 8}, true, true, true);
}

Test(flood_trees, so_do_plain_tori)
{
    check((const int32_t[POD_AXES]){4, 4, 4}, true, false, true);
    check((const int32_t[POD_AXES]){3, 5, 1}, true, false, true);
}

Test(flood_trees, open_slices_do_not)
{
    check((const int32_t[POD_AXES]){2, 3, 4}, false, false, false);
}
