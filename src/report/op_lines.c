/* SPDX-License-Identifier: Apache-2.0 */
#include "report/op_lines.h"

#include "base/grow.h"
#include "program/op_time.h"
#include "report/step_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const pod_emit_column pod_op_line_columns[POD_OP_LINE_STEP_COLUMNS] = {
    {.name = "name"},
    {.name = "opcode"},
    {.name = "kind"},
    {.name = "computation"},
    {.name = "op_name"},
    {.name = "phase"},
    {.name = "runs"},
    {.name = "time_us"},
    {.name = "total_us"},
    {.name = "share_frac"},
    {.name = "bound"},
    {.name = "count"},
    {.name = "m"},
    {.name = "k"},
    {.name = "n"},
    {.name = "dtype"},
    {.name = "flops"},
    {.name = "hbm_read_bytes"},
    {.name = "hbm_write_bytes"},
    {.name = "vmem_bytes"},
    {.name = "compiler_us"},
    {.name = "exposed_us"},
    {.name = "source"},
    {.name = "hbm_bytes"},
};

/* ---- all, in a file ---- */

static void emit_known(pod_emit *emit, int64_t value)
{
    if (value == INT64_MIN) {
        pod_emit_none(emit);
    } else {
        pod_emit_i64(emit, value);
    }
}

static void emit_or_none(pod_emit *emit, const char *text)
{
    if (text == NULL) {
        pod_emit_none(emit);
    } else {
        pod_emit_text(emit, text);
    }
}

void pod_op_line_emit(pod_emit *emit, const pod_op_line *line)
{
    const char *const texts[] = {line->name,        line->opcode,  line->kind,
                                 line->computation, line->op_name, line->phase};
    const int64_t sizes[] = {line->count, line->m, line->k, line->n};
    const int64_t work[] = {line->flops, line->hbm_read_bytes, line->hbm_write_bytes,
                            line->vmem_bytes};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pod_emit_text(emit, texts[i] != NULL ? texts[i] : "");
    }
    pod_emit_i64(emit, line->runs);
    pod_emit_double(emit, line->time_us);
    pod_emit_double(emit, line->total_us);
    pod_emit_double(emit, line->share_frac);
    emit_or_none(emit, line->bound);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        emit_known(emit, line->dtype != NULL ? sizes[i] : INT64_MIN);
    }
    emit_or_none(emit, line->dtype);
    for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
        emit_known(emit, work[i]);
    }
    if (isnan(line->compiler_us)) {
        pod_emit_none(emit);
    } else {
        pod_emit_double(emit, line->compiler_us);
    }
    pod_emit_double(emit, line->exposed_us);
    pod_emit_text(emit, line->source);
}

/* ---- the first, in a table ---- */

typedef struct table_row {
    const char *name;
    const char *op;
    const char *pass;
    int64_t runs;
    double each_us;
    double total_s;
    double share_percent;
    const char *bound;
    double compiler_us; /* of one; NaN: it says nothing */
} table_row;

void pod_op_table_begin(pod_findings *findings, double step_s, bool compiler)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "name", POD_FIELD(table_row, name)},
        {.name = "op", POD_FIELD(table_row, op)},
        {.name = "pass", POD_FIELD(table_row, pass)},
        {.name = "runs", POD_FIELD(table_row, runs)},
        {.name = "each_us", .title = "each", .unit = "us", POD_FIELD(table_row, each_us)},
        {.name = "total_s", .title = "total", .unit = "s", POD_FIELD(table_row, total_s)},
        {.name = "share_percent", .title = "share", .unit = "%", POD_FIELD(table_row, share_percent)},
        {.name = "bound", POD_FIELD(table_row, bound)},
        {.name = "compiler_us", .title = "compiler", .unit = "us", POD_FIELD(table_row, compiler_us)},
    };
    /* clang-format on */
    const pod_time_unit unit = pod_time_unit_of(step_s);
    pod_findings_table(findings, "operations", columns, sizeof columns / sizeof *columns,
                       "Top operations:%42s %9s %*s(%s) %5s %s%s", "runs", "each (us)",
                       7 - (int)strlen(unit.name), "total", unit.name, "(%)", "bound",
                       compiler ? " compiler" : "");
}

