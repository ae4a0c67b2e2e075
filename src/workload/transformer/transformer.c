/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a transformer's step in one stage: embedding, layers, head and loss, and back. */
#include "workload/transformer/transformer.h"

#include "chip/kernels.h"
#include "workload/build/circular.h"
#include "workload/transformer/transformer_context.h"
#include "workload/transformer/transformer_ends.h"
#include "workload/transformer/transformer_infer.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_lacks.h"
#include "workload/transformer/transformer_layer.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_pieces.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_stages.h"
#include "workload/transformer/transformer_update.h"
#include "workload/transformer/transformer_weights.h"

#include <stdlib.h>

/* ---- sizes ---- */

static pod_status ulysses_check(const pod_tf *tf, pod_error *err)
{
    const int64_t heads = tf->model->heads / tf->tensor;
    const int64_t chips = pod_work_layout_pieces(tf->layout, &tf->sequence);
    if (tf->stage.request->settings.context == POD_CONTEXT_ULYSSES && heads % chips != 0) {
        return pod_fail(
            err, POD_E_INVALID,
            "--context-parallel ulysses cuts %lld heads of a chip over sequence=%lld; use "
            "a sequence that divides them, or all-gather or ring",
            (long long)heads, (long long)chips);
    }
    return POD_OK;
}

static pod_status sizes_find(pod_tf *tf, pod_error *err)
{
    const pod_work_layout *layout = tf->layout;
    const pod_model *model = tf->model;
    pod_axis_list batch = {0};
    for (int i = 0; i < layout->rows.count; i++) {
        pod_axis_list *list = layout->rows.axis[i] == POD_MESH_SEQUENCE ? &tf->sequence : &batch;
        list->axis[list->count++] = layout->rows.axis[i];
    }
    tf->tensor = pod_work_layout_pieces(layout, &layout->tensor);
    tf->expert = pod_work_layout_pieces(layout, &layout->expert);
    pod_status st = pod_work_divides(layout, "batch", tf->stage.request->batch, &batch, err);
    if (st == POD_OK) {
        st = pod_work_divides(layout, "seq", tf->stage.request->seq, &tf->sequence, err);
    }
    if (st == POD_OK) {
        st = pod_work_divides(layout, "heads", model->heads, &layout->tensor, err);
    }
    if (st == POD_OK) {
        st = pod_work_divides(layout, "d_ff", model->d_ff, &layout->tensor, err);
    }
    if (st != POD_OK) {
        return st;
    }
    st = ulysses_check(tf, err);
    if (st != POD_OK) {
        return st;
    }
    const int64_t sequences = tf->stage.request->batch / pod_work_layout_pieces(layout, &batch);
    if (sequences % tf->stage.request->microbatches != 0) {
        return pod_fail(
            err, POD_E_INVALID,
            "%lld sequences of a chip do not divide into %d microbatches; use a divisor",
            (long long)sequences, (int)tf->stage.request->microbatches);
    }
    tf->part_sequences = sequences / tf->stage.request->microbatches;
    tf->sequences = tf->part_sequences;
    tf->seq = tf->stage.request->seq / pod_work_layout_pieces(layout, &tf->sequence);
    tf->tokens = tf->sequences * tf->seq;
    tf->pieces = tf->stage.request->collective_matmul && tf->tensor > 1;
    return tf->pieces
               ? pod_work_divides(layout, "tokens of a chip", tf->tokens, &layout->tensor, err)
               : POD_OK;
}

/* ---- the ends ---- */

/** Rows of a table that is cut along its columns: picked everywhere, then exchanged. @return the exchange, under way */
static int32_t embedding_exchange(pod_tf *tf, const char *name, bool backward, int32_t x,
                                  int32_t after)
{
    const pod_tf_bundle *table = pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING);
    const pod_axis_list *cut = &table->cut;
    const int32_t op =
        pod_tf_collective(tf, POD_ALL_TO_ALL, name, cut, tf->tokens * tf->model->d_model,
                          POD_DTYPE_BF16, after, TOUCH(x, NONE, NONE, NONE));
    if (op != after && pod_tf_numbers(tf)) {
        const int64_t d = tf->model->d_model;
        const int64_t pieces = pod_work_layout_pieces(tf->layout, cut);
        const int32_t to =
            pod_tf_number_new(tf, "x", tf->stage.build.dtype, tf->tokens * (backward ? pieces : 1),
                              backward ? d / pieces : d);
        pod_tf_number_move(tf, op, pod_tf_number(tf, x), to, (const int[2]){backward, !backward});
        pod_tf_number_set(tf, x, to);
    }
    return op;
}

