/* SPDX-License-Identifier: Apache-2.0 */
#include "report/step_views.h"

#include "base/grow.h"
#include "program/memory.h"
#include "report/op_lines.h"
#include "report/step_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VIEW_CHIPS_MAX = 16384, PEAK_ROWS = 200 };

static double chip_mean_s(int64_t sum_ps, int64_t cells)
{
    return cells > 0 ? pod_time_to_s(sum_ps) / (double)cells : 0;
}

static pod_status no_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for a page");
}

static void begin_table(pod_findings *findings, const char *id, const pod_emit_column *columns,
                        int ncolumns, const char *heading)
{
    pod_findings_table(findings, id, columns, ncolumns, "%s", heading);
    pod_findings_data_only(findings);
}

/* ---- parts ---- */

typedef struct part_row {
    const char *phase;
    char kind[POD_PROGRAM_AXES_MAX + 16];
    double time_s;
} part_row;

typedef struct part_list {
    part_row *rows;
    int count;
    int64_t room;
} part_list;

static bool part_add(part_list *list, const char *phase, const char *kind, double time_s)
{
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->rows[i].phase, phase) == 0 && strcmp(list->rows[i].kind, kind) == 0) {
            list->rows[i].time_s += time_s;
            return true;
        }
    }
    if (!POD_GROW(list->rows, list->room, list->count + 1)) {
        return false;
    }
    part_row *row = &list->rows[list->count++];
    *row = (part_row){.phase = phase, .time_s = time_s};
    (void)snprintf(row->kind, sizeof row->kind, "%s", kind);
    return true;
}

/* The core's time of an op, and the time for which the core waits for it. */
static bool parts_of_op(part_list *list, const pod_step_views_args *args, const pod_op *op,
                        const pod_op_record *record)
{
    const pod_op_kind_row *kind = pod_op_row(op->kind);
    const int64_t cells = args->result->cells;
    const char *axes = pod_programs_axes(args->programs, op);
    char text[sizeof((part_row *)NULL)->kind];
    (void)snprintf(text, sizeof text, "exposed %s%s", axes != NULL ? "over " : "",
                   axes != NULL ? axes : kind->name);
    return (kind->resource != POD_ON_CORE || record->time_ps == 0
            || part_add(list, pod_step_phase(op), kind->name, chip_mean_s(record->time_ps, cells)))
           && (record->exposed_ps == 0
               || part_add(list, pod_step_phase(op), text, chip_mean_s(record->exposed_ps, cells)));
}

static pod_status add_parts(pod_findings *findings, const pod_step_views_args *args, pod_error *err)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "phase", POD_FIELD(part_row, phase)},
        {.name = "kind", POD_FIELD(part_row, kind)},
        {.name = "time_s", .title = "time", .unit = "s", POD_FIELD(part_row, time_s)},
    };
    /* clang-format on */
    const pod_step_result *result = args->result;
    part_list list = {0};
    bool good = true;
    for (int32_t s = 0; s < args->programs->nstages; s++) {
        const pod_program *program = &args->programs->stages[s];
        for (int32_t i = 0; good && i < program->nops; i++) {
            good = parts_of_op(&list, args, &program->ops[i], &result->ops[s][i]);
        }
    }
    if (good && result->idle_ps > 0) {
        good = part_add(&list, "step", "idle", chip_mean_s(result->idle_ps, result->cells));
    }
    begin_table(findings, "parts", columns, sizeof columns / sizeof *columns,
                "Where the time goes");
    for (int i = 0; i < list.count; i++) {
        pod_findings_row(findings, &list.rows[i], NULL);
    }
    free(list.rows);
    return good ? POD_OK : no_memory(err);
}

/* ---- ops ---- */

static pod_status add_ops(pod_findings *findings, const pod_step_views_args *args, pod_error *err)
{
    pod_op_line *lines = NULL;
    int count = 0;
    pod_emit *emit = NULL;
    pod_status st = pod_op_lines(args->programs, args->result, args->chip, &lines, &count, err);
    POD_THEN(st, pod_op_lines_emit(POD_FORMAT_JSON, lines, count, &emit, err));
    if (st == POD_OK) {
        pod_findings_adopt(findings, "ops", "Ops of a step", emit);
    }
    free(lines);
    return st;
}

/* ---- roofs ---- */

typedef struct roof_row {
    char name[48];
    double rate;
    const char *unit;
} roof_row;

