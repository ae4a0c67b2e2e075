/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static pod_table *chips(void)
{
    return table_read(CHIPS_CSV);
}

static pod_chip_spec loaded(const char *name, pod_rates rates, const char *setting)
{
    return chip_read(name, rates, setting);
}

static pod_table *table_of(const char *data, size_t size)
{
    pod_table *table = NULL;
    pod_error err = {.status = POD_OK};
    cr_assert_eq(pod_table_parse("chips.csv", data, size, &table, &err), POD_OK, "%s", err.text);
    return table;
}

/* Text of the error that a setting gives. */
static const char *refused(pod_rates rates, const char *setting)
{
    static pod_error err;
    pod_table *table = chips();
    pod_chip_spec spec;
    pod_error_clear(&err);
    cr_expect_eq(pod_chip_load(table, "v5e", rates, &setting, 1, &spec, &err), POD_E_USAGE);
    pod_table_free(table);
    return err.text;
}

Test(chip, knows_seven_generations_and_the_alias)
{
    pod_table *table = chips();
    cr_expect_eq(pod_table_rows(table), 7);
    pod_error err = {.status = POD_OK};
    cr_expect_str_eq(pod_chips_name(table, pod_chips_find(table, "v7", &err)), "tpu7x");
    cr_expect_eq(pod_chips_find(table, "v5pp", &err), -1);
    cr_expect_eq(err.status, POD_E_USAGE);
    cr_expect_not_null(strstr(err.text, "did you mean 'v5p'"), "%s", err.text);
    pod_table_free(table);
}

Test(chip, gives_a_source_for_every_figure)
{
    pod_table *table = chips();
    for (int column = 0; column < pod_table_columns(table); column++) {
        const char *name = pod_table_column_name(table, column);
        const bool is_source = strstr(name, "_source") != NULL;
        for (int row = 0; is_source && row < pod_table_rows(table); row++) {
            cr_expect(pod_table_text(table, row, column)[0] != '\0', "%s of row %d", name, row);
        }
    }
    cr_expect_not_null(
        strstr(pod_table_column_name(table, pod_table_columns(table) - 1), "_source"));
    pod_table_free(table);
}

/* cores · MXUs · dim² · 2 · clock, to the three digits of the data sheets; v3's sheet says 123. */
Test(chip, peaks_follow_from_clock_and_arrays)
{
    static const char *const names[] = {"v2", "v3", "v4", "v5e", "v5p"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const pod_chip_spec spec = loaded(names[i], POD_RATES_VENDOR, NULL);
        const double macs = (double)spec.cores * spec.mxus_per_core * spec.mxu_dim * spec.mxu_dim;
        const double peak = macs * 2 * spec.clock_hz;
        cr_expect_lt(fabs(peak / spec.peak_ops_per_s[POD_DTYPE_BF16] - 1), 0.003, "%s", names[i]);
    }
}

Test(chip, turns_units_into_si)
{
    const pod_chip_spec spec = loaded("v5p", POD_RATES_VENDOR, NULL);
    cr_expect_str_eq(spec.name, "v5p");
    cr_expect_float_eq(spec.peak_ops_per_s[POD_DTYPE_INT8], 918e12, 1);
    cr_expect_float_eq(spec.hbm_bytes_per_s, 2765e9, 1);
    cr_expect_float_eq(spec.link_oneway_bytes_per_s, 100e9, 1);
    cr_expect_eq(spec.hop_latency_ps, POD_PS_PER_US);
    cr_expect_eq(spec.hbm_bytes, INT64_C(96) << 30);
    cr_expect_eq(spec.vmem_bytes, INT64_C(128) << 20);
    cr_expect_eq(spec.pod_dims[0] * spec.pod_dims[1] * spec.pod_dims[2], 8960);
    cr_expect_eq(spec.ici_links, 6);
}

Test(chip, book_takes_its_own_figures_or_nine_tenths_of_the_link)
{
    const pod_chip_spec v5e = loaded("v5e", POD_RATES_BOOK, NULL);
    cr_expect_float_eq(v5e.hbm_bytes_per_s, 8.2e11, 1);
    cr_expect_float_eq(v5e.link_oneway_bytes_per_s, 4.5e10, 1);
    cr_expect_float_eq(v5e.peak_ops_per_s[POD_DTYPE_INT8], 3.94e14, 1);
    cr_expect_float_eq(loaded("tpu7x", POD_RATES_BOOK, NULL).link_oneway_bytes_per_s, 9e10, 1);
    cr_expect_float_eq(loaded("v2", POD_RATES_BOOK, NULL).link_oneway_bytes_per_s, 1e11, 1);
}

