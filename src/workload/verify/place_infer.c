/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/place_infer.h"

#include <stdlib.h>
#include <string.h>

/** A chip in a step. */
typedef struct infer_place {
    pod_place_infer *infer;
    const pod_step_request *request;
    int32_t chip;
    int64_t sequences; /**< of this chip */
    int64_t sequence;  /**< the first of them */
    int64_t queries;   /**< of each in the step, */
    int64_t own;       /**< and on this chip */
    int64_t keys;
} infer_place;

static infer_place infer_place_of(pod_place_infer *infer, int32_t chip)
{
    const pod_work_layout *layout = &infer->check.work->layout;
    pod_axis_list batch = {.count = 0};
    for (int axis = 0; axis < POD_MESH_AXES; axis++) {
        if ((axis == POD_MESH_DATA || axis == POD_MESH_EXPERT) && layout->size[axis] > 1) {
            batch.axis[batch.count++] = (pod_mesh_axis)axis;
        }
    }
    infer_place p = {.infer = infer, .request = infer->check.request, .chip = chip};
    p.sequences = p.request->batch / pod_work_layout_pieces(layout, &batch);
    p.sequence = pod_work_layout_piece(layout, &batch, chip) * p.sequences;
    p.queries = p.request->mode == POD_STEP_PREFILL ? p.request->seq : 1;
    p.own = p.queries / layout->size[POD_MESH_SEQUENCE];
    p.keys = infer->before + p.queries;
    return p;
}

/** Where one of a chip's rows is in its sequence. */
static int64_t position_of_row(const infer_place *p, int64_t row)
{
    const int64_t t = row % p->own;
    return p->infer->before
           + (p->own < p->queries ? pod_place_position(&p->infer->check, p->chip, -1, t) : t);
}

/** The key of a sequence: of the chips of sequence one after the other. */
static int64_t position_of_key(const infer_place *p, int64_t key)
{
    return p->own < p->queries ? pod_place_position(&p->infer->check, p->chip,
                                                    (int32_t)(key / p->own), key % p->own)
                               : key;
}

/** The row of the cache of a token: pages lie in an order of their own.
 *  @param sequences  that are in it: over fsdp those whose attention this chip does */
static int64_t cache_row(const infer_place *p, int64_t sequences, int64_t sequence,
                         int64_t position)
{
    static const int64_t stride = 7919; /* a prime: all pages are hit, but for multiples of it */
    const int64_t page = pod_step_page(p->request);
    if (page == 0) {
        return sequence * p->keys + position;
    }
    const int64_t of_sequence = pod_ceil_div(p->keys, page);
    const int64_t pages = sequences * of_sequence;
    const int64_t number = sequence * of_sequence + position / page;
    const int64_t lies_at = pages % stride == 0 ? number : (number * stride + 1) % pages;
    return lies_at * page + position % page;
}

/* ---- before the step ---- */

static size_t row_bytes(const pod_buffer *buffer)
{
    return (size_t)buffer->columns * (size_t)pod_dtype_size(buffer->dtype);
}

/** The rows of the embedding, and of trainable positions, that go into the first layer. */
static void embedded_fill(const infer_place *p, const pod_buffer *buffer, char *out)
{
    const pod_place_infer *infer = p->infer;
    const pod_work_layout *layout = &infer->check.work->layout;
    const int64_t d = buffer->columns; /* over fsdp and tensor, or all */
    const int64_t piece = pod_work_layout_piece(layout, &layout->fsdp, p->chip)
                              * pod_work_layout_pieces(layout, &layout->tensor)
                          + pod_work_layout_piece(layout, &layout->tensor, p->chip);
    const int64_t first = d < p->request->model->d_model ? piece * d : 0;
    float *row = calloc(2 * (size_t)d, sizeof *row);
    for (int64_t r = 0; row != NULL && r < buffer->rows; r++) {
        const int64_t position = position_of_row(p, r);
        const int64_t at = (p->sequence + r / p->own) * infer->total + position;
        for (int64_t i = 0; i < infer->check.narrays; i++) {
            const pod_transformer_array *array = &infer->check.arrays[i];
            const bool table = strcmp(array->name, "embedding") == 0;
            const bool positions = strcmp(array->name, "positions") == 0;
            const pod_patch patch = {.row = table ? infer->tokens[at] : position,
                                     .rows = 1,
                                     .column = first,
                                     .columns = d};
            if (table || positions) {
                pod_transformer_fill_patch(array, infer->check.seed, &patch, POD_DTYPE_F32,
                                           row + (positions ? d : 0));
            }
        }
        for (int64_t i = 0; i < d; i++) {
            row[i] += row[d + i];
        }
        pod_dtype_from_f32(buffer->dtype, out + (size_t)r * row_bytes(buffer), row, d);
    }
    free(row);
}

