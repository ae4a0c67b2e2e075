/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of batches whose sequences differ in length: what is compiled anew, and what padding to buckets saves. */
#include "base/text.h"
#include "cli/step.h"
#include "cli/tables.h"

#include "base/units.h"
#include "experiment/step_best.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, LEAST_BUCKET = 128, UNIT = 512 };

static const char *const way_names[WAYS] = {"as they come", "multiples of 512", "powers of two",
                                            "the longest"};

/* What a row shows. */
typedef struct shapes_row {
    const char *padding;
    int64_t shapes;
    double compile_s;
    double run_s;
    double total_s;
    double padded_frac; /* of all tokens of the steps */
} shapes_row;

#define AT(field) POD_FIELD(shapes_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "padding", AT(padding)},
    {.name = "shapes", AT(shapes)},
    {.name = "compile_s", .title = "compile", .unit = "s", .decimals = 1, AT(compile_s)},
    {.name = "run_s", .title = "run", .unit = "s", .decimals = 1, AT(run_s)},
    {.name = "total_s", .title = "total", .unit = "s", .decimals = 1, AT(total_s)},
    {.name = "padded_frac", .title = "padded tokens", .unit = "%", .decimals = 1, .percent = true, AT(padded_frac)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

pod_status pod_step_shapes_read(pod_cli *cli, const pod_step_texts *texts, pod_step_shapes *shapes,
                                pod_error *err)
{
    static const char *const names[] = {"seq", "steps"};
    pod_cli_file file = {.path = texts->shapes};
    pod_table *table = NULL;
    int column[2] = {0, 0};
    if (texts->shapes == NULL) { /* --steps may be for decode: the request says so */
        return texts->compile_s > 0
                   ? pod_fail(err, POD_E_USAGE, "--compile-s is for --shapes FILE; give it, too")
                   : POD_OK;
    }
    if (texts->steps == 0 || texts->compile_s <= 0) {
        return pod_fail(err, POD_E_USAGE,
                        "--shapes needs --steps N and --compile-s T, the seconds that a program "
                        "of one shape takes to compile");
    }
    pod_status st = pod_cli_read(cli, &file, 1, err);
    POD_THEN(st, pod_table_parse(file.path, file.data, file.size, &table, err));
    POD_THEN(st, pod_table_expect(table, names, 2, false, err));
    if (st == POD_OK) {
        column[0] = pod_table_column(table, names[0]);
        column[1] = pod_table_column(table, names[1]);
        st = pod_table_unique(table, column, 1, err);
    }
    shapes->count = st == POD_OK ? pod_table_rows(table) : 0;
    if (st == POD_OK && (shapes->count < 1 || shapes->count > POD_STEP_SHAPES_MAX)) {
        st = pod_fail_at(err, POD_E_TABLE, file.path, 1, 1, "has %d shapes; give 1 to %d",
                         shapes->count, (int)POD_STEP_SHAPES_MAX);
    }
    for (int i = 0; i < shapes->count && st == POD_OK; i++) {
        st = pod_table_i64(table, i, column[0], 1, INT32_MAX / 2, &shapes->seq[i], err);
        POD_THEN(st, pod_table_double(table, i, column[1], 1e-9, 1e15, &shapes->weight[i], err));
        shapes->longest =
            st == POD_OK && shapes->seq[i] > shapes->longest ? shapes->seq[i] : shapes->longest;
    }
    pod_table_free(table);
    pod_cli_files_free(&file, 1);
    return st;
}

/* The length that a sequence is padded to. */
static int64_t padded_to(const pod_step_shapes *shapes, int way, int64_t seq)
{
    int64_t power = LEAST_BUCKET;
    while (power < seq) {
        power *= 2;
    }
    const int64_t lengths[WAYS] = {seq, pod_round_up(seq, UNIT), power, shapes->longest};
    return lengths[way];
}

/* Steps that were simulated, each once. */
typedef struct shapes_known {
    int count;
    int64_t seq[WAYS * POD_STEP_SHAPES_MAX];
    double step_s[WAYS * POD_STEP_SHAPES_MAX];
} shapes_known;

static pod_status step_time(pod_cli *cli, pod_experiment_step_request *request,
                            const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                            shapes_known *known, double *step_s, pod_error *err)
{
    for (int i = 0; i < known->count; i++) {
        if (known->seq[i] == request->seq) {
            *step_s = known->step_s[i];
            return POD_OK;
        }
    }
    pod_experiment_step_case run_case = {.asked = NULL};
    pod_experiment_step_outcome outcome;
    pod_step_result result = {0};
    pod_status st =
        pod_experiment_step_lay(&cli->experiment, &run_case, request, setup, logical, err);
    POD_THEN(st, pod_experiment_step(&cli->experiment, &run_case, &setup->chip, NULL, &result,
                                     &outcome, err));
    if (st == POD_OK) {
        *step_s = outcome.figures.step_time_s;
        known->seq[known->count] = request->seq;
        known->step_s[known->count++] = *step_s;
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    return st;
}

static double weights_sum(const pod_step_shapes *shapes)
{
    double sum = 0;
    for (int i = 0; i < shapes->count; i++) {
        sum += shapes->weight[i];
    }
    return sum;
}

/* Lengths that differ after padding. */
static int64_t shapes_count(const pod_step_shapes *shapes, int way)
{
    int64_t count = 0;
    for (int i = 0; i < shapes->count; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) {
            seen =
                seen
                || padded_to(shapes, way, shapes->seq[i]) == padded_to(shapes, way, shapes->seq[j]);
        }
        count += seen ? 0 : 1;
    }
    return count;
}

/* A way of padding that does not fit HBM, or whose length doesn't divide, is an error that names the length. */
static pod_status way_run(pod_cli *cli, const pod_step_texts *texts, const pod_step_shapes *shapes,
                          int way, pod_experiment_step_request *request,
                          const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                          shapes_known *known, shapes_row *row, pod_error *err)
{
    const double each = (double)texts->steps / weights_sum(shapes);
    double real = 0;
    double padded = 0;
    *row = (shapes_row){.padding = way_names[way], .shapes = shapes_count(shapes, way)};
    for (int i = 0; i < shapes->count; i++) {
        double step_s = 0;
        request->seq = padded_to(shapes, way, shapes->seq[i]);
        POD_TRY(step_time(cli, request, setup, logical, known, &step_s, err));
        row->run_s += shapes->weight[i] * each * step_s;
        real += shapes->weight[i] * (double)shapes->seq[i];
        padded += shapes->weight[i] * (double)request->seq;
    }
    row->compile_s = (double)row->shapes * texts->compile_s;
    row->total_s = row->compile_s + row->run_s;
    row->padded_frac = 1 - real / padded;
    return POD_OK;
}

static void best_say(const shapes_row *rows, pod_findings *findings)
{
    int best = 0;
    for (int way = 1; way < WAYS; way++) {
        best = rows[way].total_s < rows[best].total_s ? way : best;
    }
    if (best == 0) {
        pod_findings_say(findings, POD_FINDING_BELOW, "shapes",
                         "No padding saves time: each costs more than its fewer programs save");
        return;
    }
    pod_findings_say(findings, POD_FINDING_BELOW, "shapes",
                     "Padding to %s saves %.1f s of %.1f s (%.1f %%): %" PRId64
                     " program%s instead of %" PRId64,
                     way_names[best], rows[0].total_s - rows[best].total_s, rows[0].total_s,
                     100 * (1 - rows[best].total_s / rows[0].total_s), rows[best].shapes,
                     pod_text_plural(rows[best].shapes), rows[0].shapes);
}

pod_status pod_step_shapes_run(pod_cli *cli, const pod_step_texts *texts,
                               const pod_step_shapes *shapes, pod_experiment_step_request *request,
                               const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                               pod_error *err)
{
    pod_findings findings = {0};
    pod_emit *emit = NULL;
    shapes_row rows[WAYS];
    shapes_known *known = calloc(1, sizeof *known);
    pod_status st = known != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the shapes");
    POD_THEN(st, pod_emit_new(cli->common.format, "step", columns, NCOLUMNS, &emit, err));
    if (st == POD_OK) {
        pod_findings_say(&findings, POD_FINDING_ABOVE, "settings",
                         "podsim step: %s, %s, %s, %" PRId64 " steps of %d length%s",
                         setup->slice.name, request->model.name, pod_step_mode_name(request->mode),
                         texts->steps, shapes->count, pod_text_plural(shapes->count));
    }
    for (int way = 0; way < WAYS && st == POD_OK; way++) {
        st = way_run(cli, texts, shapes, way, request, setup, logical, known, &rows[way], err);
        if (st == POD_OK) {
            pod_emit_fields(emit, &rows[way], NCOLUMNS);
        }
    }
    if (st == POD_OK) {
        best_say(rows, &findings);
    }
    POD_THEN(st, pod_cli_report(cli, emit, &findings, err));
    pod_emit_free(emit);
    free(known);
    pod_findings_fini(&findings);
    return st;
}