Test(chip, book_and_vendor_have_no_losses_and_no_launch_cost)
{
    for (int rates = POD_RATES_BOOK; rates <= POD_RATES_VENDOR; rates++) {
        const pod_chip_spec spec = loaded("v6e", (pod_rates)rates, NULL);
        cr_expect_eq(spec.mxu_eff_frac, 1);
        cr_expect_eq(spec.hbm_eff_frac, 1);
        cr_expect_eq(spec.multi_axis_eff_frac, 1);
        cr_expect_eq(spec.gather_hbm_ratio, 1);
        cr_expect_eq(spec.scatter_hbm_ratio, 1);
        cr_expect_eq(spec.link_oneway_bytes_per_s, spec.link_nominal_bytes_per_s);
        cr_expect_eq(spec.kernel_start_ps + spec.matmul_launch_ps + spec.block_step_ps
                         + spec.copy_launch_ps + spec.collective_launch_ps + spec.host_launch_ps,
                     0);
    }
}

Test(chip, measured_is_below_the_data_sheet)
{
    pod_table *table = chips();
    for (int row = 0; row < pod_table_rows(table); row++) {
        const pod_chip_spec spec = loaded(pod_chips_name(table, row), POD_RATES_MEASURED, NULL);
        cr_expect_lt(spec.link_oneway_bytes_per_s, spec.link_nominal_bytes_per_s);
        cr_expect_lt(spec.hbm_eff_frac, 1);
        cr_expect_leq(spec.mxu_eff_frac, 1);
        cr_expect_gt(spec.collective_launch_ps, 0);
    }
    pod_table_free(table);
}

/* The compiler's figure per device (COMPILER: 7.48, 15.48, 94.75 GiB) times devices. */
Test(chip, usable_hbm_counts_all_devices)
{
    cr_expect_eq(loaded("v2", POD_RATES_VENDOR, NULL).hbm_usable_bytes,
                 llround(2 * 7.48 * 1073741824.0));
    cr_expect_eq(loaded("tpu7x", POD_RATES_VENDOR, NULL).hbm_usable_bytes,
                 llround(2 * 94.75 * 1073741824.0));
}

Test(chip, int8_and_fp8_run_as_bf16_where_there_is_no_faster_unit)
{
    const pod_chip_spec v3 = loaded("v3", POD_RATES_VENDOR, NULL);
    cr_expect_eq(v3.peak_ops_per_s[POD_DTYPE_INT8], v3.peak_ops_per_s[POD_DTYPE_BF16]);
    const pod_chip_spec v7 = loaded("v7", POD_RATES_VENDOR, NULL);
    cr_expect_eq(v7.peak_ops_per_s[POD_DTYPE_FP8], 2 * v7.peak_ops_per_s[POD_DTYPE_BF16]);
}

Test(chip, more_than_two_links_share_what_feeds_them)
{
    const pod_chip_spec chip = loaded("v6e", POD_RATES_MEASURED, NULL);
    cr_expect_eq(pod_chip_link_bytes_per_s(&chip, 1), chip.link_oneway_bytes_per_s);
    cr_expect_eq(pod_chip_link_bytes_per_s(&chip, 2), chip.link_oneway_bytes_per_s);
    cr_expect_eq(pod_chip_link_bytes_per_s(&chip, 4),
                 chip.link_oneway_bytes_per_s * chip.multi_axis_eff_frac);
    const pod_chip_spec book = loaded("v6e", POD_RATES_BOOK, NULL);
    cr_expect_eq(pod_chip_link_bytes_per_s(&book, 4), 9e10);
}

