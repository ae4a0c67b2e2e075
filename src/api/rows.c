/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rows.h"

#include "base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef enum field_type { FIELD_TEXT, FIELD_WHOLE, FIELD_DOUBLE } field_type;

/* Where a struct has the cell of a column. */
typedef struct pod_api_field {
    const char *column;
    field_type type;
    size_t offset;
} pod_api_field;

#define TYPE_OF(type, member)                                                                      \
    _Generic(((type *)NULL)->member, const char *: FIELD_TEXT, int64_t: FIELD_WHOLE, double: FIELD_DOUBLE)
#define AT(member)                                                                                 \
    {                                                                                              \
#member, TYPE_OF(ROW, member), offsetof(ROW, member)                                       \
    }
/* clang-format off */
#define ROW podsim_slice_row
static const pod_api_field slice_fields[] = {
    AT(slice), AT(chip), AT(dims), AT(chips), AT(hosts), AT(slices), AT(wrap), AT(twisted), AT(links),
    AT(diameter_hops), AT(mean_hops), AT(bisection_links), AT(bisection_GBps)};
#undef ROW
#define ROW podsim_collective_row
static const pod_api_field collective_fields[] = {
    AT(slice), AT(op), AT(axes), AT(group), AT(algorithm), AT(dtype), AT(bytes), AT(time_us), AT(algbw_GBps),
    AT(busbw_GBps), AT(bound_us), AT(bound_frac), AT(limit), AT(data), AT(wrong)};
#undef ROW
#define ROW podsim_step_row
static const pod_api_field step_fields[] = {
    AT(slice), AT(model), AT(mesh), AT(dcn_mesh), AT(placement), AT(batch), AT(seq), AT(dtype), AT(remat), AT(mode),
    AT(step_time_s), AT(tokens_per_s_per_chip), AT(model_tflops_per_chip), AT(mfu_frac), AT(compute_s),
    AT(exposed_ici_s), AT(exposed_dcn_s), AT(exposed_host_s), AT(idle_s), AT(hbm_bytes_per_chip), AT(hbm_frac),
    AT(limit), AT(rank), AT(status), AT(reason), AT(bound_s)};
#undef ROW
#define ROW podsim_plan_row
static const pod_api_field plan_fields[] = {
    AT(rank), AT(slice), AT(chips), AT(mesh), AT(dcn_mesh), AT(remat), AT(microbatches), AT(batch), AT(step_time_s),
    AT(tokens_per_s), AT(tokens_per_s_per_chip), AT(mfu_frac), AT(hbm_frac), AT(cost_per_million_tokens), AT(run_cost),
    AT(days), AT(limit), AT(bound_s), AT(candidates), AT(status)};
#undef ROW
#define ROW podsim_hlo_row
static const pod_api_field hlo_fields[] = {
    AT(slice), AT(module), AT(partitions), AT(step_time_s), AT(compute_s), AT(exposed_ici_s), AT(exposed_dcn_s),
    AT(exposed_hbm_s), AT(exposed_host_s), AT(idle_s), AT(compiler_s), AT(mxu_flops_per_chip), AT(mxu_frac),
    AT(hbm_read_bytes), AT(hbm_write_bytes), AT(hbm_bytes_per_chip), AT(hbm_frac), AT(unknown_calls), AT(unknown_s),
    AT(instructions)};
#undef ROW
/* clang-format on */

#define KIND(command, row, fields)                                                                 \
    {                                                                                              \
        command, sizeof(row), fields, sizeof(fields) / sizeof *(fields)                            \
    }
static const pod_api_kind kinds[] = {
    KIND("slice", podsim_slice_row, slice_fields),
    KIND("collective", podsim_collective_row, collective_fields),
    KIND("step", podsim_step_row, step_fields),
    KIND("compare", podsim_step_row, step_fields),
    KIND("plan", podsim_plan_row, plan_fields),
    KIND("hlo", podsim_hlo_row, hlo_fields),
};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

static pod_status out_of_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for the result");
}

podsim_result *pod_api_result_new(const char *command, pod_error *err)
{
    podsim_result *result = calloc(1, sizeof *result);
    if (result == NULL) {
        (void)out_of_memory(err);
        return NULL;
    }
    for (int i = 0; i < NKINDS; i++) {
        if (strcmp(kinds[i].command, command) == 0) {
            result->kind = &kinds[i];
        }
    }
    return result;
}

static void drop_rows(podsim_result *result)
{
    for (size_t i = 0; i < result->ncolumns; i++) {
        free(result->columns[i]);
    }
    for (size_t i = 0; result->cells != NULL && i < result->nrows * result->ncolumns; i++) {
        free(result->cells[i].text);
    }
    free(result->columns);
    free(result->cells);
    free(result->rows);
    result->columns = NULL;
    result->cells = NULL;
    result->rows = NULL;
    result->nrows = 0;
    result->ncolumns = 0;
}

void podsim_result_free(podsim_result *result)
{
    if (result != NULL) {
        drop_rows(result);
        pod_text_free(&result->json);
        pod_text_free(&result->messages);
        free(result);
    }
}

/* The place of a column; ncolumns if there is none. */
static size_t find_column(const podsim_result *result, const char *name)
{
    size_t at = 0;
    while (at < result->ncolumns && strcmp(result->columns[at], name) != 0) {
        at++;
    }
    return at;
}