/** Elements that the derivatives of rows are added to and nothing else is. */
static int64_t rows_zeros(const pod_tf *tf)
{
    const pod_tf_bundle *table = pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING);
    const pod_tf_bundle *words = pod_tf_words(tf);
    return table->shard + (words != table && !pod_stage_has_output(&tf->stage) ? words->shard : 0);
}

/** The rows of all tokens out of the table, or their derivatives into its gradient: a product with a 0-1 matrix, as
 *  MaxText's recipes do, or row by row, read and written; derivatives are added, to zeros at first. */
static void embedding_rows(pod_tf *tf, bool backward, int32_t x, int32_t table)
{
    enum { GATHER = 2, SCATTER = 3 };
    const int64_t d = tf->model->d_model;
    const int64_t vocab = (tf->model->vocab + tf->tensor - 1) / tf->tensor;
    const int64_t size[3] = {backward ? vocab : tf->tokens, backward ? tf->tokens : vocab, d};
    const int64_t elements = tf->tokens * d;
    if (tf->stage.request->settings.embed_by_rows) {
        const int64_t zeros = backward ? rows_zeros(tf) : 0;
        pod_tf_vector(tf, backward ? "bwd.rows.embed" : "fwd.rows.embed", (double)elements,
                      ((backward ? SCATTER : GATHER) * elements + zeros) * BYTES,
                      TOUCH(x, table, NONE, NONE));
    } else {
        pod_tf_matmul(tf, backward ? "bwd.matmul.embed" : "fwd.matmul.embed", size, 1,
                      TOUCH(x, table, NONE, NONE));
    }
}

static pod_tf *tf_of(pod_stage *stage)
{
    return (pod_tf *)stage; /* its first member */
}

/** A buffer as the last core op leaves it. */
static pod_array array_of(const pod_tf *tf, int32_t buffer)
{
    return (pod_array){.buffer = buffer, .op = tf->last_core, .dtype = tf->stage.build.dtype};
}

/** The convolution that makes tokens of a chip's pictures, and back: its weights are used once, and nobody needs the
 *  derivative by the picture. */
static pod_conv_shape patches_of(const pod_tf *tf)
{
    const pod_model *model = tf->model;
    return (pod_conv_shape){.n = tf->sequences,
                            .h = model->image,
                            .w = model->image,
                            .cin = POD_PICTURE_CHANNELS,
                            .cout = model->d_model,
                            .kh = model->patch,
                            .kw = model->patch,
                            .stride = model->patch};
}

static pod_array patches_forward(pod_tf *tf, int32_t x)
{
    const pod_conv_shape shape = patches_of(tf);
    const int32_t pixels = pod_tf_buffer(tf, "pixels", POD_MEMORY_INPUT, POD_DTYPE_BF16,
                                         shape.n * shape.h * shape.w, POD_PICTURE_CHANNELS);
    tf->layer = -1;
    const int32_t weights = pod_tf_use_begin(tf)->gathered;
    pod_tf_conv(tf, "fwd.conv.patches", POD_CONV_FORWARD, &shape, TOUCH(pixels, weights, x, NONE));
    pod_tf_number_patches(tf, weights, x);
    tf->rows_cut = false;
    return array_of(tf, x);
}

static void patches_backward(pod_tf *tf, int32_t dx)
{
    const pod_conv_shape shape = patches_of(tf);
    pod_tf_bundle *patches = pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING);
    const int32_t partial = pod_tf_gradient_buffer(tf, patches);
    (void)pod_tf_gather_rows(tf, "bwd.gather.rows", dx);
    pod_tf_conv(tf, "bwd.conv.dpatches", POD_CONV_WEIGHTS, &shape, TOUCH(dx, partial, NONE, NONE));
    pod_tf_number_patches_back(tf, dx, partial);
    pod_tf_gradient(tf, patches, partial);
}

