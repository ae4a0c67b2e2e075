/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/plot.h  Pictures of figures, drawn by gnuplot.
 *
 *  Model: a plot is one or more panels, one below the other. A panel has axes and series: curves, points,
 *  stacked bars with a label each, or a drawing of segments and points without axes. Colours come from a
 *  palette that colour-blind readers can tell apart (Okabe and Ito, 2008), in order of the series.
 *
 *  The file is SVG or PNG by its name. gnuplot is a program beside podsim; it is looked for when a plot is
 *  written, and a plot of the same figures is the same bytes.
 *
 *  Ownership: new/free; everything that is given is copied. Running out of memory is remembered and reported
 *  by pod_plot_write. Threads: none. */
#pragma once

#include "base/status.h"

#include <stdbool.h>

typedef struct pod_plot pod_plot;

/** Axes of a panel. Texts may be NULL. */
typedef struct pod_plot_axes {
    const char *title;
    const char *x_label; /**< with its unit, e.g. "bytes per chip" */
    const char *y_label;
    bool log_x;
    bool log_y;
    bool bytes_x;  /**< tics of x are sizes: 1 KiB, 32 KiB, 1 MiB, … */
    bool diagonal; /**< a line y = x, for predicted against published */
    bool drawing;  /**< no axes; x and y have the same scale */
    int height_px; /**< 0: by what it shows */
    double y_from; /**< ends of the y axis; both 0: by what it shows */
    double y_to;
} pod_plot_axes;

typedef enum pod_plot_kind {
    POD_PLOT_CURVE,  /**< x, y joined, with a mark at each */
    POD_PLOT_BOUND,  /**< x, y joined by a dashed line without marks */
    POD_PLOT_POINTS, /**< x, y */
    POD_PLOT_BARS, /**< x = start, x2 = end of the part of bar i; label[i] = its name beside the axis */
    POD_PLOT_SEGMENTS /**< from x, y to x2, y2 */
} pod_plot_kind;

typedef struct pod_plot_series {
    pod_plot_kind kind;
    const char *name; /**< in the legend; NULL = none */
    int count;
    const double *x;          /**< x[count] */
    const double *y;          /**< y[count]; not of bars */
    const double *x2;         /**< bars and segments */
    const double *y2;         /**< segments */
    const double *load;       /**< segments: 0 to 1, shown as colour; else NULL */
    const char *const *label; /**< bars; points: a text beside each; else NULL */
    int colour;   /**< 1 …: of the palette, after its end with another mark; 0 = the next one */
    bool dashed;  /**< segments */
    double width; /**< of lines and segments, size of points; 0 = as usual */
} pod_plot_series;

/** Is `path` a picture that can be written: does it end in .svg or .png? POD_E_USAGE. */
pod_status pod_plot_path_check(const char *path, pod_error *err);

/** Not collective. @return POD_E_NOMEM */
pod_status pod_plot_new(pod_plot **plot, pod_error *err);
void pod_plot_free(pod_plot *plot);

/** Begin the next panel. */
void pod_plot_panel(pod_plot *plot, const pod_plot_axes *axes);
/** Add to the panel. Values are finite; with logarithmic axes positive. Empty series are left out. */
void pod_plot_add(pod_plot *plot, const pod_plot_series *series);

/** Draw and write the file, whole or not at all. Not collective: rank 0 writes.
 *  @return POD_E_IO when gnuplot is missing or fails, or the file can't be written; POD_E_NOMEM */
pod_status pod_plot_write(pod_plot *plot, const char *path, pod_error *err);
