/* SPDX-License-Identifier: Apache-2.0 */
/* The row of `podsim hlo`. */
#include "base/text.h"
#include "cli/hlo.h"

#include "cli/step.h"
#include "report/step_views.h"

#include <stdio.h>
#include <string.h>

typedef struct hlo_row {
    const char *slice;
    const char *module;
    int64_t partitions;
    const char *order;
    const char *cost;
    const char *algorithm;
    pod_time_ps step_ps;
    double compute_s;
    double exposed_ici_s;
    double exposed_dcn_s;
    double exposed_hbm_s;
    double exposed_host_s;
    double idle_s;
    pod_time_ps other_ps;
    pod_experiment_hlo_totals totals;
    double mxu_frac;
    int64_t hbm_bytes;
    double hbm_frac;
    const char *hbm_source;
    int64_t argument_bytes;
    int64_t instructions;
    int64_t executed;
    const char *data;
} hlo_row;

#define AT(field) POD_FIELD(hlo_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "module", .table_hidden = true, AT(module)},
    {.name = "partitions", AT(partitions)},
    {.name = "device_order", .table_hidden = true, AT(order)},
    {.name = "cost", .table_hidden = true, AT(cost)},
    {.name = "algorithm", .table_hidden = true, AT(algorithm)},
    {.name = "step_time_s", .title = "step", .unit = "s", .decimals = 6, POD_TIME_FIELD(hlo_row, step_ps, S)},
    {.name = "compute_s", .title = "compute", .unit = "s", .decimals = 6, AT(compute_s)},
    {.name = "exposed_ici_s", .title = "exposed ICI", .unit = "s", .decimals = 6, AT(exposed_ici_s)},
    {.name = "exposed_dcn_s", .title = "exposed DCN", .unit = "s", .decimals = 6, .minor = 2, AT(exposed_dcn_s)},
    {.name = "exposed_hbm_s", .title = "exposed HBM", .unit = "s", .decimals = 6, .minor = 1, AT(exposed_hbm_s)},
    {.name = "exposed_host_s", .table_hidden = true, AT(exposed_host_s)},
    {.name = "idle_s", .title = "idle", .unit = "s", .decimals = 6, AT(idle_s)},
    {.name = "compiler_s", .title = "other cost", .unit = "s", .decimals = 6, .minor = 3,
     POD_TIME_FIELD(hlo_row, other_ps, S)},
    {.name = "mxu_flops_per_chip", .table_hidden = true, AT(totals.mxu_flops)},
    {.name = "mxu_frac", .title = "MXU", .unit = "%", .decimals = 1, .percent = true, AT(mxu_frac)},
    {.name = "hbm_read_bytes", .table_hidden = true, AT(totals.hbm_read_bytes)},
    {.name = "hbm_write_bytes", .table_hidden = true, AT(totals.hbm_write_bytes)},
    {.name = "hbm_bytes_per_chip", .table_hidden = true, AT(hbm_bytes)},
    {.name = "hbm_frac", .title = "HBM used", .unit = "%", .decimals = 1, .percent = true, AT(hbm_frac)},
    {.name = "hbm_source", .table_hidden = true, AT(hbm_source)},
    {.name = "argument_bytes", .table_hidden = true, AT(argument_bytes)},
    {.name = "unknown_calls", .table_hidden = true, AT(totals.unknown_calls)},
    {.name = "unknown_s", .table_hidden = true, AT(totals.unknown_s)},
    {.name = "instructions", .table_hidden = true, AT(instructions)},
    {.name = "executed", .table_hidden = true, AT(executed)},
    {.name = "data", .table_hidden = true, AT(data)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

/* FLOP/s of a chip in the type that most of the program's FLOPs are computed in. */
static double peak_of(const pod_hlo_report *report)
{
    const pod_hlo_program *program = report->outcome->program;
    double flops[POD_DTYPE_COUNT] = {0};
    int most = POD_DTYPE_BF16;
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const pod_hlo_cost *cost = pod_hlo_planned_cost(program, i);
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

static void emit_row(pod_emit *emit, const pod_hlo_report *report)
{
    const pod_experiment_hlo_request *request = report->request;
    const pod_hlo_module *module = report->text->module;
    const pod_step_result *result = &report->outcome->result;
    const double step_s = pod_time_to_s(result->time_ps);
    hlo_row row = {
        .slice = report->setup->slice.name,
        .module = report->module,
        .partitions = module->partitions,
        .order = pod_hlo_order_name(request->devices->order),
        .cost = request->cost.compiler ? "compiler" : "shapes",
        .algorithm = request->algorithms.text ? "text" : request->algorithms.name,
        .step_ps = result->time_ps,
        .compute_s = mean(report, result->compute_ps),
        .exposed_ici_s = mean(report, result->exposed_ici_ps),
        .exposed_dcn_s = mean(report, result->exposed_dcn_ps),
        .exposed_hbm_s = mean(report, result->exposed_hbm_ps),
        .exposed_host_s = mean(report, result->exposed_host_ps),
        .idle_s = mean(report, result->idle_ps),
        .other_ps = report->other_ps,
        .totals = pod_experiment_hlo_totals_of(report->outcome->program),
        .hbm_bytes = report->hbm_bytes,
        .hbm_frac = (double)report->hbm_bytes / (double)report->chip->hbm_usable_bytes,
        .hbm_source = report->hbm_of_compiler ? "compiler" : "text",
        .argument_bytes = argument_bytes(module),
        .instructions = module->ninstructions,
        .executed = report->text->analysis.inside[module->entry].executed,
        .data = "none",
    };
    row.mxu_frac = step_s > 0 ? row.totals.mxu_flops / (peak_of(report) * step_s) : 0;
    pod_emit_fields(emit, &row, NCOLUMNS);
}

/* What the run has to say. */
static pod_status find(pod_cli *cli, const pod_hlo_report *report, const char *what_if,
                       pod_findings *findings, pod_error *err)
{
    const pod_hlo_module *module = report->text->module;
    const int chips = pod_experiment_setup_chips(report->setup);
    pod_findings_say(findings, POD_FINDING_ABOVE, "settings",
                     "podsim hlo: %s, %d chip%s, %s, %u instructions, %lld executed, cost from %s",
                     report->setup->slice.name, chips, pod_text_plural(chips), report->module,
                     module->ninstructions,
                     (long long)report->text->analysis.inside[module->entry].executed,
                     report->request->cost.compiler ? "the compiler" : "shapes");
    if (module->replicas > 1) {
        pod_findings_say(findings, POD_FINDING_ABOVE, "replicas",
                         "%lld replicas of %lld partition%s", (long long)module->replicas,
                         (long long)module->partitions, pod_text_plural(module->partitions));
    }
    if (what_if[0] != '\0') {
        pod_findings_say(findings, POD_FINDING_ABOVE, "what_if", "%s", what_if);
    }
    if (pod_cli_wants_findings(cli)) {
        POD_TRY(pod_hlo_notes(findings, report, err));
    }
    if (report->advised) {
        pod_hlo_note_advice(findings, report);
    }
    if (cli->common.html_path == NULL || pod_par_rank(cli->par) != 0) {
        return POD_OK;
    }
    pod_step_views_roofs(findings, &report->setup->slice, report->chip, POD_DTYPE_BF16);
    pod_step_views_slice(findings, &report->setup->slice);
    return pod_hlo_files_find(findings, report, err);
}

pod_status pod_hlo_print(pod_cli *cli, const pod_hlo_report *report, const char *what_if,
                         pod_error *err)
{
    pod_emit *emit = NULL;
    pod_findings findings = {0};
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
    POD_TRY(pod_emit_new(cli->common.format, "hlo", own, NCOLUMNS, &emit, err));
    emit_row(emit, report);
    pod_status st = pod_par_agree(cli->par, find(cli, report, what_if, &findings, err), err);
    POD_THEN(st, pod_cli_report(cli, emit, &findings, err));
    pod_findings_fini(&findings);
    pod_emit_free(emit);
    return st;
}
