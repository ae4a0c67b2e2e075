/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/why.h"

#include "base/units.h"

#include <math.h>

static const double SHOWN_FRAC = 0.05;

static void parts_of(const pod_cli_candidate *candidate, double part[POD_STEP_PARTS])
{
    pod_experiment_step_parts(candidate->outcome, part);
    for (int i = 0; i < POD_STEP_PARTS; i++) {
        part[i] *= candidate->scale;
    }
}

void pod_cli_why(pod_text *text, const pod_cli_candidate *first, const pod_cli_candidate *second,
                 const char *unit)
{
    static const char *const names[POD_STEP_PARTS] = {"compute",     "HBM-bound ops", "exposed ICI",
                                                      "exposed DCN", "host",          "idle"};
    double a[POD_STEP_PARTS];
    double b[POD_STEP_PARTS];
    double total = 0;
    double whole = 0;
    bool said[POD_STEP_PARTS] = {false};
    parts_of(first, a);
    parts_of(second, b);
    for (int i = 0; i < POD_STEP_PARTS; i++) {
        total += b[i] - a[i];
        whole += b[i];
    }
    if (total <= 0) {
        pod_text_printf(text, "%s and %s take the same", first->name, second->name);
        return;
    }
    const pod_time_unit time = pod_time_unit_of(total);
    const double scale = unit != NULL ? 1 : time.per_s;
    unit = unit != NULL ? unit : time.name;
    char amount[POD_FORMAT_MAX];
    char percent[POD_FORMAT_MAX];
    pod_text_printf(text, "%s beats %s by %s %s (%s %%)", first->name, second->name,
                    pod_format_rounded(scale * total, 3, amount, sizeof amount), unit,
                    pod_format_rounded(100 * total / whole, 2, percent, sizeof percent));
    for (int n = 0; n < POD_STEP_PARTS; n++) { /* the largest of those that are left */
        int largest = -1;
        for (int i = 0; i < POD_STEP_PARTS; i++) {
            const bool more = largest < 0 || fabs(b[i] - a[i]) > fabs(b[largest] - a[largest]);
            largest = !said[i] && more ? i : largest;
        }
        const double less = b[largest] - a[largest];
        said[largest] = true;
        if (fabs(less) < SHOWN_FRAC * total) {
            break;
        }
        pod_text_printf(text, "%s %s %s %s %s", n == 0 ? ":" : ",", names[largest],
                        pod_format_rounded(scale * fabs(less), 3, amount, sizeof amount), unit,
                        less > 0 ? "less" : "more");
    }
}
