/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/place_check.h"

#include "base/hash.h"
#include "workload/verify/reference_update.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Of the loss: a sum of floats that is exact to this in any order. */
static const double LOSS_UNITS = 16777216;

/** What names a token's row: of the vocabulary, or of trainable positions. */
static float name_of(const pod_place_chip *place, const pod_place *what, int64_t index,
                     int64_t first_row)
{
    const pod_place_check *check = place->check;
    const pod_model *model = check->request->model;
    const float position = (float)(index % check->request->seq);
    if (what->role == POD_PLACE_POSITION_GRADIENTS) {
        return position;
    }
    if (what->role == POD_PLACE_POSITION_ROWS) {
        return place->coordinate[POD_MESH_TENSOR] == 0 ? position : -1;
    }
    return (float)((what->role == POD_PLACE_TARGETS
                        ? pod_transformer_target(model, check->seed, index)
                        : pod_transformer_token(model, check->seed, index))
                   - first_row);
}

static void tokens_fill(const pod_place_chip *place, const pod_place *what, int64_t count,
                        float *out)
{
    const pod_place_check *check = place->check;
    const int64_t pieces = pod_work_layout_pieces(&check->work->layout, &what->cut);
    int64_t first_row = 0;
    (void)pod_place_tensor_share(place, check->request->model->vocab, &first_row);
    for (int64_t p = 0; p < pieces; p++) {
        const pod_place_chip other = pod_place_with_piece(place, &what->cut, p);
        for (int64_t i = 0; i < count / pieces; i++) {
            const int64_t index = what->role == POD_PLACE_TARGETS
                                      ? pod_place_head_row_of(&other, what->microbatch, i).token
                                      : pod_place_token(&other, what->microbatch, i);
            out[p * (count / pieces) + i] = name_of(place, what, index, first_row);
        }
    }
}

static void token_positions_fill(const pod_place_chip *place, const pod_place *what, int64_t count,
                                 float *out)
{
    const pod_work_layout *layout = &place->check->work->layout;
    const int64_t each = place->check->request->seq / layout->size[POD_MESH_SEQUENCE];
    const int64_t pieces = pod_work_layout_pieces(layout, &what->cut);
    const int64_t own = pod_place_piece(place, &what->cut);
    for (int64_t row = 0; row < count; row++) {
        const int64_t piece = row / each % pieces;
        const pod_place_chip other = pod_place_with_piece(
            place, &what->cut,
            what->role == POD_PLACE_RING_POSITIONS ? (own - piece + pieces) % pieces : piece);
        out[row] = (float)pod_place_position_of(pieces > 1 ? &other : place, row % each);
    }
}

/** Rows that the head reads; of a bias its only one, or none on this chip. */
static void rows_fill(const pod_place_chip *place, const pod_place *what, int64_t count, float *out)
{
    const bool once = what->role == POD_PLACE_BIAS_ONCE && place->coordinate[POD_MESH_TENSOR] > 0;
    const int64_t seq = place->check->request->seq;
    for (int64_t row = 0; row < count; row++) {
        const bool none = what->role == POD_PLACE_PATCH_ROWS ? row % seq == 0 : once;
        out[row] = what->role == POD_PLACE_HEAD_ROWS
                       ? (float)pod_place_head_row_of(place, what->microbatch, row).row
                   : none ? -1
                          : 0;
    }
}

static void pictures_fill(const pod_place_chip *place, const pod_place *what,
                          const pod_buffer *buffer, void *out)
{
    const pod_step_request *request = place->check->request;
    const pod_transformer_array pictures = pod_transformer_pictures(request->model, request->batch);
    const pod_patch patch = {.row = pod_place_token(place, what->microbatch, 0) / request->seq
                                    * (request->seq - 1),
                             .rows = buffer->rows,
                             .columns = buffer->columns};
    pod_transformer_fill_patch(&pictures, place->check->seed, &patch, buffer->dtype, out);
}

/** Row by row, in which place it lies if the chip's own piece comes first, then those of the chips before it. */
static void turned_rows_fill(const pod_place_chip *place, const pod_place *what, int64_t count,
                             float *out)
{
    const int64_t pieces = pod_work_layout_pieces(&place->check->work->layout, &what->cut);
    const int64_t own = pod_place_piece(place, &what->cut);
    const int64_t each = count / pieces;
    for (int64_t row = 0; row < count; row++) {
        out[row] = (float)((own - row / each + pieces) % pieces * each + row % each);
    }
}