static pod_array tf_input(pod_stage *stage)
{
    pod_tf *tf = tf_of(stage);
    const int64_t d = tf->model->d_model;
    const int32_t x = pod_tf_activation(tf, "x", d);
    enum { IDS = 4 }; /* token, target, position, segment: 4 bytes each */
    if (tf->model->patch > 0) {
        return patches_forward(tf, x);
    }
    (void)pod_tf_buffer(tf, "tokens", POD_MEMORY_INPUT, POD_DTYPE_F32, tf->tokens, IDS);
    tf->layer = -1;
    embedding_rows(tf, false, x, NONE);
    pod_tf_number_pick(tf, pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING), pod_tf_words(tf), x);
    const int32_t exchange = embedding_exchange(tf, "fwd.exchange.embedding", false, x, NONE);
    tf->rows_cut = false;
    /* chips of tensor have different rows of the table */
    pod_array rows = array_of(tf, x);
    const int32_t sum = pod_tf_sum(tf, "fwd.sum.embedding", x, d, exchange);
    rows.op = sum != NONE ? sum : rows.op;
    return rows;
}

/** What is on the host of the last layer comes back while the derivative does. */
static void tf_prepare(pod_stage *stage, int32_t layer)
{
    pod_tf_load(tf_of(stage), layer);
}

static pod_array tf_entry(pod_stage *stage, bool backward)
{
    pod_tf *tf = tf_of(stage);
    const int32_t buffer = pod_tf_row_buffer(tf, backward ? "dy" : "x", tf->model->d_model);
    tf->rows_cut = tf->pieces;
    return (pod_array){.buffer = buffer, .op = NONE, .dtype = stage->build.dtype};
}

/** Logits of this chip: `tiles` pieces of `rows` tokens, one at a time. */
typedef struct logits_size {
    int64_t tiles;
    int64_t rows;
    int64_t vocab;
} logits_size;

static logits_size logits_of(const pod_tf *tf)
{
    const int64_t wanted = tf->stage.request->settings.vocab_tiles;
    const int64_t tiles = wanted > 1 ? (wanted < tf->tokens ? wanted : tf->tokens) : 1;
    return (logits_size){.tiles = tiles,
                         .rows = (tf->tokens + tiles - 1) / tiles,
                         .vocab = (tf->model->vocab + tf->tensor - 1) / tf->tensor};
}

/** Matmuls with the head. @return the logits of one tile */
static int32_t head_forward(pod_tf *tf, const char *name, const logits_size *size, int32_t xn,
                            int32_t weights)
{
    const int32_t logits = pod_tf_buffer(tf, "logits", POD_MEMORY_LOGITS, tf->stage.build.dtype,
                                         size->rows, size->vocab);
    pod_tf_number_set(tf, logits,
                      pod_tf_number_new(tf, "logits", tf->stage.build.dtype,
                                        size->tiles * size->rows, size->vocab)); /* all tiles */
    const pod_tf_products head = {
        .pass = "fwd.pass.head",
        .buffer = xn,
        .tiles = size->tiles,
        .count = 1,
        .product = {{name,
                     tf->model->d_model,
                     size->vocab,
                     1,
                     {xn, weights, logits, NONE},
                     pod_tf_factor_forward(tf, TOUCH(xn, weights, logits), 0, 0)}}};
    pod_tf_multiply(tf, &head, tf->rows_cut && !tf->program->recomputes);
    return logits;
}

/** Numbers of a dense head: what it reads, and what is before its function and its norm. */
typedef struct dense_numbers {
    int32_t x;
    int32_t hidden;
    int32_t h;
} dense_numbers;

/** Elements of the weights of the head before those of a dense one. */
static int64_t dense_first(const pod_tf *tf)
{
    const int64_t rows = tf->model->d_model + (tf->model->biases > 0 ? 1 : 0);
    return rows * pod_ceil_div(tf->model->vocab, tf->tensor);
}

static void dense_function(pod_tf *tf, const char *name, int64_t passes, int32_t x)
{
    const int64_t elements = tf->tokens * tf->model->d_model;
    pod_tf_vector(tf, name, (double)elements, passes * elements * BYTES,
                  TOUCH(x, NONE, NONE, NONE));
}

