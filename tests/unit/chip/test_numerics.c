/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/numerics.h"

#include "fixture.h"

#include "base/rng.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* The plain product, in double for floats and exactly for int8. */
static double naive(pod_dtype dtype, pod_gemm_shape shape, const void *a, const void *b, int64_t i,
                    int64_t j)
{
    const int64_t size = pod_dtype_size(dtype);
    double sum = 0;
    for (int64_t l = 0; l < shape.k; l++) {
        float x = 0;
        float y = 0;
        pod_dtype_to_f32(dtype, &x, (const char *)a + (i * shape.k + l) * size, 1);
        pod_dtype_to_f32(dtype, &y, (const char *)b + (l * shape.n + j) * size, 1);
        sum += (double)x * (double)y;
    }
    return sum;
}

/* `count` small integers in [-4, 4], or, with fractions, numbers of all magnitudes around 1. */
static void *random_matrix(pod_dtype dtype, int64_t count, uint64_t stream, bool fractions)
{
    float *values = malloc((size_t)count * sizeof *values + 1);
    void *matrix = malloc((size_t)count * (size_t)pod_dtype_size(dtype) + 1);
    cr_assert(values != NULL && matrix != NULL);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t index = (uint64_t)i;
        values[i] = fractions ? (float)(pod_rng_unit(1, stream, index) * 4 - 2)
                              : (float)pod_rng_below(1, stream, index, 9) - 4;
    }
    pod_dtype_from_f32(dtype, matrix, values, count);
    free(values);
    return matrix;
}

static const pod_gemm_shape shapes[] = {
    {1,   1,    1 },
    {1,   7,    1 },
    {3,   1,    5 },
    {8,   128,  16},
    {5,   0,    3 },
    {0,   4,    4 },
    {4,   4,    0 },
    {257, 33,   9 },
    {2,   300,  2 },
    {513, 5,    3 },
    {16,  1025, 4 },
    {1,   2049, 3 },
};
enum { NSHAPES = sizeof shapes / sizeof shapes[0] };

Test(numerics, small_integers_multiply_exactly_in_every_float_dtype)
{
    static const pod_dtype dtypes[] = {POD_DTYPE_BF16, POD_DTYPE_F32, POD_DTYPE_FP8,
                                       POD_DTYPE_FP8_E5M2};
    for (size_t t = 0; t < NSHAPES * 4; t++) {
        const pod_dtype dtype = dtypes[t % 4];
        const pod_gemm_shape s = shapes[t / 4];
        void *a = random_matrix(dtype, s.m * s.k, 1, false);
        void *b = random_matrix(dtype, s.k * s.n, 2, false);
        float *c = random_matrix(POD_DTYPE_F32, s.m * s.n, 3, false);
        cr_assert_eq(pod_gemm_f32(dtype, s, a, b, false, c, NULL), POD_OK);
        for (int64_t i = 0; i < s.m * s.n; i++) {
            cr_expect_eq((double)c[i], naive(dtype, s, a, b, i / s.n, i % s.n));
        }
        free(a);
        free(b);
        free(c);
    }
}

Test(numerics, a_product_is_added_when_asked)
{
    const pod_gemm_shape s = {300, 20, 7};
    void *a = random_matrix(POD_DTYPE_BF16, s.m * s.k, 1, false);
    void *b = random_matrix(POD_DTYPE_BF16, s.k * s.n, 2, false);
    float *c = malloc((size_t)(s.m * s.n) * sizeof *c);
    cr_assert_eq(pod_gemm_f32(POD_DTYPE_BF16, s, a, b, false, c, NULL), POD_OK);
    cr_assert_eq(pod_gemm_f32(POD_DTYPE_BF16, s, a, b, true, c, NULL), POD_OK);
    for (int64_t i = 0; i < s.m * s.n; i++) {
        cr_expect_eq((double)c[i], 2 * naive(POD_DTYPE_BF16, s, a, b, i / s.n, i % s.n));
    }
    free(a);
    free(b);
    free(c);
}

/* |error| <= k · 2^-24 · sum |a·b|, which is at most k · 4: the bound of any order of f32 sums. */
Test(numerics, fractions_are_as_close_as_f32_sums_allow)
{
    const pod_gemm_shape s = {33, 500, 17};
    const double bound = (double)s.k * ldexp(1, -24) * (double)s.k * 4;
    static const pod_dtype dtypes[] = {POD_DTYPE_BF16, POD_DTYPE_F32, POD_DTYPE_FP8};
    for (int t = 0; t < 3; t++) {
        void *a = random_matrix(dtypes[t], s.m * s.k, 4, true);
        void *b = random_matrix(dtypes[t], s.k * s.n, 5, true);
        float *c = malloc((size_t)(s.m * s.n) * sizeof *c);
        cr_assert_eq(pod_gemm_f32(dtypes[t], s, a, b, false, c, NULL), POD_OK);
        for (int64_t i = 0; i < s.m * s.n; i++) {
            const double exact = naive(dtypes[t], s, a, b, i / s.n, i % s.n);
            cr_expect_leq(fabs((double)c[i] - exact), bound);
        }
        free(a);
        free(b);
        free(c);
    }
}

