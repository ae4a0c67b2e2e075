/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/tile.h  What the kernels of chip/ have in common: how a core lays out and copies tiles, and the largest
 *  totals that they count. */
#pragma once

#include "base/units.h"

enum {
    POD_TILE_SUBLANES = 8,          /**< rows of A come in groups of 8 */
    POD_TILE_LANES = 128,           /**< every other side comes in 128s */
    POD_TILE_BUFFERS = 2,           /**< one is copied while the other is in use */
    POD_TILE_ACCUMULATOR_BYTES = 4, /**< of an element of a sum: f32 */
    POD_TILE_ACCUMULATE_OPS = 1,    /**< of the VPU, for an element of the result */
};

/** Totals above it (below 2^62) are refused, so that those in int64_t fit. */
static const double POD_TILE_TOTAL_MAX = 4.0e18;
