/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pod_status out_of_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for the picture");
}

/* ---- collectives ---- */

typedef struct curves {
    double *bytes;
    double *busbw;
    double *time;
    double *bound_time;
    double *bound_busbw;
    int count;
} curves;

/* Rows of the series of row `first`; none if that series began before. */
static void curves_take(curves *c, const pod_plot_collective_row *rows, int count, int first)
{
    c->count = 0;
    for (int i = 0; i < first; i++) {
        if (strcmp(rows[i].series, rows[first].series) == 0) {
            return;
        }
    }
    for (int i = first; i < count; i++) {
        const pod_plot_collective_row *row = &rows[i];
        if (strcmp(row->series, rows[first].series) != 0 || row->bytes <= 0 || row->time_us <= 0) {
            continue;
        }
        c->bytes[c->count] = row->bytes;
        c->busbw[c->count] = row->busbw_GBps;
        c->time[c->count] = row->time_us;
        c->bound_time[c->count] = row->bound_us;
        c->bound_busbw[c->count] =
            row->bound_us > 0 ? row->bytes * row->bus_factor / row->bound_us / 1e3 : 0;
        c->count++;
    }
}

/* The row with which the series of row i begins. */
static int series_begin(const pod_plot_collective_row *rows, int i)
{
    int begin = 0;
    while (strcmp(rows[begin].series, rows[i].series) != 0) {
        begin++;
    }
    return begin;
}

/* Whether all rows of the series that begins with row `first` have a bound, and another than those of each series
 * before: algorithms of one slice have the same. */
static bool bound_is_new(const pod_plot_collective_row *rows, int count, int first)
{
    bool different = false;
    for (int i = first; i < count; i++) {
        bool known = false;
        if (rows[i].bytes <= 0 || strcmp(rows[i].series, rows[first].series) != 0) {
            continue;
        }
        if (rows[i].bound_us <= 0) {
            return false;
        }
        for (int j = 0; j < i && !known; j++) {
            known = rows[j].bytes == rows[i].bytes && rows[j].bound_us == rows[i].bound_us
                    && series_begin(rows, j) < first;
        }
        different = different || !known;
    }
    return different;
}

enum { BOUNDS_MAX = 8 }; /* more dashed lines hide the curves */

static int bounds_count(const pod_plot_collective_row *rows, int count)
{
    int bounds = 0;
    for (int i = 0; i < count; i++) {
        bounds += series_begin(rows, i) == i && bound_is_new(rows, count, i) ? 1 : 0;
    }
    return bounds;
}

static bool add_curves(pod_plot *plot, curves *c, const pod_plot_collective_row *rows, int count,
                       bool bandwidth)
{
    const bool bounds = bounds_count(rows, count) <= BOUNDS_MAX;
    const char *name = "bound (dashed)";
    int colour = 0;
    for (int i = 0; i < count; i++) {
        curves_take(c, rows, count, i);
        if (c->count == 0) {
            continue;
        }
        pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_CURVE,
                                              .name = rows[i].series,
                                              .count = c->count,
                                              .x = c->bytes,
                                              .y = bandwidth ? c->busbw : c->time,
                                              .colour = ++colour});
        if (bounds && bound_is_new(rows, count, i)) {
            pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_BOUND,
                                                  .name = name,
                                                  .count = c->count,
                                                  .x = c->bytes,
                                                  .y = bandwidth ? c->bound_busbw : c->bound_time,
                                                  .colour = colour});
            name = NULL;
        }
    }
    return colour > 0;
}

/* Two panels, one below the other, of the same rows. */
static pod_status plot_rows(pod_plot *plot, const pod_plot_axes *upper, const pod_plot_axes *lower,
                            const pod_plot_collective_row *rows, int count, pod_error *err)
{
    double *room = calloc((size_t)count * 5 + 1, sizeof *room);
    if (room == NULL) {
        return out_of_memory(err);
    }
    const size_t n = (size_t)count;
    curves c = {.bytes = room,
                .busbw = room + n,
                .time = room + 2 * n,
                .bound_time = room + 3 * n,
                .bound_busbw = room + 4 * n};
    pod_plot_panel(plot, upper);
    const bool drawn = add_curves(plot, &c, rows, count, true);
    pod_plot_panel(plot, lower);
    (void)add_curves(plot, &c, rows, count, false);
    free(room);
    return drawn ? POD_OK
                 : pod_fail(err, POD_E_INVALID,
                            "there is nothing to draw: no size moves bytes and takes time");
}

