/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/flood_trees.h
 *  Shortest-path trees from every rank of a group. Private to the floods (flood.c).
 *
 *  Model: the link that leads into a rank is, among those from ranks one hop nearer to the root, the one with the
 *  fewest trees so far. Where the group looks the same from every rank (whole closed slices, twisted ones too), all
 *  trees are that of rank 0 moved, whose edges are spread over the directions: then every link of a direction has
 *  as many trees, and all ranks do the same.
 *
 *  Ownership: init/fini; neighbor is borrowed. Threads: none. */
#pragma once

#include "ici/slice.h"

enum { POD_FLOOD_NOBODY = -1 };

typedef struct pod_flood_trees {
    int32_t n;
    /** neighbor[rank · 6 + direction], POD_FLOOD_NOBODY where no link leads */
    const int32_t *neighbor;
    int32_t rounds; /**< hops of the farthest pair */
    int32_t *hops;  /**< hops[root · n + rank] */
    int8_t *parent; /**< parent[root · n + rank]: direction of the link that leads into the rank */
    bool moved;     /**< trees are those of rank 0 moved */
    /** image[root · n + rank]: what `rank` of the tree of rank 0 is in that of root */
    int32_t *image;
    int32_t *queue;
    int32_t *load; /**< trees over a link, [rank · 6 + direction] */
} pod_flood_trees;

/** Distances from a root; queue[] lists the ranks in the order they were found. @return how many */
int32_t pod_flood_search(const int32_t *neighbor, int32_t n, int32_t root, int32_t *hops,
                         int32_t *queue);

/** @return false: out of memory. For pod_flood_trees_fini in any case. */
bool pod_flood_trees_init(pod_flood_trees *trees, const int32_t *neighbor, int32_t n);
void pod_flood_trees_fini(pod_flood_trees *trees);
