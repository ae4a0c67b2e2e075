/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/matmul.h"

#include "fixture.h"

#include <math.h>
#include <string.h>

static pod_matmul_time timed(const pod_chip_spec *chip, pod_matmul_args args)
{
    pod_matmul_time time;
    pod_error err = {.status = POD_OK};
    cr_assert_eq(pod_matmul_time_get(chip, &args, &time, &err), POD_OK, "%s", err.text);
    return time;
}

static pod_status refused(const pod_chip_spec *chip, pod_matmul_args args, pod_error *err)
{
    pod_matmul_time time = {.steps = -1};
    err->status = POD_OK;
    const pod_status st = pod_matmul_time_get(chip, &args, &time, err);
    cr_expect_eq(time.steps, -1, "untouched on error");
    return st;
}

/* A product of one weight tile: 8 rows stream in 8 cycles (scaling book, tpus.md, appendix). */
Test(matmul, eight_rows_take_eight_cycles_a_tile)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_VENDOR, NULL);
    const pod_matmul_time one = timed(&chip, (pod_matmul_args){.m = 8, .k = 128, .n = 128});
    const pod_matmul_time four = timed(&chip, (pod_matmul_args){.m = 8, .k = 512, .n = 128});
    const pod_matmul_time five = timed(&chip, (pod_matmul_args){.m = 8, .k = 640, .n = 128});
    cr_expect_float_eq((double)one.mxu_ps, 8 / 1.5e9 * 1e12, 20);
    cr_expect_eq(four.mxu_ps, one.mxu_ps, "four arrays take a tile each");
    cr_expect_float_eq((double)five.mxu_ps, 2.0 * (double)one.mxu_ps, 2);
    cr_expect_float_eq((double)one.fill_ps, 2 * 128 / 1.5e9 * 1e12, 20);
}

Test(matmul, sides_are_padded_to_the_array)
{
    const pod_chip_spec chip = chip_read("v6e", POD_RATES_VENDOR, NULL);
    const pod_matmul_time padded = timed(&chip, (pod_matmul_args){.m = 257, .k = 257, .n = 129});
    const pod_matmul_time full = timed(&chip, (pod_matmul_args){.m = 264, .k = 512, .n = 256});
    cr_expect_eq(padded.mxu_ps, full.mxu_ps);
    cr_expect_lt(padded.peak_frac, full.peak_frac);
    cr_expect_eq(timed(&chip, (pod_matmul_args){.m = 1, .k = 1, .n = 1}).time_ps,
                 timed(&chip, (pod_matmul_args){.m = 8, .k = 128, .n = 128}).time_ps);
}

Test(matmul, int8_runs_twice_as_fast_where_the_unit_exists)
{
    const pod_chip_spec chip = chip_read("v5p", POD_RATES_VENDOR, NULL);
    const pod_matmul_args args = {.m = 8192, .k = 8192, .n = 8192};
    pod_matmul_args int8 = args;
    int8.dtype = POD_DTYPE_INT8;
    cr_expect_float_eq((double)timed(&chip, args).mxu_ps, 2.0 * (double)timed(&chip, int8).mxu_ps,
                       2);
}

/* Pallas grid (m, n, k): a block is read unless it is the one already there. */
static double bytes_by_walking(const pod_matmul_args *args)
{
    const pod_matmul_block b = args->block;
    double bytes = 0;
    int64_t last_a = -1;
    int64_t last_b = -1;
    const int64_t nk = (args->k + b.k - 1) / b.k;
    for (int64_t i = 0; i < args->m; i += b.m) {
        for (int64_t j = 0; j < args->n; j += b.n) {
            const double rows = fmin((double)b.m, (double)(args->m - i));
            const double columns = fmin((double)b.n, (double)(args->n - j));
            for (int64_t l = 0; l < args->k; l += b.k) {
                const double depth = fmin((double)b.k, (double)(args->k - l));
                const int64_t a = i / b.m * nk + l / b.k;
                const int64_t w = l / b.k * args->n + j;
                bytes += a != last_a ? rows * depth * 2 : 0;
                bytes += w != last_b ? depth * columns * 2 : 0;
                last_a = a;
                last_b = w;
            }
            bytes += rows * columns * 2;
        }
    }
    return bytes;
}

