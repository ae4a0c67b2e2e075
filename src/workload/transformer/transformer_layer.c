/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of a transformer, forward and backward. With T tokens on a chip, width d, q and kv the columns of
 * queries, and of keys with values, elementwise work moves (elements, 2 bytes each):
 *
 *      norm       forward 3·T·d        backward 5·T·d: what is squared is read before, by a pass of its own
 *      rotation   forward 2·T·(q + kv) backward the same: into the order of heads, rotated; twice that with norms
 *                                      of queries and keys
 *      residual   forward T·d          backward T·d
 *
 * Backward computes again what wasn't kept, in the order of forward. */
#include "workload/transformer/transformer_layer.h"

#include "workload/build/uses.h"
#include "workload/transformer/transformer_attention.h"
#include "workload/transformer/transformer_context.h"
#include "workload/transformer/transformer_heads.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_mlp.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_pieces.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

/** Attention and MLP have one norm, and backward doesn't need what attention gives. */
static bool is_parallel(const pod_tf *tf)
{
    return tf->model->parallel > 0;
}

/* ---- parts of forward ---- */

/** @param more  of a layer that is done again: what is added to x before */
static void norm_forward(pod_tf *tf, const char *name, int32_t x, int32_t more, int32_t xn)
{
    const int64_t elements = pod_tf_rows(tf) * tf->model->d_model;
    pod_tf_vector(tf, name, (double)elements, 3 * elements * BYTES, TOUCH(x, xn, NONE, NONE));
    pod_tf_number_norm(tf, x, more, xn);
}

/** Whether layers of this stage share the keys and values of one of its layers. */
static bool shares_here(const pod_tf *tf, int64_t source)
{
    return tf->model->kv_shared_layers > 0 && tf->stage.build.st == POD_OK && !tf->stage.circular
           && source >= pod_stage_first_layer(&tf->stage);
}

/** A buffer of keys and values that later layers read, or of derivatives by them, from the first layer that has it on;
 *  NONE: of no other layer. @param which  of pod_tf_saved.shared */
static int32_t shared_buffer(pod_tf *tf, const pod_layer *layer, int which)
{
    const int64_t source = pod_model_kv_source(tf->model, tf->layer);
    if (!shares_here(tf, source)) {
        return NONE;
    }
    int32_t *shared = &pod_tf_saved_of(tf, (int32_t)source)->shared[which];
    if (*shared == NONE && (which == 0 || source != tf->layer)) {
        *shared = pod_tf_activation(tf, "kv",
                                    layer->kv_heads / tf->tensor * (layer->qk_dim + layer->v_dim));
    }
    return *shared;
}

/** Derivatives by keys and values that several layers read: each adds its own. */
static void shared_back(pod_tf *tf, const pod_layer *layer, int32_t dqkv)
{
    enum { PASSES = 3 };
    const int64_t source = pod_model_kv_source(tf->model, tf->layer);
    if (!shares_here(tf, source)) {
        return;
    }
    const bool first = pod_tf_saved_of(tf, (int32_t)source)->shared[1] == NONE;
    const int32_t sum = shared_buffer(tf, layer, 1);
    if (sum == NONE) {
        return; /* nobody shares them */
    }
    const int64_t elements =
        tf->tokens * (layer->kv_heads / tf->tensor) * (layer->qk_dim + layer->v_dim);
    if (!first) {
        pod_tf_vector(tf, "bwd.add.kv", (double)elements, PASSES * elements * BYTES,
                      TOUCH(dqkv, sum, NONE, NONE));
    }
    if (pod_tf_context_chips(tf) == 1) {
        pod_tf_heads_share_back(tf, layer, dqkv);
    }
}

/** What rotation reads and writes. */
typedef struct rotated {
    int32_t qkv;
    int32_t more; /**< another buffer that it touches */
    int32_t raw;  /**< back: numbers before the norms of queries and keys */
    bool back;
} rotated;

static void rotate_numbers(pod_tf *tf, const pod_layer *layer, const rotated *of)
{
    if (of->back) {
        pod_tf_heads_rotate_back(tf, layer, of->qkv, of->raw);
    } else {
        pod_tf_heads_rotate(tf, layer, of->qkv);
        if (tf->model->kv_shared_layers > 0) {
            pod_tf_heads_share(tf, layer, of->qkv);
        }
    }
}

static void rotate(pod_tf *tf, const char *name, const pod_layer *layer, rotated of)
{
    const int64_t elements = tf->tokens * pod_tf_qkv_width(tf, layer);
    const int64_t passes = tf->model->qk_norms > 0 ? 4 : 2;
    pod_tf_vector(tf, name, (double)elements, passes * elements * BYTES,
                  TOUCH(of.qkv, of.more, shared_buffer(tf, layer, of.back ? 1 : 0), NONE));
    if (of.back && pod_tf_context_collect(tf, layer, of.qkv, of.raw)) {
        return;
    }
    if (of.back && tf->model->kv_shared_layers > 0 && pod_tf_context_chips(tf) > 1) {
        pod_tf_heads_share_back(tf, layer, of.qkv); /* what has come from other chips */
    }
    rotate_numbers(tf, layer, &of);
}

