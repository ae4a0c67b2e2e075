/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "chip/origin.h"

#include <stdio.h>
#include <string.h>

#define HEADER "figure,chips,value,in_table,row_chips,rows\n"

static pod_table *figures_of(const char *text)
{
    pod_table *table = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_table_parse("figures.csv", text, strlen(text), &table, &err), POD_OK, "%s",
                 err.text);
    return table;
}

static const char two[] = HEADER "mxu_eff_frac,v5p v4,1,1,v5p:77,FAv5p-001\n"
                                 "mxu_eff_frac,v5e,1,1,v5e:3,MMv5e-002\n"
                                 "block_step_us,v4 v5e v5p,0.3,0.3,v5e:2 v5p:10,\n"
                                 "cut_min_KiB,v4,128,128,,\n";

Test(origin, rows_are_counted_for_the_chips_that_share_a_figure)
{
    pod_table *figures = figures_of(two);
    cr_assert_eq(pod_origins_check(figures, NULL), POD_OK);
    pod_origin origin = pod_origin_of(figures, "mxu_eff_frac", "v4");
    cr_assert_eq(origin.rows, 77);
    cr_assert_eq(origin.own_rows, 0);
    cr_assert_str_eq(origin.chips, "v5p:77");
    origin = pod_origin_of(figures, "mxu_eff_frac", "v5e");
    cr_assert_eq(origin.own_rows, 3);
    origin = pod_origin_of(figures, "block_step_us", "v5p");
    cr_assert_eq(origin.rows, 12);
    cr_assert_eq(origin.own_rows, 10);
    cr_assert_eq(pod_origin_of(figures, "mxu_eff_frac", "v5").rows, 0); /* no part of a name */
    cr_assert_eq(pod_origin_of(figures, "hop_latency_us", "v4").rows, 0);
    pod_table_free(figures);
}

Test(origin, a_line_says_what_no_row_of_the_chip_fixes)
{
    char line[256];
    pod_table *figures = figures_of(two);
    cr_assert_str_eq(pod_origin_text(figures, "mxu_eff_frac", "v4", "1", line, sizeof line),
                     "mxu_eff_frac 1 of v4 rests on 77 rows of other chips (v5p:77)");
    cr_assert_str_eq(pod_origin_text(figures, "mxu_eff_frac", "v5p", "1", line, sizeof line), "");
    cr_assert_str_eq(pod_origin_text(figures, "cut_min_KiB", "v4", "128", line, sizeof line),
                     "cut_min_KiB 128 of v4 rests on no published row");
    pod_table_free(figures);
}

Test(origin, counts_that_are_none_are_refused)
{
    static const char *const wrong[] = {"v5p", "v5p:",   "v5p:0",      "v5p:2,",
                                        ":3",  "v5p:2x", "v5p:2  v4:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[160];
        pod_error err = {0};
        (void)snprintf(text, sizeof text, HEADER "mxu_eff_frac,v5p,1,1,\"%s\",\n", wrong[i]);
        pod_table *figures = figures_of(text);
        cr_assert_eq(pod_origins_check(figures, &err), POD_E_TABLE, "%s", wrong[i]);
        cr_assert_eq(err.line, 2);
        pod_table_free(figures);
    }
    pod_table *figures = figures_of("figure,chips\nmxu_eff_frac,v4\n");
    cr_assert_eq(pod_origins_check(figures, NULL), POD_E_TABLE);
    pod_table_free(figures);
}

/* Every figure of the table that comes with podsim is a column of chips.csv. */
Test(origin, the_table_names_columns_of_chips)
{
    pod_table *figures = table_read(POD_SOURCE_DIR "/validation/figures.csv");
    pod_table *chips = table_read(CHIPS_CSV);
    pod_error err = {0};
    cr_assert_eq(pod_origins_check(figures, &err), POD_OK, "%s", err.text);
    const int column = pod_table_column(figures, "figure");
    for (int row = 0; row < pod_table_rows(figures); row++) {
        cr_assert_geq(pod_table_column(chips, pod_table_text(figures, row, column)), 0);
    }
    pod_table_free(figures);
    pod_table_free(chips);
}
