/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/group.h  Which chips take part in one collective together.
 *
 *  Model: the chips of a slice are split into `count` groups of `size` ranks; all groups run the
 *  same collective at once and contend for the links. A group is a grid of ndims dims; a dim
 *  is a physical axis or a part of it: `size` positions, `stride` chips apart. On an axis of 8:
 *
 *      {x, 8, 1}  0 1 2 3 4 5 6 7    the whole axis
 *      {x, 4, 1}  0 1 2 3            a block of neighbours; the other group is 4 5 6 7
 *      {x, 2, 4}  0 4                strided; the other groups are 1 5, 2 6, 3 7
 *
 *  Dims of one axis nest like digits of the coordinate: {x, 4, 1} and {x, 2, 4} together are the
 *  whole axis. rank = i0 + size0·(i1 + size1·(i2 + …)): dim 0 fastest, as chip numbers count x
 *  fastest. Dims of size 1 are dropped.
 *
 *  A dim is closed when its last position is one stride before its first over the wrap: the axis
 *  wraps without twist and size·stride is the axis. (A twisted wrap leads to another line of the
 *  axis: on k,k,2k x and y are open and z closed; on k,2k,2k x is open, y and z closed.)
 *
 *  Groups are numbered by their smallest chip. A group without grid structure (a mesh that JAX lays
 *  in an order of its own) has ndims 0 and only the lists; so has a group of one chip.
 *
 *  Several slices. Chip c of slice s has number s · (chips of a slice) + c. A group inside a slice stands
 *  for the same group of every slice: pod_group_chip leads from a rank to the chip in the slice
 *  of another chip. A group that spans `slices` > 1 slices has the chips of all slices in its lists;
 *  rank = rank inside + (ranks inside) · place among its slices, and `inside` keeps the groups of one
 *  slice with their dims (it has none of its own).
 *
 *  Ownership: init allocates the arrays and `inside`, fini frees. Threads: read-only after init. */
#pragma once

#include "ici/slice.h"

enum { POD_GROUP_DIMS_MAX = 6 };

typedef struct pod_group_dim {
    int axis;
    int32_t size;
    int32_t stride;
    bool closed;
} pod_group_dim;

typedef struct pod_group {
    int ndims;
    pod_group_dim dim[POD_GROUP_DIMS_MAX];
    int32_t size;      /**< ranks of one group */
    int32_t count;     /**< groups */
    int32_t *chip_of;  /**< chip_of[group * size + rank] */
    int32_t *group_of; /**< group_of[chip] */
    int32_t *rank_of;  /**< rank_of[chip] */
    /** of the slice, or of all; more than size * count where some chips are in no group */
    int32_t chips;
    int32_t slices;           /**< that one group spans; 0 or 1 = it lies inside one */
    struct pod_group *inside; /**< slices > 1: the groups of one slice, else NULL */
} pod_group;

/** Groups that span whole physical axes. Not collective.
 *  @param axes  bit a set = axis a; 0 = groups of one chip
 *  @return POD_E_INVALID (an axis that the chip doesn't have), POD_E_NOMEM */
pod_status pod_group_init_axes(pod_group *group, const pod_slice *slice, unsigned axes,
                               pod_error *err);
/** Groups over parts of axes. Not collective.
 *  @param dims  `ndims` <= POD_GROUP_DIMS_MAX, of which `closed` is ignored (it is computed);
 *               size·stride divides the axis, and dims of one axis nest: ordered by stride, each
 *               stride is a multiple of the previous size·stride
 *  @return POD_E_INVALID (a dim that does not fit so), POD_E_NOMEM */
pod_status pod_group_init_dims(pod_group *group, const pod_slice *slice, const pod_group_dim *dims,
                               int ndims, pod_error *err);
/** Groups from lists. Not collective. The order within a list is the order of ranks; the lists are
 *  renumbered by their smallest chip.
 *  @param chips  chips[count * size], each chip of the slice exactly once
 *  @return POD_E_INVALID (a chip that is missing, repeated or not there), POD_E_NOMEM */
