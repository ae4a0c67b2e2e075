/* SPDX-License-Identifier: Apache-2.0 */
/* podsim plan: which slice, and which layout on it. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/plan.h"
#include "cli/plot.h"
#include "cli/step.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan_row {
    int64_t rank;
    const char *slice;
    int64_t chips;
    pod_experiment_step_outcome best;
    double tokens_per_s;
    double cost;
    double days;
    const char *limit;
    int64_t candidates;
    const char *status;
    int64_t batch;
    double run_cost;
} plan_row;

#define AT(field) POD_FIELD(plan_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "rank", AT(rank)},
    {.name = "slice", AT(slice)},
    {.name = "chips", AT(chips)},
    {.name = "mesh", AT(best.mesh)},
    {.name = "dcn_mesh", .title = "over slices", AT(best.dcn_mesh)},
    {.name = "remat", .table_hidden = true, AT(best.remat)},
    {.name = "microbatches", .table_hidden = true, AT(best.microbatches)},
    {.name = "step_time_s", .title = "step", .unit = "s", .decimals = 4, AT(best.figures.step_time_s)},
    {.name = "tokens_per_s", .title = "tokens/s", .decimals = 0, .minor = 2, AT(tokens_per_s)},
    {.name = "tokens_per_s_per_chip", .table_hidden = true, AT(best.figures.tokens_per_s_per_chip)},
    {.name = "mfu_frac", .title = "MFU", .unit = "%", .decimals = 1, .percent = true, AT(best.figures.mfu_frac)},
    {.name = "hbm_frac", .title = "HBM used", .unit = "%", .decimals = 1, .percent = true, AT(best.figures.hbm_frac)},
    {.name = "cost_per_million_tokens", .title = "cost", .unit = "per M tokens", .decimals = 6, AT(cost)},
    {.name = "days", .decimals = 1, AT(days)},
    {.name = "limit", AT(limit)},
    {.name = "bound_s", .table_hidden = true, POD_TIME_FIELD(plan_row, best.bound_ps, S)},
    {.name = "candidates", .title = "layouts", .minor = 3, AT(candidates)},
    {.name = "status", .table_hidden = true, AT(status)},
    {.name = "batch", .minor = 1, AT(batch)},
    {.name = "run_cost", .title = "all tokens", .decimals = 2, AT(run_cost)},
};
/* Of those columns, what not every table shows. */
enum { DAYS = 13, BATCH = 18, RUN_COST = 19 };
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "A row per slice with its fastest layout, the best slice first. --slices: specs, generations "
    "(v5e) and\n"
    "patterns (v5p:*, 2*v6e:16x16), separated by commas; default all of slices.csv. Costs are "
    "chip-hours, or what\n"
    "--price makes of them. limit is the largest part of a step: mxu, hbm, ici, dcn, host, idle.\n";

/* Tokens of a sequence when nothing is said: what the models of models.csv are trained with for the most part. */
enum { SEQ_DEFAULT = 8192 };

/* What the command's own options say. */
typedef struct plan_options {
    pod_plan plan;
    const char *slices;
    const char *max_chips;
    const char *price;
} plan_options;

/* ---- order ---- */

static double key_of(const pod_plan *p, const pod_experiment_plan_row *row)
{
    switch (p->objective) {
    case POD_PLAN_BY_TIME:
        return (double)row->best.time_ps;
    case POD_PLAN_BY_COST:
        return pod_plan_cost(p, row);
    case POD_PLAN_BY_CHIPS:
        return (double)row->chips;
    }
    return 0;
}

static bool goes_before(const pod_plan *p, const pod_experiment_plan_row *a,
                        const pod_experiment_plan_row *b)
{
    if (pod_plan_has_row(p, a) != pod_plan_has_row(p, b)) {
        return pod_plan_has_row(p, a);
    }
    if (pod_plan_runs(a) != pod_plan_runs(b)) {
        return pod_plan_runs(a);
    }
    if (!pod_plan_runs(a)) {
        return false;
    }
    const double x = key_of(p, a);
    const double y = key_of(p, b);
    return x != y ? x < y : a->best.time_ps < b->best.time_ps;
}

