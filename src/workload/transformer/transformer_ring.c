/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_ring.h"

#include "workload/transformer/transformer_context.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"

enum { BEFORE, AFTER, WAYS };

/** What all steps of a layer share. */
typedef struct ring {
    const char *const *names;
    const pod_layer *layer;
    const pod_attention_args *args; /**< of whole sequences */
    const int32_t *touch;
    int64_t chips;
    int32_t kv;      /**< buffers: what comes, */
    int32_t partial; /**< and sums in f32 */
} ring;

/* ---- passes ---- */

static int64_t values_width(const ring *r)
{
    return r->args->kv_heads * r->args->v_dim;
}

static int64_t keys_width(const ring *r)
{
    return r->args->kv_heads * r->args->qk_dim;
}

/** `shift` places round the axis of `width` columns of each token. */
static int32_t ring_shift(pod_tf *tf, const char *name, int64_t width, pod_dtype dtype,
                          int64_t shift, const int32_t after_buffer[2])
{
    const int32_t op =
        pod_tf_collective(tf, POD_PERMUTE, name, &tf->sequence, tf->tokens * width, dtype,
                          after_buffer[0], TOUCH(after_buffer[1], NONE, NONE, NONE));
    if (op != NONE && tf->stage.build.st == POD_OK) {
        tf->program->ops[op].shift = (int32_t)shift;
    }
    return op;
}

/** Keys and values come from the next chip of that way. @param after  the pass before, or POD_OP_NONE */
static int32_t kv_pass(pod_tf *tf, const ring *r, int way, int32_t after)
{
    const int32_t op =
        ring_shift(tf, r->names[1], keys_width(r) + values_width(r), POD_DTYPE_BF16,
                   way == BEFORE ? 1 : r->chips - 1, (const int32_t[2]){after, r->kv});
    pod_tf_context_ring_pass(tf, op, way);
    return op;
}

/** @param part  1 keys, 2 values */
static int32_t gradient_pass(pod_tf *tf, const ring *r, int part, int64_t shift)
{
    return ring_shift(tf, r->names[2], part == POD_TF_RING_KEYS ? keys_width(r) : values_width(r),
                      POD_DTYPE_F32, shift, (const int32_t[2]){NONE, r->partial});
}

/* ---- kernels ---- */

/** Each chip has a front and a back piece, and a query of one sees keys of either but those after it. */
static bool has_two_pieces(const pod_tf *tf, const pod_attention_args *args)
{
    return args->causal && !tf->stage.request->settings.context_unbalanced && tf->seq >= 2;
}

/** Scores of a chip's queries with its own keys. @param both  its back piece sees all of the front one */
static void own_block(pod_tf *tf, const ring *r, bool both)
{
    pod_attention_args own = *r->args;
    const int64_t half = tf->seq / 2;
    own.queries = tf->seq;
    own.keys = tf->seq;
    if (!has_two_pieces(tf, r->args)) {
        pod_tf_attention(tf, r->names[0], &own, r->touch);
        return;
    }
    own.queries = half;
    own.keys = half;
    pod_tf_attention(tf, r->names[0], &own, r->touch);
    own.queries = tf->seq - half;
    own.keys = both ? tf->seq : own.queries;
    pod_tf_attention(tf, r->names[0], &own, r->touch);
}

/** Scores of a chip's queries with the keys of another: half of them are hidden if each has two pieces. */
static void other_block(pod_tf *tf, const ring *r)
{
    pod_attention_args block = *r->args;
    block.queries = tf->seq;
    block.keys = has_two_pieces(tf, r->args) ? tf->seq / 2 : tf->seq;
    block.window = 0;
    block.chunk = 0;
    block.causal = false;
    pod_tf_attention(tf, r->names[0], &block, r->touch);
}

/** Scores with as many keys of each chip as an indexer chooses. */
static void chosen_block(pod_tf *tf, const ring *r)
{
    pod_attention_args block = *r->args;
    block.queries = tf->seq;
    block.keys = pod_min_i64(pod_ceil_div(block.window, r->chips), tf->seq);
    block.window = 0;
    block.causal = false;
    pod_tf_attention(tf, r->names[0], &block, r->touch);
}

/** Scores of a piece's queries with the keys of the piece so many before it. */
static void near_block(pod_tf *tf, const ring *r, int64_t distance)
{
    pod_attention_args block = *r->args;
    const int64_t piece = has_two_pieces(tf, r->args) ? tf->seq - tf->seq / 2 : tf->seq;
    block.queries = piece;
    block.keys = piece;
    block.after = distance * piece;
    if (block.chunk > 0) { /* the pieces' edge halves it */
        block.queries = pod_min_i64(pod_max_i64(block.chunk / 2, 1), piece);
        block.keys = block.queries;
        block.after = 0;
        block.chunk = 0;
        block.causal = false;
    }
    pod_tf_attention(tf, r->names[0], &block, r->touch);
}