pod_status pod_group_init_lists(pod_group *group, const pod_slice *slice, const int32_t *chips,
                                int32_t count, int32_t size, pod_error *err);
/** Groups from lists whose order says nothing, as those of a compiled program. Not collective. If they are
 *  a grid, the result is that of pod_group_init_dims: dims by axis, then by stride, those of one axis
 *  that fit together merged; ranks count as the grid does. Else it is that of pod_group_init_lists.
 *  @param chips  as of pod_group_init_lists
 *  @return as pod_group_init_lists */
pod_status pod_group_init_sets(pod_group *group, const pod_slice *slice, const int32_t *chips,
                               int32_t count, int32_t size, pod_error *err);
/** Groups of which some chips of the slice are in none. Not collective. If they are groups of a grid, the result is all
 *  groups of that grid, as of pod_group_init_dims; else it has the groups of the lists alone, in the order of their
 *  smallest chips: group_of and rank_of are -1 elsewhere. Lists of all chips are as of pod_group_init_sets.
 *  @param chips    chips[count * size], each chip of the slice at most once
 *  @param ordered  the order within a list is the order of ranks, and grids aren't looked for
 *  @return as pod_group_init_lists */
pod_status pod_group_init_some(pod_group *group, const pod_slice *slice, const int32_t *chips,
                               int32_t count, int32_t size, bool ordered, pod_error *err);
/** Groups over several slices: those of `inside` (copied) in each of the slices that go together.
 *  Not collective.
 *  @param nslices     slices in all
 *  @param slice_list  nslices entries, each slice once: the lists of slices that go together, `span` each,
 *                     one after the other; NULL = all slices together, in order (span = nslices)
 *  @param span        >= 2, divides nslices
 *  @return POD_E_INVALID (span that doesn't divide; a slice missing or repeated), POD_E_RANGE (too many
 *          chips), POD_E_NOMEM */
pod_status pod_group_init_slices(pod_group *group, const pod_group *inside, int32_t nslices,
                                 const int32_t *slice_list, int32_t span, pod_error *err);
/** Free the arrays and zero the struct; a zeroed struct is fine. */
void pod_group_fini(pod_group *group);

/** Chips that group_of and rank_of are about: those of one slice, or of all. */
static inline int32_t pod_group_chips(const pod_group *group)
{
    return group->chips;
}

/** Rank and group of a chip of any slice, and the chip that has a rank in the group of `chip`. */
static inline int32_t pod_group_rank(const pod_group *group, int32_t chip)
{
    return group->rank_of[chip % pod_group_chips(group)];
}

static inline int32_t pod_group_number(const pod_group *group, int32_t chip)
{
    return group->group_of[chip % pod_group_chips(group)];
}

static inline int32_t pod_group_chip(const pod_group *group, int32_t chip, int32_t rank)
{
    const int32_t local = chip % pod_group_chips(group);
    const size_t first = (size_t)group->group_of[local] * (size_t)group->size;
    return chip - local + group->chip_of[first + (size_t)rank];
}

/** Links that a chip has along the axes on which the chips of the first group differ: what one collective over the
 *  group can keep busy there. 2x2 over both axes: 2; 16x16: 4. Two on an axis of three chips or more, closed or not,
 *  one on an axis of two: closed, its second cable leads to the same chip. Faults don't count. */
int pod_group_links(const pod_slice *slice, const pod_group *group);

/** Parse "xyz", "y", "none" (any order of letters) into an axes mask.
 *  @return POD_E_INVALID for an axis the chip doesn't have; POD_E_USAGE for other letters, repeats and an empty
 *          text */
pod_status pod_axes_parse(const char *text, const pod_slice *slice, unsigned *axes, pod_error *err);
/** "xyz", "y" or "none" into buf; returns buf. */
const char *pod_axes_name(unsigned axes, char buf[8]);