static void names_fill(const infer_place *p, pod_place_role role, int64_t rows, float *out)
{
    const bool of_keys = role == POD_PLACE_KEY_POSITIONS || role == POD_PLACE_CACHE_READ;
    const bool cached = role == POD_PLACE_CACHE_READ || role == POD_PLACE_CACHE_WRITE;
    const int64_t each = of_keys ? p->keys : p->own;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t position = of_keys ? position_of_key(p, r % each) : position_of_row(p, r);
        out[r] = (float)(cached ? cache_row(p, rows / each, r / each, position) : position);
    }
}

/** Where a layer's rows are kept; rows follow each other by sequence and position. */
static char **kept_of(const infer_place *p, const pod_place *what)
{
    const int64_t layers = p->request->model->layers;
    return &p->infer->kept[(p->chip * layers + what->layer) * 2
                           + (what->role == POD_PLACE_CACHE_SCALES)];
}

/** Sequences in a cache. */
static int64_t cached_sequences(const infer_place *p, const pod_buffer *cache)
{
    const int64_t page = pod_step_page(p->request);
    return cache->rows / pod_round_up(p->keys, page > 0 ? page : 1);
}

/** Rows [first, last) of each sequence between what is kept and the cache. */
static void kept_copy(const infer_place *p, char *kept, int64_t first, int64_t last,
                      const pod_buffer *of, char *cache, bool load)
{
    const int64_t sequences = cached_sequences(p, of);
    const size_t bytes = row_bytes(of);
    for (int64_t s = 0; s < sequences; s++) {
        for (int64_t i = first; i < last; i++) {
            char *here = kept + (size_t)(s * p->infer->total + i) * bytes;
            char *there = cache + (size_t)cache_row(p, sequences, s, i) * bytes;
            memcpy(load ? there : here, load ? here : there, bytes);
        }
    }
}

void pod_place_infer_load(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_place_infer *infer = context;
    const infer_place p = infer_place_of(infer, chip);
    pod_place_check_load(&infer->check, chip, program, buffers);
    for (int32_t i = 0; i < infer->check.work->tensors.nplaces; i++) {
        const pod_place *what = &infer->check.work->tensors.places[i];
        const pod_buffer *buffer = &program->buffers[what->buffer];
        char *const data = buffers[what->buffer];
        if (what->role == POD_PLACE_EMBEDDED) {
            embedded_fill(&p, buffer, data);
        } else if (what->role >= POD_PLACE_TOKEN_POSITIONS && what->role <= POD_PLACE_CACHE_WRITE) {
            names_fill(&p, what->role, buffer->rows, (float *)(void *)data);
        } else if ((what->role == POD_PLACE_CACHE || what->role == POD_PLACE_CACHE_SCALES)
                   && *kept_of(&p, what) != NULL) {
            kept_copy(&p, *kept_of(&p, what), 0, infer->before, buffer, data, true);
        }
    }
}

/* ---- after it ---- */

static void logits_take(const infer_place *p, const pod_buffer *buffer, const char *data)
{
    const pod_work_layout *layout = &p->infer->check.work->layout;
    const int64_t vocab = p->request->model->vocab;
    const int64_t first = pod_work_layout_piece(layout, &layout->tensor, p->chip) * buffer->columns;
    const bool has_last = position_of_row(p, p->own - 1) == p->keys - 1
                          && pod_work_layout_piece(layout, &layout->fsdp, p->chip) == 0;
    for (int64_t s = 0; has_last && s < buffer->rows; s++) {
        pod_dtype_to_f32(buffer->dtype, p->infer->logits + (p->sequence + s) * vocab + first,
                         data + (size_t)s * row_bytes(buffer), buffer->columns);
    }
}

static void choices_take(const infer_place *p, const pod_place *what, const pod_buffer *buffer,
                         const float *expert)
{
    const int64_t k = buffer->columns;
    int32_t *all = p->infer->choices + what->layer * p->request->batch * p->infer->total * k;
    for (int64_t r = 0; r < buffer->rows; r++) {
        const int64_t token = (p->sequence + r / p->own) * p->infer->total + position_of_row(p, r);
        for (int64_t i = 0; i < k; i++) {
            all[token * k + i] = 1 + (int32_t)expert[r * k + i];
        }
    }
}

