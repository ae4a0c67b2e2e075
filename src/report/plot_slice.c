/* SPDX-License-Identifier: Apache-2.0 */
/* A slice as a drawing: the planes along z beside each other, in rows; their cables along z are stubs to the right and
 * up, and back. */
#include "report/plots.h"

#include <stdlib.h>

enum { KINDS = 4, CHIPS_MAX = 1024, LABELS_MAX = 64 };
typedef enum cable_kind { PLAIN, WRAPS, TWISTED, DEAD } cable_kind;

/* Segments of one look. */
typedef struct segments {
    double *x;
    double *y;
    double *x2;
    double *y2;
    double *load;
    int count;
} segments;

typedef struct point {
    double x;
    double y;
} point;

static const double PLANE_GAP = 1.1;

/* Planes in a row: as many as rows, or one more. */
static int32_t plane_columns(const pod_slice *slice)
{
    int32_t columns = 1;
    while (columns * columns < slice->dims[2]) {
        columns++;
    }
    return columns;
}

/* Where a position is drawn. */
static point place(const pod_slice *slice, double x, double y, int32_t z)
{
    const int32_t columns = plane_columns(slice);
    return (point){x + (slice->dims[0] + PLANE_GAP) * (z % columns),
                   y + (slice->dims[1] + PLANE_GAP) * (z / columns)};
}

/* Of a picture without margins above and below, where its width is what legend and colours leave. */
static int height_px(const pod_slice *slice, bool colours)
{
    const int32_t columns = plane_columns(slice);
    const int32_t rows = (slice->dims[2] + columns - 1) / columns;
    const double wide = columns * (slice->dims[0] + PLANE_GAP);
    const double high = rows * (slice->dims[1] + PLANE_GAP);
    const double px = 60 + (colours ? 400 : 580) * high / wide;
    return px < 180 ? 180 : px > 720 ? 720 : (int)px;
}

static bool segments_init(segments *s, size_t room)
{
    double *all = calloc(room * 5 + 1, sizeof *all);
    *s = (segments){all, all + room, all + 2 * room, all + 3 * room, all + 4 * room, 0};
    return all != NULL;
}

static void segments_add(segments *s, point from, point to, double load)
{
    s->x[s->count] = from.x;
    s->y[s->count] = from.y;
    s->x2[s->count] = to.x;
    s->y2[s->count] = to.y;
    s->load[s->count] = load;
    s->count++;
}

/* What a cable looks like: it wraps when its ends are not neighbours in space. */
static cable_kind kind_of(const pod_slice *slice, int32_t chip, int direction)
{
    int32_t a[POD_AXES];
    int32_t b[POD_AXES];
    pod_slice_coords(slice, chip, a);
    pod_slice_coords(slice, pod_slice_neighbor(slice, chip, direction), b);
    int moved = 0;
    int far = 0;
    for (int axis = 0; axis < POD_AXES; axis++) {
        const int32_t off = abs(a[axis] - b[axis]);
        moved += off > 0 ? 1 : 0;
        far += off > 1 ? 1 : 0;
    }
    if (pod_slice_link_slowness(slice, chip, direction) == 0) {
        return DEAD;
    }
    return moved > 1 ? TWISTED : far > 0 ? WRAPS : PLAIN;
}

/* A cable, from its chip in + direction. Those that wrap, or leave a plane, are stubs at both ends. */
static void add_cable(segments *s, const pod_slice *slice, int32_t chip, int direction,
                      cable_kind kind, double load)
{
    int32_t a[POD_AXES];
    int32_t b[POD_AXES];
    const int axis = direction / 2;
    pod_slice_coords(slice, chip, a);
    pod_slice_coords(slice, pod_slice_neighbor(slice, chip, direction), b);
    const double right = axis == 0 ? 0.42 : axis == 2 ? 0.25 : 0;
    const double up = axis == 1 ? 0.42 : axis == 2 ? 0.25 : 0;
    const point from = place(slice, a[0], a[1], a[2]);
    const point to = place(slice, b[0], b[1], b[2]);
    if ((kind == PLAIN || kind == DEAD) && axis != 2 && a[2] == b[2]) {
        segments_add(s, from, to, load);
        return;
    }
    segments_add(s, from, (point){from.x + right, from.y + up}, load);
    segments_add(s, (point){to.x - right, to.y - up}, to, load);
}

static double load_of(const pod_plot_slice_args *args, int32_t chip, int direction)
{
    if (args->busy_frac == NULL) {
        return 0;
    }
    const int32_t other = pod_slice_neighbor(args->slice, chip, direction);
    const double there = args->busy_frac[chip * POD_DIRECTIONS + direction];
    const double back = args->busy_frac[other * POD_DIRECTIONS + pod_direction_reverse(direction)];
    return there > back ? there : back;
}

/* Which list a cable belongs to: by mesh axis where there is a mesh, else by kind. */
static int list_of(const pod_plot_slice_args *args, int32_t chip, int direction, cable_kind kind)
{
    if (args->axis_of == NULL || kind == DEAD) {
        return kind;
    }
    const int32_t axis = args->axis_of[chip * POD_DIRECTIONS + direction];
    return KINDS + (axis >= 0 ? axis : args->naxes);
}