/** The columns of what is kept among queries, keys and values. */
static void qkv_kept(pod_tf *tf, const pod_layer *layer, int32_t qkv)
{
    const pod_tf_saved *saved = pod_tf_saved_of(tf, tf->layer);
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        if (m->role == POD_ROLE_PROJECTION && pod_tf_is_kept(tf, m->kept)) {
            pod_tf_number_columns(tf, saved->number[POD_TF_SLOT_PROJECTION + i],
                                  pod_tf_number(tf, qkv), pod_tf_column_first(tf, layer, m),
                                  pod_layer_matmul_n(m, tf->tensor) * m->count);
        }
    }
}

/** What of it is gathered over sequence. */
static unsigned gathered_of(const pod_layer_matmul *m)
{
    return ((m->kept & 1U << POD_KEEP_KEY) != 0 ? POD_TF_KEYS : 0)
           | ((m->kept & 1U << POD_KEEP_VALUE) != 0 ? POD_TF_VALUES : 0);
}

/** Queries, keys and values. @param again  only those that aren't kept */
static int32_t qkv_forward(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t weights,
                           bool again)
{
    const int32_t qkv = pod_tf_activation(tf, "qkv", pod_tf_qkv_width(tf, layer));
    const bool keys_first = !tf->pieces && pod_tf_attend_gathers(tf, layer);
    pod_tf_quantize(tf, tf->tokens * tf->model->d_model, xn);
    if (again) {
        qkv_kept(tf, layer, qkv);
    }
    enum { KEYS, VALUES, REST, ORDER }; /* of what is gathered while others are projected */
    pod_tf_products products[ORDER] = {
        {.pass = "fwd.pass.qkv", .buffer = xn},
        {.pass = "fwd.pass.qkv", .buffer = xn},
        {.pass = "fwd.pass.qkv", .buffer = xn}
    };
    unsigned what[ORDER] = {0};
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const unsigned of = gathered_of(m);
        const int turn = !keys_first || of == 0 ? REST : (of & POD_TF_KEYS) != 0 ? KEYS : VALUES;
        pod_tf_products *p = &products[turn];
        if (m->role == POD_ROLE_PROJECTION && !(again && pod_tf_is_kept(tf, m->kept))) {
            what[turn] |= of;
            p->product[p->count++] = (pod_tf_product){
                "fwd.matmul.qkv",
                m->k,
                pod_layer_matmul_n(m, tf->tensor),
                m->count,
                {xn, weights, qkv, NONE},
                pod_tf_factor_latent(tf, layer, m,
                                     pod_tf_factor_forward(tf, TOUCH(xn, weights, qkv),
                                                           pod_tf_weights_first(tf, layer, m),
                                                           pod_tf_column_first(tf, layer, m)),
                                     pod_tf_number(tf, qkv))
            };
        }
    }
    for (int i = KEYS; i < REST; i++) {
        const bool alone = products[KEYS].count == 0 || products[VALUES].count == 0;
        if (products[i].count > 0) {
            pod_tf_multiply(tf, &products[i], false);
            pod_tf_attend_gather_begin(tf, layer, qkv,
                                       alone ? POD_TF_KEYS | POD_TF_VALUES : what[i], again);
        }
    }
    pod_tf_multiply(tf, &products[REST], tf->rows_cut);
    return qkv;
}

/** Keep queries, keys and values, whole or those of some projections. */
static void qkv_keep(pod_tf *tf, const pod_layer *layer, int32_t qkv)
{
    if (pod_tf_qkv_is_whole(tf)) {
        pod_tf_keep(tf, POD_TF_SLOT_PROJECTION, POD_TF_QKV, qkv);
        return;
    }
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        if (m->role == POD_ROLE_PROJECTION && pod_tf_is_kept(tf, m->kept)) {
            pod_tf_keep(tf, (pod_tf_slot)(POD_TF_SLOT_PROJECTION + i), m->kept,
                        pod_tf_activation(tf, "kept", pod_layer_matmul_n(m, tf->tensor)));
            pod_tf_saved_of(tf, tf->layer)->number[POD_TF_SLOT_PROJECTION + i] =
                pod_tf_number(tf, qkv); /* all of them */
        }
    }
}