/** The product before the head with its function and norm, in place. */
static dense_numbers dense_forward(pod_tf *tf, int32_t x, int32_t weights)
{
    enum { PASSES = 4 }; /* function and norm: each reads and writes */
    const int64_t d = tf->model->d_model;
    dense_numbers n = {.x = NONE, .hidden = NONE, .h = NONE};
    if (tf->model->head_dense == 0) {
        return n;
    }
    pod_tf_product product = {
        "fwd.matmul.dense",
        d,
        d,
        1,
        {x, weights, NONE, NONE},
        pod_tf_factor_forward(tf, TOUCH(x, weights, x), dense_first(tf), 0)
    };
    n.x = pod_tf_number(tf, x);
    n.hidden = pod_tf_number_next(tf, x);
    product.factor.out = n.hidden;
    pod_tf_matmul(tf, product.name, (const int64_t[3]){tf->tokens, d, d}, 1, product.touch);
    pod_tf_number_product(tf, &product, tf->tokens);
    dense_function(tf, "fwd.function.dense", PASSES, x);
    n.h = pod_tf_number_next(tf, x);
    pod_tf_number_function_of(tf, n.hidden, n.h);
    pod_tf_number_norm_alone(tf, x);
    return n;
}

/** And back, in place, with the derivative by its weights. @param partial  gradient of the head's weights */
static void dense_backward(pod_tf *tf, const dense_numbers *n, int32_t dx, int32_t weights,
                           int32_t partial)
{
    enum { PASSES = 8 };
    const int64_t d = tf->model->d_model;
    const int64_t by_weights[3] = {d, tf->tokens, d};
    dense_function(tf, "bwd.function.dense", PASSES, dx);
    pod_tf_number_norm_alone_back(tf, n->h, dx);
    const int32_t dh = pod_tf_number(tf, dx);
    const int32_t dhidden = pod_tf_number_next(tf, dx);
    pod_tf_number_function_back_of(tf, n->hidden, dh, dhidden);
    pod_tf_product product = {
        "bwd.matmul.dense",
        d,
        d,
        1,
        {dx, weights, NONE, NONE},
        pod_tf_factor_by_input(tf, TOUCH(dx, weights, dx), dense_first(tf), 0, false)
    };
    pod_tf_product derivative = {
        "bwd.matmul.ddense",
        d,
        d,
        1,
        {dx, partial, NONE, NONE},
        pod_tf_factor_by_weights(tf, dx, dx, dense_first(tf), 0)
    };
    product.factor.out = pod_tf_number_next(tf, dx);
    derivative.factor.a = n->x;
    derivative.factor.out = pod_tf_number(tf, partial);
    pod_tf_matmul(tf, product.name, (const int64_t[3]){tf->tokens, d, d}, 1, product.touch);
    pod_tf_number_product(tf, &product, tf->tokens);
    pod_tf_matmul(tf, derivative.name, by_weights, 1, derivative.touch);
    pod_tf_number_product(tf, &derivative, tf->tokens);
}

/** From the logits back to the last layer's output. */
static int32_t head_backward(pod_tf *tf, const logits_size *size, const dense_numbers *dense,
                             int32_t x, int32_t xn, int32_t weights)
{
    const int64_t d = tf->model->d_model;
    pod_tf_bundle *head = pod_tf_bundle_of(tf, 0, POD_TF_HEAD);
    const int32_t dlogits = tf->logits;
    const int32_t dx = pod_tf_row_buffer(tf, "dx", d);
    const pod_tf_products products = {
        .pass = "bwd.pass.head",
        .sum = "bwd.sum.head",
        .buffer = dx,
        .tiles = size->tiles,
        .count = 1,
        .product = {{"bwd.matmul.head",
                     size->vocab,
                     d,
                     1,
                     {dlogits, weights, dx, NONE},
                     pod_tf_factor_by_input(tf, TOUCH(dlogits, weights, dx), 0, 0, false)}}};
    pod_tf_summing sum = pod_tf_multiply_sum(tf, &products);
    const int32_t partial = pod_tf_gradient_buffer(tf, head);
    const pod_tf_products derivative = {
        .tiles = size->tiles,
        .count = 1,
        .product = {{"bwd.matmul.dhead",
                     d,
                     size->vocab,
                     1,
                     {xn, dlogits, partial, NONE},
                     pod_tf_factor_by_weights(tf, xn, dlogits, 0, 0)}}};
    pod_tf_multiply_weights(tf, &sum, &derivative);
    if (tf->model->head_dense > 0) {
        pod_tf_multiply_sum_end(tf, &sum);
        dense_backward(tf, dense, dx, weights, partial);
        pod_tf_gradient(tf, head, partial);
    } else {
        pod_tf_gradient(tf, head, partial);
        pod_tf_multiply_sum_end(tf, &sum);
    }
    const int64_t elements = pod_tf_rows(tf) * d;
    pod_tf_vector(tf, "bwd.norm", (double)elements, 4 * elements * BYTES, TOUCH(x, dx, NONE, NONE));
    pod_tf_number_norm_back(tf, x, dx, dx, true);
    return dx;
}

