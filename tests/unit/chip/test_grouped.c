/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "chip/grouped.h"

/* A chip of one core with an array of 128, a peak of 1e14, a vector unit of 1e12 and an HBM of 1e12; steps of 1 us. */
static pod_chip_spec chip_make(void)
{
    pod_chip_spec chip = {.devices = 1,
                          .cores = 1,
                          .grouped_cores = 1,
                          .mxu_dim = 128,
                          .mxu_eff_frac = 1,
                          .block_step_ps = 1000000,
                          .vpu_ops_per_s = 1e12,
                          .vpu_eff_frac = 1,
                          .vmem_bytes = 1 << 26,
                          .hbm_bytes_per_s = 1e12,
                          .hbm_eff_frac = 1};
    chip.peak_ops_per_s[POD_DTYPE_BF16] = 1e14;
    return chip;
}

static pod_grouped_time time_of(const pod_chip_spec *chip, pod_grouped_args args)
{
    pod_grouped_time time = {0};
    pod_error err = {0};
    cr_assert_eq(pod_grouped_time_get(chip, &args, &time, &err), POD_OK, "%s", err.text);
    return time;
}

static double seconds(const pod_chip_spec *chip, pod_grouped_args args)
{
    return pod_time_to_s(time_of(chip, args).time_ps);
}

/* 4096 rows of 8 groups: 16 tiles of 256 rows, and 7 more for boundaries inside a tile. */
static const pod_grouped_args eight = {
    .groups = 8, .m = 4096, .k = 512, .n = 1024, .tile = {256, 512, 512}
};

Test(grouped, a_boundary_inside_a_tile_visits_it_twice)
{
    const pod_chip_spec chip = chip_make();
    pod_grouped_args args = eight;
    cr_assert_eq(time_of(&chip, args).tiles, 16 + 7);
    cr_assert_eq(time_of(&chip, args).steps, (16 + 7) * 2);
    args.sizes = POD_GROUPS_EQUAL; /* 512 rows each: two whole tiles */
    cr_assert_eq(time_of(&chip, args).tiles, 16);
    args.m = 8 * 384; /* 1.5 tiles each: every other boundary is inside one */
    cr_assert_eq(time_of(&chip, args).tiles, 12 + 4);
    args.groups = 1;
    args.sizes = POD_GROUPS_RANDOM;
    cr_assert_eq(time_of(&chip, args).tiles, 12);
    args.m = 5; /* of more groups than rows, at most one has one row */
    args.groups = 8;
    cr_assert_eq(time_of(&chip, args).tiles, 1 + 4);
}

/* All rows are of one of 8 groups: no boundary; of the weights' derivative seven are zeros, of 2 tiles each, which
 * are only written. */
Test(grouped, groups_without_rows_are_zeros)
{
    const pod_chip_spec chip = chip_make();
    pod_grouped_args args = eight;
    args.sizes = POD_GROUPS_ONE;
    cr_assert_eq(time_of(&chip, args).tiles, 16);
    pod_grouped_args lone = args;
    lone.groups = 1;
    cr_assert_eq(time_of(&chip, args).time_ps, time_of(&chip, lone).time_ps);
    args.op = lone.op = POD_GROUPED_WEIGHTS;
    const pod_grouped_time time = time_of(&chip, args);
    const pod_grouped_time without = time_of(&chip, lone);
    const int64_t tiles = time.steps - without.steps;
    cr_assert_eq(tiles, 7 * without.steps / without.tiles);
    const double zeros = (double)tiles * (double)time.block.k * (double)time.block.n * 2;
    cr_assert_float_eq((double)(time.hbm_bytes - without.hbm_bytes), zeros, 1);
    cr_assert_float_eq(pod_time_to_s(time.time_ps - without.time_ps),
                       zeros / (chip.hbm_bytes_per_s * chip.hbm_eff_frac)
                           + (double)tiles * pod_time_to_s(chip.block_step_ps),
                       1e-11);
    cr_assert_eq(time.mxu_ps, without.mxu_ps);
}

/* Of a step: work 2·256·512·512 / 1e14 = 1.34218 us and 256·512 / 1e12 = 0.13107 us; copies of rows and result
 * 2·(256·512 + 256·512) / 1e12 = 0.52429 us, of weights 2·512·512 / 1e12 = 0.52429 us more: all beside the work. */
