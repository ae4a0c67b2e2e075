/* SPDX-License-Identifier: Apache-2.0 */
/* What `podsim plan` says in words, and its picture. */
#include "cli/plan.h"
#include "cli/why.h"

#include "base/units.h"
#include "report/plots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX = 2 * POD_MESH_TEXT_MAX + 96, LEFT_OUT_NAMED = 8 };

static const char NOTHING_LIES[] = "no layout of these axes lies on it";

static const char *layout_name(const pod_experiment_step_outcome *outcome, char *text, size_t size)
{
    (void)snprintf(text, size, "%s%s%s", outcome->mesh,
                   outcome->dcn_mesh[0] != '\0' ? " over slices " : "", outcome->dcn_mesh);
    const size_t used = strlen(text);
    if (outcome->microbatches > 1) {
        (void)snprintf(text + used, size - used, " in %lld microbatches",
                       (long long)outcome->microbatches);
    }
    return text;
}

const char *pod_plan_name(const pod_experiment_plan_row *row, char *text, size_t size)
{
    (void)snprintf(text, size, "%s with ", row->setup->slice.name);
    const size_t used = strlen(text);
    (void)layout_name(&row->best, text + used, size - used);
    return text;
}

static const char *chip_of(const pod_experiment_plan_row *row)
{
    return row->setup->slice.chip_name;
}

static bool same_chip(const pod_experiment_plan_row *a, const pod_experiment_plan_row *b)
{
    return strcmp(chip_of(a), chip_of(b)) == 0;
}

/* ---- twice the chips ---- */

static void say_doubled(const pod_plan *plan, const pod_experiment_plan_row *row,
                        const pod_experiment_plan_row *doubled)
{
    char name[NAME_MAX];
    if (!pod_plan_runs(doubled)) {
        pod_findings_say(plan->findings, POD_FINDING_AFTER, "doubled",
                         "  twice the chips, %s: no layout runs: %s", doubled->setup->slice.name,
                         doubled->best.reason[0] != '\0' ? doubled->best.reason : NOTHING_LIES);
        return;
    }
    const double faster = row->best.figures.step_time_s / doubled->best.figures.step_time_s;
    const double cost = pod_plan_cost(plan, doubled) / pod_plan_cost(plan, row);
    char more[64];
    char step[POD_FORMAT_MAX];
    if (cost >= 2) {
        (void)snprintf(more, sizeof more, "%.3g times as much", cost);
    } else {
        (void)snprintf(more, sizeof more, "%.2g %% %s", 100 * (cost < 1 ? 1 - cost : cost - 1),
                       cost < 1 ? "less" : "more");
    }
    pod_findings_say(plan->findings, POD_FINDING_AFTER, "doubled",
                     "  twice the chips, %s: %s a step, %.3g times as fast; a token costs "
                     "%s; limited by %s",
                     pod_plan_name(doubled, name, sizeof name),
                     pod_format_time(doubled->best.figures.step_time_s, step, sizeof step), faster,
                     more, pod_experiment_step_limit(&doubled->best));
}

/* What twice the chips would give: from the rows, or searched. */
static pod_status try_doubled(pod_plan *plan, const pod_experiment_plan_row *row, pod_error *err)
{
    char spec[POD_EXPERIMENT_SPEC_MAX];
    pod_experiment_market_doubled(&plan->market, row, spec, sizeof spec);
    for (int i = 0; i < plan->slices.count; i++) {
        if (strcmp(plan->rows[i].setup->slice.name, spec) == 0) {
            say_doubled(plan, row, &plan->rows[i]);
            return POD_OK;
        }
    }
    pod_experiment_setup setup;
    pod_experiment_plan_row doubled;
    const pod_status status = pod_experiment_market_plan(
        &plan->cli->experiment, &plan->market, &plan->question, spec, &setup, &doubled, err);
    if (status == POD_OK) {
        say_doubled(plan, row, &doubled);
    }
    pod_experiment_setup_fini(&setup);
    return status;
}