/** Elements in f32 for the loss of a tile of logits, beside the logits in bf16.
 *
 *      plain attention    2 arrays: logits and their derivative
 *      else               4 arrays (logits, targets, softmax, derivative), which lie beside all that the backward pass
 *                         needs; none where those of all tokens would take 1/16 of the HBM or more each, and in models
 *                         with a tied head: then the conversion to f32 is part of the sums over the vocabulary
 *
 *  Source: MaxText ahead of time on v4 (docs/validation.md) needs 8.6 GiB more than the rest for 459 M logits, with 8
 *  tiles little more. With as much of the HBM neither MXv4-001 nor any run with 100k tokens of vocabulary would fit,
 *  with a tied head not TRv6e-017. */
static int64_t wide_elements(const pod_tf *tf, const logits_size *size)
{
    enum { PART = 16, WIDE_BYTES = 4, ARRAYS = 4 };
    const pod_step_request *request = tf->stage.request;
    const int64_t elements = size->rows * size->vocab;
    if (request->attention == POD_ATTENTION_PLAIN) {
        return 2 * elements;
    }
    const int64_t most =
        request->chip != NULL ? request->chip->hbm_usable_bytes / PART / WIDE_BYTES : INT64_MAX;
    return size->tiles * elements < most && tf->model->tied == 0 ? ARRAYS * elements : 0;
}

/** Those arrays, POD_OP_NONE: none. */
static int32_t wide_make(pod_tf *tf, const logits_size *size)
{
    const int64_t elements = wide_elements(tf, size);
    if (elements == 0 || tf->stage.build.st != POD_OK) {
        return NONE;
    }
    const int32_t wide =
        pod_tf_buffer(tf, "logits.f32", POD_MEMORY_LOGITS, POD_DTYPE_F32, elements, 1);
    if (tf->stage.request->attention != POD_ATTENTION_PLAIN && tf->stage.build.st == POD_OK) {
        const int32_t stack = tf->stage.circular ? 0 : tf->stage.part;
        tf->program->buffers[wide].stack = stack;
        tf->program->buffers[tf->logits].stack = stack;
    }
    return wide;
}

/** The loss and the derivative by the logits, in their place. Over tensor each chip has a part of the vocabulary: of
 *  each token the maximum of its logits, the sum of their exponents and the target's logit go to the others.
 *  @return numbers of these sums */
static int32_t loss_forward(pod_tf *tf, const logits_size *size, int32_t wide)
{
    enum { LOSS_BYTES = 16, SUM_BYTES = 10, SUMS = POD_KERNEL_LOSS_SUMS };
    /* bf16 in, f32 out; f32 in for the sums and for the loss; its derivative out */
    const int64_t elements = size->tiles * size->rows * size->vocab;
    const int32_t *touch = TOUCH(tf->logits, wide, NONE, NONE);
    const int64_t words = SUMS * tf->tokens;
    const bool cut = tf->tensor > 1;
    const int32_t own = pod_tf_number_new(tf, "loss.sums", POD_DTYPE_F32, words, 1);
    const int32_t all =
        cut ? pod_tf_number_new(tf, "loss.sums", POD_DTYPE_F32, words * tf->tensor, 1) : own;
    if (cut) {
        pod_tf_vector(tf, "loss.sums", (double)elements, SUM_BYTES * elements, touch);
        pod_tf_number_loss_sums(tf, own);
        const int32_t op =
            pod_tf_collective(tf, POD_ALL_GATHER, "fwd.gather.loss", &tf->layout->tensor,
                              words * tf->tensor, POD_DTYPE_F32, NONE, touch);
        pod_tf_number_move(tf, op, own, all, (const int[2]){0, 0});
        pod_tf_wait(tf, op);
    }
    pod_tf_vector(tf, "loss", (double)elements, (LOSS_BYTES - (cut ? SUM_BYTES : 0)) * elements,
                  touch);
    if (!cut) {
        pod_tf_number_loss_sums(tf, own);
    }
    pod_tf_number_loss(tf, all, false);
    return all;
}