static pod_plot_axes bytes_axes(const char *title, const char *y_label)
{
    return (pod_plot_axes){.title = title,
                           .x_label = "bytes per chip",
                           .y_label = y_label,
                           .log_x = true,
                           .log_y = true,
                           .bytes_x = true};
}

pod_status pod_plot_collectives(pod_plot *plot, const char *title,
                                const pod_plot_collective_row *rows, int count, pod_error *err)
{
    const pod_plot_axes upper = bytes_axes(title, "bus bandwidth (GB/s)");
    const pod_plot_axes lower = bytes_axes(NULL, "time (us)");
    return plot_rows(plot, &upper, &lower, rows, count, err);
}

pod_status pod_plot_traffic(pod_plot *plot, const char *title, bool load,
                            const pod_plot_collective_row *rows, int count, pod_error *err)
{
    static const char load_label[] = "load (of a link's rate)";
    pod_plot_axes upper = bytes_axes(title, "GB/s a chip");
    pod_plot_axes lower = bytes_axes(NULL, "time (us)");
    if (load) {
        upper = (pod_plot_axes){.title = title, .x_label = load_label, .y_label = "GB/s a chip"};
        lower =
            (pod_plot_axes){.x_label = load_label, .y_label = "mean latency (us)", .log_y = true};
    }
    return plot_rows(plot, &upper, &lower, rows, count, err);
}

/* ---- steps ---- */

pod_status pod_plot_steps(pod_plot *plot, const char *title, const pod_plot_step_row *rows,
                          int count, pod_error *err)
{
    static const char *const names[POD_PLOT_PARTS] = {"compute",   "exposed ICI",  "exposed DCN",
                                                      "HBM-bound", "exposed host", "idle"};
    static const int colours[POD_PLOT_PARTS] = {1, 2, 4, 6, 3, 8};
    static const int order[POD_PLOT_PARTS] = {0, 3, 1, 2, 4, 5}; /* what the core does first */
    double *ends = calloc(2 * (size_t)count + 1, sizeof *ends);
    const char **labels = calloc((size_t)count + 1, sizeof *labels);
    if (ends == NULL || labels == NULL) {
        free(ends);
        free(labels);
        return out_of_memory(err);
    }
    double *from = ends;
    double *to = ends + count;
    for (int i = 0; i < count; i++) {
        labels[i] = rows[i].label;
    }
    pod_plot_panel(plot, &(pod_plot_axes){.title = title, .x_label = "step time (s)"});
    for (int place = 0; place < POD_PLOT_PARTS; place++) {
        const int part = order[place];
        double sum = 0;
        for (int i = 0; i < count; i++) {
            sum += rows[i].part_s[part];
            from[i] = to[i];
            to[i] += rows[i].part_s[part];
        }
        if (sum > 0) {
            pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_BARS,
                                                  .name = names[part],
                                                  .count = count,
                                                  .x = from,
                                                  .x2 = to,
                                                  .label = labels,
                                                  .colour = colours[part]});
        }
    }
    free(ends);
    free(labels);
    return count > 0 ? POD_OK
                     : pod_fail(err, POD_E_INVALID, "there is nothing to draw: no layout runs");
}

pod_status pod_plot_elasticities(pod_plot *plot, const char *title, const char *const *names,
                                 const double *elasticity, int count, pod_error *err)
{
    double *zero = calloc((size_t)count + 1, sizeof *zero);
    if (zero == NULL) {
        return out_of_memory(err);
    }
    pod_plot_panel(
        plot,
        &(pod_plot_axes){.title = title, .x_label = "% less time when the resource is 1 % faster"});
    pod_plot_add(
        plot,
        &(pod_plot_series){
            .kind = POD_PLOT_BARS, .count = count, .x = zero, .x2 = elasticity, .label = names});
    free(zero);
    return POD_OK;
}

/* ---- validation ---- */

/* Points of the class of row `first`; none if that class began before. */
static int class_take(const pod_plot_validation_row *rows, int count, int first, double *x,
                      double *y)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].class_name, rows[first].class_name) != 0) {
            continue;
        }
        if (i < first) {
            return 0;
        }
        if (rows[i].published > 0 && rows[i].predicted > 0) {
            x[taken] = rows[i].published;
            y[taken++] = rows[i].predicted / rows[i].published;
        }
    }
    return taken;
}

