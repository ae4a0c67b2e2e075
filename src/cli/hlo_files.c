/* SPDX-License-Identifier: Apache-2.0 */
/* `--ops`, `--collectives`, `--memory`, `--links`. */
#include "cli/hlo.h"
#include "experiment/hlo_ops.h"
#include "hlo/transfers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double us_of(double s)
{
    return s * 1e6;
}

/* Time of all runs of an instruction or collective, in seconds, mean over chips. */
static double total_s(const pod_hlo_report *report, const int64_t *sums, uint32_t place)
{
    return pod_experiment_hlo_mean_s(report->outcome, sums[place]);
}

/* ---- operations ---- */

static void emit_none(pod_emit *emit, int count)
{
    for (int i = 0; i < count; i++) {
        pod_emit_none(emit);
    }
}

void pod_hlo_op_line(const pod_hlo_report *report, const pod_experiment_hlo_op *op,
                     pod_hlo_op_texts *texts, pod_op_line *line)
{
    const pod_hlo_module *module = report->text->module;
    const pod_experiment_hlo_outcome *outcome = report->outcome;
    const pod_hlo_instruction *what = &module->instruction[op->instruction];
    const pod_hlo_span opcode = pod_hlo_name_of(module, what->opcode_name);
    const pod_hlo_span computation =
        pod_hlo_name_of(module, module->computation[what->computation].name);
    (void)snprintf(texts->opcode, sizeof texts->opcode, "%.*s", pod_hlo_shown(opcode),
                   module->text + opcode.begin);
    (void)snprintf(texts->computation, sizeof texts->computation, "%.*s",
                   pod_hlo_shown(computation), module->text + computation.begin);
    *line = (pod_op_line){
        .name = pod_hlo_print_name(module, op->instruction, texts->name, sizeof texts->name),
        .opcode = texts->opcode,
        .kind = pod_hlo_kind_name(op->kind),
        .computation = texts->computation,
        .op_name =
            pod_hlo_print_op_name(module, op->instruction, texts->op_name, sizeof texts->op_name),
        .source =
            pod_hlo_print_source(module, op->instruction, texts->source, sizeof texts->source),
        .phase = pod_hlo_pass_name(report->text->pass[op->instruction]),
        .core = op->core,
        .runs = op->runs,
        .time_us = op->runs > 0 ? us_of(op->time_s) / (double)op->runs : 0,
        .total_us = us_of(op->time_s),
        .share_frac =
            outcome->result.time_ps > 0 ? op->time_s / pod_time_to_s(outcome->result.time_ps) : 0,
        .exposed_us = us_of(op->exposed_s),
        .flops = INT64_MIN,
        .hbm_read_bytes = INT64_MIN,
        .hbm_write_bytes = INT64_MIN,
        .vmem_bytes = INT64_MIN,
        .hbm_bytes = INT64_MIN,
        .compiler_us = NAN};
    if (op->cost == POD_HLO_NONE) {
        return;
    }
    const pod_hlo_cost *cost = pod_hlo_planned_cost(outcome->program, op->cost);
    const pod_hlo_work *work = &cost->work;
    line->bound = pod_hlo_bound_name(cost->bound);
    line->flops = cost->flops;
    line->hbm_read_bytes = work->traffic.hbm_read;
    line->hbm_write_bytes = work->traffic.hbm_write;
    line->vmem_bytes = work->traffic.vmem;
    line->hbm_bytes = work->traffic.hbm_read + work->traffic.hbm_write;
    if (work->largest != POD_HLO_NONE) {
        const pod_hlo_matmul *matmul = &report->text->analysis.matmul[work->largest];
        line->dtype = pod_dtype_name(matmul->dtype);
        line->count = matmul->count;
        line->m = matmul->m;
        line->k = matmul->k;
        line->n = matmul->n;
    }
    if (cost->compiler_ps >= 0) {
        line->compiler_us = (double)cost->compiler_ps / (double)POD_PS_PER_US;
    }
}