/* ---- bundles ---- */

/** A run of elements of a bundle's piece that is a patch of an array. */
typedef struct run {
    const pod_transformer_array *array;
    pod_patch patch;
    int64_t at; /**< element of the piece */
    int64_t
        step; /**< from element to element of a row of at most STEP_ELEMENTS; 0: they follow each other */
} run;

enum { STEP_ELEMENTS = 256, STEP_BYTES = 4 * STEP_ELEMENTS };

typedef void run_visit(void *context, const run *r);

/** Elements [from, to) of a matrix [k, n] in row-major order: as few patches as that takes. */
static void rows_visit(const run *whole, int64_t from, int64_t to, run_visit *visit, void *context)
{
    const int64_t n = whole->patch.columns;
    while (from < to) {
        const int64_t column = from % n;
        const int64_t left = to - from;
        const bool part = column > 0 || left < n;
        const int64_t columns = part ? (left < n - column ? left : n - column) : n;
        const int64_t rows = part ? 1 : left / n;
        const run r = {
            .array = whole->array,
            .patch = {.row = whole->patch.row + from / n,
                      .rows = rows,
                      .column = whole->patch.column + column,
                      .columns = columns},
            .at = whole->at + from
        };
        visit(context, &r);
        from += rows * columns;
    }
}

static bool is_of_part(const pod_model *model, const pod_transformer_array *array,
                       const pod_place *what, const pod_layer *layer)
{
    if (what->layer < 0) {
        return array->layer < 0 && strcmp(array->name, "embedding") != 0
               && pod_transformer_part(model, array) == what->part;
    }
    return array->layer == what->layer && (int)layer->matmul[array->matmul].part == what->part;
}

/** Experts of an array that a chip has, 1 of an array that isn't theirs. @param[out] first  of them */
static int64_t groups_of(const pod_place_chip *place, const pod_transformer_array *array,
                         int64_t *first)
{
    const pod_axis_list *expert = &place->check->work->layout.expert;
    const int64_t chips = pod_work_layout_pieces(&place->check->work->layout, expert);
    const int64_t groups = array->groups > 1 ? array->groups / chips : 1;
    *first = array->groups > 1 ? groups * pod_place_piece(place, expert) : 0;
    return groups;
}

/** How tensor cuts an array, or an expert's, and other axes d_model: the chip's patch of it. */
static pod_patch tensor_patch(const pod_place_chip *place, const pod_place *what,
                              const pod_transformer_array *array)
{
    const pod_model *model = place->check->request->model;
    pod_patch patch = {.rows = array->rows, .columns = array->columns};
    if (pod_transformer_cut_columns(model, array)) {
        patch.columns = pod_place_tensor_share(place, array->columns, &patch.column);
    } else if (pod_transformer_cut_rows(model, array)) {
        patch.rows = pod_place_tensor_share(place, array->rows, &patch.row);
        patch.columns = pod_place_share(place, &what->across, array->columns, &patch.column);
        return patch;
    }
    patch.rows = pod_place_share(place, &what->across, array->rows, &patch.row);
    return patch;
}

/** The embedding's table: rows by tensor, columns by what gathers other weights. */
static void table_visit(const pod_place_chip *place, const pod_place *what, run_visit *visit,
                        void *context)
{
    const pod_place_check *check = place->check;
    const pod_axis_list cut = pod_axis_list_join(what->cut, &what->across);
    int64_t first = 0;
    const int64_t columns = pod_place_share(place, &cut, check->request->model->d_model, &first);
    const bool words = check->request->model->tied == 0 || what->part == POD_PLACE_TABLE;
    int64_t at = 0;
    for (int64_t i = 0; i < check->narrays; i++) {
        const pod_transformer_array *array = &check->arrays[i];
        const bool table = words && strcmp(array->name, "embedding") == 0;
        const bool positions = strcmp(array->name, "positions") == 0; /* on all chips of tensor */
        run r = {
            .array = array,
            .patch = {.rows = array->rows, .columns = columns, .column = first},
            .at = at
        };
        if (table) {
            r.patch.rows = pod_place_tensor_share(place, array->rows, &r.patch.row);
        }
        if (table || positions) {
            visit(context, &r);
            at += r.patch.rows * columns;
        }
    }
}