Test(chip, one_core_is_half_of_a_chip_of_two)
{
    const pod_chip_spec chip = loaded("v7", POD_RATES_VENDOR, NULL);
    const pod_chip_spec core = pod_chip_one_core(&chip);
    cr_expect_eq(core.peak_ops_per_s[POD_DTYPE_BF16] * 2, chip.peak_ops_per_s[POD_DTYPE_BF16]);
    cr_expect_eq(core.hbm_bytes_per_s * 2, chip.hbm_bytes_per_s);
    cr_expect_eq(core.vmem_bytes * 2, chip.vmem_bytes);
    cr_expect_eq(core.mxus_per_core, chip.mxus_per_core);
}

/* hunyuan3 on 64 chips: 23.54 s in state 3, 21.67 in state 7; what HBM bounds keeps its time. */
Test(chip, states_of_the_clock_move_arrays_and_vector_units)
{
    const pod_chip_spec usual = loaded("tpu7x", POD_RATES_MEASURED, NULL);
    pod_chip_spec fast = usual;
    pod_chip_clock_set(&fast, 3);
    cr_assert_float_eq(fast.clock_hz, usual.clock_hz, 1);
    pod_chip_clock_set(&fast, 7);
    const double ratio = 1 + 4 * 0.031;
    cr_assert_float_eq(fast.clock_hz / usual.clock_hz, ratio, 1e-9);
    cr_assert_float_eq(fast.vpu_ops_per_s / usual.vpu_ops_per_s, ratio, 1e-9);
    cr_assert_float_eq(fast.mxu_eff_frac / usual.mxu_eff_frac, ratio, 1e-9);
    cr_assert_lt(fast.mxu_eff_frac, 1.0);
    cr_assert_float_eq(fast.hbm_bytes_per_s, usual.hbm_bytes_per_s, 1);
    pod_chip_spec other = loaded("v5p", POD_RATES_MEASURED, NULL);
    const double clock = other.clock_hz;
    pod_chip_clock_set(&other, 7);
    cr_assert_float_eq(other.clock_hz, clock, 1);
}

Test(chip, a_setting_replaces_a_figure)
{
    const pod_chip_spec spec = loaded("v5e", POD_RATES_BOOK, "link_book_GBps=60.5");
    cr_expect_float_eq(spec.link_oneway_bytes_per_s, 60.5e9, 1);
}

Test(chip, figures_that_follow_from_a_setting_follow)
{
    const pod_chip_spec before = loaded("v5e", POD_RATES_MEASURED, NULL);
    const pod_chip_spec faster = loaded("v5e", POD_RATES_MEASURED, "clock_MHz=3000");
    cr_expect_float_eq(faster.peak_ops_per_s[POD_DTYPE_BF16],
                       2 * before.peak_ops_per_s[POD_DTYPE_BF16], 1);
    cr_expect_float_eq(faster.vpu_ops_per_s, 2 * before.vpu_ops_per_s, 1);
    const pod_chip_spec wider = loaded("v5e", POD_RATES_MEASURED, "mxu_dim=256");
    cr_expect_float_eq(wider.peak_ops_per_s[POD_DTYPE_INT8],
                       4 * before.peak_ops_per_s[POD_DTYPE_INT8], 1);
    const pod_chip_spec larger = loaded("v5e", POD_RATES_MEASURED, "hbm_GiB=32");
    cr_expect_eq(larger.hbm_usable_bytes, 2 * before.hbm_usable_bytes);
}

Test(chip, a_setting_that_changes_nothing_is_refused)
{
    cr_expect_str_eq(refused(POD_RATES_MEASURED, "link_book_GBps=60"),
                     "--set link_book_GBps has no effect under --rates measured; it has under "
                     "--rates book");
    cr_expect_str_eq(refused(POD_RATES_BOOK, "hbm_eff_frac=0.5"),
                     "--set hbm_eff_frac has no effect under --rates book; it has under --rates "
                     "measured");
    cr_expect_str_eq(refused(POD_RATES_BOOK, "link_vendor_GBps=60"),
                     "--set link_vendor_GBps has no effect under --rates book; it has under "
                     "--rates measured or vendor");
    cr_expect_not_null(strstr(refused(POD_RATES_VENDOR, "link_compiler_GBps=1"), "only informs"));
}

Test(chip, the_vendor_s_figure_may_be_set_where_the_book_has_none)
{
    const pod_chip_spec spec = loaded("tpu7x", POD_RATES_BOOK, "link_vendor_GBps=200");
    cr_expect_float_eq(spec.link_oneway_bytes_per_s, 180e9, 1);
}

