/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plots.h"

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

/* The bound of a curve, dashed in its colour, where there is one at every point. */
static void add_bound(pod_plot *plot, const curves *c, const double *y, int colour)
{
    for (int i = 0; i < c->count; i++) {
        if (y[i] <= 0) {
            return;
        }
    }
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_BOUND,
                                          .name = colour == 1 ? "bound (dashed)" : NULL,
                                          .count = c->count,
                                          .x = c->bytes,
                                          .y = y,
                                          .colour = colour});
}

static bool add_curves(pod_plot *plot, curves *c, const pod_plot_collective_row *rows, int count,
                       bool bandwidth)
{
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
        add_bound(plot, c, bandwidth ? c->bound_busbw : c->bound_time, colour);
    }
    return colour > 0;
}

pod_status pod_plot_collectives(pod_plot *plot, const char *title,
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
    pod_plot_panel(plot, &(pod_plot_axes){.title = title,
                                          .x_label = "bytes per chip",
                                          .y_label = "bus bandwidth (GB/s)",
                                          .log_x = true,
                                          .log_y = true,
                                          .bytes_x = true});
    const bool drawn = add_curves(plot, &c, rows, count, true);
    pod_plot_panel(plot, &(pod_plot_axes){.x_label = "bytes per chip",
                                          .y_label = "time (us)",
                                          .log_x = true,
                                          .log_y = true,
                                          .bytes_x = true});
    (void)add_curves(plot, &c, rows, count, false);
    free(room);
    return drawn ? POD_OK
                 : pod_fail(err, POD_E_INVALID,
                            "there is nothing to draw: no size moves bytes and takes time");
}

/* ---- steps ---- */

pod_status pod_plot_steps(pod_plot *plot, const char *title, const pod_plot_step_row *rows,
                          int count, pod_error *err)
{
    static const char *const names[POD_PLOT_PARTS] = {"compute",     "exposed ICI",  "exposed DCN",
                                                      "exposed HBM", "exposed host", "idle"};
    static const int colours[POD_PLOT_PARTS] = {1, 2, 4, 6, 3, 5};
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
    for (int part = 0; part < POD_PLOT_PARTS; part++) {
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

static void add_level(pod_plot *plot, const double *ends, double level, const char *name)
{
    const double y[] = {level, level};
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_BOUND,
                                          .name = name,
                                          .count = 2,
                                          .x = ends,
                                          .y = y,
                                          .colour = 7,
                                          .width = 1});
}

pod_status pod_plot_validation(pod_plot *plot, const pod_plot_validation_row *rows, int count,
                               pod_error *err)
{
    double *x = calloc(2 * (size_t)count + 1, sizeof *x);
    if (x == NULL) {
        return out_of_memory(err);
    }
    double *y = x + count;
    double ends[2] = {0, 0};
    pod_plot_panel(plot, &(pod_plot_axes){.title = "podsim against published measurements",
                                          .x_label = "published (unit of the row)",
                                          .y_label = "predicted / published",
                                          .log_x = true});
    int colour = 0;
    for (int i = 0; i < count; i++) {
        const int points = class_take(rows, count, i, x, y);
        for (int j = 0; j < points; j++) {
            ends[0] = ends[0] == 0 || x[j] < ends[0] ? x[j] : ends[0];
            ends[1] = x[j] > ends[1] ? x[j] : ends[1];
        }
        pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_POINTS,
                                              .name = rows[i].class_name,
                                              .count = points,
                                              .x = x,
                                              .y = y,
                                              .colour = points > 0 ? ++colour : 1});
    }
    if (colour > 0) {
        add_level(plot, ends, 0.9, "10 % off");
        add_level(plot, ends, 1.1, NULL);
        add_level(plot, ends, 1, NULL);
    }
    free(x);
    return colour > 0
               ? POD_OK
               : pod_fail(err, POD_E_INVALID, "there is nothing to draw: no row has a figure");
}
