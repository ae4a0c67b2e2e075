/* SPDX-License-Identifier: Apache-2.0 */
/* podsim compare: a step under many layouts, fastest first. */
#include "cli/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char about[] =
    "A row per layout, fastest first: those of --mesh, or all of data, fsdp and tensor that JAX\n"
    "places (with --split-axes also those that share a physical axis). Columns as in podsim step;\n"
    "layouts that can't run come last, with the reason and - for their figures.\n";

/* What the command works on. */
typedef struct comparison {
    pod_cli *cli;
    const pod_step_order *order;
    const pod_cli_target *target;
    int count;
    pod_logical_mesh *meshes;   /* meshes[count] */
    pod_step_outcome *outcomes; /* outcomes[count] */
} comparison;

static pod_status list_given(comparison *c, pod_error *err)
{
    const pod_step_texts *texts = c->order->texts;
    c->count = texts->meshes.count;
    c->meshes = calloc((size_t)c->count, sizeof *c->meshes);
    if (c->meshes == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", c->count);
    }
    for (int i = 0; i < c->count; i++) {
        const pod_status st =
            pod_logical_mesh_parse(texts->meshes.text[i], texts->dcn_mesh, &c->meshes[i], err);
        if (st != POD_OK) {
            return st;
        }
        c->meshes[i].split_axes = texts->split_axes;
    }
    return POD_OK;
}

static pod_status list_layouts(comparison *c, pod_error *err)
{
    pod_status st = c->order->texts->meshes.count > 0
                        ? list_given(c, err)
                        : pod_step_layouts(&c->target->slice, c->order->texts->split_axes,
                                           &c->meshes, &c->count, err);
    if (st == POD_OK) {
        c->outcomes = calloc((size_t)c->count + 1, sizeof *c->outcomes);
        st = c->outcomes != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the rows");
    }
    return pod_par_agree(c->cli->par, st, err);
}

/* Reasons that make a row; anything else ends the command. */
static bool is_reason(pod_status st)
{
    return st == POD_E_INVALID || st == POD_E_NOFIT || st == POD_E_RANGE;
}

static void note_reason(pod_step_outcome *outcome, const pod_step_order *order, pod_status st,
                        const pod_error *failure)
{
    outcome->status = st;
    outcome->batch = order->batch;
    (void)snprintf(outcome->placement, sizeof outcome->placement, "%s",
                   order->texts->placement != NULL ? order->texts->placement : "jax");
    memcpy(outcome->reason, failure->text, sizeof outcome->reason);
}

/* The mesh as given or, once it is laid, with its sizes filled in. */
static void note_mesh(pod_step_outcome *outcome, const pod_logical_mesh *logical)
{
    (void)pod_logical_mesh_print(logical, outcome->mesh, sizeof outcome->mesh);
    (void)pod_logical_mesh_print_dcn(logical, outcome->dcn_mesh, sizeof outcome->dcn_mesh);
}

static pod_status make_case(const comparison *c, int i, pod_par *par, pod_step_case *run_case,
                            pod_error *err)
{
    return c->order->best
               ? pod_step_case_best(run_case, c->cli, par, c->order, c->target, &c->meshes[i], err)
               : pod_step_case_init(run_case, c->order, c->target, &c->meshes[i], NULL, err);
}

/* Layout i, time only, on a rank by itself; or only built, to learn what data would need. */
static pod_status run_alone(comparison *c, int i, pod_par *self, bool only_build,
                            int64_t *data_bytes, pod_error *err)
{
    pod_step_case run_case;
    pod_step_result result = {0};
    pod_error failure = {0};
    pod_step_outcome *outcome = &c->outcomes[i];
    note_mesh(outcome, &c->meshes[i]);
    pod_status st = only_build ? pod_step_case_init(&run_case, c->order, c->target, &c->meshes[i],
                                                    NULL, &failure)
                               : make_case(c, i, self, &run_case, &failure);
    if (st == POD_OK) {
        note_mesh(outcome, &run_case.mesh.logical);
        *data_bytes =
            run_case.work.data_bytes > *data_bytes ? run_case.work.data_bytes : *data_bytes;
    }
    if (st == POD_OK && !only_build) {
        st = pod_step_case_run(&run_case, c->cli, self, &c->target->chip, &result, &failure);
    }
    if (st == POD_OK && !only_build) {
        pod_step_outcome_get(&run_case, &c->target->chip, &result, NULL, outcome);
    }
    pod_step_result_fini(&result);
    pod_step_case_fini(&run_case);
    if (is_reason(st)) {
        note_reason(outcome, c->order, st, &failure);
        return POD_OK;
    }
    if (st != POD_OK && err != NULL) {
        *err = failure;
    }
    return st;
}

