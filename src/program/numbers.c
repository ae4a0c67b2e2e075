/* SPDX-License-Identifier: Apache-2.0 */
#include "program/numbers.h"

#include "chip/numerics.h"
#include "program/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** A number under way: its inputs and results, contiguous in f32. */
typedef struct work {
    const pod_program *program;
    const pod_op *op;
    const pod_number *number;
    pod_shards *shards;
    float *in[POD_NUMBER_INPUTS_MAX];   /**< NULL: there is none */
    float *out[POD_NUMBER_OUTPUTS_MAX]; /**< zeros at first, or what is added to */
    pod_error *err;
} work;

static int64_t elements_of(const pod_number_view *view)
{
    return view->rows * view->columns;
}

static pod_kernel_size size_of(const pod_number_view *view)
{
    return (pod_kernel_size){.rows = view->rows, .columns = view->columns};
}

/* ---- views ---- */

/** @param load  from the buffer to `wide`, else back */
static void view_copy(const work *w, const pod_number_view *view, bool load, float *wide)
{
    const pod_dtype dtype = w->program->buffers[view->buffer].dtype;
    const int size = pod_dtype_size(dtype);
    char *data = (char *)w->shards->data[view->buffer] + view->offset * size;
    const bool one_piece = view->pitch == view->columns;
    const int64_t rows = one_piece ? 1 : view->rows;
    const int64_t columns = one_piece ? elements_of(view) : view->columns;
    for (int64_t r = 0; r < rows; r++) {
        if (load) {
            pod_dtype_to_f32(dtype, wide + r * columns, data + r * view->pitch * size, columns);
        } else {
            pod_dtype_from_f32(dtype, data + r * view->pitch * size, wide + r * columns, columns);
        }
    }
}

static pod_status wide_new(const work *w, const pod_number_view *view, float **wide)
{
    *wide = calloc((size_t)elements_of(view) + 1, sizeof **wide);
    return *wide != NULL
               ? POD_OK
               : pod_fail(w->err, POD_E_NOMEM, "out of memory for the numbers of %s", w->op->name);
}

static pod_status work_load(work *w)
{
    for (int i = 0; i < POD_NUMBER_INPUTS_MAX; i++) {
        const pod_number_view *view = &w->number->in[i];
        if (view->buffer == POD_OP_NONE) {
            continue;
        }
        POD_TRY(pod_shards_read(w->shards, w->program, w->op, view->buffer, w->err));
        POD_TRY(wide_new(w, view, &w->in[i]));
        view_copy(w, view, true, w->in[i]);
    }
    for (int i = 0; i < POD_NUMBER_OUTPUTS_MAX; i++) {
        const pod_number_view *view = &w->number->out[i];
        if (view->buffer == POD_OP_NONE) {
            continue;
        }
        POD_TRY(pod_shards_write(w->shards, w->program, view->buffer, w->err));
        POD_TRY(wide_new(w, view, &w->out[i]));
        if (w->number->accumulate) {
            view_copy(w, view, true, w->out[i]);
        }
    }
    return POD_OK;
}

static void work_store(work *w)
{
    for (int i = 0; i < POD_NUMBER_OUTPUTS_MAX; i++) {
        if (w->number->out[i].buffer != POD_OP_NONE) {
            view_copy(w, &w->number->out[i], false, w->out[i]);
        }
    }
    for (int i = 0; i < POD_NUMBER_INPUTS_MAX; i++) {
        if (w->number->in[i].buffer != POD_OP_NONE) {
            pod_shards_release(w->shards, w->program, w->number->in[i].buffer);
        }
    }
}

static void work_free(work *w)
{
    for (int i = 0; i < POD_NUMBER_INPUTS_MAX; i++) {
        free(w->in[i]);
    }
    for (int i = 0; i < POD_NUMBER_OUTPUTS_MAX; i++) {
        free(w->out[i]);
    }
}

/* ---- functions ---- */