/* ---- the second ---- */

/* What the objective compares, per second of a row's step. */
static double scale_of(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return plan->objective == POD_PLAN_BY_COST
               ? pod_plan_cost(plan, row) / row->best.figures.step_time_s
               : 1;
}

static void say_next_slice(const pod_plan *plan, const pod_experiment_plan_row *row,
                           const pod_experiment_plan_row *next)
{
    char name[2][NAME_MAX];
    pod_text text = {0};
    const pod_cli_candidate first = {.name = pod_plan_name(row, name[0], sizeof name[0]),
                                     .outcome = &row->best,
                                     .scale = scale_of(plan, row)};
    const pod_cli_candidate second = {.name = pod_plan_name(next, name[1], sizeof name[1]),
                                      .outcome = &next->best,
                                      .scale = scale_of(plan, next)};
    if (plan->objective == POD_PLAN_BY_CHIPS && row->chips < next->chips) {
        pod_text_printf(&text, "%s has %lld chips fewer than %s", first.name,
                        (long long)(next->chips - row->chips), second.name);
    } else {
        pod_cli_why(&text, &first, &second,
                    plan->objective == POD_PLAN_BY_COST ? "a M tokens" : NULL);
    }
    pod_findings_say(plan->findings, POD_FINDING_AFTER, "why", "  %s",
                     text.data != NULL ? text.data : "");
    pod_text_free(&text);
}

static void say_next_layout(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    char name[2][NAME_MAX];
    pod_text text = {0};
    if (row->next.status != POD_OK) {
        return;
    }
    const pod_cli_candidate first = {.name = layout_name(&row->best, name[0], sizeof name[0]),
                                     .outcome = &row->best,
                                     .scale = 1};
    const pod_cli_candidate second = {.name = layout_name(&row->next, name[1], sizeof name[1]),
                                      .outcome = &row->next,
                                      .scale = 1};
    if (row->next.slower != 0) {
        char least[POD_FORMAT_MAX];
        pod_text_printf(&text, "every other layout of it takes at least %s (%s)",
                        pod_format_time(pod_time_to_s(row->next.bound_ps), least, sizeof least),
                        second.name);
    } else {
        pod_cli_why(&text, &first, &second, NULL);
    }
    pod_findings_say(plan->findings, POD_FINDING_AFTER, "why", "  %s",
                     text.data != NULL ? text.data : "");
    pod_text_free(&text);
}

static const pod_experiment_plan_row *next_of_chip(const pod_plan *plan, int first)
{
    for (int i = first + 1; i < plan->slices.count && pod_plan_has_row(plan, &plan->rows[i]); i++) {
        if (same_chip(&plan->rows[first], &plan->rows[i])) {
            return &plan->rows[i];
        }
    }
    return NULL;
}

/* ---- generations ---- */

static pod_status say_generation(pod_plan *plan, int first, pod_error *err)
{
    const pod_experiment_plan_row *row = &plan->rows[first];
    const pod_experiment_plan_row *next = next_of_chip(plan, first);
    char name[NAME_MAX];
    char run[96] = "";
    char days[32];
    char step[POD_FORMAT_MAX];
    char price[POD_FORMAT_MAX];
    if (plan->tokens > 0) {
        (void)snprintf(run, sizeof run, "; all tokens: %s, %s%s",
                       pod_plan_days_text(pod_plan_days(plan, row), days, sizeof days),
                       pod_format_rounded(pod_plan_run_cost(plan, row), 4, price, sizeof price),
                       plan->prices.count > 0 ? "" : " chip-hours");
    }
    pod_findings_say(plan->findings, POD_FINDING_AFTER, "best",
                     "best of %s: %s, %s a step, MFU %.1f %%, limited by %s; %s %sa M tokens%s",
                     chip_of(row), pod_plan_name(row, name, sizeof name),
                     pod_format_time(row->best.figures.step_time_s, step, sizeof step),
                     100 * row->best.figures.mfu_frac, pod_experiment_step_limit(&row->best),
                     pod_format_rounded(pod_plan_cost(plan, row), 4, price, sizeof price),
                     plan->prices.count > 0 ? "" : "chip-hours ", run);
    if (next != NULL) {
        say_next_slice(plan, row, next);
    } else {
        say_next_layout(plan, row);
    }
    return try_doubled(plan, row, err);
}