/* The last part of an op_name, "dot_general" of "jit(f)/…/dot_general". */
static const char *last_part(const char *op_name)
{
    const char *slash = strrchr(op_name, '/');
    return slash != NULL ? slash + 1 : op_name;
}

void pod_op_table_add(pod_findings *findings, const pod_op_line *line, double step_s)
{
    static const double much = 1.5;
    const pod_time_unit unit = pod_time_unit_of(step_s);
    char compiler[64] = "";
    const table_row row = {.name = line->name,
                           .op = last_part(line->op_name != NULL ? line->op_name : line->opcode),
                           .pass = line->phase,
                           .runs = line->runs,
                           .each_us = line->time_us,
                           .total_s = line->total_us / 1e6,
                           .share_percent = 100 * line->share_frac,
                           .bound = line->bound != NULL ? line->bound : "",
                           .compiler_us = line->compiler_us};
    if (line->compiler_us >= 0 && line->time_us > 0) {
        const double ratio = line->compiler_us / line->time_us;
        const bool differs = ratio > much || ratio < 1 / much;
        (void)snprintf(compiler, sizeof compiler, "%*.1f%s", 14 - (int)strlen(row.bound),
                       line->compiler_us,
                       !differs    ? ""
                       : ratio > 1 ? "  <- the compiler says longer"
                                   : "  <- the compiler says shorter");
    }
    pod_findings_row(findings, &row, "  %-26.26s %-13.13s %-9s %4lld %9.*f %9.3f %5.1f %s%s",
                     row.name, row.op, row.pass, (long long)row.runs, row.each_us < 1 ? 4 : 1,
                     row.each_us, row.total_s * unit.per_s, row.share_percent, row.bound, compiler);
}

/* ---- those of a step ---- */

typedef struct op_line_list {
    pod_op_line *lines;
    const pod_op **first; /* first[count]: an op of each line */
    int count;
    int64_t room;
    int64_t first_room;
} op_line_list;

static bool ops_are_alike(const pod_op *a, const pod_op *b)
{
    return a->kind == b->kind && a->op == b->op && a->recomputed == b->recomputed && a->m == b->m
           && a->k == b->k && a->n == b->n && a->count == b->count && a->bytes == b->bytes
           && a->hbm_bytes == b->hbm_bytes && a->weights_in_vmem == b->weights_in_vmem
           && a->prefetch_bytes == b->prefetch_bytes && strcmp(a->name, b->name) == 0;
}

static int64_t whole(double value)
{
    return value < 9e18 ? llround(value) : INT64_MAX;
}

/* What each op of a line has in common. */
static pod_status op_line_make(const pod_chip_spec *chip, const pod_op *op, pod_op_line *line,
                               pod_error *err)
{
    const pod_op_kind_row *kind = pod_op_row(op->kind);
    pod_op_time time;
    POD_TRY(pod_op_time_find(chip, op, &time, err));
    *line = (pod_op_line){
        .name = op->name,
        .opcode = pod_op_is_collective(op) ? pod_coll_op_name(op->op) : kind->name,
        .kind = kind->name,
        .computation = "",
        .source = "",
        .phase = pod_step_phase(op),
        .core = kind->resource == POD_ON_CORE,
        .flops = whole(pod_op_mxu_flops(op) + op->flops),
        .hbm_read_bytes = INT64_MIN,
        .hbm_write_bytes = INT64_MIN,
        .vmem_bytes = INT64_MIN,
        .hbm_bytes = kind->pace == POD_PACE_NET ? INT64_MIN : whole(time.hbm_bytes),
        .compiler_us = NAN,
    };
    if (line->core) {
        line->bound = time.hbm_bound ? "hbm" : kind->unit == POD_UNIT_MXU ? "mxu" : "vpu";
    }
    if (op->m > 0) {
        line->dtype = pod_dtype_name(op->dtype);
        line->count = op->count;
        line->m = op->m;
        line->k = op->k;
        line->n = op->n;
    }
    return POD_OK;
}

