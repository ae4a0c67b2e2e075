/* SPDX-License-Identifier: Apache-2.0 */
/* podsim compare: a step under many layouts, fastest first. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/plot.h"
#include "cli/step.h"
#include "cli/why.h"

#include "base/units.h"
#include "experiment/search.h"
#include "experiment/step_best.h"
#include "workload/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char about[] =
    "A row per layout, fastest first: those of --mesh, or all of data, fsdp and tensor that JAX\n"
    "places (with --split-axes also those that share a physical axis). Columns as in podsim step;\n"
    "layouts that can't run come last, with the reason and - for their figures. bound_s is what a "
    "layout\n"
    "can't be faster than; with --top K those whose bound exceeds the K-th best time are not "
    "simulated.\n";

/* What the command works on. */
typedef struct comparison {
    pod_cli *cli;
    const pod_step_texts *texts;
    const pod_step_recipe *recipe;
    const pod_experiment_step_request *request;
    const pod_experiment_setup *setup;
    int top; /* of the best that need figures; 0 = all */
    int count;
    pod_experiment_candidate *candidates;  /* candidates[count] */
    pod_experiment_step_outcome *outcomes; /* outcomes[count] */
    pod_emit *emit;                        /* the table, if its rows come one by one; else NULL */
    pod_findings findings;
    int shown;               /* rows that have come */
    pod_status table_status; /* of a table whose rows come */
    pod_error table_error;
} comparison;

enum { OWN_COLUMNS = 4, COLUMNS = 1 + POD_STEP_COLUMNS + OWN_COLUMNS };