/* ---- the front ---- */

/* No other row is better in time and no worse in cost, or the other way round. */
static bool on_front(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    for (int i = 0; i < plan->slices.count && pod_plan_has_row(plan, &plan->rows[i]); i++) {
        const pod_experiment_plan_row *other = &plan->rows[i];
        const double faster = (double)(row->best.time_ps - other->best.time_ps);
        const double cheaper = pod_plan_cost(plan, row) - pod_plan_cost(plan, other);
        if (faster >= 0 && cheaper >= 0 && (faster > 0 || cheaper > 0)) {
            return false;
        }
    }
    return true;
}

static void say_front(const pod_plan *plan)
{
    pod_text text = {0};
    int count = 0;
    for (int i = 0; i < plan->slices.count && pod_plan_has_row(plan, &plan->rows[i]); i++) {
        const pod_experiment_plan_row *row = &plan->rows[i];
        if (on_front(plan, row)) {
            char step[POD_FORMAT_MAX];
            char price[POD_FORMAT_MAX];
            pod_text_printf(&text, "%s %s (%s, %s)", count++ > 0 ? "," : "", row->setup->slice.name,
                            pod_format_time(row->best.figures.step_time_s, step, sizeof step),
                            pod_format_rounded(pod_plan_cost(plan, row), 4, price, sizeof price));
        }
    }
    if (count > 0 && plan->slices.count > 1 && pod_plan_has_row(plan, &plan->rows[1])) {
        pod_findings_say(plan->findings, POD_FINDING_AFTER, "front",
                         "no other slice is both faster and cheaper than%s", text.data);
    }
    pod_text_free(&text);
}

/* Why slices have no row. */
typedef enum left_out { RUNS_NOWHERE, LATE, TOO_DEAR, IN_THE_TABLE } left_out;

static left_out why_left_out(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    if (!pod_plan_runs(row)) {
        return RUNS_NOWHERE;
    }
    return !pod_plan_in_time(plan, row)     ? LATE
           : !pod_plan_in_budget(plan, row) ? TOO_DEAR
                                            : IN_THE_TABLE;
}

/* The slices that have no row for one reason. */
static void say_left_out(const pod_plan *plan, left_out why)
{
    const pod_experiment_plan_row *only = NULL;
    pod_text names = {0};
    int count = 0;
    for (int i = 0; i < plan->slices.count; i++) {
        const pod_experiment_plan_row *row = &plan->rows[i];
        if (why == why_left_out(plan, row)) {
            only = row;
            if (count < LEFT_OUT_NAMED) {
                pod_text_printf(&names, "%s%s", count > 0 ? ", " : "", row->setup->slice.name);
            }
            count++;
        }
    }
    if (count > LEFT_OUT_NAMED) {
        pod_text_printf(&names, " and %d more", count - LEFT_OUT_NAMED);
    }
    if (count > 0 && why == LATE) {
        pod_findings_say(plan->findings, POD_FINDING_AFTER, "late",
                         "%d %s longer than the deadline: %s", count,
                         count == 1 ? "slice takes" : "slices take", names.data);
    } else if (count > 0 && why == TOO_DEAR) {
        pod_findings_say(plan->findings, POD_FINDING_AFTER, "too_dear",
                         "%d %s more than the budget: %s", count,
                         count == 1 ? "slice costs" : "slices cost", names.data);
    } else if (count == 1) {
        pod_findings_say(plan->findings, POD_FINDING_AFTER, "left_out", "no layout runs on %s: %s",
                         names.data,
                         only->best.reason[0] != '\0' ? only->best.reason : NOTHING_LIES);
    } else if (count > 1) {
        pod_findings_say(plan->findings, POD_FINDING_AFTER, "left_out",
                         "no layout runs on %d slices: %s", count, names.data);
    }
    pod_text_free(&names);
}