/* ---- sums ---- */

/** Partial sums in f32, read and written, and what is added to them. */
static void add_partial(pod_tf *tf, const ring *r, const char *name, int64_t width,
                        int64_t added_bytes)
{
    enum { F32_READ_WRITE = 8 };
    const int64_t elements = tf->tokens * width;
    pod_tf_vector(tf, name, (double)elements, (F32_READ_WRITE + added_bytes) * elements,
                  TOUCH(r->partial, NONE, NONE, NONE));
}

static void ring_gradient_add(pod_tf *tf, const ring *r, int part)
{
    add_partial(tf, r, "bwd.add.dkv", part == POD_TF_RING_KEYS ? keys_width(r) : values_width(r),
                sizeof(float));
}

/** The step's result to that of those before, or its derivatives by queries. */
static void queries_add(pod_tf *tf, const ring *r, const pod_tf_visit *visit)
{
    const int64_t rows = pod_tf_context_width(tf, r->layer);
    if (r->args->backward) {
        add_partial(tf, r, "bwd.add.dq", r->args->heads * r->args->qk_dim, sizeof(float));
        pod_tf_context_ring_add(tf, visit, POD_TF_RING_QUERIES);
    } else {
        add_partial(tf, r, "fwd.merge.context", rows, BYTES);
        pod_tf_context_ring_merge(tf, r->layer, visit, r->touch);
    }
}

static void buffers_make(pod_tf *tf, ring *r, int64_t pieces, int64_t gradients)
{
    const int64_t kv_width = keys_width(r) + values_width(r);
    r->kv = pod_tf_buffer(tf, "kv", POD_MEMORY_ACTIVATIONS, tf->stage.build.dtype,
                          pieces * tf->tokens, kv_width);
    r->partial = pod_tf_buffer(tf, "partial", POD_MEMORY_ACTIVATIONS, POD_DTYPE_F32, tf->tokens,
                               pod_tf_context_width(tf, r->layer)
                                   + (r->args->backward ? gradients * kv_width : 0));
}

/* ---- all keys ---- */

static const int gradient_parts[2] = {POD_TF_RING_VALUES, POD_TF_RING_KEYS};

static void all_keys(pod_tf *tf, ring *r)
{
    int32_t passed = NONE;
    int32_t gradient[2] = {NONE, NONE};
    const bool chosen = r->layer->index_heads > 0 && r->args->window < r->args->keys;
    buffers_make(tf, r, 2, 2);
    pod_tf_context_ring_begin(tf, r->layer, r->touch, r->args->backward);
    for (int64_t step = 0; step < r->chips; step++) {
        const pod_tf_visit visit = {.back = step, .first = step == 0, .last = step == r->chips - 1};
        passed = kv_pass(tf, r, BEFORE, passed);
        if (chosen) {
            chosen_block(tf, r);
        } else if (step == 0) {
            own_block(tf, r, true);
        } else {
            other_block(tf, r);
        }
        pod_tf_context_ring_attend(tf, r->layer, &visit, r->touch[0], r->args->backward);
        for (int i = 0; r->args->backward && i < 2; i++) {
            pod_tf_wait(tf, gradient[i]);
            ring_gradient_add(tf, r, gradient_parts[i]);
            pod_tf_context_ring_add(tf, &visit, gradient_parts[i]);
            gradient[i] = gradient_pass(tf, r, gradient_parts[i], 1);
            pod_tf_context_ring_pass_back(tf, gradient[i], gradient_parts[i]);
        }
        queries_add(tf, r, &visit);
        pod_tf_wait(tf, passed);
        pod_tf_context_ring_passed(tf, BEFORE);
    }
    pod_tf_wait(tf, gradient[0]);
    pod_tf_wait(tf, gradient[1]);
}

/* ---- a window ---- */

/** First token of a piece of sequences: those in front are one token shorter if a chip has an odd number. */
static int64_t piece_first(const pod_tf *tf, const ring *r, int64_t piece)
{
    const int64_t half = tf->seq / 2;
    return !has_two_pieces(tf, r->args) ? piece * tf->seq
           : piece < r->chips           ? piece * half
                                        : r->chips * half + (piece - r->chips) * (tf->seq - half);
}