/** Of the last norm over fsdp only the last token of each sequence. */
static void squares_take(const infer_place *p, const pod_place *what, const pod_buffer *buffer,
                         const float *sums)
{
    const bool last = what->layer < 0;
    const int64_t norm = last ? 2 * p->request->model->layers : 2 * what->layer + what->part;
    float *all = p->infer->squares + norm * pod_place_infer_squares(p->infer, p->request);
    for (int64_t r = 0; r < buffer->rows; r++) {
        const int64_t row = buffer->rows == p->sequences ? (r + 1) * p->own - 1 : r;
        const int64_t token =
            (p->sequence + row / p->own) * p->infer->total + position_of_row(p, row);
        memcpy(all + token * buffer->columns, sums + r * buffer->columns, row_bytes(buffer));
    }
}

void pod_place_infer_store(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_place_infer *infer = context;
    const infer_place p = infer_place_of(infer, chip);
    const pod_work_layout *layout = &infer->check.work->layout;
    const bool first = pod_work_layout_piece(layout, &layout->tensor, chip) == 0
                       && pod_work_layout_piece(layout, &layout->fsdp, chip) == 0;
    for (int32_t i = 0; i < infer->check.work->tensors.nplaces; i++) {
        const pod_place *what = &infer->check.work->tensors.places[i];
        const pod_buffer *buffer = &program->buffers[what->buffer];
        char *const data = buffers[what->buffer];
        if (what->role == POD_PLACE_LAST_LOGITS) {
            logits_take(&p, buffer, data);
        } else if (what->role == POD_PLACE_CHOICES && first) {
            choices_take(&p, what, buffer, (const float *)(const void *)data);
        } else if (what->role == POD_PLACE_SQUARES && first) {
            squares_take(&p, what, buffer, (const float *)(const void *)data);
        } else if (what->role == POD_PLACE_CACHE || what->role == POD_PLACE_CACHE_SCALES) {
            char **kept = kept_of(&p, what);
            const size_t bytes =
                (size_t)(cached_sequences(&p, buffer) * infer->total) * row_bytes(buffer);
            *kept = *kept != NULL ? *kept : calloc(1, bytes);
            if (*kept != NULL) {
                kept_copy(&p, *kept, infer->before, p.keys, buffer, data, false);
            }
        }
    }
}

/* ---- life ---- */

int64_t pod_place_infer_choices(const pod_place_infer *infer, const pod_step_request *request)
{
    return request->model->layers * request->batch * infer->total * request->model->top_k;
}

int64_t pod_place_infer_squares(const pod_place_infer *infer, const pod_step_request *request)
{
    const int64_t sums = request->model->positions > 0 ? 2 : 1;
    return request->batch * infer->total * sums;
}

pod_status pod_place_infer_init(pod_place_infer *infer, const pod_step_request *request,
                                int32_t nchips, int64_t total, const int32_t *tokens,
                                pod_error *err)
{
    const pod_model *model = request->model;
    *infer = (pod_place_infer){.nchips = nchips, .total = total, .tokens = tokens};
    infer->logits = calloc((size_t)(request->batch * model->vocab), sizeof *infer->logits);
    infer->kept = calloc((size_t)(nchips * model->layers * 2), sizeof *infer->kept);
    const int64_t choices = pod_place_infer_choices(infer, request);
    infer->choices = calloc((size_t)choices + 1, sizeof *infer->choices);
    infer->squares =
        calloc((size_t)((2 * model->layers + 1) * pod_place_infer_squares(infer, request)),
               sizeof *infer->squares);
    return infer->logits != NULL && infer->kept != NULL && infer->choices != NULL
                   && infer->squares != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "out of memory for the logits");
}

void pod_place_infer_fini(pod_place_infer *infer)
{
    const int64_t layers = infer->check.request != NULL ? infer->check.request->model->layers : 0;
    for (int64_t i = 0; infer->kept != NULL && i < infer->nchips * layers * 2; i++) {
        free(infer->kept[i]);
    }
    free(infer->kept);
    free(infer->logits);
    free(infer->choices);
    free(infer->squares);
    infer->squares = NULL;
    infer->choices = NULL;
    infer->kept = NULL;
    infer->logits = NULL;
}