void pod_step_views_roofs(pod_findings *findings, const pod_slice *slice, const pod_chip_spec *chip,
                          pod_dtype dtype)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "name", POD_FIELD(roof_row, name)},
        {.name = "rate", POD_FIELD(roof_row, rate)},
        {.name = "unit", POD_FIELD(roof_row, unit)},
    };
    /* clang-format on */
    int links = 0;
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        links += pod_slice_neighbor(slice, 0, d) >= 0 ? 1 : 0;
    }
    /* clang-format off */
    roof_row rows[] = {
        {.rate = chip->peak_ops_per_s[dtype], .unit = "FLOP/s"},
        {.name = "HBM", .rate = chip->hbm_bytes_per_s * chip->hbm_eff_frac, .unit = "B/s"},
        {.name = "VPU, 32 bit", .rate = chip->vpu_ops_per_s * chip->vpu_eff_frac, .unit = "FLOP/s"},
        {.rate = links * pod_chip_link_bytes_per_s(chip, links > 2), .unit = "B/s"},
    };
    /* clang-format on */
    (void)snprintf(rows[0].name, sizeof rows[0].name, "MXU, %s", pod_dtype_name(dtype));
    (void)snprintf(rows[3].name, sizeof rows[3].name, "ICI, %d links", links);
    begin_table(findings, "roofs", columns, sizeof columns / sizeof *columns, "Roofs");
    for (int i = 0; i < (links > 0 ? 4 : 3); i++) {
        pod_findings_row(findings, &rows[i], NULL);
    }
}

/* ---- what lives at the peak ---- */

typedef struct peak_row {
    const char *name;
    const char *kind;
    int64_t bytes;
} peak_row;

static int larger_first(const void *a, const void *b)
{
    const peak_row *left = a;
    const peak_row *right = b;
    return left->bytes != right->bytes ? (left->bytes < right->bytes ? 1 : -1)
                                       : strcmp(left->name, right->name);
}

static pod_status peak_rows(const pod_program *program, const pod_liveness *live, peak_row **rows,
                            int *count, pod_error *err)
{
    int32_t peak = 0;
    for (int32_t op = 1; op <= program->nops; op++) {
        peak = live->bytes[op] > live->bytes[peak] ? op : peak;
    }
    *rows = malloc(((size_t)program->nbuffers + 1) * sizeof **rows);
    if (*rows == NULL) {
        return no_memory(err);
    }
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const pod_buffer *buffer = &program->buffers[b];
        const int64_t bytes = pod_buffer_bytes(buffer);
        if (bytes > 0 && live->first[b] <= peak && peak <= live->last[b]) {
            (*rows)[(*count)++] =
                (peak_row){buffer->name, pod_memory_kind_name(buffer->kind), bytes};
        }
    }
    qsort(*rows, (size_t)*count, sizeof **rows, larger_first);
    return POD_OK;
}

static pod_status add_peak(pod_findings *findings, const pod_step_views_args *args, pod_error *err)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "buffer", POD_FIELD(peak_row, name)},
        {.name = "kind", POD_FIELD(peak_row, kind)},
        {.name = "bytes", .unit = "B", POD_FIELD(peak_row, bytes)},
    };
    /* clang-format on */
    const pod_program *program = &args->programs->stages[0];
    pod_liveness live;
    peak_row *rows = NULL;
    int count = 0;
    pod_status status = pod_liveness_find(program, &live, err);
    POD_THEN(status, peak_rows(program, &live, &rows, &count, err));
    if (status == POD_OK) {
        pod_findings_table(findings, "peak", columns, sizeof columns / sizeof *columns,
                           "The %d largest of %d buffers that live when most HBM is in use",
                           count < PEAK_ROWS ? count : PEAK_ROWS, count);
        pod_findings_data_only(findings);
        for (int i = 0; i < count && i < PEAK_ROWS; i++) {
            pod_findings_row(findings, &rows[i], NULL);
        }
    }
    free(rows);
    pod_liveness_fini(&live);
    return status;
}

/* ---- the slice ---- */

typedef struct fact_row {
    const char *key;
    const char *value;
} fact_row;

void pod_step_views_slice(pod_findings *findings, const pod_slice *slice)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "key", POD_FIELD(fact_row, key)},
        {.name = "value", POD_FIELD(fact_row, value)},
    };
    /* clang-format on */
    char dims[64];
    char wrap[POD_AXES + 1] = "";
    pod_text slow = {0};
    (void)snprintf(dims, sizeof dims, "%" PRId32 "x%" PRId32 "x%" PRId32, slice->dims[0],
                   slice->dims[1], slice->dims[2]);
    for (int axis = 0, n = 0; axis < POD_AXES; axis++) {
        if (slice->wrap[axis]) {
            wrap[n++] = "xyz"[axis];
        }
    }
    for (int32_t chip = 0; chip < slice->nchips && slice->nfaults > 0; chip++) {
        char at[40];
        const double factor = pod_slice_chip_slowness(slice, chip);
        if (factor > 1) {
            pod_text_printf(&slow, "%s%s:%g", slow.size > 0 ? " " : "",
                            pod_slice_chip_text(slice, chip, at, sizeof at), factor);
        }
    }
    const fact_row rows[] = {
        {"slice",      slice->name                    },
        {"dims",       dims                           },
        {"wrap",       wrap[0] != '\0' ? wrap : "none"},
        {"slow chips", slow.data                      }
    };
    begin_table(findings, "slice", columns, sizeof columns / sizeof *columns, "The slice");
    for (int i = 0; i < (slow.size > 0 ? 4 : 3); i++) {
        pod_findings_row(findings, &rows[i], NULL);
    }
    pod_text_free(&slow);
}