/** A tied head: the embedding's table by columns, a row of d_model after the other. @return its elements */
static int64_t tied_visit(const pod_place_chip *place, const pod_place *what, run_visit *visit,
                          void *context)
{
    const pod_place_check *check = place->check;
    const int64_t rows =
        check->request->model->d_model / pod_work_layout_pieces(&check->work->layout, &what->cut);
    int64_t first = 0;
    const int64_t words = pod_place_tensor_share(place, check->request->model->vocab, &first);
    for (int64_t word = 0; word < words; word++) {
        for (int64_t row = 0; row < rows; row += STEP_ELEMENTS) {
            const int64_t left = rows - row;
            const run r = {
                .array = &check->arrays[0], /* the embedding */
                .patch = {.row = first + word,
                          .rows = 1,
                          .column = rows * pod_place_piece(place, &what->cut) + row,
                          .columns = left < STEP_ELEMENTS ? left : STEP_ELEMENTS},
                .at = row * words + word,
                .step = words
            };
            visit(context, &r);
        }
    }
    return words * rows;
}

/** Whether a chip has a slice of each matrix of a layer. */
static bool in_slices(const pod_step_request *request)
{
    return request->mode == POD_STEP_TRAIN && request->optimizer == POD_OPTIMIZER_MUON;
}

/** The chip's slice of a matrix, along the longer side. @param whole  of all chips of `cut`, in the whole bundle */
static void slice_visit(const pod_place_chip *place, const pod_place *what, const run *whole,
                        const pod_layer_matmul *matmul, run_visit *visit, void *context)
{
    const int64_t pieces = pod_work_layout_pieces(&place->check->work->layout, &what->cut);
    const int64_t own = pod_place_piece(place, &what->cut);
    run r = *whole;
    r.at /= pieces;
    if (pod_layer_matmul_is_wide(matmul)) {
        r.patch.columns /= pieces;
        r.patch.column += own * r.patch.columns;
    } else {
        r.patch.rows /= pieces;
        r.patch.row += own * r.patch.rows;
    }
    visit(context, &r);
}

/** @param shard  elements of the chip's piece */
static void bundle_visit(const pod_place_chip *place, const pod_place *what, int64_t shard,
                         run_visit *visit, void *context)
{
    const pod_place_check *check = place->check;
    const pod_layer layer =
        pod_model_layer(check->request->model, what->layer < 0 ? 0 : what->layer);
    int64_t own =
        0; /* elements of the piece before those of the bundle that all pieces have in order */
    int64_t offset = 0;
    if (what->layer < 0 && what->part != POD_PLACE_HEAD && check->request->model->image == 0) {
        table_visit(place, what, visit, context);
        return;
    }
    if (what->layer < 0 && check->request->model->tied > 0) {
        own = tied_visit(place, what, visit, context);
    }
    const int64_t rest = shard - own;
    const int64_t first = rest * pod_place_piece(place, &what->cut);
    for (int64_t i = 0; i < check->narrays; i++) {
        const pod_transformer_array *array = &check->arrays[i];
        if (!is_of_part(check->request->model, array, what, &layer)) {
            continue;
        }
        int64_t first_group = 0;
        const int64_t groups = groups_of(place, array, &first_group);
        for (int64_t g = first_group; g < first_group + groups; g++) {
            run whole = {.array = array,
                         .patch = tensor_patch(place, what, array),
                         .at = own + offset - first};
            whole.patch.row += g * array->rows;
            const int64_t size = whole.patch.rows * whole.patch.columns;
            if (array->layer >= 0 && in_slices(check->request)) {
                whole.at = offset;
                slice_visit(place, what, &whole, &layer.matmul[array->matmul], visit, context);
                offset += size;
                continue;
            }
            const int64_t from = first > offset ? first - offset : 0;
            const int64_t to = first + rest - offset < size ? first + rest - offset : size;
            rows_visit(&whole, from, to, visit, context);
            offset += size;
        }
    }
}

/* ---- before the step ---- */