static pod_status emit_ops(pod_format format, const pod_hlo_report *report, pod_emit **made,
                           pod_error *err)
{
    pod_emit *emit = NULL;
    pod_experiment_hlo_op *rows = NULL;
    uint32_t count = 0;
    pod_status st = pod_experiment_hlo_ops(report->outcome, &rows, &count, err);
    POD_THEN(st, pod_emit_new(format, "hlo", pod_op_line_columns, POD_OP_LINE_COLUMNS, &emit, err));
    for (uint32_t i = 0; st == POD_OK && i < count; i++) {
        pod_op_line line;
        pod_hlo_op_texts texts;
        pod_hlo_op_line(report, &rows[i], &texts, &line);
        pod_op_line_emit(emit, &line);
    }
    if (st != POD_OK) {
        pod_emit_free(emit);
        emit = NULL;
    }
    *made = emit;
    free(rows);
    return st;
}

/* ---- collectives ---- */

static void emit_run(pod_emit *emit, const pod_hlo_report *report, uint32_t number)
{
    char text[POD_HLO_CELL_MAX];
    const pod_experiment_hlo_outcome *outcome = report->outcome;
    const pod_hlo_module *module = report->text->module;
    const pod_hlo_program *program = outcome->program;
    const pod_hlo_collectives *all = &program->analysis->collectives;
    const pod_hlo_run_as *run = &program->run_as[number];
    const bool transfer = number >= all->count;
    const pod_hlo_collective *what = transfer ? NULL : &all->collective[number];
    const pod_hlo_transfer *sent = transfer ? &all->transfer[number - all->count] : NULL;
    const uint32_t instruction = transfer ? sent->instruction : what->instruction;
    const pod_program_group *group = run->group >= 0 ? &program->shared.groups[run->group] : NULL;
    pod_emit_text(emit, pod_hlo_print_name(module, instruction, text, sizeof text));
    pod_emit_text(emit, transfer ? pod_hlo_transfer_name(module, sent, text, sizeof text)
                                 : pod_hlo_opcode_name((pod_hlo_opcode)what->opcode));
    pod_emit_text(emit, transfer ? "dcn" : pod_hlo_how_name((pod_hlo_how)what->how));
    if (transfer || what->channel < 0) {
        pod_emit_none(emit);
    } else {
        pod_emit_i64(emit, what->channel);
    }
    if (run->permute >= 0) {
        emit_none(emit, 2);
    } else {
        pod_emit_i64(emit, group != NULL ? group->group.size : 1);
        pod_emit_i64(emit, group != NULL ? group->group.count
                                         : pod_experiment_setup_chips(report->setup));
    }
    pod_emit_text(emit, group == NULL || run->permute >= 0 ? "-" : group->axes);
    pod_emit_i64(emit, transfer ? sent->bytes : what->bytes);
    pod_emit_i64(emit, transfer ? sent->bytes : what->result_bytes);
    pod_emit_i64(emit, pod_experiment_hlo_runs(program, instruction));
    pod_emit_text(emit, run->how.text[0] != '\0' ? run->how.text : "-");
    pod_emit_text(emit, outcome->ran[number].algorithm[0] != '\0' ? outcome->ran[number].algorithm
                                                                  : "none");
    pod_emit_double(
        emit, us_of(total_s(report, outcome->time_ps, pod_experiment_hlo_sum(program, number))));
    pod_emit_double(
        emit, us_of(total_s(report, outcome->exposed_ps, pod_experiment_hlo_sum(program, number))));
    pod_emit_text(emit, pod_hlo_print_op_name(module, instruction, text, sizeof text));
    pod_emit_text(emit, outcome->ran[number].reason);
}