/* Dashed, or whole for what is exact. */
static void add_level(pod_plot *plot, const double *ends, double level, const char *name)
{
    const bool exact = level == 1;
    const double y[] = {level, level};
    pod_plot_add(plot, &(pod_plot_series){.kind = exact ? POD_PLOT_SEGMENTS : POD_PLOT_BOUND,
                                          .name = name,
                                          .count = exact ? 1 : 2,
                                          .x = ends,
                                          .y = y,
                                          .x2 = exact ? &ends[1] : NULL,
                                          .y2 = exact ? &y[1] : NULL,
                                          .colour = 8,
                                          .width = 1});
}

/* The least and the most of what is drawn, and a little more: of x by a factor, of y from 0.85 to 1.15 at least. */
static int validation_ends(const pod_plot_validation_row *rows, int count, double x[2], double y[2])
{
    int drawn = 0;
    y[0] = 0.85;
    y[1] = 1.15;
    for (int i = 0; i < count; i++) {
        if (rows[i].published <= 0 || rows[i].predicted <= 0) {
            continue;
        }
        const double ratio = rows[i].predicted / rows[i].published;
        x[0] = drawn == 0 || rows[i].published < x[0] ? rows[i].published : x[0];
        x[1] = drawn == 0 || rows[i].published > x[1] ? rows[i].published : x[1];
        y[0] = ratio - 0.05 < y[0] ? ratio - 0.05 : y[0];
        y[1] = ratio + 0.05 > y[1] ? ratio + 0.05 : y[1];
        drawn++;
    }
    x[0] /= 1.5;
    x[1] *= 1.5;
    return drawn;
}

pod_status pod_plot_validation(pod_plot *plot, const pod_plot_validation_row *rows, int count,
                               pod_error *err)
{
    double *x = calloc(2 * (size_t)count + 1, sizeof *x);
    if (x == NULL) {
        return out_of_memory(err);
    }
    double *y = x + count;
    double x_ends[2] = {0, 0};
    double y_ends[2];
    const int drawn = validation_ends(rows, count, x_ends, y_ends);
    pod_plot_panel(plot, &(pod_plot_axes){.title = "podsim against published measurements",
                                          .x_label = "published (us, s, GB/s, TFLOP/s or ratio)",
                                          .y_label = "predicted / published",
                                          .log_x = true,
                                          .y_from = y_ends[0],
                                          .y_to = y_ends[1]});
    int colour = 0;
    for (int i = 0; i < count; i++) {
        const int points = class_take(rows, count, i, x, y);
        pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_POINTS,
                                              .name = rows[i].class_name,
                                              .count = points,
                                              .x = x,
                                              .y = y,
                                              .colour = points > 0 ? ++colour : 1});
    }
    if (drawn > 0) {
        add_level(plot, x_ends, 0.9, "10 % off");
        add_level(plot, x_ends, 1.1, NULL);
        add_level(plot, x_ends, 1, NULL);
    }
    free(x);
    return drawn > 0
               ? POD_OK
               : pod_fail(err, POD_E_INVALID, "there is nothing to draw: no row has a figure");
}

/* Room for points x[count], then y[count], and their labels. */
static pod_status points_new(int count, double **x, const char ***label, pod_error *err)
{
    *x = calloc(2 * (size_t)count + 1, sizeof **x);
    *label = calloc((size_t)count + 1, sizeof **label);
    if (*x != NULL && *label != NULL) {
        return POD_OK;
    }
    free(*x);
    free(*label);
    return out_of_memory(err);
}

/* ---- a front ---- */

/* Rows of the series that row `first` is the first of, if it is. @return their number */
static int series_take(const pod_plot_front_row *rows, int count, int first, double *x, double *y)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].series, rows[first].series) != 0) {
            continue;
        }
        if (i < first) {
            return 0;
        }
        x[taken] = rows[i].cost;
        y[taken++] = rows[i].time_s;
    }
    return taken;
}

/* Rows of the front, the cheapest first. @return their number */
static int front_take(const pod_plot_front_row *rows, int count, double *x, double *y,
                      const char **label)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        if (!rows[i].front) {
            continue;
        }
        int at = taken++;
        for (; at > 0 && x[at - 1] > rows[i].cost; at--) {
            x[at] = x[at - 1];
            y[at] = y[at - 1];
            label[at] = label[at - 1];
        }
        x[at] = rows[i].cost;
        y[at] = rows[i].time_s;
        label[at] = rows[i].label;
    }
    return taken;
}

