/* SPDX-License-Identifier: Apache-2.0 */
/* Host speed of what --data real computes: additions and conversions per dtype, and products. */
#include "chip/numerics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ELEMENTS = 1 << 16, /* stays in the L2 cache */
    SIDE = 512,
};

static const double least_seconds = 0.2;

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct arrays {
    void *dst;
    void *src;
    float *wide;
};

static void bench_dtype(pod_dtype dtype, const struct arrays *arrays)
{
    const double bytes = (double)ELEMENTS * pod_dtype_size(dtype) / 1e9;
    double seconds[3];
    for (int what = 0; what < 3; what++) {
        const double start = now_s();
        double rounds = 0;
        while (now_s() - start < least_seconds) {
            switch (what) {
            case 0:
                pod_dtype_add(dtype, arrays->dst, arrays->src, ELEMENTS);
                break;
            case 1:
                pod_dtype_from_f32(dtype, arrays->dst, arrays->wide, ELEMENTS);
                break;
            default:
                pod_dtype_to_f32(dtype, arrays->wide, arrays->src, ELEMENTS);
                break;
            }
            rounds++;
        }
        seconds[what] = (now_s() - start) / rounds;
    }
    (void)printf("%-9s add %7.2f GB/s   from f32 %7.2f GB/s   to f32 %7.2f GB/s\n",
                 pod_dtype_name(dtype), bytes / seconds[0], bytes / seconds[1], bytes / seconds[2]);
}

static void bench_gemm(pod_dtype dtype, const struct arrays *arrays)
{
    const pod_gemm_shape shape = {SIDE, SIDE, SIDE};
    const double flops = 2.0 * SIDE * SIDE * SIDE;
    const double start = now_s();
    double rounds = 0;
    while (now_s() - start < least_seconds) {
        const pod_status st =
            dtype == POD_DTYPE_INT8
                ? pod_gemm_int8(shape, arrays->src, arrays->src, false, arrays->dst, NULL)
                : pod_gemm_f32(dtype, shape, arrays->src, arrays->src, false, arrays->dst, NULL);
        if (st != POD_OK) {
            exit(EXIT_FAILURE);
        }
        rounds++;
    }
    (void)printf("%-9s %dx%dx%d matmul %7.2f GFLOP/s\n", pod_dtype_name(dtype), SIDE, SIDE, SIDE,
                 flops * rounds / (now_s() - start) / 1e9);
}

int main(void)
{
    const size_t size = sizeof(float) * SIDE * SIDE;
    struct arrays arrays = {
        .dst = calloc(1, size), .src = calloc(1, size), .wide = calloc(1, size)};
    if (arrays.dst == NULL || arrays.src == NULL || arrays.wide == NULL) {
        return EXIT_FAILURE;
    }
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        bench_dtype((pod_dtype)dtype, &arrays);
    }
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        bench_gemm((pod_dtype)dtype, &arrays);
    }
    free(arrays.wide);
    free(arrays.src);
    free(arrays.dst);
    return EXIT_SUCCESS;
}
