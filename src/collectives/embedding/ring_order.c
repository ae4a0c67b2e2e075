/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/ring_order.h"

#include <stdlib.h>
#include <string.h>

/* Rings over quotients: walk the first axis until it meets itself, then from all of these ranks
 * along the next until that meets them, and so on. */
static void number_quotients(pod_ring_order *order, const pod_coll_axes *axes, int32_t *seen)
{
    const int levels = order->levels;
    int32_t found = 1;
    for (int32_t r = 0; r < axes->nranks; ++r) {
        seen[r] = -1;
    }
    seen[0] = 0; /* seen[slot] = rank, filled in slot order */
    for (int level = 0; level < levels; ++level) {
        const int32_t span = found;
        int32_t length = 1;
        for (;;) {
            const int32_t start = seen[found - span];
            const int32_t next = pod_coll_axes_hop(axes, start, order->axis[level], 0)->rank;
            bool met = false;
            for (int32_t i = 0; i < span && !met; ++i) {
                met = seen[i] == next;
            }
            if (met) {
                break;
            }
            for (int32_t i = 0; i < span; ++i, ++found) {
                seen[found] =
                    pod_coll_axes_hop(axes, seen[found - span], order->axis[level], 0)->rank;
            }
            ++length;
        }
        order->length[level] = length;
        order->span[level + 1] = span * length;
    }
    for (int32_t slot = 0; slot < axes->nranks; ++slot) {
        for (int level = 0; level < levels; ++level) {
            order->digits[(int64_t)seen[slot] * levels + level].digit =
                slot / order->span[level] % order->length[level];
        }
    }
}

/* base of a level = sum over the levels after it of digit · span */
static void sum_bases(pod_ring_order *order, int32_t nranks)
{
    for (int32_t r = 0; r < nranks; ++r) {
        pod_ring_digit *digits = &order->digits[(int64_t)r * order->levels];
        int32_t base = 0;
        for (int level = order->levels - 1; level >= 0; --level) {
            digits[level].base = base;
            base += digits[level].digit * order->span[level];
        }
    }
}

bool pod_ring_order_number(pod_ring_order *order, const pod_coll_axes *axes)
{
    const int levels = order->levels;
    const size_t n = (size_t)axes->nranks;
    order->span[0] = 1;
    order->digits = calloc(n * (size_t)(levels ? levels : 1), sizeof *order->digits);
    if (!order->digits) {
        return false;
    }
    if (axes->quotient) {
        int32_t *seen = malloc(n * sizeof *seen);
        if (seen) {
            number_quotients(order, axes, seen);
            sum_bases(order, axes->nranks);
        }
        free(seen);
        return seen != NULL;
    }
    for (int level = 0; level < levels; ++level) {
        order->length[level] = axes->axis[order->axis[level]].length;
        order->span[level + 1] = order->span[level] * order->length[level];
        for (int32_t r = 0; r < axes->nranks; ++r) {
            order->digits[(int64_t)r * levels + level].digit =
                axes->position[(int64_t)r * axes->naxes + order->axis[level]];
        }
    }
    sum_bases(order, axes->nranks);
    return true;
}

pod_status pod_ring_order_lengths(const pod_coll_axes *axes, int naxes, const int *axis,
                                  int32_t *length, pod_error *err)
{
    pod_ring_order order = {.levels = naxes};
    memcpy(order.axis, axis, (size_t)naxes * sizeof *axis);
    const bool numbered = pod_ring_order_number(&order, axes);
    free(order.digits);
    if (!numbered) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the rings of %d chips; use fewer chips",
                        (int)axes->nranks);
    }
    memcpy(length, order.length, (size_t)naxes * sizeof *length);
    return POD_OK;
}
