/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/hbm.h"

#include "fixture.h"

#include <math.h>
#include <string.h>

Test(hbm, a_copy_counts_reads_and_writes)
{
    const pod_chip_spec chip = chip_read("v6e", POD_RATES_VENDOR, NULL);
    pod_copy_time time;
    cr_assert_eq(pod_hbm_copy_time(&chip, 1638000, true, &time, NULL), POD_OK);
    cr_expect_eq(time.time_ps, 2 * POD_PS_PER_US);
    cr_expect_float_eq(time.bytes_per_s, 1638e9, 1e3);
    cr_expect_float_eq(time.peak_frac, 1, 1e-9);
}

Test(hbm, no_bytes_take_the_launch_only)
{
    pod_chip_spec chip = chip_read("v6e", POD_RATES_MEASURED, NULL);
    pod_copy_time time;
    cr_assert_eq(pod_hbm_copy_time(&chip, 0, true, &time, NULL), POD_OK);
    cr_expect_eq(time.time_ps, chip.copy_launch_ps);
    cr_expect_eq(time.bytes_per_s, 0);
    cr_assert_eq(pod_hbm_copy_time(&chip, 0, false, &time, NULL), POD_OK);
    cr_expect_eq(time.time_ps, 0);
    cr_expect_eq(time.peak_frac, 0);
}

Test(hbm, small_copies_are_slower_per_byte)
{
    const pod_chip_spec chip = chip_read("tpu7x", POD_RATES_MEASURED, NULL);
    double last = 0;
    for (int64_t bytes = 1; bytes < INT64_C(1) << 40; bytes *= 8) {
        pod_copy_time time;
        cr_assert_eq(pod_hbm_copy_time(&chip, bytes, true, &time, NULL), POD_OK);
        cr_expect_gt(time.bytes_per_s, last);
        last = time.bytes_per_s;
    }
    cr_expect_lt(last, chip.hbm_bytes_per_s * chip.hbm_eff_frac);
}

Test(hbm, copies_that_overflow_are_refused)
{
    const pod_chip_spec chip = chip_read("v2", POD_RATES_MEASURED, NULL);
    pod_copy_time time = {.time_ps = 7};
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_hbm_copy_time(&chip, INT64_MAX, true, &time, &err), POD_E_RANGE);
    cr_expect_eq(pod_hbm_copy_time(&chip, -1, true, &time, &err), POD_E_RANGE);
    cr_expect_eq(pod_hbm_copy_time(&chip, INT64_MAX / 2, true, &time, &err), POD_E_RANGE);
    cr_expect_eq(time.time_ps, 7);
    cr_expect_not_null(strstr(err.text, "106 days"), "%s", err.text);
}

/* v5p: 1024 lanes · 4 ALUs · 2 cores · 1.75 GHz = 1.43e13 operations a second. */
Test(hbm, elementwise_work_takes_the_slower_of_vector_unit_and_hbm)
{
    const pod_chip_spec chip = chip_read("v5p", POD_RATES_VENDOR, NULL);
    pod_vector_time time;
    cr_assert_eq(pod_vector_time_get(&chip, 14336000, 1000, &time, NULL), POD_OK);
    cr_expect_eq(time.time_ps, POD_PS_PER_US);
    cr_expect_eq(time.vpu_ps, time.time_ps);
    cr_assert_eq(pod_vector_time_get(&chip, 1000, 2765000, &time, NULL), POD_OK);
    cr_expect_eq(time.time_ps, POD_PS_PER_US);
    cr_expect_eq(time.hbm_ps, time.time_ps);
    cr_assert_eq(pod_vector_time_get(&chip, 0, 0, &time, NULL), POD_OK);
    cr_expect_eq(time.time_ps, 0);
}

Test(hbm, elementwise_work_that_overflows_is_refused)
{
    const pod_chip_spec chip = chip_read("v2", POD_RATES_VENDOR, NULL);
    pod_vector_time time;
    cr_expect_eq(pod_vector_time_get(&chip, -1, 0, &time, NULL), POD_E_RANGE);
    cr_expect_eq(pod_vector_time_get(&chip, 0, -1, &time, NULL), POD_E_RANGE);
    cr_expect_eq(pod_vector_time_get(&chip, 0, INT64_MAX, &time, NULL), POD_E_RANGE);
}
