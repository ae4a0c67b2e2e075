/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/faults.h"

#include "base/units.h"

#include <stdio.h>

static void note_cables(pod_findings *findings, const pod_experiment_faults *faults,
                        pod_time_unit unit)
{
    for (int i = 0; i < faults->count; i++) {
        const pod_experiment_fault_row *row = &faults->row[i];
        if (row->option[0] == '\0') {
            continue;
        }
        if (row->out_ps == 0) {
            pod_findings_say(findings, POD_FINDING_BELOW, "fault",
                             "  %s (%s): nothing runs without it (%s)", row->name, row->state,
                             row->option);
            continue;
        }
        const double change = (double)row->out_ps / (double)faults->time_ps - 1;
        pod_findings_say(findings, POD_FINDING_BELOW, "fault",
                         "  %s (%s): out (%s) it would be %.3f %s, %+.1f %% (simulated): %s",
                         row->name, row->state, row->option,
                         pod_time_to_s(row->out_ps) * unit.per_s, unit.name, 100 * change,
                         change < 0 ? "better out"
                         : change > 0 || faults->time_ps == faults->healthy_ps
                             ? "better kept"
                             : "routes go round it");
    }
}

void pod_faults_note(pod_findings *findings, const pod_experiment_faults *faults,
                     const pod_faults_words *words)
{
    if (faults->count == 0 || faults->time_ps == 0 || faults->healthy_ps == 0) {
        return;
    }
    char waits[3 * POD_FAULT_NAME_MAX] = "";
    const double time_s = pod_time_to_s(faults->time_ps);
    const double healthy_s = pod_time_to_s(faults->healthy_ps);
    const pod_time_unit unit = pod_time_unit_of(time_s);
    if (words->wait_s > 0) {
        const pod_experiment_fault_row *blamed = &faults->row[faults->blamed];
        char more[32] = "";
        if (faults->all > 1) {
            (void)snprintf(more, sizeof more, " and %d more", faults->all - 1);
        }
        (void)snprintf(waits, sizeof waits, "; chips wait %.3f %s for %s (%s)%s",
                       words->wait_s * unit.per_s, unit.name, blamed->name, blamed->state, more);
    }
    pod_findings_say(findings, POD_FINDING_BELOW, "faults",
                     "faults: %s%.3f %s%s, without %.3f %s%s: %+.1f %%%s", words->what,
                     time_s * unit.per_s, unit.name, words->how, healthy_s * unit.per_s, unit.name,
                     words->how_healthy, 100 * (time_s / healthy_s - 1), waits);
    note_cables(findings, faults, unit);
    if (faults->all > faults->count) {
        pod_findings_say(findings, POD_FINDING_BELOW, "fault",
                         "  the last %d of %d faults were not tried alone",
                         faults->all - faults->count, faults->all);
    }
}

bool pod_faults_are_remedied(const pod_experiment_faults *faults)
{
    static const double LEAST = 0.01;
    return pod_experiment_faults_gain(faults) >= LEAST;
}

bool pod_faults_note_remedy(pod_findings *findings, const pod_experiment_faults *faults,
                            const char *of)
{
    if (!pod_faults_are_remedied(faults)) {
        return false;
    }
    const pod_experiment_fault_row *blamed = &faults->row[faults->blamed];
    pod_findings_say(findings, POD_FINDING_BELOW, "remedy",
                     "First remedy: repair %s (%s): %.1f %% less time %s (simulated)", blamed->name,
                     blamed->state, 100 * pod_experiment_faults_gain(faults), of);
    return true;
}
