/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a step: what came out of one layout. */
#include "cli/step.h"

#include <string.h>

/* clang-format off */
static const pod_emit_column all_columns[POD_STEP_COLUMNS] = {
    {.name = "slice", .table_hidden = true},
    {.name = "model", .table_hidden = true},
    {.name = "mesh"},
    {.name = "dcn_mesh", .title = "over slices"},
    {.name = "placement", .minor = 6},
    {.name = "batch", .table_hidden = true},
    {.name = "seq", .table_hidden = true},
    {.name = "dtype", .table_hidden = true},
    {.name = "remat", .table_hidden = true},
    {.name = "mode", .table_hidden = true},
    {.name = "step_time_s", .title = "step", .unit = "s", .decimals = 6},
    {.name = "tokens_per_s_per_chip", .title = "tokens/s", .unit = "per chip", .decimals = 0, .minor = 2},
    {.name = "model_tflops_per_chip", .title = "model", .unit = "TFLOP/s", .decimals = 1, .minor = 4},
    {.name = "mfu_frac", .title = "MFU", .unit = "%", .decimals = 1, .percent = true},
    {.name = "compute_s", .title = "compute", .unit = "s", .decimals = 6, .minor = 3},
    {.name = "exposed_ici_s", .title = "exposed ICI", .unit = "s", .decimals = 6},
    {.name = "exposed_dcn_s", .title = "exposed DCN", .unit = "s", .decimals = 6},
    {.name = "exposed_host_s", .title = "exposed host", .unit = "s", .decimals = 6, .minor = 1},
    {.name = "idle_s", .title = "idle", .unit = "s", .decimals = 6, .minor = 1},
    {.name = "hbm_bytes_per_chip", .title = "HBM", .unit = "B", .table_hidden = true},
    {.name = "hbm_frac", .title = "HBM used", .unit = "%", .decimals = 1, .percent = true},
    {.name = "data", .minor = 9},
    {.name = "max_rel_err", .title = "relative error", .decimals = 5, .minor = 9},
    {.name = "wrong", .minor = 7},
};
/* clang-format on */

enum { FIRST_FIGURE = 10, HOST_COLUMN = 17 };

void pod_step_columns(pod_emit_column *columns, const pod_experiment_step_request *request,
                      bool several_slices)
{
    memcpy(columns, all_columns, sizeof all_columns);
    columns[HOST_COLUMN].table_hidden = !pod_experiment_step_has_input(request);
    for (int i = 0; i < POD_STEP_COLUMNS && !several_slices; i++) {
        if (strstr(columns[i].name, "dcn") != NULL) {
            columns[i].table_hidden = true;
        }
    }
}

static void emit_figures(pod_emit *emit, const pod_experiment_step_outcome *outcome)
{
    const pod_step_figures *figures = &outcome->figures;
    pod_emit_double(emit, figures->step_time_s);
    pod_emit_double(emit, figures->tokens_per_s_per_chip);
    pod_emit_double(emit, figures->model_tflops_per_chip);
    pod_emit_double(emit, figures->mfu_frac);
    pod_emit_double(emit, outcome->compute_s);
    pod_emit_double(emit, outcome->exposed_ici_s);
    pod_emit_double(emit, outcome->exposed_dcn_s);
    pod_emit_double(emit, outcome->exposed_host_s);
    pod_emit_double(emit, outcome->idle_s);
    pod_emit_i64(emit, figures->hbm_bytes_per_chip);
    pod_emit_double(emit, figures->hbm_frac);
    pod_emit_text(emit, outcome->data != 0 ? "real" : "none");
    if (outcome->data != 0) {
        pod_emit_double(emit, outcome->numbers.max_rel_err);
        pod_emit_i64(emit, outcome->numbers.wrong);
    } else {
        pod_emit_none(emit);
        pod_emit_none(emit);
    }
}

static void emit_text(pod_emit *emit, const char *text)
{
    if (text[0] != '\0') {
        pod_emit_text(emit, text);
    } else {
        pod_emit_none(emit);
    }
}

void pod_step_emit(pod_emit *emit, const pod_experiment_step_request *request,
                   const pod_slice *slice, const pod_experiment_step_outcome *outcome)
{
    pod_emit_text(emit, slice->name);
    pod_emit_text(emit, request->model.name);
    emit_text(emit, outcome->mesh);
    emit_text(emit, outcome->dcn_mesh);
    emit_text(emit, outcome->placement);
    if (outcome->batch > 0) {
        pod_emit_i64(emit, outcome->batch);
    } else {
        pod_emit_none(emit);
    }
    pod_emit_i64(emit, request->seq);
    pod_emit_text(emit, pod_dtype_name(request->dtype));
    pod_emit_text(emit,
                  outcome->remat[0] != '\0' ? outcome->remat : pod_remat_name(request->remat));
    pod_emit_text(emit, pod_step_mode_name(request->mode));
    if (outcome->status == POD_OK && outcome->slower == 0) {
        emit_figures(emit, outcome);
        return;
    }
    for (int i = FIRST_FIGURE; i < POD_STEP_COLUMNS; i++) {
        pod_emit_none(emit);
    }
}
