/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "chip/conv.h"

/* A chip of one core with an array of 128, a peak of 1e14 and an HBM of 1e12; nothing else takes time. */
static pod_chip_spec chip_make(void)
{
    pod_chip_spec chip = {.devices = 1,
                          .cores = 1,
                          .mxus_per_core = 1,
                          .mxu_dim = 128,
                          .mxu_eff_frac = 1,
                          .clock_hz = 1e18,
                          .vmem_bytes = 1 << 26,
                          .vmem_block_bytes = 1 << 26,
                          .hbm_bytes_per_s = 1e12,
                          .hbm_eff_frac = 1};
    chip.peak_ops_per_s[POD_DTYPE_BF16] = 1e14;
    return chip;
}

static pod_conv_time time_of(const pod_chip_spec *chip, pod_conv_op op, pod_conv_shape shape)
{
    const pod_conv_args args = {.op = op, .shape = shape, .dtype = POD_DTYPE_BF16};
    pod_conv_time time = {0};
    pod_error err = {0};
    cr_assert_eq(pod_conv_time_get(chip, &args, &time, &err), POD_OK, "%s", err.text);
    return time;
}

/* What 8 rows through one tile take. */
static const double step_s = 8 * 2.0 * 128 * 128 / 1e14;

static const pod_conv_shape middle = {8, 16, 16, 128, 256, 3, 3, 1};

/* 2048 pixels are 256 steps through 9 taps x 2 blocks of columns; X 524288, F 589824, Y 1048576 bytes. */
Test(conv, forward_by_hand)
{
    const pod_chip_spec chip = chip_make();
    const pod_conv_time time = time_of(&chip, POD_CONV_FORWARD, middle);
    const double bytes = 524288 + 589824 + 1048576;
    cr_assert_eq(time.m, 2048);
    cr_assert_eq(time.k, 1152);
    cr_assert_eq(time.n, 256);
    cr_assert_eq(time.flops, INT64_C(2) * 2048 * 1152 * 256);
    cr_assert_eq(time.hbm_bytes, (int64_t)bytes);
    cr_assert_float_eq(pod_time_to_s(time.mxu_ps), 256 * 18 * step_s, 1e-11);
    cr_assert_float_eq(pod_time_to_s(time.time_ps), 256 * 18 * step_s + bytes / 1e12, 1e-11);
    cr_assert_eq(time.bound, POD_BOUND_MXU);
}

/* Both derivatives do the same FLOPs: by the input 2048 rows through 18 tiles x 1, by the weights 1152 rows through
 * 16 x 2. */
Test(conv, derivatives_by_hand)
{
    const pod_chip_spec chip = chip_make();
    const pod_conv_time input = time_of(&chip, POD_CONV_INPUT, middle);
    const pod_conv_time weights = time_of(&chip, POD_CONV_WEIGHTS, middle);
    cr_assert_float_eq(pod_time_to_s(input.mxu_ps), 256 * 18 * step_s, 1e-11);
    cr_assert_float_eq(pod_time_to_s(weights.mxu_ps), 144 * 16 * 2 * step_s, 1e-11);
    cr_assert_eq(input.flops, weights.flops);
    cr_assert_eq(input.k, 9 * 256);
    cr_assert_eq(weights.m, 1152);
    cr_assert_eq(weights.k, 2048);
}

/* With stride 2 four phases of 512 pixels have 4, 2, 2 and 1 of 9 taps of 128 channels; of 1 x 1 only one has any. */
Test(conv, a_stride_cuts_the_derivative_by_the_input_into_phases)
{
    const pod_chip_spec chip = chip_make();
    const pod_conv_time three =
        time_of(&chip, POD_CONV_INPUT, (pod_conv_shape){8, 16, 16, 128, 128, 3, 3, 2});
    const pod_conv_time one =
        time_of(&chip, POD_CONV_INPUT, (pod_conv_shape){8, 16, 16, 128, 128, 1, 1, 2});
    cr_assert_float_eq(pod_time_to_s(three.mxu_ps), 64 * (4 + 2 + 2 + 1) * step_s, 1e-11);
    cr_assert_float_eq(pod_time_to_s(one.mxu_ps), 64 * step_s, 1e-11);
}

