/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan.h"

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

double pod_plan_days(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return plan->tokens / pod_plan_tokens_per_s(row) / 86400;
}

bool pod_plan_has_row(const pod_plan *plan, const pod_experiment_plan_row *row)
{
    return pod_plan_runs(row)
           && (plan->deadline_days == 0 || pod_plan_days(plan, row) <= plan->deadline_days);
}