static pod_status emit_collectives(pod_format format, const pod_hlo_report *report, pod_emit **made,
                                   pod_error *err)
{
    static const pod_emit_column columns[] = {{.name = "name"},
                                              {.name = "op"},
                                              {.name = "how"},
                                              {.name = "channel"},
                                              {.name = "group"},
                                              {.name = "groups"},
                                              {.name = "axes"},
                                              {.name = "bytes"},
                                              {.name = "result_bytes"},
                                              {.name = "runs"},
                                              {.name = "text_algorithm"},
                                              {.name = "algorithm"},
                                              {.name = "time_us"},
                                              {.name = "exposed_us"},
                                              {.name = "op_name"},
                                              {.name = "reason"}};
    const pod_hlo_program *program = report->outcome->program;
    const pod_hlo_collectives *all = &program->analysis->collectives;
    pod_emit *emit = NULL;
    pod_status st =
        pod_emit_new(format, "hlo", columns, sizeof columns / sizeof columns[0], &emit, err);
    for (uint32_t i = 0; st == POD_OK && i < program->nrun_as; i++) {
        const uint32_t instruction = i < all->count ? all->collective[i].instruction
                                                    : all->transfer[i - all->count].instruction;
        if (pod_experiment_hlo_runs(program, instruction) > 0) {
            emit_run(emit, report, i);
        }
    }
    if (st != POD_OK) {
        pod_emit_free(emit);
        emit = NULL;
    }
    *made = emit;
    return st;
}

/* ---- memory ---- */

static void emit_buffer(pod_emit *emit, const pod_hlo_module *module, uint32_t instruction,
                        int64_t bytes, uint32_t last)
{
    char text[POD_HLO_CELL_MAX];
    pod_emit_text(emit, pod_hlo_print_name(module, instruction, text, sizeof text));
    pod_emit_text(emit, pod_hlo_print_op_name(module, instruction, text, sizeof text));
    pod_emit_i64(emit, bytes);
    pod_emit_text(emit, pod_hlo_print_name(module, instruction, text, sizeof text));
    pod_emit_text(emit, last == POD_HLO_NONE ? "end"
                                             : pod_hlo_print_name(module, last, text, sizeof text));
}

static int64_t hbm_bytes(const pod_hlo_module *module, const pod_hlo_shape *shape)
{
    if (shape->dtype != POD_HLO_TYPE_TUPLE) {
        return shape->space == POD_HLO_SPACE_HBM ? shape->bytes : 0;
    }
    int64_t bytes = 0;
    for (uint32_t i = 0; i < shape->count; i++) {
        bytes = pod_hlo_add(
            bytes, hbm_bytes(module, &module->shapes.shape[pod_hlo_member(module, shape, i)]));
    }
    return bytes;
}

/* Buffers alive where a computation needs most, and those of what it enters there. */
static void emit_alive(pod_emit *emit, const pod_hlo_report *report, uint32_t computation)
{
    const pod_hlo_memory *memory = report->memory;
    const pod_hlo_module *module = report->text->module;
    uint32_t entered = computation;
    while (entered != POD_HLO_NONE) {
        const uint32_t peak = memory->peak[entered];
        for (uint32_t i = 0; i < memory->counts[entered]; i++) {
            const pod_hlo_buffer *buffer = &memory->buffer[memory->first[entered] + i];
            if (buffer->instruction <= peak && buffer->last >= peak && buffer->bytes > 0) {
                emit_buffer(emit, module, buffer->instruction, buffer->bytes, buffer->last);
            }
        }
        int64_t times = 0;
        entered = memory->need[entered] > 0
                      ? pod_hlo_entered(&report->text->analysis, &module->instruction[peak], &times)
                      : POD_HLO_NONE;
    }
}

static pod_status emit_memory(pod_format format, const pod_hlo_report *report, pod_emit **made,
                              pod_error *err)
{
    static const pod_emit_column columns[] = {
        {.name = "name"}, {.name = "op_name"}, {.name = "bytes"}, {.name = "from"}, {.name = "to"}};
    const pod_hlo_module *module = report->text->module;
    const pod_hlo_computation *entry = &module->computation[module->entry];
    pod_emit *emit = NULL;
    pod_status st =
        pod_emit_new(format, "hlo", columns, sizeof columns / sizeof columns[0], &emit, err);
    for (uint32_t i = entry->first; st == POD_OK && i < entry->first + entry->count; i++) {
        const int64_t bytes = hbm_bytes(module, pod_hlo_shape_of(module, &module->instruction[i]));
        if (module->instruction[i].opcode == POD_HLO_PARAMETER && bytes > 0) {
            emit_buffer(emit, module, i, bytes, POD_HLO_NONE);
        }
    }
    if (st == POD_OK) {
        emit_alive(emit, report, module->entry);
    }
    if (st != POD_OK) {
        pod_emit_free(emit);
        emit = NULL;
    }
    *made = emit;
    return st;
}