/** What is filled, or compared. */
typedef struct target {
    pod_place_check *check;
    const char *prefix; /**< of the reference's name */
    pod_dtype dtype;
    char *data;
    double trust; /**< of lars and lamb: t of the chip over that of the reference; else 0 */
    pod_place_state_kind kind;     /**< between steps */
    const pod_place_state *before; /**< what it is filled from; NULL: the first step */
} target;

static int64_t number_of_array(const target *t, const run *r)
{
    return r->array - t->check->arrays;
}

/** Elements of a run with a step, between the piece and `row`. */
static void step_copy(const target *t, const run *r, char *row, bool load)
{
    const size_t size = (size_t)pod_dtype_size(t->dtype);
    for (int64_t i = 0; i < r->patch.columns; i++) {
        char *element = t->data + (size_t)(r->at + i * r->step) * size;
        char *next = row + (size_t)i * size;
        memcpy(load ? element : next, load ? next : element, size);
    }
}

static void run_fill(void *context, const run *r)
{
    const target *t = context;
    if (t->kind == POD_STATE_MOMENT && t->before == NULL) {
        return; /* zeros before the first step */
    }
    char row[STEP_BYTES];
    char *data = r->step > 0 ? row : t->data + r->at * pod_dtype_size(t->dtype);
    if (t->before != NULL) {
        pod_place_state_get(t->before, t->kind, number_of_array(t, r), &r->patch, t->dtype, data);
    } else {
        pod_transformer_fill_patch(r->array, t->check->seed, &r->patch, t->dtype, data);
    }
    if (r->step > 0) {
        step_copy(t, r, row, true);
    }
}

/** Keep it for the next step. What copies differ in is wrong. */
static void run_take(void *context, const run *r)
{
    const target *t = context;
    char row[STEP_BYTES];
    const char *data = t->data + r->at * pod_dtype_size(t->dtype);
    if (r->step > 0) {
        step_copy(t, r, row, false);
        data = row;
    }
    t->check->found.wrong += pod_place_state_put(t->check->after, t->kind, number_of_array(t, r),
                                                 &r->patch, t->dtype, data);
}

/** Whether chips of tensor have other elements of an array. */
static bool tensor_cuts(const pod_model *model, const pod_transformer_array *array)
{
    return pod_transformer_cut_columns(model, array) || pod_transformer_cut_rows(model, array);
}

static void run_share(void *context, const run *r)
{
    const target *t = context;
    const pod_work_layout *layout = &t->check->work->layout;
    float *numbers = (float *)(void *)t->data;
    const float share = tensor_cuts(t->check->request->model, r->array)
                            ? 1
                            : 1 / (float)layout->size[POD_MESH_TENSOR];
    for (int64_t i = 0; i < r->patch.rows * r->patch.columns; i++) {
        numbers[r->at + (r->step > 0 ? i * r->step : i)] = share;
    }
}

/** What is filled before a step, the first or another one. */
static target filled_of(pod_place_check *check, int32_t chip, const pod_place *what,
                        const pod_buffer *buffer, void *data)
{
    const bool stale =
        check->stale != NULL && check->stale(check->stale_context, chip, what->stage, what->buffer);
    return (target){.check = check,
                    .dtype = buffer->dtype,
                    .data = data,
                    .kind = what->role == POD_PLACE_MOMENT ? POD_STATE_MOMENT : POD_STATE_WEIGHTS,
                    .before = stale ? NULL : check->before};
}

/** What names tokens and rows, and pictures: the same in each step. */
static void given_fill(const pod_place_chip *place, const pod_place *what, const pod_buffer *buffer,
                       void *data)
{
    const pod_place_role role = what->role;
    if (role == POD_PLACE_PICTURES) {
        pictures_fill(place, what, buffer, data);
    } else if (role == POD_PLACE_TURNED_ROWS) {
        turned_rows_fill(place, what, buffer->rows, data);
    } else if (role == POD_PLACE_POSITIONS || role == POD_PLACE_RING_POSITIONS) {
        token_positions_fill(place, what, buffer->rows, data);
    } else if (role == POD_PLACE_TOKENS || role == POD_PLACE_TARGETS
               || role == POD_PLACE_POSITION_ROWS || role == POD_PLACE_POSITION_GRADIENTS) {
        tokens_fill(place, what, buffer->rows, data);
    } else {
        rows_fill(place, what, buffer->rows, data);
    }
}