Test(matmul, counts_the_bytes_that_walking_the_blocks_moves)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_VENDOR, NULL);
    static const int64_t sides[] = {128, 256, 384, 512};
    for (int shape = 0; shape < 64; shape++) {
        for (int cut = 0; cut < 64; cut++) {
            const pod_matmul_args args = {
                .m = sides[shape % 4],
                .k = sides[shape / 4 % 4],
                .n = sides[shape / 16],
                .block = {.m = sides[cut % 4], .k = sides[cut / 4 % 4], .n = sides[cut / 16]},
            };
            cr_expect_eq(timed(&chip, args).hbm_bytes, (int64_t)bytes_by_walking(&args));
        }
    }
}

/* VMEM a block needs, as documented: two buffers each, and an f32 accumulator where k is cut. */
static double vmem_of(const pod_matmul_args *args, pod_matmul_block b)
{
    const double blocks = 2.0 * (double)(b.m * b.k + b.k * b.n + b.m * b.n);
    const double accumulator = b.k < args->k ? 4.0 * (double)(b.m * b.n) : 0;
    return 2 * blocks + accumulator;
}

/* Loops (m, n, k) or (n, m, k): by symmetry the second is the first of the transposed product. */
static double fewest_bytes(const pod_matmul_args *args, double budget)
{
    double fewest = INFINITY;
    for (int64_t m = 128; m <= args->m; m += 128) {
        for (int64_t k = 128; k <= args->k; k += 128) {
            for (int64_t n = 128; n <= args->n; n += 128) {
                pod_matmul_args tried = *args;
                tried.block = (pod_matmul_block){.m = m, .k = k, .n = n};
                const pod_matmul_args turned = {
                    .m = args->n, .k = args->k, .n = args->m, .block = {.m = n, .k = k, .n = m}
                };
                if (vmem_of(args, tried.block) <= budget) {
                    fewest = fmin(fewest, bytes_by_walking(&tried));
                    fewest = fmin(fewest, bytes_by_walking(&turned));
                }
            }
        }
    }
    return fewest;
}

Test(matmul, chooses_the_block_that_moves_the_fewest_bytes)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_VENDOR, "vmem_block_MiB=0.75");
    static const int64_t sides[] = {128, 512, 896, 1024};
    for (int shape = 0; shape < 64; shape++) {
        const pod_matmul_args args = {
            .m = sides[shape % 4], .k = sides[shape / 4 % 4], .n = sides[shape / 16]};
        const pod_matmul_time time = timed(&chip, args);
        const double budget = 0.75 * 1048576;
        cr_expect_leq(vmem_of(&args, time.block), budget);
        cr_expect_eq(time.hbm_bytes, (int64_t)fewest_bytes(&args, budget), "%d", shape);
    }
}

Test(matmul, is_never_faster_than_its_peak_or_its_bytes)
{
    static const char *const names[] = {"v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x"};
    static const int64_t sides[] = {1, 8, 100, 1000, 4096, 20000};
    for (size_t i = 0; i < 7 * 216; i++) {
        const pod_chip_spec chip = chip_read(names[i / 216], (pod_rates)(i % 3), NULL);
        const pod_matmul_args args = {.m = sides[i % 6],
                                      .k = sides[i / 6 % 6],
                                      .n = sides[i / 36 % 6],
                                      .dtype = (pod_dtype)(i % POD_DTYPE_COUNT)};
        const pod_matmul_time time = timed(&chip, args);
        const double once = (double)(args.m * args.k + args.k * args.n) * pod_dtype_size(args.dtype)
                            + (double)(args.m * args.n) * pod_matmul_output_size(args.dtype);
        const double seconds = pod_time_to_s(time.time_ps) * (1 + 1e-9) + 1e-12;
        cr_expect_geq(seconds, (double)time.flops / chip.peak_ops_per_s[args.dtype]);
        cr_expect_geq(seconds, once / chip.hbm_bytes_per_s);
        cr_expect_geq((double)time.hbm_bytes, once);
        cr_expect_leq(time.peak_frac, 1);
    }
}