/** Largest value of a dtype of one byte. */
static float largest_of(pod_dtype dtype)
{
    static const float int8 = 127;
    static const float fp8 = 448;
    return dtype == POD_DTYPE_INT8 ? int8 : fp8;
}

/** The scale with which the largest of some values is the largest of a dtype. */
static float scale_of(pod_dtype dtype, const float *values, int64_t count)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    }
    return largest > 0 ? largest / largest_of(dtype) : 1;
}

/** An operand as a matmul in a dtype of one byte reads it: rounded, with one scale. */
static pod_status narrow(const work *w, float *values, int64_t count)
{
    const float scale = scale_of(w->op->dtype, values, count);
    char *bytes = malloc((size_t)count + 1);
    if (bytes == NULL) {
        return pod_fail(w->err, POD_E_NOMEM, "out of memory for the numbers of %s", w->op->name);
    }
    for (int64_t i = 0; i < count; i++) {
        values[i] /= scale;
    }
    pod_dtype_from_f32(w->op->dtype, bytes, values, count);
    pod_dtype_to_f32(w->op->dtype, values, bytes, count);
    for (int64_t i = 0; i < count; i++) {
        values[i] *= scale;
    }
    free(bytes);
    return POD_OK;
}

static pod_status compute_product(work *w)
{
    const pod_number *n = w->number;
    const bool narrows = w->op->kind == POD_OP_MATMUL && pod_dtype_size(w->op->dtype) == 1;
    for (int i = 0; i < 2 && narrows && !n->untimed; i++) {
        POD_TRY(narrow(w, w->in[i], elements_of(&n->in[i])));
    }
    const pod_gemm_parts parts = {
        .shape = {.m = n->out[0].rows,
                  .k = n->transpose_a ? n->in[0].rows : n->in[0].columns,
                  .n = n->out[0].columns},
        .transpose_a = n->transpose_a,
        .transpose_b = n->transpose_b,
        .stride_a = n->in[0].columns,
        .stride_b = n->in[1].columns,
        .stride_c = n->out[0].columns,
        .accumulate = n->accumulate
    };
    POD_TRY(pod_gemm_ready(w->err));
    pod_gemm_parts_f32(&parts, w->in[0], w->in[1], w->out[0]);
    return POD_OK;
}

static pod_status compute_copy(work *w)
{
    for (int64_t i = 0; i < elements_of(&w->number->out[0]); i++) {
        w->out[0][i] += w->in[0][i];
    }
    return POD_OK;
}

static pod_status compute_add(work *w)
{
    for (int64_t i = 0; i < elements_of(&w->number->out[0]); i++) {
        w->out[0][i] = w->in[0][i] + w->in[1][i];
    }
    return POD_OK;
}

/** The row of a table that a token names, or -1 where another chip has it. */
static int64_t row_named(float name, int64_t rows)
{
    return name >= 0 && name < (float)rows ? (int64_t)name : -1;
}

/** A row of a table that lies by columns, to or from a row of x. */
static void column_add(const pod_number_view *table, float *column, float *x, bool back)
{
    for (int64_t c = 0; c < table->rows; c++) {
        float *element = column + c * table->columns;
        if (back) {
            *element += x[c];
        } else {
            x[c] += *element;
        }
    }
}

static pod_status compute_pick(work *w)
{
    const pod_number_view *table = &w->number->in[1];
    for (int64_t r = 0; w->number->transpose_b && r < w->number->out[0].rows; r++) {
        const int64_t from = row_named(w->in[0][r], table->columns);
        if (from >= 0) {
            column_add(table, w->in[1] + from, w->out[0] + r * table->rows, false);
        }
    }
    if (w->number->transpose_b) {
        return POD_OK;
    }
    for (int64_t r = 0; r < w->number->out[0].rows; r++) {
        const int64_t from = row_named(w->in[0][r], table->rows);
        for (int64_t c = 0; from >= 0 && c < table->columns; c++) {
            w->out[0][r * table->columns + c] += w->in[1][from * table->columns + c];
        }
    }
    return POD_OK;
}

