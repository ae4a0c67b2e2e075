/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/numerics.h  The numbers of a matmul, as a TPU computes them.
 *
 *  Model: C[m,n] = A[m,k] · B[k,n], row-major and contiguous.
 *
 *      inputs     products and sums              result
 *      bf16       exact products, f32 sums       f32
 *      fp8 (two)  exact products, f32 sums       f32
 *      f32        f32                            f32
 *      int8       exact, int32 sums that wrap    int32
 *
 *  Float sums go through BLAS (sgemm, one thread): the result depends on shapes and machine only by
 *  the order of the sums. Where every partial sum is exact (small integers), so is the result, in
 *  any order; that is what podsim's tests of distributed matmuls rely on. Integer sums are exact in
 *  any order.
 *
 *  Ownership: the caller's arrays, which must not overlap. Threads: none. */
#pragma once

#include "base/dtype.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Sizes of a product, each >= 0; m·k, k·n and m·n below 2^31 each. */
typedef struct pod_gemm_shape {
    int64_t m;
    int64_t k;
    int64_t n;
} pod_gemm_shape;

/** C = A · B, or C += A · B. Not collective.
 *  @param dtype       of a and b; not POD_DTYPE_INT8
 *  @param a           [m,k] elements of dtype
 *  @param b           [k,n] elements of dtype
 *  @param accumulate  add to what c holds, else overwrite (k = 0 then gives zeros)
 *  @param[out] c      [m,n]
 *  @return POD_OK; POD_E_RANGE (a size); POD_E_NOMEM (c is undefined) */
pod_status pod_gemm_f32(pod_dtype dtype, pod_gemm_shape shape, const void *a, const void *b,
                        bool accumulate, float *c, pod_error *err);

/** The same for int8 with int32 sums, which wrap modulo 2^32. */
pod_status pod_gemm_int8(pod_gemm_shape shape, const int8_t *a, const int8_t *b, bool accumulate,
                         int32_t *c, pod_error *err);

/** A product of parts of row-major arrays: C = A·B or C += A·B, each operand transposed or not. */
typedef struct pod_gemm_parts {
    pod_gemm_shape shape; /**< of the product: A is [m,k] after its transposition */
    bool transpose_a;     /**< a holds [k,m] */
    bool transpose_b;     /**< b holds [n,k] */
    int64_t stride_a;     /**< elements from a row of what a holds to the next */
    int64_t stride_b;
    int64_t stride_c;
    bool accumulate;
} pod_gemm_parts;

/** Whether BLAS has the memory that its first call takes: before pod_gemm_parts_f64 and _f32. Not collective.
 *  @return POD_E_NOMEM */
pod_status pod_gemm_ready(pod_error *err);
/** In f64, for references. Sizes below 2^31 each; k = 0 gives zeros or leaves c. Not collective. */
void pod_gemm_parts_f64(const pod_gemm_parts *parts, const double *a, const double *b, double *c);
/** In f32. Not collective. */
void pod_gemm_parts_f32(const pod_gemm_parts *parts, const float *a, const float *b, float *c);