/** Logits, loss and the way back to the last layer's output. Of more than one piece logits are made twice. */
static int32_t part_loss(pod_tf *tf, int32_t x)
{
    enum { AGAIN_BYTES = 6 }; /* bf16 in, f32 out */
    const int64_t rows = pod_tf_rows(tf) * tf->model->d_model;
    const logits_size size = logits_of(tf);
    const int64_t elements = size.tiles * size.rows * size.vocab;
    const int32_t weights = pod_tf_use_begin(tf)->gathered;
    const int32_t xn = pod_tf_activation(tf, "norm", tf->model->d_model);
    pod_tf_vector(tf, "fwd.norm", (double)rows, 2 * rows * BYTES, TOUCH(x, xn, NONE, NONE));
    pod_tf_number_norm(tf, x, NONE, xn);
    const dense_numbers dense = dense_forward(tf, xn, weights);
    tf->logits = head_forward(tf, "fwd.matmul.head", &size, xn, weights);
    if (tf->stage.request->mode != POD_STEP_TRAIN) {
        pod_tf_place(tf, POD_PLACE_LOGITS, pod_tf_number(tf, tf->logits), NULL, NULL);
        return tf->logits;
    }
    const int32_t wide = wide_make(tf, &size);
    const int32_t sums = loss_forward(tf, &size, wide);
    if (size.tiles > 1) {
        tf->program->recomputes = true;
        tf->logits = head_forward(tf, "bwd.matmul.head.again", &size, xn, weights);
        pod_tf_vector(tf, "loss.again", (double)elements, AGAIN_BYTES * elements,
                      TOUCH(tf->logits, wide, NONE, NONE));
        pod_tf_number_loss(tf, sums, true);
        tf->program->recomputes = false;
    }
    return head_backward(tf, &size, &dense, x, xn, weights);
}

/** The head of some tokens of each sequence: their rows are read out of the last layer's output, and their derivatives
 *  written into zeros. */
static int32_t masked_loss(pod_tf *tf, int32_t x)
{
    const int64_t d = tf->model->d_model;
    const int64_t tokens = tf->tokens;
    const int32_t chips = pod_work_layout_pieces(tf->layout, &tf->sequence);
    tf->tokens = pod_ceil_div(tf->sequences * tf->model->masked, chips);
    const int32_t rows = pod_tf_activation(tf, "masked", d);
    pod_tf_vector(tf, "fwd.rows.masked", (double)(tf->tokens * d), 2 * tf->tokens * d * BYTES,
                  TOUCH(x, rows, NONE, NONE));
    const int32_t names = pod_tf_number_head_rows(tf, x, rows);
    const int32_t drows = part_loss(tf, rows);
    const int64_t read = tf->tokens * d;
    tf->tokens = tokens;
    if (tf->stage.request->mode != POD_STEP_TRAIN) {
        return drows;
    }
    const int32_t dx = pod_tf_activation(tf, "dx", d);
    pod_tf_vector(tf, "bwd.rows.masked", (double)(tokens * d), (tokens * d + 2 * read) * BYTES,
                  TOUCH(drows, dx, NONE, NONE));
    pod_tf_number_head_rows_back(tf, names, drows, dx);
    return dx;
}

