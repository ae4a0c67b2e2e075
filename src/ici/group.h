/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/group.h  Which chips take part in one collective together.
 *
 *  Model: the chips of a slice are split into `count` groups of `size` ranks; all groups run the
 *  same collective at once and contend for the links. A group is a grid of ndims dims; a dim
 *  is a physical axis or a part of it: `size` positions, `stride` chips apart (stride 1 = a block
 *  of neighbours or the whole axis). rank = i0 + size0·(i1 + size1·(i2 + …)): dim 0 fastest, as chip
 *  numbers count x fastest. A dim is closed when its last position is one stride before its first
 *  over the wrap. Groups are numbered by their smallest chip.
 *
 *  A group without grid structure (a mesh that JAX lays in an order of its own) has ndims 0 and
 *  only the lists.
 *
 *  Ownership: init allocates the three arrays, fini frees. Threads: read-only after init. */
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
} pod_group;

/** Groups that span whole physical axes. On a twisted slice an axis ring is not closed.
 *  @param axes  bit a set = axis a; 0 = groups of one chip */
pod_status pod_group_init_axes(pod_group *group, const pod_slice *slice, unsigned axes,
                               pod_error *err);
/** Groups over parts of axes. @param dims  `ndims`; size·stride must divide the axis or equal it.
 *  Dims of one axis must nest (e.g. {x, 4, 1} and {x, 2, 4} of an axis of 8). */
pod_status pod_group_init_dims(pod_group *group, const pod_slice *slice, const pod_group_dim *dims,
                               int ndims, pod_error *err);
/** Groups from lists. @param chips  chips[count * size], each chip of the slice exactly once */
pod_status pod_group_init_lists(pod_group *group, const pod_slice *slice, const int32_t *chips,
                                int32_t count, int32_t size, pod_error *err);
void pod_group_fini(pod_group *group);

/** Parse "xyz", "y", "none" into an axes mask; POD_E_INVALID for an axis the slice doesn't have,
 *  POD_E_USAGE for other letters or repeats. */
pod_status pod_axes_parse(const char *text, const pod_slice *slice, unsigned *axes, pod_error *err);
/** "xyz" into buf[4]; "none" needs 5. */
const char *pod_axes_name(unsigned axes, char buf[8]);
