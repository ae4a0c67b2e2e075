/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot.h"

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "report/gnuplot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH_PX = 800,
    PANEL_PX = 480,
    DRAWING_PX = 720,
    BAR_PX = 34,
    BARS_MARGIN_PX = 150,
    PANELS_MAX = 8
};

/* Okabe and Ito's colours; grey stands for yellow, which is hard to see on white. */
static const char *const palette[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#000000", "#999999"};
enum { COLOURS = sizeof palette / sizeof *palette };

typedef struct panel {
    pod_text setup;
    pod_text data;  /* data blocks */
    pod_text curve; /* what follows "plot" */
    int height_px;
    int bars; /* labelled bars so far */
    int nseries;
    bool drawing;
} panel;

struct pod_plot {
    int npanels;
    int nblocks;
    panel panel[PANELS_MAX];
    bool too_many;
};

pod_status pod_plot_path_check(const char *path, pod_error *err)
{
    if (pod_text_ends_with(path, ".svg") || pod_text_ends_with(path, ".png")) {
        return POD_OK;
    }
    return pod_fail(err, POD_E_USAGE, "--plot writes FILE.svg or FILE.png, not '%s'", path);
}

pod_status pod_plot_new(pod_plot **plot, pod_error *err)
{
    *plot = calloc(1, sizeof **plot);
    return *plot != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the picture");
}

void pod_plot_free(pod_plot *plot)
{
    if (plot == NULL) {
        return;
    }
    for (int i = 0; i < plot->npanels; i++) {
        pod_text_free(&plot->panel[i].setup);
        pod_text_free(&plot->panel[i].data);
        pod_text_free(&plot->panel[i].curve);
    }
    free(plot);
}

/* In single quotes, where gnuplot reads nothing but a doubled quote. */
static void put_quoted(pod_text *text, const char *string)
{
    pod_text_add(text, "'");
    for (const char *c = string; *c != '\0'; c++) {
        pod_text_append(text, *c == '\n' ? " " : c, 1);
        if (*c == '\'') {
            pod_text_add(text, "'");
        }
    }
    pod_text_add(text, "'");
}

static void put_setting(pod_text *text, const char *setting, const char *string)
{
    if (string != NULL) {
        pod_text_printf(text, "set %s ", setting);
        put_quoted(text, string);
        pod_text_add(text, "\n");
    }
}

static void put_bytes_tics(pod_text *text)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    pod_text_add(text, "set xtics (");
    for (int power = 0; power <= 45; power += 5) {
        pod_text_printf(text, "%s'%d %s' %.0f", power == 0 ? "" : ", ", 1 << power % 10,
                        unit[power / 10], (double)(INT64_C(1) << power));
    }
    pod_text_add(text, ")\n");
}

void pod_plot_panel(pod_plot *plot, const pod_plot_axes *axes)
{
    if (plot->npanels == PANELS_MAX) {
        plot->too_many = true;
        return;
    }
    panel *p = &plot->panel[plot->npanels++];
    p->height_px = axes->height_px > 0 ? axes->height_px : axes->drawing ? DRAWING_PX : PANEL_PX;
    p->drawing = axes->drawing;
    pod_text *text = &p->setup;
    pod_text_add(text, "reset\nset style fill solid 1.0 noborder\n"
                       "set key outside right top vertical Left reverse samplen 2\n");
    put_setting(text, "title", axes->title);
    put_setting(text, "xlabel", axes->x_label);
    put_setting(text, "ylabel", axes->y_label);
    pod_text_add(text,
                 axes->drawing
                     ? "unset border\nunset tics\nset size ratio -1\nset offsets 0.6,0.6,0.6,0.6\n"
                     : "set grid lc rgb '#d9d9d9'\n");
    pod_text_printf(text, "%s%s", axes->log_x ? "set logscale x\n" : "",
                    axes->log_y ? "set logscale y\n" : "");
    if (axes->bytes_x) {
        put_bytes_tics(text);
    }
    if (axes->y_from < axes->y_to) {
        pod_text_printf(text, "set yrange [%.6g:%.6g]\n", axes->y_from, axes->y_to);
    }
    if (axes->diagonal) {
        pod_text_add(&p->curve, "x with lines lc rgb '#888888' dt 2 notitle");
        p->nseries++;
    }
}

