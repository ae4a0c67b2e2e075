/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan.h"

#include <stdio.h>

bool pod_plan_runs(const pod_experiment_plan_row *row)
{
    return row->best.status == POD_OK;
}

double pod_plan_cost(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return pod_experiment_plan_chip_hours(row)
           * pod_plan_price(&plan->prices, row->setup->slice.chip_name);
}

double pod_plan_tokens_per_s(const pod_experiment_plan_row *row)
{
    return row->best.figures.tokens_per_s_per_chip * (double)row->chips;
}

const char *pod_plan_days_text(double days, char *text, size_t size)
{
    char rounded[POD_FORMAT_MAX];
    if (days >= 1) {
        (void)snprintf(text, size, "%s days", pod_format_rounded(days, 4, rounded, sizeof rounded));
    } else if (days * 24 >= 1) {
        (void)snprintf(text, size, "%.4g h", days * 24);
    } else {
        (void)snprintf(text, size, "%.4g min", days * 24 * 60);
    }
    return text;
}

double pod_plan_days(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return plan->tokens / pod_plan_tokens_per_s(row) / 86400;
}

double pod_plan_run_cost(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return pod_plan_cost(plan, row) * plan->tokens / 1e6;
}

bool pod_plan_in_time(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return plan->deadline_days == 0 || pod_plan_days(plan, row) <= plan->deadline_days;
}

bool pod_plan_in_budget(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return plan->budget == 0 || pod_plan_run_cost(plan, row) <= plan->budget;
}

bool pod_plan_has_row(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return pod_plan_runs(row) && pod_plan_in_time(plan, row) && pod_plan_in_budget(plan, row);
}

const char *pod_plan_batch_text(const pod_plan *plan, char *text, size_t size)
{
    const pod_recipe *recipe = plan->question.recipe;
    if (recipe != NULL) {
        (void)snprintf(text, size, "%g sequences a device",
                       recipe->per_device_batch * (double)recipe->gradient_accumulation);
    } else {
        (void)snprintf(text, size, "batch %lld", (long long)plan->question.request->batch);
    }
    return text;
}
