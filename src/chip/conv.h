/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/conv.h  How long a convolution and its derivatives take on one chip.
 *
 *  Model: Y[N, OH, OW, Cout] = X[N, H, W, Cin] * F[KH, KW, Cin, Cout], padded so that OH = ceil(H / stride) and OW
 *  likewise ("SAME"), on the arrays that matmuls have (chip/matmul.h):
 *
 *      op       rows            contracted        columns   stands still
 *      forward  N·OH·OW         KH·KW·Cin         Cout      F
 *      input    N·OH·OW a phase taps·Cout         Cin       F: the derivative by X
 *      weights  KH·KW·Cin       N·OH·OW           Cout      the derivative by Y: the derivative by F
 *
 *  Channels of a tap begin at a multiple of 8. Derivatives by the input fall into stride² phases of pixels, each
 *  with the taps that meet it, all taps together once; a phase that no tap meets is zeros. A forward convolution with
 *  a stride and few channels may have its pixels laid out as channels first (space to depth):
 *
 *      KH x KW taps of Cin  →  ceil(KH / stride) · ceil(KW / stride) taps of stride² · Cin, stride 1
 *
 *  which is done where the arrays need fewer tiles that way, and likewise for the derivative by the weights.
 *
 *      mxu  = row cycles of the busiest array, as of a matmul: a step is 8 rows through one tile
 *      hbm  = X, F and Y once each; what is contracted again for each block of columns where F (of weights: its
 *             derivative in f32) passes half of the VMEM set aside for blocks, and the rows of a picture that two of
 *             its tiles share where a picture is more than one tile
 *      time = start + first tile and block of F in + max(mxu, the rest of hbm) + last tile out + filling the arrays
 *
 *  On two cores pictures or columns are halved, whichever is quicker.
 *  Not modelled: pooling or elementwise work in the same kernel, other paddings, dilated or grouped windows.
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/matmul.h"

typedef enum pod_conv_op { POD_CONV_FORWARD, POD_CONV_INPUT, POD_CONV_WEIGHTS } pod_conv_op;

/** A convolution; all sizes >= 1. */
typedef struct pod_conv_shape {
    int64_t n; /**< pictures */
    int64_t h; /**< of X */
    int64_t w;
    int64_t cin;
    int64_t cout;
    int64_t kh;
    int64_t kw;
    int64_t stride; /**< of both dims */
} pod_conv_shape;

typedef struct pod_conv_args {
    pod_conv_op op;
    pod_conv_shape shape;
    pod_dtype dtype;
    bool one_core;
    bool alone; /**< as pod_matmul_args has it */
} pod_conv_args;

typedef struct pod_conv_time {
    pod_time_ps time_ps;
    pod_bound bound; /**< mxu, hbm or launch */
    int cores;
    int64_t m; /**< the product: rows, contracted, columns; of input: of all phases together */
    int64_t k;
    int64_t n;
    int64_t
        flops; /**< 2 · pixels of Y · KH · KW · Cin · Cout: taps that fall on the padding count, too */
    int64_t hbm_bytes;
    double peak_ops_per_s;
    double ops_per_s;
    double peak_frac;
    bool space_to_depth;
    int64_t tiles;  /**< of pictures, on one core */
    int64_t blocks; /**< of columns, on one core */
    pod_time_ps launch_ps;
    pod_time_ps mxu_ps;
    pod_time_ps hbm_ps;
    pod_time_ps exposed_ps;
    pod_time_ps fill_ps;
} pod_conv_time;

/** "64,56,56,64,64,3,3,1": N,H,W,Cin,Cout,KH,KW,stride, each >= 1. POD_E_USAGE. Not collective. */
pod_status pod_conv_shape_parse(const char *text, pod_conv_shape *shape, pod_error *err);

/** Pixels of the result along one dim. */
static inline int64_t pod_conv_out(int64_t size, int64_t stride)
{
    return (size + stride - 1) / stride;
}

/** The product that it is: rows, contracted, columns; of input, of all phases together. */
void pod_conv_product(pod_conv_op op, const pod_conv_shape *shape, int64_t mkn[3]);

/** FLOPs of a convolution, and of either of its derivatives. */
double pod_conv_flops(const pod_conv_shape *shape);

/** Not collective.
 *  @param[out] out  untouched on error
 *  @return POD_OK; POD_E_RANGE if flops, bytes or time exceed 63 bits */
pod_status pod_conv_time_get(const pod_chip_spec *chip, const pod_conv_args *args,
                             pod_conv_time *out, pod_error *err);

/** The formula with its numbers, for --explain, one line into buf (always terminated). Not collective. @return buf */
const char *pod_conv_explain(const pod_conv_time *time, char *buf, size_t size);