static void fill_field(const podsim_result *result, size_t row, const pod_api_field *field,
                       char *filled)
{
    static const pod_api_cell none = {.text = NULL, .number = (double)NAN};
    const size_t column = find_column(result, field->column);
    const pod_api_cell *cell =
        column < result->ncolumns ? &result->cells[row * result->ncolumns + column] : &none;
    switch (field->type) {
    case FIELD_TEXT:
        *(const char **)(void *)(filled + field->offset) = cell->text;
        break;
    case FIELD_WHOLE:
        *(int64_t *)(void *)(filled + field->offset) =
            isnan(cell->number) ? PODSIM_NONE : (int64_t)strtoll(cell->text, NULL, 10);
        break;
    case FIELD_DOUBLE:
        *(double *)(void *)(filled + field->offset) = cell->number;
        break;
    }
}

static bool copy_cells(podsim_result *result, const pod_emit *emit)
{
    bool ok = true;
    for (size_t i = 0; i < result->ncolumns; i++) {
        result->columns[i] = strdup(pod_emit_column_name(emit, (int)i));
        ok = ok && result->columns[i] != NULL;
    }
    for (size_t i = 0; i < result->nrows * result->ncolumns; i++) {
        const char *text = NULL;
        pod_api_cell *cell = &result->cells[i];
        pod_emit_cell(emit, (int64_t)(i / result->ncolumns), (int)(i % result->ncolumns), &text,
                      &cell->number);
        const bool none = text == NULL || strcmp(text, "-") == 0; /* as csv writes it */
        cell->text = none ? NULL : strdup(text);
        ok = ok && (none || cell->text != NULL);
    }
    return ok;
}

pod_status pod_api_result_take(void *context, const pod_emit *emit, pod_error *err)
{
    podsim_result *result = context;
    const pod_api_kind *kind = result->kind;
    drop_rows(result);
    const size_t nrows = (size_t)pod_emit_row_count(emit);
    const size_t ncolumns = (size_t)pod_emit_column_count(emit);
    result->columns = calloc(ncolumns, sizeof *result->columns);
    result->cells = calloc(nrows * ncolumns + 1, sizeof *result->cells);
    result->rows = calloc(nrows + 1, kind != NULL ? kind->size : 1);
    if (result->columns == NULL || result->cells == NULL || result->rows == NULL) {
        return out_of_memory(err);
    }
    result->nrows = nrows;
    result->ncolumns = ncolumns;
    if (!copy_cells(result, emit)) {
        return out_of_memory(err);
    }
    for (size_t row = 0; kind != NULL && row < nrows; row++) {
        for (int i = 0; i < kind->nfields; i++) {
            fill_field(result, row, &kind->fields[i], result->rows + row * kind->size);
        }
    }
    return POD_OK;
}

void pod_api_result_missing(const podsim_result *result, pod_text *out)
{
    for (int i = 0; result->kind != NULL && i < result->kind->nfields; i++) {
        const char *name = result->kind->fields[i].column;
        if (find_column(result, name) == result->ncolumns) {
            pod_text_printf(out, "%s\n", name);
        }
    }
}

/* ---- what callers ask of a result ---- */

static const void *row_at(const podsim_result *result, size_t row, const pod_api_field *fields)
{
    const bool there = result != NULL && result->kind != NULL && result->kind->fields == fields
                       && row < result->nrows;
    return there ? result->rows + row * result->kind->size : NULL;
}

const podsim_slice_row *podsim_slice_at(const podsim_result *result, size_t row)
{
    return row_at(result, row, slice_fields);
}

const podsim_collective_row *podsim_collective_at(const podsim_result *result, size_t row)
{
    return row_at(result, row, collective_fields);
}

const podsim_step_row *podsim_step_at(const podsim_result *result, size_t row)
{
    return row_at(result, row, step_fields);
}

const podsim_plan_row *podsim_plan_at(const podsim_result *result, size_t row)
{
    return row_at(result, row, plan_fields);
}

const podsim_hlo_row *podsim_hlo_at(const podsim_result *result, size_t row)
{
    return row_at(result, row, hlo_fields);
}

size_t podsim_result_rows(const podsim_result *result)
{
    return result->nrows;
}

size_t podsim_result_columns(const podsim_result *result)
{
    return result->ncolumns;
}

const char *podsim_result_column(const podsim_result *result, size_t column)
{
    return column < result->ncolumns ? result->columns[column] : NULL;
}

static const pod_api_cell *cell_at(const podsim_result *result, size_t row, const char *column)
{
    const size_t at = find_column(result, column);
    return row < result->nrows && at < result->ncolumns
               ? &result->cells[row * result->ncolumns + at]
               : NULL;
}

const char *podsim_result_text(const podsim_result *result, size_t row, const char *column)
{
    const pod_api_cell *cell = cell_at(result, row, column);
    return cell != NULL ? cell->text : NULL;
}

double podsim_result_number(const podsim_result *result, size_t row, const char *column)
{
    const pod_api_cell *cell = cell_at(result, row, column);
    return cell != NULL ? cell->number : (double)NAN;
}

const char *podsim_result_json(const podsim_result *result)
{
    return result->json.data != NULL ? result->json.data : "";
}

const char *podsim_result_messages(const podsim_result *result)
{
    return result->messages.data != NULL ? result->messages.data : "";
}
