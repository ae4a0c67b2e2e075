/* SPDX-License-Identifier: Apache-2.0 */
/* Worked problems of the scaling book (worked_problems.csv has their texts and sources): the closed
 * forms as the book writes them, with the figures of chips.csv, to the digits that it prints. The
 * book rounds some results and cuts off others, so a result may differ by one in its last digit. */
#include "chip/chip.h"

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

static double bf16_peak(const char *name)
{
    return book(name).peak_ops_per_s[POD_DTYPE_BF16];
}

static double int8_peak(const char *name)
{
    return book(name).peak_ops_per_s[POD_DTYPE_INT8];
}

/* The book's HBM rate of v5e is 8.2e11 in one chapter and 8.1e11 in others. */
static const double v5e_hbm_elsewhere = 8.1e11;

/* A weight of w bytes takes w / hbm, its 2·B operations 2·B / peak. */
Test(worked, critical_batches)
{
    expect_printed("WP-001", bf16_peak("v5e") / book("v5e").hbm_bytes_per_s, 3);
    expect_printed("WP-002", int8_peak("v5e") / 2 / v5e_hbm_elsewhere, 3);
    expect_printed("WP-003", bf16_peak("v5e") / 2 / book("v5e").hbm_bytes_per_s, 3);
}

/* 2·B·D·F / 2 chips / peak against 2·B·F bytes over one link: D > 2 · peak / link. */
Test(worked, contracting_dimension_over_two_chips)
{
    expect_printed("WP-004", 2 * bf16_peak("v5e") / book("v5e").link_oneway_bytes_per_s, 4);
}

/* The roofline chapter takes 9.1e14 where the table has 9.2e14. */
Test(worked, operations_to_time)
{
    expect_printed("WP-005", 1e12 / bf16_peak("v6e") * 1e3, 2);
}

Test(worked, a_batched_weight_is_always_memory_bound)
{
    const double b = 1e3;
    const double d = 1e6;
    const double f = 1e6;
    expect_printed("WP-006", 2 * b * d * f / (b * d + b * d * f + b * f), 1);
}

Test(worked, loading_parameters_from_hbm)
{
    expect_printed("WP-008", 400e9 / 32 / book("v4").hbm_bytes_per_s * 1e3, 2);
}

static double machines(const pod_chip_spec *chip)
{
    double count = 1;
    for (int axis = 0; axis < POD_CHIP_AXES; axis++) {
        count *= (double)chip->pod_dims[axis] / chip->host_dims[axis];
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
    cr_expect_float_eq(pod_chips(&v5e) * bf16_peak("v5e"), 5.1e16, 0.1e16);
    cr_expect_eq(pod_chips(&v5e) * (double)v5e.hbm_bytes, 4.0 * ldexp(1, 40));
    const pod_chip_spec v5p = book("v5p");
    expect_printed("WP-010", machines(&v5p), 4);
    cr_expect_eq(pod_chips(&v5p) * v5p.cores, 17920);
    cr_expect_float_eq(pod_chips(&v5p) * bf16_peak("v5p"), 4e18, 0.5e18);
    cr_expect_float_eq(pod_chips(&v5p) * (double)v5p.hbm_bytes / ldexp(1, 30), 860e3, 1e3);
}

/* The book takes 1.5e10 bytes/s of PCIe, as of older chips, although v6e has 3.2e10. */
Test(worked, weights_over_pcie)
{
    expect_printed("WP-011", bf16_peak("v6e") / book("v5e").pcie_bytes_per_s, 2);
}

/* int8[16384,4096] · int8[B,4096]: (6.7e7 + 2e4·B) / rate = 1.3e8·B / peak, as the book rounds. */
static double turning_batch(double bytes_per_s)
{
    return 6.7e7 / bytes_per_s / (1.3e8 / int8_peak("v5e") - 2e4 / bytes_per_s);
}

Test(worked, general_matmul)
{
    expect_printed("WP-012", turning_batch(v5e_hbm_elsewhere), 3);
    const pod_chip_spec v5e = book("v5e");
    const double vmem_ratio = v5e.vmem_bytes_per_s / v5e.hbm_bytes_per_s;
    expect_printed("WP-013", turning_batch(v5e_hbm_elsewhere * vmem_ratio), 2);
}

/* (0,0) to (3,3) on an open 4x4: six hops, and two ports at once. */
Test(worked, corner_to_corner)
{
    const pod_chip_spec v5e = book("v5e");
    const double hops_us = 6 * pod_time_to_us(v5e.hop_latency_ps);
    expect_printed("WP-014", hops_us, 1);
    const double bytes = 1.7e7;
    expect_printed("WP-015", hops_us + bytes / (2 * v5e.link_oneway_bytes_per_s) * 1e6, 3);
}

/* 16 GB in the hosts of 16 chips: by PCIe to the chips, over two links to one, through its HBM. */
Test(worked, gathering_to_one_chip)
{
    const pod_chip_spec v5e = book("v5e");
    expect_printed("WP-016", 15e9 / (2 * v5e.link_oneway_bytes_per_s) * 1e3, 3);
    expect_printed("WP-017", 16e9 / 16 / v5e.pcie_bytes_per_s * 1e3, 2);
    cr_expect_eq(floor(16e9 / v5e_hbm_elsewhere * 1e3), 19);
    cr_expect_float_eq(2.7e11 / bf16_peak("v5e") * 1e3, 1.3, 0.1);
}

Test(worked, vector_unit)
{
    expect_printed("WP-018", book("v5p").vpu_ops_per_s, 2);
}