static void put_number(pod_text *text, double value)
{
    char number[POD_FORMAT_MAX];
    pod_text_printf(text, "%s ", pod_format_double(value, number, sizeof number));
}

static void put_block(pod_plot *plot, panel *p, const pod_plot_series *s)
{
    pod_text_printf(&p->data, "$d%d << EOD\n", ++plot->nblocks);
    for (int i = 0; i < s->count; i++) {
        const double *const columns[] = {s->x, s->kind == POD_PLOT_BARS ? NULL : s->y, s->x2, s->y2,
                                         s->load};
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            if (columns[c] != NULL) {
                put_number(&p->data, columns[c][i]);
            }
        }
        if (s->kind == POD_PLOT_BARS) {
            pod_text_printf(&p->data, "%d", i);
        } else if (s->label != NULL) {
            pod_text_add(&p->data, "\"");
            for (const char *c = s->label[i]; *c != '\0'; c++) {
                pod_text_append(&p->data, *c == '"' || *c == '\n' ? " " : c, 1);
            }
            pod_text_add(&p->data, "\"");
        }
        pod_text_add(&p->data, "\n");
    }
    pod_text_add(&p->data, "EOD\n");
}

/* Names of bars beside the y axis, the first one on top. */
static void name_bars(panel *p, const pod_plot_series *s)
{
    if (s->label == NULL || p->bars >= s->count) {
        return;
    }
    p->bars = s->count;
    p->height_px = BARS_MARGIN_PX + BAR_PX * s->count;
    pod_text_add(&p->setup, "set ytics (");
    for (int i = 0; i < s->count; i++) {
        pod_text_add(&p->setup, i == 0 ? "" : ", ");
        put_quoted(&p->setup, s->label[i]);
        pod_text_printf(&p->setup, " %d", i);
    }
    pod_text_printf(&p->setup, ")\nset yrange [%d.5:-0.5]\n", s->count - 1);
}

/* @param number  of the colour, from 0; marks of curves change when colours come again */
static void put_style(panel *p, const pod_plot_series *s, int number)
{
    static const int marks[] = {7, 4, 9, 10,
                                13}; /* disc, square, triangle, open triangle, diamond */
    const char *colour = palette[number % COLOURS];
    const int mark = marks[(size_t)(number / COLOURS) % (sizeof marks / sizeof *marks)];
    pod_text *text = &p->curve;
    const double width = s->width > 0 ? s->width : 2;
    switch (s->kind) {
    case POD_PLOT_CURVE:
        pod_text_printf(text, "using 1:2 with linespoints lc rgb '%s' lw %.1f pt %d ps %.1f",
                        colour, width, mark, mark == marks[0] ? 0.6 : 0.9);
        break;
    case POD_PLOT_BOUND:
        pod_text_printf(text, "using 1:2 with lines lc rgb '%s' lw %.1f dt 2", colour, width);
        break;
    case POD_PLOT_POINTS:
        pod_text_printf(text, "using 1:2 with points lc rgb '%s' pt %d ps %.1f", colour, mark,
                        s->width > 0 ? s->width : 0.8);
        break;
    case POD_PLOT_BARS:
        pod_text_printf(text, "using 1:3:1:2:($3-0.36):($3+0.36) with boxxyerror lc rgb '%s'",
                        colour);
        break;
    case POD_PLOT_SEGMENTS:
        pod_text_printf(text, "using 1:2:($3-$1):($4-$2)%s with vectors nohead lw %.1f ",
                        s->load != NULL ? ":5" : "", width);
        if (s->dashed) {
            pod_text_add(text, "dt 2 ");
        }
        if (s->load != NULL) {
            pod_text_add(text, "lc palette");
        } else {
            pod_text_printf(text, "lc rgb '%s'", colour);
        }
        break;
    }
}

