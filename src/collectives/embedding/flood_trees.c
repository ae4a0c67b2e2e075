/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/flood_trees.h"

#include <stdlib.h>
#include <string.h>

int32_t pod_flood_search(const int32_t *neighbor, int32_t n, int32_t root, int32_t *hops,
                         int32_t *queue)
{
    for (int32_t r = 0; r < n; ++r) {
        hops[r] = POD_FLOOD_NOBODY;
    }
    int32_t found = 0;
    hops[root] = 0;
    queue[found++] = root;
    for (int32_t i = 0; i < found; ++i) {
        for (int d = 0; d < POD_DIRECTIONS; ++d) {
            const int32_t next = neighbor[queue[i] * POD_DIRECTIONS + d];
            if (next >= 0 && hops[next] == POD_FLOOD_NOBODY) {
                hops[next] = hops[queue[i]] + 1;
                queue[found++] = next;
            }
        }
    }
    return found;
}

/* The link into `rank` from a rank one hop nearer, with the fewest trees. */
static int8_t choose_parent(pod_flood_trees *self, const int32_t *hops, int32_t rank)
{
    int best = POD_FLOOD_NOBODY;
    int32_t least = INT32_MAX;
    for (int d = 0; d < POD_DIRECTIONS; ++d) {
        const int32_t from = self->neighbor[rank * POD_DIRECTIONS + (d ^ 1)];
        if (from >= 0 && hops[from] == hops[rank] - 1
            && self->load[from * POD_DIRECTIONS + d] < least) {
            least = self->load[from * POD_DIRECTIONS + d];
            best = d;
        }
    }
    const int32_t from = self->neighbor[rank * POD_DIRECTIONS + (best ^ 1)];
    ++self->load[from * POD_DIRECTIONS + best];
    return (int8_t)best;
}

static void grow_trees(pod_flood_trees *self)
{
    for (int32_t root = 0; root < self->n; ++root) {
        int32_t *hops = &self->hops[(int64_t)root * self->n];
        const int32_t found = pod_flood_search(self->neighbor, self->n, root, hops, self->queue);
        for (int32_t i = 1; i < found; ++i) {
            const int32_t rank = self->queue[i];
            self->parent[(int64_t)root * self->n + rank] = choose_parent(self, hops, rank);
            self->rounds = hops[rank] > self->rounds ? hops[rank] : self->rounds;
        }
    }
}

/* The tree of rank 0, its edges spread over the directions, by which all links of a direction get as many trees. */
static int32_t grow_first(pod_flood_trees *self)
{
    const int32_t found = pod_flood_search(self->neighbor, self->n, 0, self->hops, self->queue);
    int32_t of_direction[POD_DIRECTIONS] = {0};
    for (int32_t i = 1; i < found; ++i) {
        const int32_t rank = self->queue[i];
        int best = POD_FLOOD_NOBODY;
        for (int d = 0; d < POD_DIRECTIONS; ++d) {
            const int32_t from = self->neighbor[rank * POD_DIRECTIONS + (d ^ 1)];
            if (from >= 0 && self->hops[from] == self->hops[rank] - 1
                && (best == POD_FLOOD_NOBODY || of_direction[d] < of_direction[best])) {
                best = d;
            }
        }
        if (best == POD_FLOOD_NOBODY) { /* a link that works one way only */
            return 0;
        }
        ++of_direction[best];
        self->parent[rank] = (int8_t)best;
        self->rounds = self->hops[rank] > self->rounds ? self->hops[rank] : self->rounds;
    }
    return found;
}

/* The tree of rank 0 moved to a root, link by link. @return false if it doesn't reach every rank once */
static bool move_tree(pod_flood_trees *self, int32_t root)
{
    const int64_t row = (int64_t)root * self->n;
    int32_t *image = &self->image[row];
    memset(self->load, 0, (size_t)self->n * sizeof *self->load);
    image[0] = root;
    self->load[root] = 1;
    for (int32_t i = 1; i < self->n; ++i) {
        const int32_t rank = self->queue[i];
        const int in = self->parent[rank];
        const int32_t before = self->neighbor[rank * POD_DIRECTIONS + (in ^ 1)];
        const int32_t to = self->neighbor[image[before] * POD_DIRECTIONS + in];
        if (to < 0 || self->load[to]++ > 0) {
            return false;
        }
        image[rank] = to;
    }
    for (int32_t i = 1; root > 0 && i < self->n; ++i) {
        const int32_t rank = self->queue[i];
        self->parent[row + image[rank]] = self->parent[rank];
        self->hops[row + image[rank]] = self->hops[rank];
    }
    return true;
}

/* @return false: the group looks different from different ranks */
static bool move_trees(pod_flood_trees *self)
{
    bool moved = grow_first(self) == self->n;
    for (int32_t root = 0; moved && root < self->n; ++root) {
        moved = move_tree(self, root);
    }
    return moved;
}

bool pod_flood_trees_init(pod_flood_trees *trees, const int32_t *neighbor, int32_t n)
{
    const size_t ranks = (size_t)n;
    *trees = (pod_flood_trees){.n = n,
                               .neighbor = neighbor,
                               .hops = calloc(ranks * ranks, sizeof *trees->hops),
                               .parent = calloc(ranks * ranks, sizeof *trees->parent),
                               .image = calloc(ranks * ranks, sizeof *trees->image),
                               .queue = calloc(ranks, sizeof *trees->queue),
                               .load = calloc(ranks * POD_DIRECTIONS, sizeof *trees->load)};
    if (!trees->hops || !trees->parent || !trees->image || !trees->queue || !trees->load) {
        return false;
    }
    trees->moved = move_trees(trees);
    if (!trees->moved) {
        trees->rounds = 0;
        memset(trees->load, 0, ranks * POD_DIRECTIONS * sizeof *trees->load);
        grow_trees(trees);
    }
    return true;
}

void pod_flood_trees_fini(pod_flood_trees *trees)
{
    free(trees->load);
    free(trees->queue);
    free(trees->image);
    free(trees->parent);
    free(trees->hops);
    *trees = (pod_flood_trees){.n = 0};
}