static pod_status compute_pick_back(work *w)
{
    const pod_number_view *table = &w->number->out[0];
    for (int64_t r = 0; w->number->transpose_b && r < w->number->in[1].rows; r++) {
        const int64_t to = row_named(w->in[0][r], table->columns);
        if (to >= 0) {
            column_add(table, w->out[0] + to, w->in[1] + r * table->rows, true);
        }
    }
    if (w->number->transpose_b) {
        return POD_OK;
    }
    for (int64_t r = 0; r < w->number->in[1].rows; r++) {
        const int64_t to = row_named(w->in[0][r], table->rows);
        for (int64_t c = 0; to >= 0 && c < table->columns; c++) {
            w->out[0][to * table->columns + c] += w->in[1][r * table->columns + c];
        }
    }
    return POD_OK;
}

/** What norms go over: rows, or heads one after the other. */
static pod_kernel_rows normed_of(const pod_number *n)
{
    const int64_t columns = n->dim > 0 ? n->dim : n->in[0].columns;
    return (pod_kernel_rows){.rows = elements_of(&n->in[0]) / columns,
                             .columns = columns,
                             .epsilon = n->rate,
                             .centred = n->centred};
}

static pod_status compute_norm(work *w)
{
    const pod_kernel_rows rows = normed_of(w->number);
    pod_kernel_norm(&rows, w->in[0], w->out[0]);
    return POD_OK;
}

static pod_status compute_norm_back(work *w)
{
    const pod_kernel_rows rows = normed_of(w->number);
    pod_kernel_norm_back(&rows, w->in[0], w->in[1], w->in[2], w->out[0]);
    return POD_OK;
}

static pod_status compute_norm_sums(work *w)
{
    const pod_kernel_rows rows = normed_of(w->number);
    pod_kernel_norm_sums(&rows, w->in[0], w->out[0]);
    return POD_OK;
}

static pod_status compute_norm_by(work *w)
{
    const pod_kernel_rows rows = normed_of(w->number);
    pod_kernel_norm_by(&rows, w->number->parts, w->in[0], w->in[1], w->out[0]);
    return POD_OK;
}

static pod_status compute_rotate(work *w)
{
    const pod_number *n = w->number;
    const pod_kernel_rotation rotation = {.rows = n->in[0].rows,
                                          .columns = n->in[0].columns,
                                          .heads = n->heads + n->kv_heads,
                                          .each = n->dim,
                                          .first = n->first,
                                          .dim = n->dim - n->first,
                                          .base = n->rate,
                                          .back = n->back};
    for (int64_t i = 0; i < elements_of(&n->in[0]); i++) {
        w->out[0][i] = w->in[0][i];
    }
    pod_kernel_rotate(&rotation, w->in[1], w->out[0]);
    return POD_OK;
}

/** Columns from one head to the next; 0: all heads have the same. */
static int64_t head_pitch(const pod_number *n, const pod_number_view *view)
{
    return view->columns == n->dim ? 0 : view->columns / n->heads;
}

static pod_status compute_heads(work *w)
{
    const pod_number *n = w->number;
    const int64_t from = head_pitch(n, &n->in[0]);
    const int64_t to = head_pitch(n, &n->out[0]);
    for (int64_t r = 0; r < n->in[0].rows; r++) {
        for (int64_t h = 0; h < n->heads; h++) {
            const float *a = w->in[0] + r * n->in[0].columns + h * from + n->first;
            float *x = w->out[0] + r * n->out[0].columns + h * to + n->first_out;
            for (int64_t i = 0; i < n->dim; i++) {
                x[i] += a[i];
            }
        }
    }
    return POD_OK;
}

