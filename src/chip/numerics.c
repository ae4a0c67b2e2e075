/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/numerics.h"

#include "base/units.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

enum {
    /* Rows of A that are widened at a time: enough for BLAS to block, little memory. */
    PANEL_ROWS = 256,
    /* int8: products are at most 2^14, so that f32 sums of 1024 of them are exact. */
    EXACT_DEPTH = 1024,
    /* What OpenBLAS maps when it is first called, on x86-64. */
    BLAS_BYTES = 128 << 20,
};

static pod_status check_shape(pod_gemm_shape shape, pod_error *err)
{
    int64_t mk = 0;
    int64_t kn = 0;
    int64_t mn = 0;
    const bool fits = shape.m >= 0 && shape.k >= 0 && shape.n >= 0
                      && pod_mul_i64(shape.m, shape.k, &mk) && pod_mul_i64(shape.k, shape.n, &kn)
                      && pod_mul_i64(shape.m, shape.n, &mn);
    const bool small = shape.m <= INT32_MAX && shape.k <= INT32_MAX && shape.n <= INT32_MAX
                       && mk <= INT32_MAX && kn <= INT32_MAX && mn <= INT32_MAX;
    if (!fits || !small) {
        return pod_fail(
            err, POD_E_RANGE,
            "a product of %lldx%lldx%lld numbers; each matrix must have fewer than 2^31",
            (long long)shape.m, (long long)shape.k, (long long)shape.n);
    }
    return POD_OK;
}

/* OpenBLAS tries for ever to get its buffer where there is no memory for it, so look before its first call; later
 * calls use the same buffer. */
pod_status pod_gemm_ready(pod_error *err)
{
    static _Thread_local bool begun;
    if (begun) {
        return POD_OK;
    }
    void *volatile buffer = malloc(BLAS_BYTES); /* volatile, or a compiler may leave the pair out */
    if (buffer == NULL) {
        return pod_fail(err, POD_E_NOMEM,
                        "no memory for the matmuls of real numbers: OpenBLAS needs 128 MiB; use "
                        "--data none, or raise ulimit -v");
    }
    free(buffer);
    begun = true;
    return POD_OK;
}

/* OpenBLAS without threads (libopenblas0-serial) gives the same buffer to all who call it at once, and with threads
 * their number is one for the whole program: threads that use libpodsim multiply one after the other. */
static pthread_mutex_t blas_lock = PTHREAD_MUTEX_INITIALIZER;

static int blas_take(void)
{
    pthread_mutex_lock(&blas_lock);
    const int before = openblas_get_num_threads(); /* of the program that libpodsim is part of */
    openblas_set_num_threads(1);
    return before;
}

static void blas_give(int threads)
{
    openblas_set_num_threads(threads);
    pthread_mutex_unlock(&blas_lock);
}

static CBLAS_TRANSPOSE transposition(bool transposed)
{
    return transposed ? CblasTrans : CblasNoTrans;
}

void pod_gemm_parts_f32(const pod_gemm_parts *parts, const float *a, const float *b, float *c)
{
    const pod_gemm_shape *shape = &parts->shape;
    const int threads = blas_take();
    cblas_sgemm(CblasRowMajor, transposition(parts->transpose_a), transposition(parts->transpose_b),
                (int)shape->m, (int)shape->n, (int)shape->k, 1.0F, a, (int)parts->stride_a, b,
                (int)parts->stride_b, parts->accumulate ? 1.0F : 0.0F, c, (int)parts->stride_c);
    blas_give(threads);
}

void pod_gemm_parts_f64(const pod_gemm_parts *parts, const double *a, const double *b, double *c)
{
    const pod_gemm_shape *shape = &parts->shape;
    const int threads = blas_take();
    cblas_dgemm(CblasRowMajor, transposition(parts->transpose_a), transposition(parts->transpose_b),
                (int)shape->m, (int)shape->n, (int)shape->k, 1.0, a, (int)parts->stride_a, b,
                (int)parts->stride_b, parts->accumulate ? 1.0 : 0.0, c, (int)parts->stride_c);
    blas_give(threads);
}

static void sgemm(pod_gemm_shape shape, const float *a, const float *b, bool accumulate, float *c)
{
    const pod_gemm_parts parts = {.shape = shape,
                                  .stride_a = shape.k,
                                  .stride_b = shape.n,
                                  .stride_c = shape.n,
                                  .accumulate = accumulate};
    pod_gemm_parts_f32(&parts, a, b, c);
}

static void clear(void *c, bool accumulate, size_t bytes)
{
    if (!accumulate && bytes > 0) {
        memset(c, 0, bytes);
    }
}

