/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a transformer's step in one stage: embedding, layers, head and loss, and back. */
#include "workload/transformer/transformer.h"

#include "workload/mlp/stage.h"
#include "workload/transformer/transformer_infer.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_layer.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

#include <stdlib.h>

enum { NONE = POD_OP_NONE, BYTES = 2 };

/* ---- sizes ---- */

static pod_status ulysses_check(const pod_tf *tf, pod_error *err)
{
    const int64_t heads = tf->model->heads / tf->tensor;
    const int64_t chips = pod_work_layout_pieces(tf->layout, &tf->sequence);
    if (tf->request->settings.context == POD_CONTEXT_ULYSSES && heads % chips != 0) {
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
    pod_status st = pod_work_divides(layout, "batch", tf->request->batch, &batch, err);
    if (st == POD_OK) {
        st = pod_work_divides(layout, "seq", tf->request->seq, &tf->sequence, err);
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
    const int64_t sequences = tf->request->batch / pod_work_layout_pieces(layout, &batch);
    if (sequences % tf->request->microbatches != 0) {
        return pod_fail(
            err, POD_E_INVALID,
            "%lld sequences of a chip do not divide into %d microbatches; use a divisor",
            (long long)sequences, (int)tf->request->microbatches);
    }
    tf->sequences = sequences / tf->request->microbatches;
    tf->seq = tf->request->seq / pod_work_layout_pieces(layout, &tf->sequence);
    tf->tokens = tf->sequences * tf->seq;
    return POD_OK;
}

/* ---- the ends ---- */

/** Rows of a table that is cut along its columns: picked everywhere by a product with a 0-1 matrix, as MaxText's
 * recipes do, then exchanged. */
static void exchange(pod_tf *tf, const char *name, int32_t x)
{
    const pod_tf_bundle *table = pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING);
    const pod_axis_list *cut = &table->cut;
    pod_tf_wait(tf,
                pod_tf_collective(tf, POD_ALL_TO_ALL, name, cut, tf->tokens * tf->model->d_model,
                                  POD_DTYPE_BF16, NONE, TOUCH(x, NONE, NONE, NONE)));
}

static int32_t part_input(pod_tf *tf)
{
    const int64_t d = tf->model->d_model;
    const int32_t x = pod_tf_activation(tf, "x", d);
    if (tf->number > 0) {
        const pod_array empty = {.buffer = x, .op = NONE, .dtype = tf->build.dtype};
        pod_tf_wait(tf,
                    pod_build_recv(&tf->build, "fwd.recv", &empty, tf->number - 1, tf->part).op);
        return x;
    }
    enum { IDS = 4 }; /* token, target, position, segment: 4 bytes each */
    (void)pod_tf_buffer(tf, "tokens", POD_MEMORY_INPUT, POD_DTYPE_F32, tf->tokens, IDS);
    const int64_t vocab = (tf->model->vocab + tf->tensor - 1) / tf->tensor;
    tf->layer = -1;
    pod_tf_matmul(tf, "fwd.matmul.embed", (const int64_t[3]){tf->tokens, vocab, d}, 1,
                  TOUCH(x, NONE, NONE, NONE));
    exchange(tf, "fwd.exchange.embedding", x);
    return x;
}

/** Elements in f32 for the loss: logits, all or what a sixteenth of the HBM holds; plain: with their derivatives. */
static int64_t wide_elements(const pod_tf *tf, int64_t elements)
{
    enum { PART = 16, WIDE_BYTES = 4 };
    const pod_chip_spec *chip = tf->request->chip;
    if (tf->request->attention == POD_ATTENTION_PLAIN) {
        return 2 * elements;
    }
    const int64_t most = chip != NULL ? chip->hbm_usable_bytes / PART / WIDE_BYTES : elements;
    return elements < most ? elements : most;
}

/** Logits of this chip: `tiles` pieces of `rows` tokens, one at a time. */
typedef struct logits_size {
    int64_t tiles;
    int64_t rows;
    int64_t vocab;
} logits_size;

static logits_size logits_of(const pod_tf *tf)
{
    const int64_t wanted = tf->request->settings.vocab_tiles;
    const int64_t tiles = wanted > 1 ? (wanted < tf->tokens ? wanted : tf->tokens) : 1;
    return (logits_size){.tiles = tiles,
                         .rows = (tf->tokens + tiles - 1) / tiles,
                         .vocab = (tf->model->vocab + tf->tensor - 1) / tf->tensor};
}

/** Products of all pieces with the head. @return the logits of one */
static int32_t head_forward(pod_tf *tf, const char *name, const logits_size *size, int32_t xn,
                            int32_t weights)
{
    const int32_t logits = pod_tf_buffer(tf, "logits", POD_MEMORY_ACTIVATIONS, tf->build.dtype,
                                         size->rows, size->vocab);
    pod_tf_matmul(tf, name, (const int64_t[3]){size->rows, tf->model->d_model, size->vocab},
                  size->tiles, TOUCH(xn, weights, logits, NONE));
    return logits;
}

/** From the logits back to the last layer's output. */
static int32_t head_backward(pod_tf *tf, const logits_size *size, int32_t x, int32_t xn,
                             int32_t weights)
{
    const int64_t d = tf->model->d_model;
    const int64_t elements = tf->tokens * d;
    pod_tf_bundle *head = pod_tf_bundle_of(tf, 0, POD_TF_HEAD);
    const int32_t dlogits = tf->logits;
    const int32_t dx = pod_tf_activation(tf, "dx", d);
    pod_tf_matmul(tf, "bwd.matmul.head", (const int64_t[3]){size->rows, size->vocab, d},
                  size->tiles, TOUCH(dlogits, weights, dx, NONE));
    const int32_t sum = pod_tf_sum(tf, "bwd.sum.head", dx, d);
    const int32_t partial = pod_tf_gradient_buffer(tf, head);
    pod_tf_matmul(tf, "bwd.matmul.dhead", (const int64_t[3]){d, size->rows, size->vocab},
                  size->tiles, TOUCH(xn, dlogits, partial, NONE));
    pod_tf_gradient(tf, head, partial);
    pod_tf_wait(tf, sum);
    pod_tf_vector(tf, "bwd.norm", (double)elements, 4 * elements * BYTES, TOUCH(x, dx, NONE, NONE));
    return dx;
}

/** Logits, loss and the way back to the last layer's output. Of more than one piece logits are made twice. */
static int32_t part_loss(pod_tf *tf, int32_t x)
{
    enum { LOSS_BYTES = 16, AGAIN_BYTES = 6 };
    /* bf16 in, f32 out; f32 in for the sum and for the loss; its derivative out. Again: bf16 in, f32 out */
    const int64_t rows = tf->tokens * tf->model->d_model;
    const logits_size size = logits_of(tf);
    const int64_t elements = size.tiles * size.rows * size.vocab;
    const int32_t weights = pod_tf_use_begin(tf)->gathered;
    const int32_t xn = pod_tf_activation(tf, "norm", tf->model->d_model);
    pod_tf_vector(tf, "fwd.norm", (double)rows, 2 * rows * BYTES, TOUCH(x, xn, NONE, NONE));
    tf->logits = head_forward(tf, "fwd.matmul.head", &size, xn, weights);
    if (tf->request->mode != POD_STEP_TRAIN) {
        return tf->logits;
    }
    const int32_t wide = pod_tf_buffer(tf, "logits.f32", POD_MEMORY_ACTIVATIONS, POD_DTYPE_F32,
                                       wide_elements(tf, size.rows * size.vocab), 1);
    pod_tf_vector(tf, "loss", (double)elements, LOSS_BYTES * elements,
                  TOUCH(tf->logits, wide, NONE, NONE)); /* its derivative in place */
    if (size.tiles > 1) {
        tf->program->recomputes = true;
        tf->logits = head_forward(tf, "bwd.matmul.head.again", &size, xn, weights);
        pod_tf_vector(tf, "loss.again", (double)elements, AGAIN_BYTES * elements,
                      TOUCH(tf->logits, wide, NONE, NONE));
        tf->program->recomputes = false;
    }
    return head_backward(tf, &size, x, xn, weights);
}

static void part_forward(pod_tf *tf)
{
    int32_t x = part_input(tf);
    for (int32_t l = 0; l < tf->layers; l++) {
        tf->layer = tf->first_layer + l;
        x = pod_tf_layer_forward(tf, x);
    }
    tf->layer = -1;
    if (tf->number < tf->count - 1) {
        const pod_array y = {.buffer = x, .op = tf->last_core, .dtype = tf->build.dtype};
        pod_build_send(&tf->build, "fwd.send", &y, tf->number + 1, tf->part);
        tf->ends[tf->part] = x;
        return;
    }
    if (tf->request->mode == POD_STEP_TRAIN) {
        pod_tf_load(tf, tf->first_layer + tf->layers - 1);
    }
    tf->ends[tf->part] = part_loss(tf, x);
}

/** Rows of the embedding's gradient. */
static void embedding_backward(pod_tf *tf, int32_t dx)
{
    pod_tf_bundle *table = pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING);
    tf->layer = -1;
    exchange(tf, "bwd.exchange.embedding", dx);
    if (table->there && table->gradient == NONE) {
        table->gradient = pod_tf_buffer(tf, "embedding.gradient", POD_MEMORY_GRADIENTS,
                                        tf->build.dtype, table->shard, 1);
    }
    pod_tf_matmul(tf, "bwd.matmul.embed",
                  (const int64_t[3]){(tf->model->vocab + tf->tensor - 1) / tf->tensor, tf->tokens,
                                     tf->model->d_model},
                  1, TOUCH(dx, table->gradient, NONE, NONE));
    if (table->there && tf->part == tf->request->microbatches - 1) {
        table->gradient_op = tf->last_core;
        pod_tf_gradient_complete(tf, table);
    }
}

