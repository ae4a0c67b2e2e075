/* SPDX-License-Identifier: Apache-2.0 */
/* Inference with several batches: a row each, and the largest that is quick enough. */
#include "cli/step.h"

#include "base/units.h"
#include "experiment/step_best.h"
#include "experiment/step_limit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a row shows. */
typedef struct batch_row {
    const char *slice;
    const char *model;
    const char *mode;
    const char *dtype;
    int64_t seq;
    double ms_per_token; /* NaN in prefill */
    double ttft_ms;      /* NaN elsewhere */
    double tokens_per_s;
    double hbm_rate_frac;
    int64_t cache_bytes_per_chip;
    const char *limit;
    const char *status;
    pod_experiment_step_outcome o;
} batch_row;

#define AT(field) POD_FIELD(batch_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "model", .table_hidden = true, AT(model)},
    {.name = "mesh", AT(o.mesh)},
    {.name = "batch", AT(o.batch)},
    {.name = "seq", .table_hidden = true, AT(seq)},
    {.name = "dtype", .table_hidden = true, AT(dtype)},
    {.name = "mode", .table_hidden = true, AT(mode)},
    {.name = "status", .table_hidden = true, AT(status)},
    {.name = "step_time_s", .table_hidden = true, AT(o.figures.step_time_s)},
    {.name = "ms_per_token", .title = "a token", .unit = "ms", .decimals = 3, AT(ms_per_token)},
    {.name = "ttft_ms", .title = "first token", .unit = "ms", .decimals = 3, AT(ttft_ms)},
    {.name = "tokens_per_s", .title = "tokens/s", .decimals = 0, AT(tokens_per_s)},
    {.name = "tokens_per_s_per_chip", .title = "tokens/s", .unit = "per chip", .decimals = 0,
     AT(o.figures.tokens_per_s_per_chip)},
    {.name = "hbm_rate_frac", .title = "HBM rate", .unit = "%", .decimals = 1, .percent = true, AT(hbm_rate_frac)},
    {.name = "cache_bytes_per_chip", .title = "cache", .unit = "B a chip", AT(cache_bytes_per_chip)},
    {.name = "hbm_frac", .title = "HBM used", .unit = "%", .decimals = 1, .percent = true, AT(o.figures.hbm_frac)},
    {.name = "limit", AT(limit)},
};
/* clang-format on */
#undef AT
enum {
    NCOLUMNS = sizeof columns / sizeof columns[0],
    SHOWN_IF_NONE = 8,
    MS_COLUMN = 9,
    TTFT_COLUMN = 10
};

pod_status pod_step_batches_take(pod_step_batches *batches, pod_step_texts *texts, pod_error *err)
{
    int at = 0;
    while (strcmp(pod_step_shared_option[at].name, "batch") != 0) {
        at++;
    }
    const char *text = texts->said.text[at];
    if (text == NULL || (strchr(text, ',') == NULL && texts->max_ms <= 0)) {
        return POD_OK;
    }
    for (const char *from = text; from != NULL;) {
        char number[24];
        const size_t size = strcspn(from, ",");
        if (size >= sizeof number || batches->count == POD_STEP_BATCHES_MAX) {
            return pod_fail(err, POD_E_USAGE, "--batch %.40s: at most %d numbers, as 8,16,32", text,
                            (int)POD_STEP_BATCHES_MAX);
        }
        (void)snprintf(number, sizeof number, "%.*s", (int)size, from);
        if (pod_parse_i64(number, "--batch", 1, INT64_MAX, &batches->batch[batches->count++], err)
            != POD_OK) {
            return POD_E_USAGE;
        }
        from = from[size] == ',' ? from + size + 1 : NULL;
    }
    (void)snprintf(batches->first, sizeof batches->first, "%lld", (long long)batches->batch[0]);
    texts->said.text[at] = batches->first;
    return POD_OK;
}

static pod_status row_get(pod_cli *cli, const pod_experiment_step_request *request,
                          const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                          batch_row *row, pod_error *err)
{
    pod_experiment_step_case run_case = {.asked = NULL};
    pod_step_result result = {0};
    pod_status st =
        pod_experiment_step_lay(&cli->experiment, &run_case, request, setup, logical, err);
    if (st == POD_OK) {
        st = pod_experiment_step(&cli->experiment, &run_case, &setup->chip, NULL, &result, &row->o,
                                 err);
    }
    if (st == POD_OK) {
        st = pod_experiment_step_limit_settle(&cli->experiment, &run_case, &setup->chip, &row->o,
                                              err);
    }
    if (st == POD_OK) {
        const double step_s = row->o.figures.step_time_s;
        const bool prefill = request->mode == POD_STEP_PREFILL;
        const double tokens = (double)row->o.batch * (prefill ? (double)request->seq : 1);
        row->ms_per_token = prefill ? (double)NAN : 1e3 * step_s;
        row->ttft_ms = prefill ? 1e3 * step_s : (double)NAN;
        row->tokens_per_s = tokens / step_s;
        row->hbm_rate_frac = pod_step_hbm_rate_frac(&run_case, &setup->chip, step_s);
        row->cache_bytes_per_chip = run_case.work.memory.by_kind[POD_MEMORY_CACHE];
        row->limit = pod_experiment_step_limit(&row->o);
        row->status = "ok";
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    return st;
}

/* The row of the largest batch that is quick enough, or -1. */
static int pick_find(const batch_row *rows, int count, double max_ms)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        const bool quick = rows[i].limit != NULL && rows[i].ms_per_token <= max_ms;
        best = quick && (best < 0 || rows[i].o.batch > rows[best].o.batch) ? i : best;
    }
    return best;
}

