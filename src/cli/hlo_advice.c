/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of `podsim hlo` shows of simulations with something else: remedies, kernels that aren't known. */
#include "base/text.h"
#include "cli/faults.h"
#include "cli/hlo.h"

#include <stdio.h>

enum { REMEDY_TEXT_MAX = 2048, ORDER_SHOWN = 256 };

/* "0 4 8 12 …": --device-order as text, cut where a line can't hold it. */
static void order_print(const pod_hlo_devices *devices, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < devices->count && used < size; i++) {
        if (i == ORDER_SHOWN) {
            (void)snprintf(text + used, size - used, " …");
            return;
        }
        used +=
            (size_t)snprintf(text + used, size - used, "%s%d", i > 0 ? " " : "", devices->chip[i]);
    }
}

/* What a remedy does, with what it does it to. */
static void remedy_print(const pod_experiment_hlo_remedy *remedy, char *text, size_t size)
{
    char order[REMEDY_TEXT_MAX - 128];
    switch (remedy->kind) {
    case POD_HLO_REMEDY_OVERLAP:
        (void)snprintf(text, size,
                       "begin synchronous collectives when their operands are there (asynchronous "
                       "collectives): %d collective%s",
                       remedy->count, pod_text_plural(remedy->count));
        break;
    case POD_HLO_REMEDY_SCATTER:
        (void)snprintf(text, size,
                       "reduce-scatters for all-reduces of which only a slice is used: %d "
                       "collective%s",
                       remedy->count, pod_text_plural(remedy->count));
        break;
    case POD_HLO_REMEDY_BY_AXES:
        (void)snprintf(text, size,
                       "gather along the major dim, axis by axis, instead of round one ring: %d "
                       "collective%s",
                       remedy->count, pod_text_plural(remedy->count));
        break;
    case POD_HLO_REMEDY_ORDER:
        order_print(&remedy->devices, order, sizeof order);
        (void)snprintf(text, size,
                       "another order of devices, in which %d more group%s rings of "
                       "neighbours (--device-order '%s')",
                       remedy->count, remedy->count == 1 ? " is" : "s are", order);
        break;
    case POD_HLO_REMEDY_FUSE:
        (void)snprintf(text, size,
                       "fuse elementwise operations with what makes or reads their arrays: %d "
                       "array%s, %.3g GiB of HBM less",
                       remedy->count, pod_text_plural(remedy->count),
                       pod_bytes_to_gib(remedy->bytes));
        break;
    case POD_HLO_REMEDIES:
        break;
    }
}

/* A row of the list, with its heading before the first. */
static void note_remedy(pod_findings *findings, bool *any, const char *text, pod_time_ps time_ps,
                        pod_time_ps step_ps)
{
    static const double least = 0.001;
    char time[POD_FORMAT_MAX];
    const double gain = step_ps > 0 ? 1 - (double)time_ps / (double)step_ps : 0;
    if (gain < least) {
        return;
    }
    if (!*any) {
        pod_findings_say(findings, POD_FINDING_BELOW, "remedies",
                         "Remedies, each simulated by itself:");
    }
    *any = true;
    pod_findings_say(findings, POD_FINDING_BELOW, "remedy", "  %s, step %s, %.1f %% less", text,
                     pod_format_time(pod_time_to_s(time_ps), time, sizeof time), gain * 100);
}

/* Without each fault, then what another program would do. */
static void note_remedies(pod_findings *findings, const pod_hlo_report *report)
{
    const pod_time_ps step_ps = report->outcome->result.time_ps;
    const pod_experiment_faults *faults = &report->faults.found;
    bool any = false;
    for (int i = 0; i < faults->count; i++) {
        char text[POD_FAULT_NAME_MAX + 16];
        (void)snprintf(text, sizeof text, "without %s", faults->row[i].name);
        note_remedy(findings, &any, text, faults->row[i].repaired_ps, step_ps);
    }
    for (int i = 0; i < POD_HLO_REMEDIES; i++) {
        char text[REMEDY_TEXT_MAX] = "";
        const pod_experiment_hlo_remedy *remedy = &report->remedies[i];
        if (remedy->count > 0) {
            remedy_print(remedy, text, sizeof text);
            note_remedy(findings, &any, text, remedy->time_ps, step_ps);
        }
    }
}

static void note_unknowns(pod_findings *findings, const pod_hlo_report *report)
{
    const pod_experiment_hlo_totals totals = pod_experiment_hlo_totals_of(report->outcome->program);
    if (totals.unknown_calls == 0) {
        return;
    }
    char time[2][POD_FORMAT_MAX];
    pod_findings_say(findings, POD_FINDING_BELOW, "unknown",
                     "Not known: %lld run%s of custom calls, %s as a lower bound",
                     (long long)totals.unknown_calls, pod_text_plural(totals.unknown_calls),
                     pod_format_time(totals.unknown_s, time[0], sizeof time[0]));
    for (int i = 0; i < report->nunknown; i++) {
        char name[POD_HLO_CELL_MAX];
        const pod_experiment_hlo_unknown *unknown = &report->unknown[i];
        (void)pod_hlo_print_name(report->text->module, unknown->instruction, name, sizeof name);
        pod_findings_say(findings, POD_FINDING_BELOW, "unknown",
                         "  %s: %lld x at least %s; with %d times that the step takes %s "
                         "(--custom-call %s=%.6gus)",
                         name, (long long)unknown->runs,
                         pod_format_time(pod_time_to_s(unknown->bound_ps), time[0], sizeof time[0]),
                         POD_HLO_UNKNOWN_TIMES,
                         pod_format_time(pod_time_to_s(unknown->time_ps), time[1], sizeof time[1]),
                         name, pod_time_to_s(unknown->given_ps) * 1e6);
    }
}

void pod_hlo_note_advice(pod_findings *findings, const pod_hlo_report *report)
{
    (void)pod_faults_note_remedy(findings, &report->faults.found, "a step");
    note_remedies(findings, report);
    note_unknowns(findings, report);
}