void pod_plot_add(pod_plot *plot, const pod_plot_series *series)
{
    if (series->count == 0 || plot->npanels == 0 || plot->too_many) {
        return;
    }
    panel *p = &plot->panel[plot->npanels - 1];
    const int colour = series->colour > 0 ? series->colour - 1 : p->nseries;
    if (series->kind == POD_PLOT_BARS) {
        name_bars(p, series);
    }
    if (series->load != NULL) {
        pod_text_add(&p->setup, "set palette defined (0 '#d9d9d9', 0.5 '#e69f00', 1 '#d55e00')\n"
                                "set cbrange [0:1]\nset cblabel 'link busy (part of the time)'\n");
    }
    put_block(plot, p, series);
    pod_text_printf(&p->curve, "%s$d%d ", p->curve.size > 0 ? ", " : "", plot->nblocks);
    put_style(p, series, colour);
    if (series->name != NULL) {
        pod_text_add(&p->curve, " title ");
        put_quoted(&p->curve, series->name);
    } else {
        pod_text_add(&p->curve, " notitle");
    }
    if (series->kind != POD_PLOT_BARS && series->label != NULL) {
        pod_text_printf(&p->curve,
                        ", $d%d using 1:2:3 with labels left offset 0.4,0.6 font ',9' notitle",
                        plot->nblocks);
    }
    p->nseries++;
}

/* The script of all panels, each at its height, from top to bottom. */
static void put_script(pod_plot *plot, bool svg, pod_text *script)
{
    int total = 0;
    for (int i = 0; i < plot->npanels; i++) {
        total += plot->panel[i].height_px;
    }
    pod_text_printf(script,
                    "set terminal %s size %d,%d font 'sans,%d' background '#ffffff' noenhanced\n"
                    "set encoding utf8\n%s",
                    svg ? "svg" : "pngcairo", (int)WIDTH_PX, total, svg ? 13 : 11,
                    plot->npanels > 1 ? "set multiplot\n" : "");
    int below = total;
    for (int i = 0; i < plot->npanels; i++) {
        panel *p = &plot->panel[i];
        below -= p->height_px;
        pod_text_append(script, p->data.data != NULL ? p->data.data : "", p->data.size);
        pod_text_append(script, p->setup.data, p->setup.size);
        if (plot->npanels > 1) {
            pod_text_printf(script, "set origin 0,%.6f\nset size 1,%.6f\n", (double)below / total,
                            (double)p->height_px / total);
        }
        pod_text_add(script, "plot ");
        pod_text_append(script, p->curve.data, p->curve.size);
        pod_text_add(script, "\n");
        script->out_of_memory |=
            p->data.out_of_memory || p->setup.out_of_memory || p->curve.out_of_memory;
    }
    pod_text_add(script, plot->npanels > 1 ? "unset multiplot\n" : "");
}

pod_status pod_plot_write(pod_plot *plot, const char *path, pod_error *err)
{
    pod_text script = {0};
    pod_text picture = {0};
    pod_status status = pod_plot_path_check(path, err);
    for (int i = 0; i < plot->npanels && status == POD_OK; i++) {
        if (plot->panel[i].curve.size == 0) {
            status = pod_fail(err, POD_E_INVALID, "there is nothing to draw in %s", path);
        }
    }
    if (status == POD_OK && (plot->npanels == 0 || plot->too_many)) {
        status = pod_fail(err, POD_E_INVALID, "a picture has 1 to %d panels", (int)PANELS_MAX);
    }
    if (status == POD_OK) {
        put_script(plot, pod_text_ends_with(path, ".svg"), &script);
        status = pod_gnuplot_run(&script, &picture, err);
    }
    POD_THEN(status, pod_file_write(path, picture.data, picture.size, err));
    pod_text_free(&script);
    pod_text_free(&picture);
    return status;
}
