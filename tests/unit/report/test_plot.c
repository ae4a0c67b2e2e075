/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot.h"

#include "base/file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/podsim_plot_XXXXXX";
static char path[64];

static void folder_make(void)
{
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/plot.svg", folder);
}

static void folder_remove(void)
{
    (void)remove(path);
    (void)rmdir(folder);
}

TestSuite(report_plot, .init = folder_make, .fini = folder_remove);

static int occurrences(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        count++;
    }
    return count;
}

/* Write the plot, free it, and return the file's text. */
static char *drawn(pod_plot *plot)
{
    char *text = NULL;
    size_t size = 0;
    pod_error err = {0};
    cr_assert_eq(pod_plot_write(plot, path, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_file_read(path, &text, &size, NULL), POD_OK);
    pod_plot_free(plot);
    return text;
}

Test(report_plot, draws_curves_with_their_names_and_sizes_on_the_axis)
{
    pod_plot *plot = NULL;
    const double x[] = {1024, 1048576, 1073741824};
    const double y[] = {1.5, 80, 480};
    const double bound[] = {2, 90, 500};
    cr_assert_eq(pod_plot_new(&plot, NULL), POD_OK);
    pod_plot_panel(plot, &(pod_plot_axes){.title = "all-reduce's bus bandwidth",
                                          .x_label = "bytes per chip",
                                          .y_label = "busbw (GB/s)",
                                          .log_x = true,
                                          .log_y = true,
                                          .bytes_x = true});
    pod_plot_add(plot,
                 &(pod_plot_series){
                     .kind = POD_PLOT_CURVE, .name = "v5p:4x4x4", .count = 3, .x = x, .y = y});
    pod_plot_add(plot,
                 &(pod_plot_series){
                     .kind = POD_PLOT_BOUND, .name = "bound", .count = 3, .x = x, .y = bound});
    char *svg = drawn(plot);
    cr_expect_not_null(strstr(svg, "all-reduce's bus bandwidth"));
    cr_expect_not_null(strstr(svg, "v5p:4x4x4"));
    cr_expect_not_null(strstr(svg, "32 KiB"));
    cr_expect_not_null(strstr(svg, "busbw (GB/s)"));
    cr_expect_eq(occurrences(svg, "<g id=\"gnuplot_plot_"), 2);
    cr_expect_eq(occurrences(svg, ">bound<"), 1);
    free(svg);
}

Test(report_plot, stacks_bars_with_a_name_each)
{
    pod_plot *plot = NULL;
    const char *const layouts[] = {"fsdp=16,tensor=4", "data=64"};
    const double zero[] = {0, 0};
    const double compute[] = {0.06, 0.07};
    const double step[] = {0.069, 0.0747};
    cr_assert_eq(pod_plot_new(&plot, NULL), POD_OK);
    pod_plot_panel(plot, &(pod_plot_axes){.x_label = "step (s)"});
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_BARS,
                                          .name = "compute",
                                          .count = 2,
                                          .x = zero,
                                          .x2 = compute,
                                          .label = layouts});
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_BARS,
                                          .name = "exposed ICI",
                                          .count = 2,
                                          .x = compute,
                                          .x2 = step,
                                          .label = layouts});
    char *svg = drawn(plot);
    cr_expect_not_null(strstr(svg, "fsdp=16,tensor=4"));
    cr_expect_not_null(strstr(svg, "data=64"));
    cr_expect_not_null(strstr(svg, "exposed ICI"));
    cr_expect_geq(occurrences(svg, "fill = 'rgb(  0, 114, 178)'"), 2);
    cr_expect_geq(occurrences(svg, "fill = 'rgb(213,  94,   0)'"), 2);
    free(svg);
}

Test(report_plot, draws_segments_by_load_and_panels_below_one_another)
{
    pod_plot *plot = NULL;
    const double x[] = {0, 1};
    const double y[] = {0, 0};
    const double x2[] = {1, 1};
    const double y2[] = {0, 1};
    const double load[] = {0.2, 1};
    const char *const names[] = {"0,0", "1,0"};
    cr_assert_eq(pod_plot_new(&plot, NULL), POD_OK);
    for (int i = 0; i < 2; i++) {
        pod_plot_panel(plot, &(pod_plot_axes){.drawing = true, .title = i == 0 ? "top" : "bottom"});
        pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_SEGMENTS,
                                              .count = 2,
                                              .x = x,
                                              .y = y,
                                              .x2 = x2,
                                              .y2 = y2,
                                              .load = load});
        pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_POINTS,
                                              .name = "chips",
                                              .count = 2,
                                              .x = x,
                                              .y = y,
                                              .label = names});
    }
    char *svg = drawn(plot);
    cr_expect_not_null(strstr(svg, "top"));
    cr_expect_not_null(strstr(svg, "bottom"));
    cr_expect_eq(occurrences(svg, "0,0</tspan>") + occurrences(svg, ">0,0<"), 2);
    free(svg);
}

Test(report_plot, refuses_other_files_empty_pictures_and_missing_folders)
{
    pod_plot *plot = NULL;
    pod_error err = {0};
    cr_expect_eq(pod_plot_path_check("a.pdf", NULL), POD_E_USAGE);
    cr_expect_eq(pod_plot_path_check(".svg", NULL), POD_E_USAGE);
    cr_expect_eq(pod_plot_path_check("a.png", NULL), POD_OK);
    cr_assert_eq(pod_plot_new(&plot, NULL), POD_OK);
    pod_plot_panel(plot, &(pod_plot_axes){.title = "nothing"});
    cr_expect_eq(pod_plot_write(plot, path, &err), POD_E_INVALID);
    cr_expect_neq(access(path, F_OK), 0);
    const double one[] = {1};
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_CURVE, .count = 1, .x = one, .y = one});
    cr_expect_eq(pod_plot_write(plot, "/no/such/folder/a.svg", NULL), POD_E_IO);
    pod_plot_free(plot);
}

Test(report_plot, says_that_gnuplot_is_missing)
{
    pod_plot *plot = NULL;
    pod_error err = {0};
    const double one[] = {1};
    cr_assert_eq(setenv("PATH", folder, 1), 0);
    cr_assert_eq(pod_plot_new(&plot, NULL), POD_OK);
    pod_plot_panel(plot, &(pod_plot_axes){.title = "t"});
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_CURVE, .count = 1, .x = one, .y = one});
    cr_expect_eq(pod_plot_write(plot, path, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "gnuplot-nox"), "%s", err.text);
    cr_expect_neq(access(path, F_OK), 0);
    pod_plot_free(plot);
}