static pod_status op_line_add(op_line_list *list, const pod_chip_spec *chip, const pod_op *op,
                              const pod_op_record *record, int64_t cells, pod_error *err)
{
    int at = list->count - 1;
    while (at >= 0 && !ops_are_alike(list->first[at], op)) {
        at--;
    }
    if (at < 0) {
        at = list->count;
        if (!POD_GROW(list->lines, list->room, at + 1)
            || !POD_GROW(list->first, list->first_room, at + 1)) {
            return pod_fail(err, POD_E_NOMEM, "no memory for the operations of a step");
        }
        POD_TRY(op_line_make(chip, op, &list->lines[at], err));
        list->first[at] = op;
        list->count++;
    }
    pod_op_line *line = &list->lines[at];
    line->runs++;
    line->time_us += pod_time_to_s(record->time_ps) / (double)record->chips * 1e6;
    line->total_us += pod_time_to_s(record->time_ps) / (double)cells * 1e6;
    line->exposed_us += pod_time_to_s(record->exposed_ps) / (double)cells * 1e6;
    return POD_OK;
}

/* Insertion keeps the order of lines that take the same. */
static void lines_sort(pod_op_line *lines, int count)
{
    for (int i = 1; i < count; i++) {
        const pod_op_line moved = lines[i];
        int j = i;
        for (; j > 0 && lines[j - 1].total_us < moved.total_us; j--) {
            lines[j] = lines[j - 1];
        }
        lines[j] = moved;
    }
}

pod_status pod_op_lines(const pod_programs *programs, const pod_step_result *result,
                        const pod_chip_spec *chip, pod_op_line **lines, int *count, pod_error *err)
{
    op_line_list list = {0};
    pod_status st = POD_OK;
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; st == POD_OK && i < program->nops; i++) {
            const pod_op_record *record = &result->ops[s][i];
            if (record->chips > 0) {
                st = op_line_add(&list, chip, &program->ops[i], record, result->cells, err);
            }
        }
    }
    for (int i = 0; i < list.count; i++) {
        pod_op_line *line = &list.lines[i];
        line->time_us /= (double)line->runs;
        line->share_frac =
            result->time_ps > 0 ? line->total_us / 1e6 / pod_time_to_s(result->time_ps) : 0;
    }
    lines_sort(list.lines, list.count);
    free(list.first);
    if (st != POD_OK) {
        free(list.lines);
        list = (op_line_list){0};
    }
    *lines = list.lines;
    *count = list.count;
    return st;
}

pod_status pod_op_lines_emit(pod_format format, const pod_op_line *lines, int count,
                             pod_emit **emit, pod_error *err)
{
    POD_TRY(pod_emit_new(format, "step", pod_op_line_columns, POD_OP_LINE_STEP_COLUMNS, emit, err));
    for (int i = 0; i < count; i++) {
        pod_op_line_emit(*emit, &lines[i]);
        emit_known(*emit, lines[i].hbm_bytes);
    }
    return POD_OK;
}

double pod_op_lines_hbm_frac(const pod_op_line *lines, int count, const pod_chip_spec *chip,
                             double step_s)
{
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        const pod_op_line *line = &lines[i];
        if (line->hbm_bytes > 0 && line->time_us > 0) {
            /* total / time: runs of a chip */
            bytes += (double)line->hbm_bytes * (line->total_us / line->time_us);
        }
    }
    return step_s > 0 ? bytes / step_s / chip->hbm_bytes_per_s : 0;
}