/* Every rank does its share of the layouts by itself; then all know all. */
static pod_status run_shares(comparison *c, bool only_build, int64_t *data_bytes, pod_error *err)
{
    pod_par *par = c->cli->par;
    pod_par *self = NULL;
    *data_bytes = 0;
    memset(c->outcomes, 0, ((size_t)c->count + 1) * sizeof *c->outcomes);
    pod_status st = pod_par_self_new(&self, err);
    for (int i = pod_par_rank(par); i < c->count && st == POD_OK; i += pod_par_size(par)) {
        st = run_alone(c, i, self, only_build, data_bytes, err);
    }
    pod_par_self_free(self);
    st = pod_par_agree(par, st, err);
    if (st != POD_OK) {
        return st;
    }
    pod_par_max_i64(par, data_bytes, 1);
    /* outcomes of others are all zero bits, so a sum of words is a copy of the one that isn't */
    _Static_assert(sizeof(pod_step_outcome) % sizeof(int64_t) == 0, "outcomes travel as words");
    for (int i = 0; i < c->count; i++) {
        pod_par_sum_i64(par, (int64_t *)(void *)&c->outcomes[i],
                        (int)(sizeof(pod_step_outcome) / sizeof(int64_t)));
    }
    return POD_OK;
}

/* Layout i with real numbers, on all ranks together. */
static pod_status run_data(comparison *c, int i, pod_reference **reference, pod_error *err)
{
    pod_step_outcome *outcome = &c->outcomes[i];
    pod_step_case run_case;
    pod_step_result result = {0};
    pod_step_numbers numbers;
    pod_status st = pod_par_agree(c->cli->par, make_case(c, i, c->cli->par, &run_case, err), err);
    if (st == POD_OK && *reference == NULL) {
        st = pod_step_reference_make(c->cli, &run_case, reference, err);
    }
    if (st == POD_OK) {
        st = pod_step_case_run_data(&run_case, c->cli, &c->target->chip, *reference, &result,
                                    &numbers, err);
    }
    if (st == POD_OK) {
        pod_step_outcome_get(&run_case, &c->target->chip, &result, &numbers, outcome);
    }
    pod_step_result_fini(&result);
    pod_step_case_fini(&run_case);
    return st;
}

static pod_status run_all(comparison *c, pod_error *err)
{
    const char *data = c->cli->common.data;
    int64_t data_bytes = 0;
    const bool timed_only = c->order->model.kind == POD_MODEL_TRANSFORMER;
    if (timed_only || (data != NULL && strcmp(data, "none") == 0)) {
        return run_shares(c, false, &data_bytes, err);
    }
    pod_status st = run_shares(c, true, &data_bytes, err);
    if (st != POD_OK) {
        return st;
    }
    if (!pod_step_wants_data(c->cli, data_bytes)) {
        return run_shares(c, false, &data_bytes, err);
    }
    pod_reference *reference = NULL;
    for (int i = 0; i < c->count && st == POD_OK; i++) {
        if (c->outcomes[i].status == POD_OK) {
            st = run_data(c, i, &reference, err);
        }
    }
    pod_reference_free(reference);
    return st;
}

/* ---- the table ---- */

static bool goes_before(const pod_step_outcome *a, const pod_step_outcome *b)
{
    if ((a->status == POD_OK) != (b->status == POD_OK)) {
        return a->status == POD_OK;
    }
    return a->status == POD_OK && a->time_ps < b->time_ps;
}