/* ---- links ---- */

static pod_status emit_links(pod_format format, const pod_hlo_report *report, pod_emit **made,
                             pod_error *err)
{
    static const pod_emit_column columns[] = {{.name = "chip"},
                                              {.name = "direction"},
                                              {.name = "bytes"},
                                              {.name = "busy_us"},
                                              {.name = "busy_frac"}};
    static const char *const directions[POD_DIRECTIONS] = {"+x", "-x", "+y", "-y", "+z", "-z"};
    const pod_step_result *result = &report->outcome->result;
    pod_machine machine = {.slice = &report->setup->slice,
                           .dcn = report->setup->slice.nslices > 1 ? &report->setup->dcn : NULL,
                           .fold_slices = result->fold_slices};
    memcpy(machine.period, result->period, sizeof machine.period);
    pod_emit *emit = NULL;
    pod_status st =
        pod_emit_new(format, "hlo", columns, sizeof columns / sizeof columns[0], &emit, err);
    const int32_t nchips = report->setup->slice.nchips;
    for (int32_t chip = 0; st == POD_OK && chip < pod_machine_chips(&machine); chip++) {
        const size_t cell = (size_t)pod_machine_cell(&machine, chip);
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            const pod_net_link_record *record =
                &result->link_records[cell * POD_NET_PORTS_MAX + (size_t)d];
            char name[32];
            if (pod_slice_neighbor(&report->setup->slice, chip % nchips, d) < 0) {
                continue;
            }
            if (report->setup->slice.nslices > 1) {
                (void)snprintf(name, sizeof name, "%d:%d", chip / nchips, chip % nchips);
            } else {
                (void)snprintf(name, sizeof name, "%d", chip);
            }
            pod_emit_text(emit, name);
            pod_emit_text(emit, directions[d]);
            pod_emit_i64(emit, record->bytes);
            pod_emit_double(emit, (double)record->busy_ps / (double)POD_PS_PER_US);
            pod_emit_double(
                emit, result->time_ps > 0 ? (double)record->busy_ps / (double)result->time_ps : 0);
        }
    }
    if (st != POD_OK) {
        pod_emit_free(emit);
        emit = NULL;
    }
    *made = emit;
    return st;
}

typedef pod_status emit_table(pod_format format, const pod_hlo_report *report, pod_emit **made,
                              pod_error *err);

static pod_status write_table(const char *path, const pod_hlo_report *report, emit_table *table,
                              pod_error *err)
{
    pod_emit *emit = NULL;
    pod_status st = table(POD_FORMAT_CSV, report, &emit, err);
    POD_THEN(st, pod_emit_write(emit, path, err));
    pod_emit_free(emit);
    return st;
}

pod_status pod_hlo_files_write(const pod_cli *cli, const pod_hlo_report *report, pod_error *err)
{
    const struct {
        const char *path;
        emit_table *table;
    } files[] = {
        {report->texts->ops,         emit_ops        },
        {report->texts->collectives, emit_collectives},
        {report->texts->memory,      emit_memory     },
        {report->texts->links,       emit_links      }
    };
    if (pod_par_rank(cli->par) != 0) {
        return POD_OK;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i].path != NULL) {
            POD_TRY(write_table(files[i].path, report, files[i].table, err));
        }
    }
    return POD_OK;
}

pod_status pod_hlo_files_find(pod_findings *findings, const pod_hlo_report *report, pod_error *err)
{
    static const struct {
        const char *id;
        const char *heading;
        emit_table *table;
    } views[] = {
        {"ops",         "Operations of the text",             emit_ops        },
        {"collectives", "Collectives of the text",            emit_collectives},
        {"peak",        "What lives when most HBM is in use", emit_memory     },
        {"link_loads",  "Links of each chip",                 emit_links      }
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        pod_emit *emit = NULL;
        POD_TRY(views[i].table(POD_FORMAT_JSON, report, &emit, err));
        pod_findings_adopt(findings, views[i].id, views[i].heading, emit);
    }
    return POD_OK;
}