void pod_place_check_load(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_place_check *check = context;
    const pod_place_chip place = pod_place_chip_of(check, chip);
    for (int32_t i = 0; i < check->work->tensors.nplaces; i++) {
        const pod_place *what = &check->work->tensors.places[i];
        const pod_buffer *buffer = &program->buffers[what->buffer];
        const bool later = what->role == POD_PLACE_MOMENT && check->before != NULL; /* else zeros */
        if (what->stage != program->stage) {
            continue;
        }
        target t = filled_of(check, chip, what, buffer, buffers[what->buffer]);
        if (what->role < POD_PLACE_WEIGHTS) {
            given_fill(&place, what, buffer, buffers[what->buffer]);
        } else if (what->role == POD_PLACE_SHARES) {
            bundle_visit(&place, what, buffer->rows * buffer->columns, run_share, &t);
        } else if (what->role == POD_PLACE_WEIGHTS || later) {
            bundle_visit(&place, what, buffer->rows * buffer->columns, run_fill, &t);
        }
    }
}

/* ---- after it ---- */

static void patch_compare(const target *t, const char *name, const pod_patch *patch, int64_t at)
{
    char full[POD_TRANSFORMER_NAME_MAX + 16];
    pod_transformer_values values;
    (void)snprintf(full, sizeof full, "%s%s", t->prefix, name);
    if (pod_transformer_reference_find(t->check->reference, full, &values)) {
        pod_transformer_compare(&t->check->found, &values, patch, t->dtype,
                                t->data + at * pod_dtype_size(t->dtype));
    } else { /* nothing to compare with is no proof */
        t->check->found.wrong += patch->rows * patch->columns;
    }
}

/** A row of a run, less what the chip's norms have beside the reference's: what moves weights goes by them. */
static void trusting_compare(const target *t, const run *r, const pod_patch *piece, int64_t at)
{
    const bool weights = strcmp(t->prefix, "weight.") == 0;
    const int64_t step = r->step > 0 ? r->step : 1;
    float before[STEP_ELEMENTS] = {0};
    float got[STEP_ELEMENTS];
    if (weights) {
        pod_transformer_fill_patch(r->array, t->check->seed, piece, POD_DTYPE_F32, before);
    }
    for (int64_t i = 0; i < piece->columns; i++) {
        float value;
        pod_dtype_to_f32(t->dtype, &value, t->data + (at + i * step) * pod_dtype_size(t->dtype), 1);
        const double moved = (double)value - (double)before[i];
        got[i] = (float)((double)before[i] + moved / t->trust);
    }
    target plain = *t;
    plain.dtype = POD_DTYPE_F32;
    plain.data = (char *)got;
    patch_compare(&plain, r->array->name, piece, 0);
}

static void run_compare(void *context, const run *r)
{
    const target *t = context;
    for (int64_t e = 0; t->trust > 0 && e < r->patch.rows * r->patch.columns;) {
        const int64_t column = e % r->patch.columns;
        const int64_t left = r->patch.columns - column;
        const pod_patch piece = {.row = r->patch.row + e / r->patch.columns,
                                 .rows = 1,
                                 .column = r->patch.column + column,
                                 .columns = left < STEP_ELEMENTS ? left : STEP_ELEMENTS};
        trusting_compare(t, r, &piece, r->at + (r->step > 0 ? e * r->step : e));
        e += piece.columns;
    }
    if (t->trust > 0) {
        return;
    }
    char row[STEP_BYTES];
    target stepped = *t;
    if (r->step > 0) {
        step_copy(t, r, row, false);
        stepped.data = row;
    }
    patch_compare(&stepped, r->array->name, &r->patch, r->step > 0 ? 0 : r->at);
}

static void logits_compare(const pod_place_chip *place, const pod_place *what,
                           const pod_buffer *buffer, const target *t)
{
    const int64_t row_bytes = buffer->columns * pod_dtype_size(buffer->dtype);
    pod_patch patch = {.columns = buffer->columns};
    (void)pod_place_tensor_share(place, place->check->request->model->vocab, &patch.column);
    for (int64_t row = 0; row < buffer->rows; row += patch.rows) { /* runs of tokens */
        patch.row = pod_place_head_row_of(place, what->microbatch, row).of;
        patch.rows = 1;
        while (row + patch.rows < buffer->rows
               && pod_place_head_row_of(place, what->microbatch, row + patch.rows).of
                      == patch.row + patch.rows) {
            patch.rows++;
        }
        target part = *t;
        part.data += row * row_bytes;
        patch_compare(&part, "logits", &patch, 0);
    }
}

