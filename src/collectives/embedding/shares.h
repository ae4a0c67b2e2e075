/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/shares.h  How much of the vector takes which order of the axes.
 *
 *  Model: an order o of the axes that gets the share w_o loads axis a with w_o · load[o][a] of the vector, where load
 *  = stride · (L - 1) · span / n: L the length of its ring on that axis, span the product of the lengths
 *  walked before (ring_order.h), stride the hops from one rank to the next, over links that as many groups share.
 *  Where all strides are 1, an order loads (n - 1)/n in sum over all axes, so orders differ only in where. The
 *  shares solve the linear program
 *
 *      minimise t   subject to   Σ_o w_o · load[o][a] <= t · links[a] for every axis a,   Σ w_o = 1,   w_o >= 0
 *
 *  with links[a] the links that a chip with the fewest of them has along a: 2 on a closed axis, 1
 *  on an open one. It is so small (at most 3 axes and 6 orders; with more axes only the cyclic
 *  orders are used) that its vertices are simply listed: m orders and m tight axes give m + 1 equations for
 *  m shares and t.
 *
 *  Optimal vertices use at most as many orders as there are axes: few messages. The mean of all optimal
 *  vertices is optimal too, uses the orders evenly, and fills the pipeline better.
 *
 *  Threads: none. */
#pragma once

#include "collectives/embedding/axes.h"

enum { POD_COLL_ORDERS_MAX = 6 };

typedef struct pod_coll_shares {
    int norders;
    int axis[POD_COLL_ORDERS_MAX][POD_GROUP_DIMS_MAX]; /**< first to be gathered first */
    double share[POD_COLL_ORDERS_MAX];                 /**< > 0, add up to 1 */
    double busiest; /**< t: share of the vector that the busiest link carries in an all-gather */
} pod_coll_shares;

/** Best shares. @param even  the mean of the optimal vertices; else the one with the fewest orders
 *  @return POD_E_NOMEM */
pod_status pod_coll_shares_get(const pod_coll_axes *axes, bool even, pod_coll_shares *shares,
                               pod_error *err);

/** The same from orders of three axes that have axis `end` first or last. */
pod_status pod_coll_shares_get_ending(const pod_coll_axes *axes, bool even, int end,
                                      pod_coll_shares *shares, pod_error *err);