/** Queries, keys and values for the backward pass, before rotation. */
static int32_t qkv_again(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t weights)
{
    if (pod_tf_qkv_is_whole(tf)) {
        (void)pod_tf_gather_rows(tf, "bwd.gather.rows.again",
                                 xn); /* the derivative by the weights reads them */
        return pod_tf_kept(tf, POD_TF_SLOT_PROJECTION);
    }
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        if (m->role == POD_ROLE_PROJECTION && pod_tf_is_kept(tf, m->kept)) {
            (void)pod_tf_kept(tf, (pod_tf_slot)(POD_TF_SLOT_PROJECTION + i));
        }
    }
    return qkv_forward(tf, layer, xn, weights, true);
}

/** What backward of an MLP begins with, if that is done before what precedes it is there again. */
typedef struct early_mlp {
    int32_t dy; /**< by the layer's output */
    int32_t dh;
    bool there;
} early_mlp;

/** @param beside  done again, what the MLP's backward pass begins with beside the sum, or NULL */
static int32_t out_forward(pod_tf *tf, const pod_layer *layer, int32_t context, int32_t weights,
                           early_mlp *beside)
{
    const int64_t d = pod_layer_find(layer, POD_ROLE_OUT)->n;
    const int64_t width = pod_tf_context_width(tf, layer);
    const int32_t out =
        is_parallel(tf) ? pod_tf_activation(tf, "out", d) : pod_tf_row_buffer(tf, "out", d);
    pod_tf_factor factor = pod_tf_factor_forward(
        tf, TOUCH(context, weights, out),
        pod_tf_weights_first(tf, layer, pod_layer_find(layer, POD_ROLE_OUT)), 0);
    factor.partial = true;
    const pod_tf_products products = {
        .pass = "fwd.pass.out",
        .sum = "fwd.sum.out",
        .buffer = out,
        .count = 1,
        .product = {{"fwd.matmul.out", width, d, 1, {context, weights, out, NONE}, factor}}};
    pod_tf_quantize(tf, tf->tokens * width, context);
    if (is_parallel(tf)) { /* summed with what the MLP gives */
        pod_tf_multiply(tf, &products, false);
    } else {
        pod_tf_summing sum = pod_tf_multiply_sum(tf, &products);
        if (beside != NULL && pod_tf_mlp_begins_early(tf, layer)) {
            tf->program->recomputes = false;
            beside->dh = pod_tf_mlp_begin_early(tf, layer, beside->dy);
            tf->program->recomputes = true;
            beside->there = true;
        }
        pod_tf_multiply_sum_end(tf, &sum);
    }
    return out;
}

/** y += x. @param beside  the buffer that the op reads */
static void residual(pod_tf *tf, int32_t x, int32_t beside, int32_t y)
{
    const int64_t elements = pod_tf_rows(tf) * tf->model->d_model;
    pod_tf_vector(tf, "fwd.residual", (double)elements, elements * BYTES,
                  TOUCH(beside, y, NONE, NONE));
    pod_tf_number_add(tf, x, y);
}

/** Whether backward needs the weights of attention before those of the MLP. */
static bool attention_is_done_again(const pod_tf *tf)
{
    return !pod_tf_is_kept(tf, POD_TF_QKV)
           || (!is_parallel(tf) && !pod_tf_is_kept(tf, 1U << POD_KEEP_OUT));
}

/** Whether backward finds what attention gave: of plain attention its probabilities, too. */
static bool context_is_kept(const pod_tf *tf)
{
    const bool plain = tf->stage.request->attention == POD_ATTENTION_PLAIN;
    return pod_tf_is_kept(tf, 1U << POD_KEEP_CONTEXT | (plain ? 1U << POD_KEEP_SCORES : 0U));
}

static bool has_post_norm(const pod_tf *tf, bool of_mlp)
{
    enum { OF_MLP = 2, OF_ATTENTION = 3 };
    const int64_t norms = tf->model->post_norms;
    return norms > 0 && norms != (of_mlp ? OF_ATTENTION : OF_MLP);
}

static void post_norm_op(pod_tf *tf, const char *name, int passes, int32_t y)
{
    const int64_t elements = pod_tf_rows(tf) * tf->model->d_model;
    pod_tf_vector(tf, name, (double)elements, passes * elements * BYTES,
                  TOUCH(y, NONE, NONE, NONE));
}

/** A norm of what attention or the MLP gives, for models that have it. */
static void post_norm(pod_tf *tf, const char *name, bool of_mlp, int32_t y)
{
    if (has_post_norm(tf, of_mlp)) {
        post_norm_op(tf, name, 2, y);
        pod_tf_number_norm_alone(tf, y);
    }
}

/** The derivative by what it read, in place. @param raw  the numbers of that @return those of dy before */
static int32_t post_norm_back(pod_tf *tf, bool of_mlp, int32_t raw, int32_t dy)
{
    const int32_t before = pod_tf_number(tf, dy);
    if (has_post_norm(tf, of_mlp)) {
        post_norm_op(tf, "bwd.norm.post", 4, dy);
        pod_tf_number_norm_alone_back(tf, raw, dy);
    }
    return before;
}