/** Heads are numbered sequence by sequence. @param[out] result  where the head's begins, in elements */
static pod_kernel_attention head_of(const work *w, int64_t number, int64_t *result)
{
    enum { Q, K, V, QUERY_POSITION, KEY_POSITION };
    const pod_number *n = w->number;
    const int64_t sequence = number / n->heads;
    const int64_t head = number % n->heads;
    const int64_t queries = n->in[Q].rows / n->sequences;
    const int64_t keys = n->in[K].rows / n->sequences;
    const int64_t of = head / (n->heads / n->kv_heads);
    const int64_t v_dim = n->in[V].columns / n->kv_heads;
    *result = (sequence * queries * n->heads + head) * v_dim;
    return (pod_kernel_attention){
        .queries = queries,
        .keys = keys,
        .qk_dim = n->dim,
        .v_dim = v_dim,
        .pitch = {n->in[Q].columns, n->in[K].columns, n->in[V].columns},
        .result = n->heads * v_dim,
        .window = n->window,
        .chunked = n->chunked,
        .all = n->all,
        .q = w->in[Q] + sequence * queries * n->in[Q].columns + head * n->dim,
        .k = w->in[K] + sequence * keys * n->in[K].columns + of * n->dim,
        .v = w->in[V] + sequence * keys * n->in[V].columns + of * v_dim,
        .query_position =
            w->in[QUERY_POSITION] + (n->in[QUERY_POSITION].rows > queries ? sequence * queries : 0),
        .key_position =
            w->in[KEY_POSITION] + (n->in[KEY_POSITION].rows > keys ? sequence * keys : 0),
    };
}

static pod_status compute_attend(work *w)
{
    const pod_number *n = w->number;
    for (int64_t i = 0; i < n->sequences * n->heads; i++) {
        int64_t result = 0;
        const pod_kernel_attention args = head_of(w, i, &result);
        POD_TRY(pod_kernel_attend(&args, w->out[0] + result, w->err));
    }
    return POD_OK;
}

static pod_status compute_attend_back(work *w)
{
    enum { RESULT = 5 };
    const pod_number *n = w->number;
    for (int64_t i = 0; i < n->sequences * n->heads; i++) {
        int64_t result = 0;
        const pod_kernel_attention args = head_of(w, i, &result);
        POD_TRY(pod_kernel_attend_back(
            &args, w->in[RESULT] + result, w->out[0] + (args.q - w->in[0]),
            w->out[1] + (args.k - w->in[1]), w->out[2] + (args.v - w->in[2]), w->err));
    }
    return POD_OK;
}

enum { SUMS = POD_KERNEL_PART_SUMS };

/** Where a head's sums begin, and how far apart those of its queries are. */
static int64_t sums_first(const pod_number *n, int64_t number)
{
    const int64_t queries = n->in[0].rows / n->sequences;
    return (number / n->heads * queries * n->heads + number % n->heads) * SUMS;
}

static pod_status compute_attend_part(work *w)
{
    const pod_number *n = w->number;
    for (int64_t i = 0; i < n->sequences * n->heads; i++) {
        int64_t result = 0;
        const pod_kernel_attention args = head_of(w, i, &result);
        POD_TRY(pod_kernel_attend_part(&args, n->heads * SUMS, w->out[0] + result,
                                       w->out[1] + sums_first(n, i), w->err));
    }
    return POD_OK;
}

static pod_status compute_attend_merge(work *w)
{
    enum { OUT, OUT_SUMS, MORE, MORE_SUMS };
    const pod_number *n = w->number;
    const int64_t dim = n->in[OUT].columns / n->heads;
    const size_t size = sizeof(float);
    memcpy(w->out[0], w->in[OUT], (size_t)(n->in[OUT].rows * n->in[OUT].columns) * size);
    memcpy(w->out[1], w->in[OUT_SUMS], (size_t)(n->in[OUT].rows * n->heads * SUMS) * size);
    for (int64_t i = 0; i < n->in[OUT].rows * n->heads; i++) {
        pod_kernel_attend_merge(dim, w->in[MORE] + i * dim, w->in[MORE_SUMS] + i * SUMS,
                                w->out[0] + i * dim, w->out[1] + i * SUMS);
    }
    return POD_OK;
}

