/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/groups.h  Which partitions take part in a collective together, in every form of the text.
 *
 *  Model: all forms give `count` lists of `size` partitions, each of the module's partitions once:
 *
 *      {{0,1},{2,3}}   {}                        lists; all partitions in one group
 *      [4,2]<=[2,4]T(1,0)                        0…7 shaped 2x4, transposed, cut in 4 lists of 2
 *      mesh['a'=2,'b'=4] {'a'}                   0…7 shaped 2x4; a group differs along a only
 *      mesh[…], device_ids=([4,2]T(1,0)) {'a'}   the same over these devices, or over (0,2,1,3,…)
 *      mesh['a'=8] {'a':(2)2}                    a is split into 2 x 2 x rest, major first; a group
 *                                                differs along the second part only
 *
 *  Only explicit lists are stored as such; others stay the two reshapes and transposes that they are, so that a
 *  short text can't ask for much memory. Groups of the same text are the same number.
 *
 *      position (group · size + rank) --shuffle[1]--> place in the mesh --shuffle[0]--> partition
 *
 *  A permute is a list of pairs of a source and a target; every partition receives at most once.
 *
 *  Ownership: pod_hlo_groups_pool is zero-initialised storage of its owner. Threads: read-only once
 *  all are read. Errors: POD_E_INVALID with the place (a partition missing, repeated or out of range;
 *  groups of different sizes; one that receives twice), POD_E_RANGE, POD_E_NOMEM. */
#pragma once

#include "hlo/module.h"

enum { POD_HLO_SHUFFLE_MAX = 32 };

/** A row-major array reshaped and transposed: position in the transposed array to position before. */
typedef struct pod_hlo_shuffle {
    int ndims;                           /**< 0 = nothing moves */
    int64_t size[POD_HLO_SHUFFLE_MAX];   /**< of the dims in their new order */
    int64_t stride[POD_HLO_SHUFFLE_MAX]; /**< positions apart before, in that order */
} pod_hlo_shuffle;

typedef struct pod_hlo_groups {
    int32_t size;
    int32_t count;
    uint32_t shuffles; /**< first of two in pool->shuffle, or POD_HLO_NONE */
    uint32_t ids; /**< first partition of a list in pool->id, or POD_HLO_NONE for 0, 1, 2, … */
} pod_hlo_groups;

typedef struct pod_hlo_pairs {
    uint32_t ids;   /**< source, target, source, target, … in pool->id */
    uint32_t count; /**< pairs */
} pod_hlo_pairs;

typedef struct pod_hlo_groups_pool {
    pod_hlo_interned group_text; /**< number = index of group */
    pod_hlo_interned pair_text;  /**< number = index of pairs */
    pod_hlo_groups *group;
    pod_hlo_pairs *pairs;
    pod_hlo_shuffle *shuffle;
    int32_t *id;
    uint32_t groups_capacity;
    uint32_t pairs_capacity;
    uint32_t nshuffles;
    uint32_t shuffles_capacity;
    uint32_t nids;
    uint32_t ids_capacity;
    uint32_t *seen; /**< seen[partition] = the last list that names it */
    uint32_t seen_capacity;
    uint32_t lists;
} pod_hlo_groups_pool;

/** Groups of a collective: its replica_groups, or all partitions if it has none. */
pod_status pod_hlo_groups_read(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                               const pod_hlo_instruction *collective, uint32_t *group,
                               pod_error *err);
/** Pairs of a permute: its source_target_pairs, which must be there. */
pod_status pod_hlo_pairs_read(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                              const pod_hlo_instruction *permute, uint32_t *pairs, pod_error *err);
void pod_hlo_groups_fini(pod_hlo_groups_pool *pool);

/** Partition at a position: group · size + rank. */
int32_t pod_hlo_groups_partition(const pod_hlo_groups_pool *pool, uint32_t group, int64_t position);
/** All of them: partitions[count · size]. */
void pod_hlo_groups_list(const pod_hlo_groups_pool *pool, uint32_t group, int32_t *partitions);
