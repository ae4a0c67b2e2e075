/* SPDX-License-Identifier: Apache-2.0 */
/* Worked problems of the scaling book (worked_problems.csv has their texts and sources), answered by the
 * models of chip/ with book rates, to the digits that the book prints. The book rounds some results and
 * cuts off others, so a result may differ by one in its last digit. WP-014 to WP-016 are command lines:
 * cli.traffic. */
#include "chip/chip.h"
#include "chip/hbm.h"
#include "chip/matmul.h"

#include "fixture.h"

#include <math.h>
#include <string.h>

static double printed(const char *id)
{
    pod_table *table = table_read(CHIP_TEST_FILE("worked_problems.csv"));
    const int row = pod_table_find(table, pod_table_column(table, "id"), id);
    cr_assert_geq(row, 0, "%s", id);
    const double value = atof(field(table, row, "value"));
    pod_table_free(table);
    return value;
}

/* `value` rounds or is cut to what the book prints with `digits` significant digits. */
static void expect_printed(const char *id, double value, int digits)
{
    const double book = printed(id);
    const double unit = pow(10, floor(log10(fabs(book))) - digits + 1);
    const bool rounded = fabs(round(value / unit) * unit - book) < unit * 1e-6;
    const bool cut = fabs(floor(value / unit) * unit - book) < unit * 1e-6;
    cr_expect(rounded || cut, "%s: %g, the book prints %g", id, value, book);
}

static pod_chip_spec book(const char *name)
{
    return chip_read(name, POD_RATES_BOOK, NULL);
}

/* The book's HBM rate of v5e is 8.2e11 in one chapter and 8.1e11 in others. */
static const char *const v5e_hbm_elsewhere = "hbm_book_GBps=810";

/* Time at which HBM has moved `bytes`, in seconds. */
static double hbm_s(const pod_chip_spec *chip, double bytes)
{
    pod_vector_time time;
    cr_assert_eq(pod_vector_time_get(chip, 0, (int64_t)bytes, &time, NULL), POD_OK);
    return (double)time.hbm_ps / POD_PS_PER_S;
}

static double mxu_s(const pod_chip_spec *chip, pod_dtype dtype, int64_t m, int64_t k, int64_t n)
{
    const pod_matmul_args args = {.m = m, .k = k, .n = n, .dtype = dtype};
    return pod_matmul_mxu_s(chip, &args);
}

/* Rows that a weight of 8192 x 8192 takes until its matmul lasts as long as `fixed_s + row_s · rows`.
 * Rows pass the arrays in groups of 8: where the answer lies in its group, the straight line between
 * groups says. */
static double turning_rows(const pod_chip_spec *chip, pod_dtype dtype, double fixed_s, double row_s)
{
    for (int64_t rows = 8;; rows += 8) {
        const double more = mxu_s(chip, dtype, rows, 8192, 8192) - fixed_s - row_s * (double)rows;
        if (more >= 0) {
            const double less =
                mxu_s(chip, dtype, rows - 8, 8192, 8192) - fixed_s - row_s * (double)(rows - 8);
            return (double)rows - 8 * more / (more - less);
        }
    }
}

static const double weights = 8192.0 * 8192;

/* A weight of w bytes takes w / hbm, its 2·B operations 2·B / peak. */
Test(worked, critical_batches)
{
    const pod_chip_spec v5e = book("v5e");
    const pod_chip_spec elsewhere = chip_read("v5e", POD_RATES_BOOK, v5e_hbm_elsewhere);
    expect_printed("WP-001", turning_rows(&v5e, POD_DTYPE_BF16, hbm_s(&v5e, 2 * weights), 0), 3);
    expect_printed("WP-002",
                   turning_rows(&elsewhere, POD_DTYPE_INT8, hbm_s(&elsewhere, weights), 0), 3);
    expect_printed("WP-003", turning_rows(&v5e, POD_DTYPE_BF16, hbm_s(&v5e, weights), 0), 3);
}

/* 2·B·D·F / 2 chips against 2·B·F bytes over one link, for B = F = 8192. */
Test(worked, contracting_dimension_over_two_chips)
{
    const pod_chip_spec v5e = book("v5e");
    const double bytes_s = 2.0 * 8192 * 8192 / pod_chip_link_bytes_per_s(&v5e, 1);
    const double column_s = mxu_s(&v5e, POD_DTYPE_BF16, 8192, 8192, 8192) / 8192 / 2;
    expect_printed("WP-004", bytes_s / column_s, 4);
}

/* 1e12 FLOPs. The roofline chapter takes 9.1e14 where the table has 9.2e14. */
Test(worked, operations_to_time)
{
    const pod_chip_spec v6e = book("v6e");
    expect_printed(
        "WP-005",
        mxu_s(&v6e, POD_DTYPE_BF16, 8000, 8192, 7680) * 1e12 / (2.0 * 8000 * 8192 * 7680) * 1e3, 2);
}