static pod_status compute_attend_end(work *w)
{
    const pod_number *n = w->number;
    const int64_t dim = n->in[0].columns / n->heads;
    for (int64_t i = 0; i < n->in[0].rows * n->heads; i++) {
        for (int64_t c = i * dim; c < (i + 1) * dim; c++) {
            w->out[0][c] = w->in[0][c] / w->in[1][i * SUMS + 1];
        }
    }
    return POD_OK;
}

static pod_status compute_attend_along(work *w)
{
    const pod_number *n = w->number;
    const int64_t dim = n->in[1].columns / n->heads;
    for (int64_t i = 0; i < n->in[1].rows * n->heads; i++) {
        float product = 0;
        for (int64_t c = i * dim; c < (i + 1) * dim; c++) {
            product += w->in[1][c] * w->in[2][c];
        }
        w->out[0][i * SUMS] = w->in[0][i * SUMS] + logf(w->in[0][i * SUMS + 1]);
        w->out[0][i * SUMS + 1] = product;
    }
    return POD_OK;
}

static pod_status compute_attend_part_back(work *w)
{
    enum { RESULT = 5, ALONG };
    const pod_number *n = w->number;
    for (int64_t i = 0; i < n->sequences * n->heads; i++) {
        int64_t result = 0;
        const pod_kernel_attention args = head_of(w, i, &result);
        float *const by[3] = {w->out[0] + (args.q - w->in[0]), w->out[1] + (args.k - w->in[1]),
                              w->out[2] + (args.v - w->in[2])};
        POD_TRY(pod_kernel_attend_part_back(&args, n->heads * SUMS, w->in[ALONG] + sums_first(n, i),
                                            w->in[RESULT] + result, by, w->err));
    }
    return POD_OK;
}

/* of 2 chips with 2 sequences of 2 tokens each:   chip 0: a0 a1 b0 b1   chip 1: a2 a3 b2 b3
 * regrouped:                                       a0 a1 a2 a3 b0 b1 b2 b3 */
static pod_status compute_regroup(work *w)
{
    const pod_number *n = w->number;
    const int64_t block = n->in[0].rows / n->parts / n->sequences * n->in[0].columns;
    for (int64_t p = 0; p < n->parts; p++) {
        for (int64_t s = 0; s < n->sequences; s++) {
            const int64_t apart = (p * n->sequences + s) * block;
            const int64_t together = (s * n->parts + p) * block;
            memcpy(w->out[0] + (n->back ? apart : together),
                   w->in[0] + (n->back ? together : apart), (size_t)block * sizeof(float));
        }
    }
    return POD_OK;
}

static pod_status compute_function(work *w)
{
    pod_kernel_function(elements_of(&w->number->out[0]), w->number->activation, w->in[0], w->in[1],
                        w->out[0]);
    return POD_OK;
}

static pod_status compute_function_back(work *w)
{
    pod_kernel_function_back(elements_of(&w->number->out[0]), w->number->activation, w->in[0],
                             w->in[1], w->in[2], w->out[0], w->out[1]);
    return POD_OK;
}

static pod_status compute_loss_sums(work *w)
{
    pod_kernel_loss_sums(size_of(&w->number->in[0]), w->in[0], w->in[1], w->out[0]);
    return POD_OK;
}

static pod_status compute_loss(work *w)
{
    const pod_number *n = w->number;
    const int64_t parts = elements_of(&n->in[2]) / (n->in[0].rows * POD_KERNEL_LOSS_SUMS);
    w->out[1][0] = (float)pod_kernel_loss(size_of(&n->in[0]), parts, n->rate, w->in[0], w->in[1],
                                          w->in[2], w->out[0]);
    return POD_OK;
}