/** Pieces before its own that a query sees keys of, at most. */
static int64_t pieces_back(const pod_tf *tf, const ring *r)
{
    const int64_t pieces = has_two_pieces(tf, r->args) ? 2 * r->chips : r->chips;
    int64_t most = 0;
    for (int64_t p = 1; p < pieces && most < r->chips; p++) {
        const int64_t query = piece_first(tf, r, p);
        const int64_t key =
            r->args->chunk > 0 ? query - query % r->args->chunk : query - r->args->window + 1;
        int64_t back = 0;
        while (back < p && piece_first(tf, r, p - back) > key) {
            back++;
        }
        most = pod_max_i64(most, back);
    }
    return most;
}

/** Gradients by keys and values of other chips on their way home. */
typedef struct homing {
    int32_t op[2];
    int32_t number[2];
} homing;

/** What has come home is added, the last step's gradients go. @param back  chips, POD_OP_NONE: nothing goes */
static void gradients_home(pod_tf *tf, const ring *r, homing *home, int64_t back)
{
    for (int i = 0; r->args->backward && i < 2; i++) {
        const int part = gradient_parts[i];
        homing next = {
            .op = {NONE, NONE}
        };
        if (back != NONE) {
            next.op[i] = gradient_pass(tf, r, part, r->chips - back);
            next.number[i] = pod_tf_context_ring_home(tf, next.op[i], part);
        }
        if (home->op[i] != NONE) {
            pod_tf_wait(tf, home->op[i]);
            ring_gradient_add(tf, r, part);
            pod_tf_context_ring_came_home(tf, home->number[i], part);
        }
        home->op[i] = next.op[i];
        home->number[i] = next.number[i];
    }
}

static void near_keys(pod_tf *tf, ring *r)
{
    const int64_t back = pieces_back(tf, r);
    const bool both = has_two_pieces(tf, r->args);
    const int64_t others = r->chips - 1;
    const int64_t reach[WAYS] = {pod_min_i64(back, both ? pod_ceil_div(others, 2) : others),
                                 both ? pod_min_i64(back, others / 2) : 0};
    int32_t came[WAYS] = {NONE, NONE};
    homing home = {
        .op = {NONE, NONE}
    };
    pod_tf_visit visit = {.first = true, .last = reach[BEFORE] == 0};
    buffers_make(tf, r, pod_min_i64(reach[BEFORE], 2) + pod_min_i64(reach[AFTER], 2),
                 visit.last ? 1 : 4);
    pod_tf_context_ring_begin(tf, r->layer, r->touch, r->args->backward);
    for (int way = 0; way < WAYS; way++) {
        came[way] = reach[way] > 0 ? kv_pass(tf, r, way, NONE) : NONE;
    }
    own_block(tf, r, false);
    if (both && back >= r->chips) { /* of its back piece with its front one, of one chip */
        near_block(tf, r, r->chips);
    }
    pod_tf_context_ring_attend(tf, r->layer, &visit, r->touch[0], r->args->backward);
    for (int i = 0; r->args->backward && i < 2; i++) {
        ring_gradient_add(tf, r, gradient_parts[i]);
        pod_tf_context_ring_add(tf, &visit, gradient_parts[i]);
    }
    queries_add(tf, r, &visit);
    for (int64_t n = 1; n <= reach[BEFORE] + reach[AFTER]; n++) {
        const int way = n % 2 == 0 && n / 2 <= reach[AFTER] ? AFTER : BEFORE;
        const int64_t distance = way == AFTER ? n / 2 : n - pod_min_i64(n / 2, reach[AFTER]);
        visit = (pod_tf_visit){.back = way == BEFORE ? distance : r->chips - distance,
                               .last = n == reach[BEFORE] + reach[AFTER]};
        pod_tf_wait(tf, came[way]);
        pod_tf_context_ring_passed(tf, way);
        came[way] = distance < reach[way] ? kv_pass(tf, r, way, came[way]) : NONE;
        near_block(tf, r, distance);
        if (both && r->chips - distance <= back) { /* of the other piece */
            near_block(tf, r, r->chips - distance);
        }
        pod_tf_context_ring_attend(tf, r->layer, &visit, r->touch[0], r->args->backward);
        gradients_home(tf, r, &home, visit.back);
        queries_add(tf, r, &visit);
    }
    gradients_home(tf, r, &home, NONE);
}

void pod_tf_ring(pod_tf *tf, const char *const names[3], const pod_layer *layer,
                 const pod_attention_args *args, const int32_t touch[POD_OP_TOUCHES_MAX])
{
    ring r = {.names = names,
              .layer = layer,
              .args = args,
              .touch = touch,
              .chips = pod_tf_context_chips(tf)};
    if (layer->window > 0 && layer->index_heads == 0 && args->causal) {
        near_keys(tf, &r);
    } else {
        all_keys(tf, &r);
    }
}
