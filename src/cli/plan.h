/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/plan.h  Private to `podsim plan`: its rows, their figures, and what is said of them.
 *
 *  Threads: one per rank. */
#pragma once

#include "cli/plan_slices.h"
#include "experiment/market.h"
#include "report/plot.h"

typedef enum pod_plan_objective {
    POD_PLAN_BY_TIME,
    POD_PLAN_BY_COST,
    POD_PLAN_BY_CHIPS
} pod_plan_objective;

typedef struct pod_plan {
    pod_cli *cli;
    pod_experiment_plan_question question;
    pod_experiment_market market;
    pod_plan_slices slices;
    pod_plan_prices prices;
    pod_plan_objective objective;
    double deadline_days; /**< 0 = none */
    double tokens;        /**< 0 = not given */
    double budget;        /**< of the whole run, 0 = none */
    int64_t top;
    /** rows[slices.count]; sorted at the end: those that run, the best first */
    pod_experiment_plan_row *rows;
    pod_findings *findings;
} pod_plan;

/** Figures of a row that runs. */
bool pod_plan_runs(const pod_experiment_plan_row *row);
double pod_plan_tokens_per_s(const pod_experiment_plan_row *row);
double pod_plan_days(const pod_plan *plan, const pod_experiment_plan_row *row);
/** "2.5 days", "1 h", "30 min". @return text */
const char *pod_plan_days_text(double days, char *text, size_t size);
/** Of a million tokens: in the currency of --price, else in chip-hours. */
double pod_plan_cost(const pod_plan *plan, const pod_experiment_plan_row *row);
/** Of all tokens. */
double pod_plan_run_cost(const pod_plan *plan, const pod_experiment_plan_row *row);
/** It meets the deadline, if there is one; likewise the budget. */
bool pod_plan_in_time(const pod_plan *plan, const pod_experiment_plan_row *row);
bool pod_plan_in_budget(const pod_plan *plan, const pod_experiment_plan_row *row);
/** It runs and meets both. Rows of the table, words and picture: first once sorted. */
bool pod_plan_has_row(const pod_plan *plan, const pod_experiment_plan_row *row);

enum { POD_PLAN_BATCH_MAX = 64 };
/** "batch 512", or "4 sequences a device". @return text */
const char *pod_plan_batch_text(const pod_plan *plan, char *text, size_t size);

/** "v5p:4x4x8 with fsdp=128", with what goes over slices. @return text */
const char *pod_plan_name(const pod_experiment_plan_row *row, char *text, size_t size);

/** What is said after the table: of each generation the best slice, what limits it, what twice the chips would give,
 *  and why the next is slower; then the slices that no other beats in both time and cost. Collective.
 *  @return what pod_experiment_plan_slice says */
pod_status pod_plan_say(pod_plan *plan, pod_error *err);
/** No slice runs: what the largest lacks, and the smallest of slices.csv that would do. Not collective.
 *  @return POD_E_NOFIT, or what pod_experiment_plan_holds says */
pod_status pod_plan_fits_nowhere(const pod_plan *plan, pod_error *err);
/** Draw time against cost of all rows, for pod_cli_plot_write. */
pod_status pod_plan_plot(pod_plot *plot, const void *plan, pod_error *err);