/** @param columns  of tokens */
static pod_kernel_routes routes_of(const pod_number *n, const pod_number_view *row, int64_t columns)
{
    return (pod_kernel_routes){.tokens = row->rows,
                               .experts = n->experts,
                               .top_k = row->columns,
                               .room = n->room,
                               .sequences = n->sequences,
                               .columns = columns};
}

/** Rows of experts with room for all, without the gaps. */
static void rows_tighten(const pod_kernel_routes *routes, float *row, float *count)
{
    int64_t first = 0;
    for (int64_t e = 0; e < routes->experts; e++) {
        const float from = (float)(e * routes->room);
        const float to = (float)((e + 1) * routes->room);
        int64_t rows = 0;
        for (int64_t c = 0; c < routes->tokens * routes->top_k; c++) {
            if (row[c] >= from && row[c] < to) { /* not below what comes later: rows move down */
                row[c] = -2 - ((float)first + row[c] - from);
                rows++;
            }
        }
        count[e] = (float)rows;
        first += rows;
    }
    for (int64_t c = 0; c < routes->tokens * routes->top_k; c++) {
        row[c] = -2 - row[c];
    }
}

static pod_status compute_route(work *w)
{
    const pod_kernel_routes routes = routes_of(w->number, &w->number->out[0], 0);
    pod_kernel_route(&routes, w->in[0], w->out[0], w->out[1]);
    for (int64_t c = 0; w->out[3] != NULL && c < routes.tokens * routes.top_k; c++) {
        const float row = w->out[0][c]; /* as pod_kernel_route has them */
        w->out[3][c] = row >= 0 ? floorf(row / (float)routes.room) : -1 - row;
    }
    if (w->out[2] != NULL) {
        rows_tighten(&routes, w->out[0], w->out[2]);
    }
    return POD_OK;
}

static pod_status compute_groups(work *w)
{
    const pod_number *n = w->number;
    const int64_t depth = n->in[0].columns;
    const int64_t columns = n->out[0].columns;
    int64_t row = 0;
    POD_TRY(pod_gemm_ready(w->err));
    for (int64_t e = 0; e < n->in[2].rows; e++) {
        const pod_gemm_parts parts = {
            .shape = {.m = (int64_t)w->in[2][e], .k = depth, .n = columns},
            .stride_a = depth,
            .stride_b = columns,
            .stride_c = columns
        };
        if (parts.shape.m > 0) {
            pod_gemm_parts_f32(&parts, w->in[0] + row * depth, w->in[1] + e * depth * columns,
                               w->out[0] + row * columns);
        }
        row += parts.shape.m;
    }
    return POD_OK;
}

static pod_status compute_quantize(work *w)
{
    const pod_number *n = w->number;
    const pod_dtype dtype = w->program->buffers[n->out[0].buffer].dtype;
    for (int64_t group = 0; group < elements_of(&n->in[0]) / n->dim; group++) {
        const float *a = w->in[0] + group * n->dim;
        float *x = w->out[0] + group * n->dim;
        const float scale = scale_of(dtype, a, n->dim);
        for (int64_t i = 0; i < n->dim; i++) {
            x[i] = a[i] / scale;
        }
        w->out[1][group] = scale;
    }
    return POD_OK;
}

static pod_status compute_dequantize(work *w)
{
    const pod_number *n = w->number;
    for (int64_t i = 0; i < elements_of(&n->in[0]); i++) {
        w->out[0][i] = w->in[0][i] * w->in[1][i / n->dim];
    }
    return POD_OK;
}

static pod_status compute_route_back(work *w)
{
    const pod_kernel_routes routes = routes_of(w->number, &w->number->in[0], 0);
    pod_kernel_route_back(&routes, w->in[0], w->in[1], w->in[2], w->out[0]);
    return POD_OK;
}

static pod_status compute_send(work *w)
{
    const pod_kernel_routes routes =
        routes_of(w->number, &w->number->in[0], w->number->out[0].columns);
    pod_kernel_rows_send(&routes, w->in[0], w->in[1], w->out[0]);
    return POD_OK;
}