static void sort_rows(pod_plan *p)
{
    for (int i = 1; i < p->slices.count; i++) {
        const pod_experiment_plan_row moved = p->rows[i];
        int j = i;
        for (; j > 0 && goes_before(p, &moved, &p->rows[j - 1]); j--) {
            p->rows[j] = p->rows[j - 1];
        }
        p->rows[j] = moved;
    }
}

/* ---- output ---- */

static void emit_row(const pod_plan *p, pod_emit *emit, int rank,
                     const pod_experiment_plan_row *row)
{
    const plan_row shown = {.rank = rank,
                            .slice = row->setup->slice.name,
                            .chips = row->chips,
                            .best = row->best,
                            .tokens_per_s = pod_plan_tokens_per_s(row),
                            .cost = pod_plan_cost(p, row),
                            .days = p->tokens > 0 ? pod_plan_days(p, row) : (double)NAN,
                            .limit = pod_experiment_step_limit(&row->best),
                            .candidates = row->candidates,
                            .status = "ok",
                            .batch = row->batch,
                            .run_cost = p->tokens > 0 ? pod_plan_run_cost(p, row) : (double)NAN};
    pod_emit_fields(emit, &shown, NCOLUMNS);
}

static pod_status print(pod_plan *p, pod_error *err)
{
    pod_emit *emit = NULL;
    pod_emit_column shown[NCOLUMNS];
    int rank = 0;
    memcpy(shown, columns, sizeof columns);
    char batch[POD_PLAN_BATCH_MAX];
    shown[DAYS].table_hidden = p->tokens == 0;
    shown[BATCH].table_hidden = p->question.recipe == NULL;
    shown[RUN_COST].table_hidden = p->tokens == 0;
    pod_status status = pod_emit_new(p->cli->common.format, "plan", shown, NCOLUMNS, &emit, err);
    if (status == POD_OK) {
        pod_findings_say(p->findings, POD_FINDING_ABOVE, "settings",
                         "podsim plan: %s, %s, %s, %d slice%s, cost in %s",
                         p->question.request->model.name,
                         pod_plan_batch_text(p, batch, sizeof batch),
                         pod_step_mode_name(p->question.request->mode), p->slices.count,
                         pod_text_plural(p->slices.count),
                         p->prices.count > 0 ? "the currency of --price" : "chip-hours");
        pod_step_serving_heading(p->findings, p->question.request);
    }
    for (int i = 0; status == POD_OK && i < p->slices.count && rank < p->top; i++) {
        if (pod_plan_has_row(p, &p->rows[i])) {
            emit_row(p, emit, ++rank, &p->rows[i]);
        }
    }
    POD_THEN(status, pod_cli_report(p->cli, emit, p->findings, err));
    pod_emit_free(emit);
    return status;
}

/* Nothing to print: why. */
static pod_status check_rows(const pod_plan *p, pod_error *err)
{
    const pod_experiment_plan_row *first = &p->rows[0];
    if (!pod_plan_runs(first)) {
        return pod_plan_fits_nowhere(p, err);
    }
    if (pod_plan_has_row(p, first)) {
        return POD_OK;
    }
    const pod_experiment_plan_row *fastest = first;
    const pod_experiment_plan_row *cheapest = first;
    for (int i = 1; i < p->slices.count && pod_plan_runs(&p->rows[i]); i++) {
        cheapest =
            pod_plan_cost(p, &p->rows[i]) < pod_plan_cost(p, cheapest) ? &p->rows[i] : cheapest;
        fastest = pod_plan_tokens_per_s(&p->rows[i]) > pod_plan_tokens_per_s(fastest) ? &p->rows[i]
                                                                                      : fastest;
    }
    if (!pod_plan_in_budget(p, cheapest)) {
        return pod_fail(err, POD_E_INVALID,
                        "no slice meets the budget of %.6g%s; the cheapest, %s with %s, costs %.6g",
                        p->budget, p->prices.count > 0 ? "" : " chip-hours",
                        cheapest->setup->slice.name, cheapest->best.mesh,
                        pod_plan_run_cost(p, cheapest));
    }
    char took[32];
    char longer[32];
    (void)pod_plan_days_text(pod_plan_days(p, fastest), took, sizeof took);
    if (pod_plan_in_time(p, fastest)) {
        return pod_fail(err, POD_E_INVALID,
                        "no slice meets both the deadline and the budget; the fastest, %s, takes "
                        "%s and costs %.6g; the cheapest, %s, %s and %.6g",
                        fastest->setup->slice.name, took, pod_plan_run_cost(p, fastest),
                        cheapest->setup->slice.name,
                        pod_plan_days_text(pod_plan_days(p, cheapest), longer, sizeof longer),
                        pod_plan_run_cost(p, cheapest));
    }
    return pod_fail(err, POD_E_INVALID,
                    "no slice meets the deadline of %s; the fastest, %s with %s, takes %s",
                    pod_plan_days_text(p->deadline_days, longer, sizeof longer),
                    fastest->setup->slice.name, fastest->best.mesh, took);
}