/* The meshes of --mesh. */
static pod_status list_given(const comparison *c, pod_logical_mesh **meshes, int *count,
                             pod_error *err)
{
    const pod_step_texts *texts = c->texts;
    *count = texts->meshes.count;
    *meshes = calloc((size_t)*count, sizeof **meshes);
    if (*meshes == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", *count);
    }
    for (int i = 0; i < *count; i++) {
        const pod_status st = pod_step_mesh_read(c->recipe, texts, texts->meshes.text[i],
                                                 &c->setup->slice, &(*meshes)[i], err);
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

static pod_status list_candidates(comparison *c, pod_error *err)
{
    pod_logical_mesh *meshes = NULL;
    pod_status st =
        c->texts->meshes.count > 0
            ? list_given(c, &meshes, &c->count, err)
            : pod_step_layouts(&c->setup->slice, pod_step_text(c->texts, "split-axes") != NULL,
                               c->request->model.experts, &meshes, &c->count, err);
    if (st == POD_OK) {
        c->candidates = calloc((size_t)c->count + 1, sizeof *c->candidates);
        c->outcomes = calloc((size_t)c->count + 1, sizeof *c->outcomes);
        st = c->candidates != NULL && c->outcomes != NULL
                 ? POD_OK
                 : pod_fail(err, POD_E_NOMEM, "no memory for the rows");
    }
    for (int i = 0; i < c->count && st == POD_OK; i++) {
        c->candidates[i] =
            (pod_experiment_candidate){.request = c->request, .setup = c->setup, .mesh = meshes[i]};
    }
    free(meshes);
    return pod_par_agree(c->cli->par, st, err);
}

/* ---- rows ---- */

static bool has_figures(const pod_experiment_step_outcome *outcome)
{
    return outcome->status == POD_OK && outcome->slower == 0;
}

static const char *status_word(const pod_experiment_step_outcome *outcome)
{
    if (outcome->slower != 0) {
        return "slower";
    }
    return outcome->status == POD_OK        ? "ok"
           : outcome->status == POD_E_NOFIT ? "does not fit"
                                            : "can't run";
}

/* ---- what a terminal gets instead of rows without figures ---- */

/* Which of them: those that are slower, don't fit, can't run. */
typedef bool row_kind(const pod_experiment_step_outcome *outcome);

static bool is_slower(const pod_experiment_step_outcome *outcome)
{
    return outcome->slower != 0;
}

static bool does_not_fit(const pod_experiment_step_outcome *outcome)
{
    return outcome->status == POD_E_NOFIT;
}

static bool cannot_run(const pod_experiment_step_outcome *outcome)
{
    return outcome->status != POD_OK && outcome->status != POD_E_NOFIT;
}

/* How many there are; *first is the one of them that says most: the first, or the one that lacks least memory. */
static int count_rows(const comparison *c, row_kind *kind,
                      const pod_experiment_step_outcome **first)
{
    int count = 0;
    *first = NULL;
    for (int i = 0; i < c->count; i++) {
        const pod_experiment_step_outcome *outcome = &c->outcomes[i];
        if (kind(outcome)) {
            const bool nearer = *first != NULL && outcome->needs_bytes > 0
                                && outcome->needs_bytes < (*first)->needs_bytes;
            *first = *first == NULL || nearer ? outcome : *first;
            count++;
        }
    }
    return count;
}

/* Rows without figures only: the nearest, and why. */
static pod_status check_any_runs(const comparison *c, pod_error *err)
{
    const pod_experiment_step_outcome *unfit = NULL;
    const pod_experiment_step_outcome *stuck = NULL;
    const int refused = count_rows(c, does_not_fit, &unfit) + count_rows(c, cannot_run, &stuck);
    if (refused < c->count || c->count == 0) {
        return POD_OK;
    }
    const pod_experiment_step_outcome *first = unfit != NULL ? unfit : stuck;
    c->cli->output_stays = true;
    return c->count == 1
               ? pod_fail(err, first->status, "%s can't run: %s", first->mesh, first->reason)
               : pod_fail(err, first->status, "none of %d layouts can run; nearest %s: %s",
                          c->count, first->mesh, first->reason);
}

static void note_rows(const comparison *c, pod_findings *findings)
{
    const pod_experiment_step_outcome *first = NULL;
    char least[POD_FORMAT_MAX];
    int count = count_rows(c, is_slower, &first);
    if (count > 0) {
        pod_findings_say(findings, POD_FINDING_BELOW, "slower",
                         "%d layout%s not simulated: %s at least %s", count,
                         count > 1 ? "s are" : " is", count > 1 ? "each takes" : "it takes",
                         pod_format_time(pod_time_to_s(first->bound_ps), least, sizeof least));
    }
    count = count_rows(c, does_not_fit, &first);
    if (count > 0 && first->needs_bytes > 0) {
        pod_findings_say(findings, POD_FINDING_BELOW, "unfit",
                         "%d layout%s not fit: %s%s needs %.1f GiB of %.1f%s", count,
                         count > 1 ? "s do" : " does", count > 1 ? "nearest " : "", first->mesh,
                         pod_bytes_to_gib(first->needs_bytes),
                         pod_bytes_to_gib(c->setup->chip.hbm_usable_bytes),
                         count > 1 ? "; --wide lists each" : "; --wide says more");
    }
    count = count_rows(c, cannot_run, &first);
    if (count > 0) {
        pod_findings_say(findings, POD_FINDING_BELOW, "stuck", "%d layout%s can't run: %s: %s",
                         count, count > 1 ? "s" : "", first->mesh, first->reason);
    }
}

/* Why the first comes before the second. */
static void say_why(const comparison *c, pod_findings *findings)
{
    const pod_experiment_step_outcome *o = c->outcomes;
    if (c->count < 2 || !has_figures(&o[0]) || !has_figures(&o[1])) {
        return;
    }
    char name[2][2 * POD_MESH_TEXT_MAX + 16];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(name[i], sizeof name[i], "%s%s%s", o[i].mesh,
                       o[i].dcn_mesh[0] != '\0' ? " over slices " : "", o[i].dcn_mesh);
    }
    const pod_cli_candidate first = {.name = name[0], .outcome = &o[0], .scale = 1};
    const pod_cli_candidate second = {.name = name[1], .outcome = &o[1], .scale = 1};
    pod_text text = {0};
    pod_cli_why(&text, &first, &second, NULL);
    if (strcmp(o[0].remat, o[1].remat) != 0) {
        pod_text_printf(&text, "; recomputation %s against %s", o[0].remat, o[1].remat);
    }
    if (text.data != NULL) {
        pod_findings_say(findings, POD_FINDING_AFTER, "why", "%s", text.data);
    }
    pod_text_free(&text);
}

/* ---- the table ---- */

/* What a row shows beside the columns of a step. */
typedef struct compare_row {
    int64_t rank;
    const char *status;
    const char *reason;
    pod_time_ps bound_ps;
    const char *limit;
} compare_row;

enum { STATUS_MINOR = 8 };
#define AT(field) POD_FIELD(compare_row, field)
/* clang-format off */
static const pod_emit_column rank_column = {.name = "rank", AT(rank)};
static const pod_emit_column own_columns[OWN_COLUMNS] = {
    {.name = "status", .minor = STATUS_MINOR, AT(status)},
    {.name = "reason", .minor = STATUS_MINOR, AT(reason)},
    {.name = "bound_s", .title = "bound", .unit = "s", .decimals = 6, .table_hidden = true,
     POD_TIME_FIELD(compare_row, bound_ps, S)},
    {.name = "limit", AT(limit)},
};
/* clang-format on */
#undef AT

/* @param limit  what limits it, if it has figures */
static void emit_row(const comparison *c, pod_emit *emit, int rank,
                     const pod_experiment_step_outcome *outcome, const char *limit)
{
    char slower[64];
    const bool timed = has_figures(outcome);
    (void)snprintf(slower, sizeof slower, "at least %.6g s", pod_time_to_s(outcome->bound_ps));
    const compare_row row = {.rank = timed ? rank : INT64_MIN,
                             .status = status_word(outcome),
                             .reason = outcome->slower != 0        ? slower
                                       : outcome->status != POD_OK ? outcome->reason
                                                                   : NULL,
                             .bound_ps = outcome->bound_ps > 0 ? outcome->bound_ps : INT64_MIN,
                             .limit = timed ? limit : NULL};
    pod_emit_fields(emit, &row, 1);
    pod_step_emit(emit, c->request, &c->setup->slice, outcome);
    pod_emit_fields(emit, &row, OWN_COLUMNS);
}

static pod_status table_new(const comparison *c, pod_emit **emit, pod_error *err)
{
    pod_emit_column columns[COLUMNS] = {rank_column};
    pod_step_columns(columns + 1, c->request, c->setup->slice.nslices > 1, c->cli->experiment.data);
    memcpy(columns + COLUMNS - OWN_COLUMNS, own_columns, sizeof own_columns);
    return pod_emit_new(c->cli->common.format, "compare", columns, COLUMNS, emit, err);
}

static void say_settings(const comparison *c, pod_findings *findings)
{
    const pod_slice *slice = &c->setup->slice;
    pod_findings_say(findings, POD_FINDING_ABOVE, "settings",
                     "podsim compare: %s, %d chip%s, %s, %s, %s", slice->name,
                     slice->nchips * slice->nslices,
                     pod_text_plural(slice->nchips * slice->nslices), c->request->model.name,
                     pod_dtype_name(c->request->dtype), pod_step_mode_name(c->request->mode));
    pod_step_serving_heading(findings, c->request);
}

/* What faults cost the fastest layout. Collective. */
static pod_status note_faults(const comparison *c, pod_findings *findings, pod_error *err)
{
    pod_experiment *experiment = &c->cli->experiment;
    const pod_experiment_step_outcome *best = &c->outcomes[0];
    if (c->count == 0 || !has_figures(best) || !pod_cli_wants_findings(c->cli)
        || pod_experiment_setup_faults(c->setup) == 0) {
        return POD_OK;
    }
    const pod_chip_spec *chip = &c->setup->chip;
    pod_experiment_step_case run_case;
    pod_experiment_step_faults faults = {.found = {.count = 0}};
    pod_step_result result = {0};
    pod_breakdown breakdown;
    char what[POD_MESH_TEXT_MAX + 16];
    pod_status st = pod_experiment_step_lay(experiment, &run_case, c->request, c->setup,
                                            &c->candidates[best->candidate].mesh, err);
    if (st == POD_OK) {
        st = pod_experiment_step_run(experiment, &run_case, chip, NULL, &result, err);
    }
    if (st == POD_OK) {
        st = pod_experiment_step_faults_find(experiment, &run_case, chip, result.time_ps, &faults,
                                             err);
    }
    if (st == POD_OK) {
        (void)snprintf(what, sizeof what, "%s takes ", best->mesh);
        pod_step_breakdown(&run_case, chip, &result, &faults, &breakdown);
        pod_step_faults_note(findings, what, &breakdown, &faults.found);
    }
    pod_experiment_step_faults_fini(&faults);
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    return st;
}

/* The table, or what of it has not come yet. */
static pod_status print(comparison *c, pod_error *err)
{
    const bool narrow = pod_cli_is_narrow(c->cli);
    const bool come = c->shown > 0;
    pod_findings *findings = &c->findings;
    pod_status st = c->table_status;
    if (st != POD_OK && err != NULL) {
        *err = c->table_error;
    }
    if (st == POD_OK && c->emit == NULL) {
        say_settings(c, findings);
        st = table_new(c, &c->emit, err);
    }
    for (int i = 0; i < c->count && st == POD_OK; i++) {
        const bool timed = has_figures(&c->outcomes[i]);
        if (timed ? !come : !narrow) {
            emit_row(c, c->emit, i + 1, &c->outcomes[i],
                     pod_experiment_step_limit(&c->outcomes[i]));
        }
    }
    if (st == POD_OK) {
        if (narrow) {
            note_rows(c, findings);
        }
        say_why(c, findings);
        st = note_faults(c, findings, err);
    }
    if (st == POD_OK) {
        st = pod_cli_report(c->cli, c->emit, findings, err);
    }
    return st;
}

/* ---- rows that come ---- */

/* A row at least as wide as what will come of a layout: times are longer than its bound, but seldom twice as long; no
 * limit has a longer name than host. */
static void emit_sample(const comparison *c, const pod_experiment_step_outcome *bounded)
{
    static const double LONGER = 2;
    pod_experiment_step_outcome sample = *bounded;
    const double most_s = LONGER * bounded->figures.step_time_s;
    if (has_figures(&sample)) {
        sample.figures.step_time_s = most_s;
        sample.compute_s = most_s;
        sample.exposed_ici_s = most_s;
        sample.exposed_dcn_s = most_s;
        sample.exposed_host_s = most_s;
        sample.idle_s = most_s;
        emit_row(c, c->emit, c->count, &sample, "host");
        sample.slower = 1;
    }
    if (!pod_cli_is_narrow(c->cli)) {
        emit_row(c, c->emit, c->count, &sample, "host");
    }
}

/* Bounds are known: columns are as wide as these need, and their headings come. */
static void hear_bounds(void *context, const pod_experiment_step_outcome *outcomes, int count)
{
    comparison *c = context;
    c->table_status = table_new(c, &c->emit, &c->table_error);
    if (c->table_status != POD_OK) {
        return;
    }
    say_settings(c, &c->findings);
    for (int i = 0; i < count; i++) {
        emit_sample(c, &outcomes[i]);
    }
    pod_cli_rows_begin(c->cli, c->emit, &c->findings);
    pod_cli_rows_next(c->cli, c->emit);
}

static void hear_row(void *context, const pod_experiment_step_outcome *outcome)
{
    comparison *c = context;
    if (c->emit != NULL) {
        emit_row(c, c->emit, ++c->shown, outcome, pod_experiment_step_limit(outcome));
        pod_cli_rows_next(c->cli, c->emit);
    }
}

static pod_status search(comparison *c, pod_error *err)
{
    const bool csv = c->cli->common.format == POD_FORMAT_CSV; /* which has rows that can't run */
    const pod_experiment_search_listener listener = {
        .context = c, .bounded = hear_bounds, .found = hear_row};
    return pod_experiment_search(&c->cli->experiment, c->candidates, c->count, c->top,
                                 pod_cli_rows_come(c->cli) && !csv ? &listener : NULL, c->outcomes,
                                 err);
}

/* Bars of the layouts that run, the fastest on top. */
static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    enum { BARS_MAX = 40 };
    const comparison *c = figures;
    pod_plot_step_row rows[BARS_MAX];
    char title[384];
    int count = 0;
    for (int i = 0; i < c->count && count < BARS_MAX; i++) {
        const pod_experiment_step_outcome *outcome = &c->outcomes[i];
        if (!has_figures(outcome)) {
            continue;
        }
        rows[count] = pod_cli_plot_step(outcome);
        const char *over = outcome->dcn_mesh[0] != '\0' ? " over slices " : "";
        (void)snprintf(rows[count].label, sizeof rows[count].label, "%.60s%s%.60s", outcome->mesh,
                       over, outcome->dcn_mesh);
        count++;
    }
    (void)snprintf(title, sizeof title, "%.160s on %s", c->request->model.name,
                   c->setup->slice.name);
    return pod_plot_steps(plot, title, rows, count, err);
}