/* Fastest first; layouts that are as fast stay in their order. */
static void sort_outcomes(comparison *c)
{
    for (int i = 1; i < c->count; i++) {
        const pod_step_outcome moved = c->outcomes[i];
        int j = i;
        for (; j > 0 && goes_before(&moved, &c->outcomes[j - 1]); j--) {
            c->outcomes[j] = c->outcomes[j - 1];
        }
        c->outcomes[j] = moved;
    }
}

static const char *status_word(int64_t status)
{
    return status == POD_OK ? "ok" : status == POD_E_NOFIT ? "does not fit" : "can't run";
}

static pod_status print(comparison *c, pod_error *err)
{
    enum { NCOLUMNS = 1 + POD_STEP_COLUMNS + 2 };
    pod_emit_column columns[NCOLUMNS] = {{.name = "rank"}};
    const pod_slice *slice = &c->target->slice;
    pod_emit *emit = NULL;
    pod_step_columns(columns + 1, c->order, slice->nslices > 1);
    columns[NCOLUMNS - 2] = (pod_emit_column){.name = "status"};
    columns[NCOLUMNS - 1] = (pod_emit_column){.name = "reason"};
    pod_status st = pod_emit_new(c->cli->common.format, "compare", columns, NCOLUMNS, &emit, err);
    if (st == POD_OK) {
        pod_emit_heading(emit, "podsim compare: %s, %d chips, %s, %s, %s", slice->name,
                         slice->nchips * slice->nslices, c->order->model.name,
                         pod_dtype_name(c->order->dtype), pod_step_mode_name(c->order->mode));
    }
    for (int i = 0; i < c->count && st == POD_OK; i++) {
        const pod_step_outcome *outcome = &c->outcomes[i];
        if (outcome->status == POD_OK) {
            pod_emit_i64(emit, i + 1);
        } else {
            pod_emit_none(emit);
        }
        pod_step_emit(emit, c->order, slice, outcome);
        pod_emit_text(emit, status_word(outcome->status));
        if (outcome->status == POD_OK) {
            pod_emit_none(emit);
        } else {
            pod_emit_text(emit, outcome->reason);
        }
    }
    if (st == POD_OK) {
        st = pod_cli_finish(c->cli, emit, err);
    }
    pod_emit_free(emit);
    return st;
}

static pod_status compare(pod_cli *cli, const pod_step_order *order, const pod_cli_target *target,
                          pod_error *err)
{
    comparison c = {.cli = cli, .order = order, .target = target};
    pod_status st = list_layouts(&c, err);
    if (st == POD_OK) {
        st = run_all(&c, err);
    }
    if (st == POD_OK) {
        sort_outcomes(&c);
        st = print(&c, err);
    }
    for (int i = 0; i < c.count && st == POD_OK; i++) {
        st = pod_step_verdict(&c.outcomes[i], err);
    }
    free(c.outcomes);
    free(c.meshes);
    return st;
}

pod_status pod_cmd_compare(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_step_texts texts = {0};
    enum { OWN = 1 };
    /* clang-format off */
    pod_cli_option options[OWN + POD_STEP_SHARED_OPTIONS] = {
        {"mesh", 0, POD_CLI_MANY, &texts.meshes, "AXIS=N,...",
         "a layout to compare (repeatable; default: all of data, fsdp and tensor that JAX places)"},
    };
    /* clang-format on */
    pod_step_shared_options(&texts, options + OWN);
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --model MODEL --batch N [--mesh AXIS=N,... ...]",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_DCN | POD_CLI_RATES
                  | POD_CLI_DATA | POD_CLI_SEED | POD_CLI_EXPLAIN,
        .options = options,
        .noptions = OWN + POD_STEP_SHARED_OPTIONS,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    pod_step_order order;
    pod_cli_targets targets = {0};
    st = pod_step_order_read(&order, &texts, cli, err);
    if (st == POD_OK) {
        cli->common.hosts_work = pod_step_has_input(&order);
        st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    }
    if (st == POD_OK) {
        st = compare(cli, &order, &targets.target[0], err);
    }
    pod_cli_targets_fini(&targets);
    return st;
}
