/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/groups.h  Which devices take part in a collective together, in every form of the text.
 *
 *  Model: a program runs on replicas times partitions; partition p of replica r is device
 *  r · partitions + p. All forms give `count` lists of `size` numbers, each of a range once:
 *
 *      {{0,1},{2,3}}   {}                        lists; all partitions in one group
 *      [4,2]<=[2,4]T(1,0)                        0…7 shaped 2x4, transposed, cut in 4 lists of 2
 *      mesh['a'=2,'b'=4] {'a'}                   0…7 shaped 2x4; a group differs along a only
 *      mesh[…], device_ids=([4,2]T(1,0)) {'a'}   the same over these devices, or over (0,2,1,3,…)
 *      mesh['a'=8] {'a':(2)2}                    a is split into 2 x 2 x rest, major first; a group
 *                                                differs along the second part only
 *
 *  What the numbers are, and who else is in a group (XLA's group modes):
 *
 *      channel_id  use_global_device_ids    numbers     a group of the list is, for
 *      no                                   replicas    these replicas, each partition by itself
 *      no          true                     an error, as in XLA
 *      yes         true                     devices     these devices
 *      yes         false (all-reduce,       replicas    these replicas with all their partitions
 *                  all-gather, reduce-scatter)
 *      yes         (other collectives)      partitions  these partitions, each replica by itself
 *
 *  In programs of one replica or of one partition numbers are those of the devices wherever they can be: most
 *  texts are such, and are written so by front ends that set neither attribute.
 *
 *  Only explicit lists are stored as such; others stay the two reshapes and transposes that they are, so that a
 *  short text can't ask for much memory. Groups of the same text are the same number.
 *
 *      position (group · size + rank) --shuffle[1]--> place in the mesh --shuffle[0]--> number
 *
 *  A permute is a list of pairs of a source and a target; each receives at most once.
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

/** What the numbers of a list are. */
typedef enum pod_hlo_numbering {
    POD_HLO_DEVICES,
    POD_HLO_REPLICAS,      /**< each partition by itself */
    POD_HLO_PARTITIONS,    /**< each replica by itself */
    POD_HLO_WHOLE_REPLICAS /**< with all their partitions */
} pod_hlo_numbering;
enum { POD_HLO_NUMBERINGS = 4 };

typedef struct pod_hlo_groups {
    int32_t size;       /**< devices */
    int32_t count;      /**< of them all */
    uint8_t numbers;    /**< pod_hlo_numbering of the list */
    int32_t list_size;  /**< of the list */
    int32_t partitions; /**< of the module */
    uint32_t shuffles;  /**< first of two in pool->shuffle, or POD_HLO_NONE */
    uint32_t ids;       /**< first number of a list in pool->id, or POD_HLO_NONE for 0, 1, 2, … */
} pod_hlo_groups;

typedef struct pod_hlo_pairs {
    uint32_t ids;   /**< source, target, source, target, … in pool->id: devices */
    uint32_t count; /**< pairs */
} pod_hlo_pairs;

typedef struct pod_hlo_groups_pool {
    pod_hlo_interned text; /**< of both */
    /** number_of[text * POD_HLO_NUMBERINGS + numbers]: index of group or pairs, + 1 */
    uint32_t *number_of;
    uint32_t numbers_capacity;
    pod_hlo_groups *group;
    pod_hlo_pairs *pairs;
    pod_hlo_shuffle *shuffle;
    int32_t *id;
    uint32_t ngroups;
    uint32_t npairs;
    uint32_t groups_capacity;
    uint32_t pairs_capacity;
    uint32_t nshuffles;
    uint32_t shuffles_capacity;
    uint32_t nids;
    uint32_t ids_capacity;
    const char *what; /**< a number is of: "a replica", … */
    uint32_t *seen;   /**< seen[number] = the last list that names it */
    uint32_t seen_capacity;
    uint32_t lists;
} pod_hlo_groups_pool;

/** Groups of a collective: its replica_groups, or all there are if it has none. */
pod_status pod_hlo_groups_read(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                               const pod_hlo_instruction *collective, uint32_t *group,
                               pod_error *err);
/** Pairs of a permute: its source_target_pairs, which must be there. */
pod_status pod_hlo_pairs_read(pod_hlo_groups_pool *pool, const pod_hlo_module *module,
                              const pod_hlo_instruction *permute, uint32_t *pairs, pod_error *err);
void pod_hlo_groups_fini(pod_hlo_groups_pool *pool);

/** Device at a position: group · size + rank. */
int32_t pod_hlo_groups_device(const pod_hlo_groups_pool *pool, uint32_t group, int64_t position);
/** All of them: devices[count · size]. */
void pod_hlo_groups_list(const pod_hlo_groups_pool *pool, uint32_t group, int32_t *devices);
