/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of `podsim hlo` shows below its row: where the time goes, top operations, loops, memory. */
#include "cli/faults.h"
#include "cli/hlo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where the time goes ---- */

typedef enum part {
    PART_MATMUL,
    PART_ATTENTION,
    PART_CUSTOM,
    PART_ELEMENTWISE,
    PART_MOVED,
    PARTS
} part;

static part part_of(const pod_hlo_cost *cost)
{
    if (cost->kind == POD_HLO_KIND_MATMUL) {
        return PART_MATMUL;
    }
    if (cost->kind == POD_HLO_KIND_ATTENTION) {
        return PART_ATTENTION;
    }
    if (cost->kind == POD_HLO_KIND_CUSTOM) {
        return PART_CUSTOM;
    }
    return pod_hlo_cost_moves(cost) ? PART_MOVED : PART_ELEMENTWISE;
}

static bool on_core(const pod_hlo_cost *cost)
{
    return cost->kind != POD_HLO_KIND_COPY && cost->kind != POD_HLO_KIND_SPARSECORE;
}

typedef struct part_row {
    const char *what;
    double total_s;
    double forward_s;
    double recompute_s;
    double backward_s;
    double update_s;
} part_row;

/* clang-format off */
static const pod_emit_column part_columns[] = {
    {.name = "what", POD_FIELD(part_row, what)},
    {.name = "total_s", .title = "total", .unit = "s", POD_FIELD(part_row, total_s)},
    {.name = "forward_s", .title = "forward", .unit = "s", POD_FIELD(part_row, forward_s)},
    {.name = "recompute_s", .title = "recompute", .unit = "s", POD_FIELD(part_row, recompute_s)},
    {.name = "backward_s", .title = "backward", .unit = "s", POD_FIELD(part_row, backward_s)},
    {.name = "update_s", .title = "update", .unit = "s", POD_FIELD(part_row, update_s)},
};
/* clang-format on */

/* All times of a report are in the unit that fits the step. */
static pod_time_unit unit_of(const pod_hlo_report *report)
{
    return pod_time_unit_of(pod_time_to_s(report->outcome->result.time_ps));
}

static void note_parts(pod_findings *findings, const pod_hlo_report *report)
{
    static const char *const names[PARTS] = {"matmuls", "attention", "other kernels",
                                             "elementwise and the rest", "copies, slices, zeros"};
    const pod_experiment_hlo_outcome *outcome = report->outcome;
    const pod_hlo_program *program = outcome->program;
    double time_s[PARTS][POD_HLO_PASSES] = {{0}};
    const pod_time_unit unit = unit_of(report);
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const uint32_t instruction = program->cost_instruction[i];
        if (on_core(pod_hlo_planned_cost(program, i))) {
            time_s[part_of(pod_hlo_planned_cost(program, i))][report->text->pass[instruction]] +=
                pod_experiment_hlo_mean_s(outcome, outcome->time_ps[instruction]);
        }
    }
    pod_findings_table(findings, "time", part_columns, sizeof part_columns / sizeof *part_columns,
                       "Where the time goes (%s):%*s    forward  recompute   backward     update",
                       unit.name, 14 - (int)strlen(unit.name), "total");
    for (int p = 0; p < PARTS; p++) {
        double sum = 0;
        for (int pass = 0; pass < POD_HLO_PASSES; pass++) {
            sum += time_s[p][pass];
        }
        if (sum > 0) {
            const part_row row = {names[p],
                                  sum,
                                  time_s[p][POD_HLO_FORWARD],
                                  time_s[p][POD_HLO_RECOMPUTE],
                                  time_s[p][POD_HLO_BACKWARD],
                                  time_s[p][POD_HLO_UPDATE_PASS]};
            pod_findings_row(findings, &row, "  %-26s %9.3f  %9.3f  %9.3f  %9.3f  %9.3f", row.what,
                             row.total_s * unit.per_s, row.forward_s * unit.per_s,
                             row.recompute_s * unit.per_s, row.backward_s * unit.per_s,
                             row.update_s * unit.per_s);
        }
    }
}

