/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/dtype.h  Element types: size, name, conversion and the additions of a reduction.
 *
 *  Model: what a TPU does with the elements that a collective or a matmul moves.
 *
 *      name      bytes  layout                   largest    addition
 *      bf16      2      s1 e8 m7                 3.39e38    in f32, rounded to bf16
 *      f32       4      s1 e8 m23                3.40e38    in f32
 *      int8      1      two's complement         127        wraps modulo 256
 *      fp8       1      s1 e4 m3 (OCP E4M3FN)    448        in f32, rounded to fp8
 *      fp8_e5m2  1      s1 e5 m2 (OCP E5M2)      57344      in f32, rounded to fp8_e5m2
 *
 *  Rounding is to nearest, ties to even, subnormals kept; it agrees bit for bit with the types of
 *  JAX (ml_dtypes). Overflow gives infinity; e4m3fn has none and gives NaN. A NaN becomes the quiet
 *  NaN of its sign: bf16 7fc0, fp8 7f, fp8_e5m2 7e (| sign bit). f32 to int8 rounds likewise, clamps
 *  to [-128, 127] and takes NaN to 0.
 *
 *  Storage: little-endian arrays of uint16_t (bf16), float, int8_t or uint8_t, aligned to the
 *  element. Threads: any (no state). Nothing here fails except parsing. */
#pragma once

#include "base/status.h"

#include <stdint.h>

/** enumerator, name on the command line and in tables, bytes per element */
#define POD_DTYPE_LIST(X)                                                                          \
    X(POD_DTYPE_BF16, "bf16", 2)                                                                   \
    X(POD_DTYPE_F32, "f32", 4)                                                                     \
    X(POD_DTYPE_INT8, "int8", 1)                                                                   \
    X(POD_DTYPE_FP8, "fp8", 1)                                                                     \
    X(POD_DTYPE_FP8_E5M2, "fp8_e5m2", 1)

#define POD_DTYPE_ENUM(id, name, bytes) id,
typedef enum pod_dtype { POD_DTYPE_LIST(POD_DTYPE_ENUM) POD_DTYPE_COUNT } pod_dtype;
#undef POD_DTYPE_ENUM

/** Bytes of one element. Not collective. */
int pod_dtype_size(pod_dtype dtype);

/** Name, static. Not collective. */
const char *pod_dtype_name(pod_dtype dtype);

/** Name to dtype. POD_E_USAGE, naming the nearest and the known ones, if it is none.
 *  Not collective.
 *  @param[out] dtype  untouched on error */
pod_status pod_dtype_parse(const char *text, pod_dtype *dtype, pod_error *err);

/** One value. Not collective. */
uint16_t pod_bf16_from_f32(float value);
float pod_bf16_to_f32(uint16_t bits);
uint8_t pod_fp8_e4m3fn_from_f32(float value);
float pod_fp8_e4m3fn_to_f32(uint8_t bits);
uint8_t pod_fp8_e5m2_from_f32(float value);
float pod_fp8_e5m2_to_f32(uint8_t bits);

/** Round `count` >= 0 floats to `dtype`. The arrays must not overlap. Not collective.
 *  @param[out] out  `count` elements of dtype */
void pod_dtype_from_f32(pod_dtype dtype, void *out, const float *in, int64_t count);

/** `count` >= 0 elements of `dtype` as floats, exactly. The arrays must not overlap.
 *  Not collective. */
void pod_dtype_to_f32(pod_dtype dtype, float *out, const void *in, int64_t count);

/** dst[i] = dst[i] + src[i] for `count` >= 0 elements of `dtype`: one step of a reduction. The
 *  arrays must not overlap. Not collective. */
void pod_dtype_add(pod_dtype dtype, void *dst, const void *src, int64_t count);