/* Widen B whole and A by panels, so that memory stays at one copy of B. */
static pod_status gemm_widened(pod_dtype dtype, pod_gemm_shape shape, const void *a, const void *b,
                               bool accumulate, float *c, pod_error *err)
{
    const size_t k = (size_t)shape.k;
    const int64_t row_bytes = shape.k * pod_dtype_size(dtype);
    float *wide_b = malloc(k * (size_t)shape.n * sizeof *wide_b);
    float *wide_a = malloc(k * PANEL_ROWS * sizeof *wide_a);
    pod_status st = POD_OK;
    if (wide_a == NULL || wide_b == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to widen a product of %lldx%lldx%lld numbers",
                      (long long)shape.m, (long long)shape.k, (long long)shape.n);
        goto done;
    }
    pod_dtype_to_f32(dtype, wide_b, b, shape.k * shape.n);
    for (int64_t row = 0; row < shape.m; row += PANEL_ROWS) {
        pod_gemm_shape panel = shape;
        panel.m = shape.m - row < PANEL_ROWS ? shape.m - row : PANEL_ROWS;
        pod_dtype_to_f32(dtype, wide_a, (const char *)a + row * row_bytes, panel.m * panel.k);
        sgemm(panel, wide_a, wide_b, accumulate, c + row * shape.n);
    }
done:
    free(wide_a);
    free(wide_b);
    return st;
}

pod_status pod_gemm_f32(pod_dtype dtype, pod_gemm_shape shape, const void *a, const void *b,
                        bool accumulate, float *c, pod_error *err)
{
    POD_ASSERT(dtype != POD_DTYPE_INT8 && (unsigned)dtype < POD_DTYPE_COUNT);
    POD_TRY(check_shape(shape, err));
    if (shape.m == 0 || shape.n == 0 || shape.k == 0) {
        clear(c, accumulate, (size_t)shape.m * (size_t)shape.n * sizeof *c);
        return POD_OK;
    }
    POD_TRY(pod_gemm_ready(err));
    if (dtype == POD_DTYPE_F32) {
        sgemm(shape, a, b, accumulate, c);
        return POD_OK;
    }
    return gemm_widened(dtype, shape, a, b, accumulate, c, err);
}

/* Buffers of gemm_int8: a panel of rows and a slice of depth, widened, and their f32 product. */
struct int8_buffers {
    float *a; /* [PANEL_ROWS, EXACT_DEPTH] */
    float *b; /* [EXACT_DEPTH, n] */
    float *c; /* [PANEL_ROWS, n] */
};

/* Integers below 2^24 are exact in f32, so each slice of depth is; slices add as unsigned, which
 * wraps as two's complement does. */
static void add_slice(pod_gemm_shape shape, int64_t depth, int64_t ndepth, const int8_t *a,
                      const struct int8_buffers *buffers, int32_t *c)
{
    for (int64_t row = 0; row < shape.m; row += PANEL_ROWS) {
        const int64_t rows = shape.m - row < PANEL_ROWS ? shape.m - row : PANEL_ROWS;
        for (int64_t i = 0; i < rows; i++) {
            pod_dtype_to_f32(POD_DTYPE_INT8, buffers->a + i * ndepth,
                             a + (row + i) * shape.k + depth, ndepth);
        }
        const pod_gemm_shape panel = {.m = rows, .k = ndepth, .n = shape.n};
        sgemm(panel, buffers->a, buffers->b, false, buffers->c);
        int32_t *out = c + row * shape.n;
        for (int64_t i = 0; i < rows * shape.n; i++) {
            out[i] = (int32_t)((uint32_t)out[i] + (uint32_t)(int32_t)buffers->c[i]);
        }
    }
}

pod_status pod_gemm_int8(pod_gemm_shape shape, const int8_t *a, const int8_t *b, bool accumulate,
                         int32_t *c, pod_error *err)
{
    POD_TRY(check_shape(shape, err));
    clear(c, accumulate, (size_t)shape.m * (size_t)shape.n * sizeof *c);
    if (shape.m == 0 || shape.n == 0 || shape.k == 0) {
        return POD_OK;
    }
    pod_status st = pod_gemm_ready(err);
    if (st != POD_OK) {
        return st;
    }
    const size_t n = (size_t)shape.n;
    struct int8_buffers buffers = {
        .a = malloc(sizeof(float) * PANEL_ROWS * EXACT_DEPTH),
        .b = malloc(sizeof(float) * EXACT_DEPTH * n),
        .c = malloc(sizeof(float) * PANEL_ROWS * n),
    };
    if (buffers.a == NULL || buffers.b == NULL || buffers.c == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for a product of %lldx%lldx%lld numbers",
                      (long long)shape.m, (long long)shape.k, (long long)shape.n);
        goto done;
    }
    for (int64_t depth = 0; depth < shape.k; depth += EXACT_DEPTH) {
        const int64_t left = shape.k - depth;
        const int64_t ndepth = left < EXACT_DEPTH ? left : EXACT_DEPTH;
        pod_dtype_to_f32(POD_DTYPE_INT8, buffers.b, b + depth * shape.n, ndepth * shape.n);
        add_slice(shape, depth, ndepth, a, &buffers, c);
    }
done:
    free(buffers.c);
    free(buffers.b);
    free(buffers.a);
    return st;
}