typedef struct link_row {
    char chip[40];
    const char *direction;
    int64_t bytes;
    double busy_frac;
    const char *state; /* "dead", "slow" or "" */
} link_row;

/* Links of the first slice. A dead one has carried nothing. */
static void add_links(pod_findings *findings, const pod_step_views_args *args)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "chip", POD_FIELD(link_row, chip)},
        {.name = "direction", POD_FIELD(link_row, direction)},
        {.name = "bytes", .unit = "B", POD_FIELD(link_row, bytes)},
        {.name = "busy_frac", .title = "busy", POD_FIELD(link_row, busy_frac)},
        {.name = "state", POD_FIELD(link_row, state)},
    };
    /* clang-format on */
    const pod_step_result *result = args->result;
    const pod_slice *slice = args->slice;
    if (result->link_records == NULL || slice->nchips > VIEW_CHIPS_MAX) {
        return;
    }
    pod_machine machine = {.slice = slice, .dcn = args->dcn, .fold_slices = result->fold_slices};
    memcpy(machine.period, result->period, sizeof machine.period);
    begin_table(findings, "link_loads", columns, sizeof columns / sizeof *columns,
                "Links of each chip");
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        const size_t cell = (size_t)pod_machine_cell(&machine, chip);
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            const pod_net_link_record *record =
                &result->link_records[cell * POD_NET_PORTS_MAX + (size_t)d];
            if (pod_slice_neighbor(slice, chip, d) < 0) {
                continue;
            }
            const bool dead = pod_slice_link_slowness(slice, chip, d) == 0;
            link_row row = {
                .direction = pod_direction_name(d),
                .bytes = dead ? 0 : record->bytes,
                .busy_frac = dead || result->time_ps == 0
                                 ? 0
                                 : (double)record->busy_ps / (double)result->time_ps,
                .state = dead                                          ? "dead"
                         : pod_slice_link_slowness(slice, chip, d) > 1 ? "slow"
                                                                       : "",
            };
            (void)pod_slice_chip_text(slice, chip, row.chip, sizeof row.chip);
            pod_findings_row(findings, &row, NULL);
        }
    }
}

/* ---- rings ---- */

typedef struct ring_row {
    const char *axis;
    const char *chips;
} ring_row;

/* The groups of an axis, each in the order of the axis. */
static pod_status add_axis(pod_findings *findings, const pod_step_views_args *args, int axis,
                           pod_error *err)
{
    const pod_slice *slice = args->slice;
    const int32_t size = args->mesh->axis[axis].slice_size;
    int32_t *index_of_rank = malloc((size_t)size * sizeof *index_of_rank);
    int32_t *chips = malloc((size_t)slice->nchips * sizeof *chips);
    pod_group group = {0};
    pod_status status =
        index_of_rank != NULL && chips != NULL
            ? pod_mesh_group(args->mesh, slice, 1U << axis, &group, index_of_rank, err)
            : no_memory(err);
    for (int32_t chip = 0; status == POD_OK && chip < slice->nchips; chip++) {
        chips[pod_group_number(&group, chip) * size + index_of_rank[pod_group_rank(&group, chip)]] =
            chip;
    }
    for (int32_t first = 0; status == POD_OK && first < slice->nchips; first += size) {
        pod_text text = {0};
        for (int32_t i = 0; i < size; i++) {
            char at[40];
            pod_text_printf(&text, "%s%s", i > 0 ? " " : "",
                            pod_slice_chip_text(slice, chips[first + i], at, sizeof at));
        }
        const ring_row row = {pod_mesh_axis_name(args->mesh->axis[axis].axis), text.data};
        status = text.out_of_memory ? no_memory(err) : POD_OK;
        if (status == POD_OK) {
            pod_findings_row(findings, &row, NULL);
        }
        pod_text_free(&text);
    }
    pod_group_fini(&group);
    free(chips);
    free(index_of_rank);
    return status;
}

static pod_status add_rings(pod_findings *findings, const pod_step_views_args *args, pod_error *err)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "axis", POD_FIELD(ring_row, axis)},
        {.name = "chips", POD_FIELD(ring_row, chips)},
    };
    /* clang-format on */
    pod_status status = POD_OK;
    if (args->mesh == NULL || args->slice->nchips > VIEW_CHIPS_MAX) {
        return POD_OK;
    }
    begin_table(findings, "rings", columns, sizeof columns / sizeof *columns,
                "Groups of each mesh axis");
    for (int i = 0; status == POD_OK && i < args->mesh->naxes; i++) {
        if (args->mesh->axis[i].slice_size > 1) {
            status = add_axis(findings, args, i, err);
        }
    }
    return status;
}

pod_status pod_step_views_add(pod_findings *findings, const pod_step_views_args *args,
                              pod_error *err)
{
    POD_TRY(add_parts(findings, args, err));
    POD_TRY(add_ops(findings, args, err));
    pod_step_views_roofs(findings, args->slice, args->chip, args->dtype);
    POD_TRY(add_peak(findings, args, err));
    pod_step_views_slice(findings, args->slice);
    add_links(findings, args);
    return add_rings(findings, args, err);
}