/* Exposed time of collectives that are the same. */
typedef struct exposure {
    char what[96];
    char algorithm[POD_STEP_ALGORITHM_MAX];
    double exposed_s;
} exposure;

enum { EXPOSURES_MAX = 64, EXPOSURES_SHOWN = 8 };

static int exposure_compare(const void *a, const void *b)
{
    const exposure *one = a;
    const exposure *two = b;
    if (one->exposed_s != two->exposed_s) {
        return one->exposed_s > two->exposed_s ? -1 : 1;
    }
    const int names = strcmp(one->what, two->what);
    return names != 0 ? names : strcmp(one->algorithm, two->algorithm);
}

static void exposure_describe(const pod_hlo_report *report, uint32_t number, exposure *what)
{
    const pod_hlo_program *program = report->outcome->program;
    const pod_hlo_collectives *all = &program->analysis->collectives;
    const pod_hlo_run_as *run = &program->run_as[number];
    const pod_program_group *group = run->group >= 0 ? &program->shared.groups[run->group] : NULL;
    const char *op = number < all->count
                         ? pod_hlo_opcode_name((pod_hlo_opcode)all->collective[number].opcode)
                         : "DCN transfer";
    if (run->permute >= 0 || group == NULL) {
        (void)snprintf(what->what, sizeof what->what, "exposed %s", op);
    } else {
        (void)snprintf(what->what, sizeof what->what, "exposed %s over %d chips%s%.8s", op,
                       group->group.size, strcmp(group->axes, "-") == 0 ? "" : ", ",
                       strcmp(group->axes, "-") == 0 ? "" : group->axes);
    }
    (void)snprintf(what->algorithm, sizeof what->algorithm, "%s",
                   report->outcome->ran[number].algorithm);
}

static void exposure_add(exposure *list, int *count, const exposure *more)
{
    for (int i = 0; i < *count; i++) {
        if (strcmp(list[i].what, more->what) == 0
            && strcmp(list[i].algorithm, more->algorithm) == 0) {
            list[i].exposed_s += more->exposed_s;
            return;
        }
    }
    if (*count < EXPOSURES_MAX) {
        list[(*count)++] = *more;
    }
}

/* clang-format off */
static const pod_emit_column exposure_columns[] = {
    {.name = "what", POD_FIELD(exposure, what)},
    {.name = "exposed_s", .title = "exposed", .unit = "s", POD_FIELD(exposure, exposed_s)},
    {.name = "algorithm", POD_FIELD(exposure, algorithm)},
};
/* clang-format on */

/* What of an exposure chips would not wait without faults moves to *wait_s. */
static double without_wait(const pod_hlo_report *report, uint32_t sum, double exposed_s,
                           double *wait_s)
{
    const pod_experiment_hlo_outcome *healthy = &report->faults.healthy;
    if (report->faults.found.count == 0 || healthy->exposed_ps == NULL) {
        return exposed_s;
    }
    const double healthy_s = pod_experiment_hlo_mean_s(healthy, healthy->exposed_ps[sum]);
    *wait_s += exposed_s > healthy_s ? exposed_s - healthy_s : 0;
    return exposed_s > healthy_s ? healthy_s : exposed_s;
}

