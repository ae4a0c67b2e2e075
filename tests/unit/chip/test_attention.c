/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "chip/attention.h"

/* A chip with an array of 128, a peak of 1e14, a vector unit of 1e12 and an HBM of 1e12. */
static pod_chip_spec chip_make(void)
{
    pod_chip_spec chip = {.mxu_dim = 128,
                          .mxu_eff_frac = 1,
                          .vpu_ops_per_s = 1e12,
                          .vpu_eff_frac = 1,
                          .hbm_bytes_per_s = 1e12,
                          .hbm_eff_frac = 1};
    chip.peak_ops_per_s[POD_DTYPE_BF16] = 1e14;
    return chip;
}

static pod_attention_time time_of(const pod_chip_spec *chip, pod_attention_args args)
{
    pod_attention_time time = {0};
    pod_error err = {0};
    cr_assert_eq(pod_attention_time_get(chip, &args, &time, &err), POD_OK, "%s", err.text);
    return time;
}

static const pod_attention_args square = {.sequences = 2,
                                          .heads = 4,
                                          .kv_heads = 4,
                                          .queries = 8192,
                                          .keys = 8192,
                                          .qk_dim = 128,
                                          .v_dim = 128,
                                          .cache = POD_DTYPE_BF16};

/* Of 4 x 4 blocks of 2048, 10 are on the diagonal or below. */
Test(attention, causal_blocks_above_the_diagonal_are_left_out)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    cr_assert_float_eq(time_of(&chip, args).scores, 8.0 * 8192 * 8192, 1);
    args.causal = true;
    cr_assert_float_eq(time_of(&chip, args).scores, 8.0 * 10 * 2048 * 2048, 1);
}

/* A window of 1024 reaches into the block before: 1 + 3 · 2 blocks. */
Test(attention, a_window_leaves_out_what_is_before_it)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.causal = true;
    args.window = 1024;
    cr_assert_float_eq(time_of(&chip, args).scores, 8.0 * 7 * 2048 * 2048, 1);
}

Test(attention, time_is_that_of_the_slowest_unit)
{
    pod_chip_spec chip = chip_make();
    const double scores = 8.0 * 8192 * 8192;
    const pod_attention_time slow_vector = time_of(&chip, square);
    cr_assert_float_eq(pod_time_to_s(slow_vector.time_ps), scores * 9 / 1e12, 1e-9);
    chip.vpu_ops_per_s = 1e15;
    const pod_attention_time slow_array = time_of(&chip, square);
    cr_assert_float_eq(pod_time_to_s(slow_array.time_ps), scores * 2 * 256 / 1e14, 1e-9);
    cr_assert_float_eq(slow_array.flops, scores * 2 * 256, 1);
    chip.mxu_dim = 256; /* heads of 128 fill half of it */
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, square).time_ps), scores * 2 * 512 / 1e14,
                       1e-9);
}

Test(attention, backward_has_five_products)
{
    pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    chip.vpu_ops_per_s = 1e15;
    args.backward = true;
    cr_assert_float_eq(time_of(&chip, args).flops, 2.5 * time_of(&chip, square).flops, 1);
}

/* One query reads all keys and values: 2 · 1000 · 4 heads · 256 elements of 1 byte. */
Test(attention, decode_reads_the_cache)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.queries = 1;
    args.keys = 1000;
    args.causal = true;
    args.heads = 4;
    args.cache = POD_DTYPE_INT8;
    const pod_attention_time time = time_of(&chip, args);
    const double bytes = 2 * (1000.0 * 4 * 256 + 2 * 4 * 256);
    cr_assert_float_eq(pod_time_to_s(time.hbm_ps), bytes / 1e12, 1e-12);
}

/* Values that are part of the keys are read with them. */
Test(attention, shared_values_are_read_once)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    const pod_attention_time apart = time_of(&chip, args);
    args.shared_kv = true;
    const pod_attention_time shared = time_of(&chip, args);
    const double values = (double)args.sequences * (double)args.kv_heads * (double)args.keys
                          * (double)args.v_dim * pod_dtype_size(args.cache);
    cr_assert_float_eq(pod_time_to_s(apart.hbm_ps - shared.hbm_ps),
                       values / (chip.hbm_bytes_per_s * chip.hbm_eff_frac), 2e-12);
}

Test(attention, sizes_that_make_no_sense_are_refused)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    pod_attention_time time;
    pod_error err = {0};
    args.keys = 100;
    args.causal = true;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, &err), POD_E_RANGE);
    args.causal = false; /* queries of several heads that share keys */
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_OK);
    args = square;
    args.heads = -1;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_E_RANGE);
    args = square;
    args.heads = INT64_MAX / 4;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_E_RANGE);
}
