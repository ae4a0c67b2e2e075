/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "chip/loss.h"

/* A chip of one core with an array of 128, a peak of 1e14, a vector unit of 1e12 and an HBM of 1e13; steps of 1 us,
 * starts of 2 us; 10, 20 and 30 operations a logit. */
static pod_chip_spec chip_make(void)
{
    pod_chip_spec chip = {.devices = 1,
                          .cores = 1,
                          .grouped_cores = 1,
                          .mxu_dim = 128,
                          .mxu_eff_frac = 1,
                          .kernel_start_ps = 2000000,
                          .block_step_ps = 1000000,
                          .vpu_ops_per_s = 1e12,
                          .vpu_eff_frac = 1,
                          .loss_fwd_ops = 10,
                          .loss_bwd_ops = 20,
                          .loss_chunk_ops = 30,
                          .vmem_bytes = 1 << 26,
                          .hbm_bytes_per_s = 1e13,
                          .hbm_eff_frac = 1};
    chip.peak_ops_per_s[POD_DTYPE_BF16] = 1e14;
    return chip;
}

static pod_loss_time time_of(const pod_chip_spec *chip, pod_loss_args args)
{
    pod_loss_time time = {0};
    pod_error err = {0};
    cr_assert_eq(pod_loss_time_get(chip, &args, &time, &err), POD_OK, "%s", err.text);
    return time;
}

/* 2 x 4 x 3 tiles of 512 rows, 256 of the contraction, 1024 columns. */
static const pod_loss_args head = {
    .m = 1024, .k = 1024, .n = 3072, .tile = {512, 256, 1024}
};

/* Of a step: 2·512·256·1024 / 1e14 = 2.68435 us, 512·1024 / 1e12 = 0.52429 us; copies 0.13107 us beside it;
 * of a tile of logits 10·512·1024 / 1e12 = 5.24288 us. */
Test(loss, forward_by_hand)
{
    const pod_chip_spec chip = chip_make();
    const pod_loss_time time = time_of(&chip, head);
    const double step = 2.0 * 512 * 256 * 1024 / 1e14 + 512.0 * 1024 / 1e12;
    const double softmax = 10.0 * 512 * 1024 / 1e12;
    cr_assert_float_eq(pod_time_to_s(time.time_ps), 24 * (step + 1e-6) + 6 * softmax, 1e-11);
    cr_assert_eq(time.steps, 24);
    cr_assert_eq(time.flops, INT64_C(2) * 1024 * 1024 * 3072);
    cr_assert_eq(time.hbm_bytes, 24 * 2 * (512 * 256 + 256 * 1024));
    cr_assert_eq(time.bound, POD_BOUND_MXU);
}

/* Twice the products in the second pass of steps; the f32 tiles 4·(512·256 + 256·1024) are written after each,
 * the rows' read before all, the head's before all but those of the first rows; at the end
 * 6·1024·(1024 + 3072). */
Test(loss, backward_by_hand)
{
    const pod_chip_spec chip = chip_make();
    pod_loss_args args = head;
    args.backward = true;
    const pod_loss_time time = time_of(&chip, args);
    const double product = 2.0 * 512 * 256 * 1024 / 1e14;
    const double tiles = 512.0 * 256 + 256.0 * 1024;
    const double logits =
        24 * (product + 512.0 * 1024 / 1e12 + 1e-6) + 6 * 20.0 * 512 * 1024 / 1e12;
    const double gradients = 24 * (2 * product + tiles / 1e12 + 4 * tiles / 1e13 + 1e-6);
    const double rounding = 6.0 * 1024 * (1024 + 3072) / 1e13;
    cr_assert_float_eq(pod_time_to_s(time.time_ps), logits + gradients + rounding, 1e-11);
    cr_assert_eq(time.flops, INT64_C(6) * 1024 * 1024 * 3072);
    const double bytes = 24 * 2 * tiles + 24 * (2 + 4) * tiles + 24 * 4 * 512.0 * 256
                         + 12 * 4 * 256.0 * 1024 + 6.0 * 1024 * (1024 + 3072);
    cr_assert_float_eq((double)time.hbm_bytes, bytes, 0.5);
}

/* 2 x 3 chunks, k whole: 2·512·1024·1024 / 1e14 = 10.737 us, 30 operations a logit, a start of 2 us. */
Test(loss, chunks_by_hand)
{
    const pod_chip_spec chip = chip_make();
    pod_loss_args args = head;
    args.chunked = true;
    const double chunk = 2.0 * 512 * 1024 * 1024 / 1e14 + 30.0 * 512 * 1024 / 1e12 + 2e-6;
    pod_loss_time time = time_of(&chip, args);
    cr_assert_float_eq(pod_time_to_s(time.time_ps), 6 * chunk, 1e-11);
    cr_assert_eq(time.tile.k, 1024);
    args.n = 3000; /* three chunks still, and the head is copied: 2·2·1024·3000 bytes */
    time = time_of(&chip, args);
    cr_assert_float_eq(pod_time_to_s(time.time_ps), 6 * chunk + 4.0 * 1024 * 3000 / 1e13, 1e-11);
    args = head;
    args.chunked = true;
    args.backward = true;
    cr_assert_eq(time_of(&chip, args).steps, 18);
    cr_assert_gt(time_of(&chip, args).time_ps, pod_time_from_s(6 * chunk));
}

/* Fused kernels run on one core of v5p, the compiler's loop on both. */
Test(loss, cores)
{
    const pod_chip_spec chip = chip_read("v5p", POD_RATES_MEASURED, NULL);
    pod_loss_args args = head;
    cr_assert_eq(time_of(&chip, args).cores, 1);
    args.chunked = true;
    cr_assert_eq(time_of(&chip, args).cores, 2);
    args.cores = 1;
    cr_assert_eq(time_of(&chip, args).cores, 1);
}

Test(loss, what_makes_no_sense_is_refused)
{
    const pod_chip_spec chip = chip_make();
    pod_loss_time time;
    pod_error err = {0};
    pod_loss_args args = head;
    args.k = 0;
    cr_assert_eq(pod_loss_time_get(&chip, &args, &time, &err), POD_E_RANGE);
    args = head;
    args.m = args.n = INT64_C(1) << 40;
    cr_assert_eq(pod_loss_time_get(&chip, &args, &time, &err), POD_E_RANGE);
    args = head;
    args.m = args.k = args.n = 1 << 14;
    args.tile = (pod_matmul_block){4096, 4096, 4096};
    cr_assert_eq(pod_loss_time_get(&chip, &args, &time, &err), POD_E_NOFIT);
}