void pod_tf_layer_declare(pod_tf *tf, int32_t layer, bool backward)
{
    enum { MLP_PARTS = POD_LAYER_PARTS - 1 };
    static const pod_layer_part forward[MLP_PARTS] = {POD_PART_IN, POD_PART_EXPERTS_GATE,
                                                      POD_PART_EXPERTS_IN, POD_PART_EXPERTS_OUT,
                                                      POD_PART_OUT};
    static const pod_layer_part back[MLP_PARTS] = {POD_PART_EXPERTS_OUT, POD_PART_OUT,
                                                   POD_PART_EXPERTS_GATE, POD_PART_EXPERTS_IN,
                                                   POD_PART_IN};
    const char *phase = backward ? "bwd" : "fwd";
    const pod_layer sizes = pod_model_layer(tf->model, layer);
    const bool attention_first = !backward || attention_is_done_again(tf);
    const pod_layer_part *order =
        backward
                && (pod_tf_is_kept(tf, 1U << POD_KEEP_MLPWI) || pod_tf_mlp_begins_early(tf, &sizes))
            ? back
            : forward;
    if (attention_first) {
        pod_tf_use_declare(tf, pod_tf_bundle_of(tf, layer, POD_PART_ATTENTION), phase);
    }
    for (int i = 0; i < MLP_PARTS; i++) {
        pod_tf_use_declare(tf, pod_tf_bundle_of(tf, layer, order[i]), phase);
    }
    if (!attention_first) {
        pod_tf_use_declare(tf, pod_tf_bundle_of(tf, layer, POD_PART_ATTENTION), phase);
    }
}

/** Between attention and MLP. @return the norm of their sum */
static int32_t middle_forward(pod_tf *tf, int32_t x, int32_t out)
{
    if (has_post_norm(tf, false) && tf->stage.build.st == POD_OK) {
        pod_tf_saved_of(tf, tf->layer)->raw[0] = pod_tf_number(tf, out);
    }
    post_norm(tf, "fwd.norm.post", false, out);
    residual(tf, x, x, out);
    pod_tf_keep(tf, POD_TF_SLOT_OUT, 1U << POD_KEEP_OUT, out);
    const int32_t xn = pod_tf_activation(tf, "norm", tf->model->d_model);
    norm_forward(tf, "fwd.norm", out, NONE, xn);
    return xn;
}

/** Columns of bf16 that elementwise work leaves for backward: of both norms the result and the input in f32, of the
 * function its parts and its result, one more than it has inputs. */
static int64_t elementwise_width(const pod_tf *tf, const pod_layer *layer)
{
    const int64_t matrices = tf->model->mlp_matrices;
    return 6 * tf->model->d_model + matrices * pod_tf_hidden_width(tf, layer) / (matrices - 1);
}

/** The numbers of what elementwise work leaves. */
static void norms_keep(pod_tf *tf, int32_t xn, int32_t xn2, int32_t qkv)
{
    pod_tf_saved *saved = pod_tf_saved_of(tf, tf->layer);
    if (tf->stage.build.st == POD_OK && saved != NULL) {
        saved->normed[0] = pod_tf_number(tf, xn);
        saved->normed[1] = pod_tf_number(tf, xn2);
        saved->rotated = pod_tf_number(tf, qkv);
    }
}

/** Where matmuls are in a byte, what comes into a layer is compared, too. */
static void boundary_place(pod_tf *tf, pod_place_role role, int32_t x)
{
    if (pod_tf_numbers(tf) && pod_dtype_size(tf->stage.build.compute) == 1) {
        pod_tf_place(tf, role, pod_tf_number(tf, x),
                     pod_tf_bundle_of(tf, tf->layer, POD_PART_ATTENTION), NULL);
    }
}

