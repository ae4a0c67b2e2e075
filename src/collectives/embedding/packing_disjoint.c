/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/packing.h"

#include <stdlib.h>

/* How far a rank is from the root along an axis, going one way round. */
static int32_t distance(const pod_coll_axes *axes, int32_t root, int32_t rank, int axis, int minus)
{
    const int32_t length = axes->axis[axis].length;
    const int32_t ahead = axes->position[(int64_t)rank * axes->naxes + axis]
                          - axes->position[(int64_t)root * axes->naxes + axis];
    return ((minus ? -ahead : ahead) + length) % length;
}

/* The axis along which the tree of an axis and a way reaches a rank. */
static int axis_into(const pod_coll_axes *axes, int32_t root, int32_t rank, int first, int minus)
{
    int last = first;
    if (distance(axes, root, rank, first, minus) == 0) {
        return first;
    }
    for (int i = 1; i < axes->naxes; ++i) {
        const int axis = (first + i) % axes->naxes;
        last = distance(axes, root, rank, axis, minus) > 0 ? axis : last;
    }
    return last;
}

static void write_links(pod_coll_packing *packing, const pod_coll_axes *axes, int32_t root,
                        int tree)
{
    const int minus = tree / axes->naxes;
    for (int32_t rank = 0; rank < axes->nranks; ++rank) {
        const int64_t at = (int64_t)tree * axes->nranks + rank;
        packing->parent[at] = -1;
        packing->up[at] = -1;
        packing->down[at] = -1;
        if (rank != root) {
            const int axis = axis_into(axes, root, rank, tree % axes->naxes, minus);
            const pod_coll_hop *back = pod_coll_axes_hop(axes, rank, axis, 1 - minus);
            packing->parent[at] = back->rank;
            packing->up[at] = back->direction;
            packing->down[at] = pod_coll_axes_hop(axes, back->rank, axis, minus)->direction;
        }
    }
}

/* Ranks by their depth in a tree. @param depth  room for all ranks */
static void write_order(pod_coll_packing *packing, int32_t root, int tree, int32_t *depth)
{
    const int32_t n = packing->nranks;
    const int32_t *parent = packing->parent + (int64_t)tree * n;
    int32_t *order = packing->order + (int64_t)tree * n;
    int32_t ordered = 0;
    for (int32_t rank = 0; rank < n; ++rank) {
        depth[rank] = 0;
        for (int32_t at = rank; at != root; at = parent[at]) {
            ++depth[rank];
        }
        packing->depth = depth[rank] > packing->depth ? depth[rank] : packing->depth;
    }
    for (int32_t deep = 0; ordered < n; ++deep) {
        for (int32_t rank = 0; rank < n; ++rank) {
            if (depth[rank] == deep) {
                order[ordered++] = rank;
            }
        }
    }
}

bool pod_coll_packing_disjoint_fits(const pod_coll_axes *axes)
{
    return axes->naxes > 0 && !axes->quotient && pod_coll_axes_symmetric(axes)
           && pod_coll_axes_linked(axes);
}

pod_status pod_coll_packing_disjoint(pod_coll_packing *packing, const pod_coll_axes *axes,
                                     int32_t root, pod_error *err)
{
    const int trees = 2 * axes->naxes;
    const size_t cells = (size_t)trees * (size_t)axes->nranks;
    *packing = (pod_coll_packing){.nranks = axes->nranks, .ntrees = trees, .busiest = 1};
    packing->parent = malloc(cells * sizeof *packing->parent);
    packing->up = malloc(cells);
    packing->down = malloc(cells);
    packing->order = malloc(cells * sizeof *packing->order);
    int32_t *depth = malloc((size_t)axes->nranks * sizeof *depth);
    if (!packing->parent || !packing->up || !packing->down || !packing->order || !depth) {
        free(depth);
        pod_coll_packing_fini(packing);
        return pod_fail(err, POD_E_NOMEM, "no memory for %d trees of %d chips; use fewer chips",
                        trees, (int)axes->nranks);
    }
    for (int tree = 0; tree < trees; ++tree) {
        write_links(packing, axes, root, tree);
        write_order(packing, root, tree, depth);
    }
    free(depth);
    return POD_OK;
}