static void part_backward(pod_tf *tf)
{
    const int32_t message = tf->request->microbatches + tf->part;
    int32_t dy = tf->ends[tf->part];
    if (tf->number < tf->count - 1) {
        dy = pod_tf_activation(tf, "dy", tf->model->d_model);
        const pod_array empty = {.buffer = dy, .op = NONE, .dtype = tf->build.dtype};
        pod_tf_load(tf, tf->first_layer + tf->layers - 1);
        pod_tf_wait(tf, pod_build_recv(&tf->build, "bwd.recv", &empty, tf->number + 1, message).op);
    }
    for (int32_t l = tf->layers - 1; l >= 0; l--) {
        tf->layer = tf->first_layer + l;
        if (l > 0) {
            pod_tf_load(tf, tf->layer - 1);
        }
        dy = pod_tf_layer_backward(tf, dy);
    }
    if (tf->number > 0) {
        const pod_array dx = {.buffer = dy, .op = tf->last_core, .dtype = tf->build.dtype};
        tf->layer = -1;
        pod_build_send(&tf->build, "bwd.send", &dx, tf->number - 1, message);
        return;
    }
    embedding_backward(tf, dy);
}

/* ---- order ---- */

static void part_declare(void *context, int32_t part, bool backward)
{
    pod_tf *tf = context;
    (void)part;
    for (int32_t i = 0; i < tf->layers; i++) {
        const int32_t l = backward ? tf->layers - 1 - i : i;
        pod_tf_layer_declare(tf, tf->first_layer + l, backward);
    }
    if (!backward && tf->number == tf->count - 1) {
        pod_tf_use_declare(tf, pod_tf_bundle_of(tf, 0, POD_TF_HEAD), "fwd");
    }
}