Test(chip, a_setting_that_is_none_is_refused)
{
    cr_expect_str_eq(refused(POD_RATES_BOOK, "link_bok_GBps=1"),
                     "unknown --set key 'link_bok_GBps'; did you mean 'link_book_GBps'?");
    cr_expect_not_null(strstr(refused(POD_RATES_BOOK, "link_book_GBps"), "KEY=VALUE"));
    cr_expect_not_null(strstr(refused(POD_RATES_BOOK, "=3"), "KEY=VALUE"));
    cr_expect_not_null(strstr(refused(POD_RATES_BOOK, "link_book_GBps=90GB/s"), "link_book_GBps"));
    cr_expect_not_null(strstr(refused(POD_RATES_BOOK, "link_book_GBps=nan"), "link_book_GBps"));
    cr_expect_not_null(strstr(refused(POD_RATES_BOOK, "link_book_GBps=-1"), "link_book_GBps"));
    cr_expect_not_null(strstr(refused(POD_RATES_MEASURED, "hbm_eff_frac=1.01"), "hbm_eff_frac"));
    cr_expect_not_null(strstr(refused(POD_RATES_BOOK, "cores=1.5"), "whole"));
    cr_expect_not_null(
        strstr(refused(POD_RATES_BOOK, "server_dims=2x2"), "only columns of numbers"));
}

/* The table with the field (row, column name) replaced by `text`; freed by the caller. */
static pod_table *with_field(int at_row, const char *column, const char *text)
{
    pod_table *table = chips();
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    const int ncolumns = pod_table_columns(table);
    for (int c = 0; c < ncolumns; c++) {
        (void)fprintf(out, "%s%c", pod_table_column_name(table, c), c + 1 < ncolumns ? ',' : '\n');
    }
    for (int row = 0; row < pod_table_rows(table); row++) {
        for (int c = 0; c < ncolumns; c++) {
            const bool here = row == at_row && c == pod_table_column(table, column);
            (void)fprintf(out, "%s%c", here ? text : pod_table_text(table, row, c),
                          c + 1 < ncolumns ? ',' : '\n');
        }
    }
    (void)fclose(out);
    pod_table_free(table);
    pod_table *changed = table_of(data, size);
    free(data);
    return changed;
}

static void expect_bad_field(int row, const char *column, const char *text, const char *message)
{
    pod_table *table = with_field(row, column, text);
    pod_error err = {.status = POD_OK};
    pod_chip_spec spec;
    cr_expect_eq(pod_chip_load(table, "v6e", POD_RATES_BOOK, NULL, 0, &spec, &err), POD_E_TABLE);
    cr_expect_str_eq(err.file, "chips.csv");
    cr_expect_eq(err.line, row + 2, "%s: line %d", column, err.line);
    cr_expect_gt(err.column, 0);
    cr_expect_not_null(strstr(err.text, message), "%s", err.text);
    pod_table_free(table);
}

Test(chip, a_bad_table_is_refused_at_the_field)
{
    expect_bad_field(1, "hbm_GBps", "nan", "hbm_GBps");
    expect_bad_field(2, "hbm_GBps", "", "hbm_GBps");
    expect_bad_field(3, "hbm_eff_frac", "1.2", "hbm_eff_frac");
    expect_bad_field(4, "mxu_dim", "128.5", "whole");
    expect_bad_field(5, "server_dims", "4x", "no shape");
    expect_bad_field(5, "server_dims", "4x2x1x1", "no shape");
    expect_bad_field(5, "pod_dims", "0x2", "no shape");
    expect_bad_field(6, "ici_links", "4", "two links an axis");
    expect_bad_field(6, "hbm_usable_GiB", "193", "can't exceed");
    expect_bad_field(6, "chip", "", "no chip name");
    expect_bad_field(5, "alias", "v2", "must name one chip");
    expect_bad_field(5, "chip", "v2", "v2");
}

Test(chip, a_table_without_a_column_is_refused)
{
    static const char text[] = "chip,alias,cores\nv2,,2\n";
    pod_table *table = table_of(text, sizeof text - 1);
    cr_expect_eq(pod_chips_check(table, NULL), POD_E_TABLE);
    pod_table_free(table);
}
