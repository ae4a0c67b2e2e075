/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/ragged_tiles.h  Tiles that tokamax's ragged_dot takes by itself where its caller names none.
 *
 *  The kernel looks the shape up in a table of tuned ones, by its own product: rows, and the k x n weights of each
 *  group, as forward has them. Source: openxla/tokamax, tokamax/_src/ops/ragged_dot/pallas_mosaic_tpu.py (tables of
 *  bf16). Shapes that it lacks were tuned by those who ran them: a search stands for that (chip/grouped.h).
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/matmul.h"

/** The tile of a product (pod_grouped_op), its k the one that this product contracts. m = 0 if the table hasn't the
 *  shape. Not collective.
 *  @param rows  of a device, of all groups
 *  @param kn    of the weights of a group, as forward has them */
pod_matmul_block pod_ragged_tile_find(int op, int64_t groups, int64_t rows, const int64_t kn[2]);
