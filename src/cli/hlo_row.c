/* SPDX-License-Identifier: Apache-2.0 */
/* The row of `podsim hlo`. */
#include "cli/hlo.h"
#include "cli/step.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true},
    {.name = "module", .table_hidden = true},
    {.name = "partitions"},
    {.name = "device_order", .table_hidden = true},
    {.name = "cost", .table_hidden = true},
    {.name = "algorithm", .table_hidden = true},
    {.name = "step_time_s", .title = "step", .unit = "s", .decimals = 6},
    {.name = "compute_s", .title = "compute", .unit = "s", .decimals = 6},
    {.name = "exposed_ici_s", .title = "exposed ICI", .unit = "s", .decimals = 6},
    {.name = "exposed_dcn_s", .title = "exposed DCN", .unit = "s", .decimals = 6, .minor = 2},
    {.name = "exposed_hbm_s", .title = "exposed HBM", .unit = "s", .decimals = 6, .minor = 1},
    {.name = "exposed_host_s", .table_hidden = true},
    {.name = "idle_s", .title = "idle", .unit = "s", .decimals = 6},
    {.name = "compiler_s", .title = "other cost", .unit = "s", .decimals = 6, .minor = 3},
    {.name = "mxu_flops_per_chip", .table_hidden = true},
    {.name = "mxu_frac", .title = "MXU", .unit = "%", .decimals = 1, .percent = true},
    {.name = "hbm_read_bytes", .table_hidden = true},
    {.name = "hbm_write_bytes", .table_hidden = true},
    {.name = "hbm_bytes_per_chip", .table_hidden = true},
    {.name = "hbm_frac", .title = "HBM used", .unit = "%", .decimals = 1, .percent = true},
    {.name = "hbm_source", .table_hidden = true},
    {.name = "argument_bytes", .table_hidden = true},
    {.name = "unknown_calls", .table_hidden = true},
    {.name = "unknown_s", .table_hidden = true},
    {.name = "instructions", .table_hidden = true},
    {.name = "executed", .table_hidden = true},
    {.name = "data", .table_hidden = true},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

/* FLOP/s of a chip in the type that most of the program's FLOPs are computed in. */
static double peak_of(const pod_hlo_report *report)
{
    const pod_hlo_program *program = report->outcome->program;
    double flops[POD_DTYPE_COUNT] = {0};
    int most = POD_DTYPE_BF16;
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const pod_hlo_cost *cost = &program->cost[i];
        const int64_t runs = pod_experiment_hlo_runs(program, program->cost_instruction[i]);
        const pod_dtype dtype = cost->work.largest == POD_HLO_NONE
                                    ? POD_DTYPE_BF16
                                    : report->text->analysis.matmul[cost->work.largest].dtype;
        flops[dtype] += (double)cost->flops * (double)runs;
    }
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        most = flops[dtype] > flops[most] ? dtype : most;
    }
    return report->chip->peak_ops_per_s[most];
}

static double mean(const pod_hlo_report *report, int64_t sum_ps)
{
    return pod_experiment_hlo_mean_s(report->outcome, sum_ps);
}

/* Parameters of ENTRY as laid out. */
static int64_t argument_bytes(const pod_hlo_module *module)
{
    const pod_hlo_computation *entry = &module->computation[module->entry];
    int64_t bytes = 0;
    for (uint32_t i = entry->first; i < entry->first + entry->count; i++) {
        if (module->instruction[i].opcode == POD_HLO_PARAMETER) {
            bytes = pod_hlo_add(bytes, pod_hlo_shape_of(module, &module->instruction[i])->bytes);
        }
    }
    return bytes;
}

static void emit_times(pod_emit *emit, const pod_hlo_report *report)
{
    const pod_step_result *result = &report->outcome->result;
    pod_emit_double(emit, pod_time_to_s(result->time_ps));
    pod_emit_double(emit, mean(report, result->compute_ps));
    pod_emit_double(emit, mean(report, result->exposed_ici_ps));
    pod_emit_double(emit, mean(report, result->exposed_dcn_ps));
    pod_emit_double(emit, mean(report, result->exposed_hbm_ps));
    pod_emit_double(emit, mean(report, result->exposed_host_ps));
    pod_emit_double(emit, mean(report, result->idle_ps));
    pod_emit_double(emit, pod_time_to_s(report->other_ps));
}