static void note_exposed(pod_findings *findings, const pod_hlo_report *report)
{
    exposure list[EXPOSURES_MAX];
    int count = 0;
    double wait_s = 0;
    const pod_time_unit unit = unit_of(report);
    const pod_experiment_hlo_outcome *outcome = report->outcome;
    const pod_hlo_program *program = outcome->program;
    for (uint32_t i = 0; i < program->nrun_as; i++) {
        const int64_t exposed_ps = outcome->exposed_ps[pod_experiment_hlo_sum(program, i)];
        exposure what = {.exposed_s =
                             without_wait(report, pod_experiment_hlo_sum(program, i),
                                          pod_experiment_hlo_mean_s(outcome, exposed_ps), &wait_s)};
        if (what.exposed_s > 0) {
            exposure_describe(report, i, &what);
            exposure_add(list, &count, &what);
        }
    }
    qsort(list, (size_t)count, sizeof *list, exposure_compare);
    if (count > 0 || wait_s > 0) {
        pod_findings_table(findings, "exposed", exposure_columns,
                           sizeof exposure_columns / sizeof *exposure_columns, "%s", "");
    }
    for (int i = 0; i < count && i < EXPOSURES_SHOWN; i++) {
        pod_findings_row(findings, &list[i], "  %-44s %9.3f %s  by %s", list[i].what,
                         list[i].exposed_s * unit.per_s, unit.name, list[i].algorithm);
    }
    const pod_experiment_faults *faults = &report->faults.found;
    const pod_faults_words words = {.what = "", .how = "", .how_healthy = "", .wait_s = wait_s};
    if (wait_s > 0) {
        exposure row = {.exposed_s = wait_s};
        (void)snprintf(row.what, sizeof row.what, "waiting for %.80s",
                       faults->row[faults->blamed].name);
        pod_findings_row(findings, &row, "  %-44s %9.3f %s", row.what, wait_s * unit.per_s,
                         unit.name);
    }
    pod_faults_note(findings, faults, &words);
}

/* ---- top operations ---- */

static pod_status note_top(pod_findings *findings, const pod_hlo_report *report, pod_error *err)
{
    const double step_s = pod_time_to_s(report->outcome->result.time_ps);
    pod_experiment_hlo_op *ops = NULL;
    uint32_t count = 0;
    int64_t shown = 0;
    POD_TRY(pod_experiment_hlo_ops(report->outcome, &ops, &count, err));
    for (uint32_t i = 0; i < count && shown < report->top; i++) {
        pod_op_line line;
        pod_hlo_op_texts texts;
        if (!ops[i].core || ops[i].cost == POD_HLO_NONE) {
            continue;
        }
        if (shown++ == 0) {
            pod_op_table_begin(findings, step_s, true);
        }
        pod_hlo_op_line(report, &ops[i], &texts, &line);
        pod_op_table_add(findings, &line, step_s);
    }
    free(ops);
    return POD_OK;
}

/* ---- loops and memory ---- */

static void note_loops(pod_findings *findings, const pod_hlo_report *report)
{
    char line[256] = "";
    size_t used = 0;
    const pod_hlo_analysis *analysis = &report->text->analysis;
    const pod_hlo_module *module = report->text->module;
    for (uint32_t i = 0; i < analysis->loops.count; i++) {
        char name[64];
        const pod_hlo_loop *loop = &analysis->loops.loop[i];
        if (analysis->runs[module->instruction[loop->instruction].computation] == 0) {
            continue;
        }
        (void)pod_hlo_print_name(module, loop->instruction, name, sizeof name);
        char entry[96];
        const int size = snprintf(entry, sizeof entry, "  %s x %lld", name, (long long)loop->trips);
        if (used + (size_t)size + 4 > sizeof line) {
            (void)snprintf(line + used, sizeof line - used, " …");
            break;
        }
        memcpy(line + used, entry, (size_t)size + 1);
        used += (size_t)size;
    }
    if (line[0] != '\0') {
        pod_findings_say(findings, POD_FINDING_BELOW, "loops", "Loops:%s", line);
    }
}

static void note_memory(pod_findings *findings, const pod_hlo_report *report)
{
    const double gib = (double)(1 << 30);
    pod_findings_say(findings, POD_FINDING_BELOW, "memory",
                     "HBM: %.4g GiB by the text%s, of %.4g that a program may use",
                     (double)report->memory->bytes / gib,
                     report->hbm_of_compiler ? "" : " (estimate)",
                     (double)report->chip->hbm_usable_bytes / gib);
    if (report->hbm_of_compiler) {
        pod_findings_say(findings, POD_FINDING_BELOW, "memory_by_compiler",
                         "     %.4g GiB by the compiler", (double)report->hbm_bytes / gib);
    }
}

pod_status pod_hlo_notes(pod_findings *findings, const pod_hlo_report *report, pod_error *err)
{
    note_parts(findings, report);
    note_exposed(findings, report);
    const pod_status st = note_top(findings, report, err);
    note_loops(findings, report);
    note_memory(findings, report);
    return st;
}
