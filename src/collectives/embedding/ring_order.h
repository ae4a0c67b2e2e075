/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/ring_order.h  An order of axes to walk, and the numbers it gives the blocks.
 *
 *  Model: level 0 is the axis walked last when scattering. Block b belongs to the rank whose digits, one
 *  for each level, make b = sum of digit · span, span being the product of the lengths of the levels before. So
 *  the blocks that travel together at a level are a run of slots. On quotients (axes.h) a digit counts the steps
 *  along its axis between cosets.
 *
 *  Ownership: the caller frees digits. Threads: none. */
#pragma once

#include "collectives/embedding/axes.h"

/** Where a rank is in the ring at a level. */
typedef struct pod_ring_digit {
    int32_t digit;
    int32_t base; /**< first slot of the rank's run at this level if the digit were 0 */
} pod_ring_digit;

typedef struct pod_ring_order {
    int levels;
    int axis[POD_GROUP_DIMS_MAX];
    int32_t length[POD_GROUP_DIMS_MAX];   /**< of the ring at a level */
    int32_t span[POD_GROUP_DIMS_MAX + 1]; /**< product of the lengths before */
    pod_ring_digit *digits;               /**< digits[rank * levels + level] */
    int first_digit;                      /**< where a table of several orders has them */
} pod_ring_order;

/** Fill length, span and digits of an order whose levels and axes are set. @return false without memory */
bool pod_ring_order_number(pod_ring_order *order, const pod_coll_axes *axes);

/** Lengths of the rings when axes are walked in an order (they depend on it on a twisted slice).
 *  @param axis    naxes axes, first to be gathered first
 *  @param[out] length  naxes
 *  @return POD_E_NOMEM */
pod_status pod_ring_order_lengths(const pod_coll_axes *axes, int naxes, const int *axis,
                                  int32_t *length, pod_error *err);