Test(grouped, forward_by_hand)
{
    const pod_chip_spec chip = chip_make();
    const double work = 2.0 * 256 * 512 * 512 / 1e14 + 256.0 * 512 / 1e12;
    cr_assert_float_eq(seconds(&chip, eight), 46 * (work + 1e-6), 1e-11);
    const pod_grouped_time time = time_of(&chip, eight);
    cr_assert_float_eq(pod_time_to_s(time.mxu_ps), 46 * 1.34218e-6, 1e-9);
    cr_assert_float_eq(pod_time_to_s(time.vpu_ps), 46 * 0.13107e-6, 1e-9);
    cr_assert_eq(time.hbm_bytes, 46 * 2 * 256 * 1024 + 16 * 2 * 512 * 512);
    cr_assert_eq(time.flops, INT64_C(2) * 4096 * 512 * 1024);
    cr_assert_eq(time.bound, POD_BOUND_MXU);
    cr_assert_float_eq(time.peak_frac, (double)time.flops / (46 * (work + 1e-6)) / 1e14, 1e-9);
}

/* With an HBM of 1e11 the weights of a group's first step show: 16 steps copy rows, result and weights, 30 don't. */
Test(grouped, weights_are_read_once_a_group_and_column)
{
    pod_chip_spec chip = chip_make();
    chip.hbm_bytes_per_s = 1e11;
    const double tile = 2.0 * 256 * 512 / 1e11;
    const double weights = 2.0 * 512 * 512 / 1e11;
    cr_assert_float_eq(seconds(&chip, eight), 46 * (2 * tile + 1e-6) + 16 * weights, 1e-11);
    pod_grouped_args args = eight;
    args.tile.k =
        256; /* the contraction is two tiles: weights every step, the result every other */
    const double half = 2.0 * 256 * 256 / 1e11;
    cr_assert_float_eq(seconds(&chip, args), 46 * (2 * half + weights + tile + 2e-6), 1e-11);
}

/* Of a step of the derivative by the weights: rows 256·512 and 256·512; the result 512·512 when a group ends. */
Test(grouped, the_derivative_by_the_weights_writes_a_result_a_group)
{
    pod_chip_spec chip = chip_make();
    chip.hbm_bytes_per_s = 1e11;
    pod_grouped_args args = eight;
    args.op = POD_GROUPED_WEIGHTS;
    const double rows = 2.0 * 256 * 512 / 1e11;
    const double result = 2.0 * 512 * 512 / 1e11;
    cr_assert_float_eq(seconds(&chip, args), 46 * (2 * rows + 1e-6) + 16 * result, 1e-11);
}

/* 768 is no multiple of 1024: the tile is 768 wide, and both operands are masked, 4 operations an element. */
Test(grouped, an_uneven_contraction_is_masked)
{
    const pod_chip_spec chip = chip_make();
    pod_grouped_args args = eight;
    args.k = 768;
    args.tile.k = 768;
    const pod_grouped_time even = time_of(&chip, args);
    args.tile.k = 1024;
    const pod_grouped_time uneven = time_of(&chip, args);
    cr_assert_eq(uneven.block.k, 768);
    cr_assert_eq(uneven.tile.k, 1024);
    const double masks = 46 * 4 * (256.0 * 768 + 768.0 * 512) / 1e12;
    cr_assert_float_eq(pod_time_to_s(uneven.vpu_ps - even.vpu_ps), masks, 1e-10);
    args.op = POD_GROUPED_WEIGHTS; /* contracts the rows */
    cr_assert_eq(time_of(&chip, args).vpu_ps, pod_time_from_s(46 * 768.0 * 512 / 1e12));
}

/* JAX's kernel masks both operands of the derivative by the weights: rows of other groups count nothing. */
Test(grouped, megablox_masks_the_rows_of_a_sum)
{
    const pod_chip_spec chip = chip_make();
    pod_grouped_args args = eight;
    args.op = POD_GROUPED_WEIGHTS;
    const pod_grouped_time tokamax = time_of(&chip, args);
    args.megablox = true;
    const double masks = 46 * 4 * (256.0 * 512 + 256.0 * 512) / 1e12;
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).vpu_ps - tokamax.vpu_ps), masks, 1e-10);
    args.op = POD_GROUPED_FORWARD;
    cr_assert_eq(time_of(&chip, args).time_ps, time_of(&chip, eight).time_ps);
}

/* Its cores share the tiles of the columns: of 3, one has 2. */
Test(grouped, megablox_shares_columns)
{
    pod_chip_spec chip = chip_make();
    chip.cores = 2;
    pod_grouped_args args = eight;
    args.n = 1536;
    args.cores = 2;
    const pod_grouped_time rows = time_of(&chip, args);
    args.megablox = true;
    const pod_grouped_time columns = time_of(&chip, args);
    cr_assert_float_eq((double)(columns.time_ps - columns.step_ps),
                       4.0 / 3 * (double)(rows.time_ps - rows.step_ps), 4);
    args.n = 1024;
    const pod_grouped_time even = time_of(&chip, args);
    args.megablox = false;
    cr_assert_eq(even.time_ps, time_of(&chip, args).time_ps);
}