/* --top K, all, or by how many layouts there are. */
static pod_status read_top(comparison *c, pod_error *err)
{
    enum { ALL_UP_TO = 40, TOP = 10 };
    int64_t top = 0;
    const char *text = c->texts->top;
    c->top = text == NULL && c->count > ALL_UP_TO ? TOP : 0;
    if (c->top > 0) {
        pod_cli_say(c->cli,
                    "%d layouts: those that can't be among the %d fastest are not simulated; "
                    "--top all simulates every one",
                    c->count, c->top);
    }
    if (text == NULL || strcmp(text, "all") == 0) {
        return POD_OK;
    }
    POD_TRY(pod_parse_i64(text, "--top", 1, INT32_MAX, &top, err));
    c->top = (int)(top < c->count ? top : c->count);
    return POD_OK;
}

static void say_idle(const comparison *c)
{
    int32_t size[POD_MESH_AXES];
    int data_slices = 1;
    for (int axis = 0; axis < POD_MESH_AXES; axis++) {
        size[axis] = 1;
    }
    for (int i = 0; i < c->count; i++) {
        const pod_logical_mesh *mesh = &c->candidates[i].mesh;
        for (int k = 0; k < mesh->naxes; k++) {
            const int32_t all = mesh->size[k] * mesh->dcn_size[k];
            size[mesh->axis[k]] = all > size[mesh->axis[k]] ? all : size[mesh->axis[k]];
            if (mesh->axis[k] == POD_MESH_DATA && mesh->dcn_size[k] > data_slices) {
                data_slices = mesh->dcn_size[k];
            }
        }
    }
    pod_step_idle_say(c->cli, c->texts, c->recipe->given, c->request, size, c->setup->slice.nslices,
                      data_slices);
}