static pod_array tf_output(pod_stage *stage, const pod_array *x)
{
    pod_tf *tf = tf_of(stage);
    pod_tf_wait(tf, x->op);
    tf->layer = -1;
    if (stage->request->mode == POD_STEP_TRAIN && !stage->circular) {
        pod_tf_load(tf, stage->first_layer + stage->layers - 1);
    }
    return array_of(tf,
                    tf->model->masked > 0 ? masked_loss(tf, x->buffer) : part_loss(tf, x->buffer));
}

/* ---- layers ---- */

static pod_array tf_forward(pod_stage *stage, int32_t layer, const pod_array *x)
{
    pod_tf *tf = tf_of(stage);
    pod_tf_wait(tf, x->op);
    pod_tf_stages_take(tf, x->buffer);
    tf->layer = layer;
    const int32_t y = pod_tf_layer_forward(tf, x->buffer);
    return array_of(tf, y);
}

static pod_array tf_backward(pod_stage *stage, int32_t layer, const pod_array *dy)
{
    pod_tf *tf = tf_of(stage);
    pod_tf_wait(tf, dy->op);
    tf->came = dy->op;
    pod_tf_stages_take(tf, dy->buffer);
    tf->layer = layer;
    if (layer > pod_stage_first_layer(stage)) {
        pod_tf_load(tf, layer - 1);
    }
    const int32_t dx = pod_tf_layer_backward(tf, dy->buffer);
    return array_of(tf, dx);
}

/** A gradient that rows are added to. @return whether it is new */
static bool rows_gradient(pod_tf *tf, pod_tf_bundle *bundle)
{
    if (!bundle->there || bundle->gradient != NONE) {
        return false;
    }
    bundle->gradient = pod_tf_buffer(tf, "embedding.gradient", POD_MEMORY_GRADIENTS,
                                     tf->stage.build.dtype, bundle->shard, 1);
    return true;
}

/** Rows of the embedding's gradient. */
static void tf_finish(pod_stage *stage, const pod_array *derivative)
{
    pod_tf *tf = tf_of(stage);
    const int32_t dx = pod_tf_whole_buffer(tf, "dx", derivative->buffer, tf->model->d_model);
    pod_tf_bundle *table = pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING);
    tf->layer = -1;
    tf->came = derivative->op != tf->last_core ? derivative->op : NONE;
    if (tf->model->patch > 0) {
        pod_tf_wait(tf, derivative->op);
        patches_backward(tf, dx);
        return;
    }
    const int32_t whole = pod_tf_gather_rows(tf, "bwd.gather.rows", dx);
    pod_tf_wait(tf, embedding_exchange(tf, "bwd.exchange.embedding", true, dx,
                                       whole != NONE ? whole : derivative->op));
    pod_tf_bundle *words = pod_tf_words(tf);
    const bool first = rows_gradient(tf, table);
    const bool first_words = words == table ? first : rows_gradient(tf, words);
    pod_tf_wait(tf, words != table ? words->gradient_op
                                   : NONE); /* rows are added to what the head left */
    embedding_rows(tf, true, dx, words->gradient);
    pod_tf_number_pick_back(tf, table, words, dx, (const bool[2]){first, first_words});
    const bool last = pod_stage_part_is_last(stage);
    if (table->there && last) {
        table->gradient_op = tf->last_core;
        pod_tf_gradient_complete(tf, table);
    }
    if (words != table && last) {
        words->gradient_op = tf->last_core;
        pod_tf_gradient_complete(tf, words);
    }
}

/* ---- the program ---- */

static void tf_declare(pod_stage *stage, int32_t layer, bool backward)
{
    pod_tf_layer_declare(tf_of(stage), layer, backward);
}

static void tf_declare_input(pod_stage *stage)
{
    pod_tf *tf = tf_of(stage);
    if (tf->model->patch > 0) {
        pod_tf_use_declare(tf, pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING), "fwd");
    }
}

static void tf_declare_output(pod_stage *stage)
{
    pod_tf *tf = tf_of(stage);
    pod_tf_use_declare(tf, pod_tf_bundle_of(tf, 0, POD_TF_HEAD), "fwd");
}