int32_t pod_tf_layer_forward(pod_tf *tf, int32_t x)
{
    boundary_place(tf, POD_PLACE_LAYER_INPUT, x);
    const pod_layer layer = pod_model_layer(tf->model, tf->layer);
    const int64_t d = tf->model->d_model;
    const int32_t weights = pod_tf_use_begin(tf)->gathered;
    pod_tf_keep(tf, POD_TF_SLOT_INPUT, 1U << POD_KEEP_INPUT, x);
    const int32_t xn = pod_tf_activation(tf, "norm", d);
    norm_forward(tf, "fwd.norm", x, NONE, xn);
    const int32_t qkv = qkv_forward(tf, &layer, xn, weights, false);
    qkv_keep(tf, &layer, qkv);
    rotate(tf, "fwd.rotate", &layer, (rotated){.qkv = qkv, .more = xn, .raw = NONE});
    const pod_tf_scores scores = pod_tf_attend(tf, &layer, qkv, false);
    const int32_t context = scores.context;
    pod_tf_keep(tf, POD_TF_SLOT_CONTEXT, 1U << POD_KEEP_CONTEXT, context);
    pod_tf_keep(tf, POD_TF_SLOT_SCORES, 1U << POD_KEEP_SCORES, scores.probabilities);
    const int32_t out = out_forward(tf, &layer, context, weights, NULL);
    const int32_t xn2 = is_parallel(tf) ? xn : middle_forward(tf, x, out);
    const int32_t y = pod_tf_mlp_forward(tf, &layer, xn2, is_parallel(tf) ? out : NONE);
    if (pod_tf_is_kept(tf, 1U << POD_KEEP_NORMS)) {
        norms_keep(tf, xn, xn2, qkv);
        pod_tf_keep(tf, POD_TF_SLOT_NORMS, 1U << POD_KEEP_NORMS,
                    pod_tf_activation(tf, "norms", elementwise_width(tf, &layer)));
    }
    post_norm(tf, "fwd.norm.post", true, y);
    residual(tf, is_parallel(tf) ? x : out, out, y);
    return y;
}

/* ---- backward ---- */

/** What backward of a layer starts from: kept, or computed again. */
typedef struct layer_state {
    int32_t x;
    int32_t xn;
    int32_t qkv;
    pod_tf_scores attended;
    int32_t out;
    int32_t xn2;
    int32_t normed;  /**< the numbers of xn */
    int32_t raw_qkv; /**< likewise before norms of heads and rotation, */
    int32_t raw_out; /**< and of what the output projection gives, before a norm */
    early_mlp early;
    pod_tf_mlp mlp;
} layer_state;

/** Up to the input of the MLP. @param weights  of attention, gathered, or NONE if they aren't needed */
static void attention_again(pod_tf *tf, const pod_layer *layer, int32_t weights, layer_state *s)
{
    const int64_t d = tf->model->d_model;
    const bool norms = pod_tf_is_kept(tf, 1U << POD_KEEP_NORMS);
    const bool out = pod_tf_is_kept(tf, 1U << POD_KEEP_OUT);
    const pod_tf_saved *saved = pod_tf_saved_of(tf, tf->layer);
    s->x = pod_tf_kept(tf, POD_TF_SLOT_INPUT);
    s->xn = norms ? pod_tf_kept(tf, POD_TF_SLOT_NORMS) : pod_tf_activation(tf, "norm", d);
    if (!norms) {
        norm_forward(tf, "bwd.norm.again", s->x, NONE, s->xn);
    }
    s->qkv = qkv_again(tf, layer, s->xn, weights);
    s->normed = norms ? saved->normed[0] : pod_tf_number(tf, s->xn);
    s->raw_qkv = pod_tf_number(tf, s->qkv);
    if (!norms) {
        rotate(tf, "bwd.rotate.again", layer, (rotated){.qkv = s->qkv, .more = NONE, .raw = NONE});
    } else {
        pod_tf_number_set(tf, s->qkv, saved->rotated);
    }
    s->attended = context_is_kept(tf)
                      ? (pod_tf_scores){.context = pod_tf_kept(tf, POD_TF_SLOT_CONTEXT),
                                        .probabilities = pod_tf_kept(tf, POD_TF_SLOT_SCORES),
                                        .gather = pod_tf_attend_gather(tf, layer, s->qkv, true)}
                      : pod_tf_attend(tf, layer, s->qkv, true);
    if (is_parallel(tf)) {
        s->out = s->x;
        s->xn2 = s->xn;
        pod_tf_number_set(tf, s->xn2, s->normed);
        return;
    }
    s->out = out ? pod_tf_kept(tf, POD_TF_SLOT_OUT)
                 : out_forward(tf, layer, s->attended.context, weights, &s->early);
    tf->rows_cut = tf->pieces && !norms;
    s->raw_out = out ? saved->raw[0] : pod_tf_number(tf, s->out);
    if (!norms && out && has_post_norm(tf, false)) {
        post_norm_op(tf, "bwd.norm.post.again", 2, s->out); /* what is kept has it in its numbers */
    } else if (!norms) {
        post_norm(tf, "bwd.norm.post.again", false, s->out);
    }
    s->xn2 = norms ? s->xn : pod_tf_activation(tf, "norm", d);
    if (!norms) {
        norm_forward(tf, "bwd.norm.again", s->out, out ? NONE : s->x, s->xn2);
    }
    pod_tf_number_set(tf, s->xn2, norms ? saved->normed[1] : pod_tf_number(tf, s->xn2));
}

static int32_t norm_backward(pod_tf *tf, int32_t x, int32_t dxn, int32_t dy)
{
    const int64_t elements = pod_tf_rows(tf) * tf->model->d_model;
    pod_tf_vector(tf, "bwd.norm", (double)elements, 5 * elements * BYTES, TOUCH(x, dxn, dy, NONE));
    pod_tf_number_norm_back(tf, x, dxn, dy, false);
    return dy; /* the residual path adds in place */
}