static pod_status compare(comparison *c, pod_error *err)
{
    pod_status st = list_candidates(c, err);
    if (st == POD_OK) {
        say_idle(c);
        st = read_top(c, err);
    }
    if (st == POD_OK) {
        st = search(c, err);
    }
    if (st == POD_OK) {
        for (int i = 0; i < c->count; i++) {
            pod_step_numbers_explain(c->cli, &c->outcomes[i]);
            c->outcomes[i].candidate = i;
        }
        pod_experiment_outcomes_sort(c->outcomes, c->count);
        st = print(c, err);
    }
    if (st == POD_OK) {
        st = check_any_runs(c, err);
    }
    if (st == POD_OK) {
        st = pod_cli_plot_write(c->cli, add_plot, c, err);
    }
    for (int i = 0; i < c->count && st == POD_OK; i++) {
        st = pod_experiment_step_verdict(&c->outcomes[i], err);
    }
    pod_findings_fini(&c->findings);
    pod_emit_free(c->emit);
    free(c->outcomes);
    free(c->candidates);
    return st;
}

/* Without --mesh the recipe's layout is one of many: name it. */
static void say_layout(const comparison *c)
{
    char mesh[POD_MESH_TEXT_MAX];
    pod_logical_mesh logical;
    if (c->recipe->given && c->texts->meshes.count == 0
        && pod_step_mesh_read(c->recipe, c->texts, NULL, &c->setup->slice, &logical, NULL)
               == POD_OK) {
        pod_cli_say(c->cli, "all layouts are tried; the recipe's is --mesh %s",
                    pod_logical_mesh_print(&logical, mesh, sizeof mesh));
    }
}