/* A product of 8 bits is multiplied by the scales of its row and of its column. */
Test(grouped, products_of_eight_bits_are_scaled)
{
    pod_chip_spec chip = chip_make();
    chip.peak_ops_per_s[POD_DTYPE_FP8] = 1e14;
    pod_grouped_args args = eight;
    const pod_grouped_time wide = time_of(&chip, args);
    args.dtype = POD_DTYPE_FP8;
    const pod_grouped_time narrow = time_of(&chip, args);
    cr_assert_float_eq((double)narrow.vpu_ps, 3.0 * (double)wide.vpu_ps, 3);
    cr_assert_eq(narrow.mxu_ps, wide.mxu_ps);
}

/* Widths of 500 and 900: tiles with such a side are masked, an operation an element and side. */
Test(grouped, ragged_widths_are_masked)
{
    const pod_chip_spec chip = chip_make();
    pod_grouped_args args = eight;
    args.k = 500;
    args.tile = (pod_matmul_block){256, 500, 512};
    const double steps = 23 * 2;
    const double plain = steps * 256 * 512;
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).vpu_ps),
                       (plain + steps * (256.0 * 500 + 500.0 * 512)) / 1e12, 1e-11);
    args.n = 900; /* the last of two tiles is narrower, which costs nothing */
    const pod_grouped_time cut = time_of(&chip, args);
    cr_assert_float_eq(pod_time_to_s(cut.vpu_ps),
                       (plain + steps * (256.0 * 500 + 500.0 * 512)) / 1e12, 1e-11);
    args.tile.n = 900;
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).vpu_ps),
                       23 * (256.0 * 900 + 256 * 500 + 2 * 500.0 * 900 + 256 * 900) / 1e12, 1e-11);
    args.op = POD_GROUPED_WEIGHTS;
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).vpu_ps),
                       23 * (500.0 * 900 + 256 * 500 + 256 * 900 + 2 * 500.0 * 900) / 1e12, 1e-11);
}

/* v5p runs it on one of two cores; two devices of tpu7x share the rows. */
Test(grouped, cores_and_devices)
{
    pod_chip_spec chip = chip_read("v5p", POD_RATES_MEASURED, NULL);
    pod_grouped_args args = eight;
    const pod_grouped_time usual = time_of(&chip, args);
    cr_assert_eq(usual.cores, 1);
    cr_assert_float_eq(usual.peak_ops_per_s, 229.5e12, 1e9);
    args.cores = 1;
    cr_assert_eq(time_of(&chip, args).time_ps, usual.time_ps);
    args.cores = 2;
    cr_assert_eq(time_of(&chip, args).cores, 2);
    cr_assert_float_eq((double)time_of(&chip, args).mxu_ps, (double)usual.mxu_ps / 2, 1);
    cr_assert_float_eq((double)time_of(&chip, args).step_ps, (double)usual.step_ps / 2, 1);
    cr_assert_eq(time_of(&chip, args).hbm_ps, usual.hbm_ps);
    chip = chip_read("tpu7x", POD_RATES_MEASURED, NULL);
    args.cores = 0;
    const pod_grouped_time both = time_of(&chip, args);
    cr_assert_eq(both.cores, 2);
    args.cores = 1;
    args.m = eight.m / 2;
    cr_assert_eq(time_of(&chip, args).time_ps, both.time_ps);
    cr_assert_eq(2 * time_of(&chip, args).hbm_bytes, both.hbm_bytes);
}

/* The tile that is chosen costs no more than any other of multiples of 128, whatever the shape. */
Test(grouped, the_cheapest_tile_is_chosen)
{
    static const pod_grouped_args shapes[] = {
        {.groups = 128, .m = 131000, .k = 1536, .n = 4096            },
        {.groups = 128, .m = 1024,   .k = 2048, .n = 192             },
        {.groups = 5,   .m = 1280,   .k = 384,  .n = 640,              .sizes = POD_GROUPS_EQUAL},
        {.groups = 1,             .m = 5000,              .k = 1000,  .n = 2880},
        {.groups = 8,             .m = 100,              .k = 200,   .n = 300  },
    };
    static const int64_t sides[] = {128, 256, 384, 512, 768, 1024};
    enum { SIDES = sizeof sides / sizeof sides[0] };
    const pod_chip_spec chip = chip_make();
    for (size_t s = 0; s < 3 * sizeof shapes / sizeof shapes[0]; s++) {
        pod_grouped_args args = shapes[s / 3];
        args.op = (pod_grouped_op)(s % 3);
        const pod_time_ps chosen = time_of(&chip, args).time_ps;
        for (int i = 0; i < SIDES * SIDES * SIDES; i++) {
            args.tile = (pod_matmul_block){.m = sides[i % SIDES],
                                           .k = sides[i / SIDES % SIDES],
                                           .n = sides[i / SIDES / SIDES]};
            cr_assert(chosen <= time_of(&chip, args).time_ps, "shape %zu, %lldx%lldx%lld", s,
                      (long long)args.tile.m, (long long)args.tile.k, (long long)args.tile.n);
        }
    }
}

