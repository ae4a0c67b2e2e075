/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a step: what came out of one layout. */
#include "cli/step.h"

#include <math.h>
#include <string.h>

/* What a row shows. */
typedef struct step_row {
    const char *slice;
    const char *model;
    int64_t seq;
    const char *dtype;
    const char *remat;
    const char *mode;
    const char *data;
    pod_experiment_step_outcome o;
} step_row;

#define AT(field) POD_FIELD(step_row, field)
/* clang-format off */
static const pod_emit_column all_columns[POD_STEP_COLUMNS] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "model", .table_hidden = true, AT(model)},
    {.name = "mesh", AT(o.mesh)},
    {.name = "dcn_mesh", .title = "over slices", AT(o.dcn_mesh)},
    {.name = "placement", .minor = 6, AT(o.placement)},
    {.name = "batch", .table_hidden = true, AT(o.batch)},
    {.name = "seq", .table_hidden = true, AT(seq)},
    {.name = "dtype", .table_hidden = true, AT(dtype)},
    {.name = "remat", .table_hidden = true, AT(remat)},
    {.name = "mode", .table_hidden = true, AT(mode)},
    {.name = "step_time_s", .title = "step", .unit = "s", .decimals = 6, AT(o.figures.step_time_s)},
    {.name = "tokens_per_s_per_chip", .title = "tokens/s", .unit = "per chip", .decimals = 0, .minor = 2,
     AT(o.figures.tokens_per_s_per_chip)},
    {.name = "model_tflops_per_chip", .title = "model", .unit = "TFLOP/s", .decimals = 1, .minor = 4,
     AT(o.figures.model_tflops_per_chip)},
    {.name = "mfu_frac", .title = "MFU", .unit = "%", .decimals = 1, .percent = true, AT(o.figures.mfu_frac)},
    {.name = "compute_s", .title = "compute", .unit = "s", .decimals = 6, .minor = 3, AT(o.compute_s)},
    {.name = "exposed_ici_s", .title = "exposed ICI", .unit = "s", .decimals = 6, AT(o.exposed_ici_s)},
    {.name = "exposed_dcn_s", .title = "exposed DCN", .unit = "s", .decimals = 6, AT(o.exposed_dcn_s)},
    {.name = "exposed_host_s", .title = "exposed host", .unit = "s", .decimals = 6, .minor = 1, AT(o.exposed_host_s)},
    {.name = "idle_s", .title = "idle", .unit = "s", .decimals = 6, .minor = 1, AT(o.idle_s)},
    {.name = "hbm_bytes_per_chip", .title = "HBM", .unit = "B", .table_hidden = true,
     AT(o.figures.hbm_bytes_per_chip)},
    {.name = "hbm_frac", .title = "HBM used", .unit = "%", .decimals = 1, .percent = true, AT(o.figures.hbm_frac)},
    {.name = "data", .minor = 9, AT(data)},
    {.name = "max_rel_err", .title = "relative error", .decimals = 5, .minor = 9, AT(o.numbers.max_rel_err)},
    {.name = "wrong", .minor = 7, AT(o.numbers.wrong)},
};
/* clang-format on */
#undef AT

enum { FIRST_FIGURE = 10, HOST_COLUMN = 17, ERROR_COLUMN = 22, WRONG_COLUMN = 23 };

void pod_step_columns(pod_emit_column *columns, const pod_experiment_step_request *request,
                      bool several_slices, pod_experiment_data data)
{
    memcpy(columns, all_columns, sizeof all_columns);
    if (data == POD_DATA_REAL) {
        columns[WRONG_COLUMN].minor = 0;
    }
    if (request->numbers) {
        columns[ERROR_COLUMN].title = "error/bound";
    }
    columns[HOST_COLUMN].table_hidden = !pod_experiment_step_has_input(request);
    for (int i = 0; i < POD_STEP_COLUMNS && !several_slices; i++) {
        if (strstr(columns[i].name, "dcn") != NULL) {
            columns[i].table_hidden = true;
        }
    }
}

void pod_step_emit(pod_emit *emit, const pod_experiment_step_request *request,
                   const pod_slice *slice, const pod_experiment_step_outcome *outcome)
{
    step_row row = {.slice = slice->name,
                    .model = request->model.name,
                    .seq = request->seq,
                    .dtype = pod_dtype_name(request->dtype),
                    .remat =
                        outcome->remat[0] != '\0' ? outcome->remat : pod_remat_name(request->remat),
                    .mode = pod_step_mode_name(request->mode),
                    .data = outcome->data != 0 ? "real" : "none",
                    .o = *outcome};
    row.o.batch = outcome->batch > 0 ? outcome->batch : INT64_MIN;
    if (outcome->data == 0) {
        row.o.numbers.max_rel_err = NAN;
        row.o.numbers.wrong = INT64_MIN;
    }
    if (outcome->status == POD_OK && outcome->slower == 0) {
        pod_emit_fields(emit, &row, POD_STEP_COLUMNS);
    } else {
        pod_emit_fields(emit, &row, FIRST_FIGURE);
        pod_emit_nones(emit, POD_STEP_COLUMNS - FIRST_FIGURE);
    }
}