/* The options are read; texts have the recipe's values, too. */
static pod_status compare_texts(pod_cli *cli, const pod_step_texts *texts,
                                const pod_step_recipe *recipe, pod_error *err)
{
    if (texts->meshes.count == 0 && pod_step_text(texts, "dcn-mesh") != NULL && !recipe->given) {
        return pod_fail(err, POD_E_USAGE,
                        "--dcn-mesh needs the mesh that it multiplies; give --mesh too");
    }
    pod_experiment_step_request request;
    pod_cli_targets targets = {0};
    pod_status st = pod_step_request_read(&request, texts, recipe, cli, err);
    if (st == POD_OK) {
        cli->common.hosts_work = pod_experiment_step_has_input(&request);
        st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    }
    if (st == POD_OK) {
        pod_step_recipe_clock(recipe, &targets);
        st = pod_step_recipe_batch(recipe, texts, cli, &targets.setup[0].slice, &request, err);
    }
    if (st == POD_OK) {
        comparison c = {.cli = cli,
                        .texts = texts,
                        .recipe = recipe,
                        .request = &request,
                        .setup = &targets.setup[0]};
        say_layout(&c);
        st = compare(&c, err);
    }
    pod_cli_targets_fini(&targets);
    return st;
}

/* clang-format off */
static const pod_cli_option options[] = {
    {"mesh", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_step_texts, meshes), "AXIS=N,...",
     "a layout to compare (repeatable; default: all of data, fsdp and tensor that JAX places)",
     .group = "Layout", .matters = true},
    {"top", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_step_texts, top), "K|all",
     "how many of the fastest need figures (default: 10 beyond 40 layouts, else all)",
     .group = "Layout", .matters = true},
};
/* clang-format on */

pod_status pod_cmd_compare(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_step_texts texts = pod_step_texts_make();
    pod_step_recipe recipe = {0};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --model MODEL --batch N [--mesh AXIS=N,... ...]",
        .examples =
            "--slice v5p:4x4x4 --model llama3.1-8b --batch 256 --seq 4096\n"
            "--slice v5p:2x2x4 --model llama3.1-8b --batch 64 --seq 2048 --split-axes\n"
            "--slice v5e:4x4 --model mlp:layers=2,d_model=512,d_ff=2048 --batch 512 --data none\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_DCN | POD_CLI_RATES
                  | POD_CLI_DATA | POD_CLI_SEED | POD_CLI_EXPLAIN | POD_CLI_PLOT | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &texts,
        .shared = &texts.said,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    pod_status st = pod_step_recipe_read(&recipe, &texts, cli, err);
    if (st == POD_OK) {
        st = compare_texts(cli, &texts, &recipe, err);
    }
    pod_step_recipe_fini(&recipe);
    return st;
}
