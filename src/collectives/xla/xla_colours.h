/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/xla/xla_colours.h  Orders of axes that keep different axes busy at the same time.
 *
 *  Model: the compiler numbers axes y = 0, x = 1, z = 2 and starts from a fixed table: the three
 *  rotations of (0 1 2), which are yxz, xzy, zyx; for two axes, higher axis first, then swapped.
 * The sizes decide how many entries it uses: 2x2x2  all three                4x4x16  yxz xyz (two
 * equal axes change places in front) 4x4x8  all three, unequal       4x8x8   the same     (k,k,2k
 * and k,2k,2k) 4x8x16 the first: yxz           4x20x20 yzx zyx Threads: none. Errors: none;
 * internal to xla_choice.c. */
#pragma once

#include <stdbool.h>

/** Axes of one group. */
typedef struct pod_xla_group {
    int naxes;    /**< with more than one chip, 1 to 3 */
    int axis[3];  /**< ascending: 0 = x */
    int chips[3]; /**< size by axis number; 1 for axes outside the group */
} pod_xla_group;

typedef struct pod_xla_colours {
    int count;
    bool unequal;    /**< the colours' rings differ in size from colour to colour */
    int order[3][3]; /**< order[colour][phase] = axis */
} pod_xla_colours;

/** Entry of the compiler's table of orders for the group. @param colour  0 ≤ colour; wraps at naxes
 */
void pod_xla_table_order(const pod_xla_group *group, int colour, int order[3]);

/** The colours it uses. @param allow_unequal  k,k,2k, k,2k,2k and k,2k may have one per axis */
pod_xla_colours pod_xla_colour(const pod_xla_group *group, bool allow_unequal);

/** k,k,2k or k,2k,2k in any order. */
bool pod_xla_twistable(const int chips[3]);