static void emit_row(pod_emit *emit, const pod_hlo_report *report)
{
    const pod_experiment_hlo_request *request = report->request;
    const pod_hlo_module *module = report->text->module;
    const pod_experiment_hlo_totals totals = pod_experiment_hlo_totals_of(report->outcome->program);
    const double step_s = pod_time_to_s(report->outcome->result.time_ps);
    pod_emit_text(emit, report->setup->slice.name);
    pod_emit_text(emit, report->module);
    pod_emit_i64(emit, module->partitions);
    pod_emit_text(emit, pod_hlo_order_name(request->devices->order));
    pod_emit_text(emit, request->cost.compiler ? "compiler" : "shapes");
    pod_emit_text(emit, request->algorithms.text ? "text" : request->algorithms.name);
    emit_times(emit, report);
    pod_emit_double(emit, totals.mxu_flops);
    pod_emit_double(emit, step_s > 0 ? totals.mxu_flops / (peak_of(report) * step_s) : 0);
    pod_emit_i64(emit, totals.hbm_read_bytes);
    pod_emit_i64(emit, totals.hbm_write_bytes);
    pod_emit_i64(emit, report->hbm_bytes);
    pod_emit_double(emit, (double)report->hbm_bytes / (double)report->chip->hbm_usable_bytes);
    pod_emit_text(emit, report->hbm_of_compiler ? "compiler" : "text");
    pod_emit_i64(emit, argument_bytes(module));
    pod_emit_i64(emit, totals.unknown_calls);
    pod_emit_double(emit, totals.unknown_s);
    pod_emit_i64(emit, module->ninstructions);
    pod_emit_i64(emit, report->text->analysis.inside[module->entry].executed);
    pod_emit_text(emit, "none");
}

pod_status pod_hlo_print(pod_cli *cli, const pod_hlo_report *report, const char *what_if,
                         pod_error *err)
{
    pod_emit *emit = NULL;
    const pod_hlo_module *module = report->text->module;
    const int chips = pod_experiment_setup_chips(report->setup);
    pod_emit_column own[NCOLUMNS];
    memcpy(own, columns, sizeof own);
    for (int i = 0; i < NCOLUMNS; i++) {
        if (strcmp(own[i].name, "compiler_s") == 0) {
            own[i].title = report->request->cost.compiler ? "by shapes" : "by compiler";
        }
        if (strcmp(own[i].name, "exposed_dcn_s") == 0 && report->setup->slice.nslices < 2) {
            own[i].table_hidden = true;
        }
    }
    pod_status st = pod_emit_new(cli->common.format, "hlo", own, NCOLUMNS, &emit, err);
    if (st == POD_OK) {
        pod_emit_heading(emit,
                         "podsim hlo: %s, %d chip%s, %s, %u instructions, %lld executed, cost "
                         "from %s",
                         report->setup->slice.name, chips, chips == 1 ? "" : "s", report->module,
                         module->ninstructions,
                         (long long)report->text->analysis.inside[module->entry].executed,
                         report->request->cost.compiler ? "the compiler" : "shapes");
        if (module->replicas > 1) {
            pod_emit_heading(emit, "%lld replicas of %lld partition%s", (long long)module->replicas,
                             (long long)module->partitions, module->partitions == 1 ? "" : "s");
        }
        if (what_if[0] != '\0') {
            pod_emit_heading(emit, "%s", what_if);
        }
        emit_row(emit, report);
        if (cli->common.format == POD_FORMAT_TABLE) {
            st = pod_hlo_notes(emit, report, err);
        }
    }
    if (st == POD_OK && report->advised) {
        pod_hlo_note_advice(emit, report);
    }
    if (st == POD_OK) {
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    return st;
}