pod_status pod_plan_say(pod_plan *plan, pod_error *err)
{
    pod_status status = POD_OK;
    if (plan->cli->common.quiet && plan->cli->common.format != POD_FORMAT_JSON) {
        return POD_OK;
    }
    for (int i = 0;
         status == POD_OK && i < plan->slices.count && pod_plan_has_row(plan, &plan->rows[i]);
         i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) {
            seen = seen || same_chip(&plan->rows[j], &plan->rows[i]);
        }
        status = seen ? POD_OK : say_generation(plan, i, err);
    }
    say_front(plan);
    for (int why = RUNS_NOWHERE; why < IN_THE_TABLE; why++) {
        say_left_out(plan, (left_out)why);
    }
    return status;
}

/* ---- nothing fits ---- */

pod_status pod_plan_fits_nowhere(const pod_plan *plan, pod_error *err)
{
    const pod_experiment_plan_row *nearest = NULL;
    const pod_experiment_plan_row *largest = &plan->rows[0];
    for (int i = 0; i < plan->slices.count; i++) {
        const pod_experiment_plan_row *row = &plan->rows[i];
        largest = row->chips > largest->chips ? row : largest;
        if (row->best.needs_bytes > 0
            && (nearest == NULL || row->best.needs_bytes < nearest->best.needs_bytes)) {
            nearest = row;
        }
    }
    if (nearest == NULL) {
        return pod_fail(err, POD_E_NOFIT, "no slice runs it; the largest tried, %s: %s",
                        largest->setup->slice.name,
                        largest->best.reason[0] != '\0' ? largest->best.reason : NOTHING_LIES);
    }
    char spec[POD_EXPERIMENT_SPEC_MAX] = "";
    const pod_status status =
        pod_experiment_market_holder(&plan->market, &plan->question, plan->slices.setup,
                                     plan->slices.count, spec, sizeof spec, err);
    if (status != POD_OK) {
        return status;
    }
    const double needs = pod_bytes_to_gib(nearest->best.needs_bytes);
    const double usable = pod_bytes_to_gib(nearest->setup->chip.hbm_usable_bytes);
    return pod_fail(err, POD_E_NOFIT,
                    "no slice holds it: the nearest, %s with %s, needs %.1f GiB a chip of %.1f and "
                    "lacks %.1f; %s%s",
                    nearest->setup->slice.name, nearest->best.mesh, needs, usable, needs - usable,
                    spec[0] != '\0' ? "the smallest slice that holds it is "
                                    : "no slice of slices.csv holds it with this batch",
                    spec);
}

/* ---- the picture ---- */

pod_status pod_plan_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const pod_plan *plan = figures;
    char title[POD_PLOT_NAME_MAX];
    int count = 0;
    pod_plot_front_row *rows = calloc((size_t)plan->slices.count + 1, sizeof *rows);
    if (rows == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a picture of %d slices",
                        plan->slices.count);
    }
    for (; count < plan->slices.count && pod_plan_has_row(plan, &plan->rows[count]); count++) {
        const pod_experiment_plan_row *row = &plan->rows[count];
        rows[count] = (pod_plot_front_row){.series = chip_of(row),
                                           .label = row->setup->slice.name,
                                           .cost = pod_plan_cost(plan, row),
                                           .time_s = row->best.figures.step_time_s,
                                           .front = on_front(plan, row)};
    }
    char batch[POD_PLAN_BATCH_MAX];
    (void)snprintf(title, sizeof title, "%.128s, %s", plan->question.request->model.name,
                   pod_plan_batch_text(plan, batch, sizeof batch));
    const pod_status status = pod_plot_front(
        plot, title,
        plan->prices.count > 0 ? "cost of a million tokens" : "chip-hours of a million tokens",
        rows, count, err);
    free(rows);
    return status;
}