static void tf_weights(pod_stage *stage)
{
    pod_tf *tf = tf_of(stage);
    const int32_t parts = stage->circular ? pod_circular_share(stage) : 1;
    stage->ops->resize(stage, parts);
    tf->positions = pod_tf_number_new(tf, "positions", POD_DTYPE_F32, tf->tokens, 1);
    pod_tf_place(tf, POD_PLACE_POSITIONS, tf->positions, NULL, NULL);
    pod_tf_context_begin(tf);
    stage->ops->resize(stage, 1);
    pod_tf_bundles_make(tf_of(stage));
    pod_tf_gather_once(tf_of(stage));
}

static void tf_update(pod_stage *stage)
{
    pod_tf_update(tf_of(stage));
}

static void tf_resize(pod_stage *stage, int32_t parts)
{
    pod_tf *tf = tf_of(stage);
    tf->sequences = tf->part_sequences * parts;
    tf->tokens = tf->sequences * tf->seq;
}

static void tf_wait(pod_stage *stage, int32_t op)
{
    pod_tf_wait(tf_of(stage), op);
}

static const pod_stage_ops tf_stage_ops = {.weights = tf_weights,
                                           .declare = tf_declare,
                                           .declare_input = tf_declare_input,
                                           .declare_output = tf_declare_output,
                                           .resize = tf_resize,
                                           .wait = tf_wait,
                                           .prepare = tf_prepare,
                                           .input = tf_input,
                                           .entry = tf_entry,
                                           .forward = tf_forward,
                                           .output = tf_output,
                                           .backward = tf_backward,
                                           .finish = tf_finish,
                                           .update = tf_update,
                                           .rows = pod_tf_stages_rows};

static pod_status tf_alloc(pod_tf *tf, pod_error *err)
{
    const size_t parts = (size_t)tf->stage.request->microbatches;
    const size_t count = parts * (size_t)tf->stage.layers;
    tf->saved = calloc(count, sizeof *tf->saved);
    if (tf->saved == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d layers", (int)tf->stage.layers);
    }
    for (size_t i = 0; i < count; i++) {
        for (int what = 0; what < POD_TF_SLOTS; what++) {
            tf->saved[i].buffer[what] = NONE;
            tf->saved[i].store[what] = NONE;
            tf->saved[i].load[what] = NONE;
        }
        tf->saved[i].kv = NONE;
        tf->saved[i].dkv = NONE;
        tf->saved[i].shared[0] = NONE;
        tf->saved[i].shared[1] = NONE;
    }
    return POD_OK;
}

pod_status pod_transformer_program(const pod_step_request *request, pod_step_work *work,
                                   int32_t number, pod_error *err)
{
    pod_tf tf = {
        .model = request->model,
        .layout = &work->layout,
        .plan = work->plan,
        .program = &work->programs.stages[number],
        .last_core = NONE,
        .came = NONE,
        .keys_gather = NONE,
        .context = {.scattered = NONE, .returned = NONE},
        .turned_rows = NONE,
        .bias_rows = {    NONE,             NONE                },
        .whole_dy = NONE,
        .scatters = { NONE,             NONE,                             NONE},
        .layer = -1
    };
    pod_build *build = &tf.stage.build;
    pod_stage_init(&tf.stage, &tf_stage_ops, request, work, number, err);
    tf.stage.order = tf.stage.circular ? pod_circular_build : NULL;
    build->dtype = POD_DTYPE_BF16;
    build->gather = pod_tf_use_gather;
    build->gather_context = &tf;
    if (request->mode > POD_STEP_FORWARD) {
        build->st = pod_tf_infer(&tf, err);
    } else {
        build->st = sizes_find(&tf, err);
        if (build->st == POD_OK) {
            build->st = tf_alloc(&tf, err);
        }
        if (build->st == POD_OK && request->numbers) {
            build->st = pod_tf_context_check(request, tf.layout, err);
        }
        if (build->st == POD_OK && request->numbers) {
            build->st = pod_tf_lacks_layout(request, &work->layout, err);
        }
        if (build->st == POD_OK && request->numbers) {
            build->st = pod_tf_numbers_begin(&tf);
        }
        if (build->st == POD_OK) {
            build->st = pod_stage_build(&tf.stage);
        }
    }
    const pod_status st = build->st;
    pod_stage_fini(&tf.stage);
    free(tf.bundles);
    free(tf.saved);
    free(tf.rows_wait);
    free(tf.before);
    return st;
}
