/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/matmul.h  The matmul that a convolution or dot is.
 *
 *  Model: `count` products of m x k by k x n. On TPUs a matmul is mostly written as a convolution,
 *  whose window makes its spatial dims rows, columns, contraction or batch. A spatial dim has n =
 *  size of the lhs, w = size of the window, o = size of the result, and v = number of pairs of a result
 *  position and a tap that hit an element: position·stride - pad_low + tap·rhs_dilate lies in
 *  [0, (n - 1)·lhs_dilate] and is a multiple of lhs_dilate. The first that fits:
 *
 *      w = 1                  rows          m · v
 *      o = 1                  contraction   k · v
 *      n = 1, v = o = w       columns       n · o
 *      n = o = w = v          batch         count · o
 *      else                   a true convolution: m · o, k · v / o
 *
 *  starting from m = batch / batch_group_count, k = the kernel's input features, n = its output features
 *  / feature_group_count, count = feature_group_count · batch_group_count.
 *  FLOPs = 2 · (batch / batch_group_count) · output features · input features · Πv, exactly; k is rounded
 *  up once. A dot has batch dims (count), contracting dims (k) and free dims (m of the lhs, n of the
 *  rhs).
 *
 *      size=1x64 pad=0_0x63_63, 0bf1_i1o0->0b1f, [6,2048,4096,1] by [4096,64,128,1]:
 *      dim 0: w = 1, v = 6: m = 2048 · 6; dim 1: n = 1, w = o = v = 64: n = 128 · 64; k = 4096
 *
 *  Threads: none. Not collective. Errors: POD_E_INVALID with the place (labels, window or dims that
 *  don't fit the shapes), POD_E_RANGE (FLOPs beyond 2^62; more than 2^20 taps and positions). */
#pragma once

#include "base/dtype.h"
#include "hlo/module.h"

typedef struct pod_hlo_matmul {
    uint32_t instruction;
    int64_t count;
    int64_t m;
    int64_t k;
    int64_t n;
    int64_t flops;          /**< of one run */
    int64_t flops_all_taps; /**< the same if every tap hit: Π(o·w) instead of Πv */
    pod_dtype dtype;        /**< that the MXU computes in: int8, fp8 or bf16 */
    bool at_most; /**< a ragged dot, the sizes of whose groups aren't in the text: all of it */
    int passes;   /**< of bf16: 1, or 3 and 6 for f32 of high and highest precision */
} pod_hlo_matmul;

/** @param instruction  a convolution, dot or ragged dot */
pod_status pod_hlo_matmul_of(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                             pod_hlo_matmul *matmul, pod_error *err);

/** One spatial dim of a window; pads may be negative. */
typedef struct pod_hlo_window_dim {
    int64_t size;
    int64_t stride;
    int64_t pad_low;
    int64_t pad_high;
    int64_t lhs_dilate;
    int64_t rhs_dilate;
} pod_hlo_window_dim;

enum { POD_HLO_SPATIAL_MAX = 16, POD_HLO_LABELS_MAX = POD_HLO_SPATIAL_MAX + 2 };

/** Read attribute window: "{size=3x3 stride=2x2 pad=1_1x1_1 …}". An attribute that isn't there has no dims.
 *  @param[out] dims  room for POD_HLO_SPATIAL_MAX */
pod_status pod_hlo_window(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                          pod_hlo_window_dim *dims, int *count, pod_error *err);

/** Pairs of a position and a tap that hit one of n elements; all arguments at least 0.
 *  @param positions  of the result
 *  @return POD_E_RANGE: positions and taps both beyond 2^20, or more than 2^62 pairs */
pod_status pod_hlo_window_hits(const pod_hlo_window_dim *dim, int64_t n, int64_t positions,
                               int64_t *hits);