/** The array whose name a part's norms have, or NULL. */
static const pod_transformer_array *first_of_part(const pod_place_check *check,
                                                  const pod_place *what)
{
    const pod_model *model = check->request->model;
    const int part =
        what->layer < 0 && what->part != POD_PLACE_HEAD ? POD_PLACE_EMBEDDING : what->part;
    for (int64_t i = 0; i < check->narrays; i++) {
        const pod_transformer_array *array = &check->arrays[i];
        if (array->layer == what->layer && pod_transformer_part(model, array) == part) {
            return array;
        }
    }
    return NULL;
}

static void norms_compare(const pod_place_chip *place, const pod_place *what, target *t)
{
    const pod_transformer_array *array = first_of_part(place->check, what);
    t->prefix = "norms.";
    patch_compare(t, array != NULL ? array->name : "", &(pod_patch){.rows = 1, .columns = 2}, 0);
}

/** Of what an update moved: the chip's norms of the same bundle against the reference's; 0: it has none. */
static double trust_of_chip(const pod_place_check *check, const pod_place *what, void **buffers)
{
    const bool lars = check->request->optimizer == POD_OPTIMIZER_LARS;
    const pod_transformer_array *array = first_of_part(check, what);
    char name[POD_TRANSFORMER_NAME_MAX + 16];
    pod_transformer_values values;
    (void)snprintf(name, sizeof name, "norms.%s", array != NULL ? array->name : "");
    if (!pod_transformer_reference_find(check->reference, name, &values)
        || (what->role != POD_PLACE_UPDATED && (what->role != POD_PLACE_FIRST_MOMENT || !lars))) {
        return 0;
    }
    for (int32_t i = 0; i < check->work->tensors.nplaces; i++) {
        const pod_place *norms = &check->work->tensors.places[i];
        if (norms->role == POD_PLACE_NORMS && norms->stage == what->stage
            && norms->layer == what->layer && norms->part == what->part) {
            const float *sums = buffers[norms->buffer];
            return pod_reference_trust((double)sums[0], (double)sums[1])
                   / pod_reference_trust(values.value[0], values.value[1]);
        }
    }
    return 0;
}

/** Of the bytes of one array on one chip, below 2^32, so that sums of them don't overflow (FNV-1a). */
static int64_t digest_of(int32_t chip, int32_t buffer, const void *data, int64_t bytes)
{
    uint64_t hash = POD_FNV_START ^ (uint64_t)chip << 32U ^ (uint64_t)buffer;
    for (int64_t i = 0; i < bytes; i++) {
        hash = pod_hash_fnv(hash, ((const unsigned char *)data)[i]);
    }
    return (int64_t)(hash >> 32U);
}

/** The experts that a chip's tokens have; chips of tensor all have the same. */
static void experts_take(const pod_place_chip *place, const pod_place *what,
                         const pod_buffer *buffer, const float *expert)
{
    const pod_step_request *request = place->check->request;
    const int64_t k = buffer->columns;
    int32_t *layer = place->check->choices + what->layer * request->batch * request->seq * k;
    for (int64_t c = 0; place->coordinate[POD_MESH_TENSOR] == 0 && c < buffer->rows * k; c++) {
        layer[pod_place_token(place, what->microbatch, c / k) * k + c % k] = 1 + (int32_t)expert[c];
    }
}