/** Of what attention's backward pass leaves. */
typedef struct attention_gradient {
    int32_t dqkv;
    int32_t dout;    /**< by the result of the output projection */
    int32_t partial; /**< of the weights, if that of the output projection is there */
    bool out_done;
} attention_gradient;

static bool is_of_queries(const pod_layer_matmul *m)
{
    return m->role == POD_ROLE_PROJECTION && m->kept == 1U << POD_KEEP_QUERY;
}

/** The i-th whose derivatives are computed: what reads a latent comes before what makes it. */
static const pod_layer_matmul *backward_matmul(const pod_tf *tf, const pod_layer *layer, int i)
{
    return &layer->matmul[tf->model->kv_lora > 0 ? layer->nmatmuls - 1 - i : i];
}

/** @param add  to what another projection has given */
static pod_tf_product input_derivative(pod_tf *tf, const pod_layer *layer, const layer_state *s,
                                       const pod_layer_matmul *m, const int32_t dqkv_weights_dxn[3],
                                       bool add)
{
    const int32_t *touch = dqkv_weights_dxn;
    const pod_tf_factor factor = pod_tf_factor_by_input(
        tf, touch, pod_tf_weights_first(tf, layer, m), pod_tf_column_first(tf, layer, m), add);
    return (pod_tf_product){
        "bwd.matmul.qkv",
        pod_layer_matmul_n(m, tf->tensor),
        m->k,
        m->count,
        {touch[0], touch[1], touch[2], NONE},
        pod_tf_factor_latent(tf, layer, m, factor, s->raw_qkv)
    };
}

static pod_tf_product weights_derivative(pod_tf *tf, const pod_layer *layer, const layer_state *s,
                                         const pod_layer_matmul *m, int32_t dqkv, int32_t partial)
{
    const pod_tf_factor factor = pod_tf_factor_by_weights(
        tf, s->xn, dqkv, pod_tf_weights_first(tf, layer, m), pod_tf_column_first(tf, layer, m));
    return (pod_tf_product){
        "bwd.matmul.dqkv",
        m->k,
        pod_layer_matmul_n(m, tf->tensor),
        m->count,
        {s->xn, dqkv, partial, NONE},
        pod_tf_factor_latent(tf, layer, m, factor, s->raw_qkv)
    };
}

/** @param dout  derivative by the projection's result, all rows */
static pod_tf_product out_derivative(pod_tf *tf, const pod_layer *layer, const layer_state *s,
                                     int32_t dout, int32_t partial)
{
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_OUT);
    pod_tf_product product = {
        "bwd.matmul.dout",
        pod_tf_context_width(tf, layer),
        m->n,
        1,
        {s->attended.context, partial, NONE, NONE},
        pod_tf_factor_by_weights(tf, s->attended.context, dout, pod_tf_weights_first(tf, layer, m),
                                 0)
    };
    product.factor.out = pod_tf_number(tf, partial);
    return product;
}

/** Where chips of tensor share latents, each has the part of their derivatives that its heads make. What a chip makes
 *  of that for the layer's input is summed with all else, but gradients of weights need the sum.
 *  @param[out] sum  its numbers, latent by latent @return the sum, under way; NONE: there is none */
static int32_t latents_sum(pod_tf *tf, const pod_layer *layer, int32_t dqkv, int32_t *sum)
{
    int64_t width = 0;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        width += tf->tensor > 1 && pod_tf_makes_latent(tf, m) ? m->n : 0;
    }
    const int32_t own =
        width > 0 ? pod_tf_number_new(tf, "dlatent", tf->stage.build.dtype, tf->tokens, width)
                  : NONE;
    *sum = width > 0 ? pod_tf_number_new(tf, "dlatent", tf->stage.build.dtype, tf->tokens, width)
                     : NONE;
    int64_t first = 0;
    for (int i = 0; i < layer->nmatmuls && own != NONE; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        if (pod_tf_makes_latent(tf, m)) {
            const int64_t column = pod_tf_column_first(tf, layer, m);
            pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
            copy.in[0] =
                pod_tf_number_part(tf, pod_tf_number(tf, dqkv), 0, tf->tokens, column, m->n);
            copy.out[0] = pod_tf_number_part(tf, own, 0, tf->tokens, first, m->n);
            pod_tf_number_compute(tf, &copy);
            first += m->n;
        }
    }
    const int32_t op = width > 0
                           ? pod_tf_collective(tf, POD_ALL_REDUCE, "bwd.sum.latents",
                                               &tf->layout->tensor, tf->tokens * width,
                                               POD_DTYPE_BF16, NONE, TOUCH(dqkv, NONE, NONE, NONE))
                           : NONE;
    pod_tf_number_move(tf, op, own, *sum, (const int[2]){0, 0});
    return op;
}