Test(matmul, more_rows_never_take_less_time)
{
    const pod_chip_spec chip = chip_read("v4", POD_RATES_MEASURED, NULL);
    pod_time_ps last = 0;
    for (int64_t m = 1; m < 3000; m += 37) {
        const pod_time_ps time =
            timed(&chip, (pod_matmul_args){.m = m, .k = 2048, .n = 2048}).mxu_ps;
        cr_expect_geq(time, last);
        last = time;
    }
}

/* The scaling book turns at B = 271 with figures of its own (WP-012). */
Test(matmul, turns_from_hbm_to_mxu_as_rows_grow)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_BOOK, NULL);
    int turns = 0;
    pod_bound bound = POD_BOUND_HBM;
    for (int64_t m = 1; m <= 1024; m++) {
        const pod_matmul_args args = {.m = m, .k = 16384, .n = 4096, .dtype = POD_DTYPE_INT8};
        const pod_bound now = timed(&chip, args).bound;
        if (now != bound) {
            cr_expect_eq(now, POD_BOUND_MXU);
            cr_expect_geq(m, 200);
            cr_expect_leq(m, 350, "%lld", (long long)m);
            turns++;
        }
        bound = now;
    }
    cr_expect_eq(turns, 1);
}

Test(matmul, weights_in_vmem_turn_early)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_BOOK, NULL);
    pod_matmul_args args = {
        .m = 8, .k = 16384, .n = 4096, .dtype = POD_DTYPE_INT8, .weights_in_vmem = true};
    cr_expect_eq(timed(&chip, args).bound, POD_BOUND_VMEM);
    args.m = 24;
    const pod_matmul_time time = timed(&chip, args);
    cr_expect_eq(time.bound, POD_BOUND_MXU);
    cr_expect_eq(time.hbm_bytes, 24 * 16384 + 24 * 4096 * 4, "the weights do not move");
    args.weights_in_vmem = false;
    cr_expect_eq(timed(&chip, args).bound, POD_BOUND_HBM);
}

Test(matmul, two_cores_share_a_product)
{
    const pod_chip_spec chip = chip_read("v5p", POD_RATES_VENDOR, NULL);
    pod_matmul_args args = {.m = 8192, .k = 8192, .n = 8192};
    const pod_matmul_time both = timed(&chip, args);
    args.one_core = true;
    const pod_matmul_time one = timed(&chip, args);
    cr_expect_eq(both.cores, 2);
    cr_expect_eq(one.cores, 1);
    cr_expect_float_eq((double)one.mxu_ps, 2.0 * (double)both.mxu_ps, 2);
    cr_expect_eq(one.peak_ops_per_s * 2, both.peak_ops_per_s);
}

Test(matmul, nothing_to_do_takes_the_launch_and_what_is_written)
{
    const pod_chip_spec chip = chip_read("v5p", POD_RATES_MEASURED, NULL);
    const pod_matmul_time none = timed(&chip, (pod_matmul_args){.m = 0, .k = 8, .n = 8});
    cr_expect_eq(none.time_ps, chip.kernel_start_ps);
    cr_expect_eq(none.bound, POD_BOUND_LAUNCH);
    cr_expect_eq(none.flops + none.hbm_bytes + none.block.m + none.steps, 0);
    cr_expect_eq(none.peak_frac, 0);
    const pod_matmul_time zeros = timed(&chip, (pod_matmul_args){.m = 4096, .k = 0, .n = 4096});
    cr_expect_eq(zeros.hbm_bytes, 2 * 4096 * 4096);
    cr_expect_eq(zeros.bound, POD_BOUND_HBM);
    const pod_chip_spec book = chip_read("v5p", POD_RATES_BOOK, NULL);
    cr_expect_eq(timed(&book, (pod_matmul_args){.m = 0}).time_ps, 0);
}

Test(matmul, a_small_product_is_all_launch)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_MEASURED, NULL);
    pod_matmul_args args = {.m = 128, .k = 128, .n = 128};
    cr_expect_eq(timed(&chip, args).bound, POD_BOUND_LAUNCH);
    const pod_time_ps inside = timed(&chip, args).time_ps;
    args.alone = true;
    cr_expect_eq(timed(&chip, args).time_ps, inside + chip.matmul_launch_ps);
}