/* ---- options ---- */

/* "30d", "12h" or any time. */
static pod_status read_days(const char *text, void *field, pod_error *err)
{
    double *days = field;
    char *end = NULL;
    const double number = strtod(text, &end);
    if (end != text && (strcmp(end, "d") == 0 || strcmp(end, "h") == 0) && isfinite(number)
        && number > 0) {
        *days = *end == 'd' ? number : number / 24;
        return POD_OK;
    }
    return pod_fail(err, POD_E_USAGE,
                    "--deadline is a time in days or hours, as 30d or 12h; not '%s'", text);
}

static pod_status read_budget(const char *text, void *field, pod_error *err)
{
    return pod_parse_double(text, "--budget", 1e-9, 1e18, field, err);
}

/* "15T", "300G", "1e12". */
static pod_status read_tokens(const char *text, void *field, pod_error *err)
{
    double *tokens = field;
    char *end = NULL;
    const double number = strtod(text, &end);
    static const char units[] = "kMGBT";
    static const double factor[] = {1e3, 1e6, 1e9, 1e9, 1e12};
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    *tokens = number * (unit != NULL ? factor[unit - units] : 1);
    if (end != text && (*end == '\0' || (unit != NULL && end[1] == '\0')) && isfinite(*tokens)
        && *tokens > 0) {
        return POD_OK;
    }
    return pod_fail(err, POD_E_USAGE, "--tokens is a number of tokens, as 15T or 300G; not '%s'",
                    text);
}

static pod_status own_check(const pod_plan *p, pod_error *err)
{
    if (p->budget > 0 && p->tokens == 0) {
        return pod_fail(err, POD_E_USAGE,
                        "--budget needs --tokens T: how many tokens for that much");
    }
    return p->deadline_days > 0 && p->tokens == 0 ? pod_fail(
               err, POD_E_USAGE, "--deadline needs --tokens T: how many tokens in that time")
                                                  : POD_OK;
}

/* What plan chooses itself can't be given. */
static pod_status refuse_layout(const pod_step_texts *texts, pod_error *err)
{
    if (pod_step_text(texts, "dcn-mesh") != NULL || pod_step_text(texts, "batch-per-chip") != NULL
        || pod_step_text(texts, "placement") != NULL) {
        return pod_fail(
            err, POD_E_USAGE,
            "podsim plan chooses layouts: give the global batch by --batch, and neither "
            "--dcn-mesh nor --batch-per-chip nor --placement");
    }
    return POD_OK;
}

/* ---- the command ---- */

static pod_status search(pod_plan *p, pod_error *err)
{
    pod_status status = POD_OK;
    pod_findings findings = {0};
    p->findings = &findings;
    p->rows = calloc((size_t)p->slices.count + 1, sizeof *p->rows);
    if (p->rows == NULL) {
        status = pod_fail(err, POD_E_NOMEM, "no memory for %d slices", p->slices.count);
    }
    status = pod_par_agree(p->cli->par, status, err);
    POD_THEN(status, pod_experiment_plan_slices(&p->cli->experiment, &p->question, p->slices.setup,
                                                p->slices.count, p->rows, err));
    if (status == POD_OK) {
        sort_rows(p);
        status = check_rows(p, err);
    }
    POD_THEN(status, pod_plan_say(p, err));
    POD_THEN(status, print(p, err));
    POD_THEN(status, pod_cli_plot_write(p->cli, pod_plan_plot, p, err));
    pod_findings_fini(&findings);
    free(p->rows);
    return status;
}