/** Derivatives by weights that make latents, when those are summed. */
static void latents_by_weights(pod_tf *tf, const pod_layer *layer, const layer_state *s,
                               const int32_t dqkv_partial_sum[3], int32_t summed)
{
    pod_tf_products latents = {0};
    pod_tf_summing none = {.products = NULL};
    int64_t first = 0;
    if (summed == NONE) {
        return;
    }
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        if (pod_tf_makes_latent(tf, m)) {
            pod_tf_product *p = &latents.product[latents.count++];
            *p = weights_derivative(tf, layer, s, m, dqkv_partial_sum[0], dqkv_partial_sum[1]);
            p->factor.b = dqkv_partial_sum[2];
            p->factor.column = first;
            first += m->n;
        }
    }
    pod_tf_wait(tf, summed);
    pod_tf_multiply_weights(tf, &none, &latents);
}

/** Derivatives of latents that products of pieces have written, in the order of tokens. */
static void latents_turn(pod_tf *tf, const pod_layer *layer, const pod_tf_summing *sum)
{
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        if (pod_tf_makes_latent(tf, m)) {
            pod_tf_pieces_sum_columns(tf, sum, pod_tf_column_first(tf, layer, m), m->n);
        }
    }
}

/** Products of a projection's gradient: by its input, and by its weights. Latents' derivatives are there when all
 *  pieces are summed. */
static void projections_backward(pod_tf *tf, const pod_layer *layer, const layer_state *s,
                                 const attention_gradient *g, int32_t weights, int32_t dxn)
{
    const int32_t dqkv = g->dqkv;
    pod_tf_quantize(tf, 2 * tf->tokens * pod_tf_qkv_width(tf, layer), dqkv);
    pod_tf_products products = {.pass = "bwd.pass.qkv", .sum = "bwd.sum.qkv", .buffer = dxn};
    bool add = g->out_done || is_parallel(tf);
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = backward_matmul(tf, layer, i);
        if (m->role == POD_ROLE_PROJECTION && !(g->out_done && is_of_queries(m))) {
            products.product[products.count++] =
                input_derivative(tf, layer, s, m, TOUCH(dqkv, weights, dxn), add);
            add = add || !pod_tf_reads_latent(layer, m);
        }
    }
    pod_tf_summing sum = pod_tf_multiply_sum(tf, &products);
    pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, POD_PART_ATTENTION);
    const int32_t partial = g->out_done ? g->partial : pod_tf_gradient_buffer(tf, bundle);
    pod_tf_quantize(tf, tf->tokens * (tf->model->d_model + pod_tf_context_width(tf, layer)), s->xn);
    int32_t latents = NONE;
    const bool last = tf->pieces && tf->model->kv_lora > 0;
    int32_t summed = last ? NONE : latents_sum(tf, layer, dqkv, &latents);
    pod_tf_products derivatives = {0};
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const bool later = tf->tensor > 1 && pod_tf_makes_latent(tf, m);
        if (m->role == POD_ROLE_PROJECTION && !(g->out_done && is_of_queries(m)) && !later) {
            derivatives.product[derivatives.count++] =
                weights_derivative(tf, layer, s, m, dqkv, partial);
        }
    }
    if (!g->out_done) {
        derivatives.product[derivatives.count++] = out_derivative(tf, layer, s, g->dout, partial);
    }
    pod_tf_multiply_weights(tf, &sum, &derivatives);
    if (last) {
        pod_tf_multiply_sum_end(tf, &sum);
        latents_turn(tf, layer, &sum);
        summed = latents_sum(tf, layer, dqkv, &latents);
    }
    latents_by_weights(tf, layer, s, TOUCH(dqkv, partial, latents), summed);
    pod_tf_gradient(tf, bundle, partial);
    if (!last) {
        pod_tf_multiply_sum_end(tf, &sum);
    }
}

/** Beside the reduce-scatter of gradients of keys and values: what needs only those of queries and of the output. */
static void attention_put_off(pod_tf *tf, const pod_layer *layer, const layer_state *s,
                              attention_gradient *g, int32_t weights, int32_t dxn)
{
    g->partial = pod_tf_gradient_buffer(tf, pod_tf_bundle_of(tf, tf->layer, POD_PART_ATTENTION));
    const pod_tf_product out = out_derivative(tf, layer, s, g->dout, g->partial);
    pod_tf_put_off(tf, &out, true, NULL);
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = backward_matmul(tf, layer, i);
        if (is_of_queries(m)) {
            const pod_tf_product input =
                input_derivative(tf, layer, s, m, TOUCH(g->dqkv, weights, dxn), is_parallel(tf));
            const pod_tf_product by_weights =
                weights_derivative(tf, layer, s, m, g->dqkv, g->partial);
            pod_tf_put_off(tf, &input, false, NULL);
            pod_tf_put_off(tf, &by_weights, true, NULL);
        }
    }
}