/* One row for each weight: its bytes are read for 2 operations each. */
Test(worked, a_batched_weight_is_always_memory_bound)
{
    const pod_chip_spec v5e = book("v5e");
    const pod_matmul_args args = {.m = 1, .k = 16384, .n = 16384, .dtype = POD_DTYPE_INT8};
    pod_matmul_time time;
    cr_assert_eq(pod_matmul_time_get(&v5e, &args, &time, NULL), POD_OK);
    cr_expect_eq(time.bound, POD_BOUND_HBM);
    expect_printed("WP-006", (double)time.flops / (double)time.hbm_bytes, 1);
}

Test(worked, loading_parameters_from_hbm)
{
    const pod_chip_spec v4 = book("v4");
    expect_printed("WP-008", hbm_s(&v4, 400e9 / 32) * 1e3, 2);
}

static double machines(const pod_chip_spec *chip)
{
    double count = 1;
    for (int axis = 0; axis < POD_CHIP_AXES; axis++) {
        count *= (double)chip->pod_dims[axis] / chip->server_dims[axis];
    }
    return count;
}

static double pod_chips(const pod_chip_spec *chip)
{
    return (double)chip->pod_dims[0] * chip->pod_dims[1] * chip->pod_dims[2];
}

/* 256 cores, 5.1e16 FLOP/s (from 2e14 a chip), 4 TB; 17920 cores, 4e18 FLOP/s, 860 TB. */
Test(worked, full_pods)
{
    const pod_chip_spec v5e = book("v5e");
    expect_printed("WP-009", machines(&v5e), 2);
    cr_expect_eq(pod_chips(&v5e) * v5e.cores, 256);
    cr_expect_float_eq(pod_chips(&v5e) * v5e.peak_ops_per_s[POD_DTYPE_BF16], 5.1e16, 0.1e16);
    cr_expect_eq(pod_chips(&v5e) * (double)v5e.hbm_bytes, 4.0 * ldexp(1, 40));
    const pod_chip_spec v5p = book("v5p");
    expect_printed("WP-010", machines(&v5p), 4);
    cr_expect_eq(pod_chips(&v5p) * v5p.cores, 17920);
    cr_expect_float_eq(pod_chips(&v5p) * v5p.peak_ops_per_s[POD_DTYPE_BF16], 4e18, 0.5e18);
    cr_expect_float_eq(pod_chips(&v5p) * (double)v5p.hbm_bytes / ldexp(1, 30), 860e3, 1e3);
}

/* The book takes 1.5e10 bytes/s of PCIe, as of older chips, although v6e has 3.2e10. */
Test(worked, weights_over_pcie)
{
    const pod_chip_spec v6e = book("v6e");
    const double pcie_s = 2 * weights / book("v5e").pcie_bytes_per_s;
    expect_printed("WP-011", turning_rows(&v6e, POD_DTYPE_BF16, pcie_s, 0), 2);
}

/* int8[16384,4096] · int8[B,4096]: 6.7e7 bytes and 2e4 more a row, as the book rounds; as many weights
 * as 8192 x 8192, whose 1.34e8 operations a row the book rounds to 1.3e8. */
Test(worked, general_matmul)
{
    pod_chip_spec v5e = chip_read("v5e", POD_RATES_BOOK, v5e_hbm_elsewhere);
    v5e.peak_ops_per_s[POD_DTYPE_INT8] *= 2 * weights / 1.3e8;
    const double from_hbm =
        turning_rows(&v5e, POD_DTYPE_INT8, hbm_s(&v5e, 6.7e7), hbm_s(&v5e, 2e7) / 1e3);
    expect_printed("WP-012", from_hbm, 3);
    const double ratio = v5e.vmem_bytes_per_s / v5e.hbm_bytes_per_s;
    v5e.hbm_bytes_per_s *= ratio;
    const double from_vmem =
        turning_rows(&v5e, POD_DTYPE_INT8, hbm_s(&v5e, 6.7e7), hbm_s(&v5e, 2e7) / 1e3);
    expect_printed("WP-013", from_vmem, 2);
}

/* 16 GB in the hosts of 16 chips: by PCIe to the chips, then (over links, WP-016) to one and through its HBM. */
Test(worked, gathering_to_one_chip)
{
    const pod_chip_spec v5e = chip_read("v5e", POD_RATES_BOOK, v5e_hbm_elsewhere);
    expect_printed("WP-017", 16e9 / 16 / v5e.pcie_bytes_per_s * 1e3, 2);
    cr_expect_eq(floor(hbm_s(&v5e, 16e9) * 1e3), 19);
    cr_expect_float_eq(mxu_s(&v5e, POD_DTYPE_BF16, 8, 131072, 131072) * 1e3, 1.3, 0.1);
}

Test(worked, vector_unit)
{
    const pod_chip_spec v5p = book("v5p");
    pod_vector_time time;
    cr_assert_eq(pod_vector_time_get(&v5p, (int64_t)1.4e13, 0, &time, NULL), POD_OK);
    expect_printed("WP-018", 1.4e13 / ((double)time.vpu_ps / POD_PS_PER_S), 2);
}