static pod_status compute_return(work *w)
{
    const pod_kernel_routes routes =
        routes_of(w->number, &w->number->in[0], w->number->out[0].columns);
    pod_kernel_rows_return(&routes, w->in[0], w->in[2], w->in[1], w->out[0]);
    return POD_OK;
}

static pod_status compute_return_back(work *w)
{
    const pod_kernel_routes routes =
        routes_of(w->number, &w->number->in[0], w->number->out[0].columns);
    pod_kernel_rows_return_back(&routes, w->in[0], w->in[2], w->in[1], w->in[3], w->out[0],
                                w->out[1]);
    return POD_OK;
}

static pod_status compute_sgd(work *w)
{
    const pod_number *n = w->number;
    pod_kernel_mix(elements_of(&n->out[0]), 1, -n->rate, w->in[0], w->in[1], w->out[0]);
    return POD_OK;
}

static pod_status compute_momentum(work *w)
{
    for (int64_t i = 0; i < elements_of(&w->number->out[0]); i++) {
        w->out[1][i] = 0.9F * w->in[2][i] + w->in[1][i];
        w->out[0][i] = w->in[0][i] - (float)w->number->rate * w->out[1][i];
    }
    return POD_OK;
}

static pod_status compute_adam(work *w)
{
    const bool step = w->number->function == POD_NUMBER_ADAM_STEP;
    const float rate = step ? -1 : (float)w->number->rate;
    for (int64_t i = 0; i < elements_of(&w->number->out[0]); i++) {
        const float gradient = w->in[1][i];
        const float m = 0.9F * w->in[2][i] + 0.1F * gradient;
        const float v = 0.999F * w->in[3][i] + 0.001F * gradient * gradient;
        w->out[0][i] = pod_kernel_adam(step ? 0 : w->in[0][i], m, v, rate);
        w->out[1][i] = m;
        w->out[2][i] = v;
    }
    return POD_OK;
}

static pod_status compute_squares(work *w)
{
    double sums[2] = {0, 0};
    for (int64_t i = 0; i < elements_of(&w->number->in[0]); i++) {
        const double share = w->in[2] != NULL ? (double)w->in[2][i] : 1;
        for (int of = 0; of < 2; of++) {
            sums[of] += share * (double)w->in[of][i] * (double)w->in[of][i];
        }
    }
    w->out[0][0] = (float)sums[0];
    w->out[0][1] = (float)sums[1];
    return POD_OK;
}

enum { SQUARES_AT = 4 };

/** Norm of weights over that of their direction. */
static float trust_of(const float *squares)
{
    return squares[0] > 0 && squares[1] > 0 ? sqrtf(squares[0] / squares[1]) : 1;
}

static pod_status compute_lars(work *w)
{
    static const float eta = 0.001F;
    const float by = eta * trust_of(w->in[SQUARES_AT]);
    for (int64_t i = 0; i < elements_of(&w->number->out[0]); i++) {
        w->out[1][i] = 0.9F * w->in[2][i] + by * w->in[1][i];
        w->out[0][i] = w->in[0][i] - (float)w->number->rate * w->out[1][i];
    }
    return POD_OK;
}

static pod_status compute_lamb(work *w)
{
    const float by = (float)w->number->rate * trust_of(w->in[SQUARES_AT]);
    const int64_t n = elements_of(&w->number->out[0]);
    pod_kernel_mix(n, 1, -(double)by, w->in[0], w->in[1], w->out[0]);
    return POD_OK;
}

static pod_status compute_muon(work *w)
{
    pod_kernel_muon(elements_of(&w->number->out[0]), w->in[1], w->in[2], w->out[0], w->out[1]);
    return POD_OK;
}

static pod_status compute_mix(work *w)
{
    const pod_number *n = w->number;
    const double root = w->in[2] != NULL ? sqrt((double)w->in[2][1]) : 1;
    const double by = root > 0 ? 1 / root : 0;
    pod_kernel_mix(elements_of(&n->out[0]), n->rate * by, n->by * by, w->in[0], w->in[1],
                   w->out[0]);
    return POD_OK;
}