/** @param dxn2  of the MLP, where attention has the same input */
static int32_t attention_backward(pod_tf *tf, const pod_layer *layer, const layer_state *s,
                                  int32_t weights, int32_t dy, int32_t dxn2)
{
    const int64_t d = tf->model->d_model;
    const int64_t width = pod_tf_context_width(tf, layer);
    const int32_t dcontext = pod_tf_activation(tf, "dcontext", width);
    const int32_t residue = post_norm_back(tf, false, s->raw_out, dy);
    pod_tf_quantize(tf, 2 * tf->tokens * d, dy);
    const int32_t all = pod_tf_whole_buffer(tf, "dy", dy, d);
    if (is_parallel(tf)) { /* the MLP gathered it */
        pod_tf_number_set(tf, all, tf->whole_dy);
    }
    const int64_t first = pod_tf_weights_first(tf, layer, pod_layer_find(layer, POD_ROLE_OUT));
    pod_tf_number_set(tf, s->xn, s->normed);
    const pod_tf_products products = {
        .pass = "bwd.pass.out",
        .buffer = all,
        .count = 1,
        .product = {{"bwd.matmul.out",
                     pod_layer_find(layer, POD_ROLE_OUT)->n,
                     width,
                     1,
                     {all, weights, dcontext, NONE},
                     pod_tf_factor_by_input(tf, TOUCH(all, weights, dcontext), first, 0, false)}}};
    pod_tf_multiply(tf, &products, tf->rows_cut && !is_parallel(tf));
    attention_gradient g = {.dout = all,
                            .dqkv = pod_tf_activation(tf, "dqkv", pod_tf_qkv_width(tf, layer)),
                            .out_done = tf->puts_off};
    const int32_t dxn =
        is_parallel(tf) ? pod_tf_activation(tf, "dnorm", d) : pod_tf_row_buffer(tf, "dnorm", d);
    if (is_parallel(tf)) {
        pod_tf_number_set(tf, dxn, pod_tf_number(tf, dxn2));
    }
    if (tf->puts_off) {
        attention_put_off(tf, layer, s, &g, weights, dxn);
    }
    pod_tf_attend_backward(tf, layer, s->qkv, s->raw_qkv, &s->attended, dcontext, g.dqkv);
    shared_back(tf, layer, g.dqkv);
    rotate(tf, "bwd.rotate", layer,
           (rotated){.qkv = g.dqkv, .more = s->qkv, .raw = s->raw_qkv, .back = true});
    projections_backward(tf, layer, s, &g, weights, dxn);
    pod_tf_number_set(tf, dy, residue);
    return norm_backward(tf, s->x, dxn, dy);
}

int32_t pod_tf_layer_backward(pod_tf *tf, int32_t dy)
{
    boundary_place(tf, POD_PLACE_LAYER_DERIVATIVE, dy);
    const pod_layer layer = pod_model_layer(tf->model, tf->layer);
    const bool again = attention_is_done_again(tf);
    int32_t weights = again ? pod_tf_use_begin(tf)->gathered : NONE;
    const bool rows_cut = tf->rows_cut;
    layer_state s = {.early = {.dy = dy}};
    /* the embedding gives whole rows, but not to a pass of a circular pipeline, and norms are kept after they were
     * gathered */
    const bool passes = tf->stage.circular && !tf->stage.outside;
    tf->rows_cut =
        tf->pieces && (tf->layer > 0 || passes) && !pod_tf_is_kept(tf, 1U << POD_KEEP_NORMS);
    tf->program->recomputes = true;
    attention_again(tf, &layer, weights, &s);
    s.mlp = pod_tf_mlp_again(tf, &layer, s.xn2);
    s.mlp.dh_there = s.early.there;
    s.mlp.dh = s.early.dh;
    s.mlp.out_used = s.mlp.out_used || s.early.there;
    tf->program->recomputes = false;
    tf->rows_cut = rows_cut;
    const int32_t residue = post_norm_back(tf, true, s.mlp.y, dy);
    tf->puts_off = tf->tensor == 1 && pod_tf_attend_gathers(tf, &layer);
    const int32_t dxn2 = pod_tf_mlp_backward(tf, &layer, s.xn2, &s.mlp, dy);
    pod_tf_number_set(tf, dy, residue);
    if (!is_parallel(tf)) {
        dy = norm_backward(tf, s.out, dxn2, dy);
    }
    if (again) {
        pod_build_use_ahead(&tf->stage.build, 2 * tf->stage.request->gather_ahead);
    } else {
        weights = pod_tf_use_begin(tf)->gathered;
    }
    return attention_backward(tf, &layer, &s, weights, dy, dxn2);
}