Test(matmul, sizes_that_overflow_are_refused)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_BOOK, NULL);
    pod_error err;
    const int64_t huge = INT64_C(1) << 21;
    cr_expect_eq(refused(&chip, (pod_matmul_args){.m = huge, .k = huge, .n = huge}, &err),
                 POD_E_RANGE);
    cr_expect_eq(refused(&chip, (pod_matmul_args){.m = INT64_MAX, .k = 1, .n = 1}, &err),
                 POD_E_RANGE);
    cr_expect_eq(refused(&chip, (pod_matmul_args){.m = INT64_MAX, .k = 0, .n = 1}, &err),
                 POD_E_RANGE);
    cr_expect_eq(refused(&chip, (pod_matmul_args){.m = -1, .k = 1, .n = 1}, &err), POD_E_RANGE);
    cr_expect_not_null(strstr(err.text, "negative"), "%s", err.text);
    const pod_matmul_args large = {.m = INT64_C(1) << 40, .k = 128, .n = 128};
    cr_expect_eq(timed(&chip, large).flops, INT64_C(1) << 55);
}

Test(matmul, what_exceeds_vmem_is_refused)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_BOOK, NULL);
    pod_error err;
    const pod_matmul_args block = {
        .m = 8192, .k = 8192, .n = 8192, .block = {.m = 4096, .k = 4096, .n = 4096}
    };
    cr_expect_eq(refused(&chip, block, &err), POD_E_NOFIT);
    cr_expect_not_null(strstr(err.text, "256.00 MiB of the 128.00 MiB"), "%s", err.text);
    const pod_matmul_args weights = {.m = 8, .k = 8192, .n = 8200, .weights_in_vmem = true};
    cr_expect_eq(refused(&chip, weights, &err), POD_E_NOFIT);
}

Test(matmul, a_block_larger_than_the_product_is_clipped)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_BOOK, NULL);
    const pod_matmul_args args = {
        .m = 100, .k = 100, .n = 100, .block = {.m = INT64_MAX, .k = INT64_MAX, .n = 5}
    };
    const pod_matmul_time time = timed(&chip, args);
    cr_expect_eq(time.block.m, 104);
    cr_expect_eq(time.block.k, 128);
    cr_expect_eq(time.block.n, 128);
}

Test(matmul, small_blocks_cost_a_step_each)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_MEASURED, NULL);
    pod_matmul_args args = {
        .m = 4096, .k = 4096, .n = 4096, .block = {.m = 128, .k = 128, .n = 128}
    };
    const pod_matmul_time small = timed(&chip, args);
    args.block = (pod_matmul_block){.m = 0};
    cr_expect_eq(small.steps, 32768);
    cr_expect_eq(small.bound, POD_BOUND_LAUNCH);
    cr_expect_float_eq((double)small.grid_ps, 32767.0 * (double)chip.block_step_ps, 32768);
    cr_expect_float_eq(
        (double)small.time_ps,
        (double)(small.launch_ps + small.exposed_ps + small.mxu_ps + small.grid_ps + small.fill_ps),
        4, "copies go on beside the steps");
    cr_expect_gt(small.time_ps, 10 * timed(&chip, args).time_ps);
}

Test(matmul, reads_blocks_as_users_write_them)
{
    pod_matmul_block block;
    cr_expect_eq(pod_matmul_block_parse("512x1024x256", &block, NULL), POD_OK);
    cr_expect_eq(block.m, 512);
    cr_expect_eq(block.k, 1024);
    cr_expect_eq(block.n, 256);
    static const char *const wrong[] = {"",        "512",   "512x512", "512x512x", "0x1x1",
                                        "1x1x1x1", "axbxc", "1x-1x1",  "512X8X8"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pod_error err = {.status = POD_OK};
        cr_expect_eq(pod_matmul_block_parse(wrong[i], &block, &err), POD_E_USAGE, "%s", wrong[i]);
        cr_expect_not_null(strstr(err.text, "--block"), "%s", err.text);
    }
}

Test(matmul, explains_itself)
{
    const pod_chip_spec chip = chip_read("v5e", POD_RATES_MEASURED, NULL);
    const pod_matmul_time time = timed(&chip, (pod_matmul_args){.m = 512, .k = 512, .n = 512});
    char line[512];
    cr_expect_not_null(strstr(pod_matmul_explain(&time, line, sizeof line), "block 512x512x512"));
    cr_expect_str_eq(pod_bound_name(POD_BOUND_VMEM), "vmem");
}