pod_status pod_plot_front(pod_plot *plot, const char *title, const char *cost_label,
                          const pod_plot_front_row *rows, int count, pod_error *err)
{
    double *x = NULL;
    const char **label = NULL;
    POD_TRY(points_new(count, &x, &label, err));
    double *y = x + count;
    int colour = 0;
    pod_plot_panel(plot, &(pod_plot_axes){.title = title,
                                          .x_label = cost_label,
                                          .y_label = "step (s)",
                                          .log_x = true,
                                          .log_y = true,
                                          .height_px = 480});
    for (int i = 0; i < count; i++) {
        const int points = series_take(rows, count, i, x, y);
        pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_POINTS,
                                              .name = rows[i].series,
                                              .count = points,
                                              .x = x,
                                              .y = y,
                                              .colour = points > 0 ? ++colour : 1});
    }
    const int front = front_take(rows, count, x, y, label);
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_BOUND,
                                          .name = "no other is faster and cheaper",
                                          .count = front,
                                          .x = x,
                                          .y = y,
                                          .colour = 8,
                                          .width = 1});
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_POINTS,
                                          .count = front,
                                          .x = x,
                                          .y = y,
                                          .label = label,
                                          .colour = 8,
                                          .width = 0.5});
    free(x);
    free(label);
    return count > 0 ? POD_OK : pod_fail(err, POD_E_INVALID, "there is nothing to draw: no slice");
}

/* ---- rooflines ---- */

pod_status pod_plot_roofline(pod_plot *plot, const char *title, const pod_plot_roof_row *rows,
                             int count, double peak_ops_per_s, double hbm_bytes_per_s,
                             pod_error *err)
{
    double *x = NULL;
    const char **label = NULL;
    POD_TRY(points_new(count, &x, &label, err));
    double *y = x + count;
    int points = 0;
    int named = -1; /* the last point with a label */
    const double ridge = peak_ops_per_s / hbm_bytes_per_s;
    double from = ridge / 4;
    double to = ridge * 4;
    char mxu[64];
    char hbm[64];
    for (int i = 0; i < count; i++) {
        if (rows[i].intensity > 0 && rows[i].ops_per_s > 0) {
            x[points] = rows[i].intensity;
            y[points] = rows[i].ops_per_s / 1e12;
            /* one of several close by is enough */
            const bool apart = named < 0 || fabs(log(x[points] / x[named])) > 0.2
                               || fabs(log(y[points] / y[named])) > 0.2;
            label[points] = apart ? rows[i].label : "";
            named = apart ? points : named;
            points++;
            from = rows[i].intensity < from ? rows[i].intensity : from;
            to = rows[i].intensity > to ? rows[i].intensity : to;
        }
    }
    (void)snprintf(mxu, sizeof mxu, "MXU: %.4g TFLOP/s", peak_ops_per_s / 1e12);
    (void)snprintf(hbm, sizeof hbm, "HBM: %.4g GB/s, ridge at %.4g FLOP/B", hbm_bytes_per_s / 1e9,
                   ridge);
    const double slope_x[] = {from, ridge};
    const double slope_y[] = {from * hbm_bytes_per_s / 1e12, peak_ops_per_s / 1e12};
    const double roof_x[] = {ridge, to};
    const double roof_y[] = {peak_ops_per_s / 1e12, peak_ops_per_s / 1e12};
    if (points > 0) {
        pod_plot_panel(plot, &(pod_plot_axes){.title = title,
                                              .x_label = "intensity (FLOP/B)",
                                              .y_label = "rate (TFLOP/s)",
                                              .log_x = true,
                                              .log_y = true,
                                              .height_px = 480});
        pod_plot_add(
            plot, &(pod_plot_series){
                      .kind = POD_PLOT_BOUND, .name = mxu, .count = 2, .x = roof_x, .y = roof_y});
        pod_plot_add(
            plot, &(pod_plot_series){
                      .kind = POD_PLOT_BOUND, .name = hbm, .count = 2, .x = slope_x, .y = slope_y});
        pod_plot_add(plot,
                     &(pod_plot_series){
                         .kind = POD_PLOT_POINTS, .count = points, .x = x, .y = y, .label = label});
    }
    free(x);
    free(label);
    return points > 0 ? POD_OK
                      : pod_fail(err, POD_E_INVALID,
                                 "there is nothing to draw: no matmul with FLOPs and bytes");
}