/* 49 taps of 3 channels, 8 each, are 4 tiles; 16 taps of 12 channels, 16 each, are 2. */
Test(conv, few_channels_take_space_to_depth)
{
    const pod_chip_spec chip = chip_make();
    const pod_conv_time first =
        time_of(&chip, POD_CONV_FORWARD, (pod_conv_shape){2, 224, 224, 3, 64, 7, 7, 2});
    const pod_conv_time dense =
        time_of(&chip, POD_CONV_FORWARD, (pod_conv_shape){2, 224, 224, 3, 64, 7, 7, 1});
    cr_assert(first.space_to_depth);
    cr_assert_float_eq(pod_time_to_s(first.mxu_ps), 2 * (2 * 112 * 112 / 8) * step_s, 1e-11);
    cr_assert_eq(first.flops, INT64_C(2) * 2 * 112 * 112 * 147 * 64);
    cr_assert(!dense.space_to_depth);
    cr_assert_float_eq(pod_time_to_s(dense.mxu_ps), 4 * (2 * 224 * 224 / 8) * step_s, 1e-11);
}

/* F of 1179648 bytes needs 3 blocks of 1 MiB / 2: X is read 3 times; a picture of 262144 and a third of Y's 262144
 * is in 2 tiles of 262144 bytes, which share 2 of 32 rows. */
Test(conv, what_vmem_does_not_hold_is_read_again)
{
    pod_chip_spec chip = chip_make();
    chip.vmem_block_bytes = 1 << 20;
    const pod_conv_time time =
        time_of(&chip, POD_CONV_FORWARD, (pod_conv_shape){1, 32, 32, 128, 512, 3, 3, 1});
    cr_assert_eq(time.blocks, 3);
    cr_assert_eq(time.tiles, 3);
    cr_assert_eq(time.hbm_bytes, (int64_t)(262144 * 3 * (1 + 2.0 * 2 / 32)) + 1048576 + 1179648);
}

Test(conv, two_cores_share_the_pictures_or_the_columns)
{
    pod_chip_spec chip = chip_make();
    const double one = pod_time_to_s(time_of(&chip, POD_CONV_FORWARD, middle).mxu_ps);
    chip.cores = 2;
    const pod_conv_time both = time_of(&chip, POD_CONV_FORWARD, middle);
    cr_assert_eq(both.cores, 2);
    cr_assert_float_eq(pod_time_to_s(both.mxu_ps), one,
                       1e-11); /* half the steps at half the peak */
}

Test(conv, sizes_are_read_and_refused)
{
    pod_conv_shape shape;
    pod_error err = {0};
    cr_assert_eq(pod_conv_shape_parse("64,56,28,3,128,7,5,2", &shape, &err), POD_OK);
    cr_assert_eq(shape.n, 64);
    cr_assert_eq(shape.w, 28);
    cr_assert_eq(shape.cout, 128);
    cr_assert_eq(shape.kw, 5);
    cr_assert_eq(shape.stride, 2);
    cr_assert_eq(pod_conv_shape_parse("64,56,28,3,128,7,5", &shape, &err), POD_E_USAGE);
    cr_assert_eq(pod_conv_shape_parse("64,56,28,3,128,7,5,0", &shape, &err), POD_E_USAGE);
    cr_assert_eq(pod_conv_shape_parse("64,56,28,3,128,7,5,1,1", &shape, &err), POD_E_USAGE);
    const pod_conv_args large = {
        .shape = {1 << 30, 1 << 20, 1 << 20, 1 << 20, 1, 1, 1, 1},
          .dtype = POD_DTYPE_BF16
    };
    const pod_chip_spec chip = chip_make();
    pod_conv_time time;
    cr_assert_eq(pod_conv_time_get(&chip, &large, &time, &err), POD_E_RANGE);
}
