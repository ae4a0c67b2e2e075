/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/ring.h  Private to workload/: in which order pieces pass a chip of a ring.
 *
 *  Model: n chips have a piece each, and pieces travel both ways. Piece s of the chip at position i is the one of
 *  position i - s (mod n), so all chips have the same program. A chip's own is piece 0; pieces 1 … n/2 come up from
 *  lower positions, n - 1 … n/2 + 1 down from higher ones. n = 4:
 *
 *      step       0          1             2             3
 *      piece      0, own     1, from i-1   3, from i+1   2, from i-1
 *
 *  Threads: none. */
#pragma once

#include <stdint.h>

typedef struct pod_piece_ring {
    int32_t n;
    int32_t up;   /**< pieces that come from lower positions: n/2 */
    int32_t down; /**< n - 1 - n/2 */
} pod_piece_ring;

static inline pod_piece_ring pod_piece_ring_of(int32_t n)
{
    return (pod_piece_ring){.n = n, .up = n / 2, .down = n - 1 - n / 2};
}

/** Number of the piece that comes k-th: 0, 1, n - 1, 2, n - 2, … */
static inline int32_t pod_piece_ring_arrival(const pod_piece_ring *ring, int32_t k)
{
    return k % 2 == 1 ? (k + 1) / 2 : (ring->n - k / 2) % ring->n;
}