Test(numerics, int8_is_exact_beyond_what_f32_holds)
{
    const pod_gemm_shape s = {3, 5000, 2};
    int8_t *a = malloc((size_t)(s.m * s.k));
    int8_t *b = malloc((size_t)(s.k * s.n));
    memset(a, -128, (size_t)(s.m * s.k));
    memset(b, -128, (size_t)(s.k * s.n));
    a[0] = 127;
    int32_t c[6] = {9, 9, 9, 9, 9, 9};
    cr_assert_eq(pod_gemm_int8(s, a, b, false, c, NULL), POD_OK);
    cr_expect_eq(c[0], 4999 * 16384 - 127 * 128);
    cr_expect_eq(c[5], 5000 * 16384);
    free(a);
    free(b);
}

Test(numerics, int8_agrees_with_the_plain_product)
{
    for (int t = 0; t < NSHAPES; t++) {
        const pod_gemm_shape s = shapes[t];
        int8_t *a = random_matrix(POD_DTYPE_INT8, s.m * s.k, 6, false);
        int8_t *b = random_matrix(POD_DTYPE_INT8, s.k * s.n, 7, false);
        int32_t *c = malloc((size_t)(s.m * s.n) * sizeof *c + 1);
        cr_assert_eq(pod_gemm_int8(s, a, b, false, c, NULL), POD_OK);
        cr_assert_eq(pod_gemm_int8(s, a, b, true, c, NULL), POD_OK);
        for (int64_t i = 0; i < s.m * s.n; i++) {
            cr_expect_eq((double)c[i], 2 * naive(POD_DTYPE_INT8, s, a, b, i / s.n, i % s.n));
        }
        free(a);
        free(b);
        free(c);
    }
}

Test(numerics, int8_sums_wrap)
{
    const int8_t one = 1;
    int32_t c = INT32_MAX;
    cr_assert_eq(pod_gemm_int8((pod_gemm_shape){1, 1, 1}, &one, &one, true, &c, NULL), POD_OK);
    cr_expect_eq(c, INT32_MIN);
}

Test(numerics, sizes_that_blas_cannot_count_are_refused)
{
    pod_error err = {.status = POD_OK};
    const pod_gemm_shape large = {1 << 16, 1, 1 << 16};
    cr_expect_eq(pod_gemm_f32(POD_DTYPE_F32, large, NULL, NULL, false, NULL, &err), POD_E_RANGE);
    cr_expect_not_null(strstr(err.text, "2^31"));
    const pod_gemm_shape negative = {-1, 1, 1};
    cr_expect_eq(pod_gemm_f32(POD_DTYPE_F32, negative, NULL, NULL, false, NULL, NULL), POD_E_RANGE);
    cr_expect_eq(pod_gemm_int8(large, NULL, NULL, false, NULL, NULL), POD_E_RANGE);
}

enum { WIDTH = 32, PRODUCTS = 5000 };

/* How many entries of products of `*value`s and ones are wrong. */
static void *count_wrong(void *value)
{
    static const pod_gemm_shape shape = {WIDTH, WIDTH, WIDTH};
    const float x = *(const float *)value;
    float a[WIDTH * WIDTH];
    float b[WIDTH * WIDTH];
    float c[WIDTH * WIDTH];
    size_t wrong = 0;
    for (int i = 0; i < WIDTH * WIDTH; i++) {
        a[i] = x;
        b[i] = 1;
    }
    for (int product = 0; product < PRODUCTS; product++) {
        if (pod_gemm_f32(POD_DTYPE_F32, shape, a, b, false, c, NULL) != POD_OK) {
            wrong++;
        }
        for (int i = 0; i < WIDTH * WIDTH; i++) {
            wrong += c[i] != x * WIDTH;
        }
    }
    *(float *)value = (float)wrong;
    return NULL;
}

Test(numerics, threads_multiply_at_the_same_time)
{
    float values[] = {1, 2, 3};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, count_wrong, &values[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_assert(values[i] == 0, "%g entries of thread %d are wrong", (double)values[i], i);
    }
}
