/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/data.h  The numbers that a model starts from.
 *
 *  Model: small whole numbers such that sums have few terms, whatever they run over. Then partial sums
 *  are whole numbers below 2^8, exact in bf16, and a step gives the same bits in any order of
 *  addition: on any layout, with any algorithm. (workload/verify/reference.h checks that it is so, element
 *  by element, and bounds the difference where it is not.)
 *
 *      input    every element -1, 0 or 1, with 5, 6 and 5 chances in 16
 *      weight   [R, C]: t elements of a column are ±1, the others 0; t = 1 if R < C, else the larger
 *               of 2 and R/C: few terms per column and per row
 *      target   the same with t = 2
 *      moments  0
 *
 *  Element k of column c lies in row (stride · (c·t + k) + start) mod R, with a stride prime to R near
 *  R over the golden ratio: rows get equally many, and neighbours lie far apart, so every shard of
 *  every cut matters. Signs, starts and inputs are pod_rng of (seed, name of the array, place).
 *
 *  Threads: none (no state). */
#pragma once

#include "workload/build/layout.h"
#include "workload/build/tensors.h"

/** A rectangle of a whole array: rows [row, row + rows), columns [column, column + columns). */
typedef struct pod_patch {
    int64_t row;
    int64_t rows;
    int64_t column;
    int64_t columns;
} pod_patch;

/** What a chip holds of a tensor. @param chip  as pod_work_layout_piece */
pod_patch pod_tensor_patch(const pod_tensor *tensor, const pod_work_layout *layout, int32_t chip);

/** The random stream of an array (stream of pod_rng), by its name. */
uint64_t pod_data_stream(const char *name);

/** Fill a patch of a tensor (row-major, `dtype`). Outputs and gradients are left alone. */
void pod_tensor_fill(const pod_tensor *tensor, const pod_patch *patch, uint64_t seed,
                     pod_dtype dtype, void *out);