static void positions_advance(work *w)
{
    enum { QUERY_POSITION = 3 };
    for (int64_t i = 0; i < w->number->in[QUERY_POSITION].rows; i++) {
        w->in[QUERY_POSITION][i] += 1;
    }
}

static pod_status number_exec(work *w)
{
    static pod_status (*const compute[POD_NUMBER_FUNCTIONS])(work *) = {
        [POD_NUMBER_PRODUCT] = compute_product,
        [POD_NUMBER_COPY] = compute_copy,
        [POD_NUMBER_ADD] = compute_add,
        [POD_NUMBER_PICK] = compute_pick,
        [POD_NUMBER_PICK_BACK] = compute_pick_back,
        [POD_NUMBER_NORM] = compute_norm,
        [POD_NUMBER_NORM_BACK] = compute_norm_back,
        [POD_NUMBER_NORM_SUMS] = compute_norm_sums,
        [POD_NUMBER_NORM_BY] = compute_norm_by,
        [POD_NUMBER_ROTATE] = compute_rotate,
        [POD_NUMBER_HEADS] = compute_heads,
        [POD_NUMBER_ATTEND] = compute_attend,
        [POD_NUMBER_ATTEND_BACK] = compute_attend_back,
        [POD_NUMBER_ATTEND_PART] = compute_attend_part,
        [POD_NUMBER_ATTEND_MERGE] = compute_attend_merge,
        [POD_NUMBER_ATTEND_END] = compute_attend_end,
        [POD_NUMBER_ATTEND_ALONG] = compute_attend_along,
        [POD_NUMBER_ATTEND_PART_BACK] = compute_attend_part_back,
        [POD_NUMBER_REGROUP] = compute_regroup,
        [POD_NUMBER_FUNCTION] = compute_function,
        [POD_NUMBER_FUNCTION_BACK] = compute_function_back,
        [POD_NUMBER_LOSS_SUMS] = compute_loss_sums,
        [POD_NUMBER_LOSS] = compute_loss,
        [POD_NUMBER_ROUTE] = compute_route,
        [POD_NUMBER_ROUTE_BACK] = compute_route_back,
        [POD_NUMBER_SEND] = compute_send,
        [POD_NUMBER_RETURN] = compute_return,
        [POD_NUMBER_RETURN_BACK] = compute_return_back,
        [POD_NUMBER_GROUPS] = compute_groups,
        [POD_NUMBER_QUANTIZE] = compute_quantize,
        [POD_NUMBER_DEQUANTIZE] = compute_dequantize,
        [POD_NUMBER_SGD] = compute_sgd,
        [POD_NUMBER_MOMENTUM] = compute_momentum,
        [POD_NUMBER_ADAM] = compute_adam,
        [POD_NUMBER_ADAM_STEP] = compute_adam,
        [POD_NUMBER_SQUARES] = compute_squares,
        [POD_NUMBER_LARS] = compute_lars,
        [POD_NUMBER_LAMB] = compute_lamb,
        [POD_NUMBER_MUON] = compute_muon,
        [POD_NUMBER_MIX] = compute_mix,
    };
    pod_status st = work_load(w);
    if (st == POD_OK && w->number->ahead) {
        positions_advance(w);
    }
    POD_THEN(st, compute[w->number->function](w));
    if (st == POD_OK) {
        work_store(w);
    }
    work_free(w);
    return st;
}

pod_status pod_numbers_exec(const pod_program *program, const pod_op *op, pod_shards *shards,
                            pod_error *err)
{
    for (int32_t i = op->numbers; i != POD_OP_NONE; i = program->numbers[i].next) {
        work w = {.program = program,
                  .op = op,
                  .number = &program->numbers[i],
                  .shards = shards,
                  .err = err};
        POD_TRY(number_exec(&w));
    }
    return POD_OK;
}