static bool has_tile(const pod_chip_spec *chip, pod_grouped_args args, int64_t m, int64_t k,
                     int64_t n)
{
    const pod_grouped_time time = time_of(chip, args);
    return time.tile.m == m && time.tile.k == k && time.tile.n == n;
}

/* Shapes of tokamax's table have its tiles, by the rows of a device; others, and JAX's kernel, the cheapest. */
Test(grouped, tokamax_has_tiles_of_its_own)
{
    const pod_chip_spec chip = chip_read("tpu7x", POD_RATES_MEASURED, NULL);
    pod_grouped_args args = {
        .groups = 128, .m = 2 * 524288, .k = 4096, .n = 1536, .dtype = POD_DTYPE_BF16};
    cr_expect(has_tile(&chip, args, 256, 4096, 1536));
    args.op = POD_GROUPED_WEIGHTS;
    cr_expect(has_tile(&chip, args, 512, 4096, 512));
    args.megablox = true;
    cr_expect_not(has_tile(&chip, args, 512, 4096, 512));
    args.megablox = false;
    args.cores = 1; /* the rows of both devices */
    cr_expect_not(has_tile(&chip, args, 512, 4096, 512));
    args.cores = 0;
    args.dtype = POD_DTYPE_FP8;
    cr_expect_not(has_tile(&chip, args, 512, 4096, 512));
    args = (pod_grouped_args){.op = POD_GROUPED_ROWS,
                              .groups = 128,
                              .m = 2 * 524288,
                              .k = 1536,
                              .n = 4096,
                              .dtype = POD_DTYPE_BF16};
    cr_expect(has_tile(&chip, args, 1024, 1536, 1024)); /* k is the layer's n */
}

/* Two devices that share groups take as long as one with half of them. */
Test(grouped, devices_share_groups)
{
    const pod_chip_spec chip = chip_read("tpu7x", POD_RATES_MEASURED, NULL);
    pod_grouped_args args = {
        .groups = 128, .m = 1024, .k = 2048, .n = 384, .split_groups = true, .cores = 0};
    const pod_grouped_time both = time_of(&chip, args);
    args.groups /= 2;
    args.m /= 2;
    args.cores = 1;
    const pod_grouped_time one = time_of(&chip, args);
    cr_assert_eq(both.time_ps, one.time_ps);
    cr_assert_eq(both.hbm_bytes, 2 * one.hbm_bytes);
    args.groups = 1; /* which can't be shared: their rows are */
    args.cores = 0;
    const pod_grouped_time lone = time_of(&chip, args);
    args.split_groups = false;
    cr_assert_eq(time_of(&chip, args).time_ps, lone.time_ps);
}

Test(grouped, nothing_to_multiply_takes_no_time)
{
    const pod_chip_spec chip = chip_make();
    pod_grouped_args args = eight;
    args.m = 0;
    cr_assert_eq(time_of(&chip, args).time_ps, 0);
    cr_assert_eq(time_of(&chip, args).steps, 0);
}

Test(grouped, what_makes_no_sense_is_refused)
{
    const pod_chip_spec chip = chip_make();
    pod_grouped_time time;
    pod_error err = {0};
    pod_grouped_args args = eight;
    args.groups = 0;
    cr_assert_eq(pod_grouped_time_get(&chip, &args, &time, &err), POD_E_RANGE);
    args = eight;
    args.groups = 3;
    args.sizes = POD_GROUPS_EQUAL;
    cr_assert_eq(pod_grouped_time_get(&chip, &args, &time, &err), POD_E_RANGE);
    args = eight;
    args.tile = (pod_matmul_block){8192, 8192, 8192}; /* clipped to 4096x512x1024: 31 MiB fit */
    cr_assert_eq(pod_grouped_time_get(&chip, &args, &time, &err), POD_OK);
    args.k = args.n = 8192;
    cr_assert_eq(pod_grouped_time_get(&chip, &args, &time, &err), POD_E_NOFIT);
    args = eight;
    args.m = INT64_C(1) << 60;
    cr_assert_eq(pod_grouped_time_get(&chip, &args, &time, &err), POD_E_RANGE);
    args = eight;
    args.n = -1;
    cr_assert_eq(pod_grouped_time_get(&chip, &args, &time, &err), POD_E_RANGE);
}