static void add_cables(const pod_plot_slice_args *args, segments *lists)
{
    const pod_slice *slice = args->slice;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        for (int direction = 0; direction < POD_DIRECTIONS; direction += 2) {
            if (pod_slice_neighbor(slice, chip, direction) < 0) {
                continue;
            }
            const cable_kind kind = kind_of(slice, chip, direction);
            add_cable(&lists[list_of(args, chip, direction, kind)], slice, chip, direction, kind,
                      load_of(args, chip, direction));
        }
    }
}

/* @param kind  of cables; KINDS for those of a mesh axis */
static void draw_list(pod_plot *plot, const segments *s, const char *name, int colour, int kind,
                      bool load)
{
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_SEGMENTS,
                                          .name = name,
                                          .count = s->count,
                                          .x = s->x,
                                          .y = s->y,
                                          .x2 = s->x2,
                                          .y2 = s->y2,
                                          .load = load ? s->load : NULL,
                                          .colour = colour,
                                          .dashed = kind == DEAD,
                                          .width = load || kind == DEAD ? 3 : 2});
}

static pod_status draw_chips(pod_plot *plot, const pod_slice *slice, pod_error *err)
{
    const size_t n = (size_t)slice->nchips;
    double *x = calloc(4 * n + 1, sizeof *x);
    char(*text)[40] = calloc(n + 1, sizeof *text);
    const char **label = calloc(n + 1, sizeof *label);
    if (x == NULL || text == NULL || label == NULL) {
        free(x);
        free(text);
        free(label);
        return pod_fail(err, POD_E_NOMEM, "no memory for the picture");
    }
    double *y = x + n;
    double *slow_x = x + 2 * n;
    double *slow_y = x + 3 * n;
    int slow = 0;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        int32_t at[POD_AXES];
        pod_slice_coords(slice, chip, at);
        const point p = place(slice, at[0], at[1], at[2]);
        x[chip] = p.x;
        y[chip] = p.y;
        const bool named = slice->nchips <= LABELS_MAX || (at[0] == 0 && at[1] == 0);
        label[chip] = named ? pod_slice_chip_text(slice, chip, text[chip], sizeof text[chip]) : "";
        if (pod_slice_chip_slowness(slice, chip) > 1) {
            slow_x[slow] = p.x;
            slow_y[slow++] = p.y;
        }
    }
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_POINTS,
                                          .name = "chips",
                                          .count = slice->nchips,
                                          .x = x,
                                          .y = y,
                                          .label = label,
                                          .colour = 7});
    pod_plot_add(plot, &(pod_plot_series){.kind = POD_PLOT_POINTS,
                                          .name = "slow chips",
                                          .count = slow,
                                          .x = slow_x,
                                          .y = slow_y,
                                          .colour = 4,
                                          .width = 1.6});
    free(x);
    free(text);
    free(label);
    return POD_OK;
}

static void draw_lists(pod_plot *plot, const pod_plot_slice_args *args, const segments *lists)
{
    const bool planes = args->slice->dims[2] > 1;
    const char *const names[KINDS] = {planes ? "cables (along z: stubs)" : "cables",
                                      "cables that wrap (stubs)", "twisted cables (stubs)",
                                      "dead cables"};
    static const int colours[KINDS] = {5, 1, 3, 7};
    static const int axis_colours[] = {1, 3, 6, 4, 5, 2};
    const bool load = args->busy_frac != NULL;
    for (int kind = 0; kind < KINDS; kind++) {
        draw_list(plot, &lists[kind], names[kind], colours[kind], kind, load && kind != DEAD);
    }
    for (int axis = 0; axis <= args->naxes; axis++) {
        const char *name = axis < args->naxes ? args->axis_names[axis] : "no mesh axis";
        draw_list(plot, &lists[KINDS + axis], name,
                  axis < args->naxes
                      ? axis_colours[(size_t)axis % (sizeof axis_colours / sizeof *axis_colours)]
                      : 8,
                  KINDS, false);
    }
}

pod_status pod_plot_slice(pod_plot *plot, const pod_plot_slice_args *args, pod_error *err)
{
    const pod_slice *slice = args->slice;
    const size_t nlists = (size_t)(KINDS + args->naxes + 1);
    if (slice->nchips > CHIPS_MAX) {
        return pod_fail(err, POD_E_INVALID,
                        "a slice of %d chips is no picture any more; up to %d are",
                        (int)slice->nchips, (int)CHIPS_MAX);
    }
    segments *lists = calloc(nlists, sizeof *lists);
    bool made = lists != NULL;
    for (size_t i = 0; made && i < nlists; i++) {
        made = segments_init(&lists[i], (size_t)slice->nchips * POD_DIRECTIONS);
    }
    pod_status status = made ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the picture");
    if (made) {
        pod_plot_panel(plot,
                       &(pod_plot_axes){.title = args->title,
                                        .drawing = true,
                                        .height_px = height_px(slice, args->busy_frac != NULL)});
        add_cables(args, lists);
        draw_lists(plot, args, lists);
        status = draw_chips(plot, slice, err);
    }
    for (size_t i = 0; lists != NULL && i < nlists; i++) {
        free(lists[i].x);
    }
    free(lists);
    return status;
}