/** What comes into a layer: taken, or compared. */
static void layers_see(const pod_place_chip *place, const pod_place *what, const pod_buffer *buffer,
                       target *t)
{
    const pod_place_check *check = place->check;
    const pod_step_request *request = check->request;
    const int64_t all = request->batch * request->seq;
    const int64_t d = buffer->columns;
    const pod_axis_list *rows = &check->work->layout.rows;
    const int64_t tokens =
        all / pod_work_layout_pieces(&check->work->layout, rows) / request->microbatches;
    const bool back = what->role == POD_PLACE_LAYER_DERIVATIVE;
    const int64_t tensor = place->coordinate[POD_MESH_TENSOR];
    const bool copy = buffer->rows == tokens && tensor > 0;
    const int64_t first = buffer->rows == tokens ? 0 : tensor * buffer->rows;
    const int64_t layer = (back ? request->model->layers : 0) + what->layer;
    char name[POD_TRANSFORMER_NAME_MAX];
    (void)snprintf(name, sizeof name, "%d", (int)what->layer);
    t->prefix = back ? "derivative." : "input.";
    for (int64_t r = 0; r < buffer->rows; r++) {
        const int64_t token = pod_place_token(place, what->microbatch, first + r);
        if (check->follows) {
            patch_compare(t, name, &(pod_patch){.row = token, .rows = 1, .columns = d}, r * d);
        } else if (!copy) {
            pod_dtype_to_f32(t->dtype,
                             (float *)(void *)(check->followed + (layer * all + token) * d),
                             t->data + r * d * pod_dtype_size(t->dtype), d);
        }
    }
}

/** A run of matrices in the steps of Newton and Schulz. */
typedef struct newton_run {
    const pod_place_chip *place;
    target *t;
    uint32_t *taken; /**< of this step, array after array */
} newton_run;

static void newton_take(void *context, const run *r)
{
    const newton_run *n = context;
    const pod_place_check *check = n->place->check;
    const bool copy = n->place->coordinate[POD_MESH_DATA] > 0
                      || (n->place->coordinate[POD_MESH_TENSOR] > 0
                          && !tensor_cuts(check->request->model, r->array));
    uint32_t *array = n->taken + check->first[number_of_array(n->t, r)];
    for (int64_t i = 0; !copy && i < r->patch.rows; i++) {
        const int64_t at = (r->patch.row + i) * r->array->columns + r->patch.column;
        pod_dtype_to_f32(n->t->dtype, (float *)(void *)(array + at),
                         n->t->data + (r->at + i * r->patch.columns) * pod_dtype_size(n->t->dtype),
                         r->patch.columns);
    }
}

static void newton_see(const pod_place_chip *place, const pod_place *what, const pod_buffer *buffer,
                       target *t)
{
    const pod_place_check *check = place->check;
    char prefix[POD_TRANSFORMER_NAME_MAX];
    newton_run taken = {.place = place,
                        .t = t,
                        .taken = check->followed + check->newton_at
                                 + what->newton * check->newton_elements};
    (void)snprintf(prefix, sizeof prefix, "newton%d.", (int)what->newton);
    t->prefix = prefix;
    if (check->follows) {
        bundle_visit(place, what, buffer->rows * buffer->columns, run_compare, t);
    } else {
        bundle_visit(place, what, buffer->rows * buffer->columns, newton_take, &taken);
    }
}

void pod_place_check_store(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_place_check *check = context;
    const pod_place_chip place = pod_place_chip_of(check, chip);
    for (int32_t i = 0; i < check->work->tensors.nplaces; i++) {
        const pod_place *what = &check->work->tensors.places[i];
        const pod_buffer *buffer = &program->buffers[what->buffer];
        if (what->stage != program->stage || what->role <= POD_PLACE_MOMENT) {
            continue;
        }
        if (what->role == POD_PLACE_CHOICES) {
            experts_take(&place, what, buffer, buffers[what->buffer]);
            continue;
        }
        target t = {
            .check = check, .prefix = "", .dtype = buffer->dtype, .data = buffers[what->buffer]};
        if (what->role == POD_PLACE_NEWTON) {
            newton_see(&place, what, buffer, &t);
            continue;
        }
        if (what->role == POD_PLACE_LAYER_INPUT || what->role == POD_PLACE_LAYER_DERIVATIVE) {
            layers_see(&place, what, buffer, &t);
            continue;
        }
        check->digest +=
            check->digests ? digest_of(chip, what->buffer, t.data, pod_buffer_bytes(buffer)) : 0;
        if (what->role == POD_PLACE_LOGITS) {
            logits_compare(&place, what, buffer, &t);
        } else if (what->role == POD_PLACE_LOSS) {
            const double loss = ((const float *)buffers[what->buffer])[0];
            check->loss += place.coordinate[POD_MESH_TENSOR] == 0 ? llround(loss * LOSS_UNITS) : 0;
        } else if (what->role == POD_PLACE_NORMS) {
            norms_compare(&place, what, &t);
        } else {
            static const char *const prefixes[] = {[POD_PLACE_UPDATED] = "weight.",
                                                   [POD_PLACE_FIRST_MOMENT] = "moment1.",
                                                   [POD_PLACE_SECOND_MOMENT] = "moment2.",
                                                   [POD_PLACE_GRADIENT] = "gradient."};
            t.prefix = prefixes[what->role];
            t.trust = trust_of_chip(check, what, buffers);
            bundle_visit(&place, what, buffer->rows * buffer->columns, run_compare, &t);
            if (check->after != NULL && what->role != POD_PLACE_GRADIENT) {
                t.kind = what->role == POD_PLACE_UPDATED ? POD_STATE_WEIGHTS : POD_STATE_MOMENT;
                bundle_visit(&place, what, buffer->rows * buffer->columns, run_take, &t);
            }
        }
    }
}