static pod_status run(pod_cli *cli, pod_step_texts *texts, const pod_step_recipe *recipe,
                      plan_options *own, pod_error *err)
{
    pod_experiment_step_request request;
    pod_plan *p = &own->plan;
    POD_TRY(own_check(p, err));
    POD_TRY(refuse_layout(texts, err));
    texts->seq_default = SEQ_DEFAULT;
    POD_TRY(pod_step_request_read(&request, texts, recipe, cli, err));
    pod_step_idle_say(cli, texts, recipe->given, &request, NULL, 0, 0);
    request.plain = true;
    request.microbatches = pod_step_text(texts, "microbatches") == NULL ? 0 : request.microbatches;
    p->question.recipe = recipe->given && request.batch == 0 ? &recipe->recipe : NULL;
    if (request.batch == 0 && p->question.recipe == NULL) {
        return pod_fail(
            err, POD_E_USAGE,
            "missing --batch; give the sequences of a step over all chips, as in --batch 512");
    }
    p->cli = cli;
    p->market = (pod_experiment_market){
        .tables = cli->tables,
        .request = {.rates = cli->common.rates,
                    .settings = {cli->common.settings.count, cli->common.settings.text}}
    };
    p->question.request = &request;
    p->question.split_axes = pod_step_text(texts, "split-axes") != NULL;
    POD_TRY(pod_plan_prices_read(&p->prices, cli, own->price, err));
    pod_status status =
        pod_plan_slices_init(&p->slices, &p->market, own->slices, own->max_chips, err);
    POD_THEN(status, pod_plan_prices_check(&p->prices, &p->slices, err));
    POD_THEN(status, search(p, err));
    pod_plan_slices_fini(&p->slices);
    return status;
}

#define AT(field) POD_CLI_FIELD(plan_options, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"slices", 0, POD_CLI_TEXT, AT(slices), "LIST",
     "slices to consider: specs, generations, patterns (default: all of slices.csv)",
     .group = "Slices", .matters = true},
    {"max-chips", 0, POD_CLI_TEXT, AT(max_chips), "N",
     "none with more chips (default: 256 unless --slices names specs)", .group = "Slices", .matters = true},
    {"price", 0, POD_CLI_TEXT, AT(price), "CHIP=X,...",
     "of a chip for an hour, in any currency (default: cost in chip-hours)", .group = "Cost", .matters = true},
    {"objective", 0, POD_CLI_CHOICE, AT(plan.objective), "time|cost|chips",
     "what comes first: the fastest step, the cheapest tokens, the fewest chips (default: time)",
     .group = "Cost", .matters = true},
    {"deadline", 0, POD_CLI_READ, AT(plan.deadline_days), "TIME",
     "leave out what takes longer for --tokens, as 30d", .read = read_days, .group = "Cost"},
    {"budget", 0, POD_CLI_READ, AT(plan.budget), "X",
     "leave out what costs more for --tokens, in the unit of --price, else chip-hours",
     .read = read_budget, .group = "Cost", .matters = true},
    {"tokens", 0, POD_CLI_READ, AT(plan.tokens), "T", "tokens of the whole run, as 15T: gives days",
     .read = read_tokens, .group = "Cost"},
    {"top", 0, POD_CLI_COUNT, AT(plan.top), "K", "slices to show (default: 10)", .min = 1, .group = "Output"},
    {"exhaustive", 0, POD_CLI_FLAG, AT(plan.question.exhaustive), NULL,
     "simulate every layout, also those whose bound says that they are slower", .group = "Simulation"},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_plan(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_step_texts texts = pod_step_texts_make();
    pod_step_recipe recipe = {0};
    plan_options own = {.plan = {.top = 10}};
    const pod_cli_usage usage = {
        .synopsis = "--model MODEL --batch N [--slices LIST]",
        .examples =
            "--model llama3.1-8b --batch 512 --slices v5e:8x16,v6e:8x16 --price v5e=1.2,v6e=2.7\n"
            "--model llama3.1-8b --batch 256 --slices v5p --max-chips 64 --objective cost\n"
            "--model llama3.1-8b --batch 512 --slices v6e:8x16 --tokens 1T --deadline 60d\n",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_PLOT | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
        .shared = &texts.said,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    pod_status status = pod_step_recipe_read(&recipe, &texts, cli, err);
    POD_THEN(status, run(cli, &texts, &recipe, &own, err));
    pod_step_recipe_fini(&recipe);
    return status;
}