static void part_run(void *context, int32_t part, bool backward)
{
    pod_tf *tf = context;
    tf->part = part;
    if (backward) {
        part_backward(tf);
    } else {
        part_forward(tf);
    }
}

static void update(void *context)
{
    pod_tf_update(context);
}

static pod_status tf_alloc(pod_tf *tf, pod_error *err)
{
    const size_t parts = (size_t)tf->request->microbatches;
    const size_t count = parts * (size_t)tf->layers;
    tf->saved = calloc(count, sizeof *tf->saved);
    tf->ends = calloc(parts, sizeof *tf->ends);
    if (tf->saved == NULL || tf->ends == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d layers", (int)tf->layers);
    }
    for (size_t i = 0; i < count; i++) {
        for (int what = 0; what < POD_TF_SLOTS; what++) {
            tf->saved[i].buffer[what] = NONE;
            tf->saved[i].store[what] = NONE;
            tf->saved[i].load[what] = NONE;
        }
    }
    return POD_OK;
}

pod_status pod_transformer_program(const pod_step_request *request, pod_step_work *work,
                                   int32_t number, pod_error *err)
{
    const int32_t layers = (int32_t)request->model->layers / work->layout.stages;
    pod_tf tf = {
        .request = request,
        .model = request->model,
        .layout = &work->layout,
        .plan = work->plan,
        .program = &work->programs.stages[number],
        .number = number,
        .count = work->layout.stages,
        .first_layer = number * layers,
        .layers = layers,
        .last_core = NONE,
        .scatters = {NONE, NONE, NONE},
        .layer = -1
    };
    pod_build_init(&tf.build, &work->layout, &work->programs, tf.program, &work->tensors, err);
    tf.build.compute = request->dtype;
    tf.build.dtype = POD_DTYPE_BF16;
    if (request->mode == POD_STEP_PREFILL || request->mode == POD_STEP_DECODE) {
        const pod_status inferred = pod_tf_infer(&tf, err);
        pod_build_fini(&tf.build);
        return inferred;
    }
    tf.build.st = sizes_find(&tf, err);
    if (tf.build.st == POD_OK) {
        tf.build.st = tf_alloc(&tf, err);
    }
    if (tf.build.st == POD_OK) {
        tf.build.st = pod_tf_bundles_make(&tf);
    }
    if (tf.build.st == POD_OK) {
        pod_stage stage = {
            .request = request, .build = tf.build, .number = number, .count = tf.count};
        const pod_stage_driver driver = {
            .context = &tf, .declare = part_declare, .run = part_run, .update = update};
        pod_stage_input(&stage);
        pod_stage_drive(&stage, &driver);
    }
    const pod_status st = tf.build.st;
    pod_build_fini(&tf.build);
    free(tf.bundles);
    free(tf.uses);
    free(tf.saved);
    free(tf.ends);
    return st;
}