void pod_place_check_loss(pod_place_check *check)
{
    const pod_step_request *request = check->request;
    const int64_t masked = request->model->masked;
    const double tokens = (double)request->batch * (double)(masked > 0 ? masked : request->seq);
    const float loss = (float)((double)check->loss / LOSS_UNITS / tokens);
    const target t = {
        .check = check, .prefix = "", .dtype = POD_DTYPE_F32, .data = (char *)(float[1]){loss}};
    if (request->mode == POD_STEP_TRAIN) {
        patch_compare(&t, "loss", &(pod_patch){.rows = 1, .columns = 1}, 0);
    }
}

pod_step_form pod_place_form(const pod_model *model, pod_optimizer optimizer)
{
    static const pod_kernel_activation functions[] = {[POD_FUNCTION_SILU] = POD_KERNEL_SILU,
                                                      [POD_FUNCTION_GELU] = POD_KERNEL_GELU,
                                                      [POD_FUNCTION_RELU2] = POD_KERNEL_RELU2};
    const pod_transformer_form form = pod_transformer_form_of(model);
    return (pod_step_form){.epsilon = form.epsilon,
                           .rotary_base = form.rotary_base,
                           .centred = form.norm == POD_NORM_LAYER,
                           .function = functions[form.function],
                           .rate = pod_transformer_rate(optimizer)};
}

pod_status pod_place_check_init(pod_place_check *check, const pod_step_request *request,
                                const pod_step_work *work, uint64_t seed,
                                const pod_transformer_reference *reference, pod_error *err)
{
    *check =
        (pod_place_check){.request = request, .work = work, .reference = reference, .seed = seed};
    check->narrays = pod_transformer_arrays(request->model);
    check->arrays = calloc((size_t)check->narrays + 1, sizeof *check->arrays);
    check->nchoices = request->model->experts > 0 ? request->model->layers * request->batch
                                                        * request->seq * request->model->top_k
                                                  : 0;
    check->choices = calloc((size_t)check->nchoices + 1, sizeof *check->choices);
    const int64_t layers = pod_dtype_size(request->dtype) == 1 ? request->model->layers : 0;
    check->newton_at = 2 * layers * request->batch * request->seq * request->model->d_model;
    check->first = calloc((size_t)check->narrays + 1, sizeof *check->first);
    for (int64_t i = 0; check->first != NULL && in_slices(request) && i < check->narrays; i++) {
        const pod_transformer_array array = pod_transformer_array_at(request->model, i);
        check->first[i] = check->newton_elements;
        check->newton_elements += array.layer >= 0 ? array.groups * array.rows * array.columns : 0;
    }
    check->nfollowed = check->newton_at + POD_TRANSFORMER_NEWTON * check->newton_elements;
    check->followed = calloc((size_t)check->nfollowed + 1, sizeof *check->followed);
    if (check->arrays == NULL || check->choices == NULL || check->followed == NULL
        || check->first == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %lld arrays",
                        (long long)check->narrays);
    }
    for (int64_t i = 0; i < check->narrays; i++) {
        check->arrays[i] = pod_transformer_array_at(request->model, i);
    }
    return POD_OK;
}

void pod_place_check_fini(pod_place_check *check)
{
    free(check->arrays);
    free(check->choices);
    free(check->followed);
    free(check->first);
    check->arrays = NULL;
    check->choices = NULL;
    check->followed = NULL;
    check->first = NULL;
}