static void emit_row(pod_emit *emit, const batch_row *row)
{
    pod_emit_fields(emit, row, row->limit != NULL ? NCOLUMNS : SHOWN_IF_NONE);
    pod_emit_nones(emit, row->limit != NULL ? 0 : NCOLUMNS - SHOWN_IF_NONE);
}

/* A row as wide as most that will come. */
static void add_samples(pod_emit *emit, const pod_step_batches *batches,
                        const pod_experiment_step_request *request,
                        const pod_experiment_setup *setup, const pod_logical_mesh *logical)
{
    const double most_ms = 9999;
    const double most_tokens_per_s = 1e7;
    const bool prefill = request->mode == POD_STEP_PREFILL;
    batch_row row = {.ms_per_token = prefill ? (double)NAN : most_ms,
                     .ttft_ms = prefill ? most_ms : (double)NAN,
                     .tokens_per_s = most_tokens_per_s,
                     .cache_bytes_per_chip = setup->chip.hbm_usable_bytes,
                     .limit = "host"};
    pod_experiment_step_outcome_mesh(&row.o, logical);
    row.o.figures.tokens_per_s_per_chip = most_tokens_per_s;
    for (int i = 0; i < batches->count; i++) {
        row.o.batch = batches->batch[i];
        emit_row(emit, &row);
    }
}

static pod_status rows_get(pod_cli *cli, const pod_step_batches *batches,
                           pod_experiment_step_request *request, const pod_experiment_setup *setup,
                           const pod_logical_mesh *logical, batch_row *rows, pod_emit *emit,
                           pod_findings *findings, pod_error *err)
{
    pod_status st = POD_OK;
    int ran = 0;
    if (pod_cli_rows_come(cli)) {
        add_samples(emit, batches, request, setup, logical);
    }
    pod_cli_rows_begin(cli, emit, findings);
    for (int i = 0; i < batches->count; i++) {
        batch_row *row = &rows[i];
        *row = (batch_row){.slice = setup->slice.name,
                           .model = request->model.name,
                           .mode = pod_step_mode_name(request->mode),
                           .dtype = pod_dtype_name(request->dtype),
                           .seq = request->seq,
                           .status = "doesn't fit"};
        request->batch = batches->batch[i];
        pod_experiment_step_outcome_mesh(&row->o, logical);
        row->o.batch = request->batch;
        st = row_get(cli, request, setup, logical, row, err);
        if (st != POD_OK && st != POD_E_NOFIT) {
            return st;
        }
        ran += st == POD_OK ? 1 : 0;
        if (st == POD_E_NOFIT) {
            pod_findings_say(findings, POD_FINDING_BELOW, "does_not_fit",
                             "Batch %lld does not fit: %s", (long long)request->batch,
                             err != NULL ? err->text : "");
        }
        emit_row(emit, row);
        if (ran > 0) { /* else it may be that none does, which is an error alone */
            pod_cli_rows_next(cli, emit);
        }
    }
    return ran > 0 ? POD_OK : st;
}

static pod_status table_new(pod_cli *cli, pod_step_mode mode, pod_emit **emit, pod_error *err)
{
    pod_emit_column shown[NCOLUMNS];
    memcpy(shown, columns, sizeof columns);
    shown[mode == POD_STEP_PREFILL ? MS_COLUMN : TTFT_COLUMN].table_hidden = true;
    return pod_emit_new(cli->common.format, "step", shown, NCOLUMNS, emit, err);
}

static pod_status pick_say(const pod_step_batches *batches, const batch_row *rows, double max_ms,
                           pod_findings *findings, pod_error *err)
{
    const int pick = pick_find(rows, batches->count, max_ms);
    if (pick < 0) {
        return pod_fail(err, POD_E_NOFIT,
                        "no batch of %s takes at most %g ms a token; batch %lld takes %.3f",
                        batches->count == 1 ? "--batch" : "the list", max_ms,
                        (long long)rows[0].o.batch, rows[0].ms_per_token);
    }
    pod_findings_say(findings, POD_FINDING_BELOW, "pick",
                     "At most %g ms a token: batch %lld, %.3f ms, %.0f tokens/s", max_ms,
                     (long long)rows[pick].o.batch, rows[pick].ms_per_token,
                     rows[pick].tokens_per_s);
    return POD_OK;
}

pod_status pod_step_batches_run(pod_cli *cli, const pod_step_batches *batches, double max_ms,
                                pod_experiment_step_request *request,
                                const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                                pod_error *err)
{
    pod_findings findings = {0};
    pod_emit *emit = NULL;
    batch_row *rows = calloc((size_t)batches->count, sizeof *rows);
    pod_status st =
        rows != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the rows of batches");
    POD_THEN(st, table_new(cli, request->mode, &emit, err));
    if (st == POD_OK) {
        pod_findings_say(&findings, POD_FINDING_ABOVE, "settings", "podsim step: %s, %s, %s, %s",
                         setup->slice.name, request->model.name, pod_dtype_name(request->dtype),
                         pod_step_mode_name(request->mode));
        pod_step_serving_heading(&findings, request);
        st = rows_get(cli, batches, request, setup, logical, rows, emit, &findings, err);
    }
    if (st == POD_OK && max_ms > 0) {
        st = pick_say(batches, rows, max_ms, &findings, err);
    }
    POD_THEN(st, pod_cli_report(cli, emit, &findings, err));
    pod_emit_free(emit);
    free(rows);
    pod_findings_fini(&findings);
    return st;
}
