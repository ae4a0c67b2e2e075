/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/grouped.h  How long a grouped matmul takes on one chip: the rows of each group times its own weights.
 *
 *  Model: m rows, sorted by group, in a kernel that is a grid of tiles (megablox, tokamax ragged_dot):
 *
 *      op        computes                                        contracts
 *      forward   rows [m, k] · weights [groups, k, n]            k
 *      rows      their derivative by the rows                    k, which is the layer's n
 *      weights   their derivative by the weights, [groups, k, n] m
 *
 *  Tiles are tile_m x tile_k x tile_n. A tile of rows is visited once for each group that has rows in it:
 *
 *      tiles = ceil(m / tile_m) + group boundaries inside a tile      (random groups: all groups - 1)
 *      steps = tiles · ceil(k / tile_k) · ceil(n / tile_n)
 *      work  = 2 · tile_m · pad(tile_k) · pad(tile_n) / (peak · sustained)
 *              + result's tile · 1 vector operation, its addition to the accumulator
 *              + both operands' tiles · 4 vector operations where k is no multiple of the tile's k (forward, rows)
 *              + each tile · 1 vector operation for each of its sides that is a width which is no multiple of 128
 *              + result's tile · 2 vector operations with operands of 8 bits, by the scales of its row and its column
 *      copies of a step:  forward, rows: the rows' tile and the result; the weights' tile once a group and
 *                         column where the contraction is one tile, else every step, with results
 *                         every ceil(k / tile_k) steps
 *                         weights: the tiles of both operands; the result's tile when a group ends. Of a group
 *                         without rows the result is zero: a step a tile, that writes it
 *      time  = Σ max(work, copies / HBM rate) + steps · block step
 *
 *  JAX's kernel (megablox) differs from tokamax's in two things. It masks the rows of other groups in both operands'
 *  tiles of the derivative by the weights, 4 vector operations an element. And the cores of a device share the tiles of
 *  the columns, its first dimension, so that of three tiles one core has two.
 *
 *  No tile is larger than the matrix rounded up to 128; whether k is cut unevenly is judged before that. Where no tile
 *  is given, it is that of tokamax's table (chip/ragged_tiles.h), or the one with the least such time of those that
 *  VMEM holds: multiples of 128, up to 1024 rows. All is per JAX device: two devices of a chip share the rows, and
 *  each has all groups; or they share the groups (split_groups), so that weights are read once. On v5p and v4 the
 *  kernel runs on one of a device's two cores (grouped_cores of chips.csv): no published shape passes 46 % of the chip.
 *
 *  Source of the form: 109 kernels of openxla/tokamax's autotuning data (validation/measurements.csv, class
 *  matmul-grouped). Ownership: plain values. Threads: none. */
#pragma once

#include "chip/chip.h"
#include "chip/matmul.h"

typedef enum pod_grouped_op {
    POD_GROUPED_FORWARD,
    POD_GROUPED_ROWS,
    POD_GROUPED_WEIGHTS,
} pod_grouped_op;

/** How many rows are of which group. */
typedef enum pod_group_sizes {
    POD_GROUPS_RANDOM,
    POD_GROUPS_EQUAL,
    POD_GROUPS_ONE, /**< all are of one; the others have none */
} pod_group_sizes;

typedef struct pod_grouped_args {
    pod_grouped_op op;
    int64_t groups; /**< >= 1 */
    int64_t m;      /**< rows of all groups of this chip */
    int64_t k;      /**< columns of the rows; contracted by forward and rows */
    int64_t n;      /**< columns of the result; weights: of the other operand */
    pod_dtype dtype;
    pod_group_sizes sizes; /**< equal: m must be a multiple of groups */
    bool megablox;         /**< JAX's kernel, not tokamax's */
    bool split_groups;     /**< devices of a chip share the groups; else the rows of each group */
    int cores;             /**< of the chip that take part; 0 = those that the kernel uses */
    pod_matmul_block tile; /**< all 0 = choose */
} pod_grouped_args;

typedef struct pod_grouped_time {
    pod_time_ps time_ps;
    pod_bound bound;        /**< the largest of mxu, vpu, hbm and launch (block steps) */
    int cores;              /**< that took part */
    pod_matmul_block tile;  /**< as given or chosen */
    pod_matmul_block block; /**< no larger than the matrix */
    int64_t tiles;          /**< of rows, on one device */
    int64_t steps;          /**< on one device */
    int64_t flops;          /**< 2·m·k·n, without padding */
    int64_t hbm_bytes;      /**< of all devices */
    double peak_ops_per_s;  /**< of the cores that took part */
    double ops_per_s;       /**< flops / time; 0 when time is 0 */
    double peak_frac;       /**< ops_per_s / peak_ops_per_s */
    /* the terms of one device */
    pod_time_ps mxu_ps;
    pod_time_ps vpu_ps;
    pod_time_ps hbm_ps;
    pod_time_ps step_ps;
} pod_grouped_time;

/** "forward", "rows" or "weights", static. Not collective. */
const char *pod_grouped_op_name(pod_grouped_op op);

/** Not collective.
 *  @param[out] out  untouched on error
 *  @return POD_OK; POD_E_RANGE if a size is negative, groups are equal and m is no multiple, or flops,
 *          bytes or time exceed 63 bits; POD_E_NOFIT if a given tile needs more VMEM than there is */
pod_status pod_grouped_time_get(const pod_chip_spec *chip, const pod_grouped_args *args,
                                pod_grouped_time *out, pod_error *err);

/** The formula with its numbers, for --explain, one line into buf (always terminated). Not collective. @return buf */
const char *pod_grouped_explain(const pod_grouped_time *time, char *buf, size_t size);
