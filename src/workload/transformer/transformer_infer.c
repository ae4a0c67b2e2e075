/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of a transformer: prefill (tokens of prompts, after those that the KV cache has already; logits of the
 * last), decode (one token for each sequence, whose `seq` earlier tokens are in the cache), and a server's step,
 * which has sequences of both kinds: their tokens go through the same products, and each through its own attention.
 * Weights stay where they are (Pope et al. 2022, "Efficiently scaling transformer inference"): cut over tensor along
 * heads and d_ff, and over fsdp along d_model, the second dimension of 2D weight-stationary layouts; experts over
 * expert. Sequences are cut over data and expert, and the tokens of a prompt over sequence, whose chips hold the
 * same weights, gather keys and values of the whole prompt, and keep those of their own tokens. With X = fsdp, Y =
 * tensor, T tokens of a chip, and a hidden width of f (gate and up: 2 f):
 *
 *      x[T, d/(X Y)]            gathered over Y                         without X x[T, d] is whole everywhere
 *      norm of x[T, d/X]        sums of squares, all-reduced over X
 *      x[T, d/X] · W[d/X, f/Y]  partial sums, reduce-scattered over X   function on T·f/(X Y) elements
 *      h[T, f/Y]                gathered over X
 *      h[T, f/Y] · W[f/Y, d/X]  partial sums, reduce-scattered over Y   without X all-reduced
 *
 * Attention is done where the cache is. The cache, and attention with it, is cut by heads as far as there are kv
 * heads, then by sequences if there are enough: rows go there over tensor and come back (all-to-all, or from
 * neighbour to neighbour where only a few chips share a kv head). Without enough sequences heads of queries are cut
 * further, and all of their chips hold the same keys. A decode step reads keys and values once for all heads that
 * share them. Latent attention decodes in the latent space: the cache is keys and values of one kv head.
 *
 * Models whose attention and MLP are side by side do their products, sums and gathers together.
 * Weights and cache have the dtype of the step: int8 halves both. */
#include "workload/transformer/transformer_infer.h"

#include "workload/build/input.h"
#include "workload/transformer/transformer_attention.h"
#include "workload/transformer/transformer_experts.h"
#include "workload/transformer/transformer_infer_cut.h"
#include "workload/transformer/transformer_infer_numbers.h"
#include "workload/transformer/transformer_infer_residual.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"

/** How attention of a layer is cut. */
typedef struct attention_cut {
    int64_t kv;       /**< heads of the cache */
    int64_t groups;   /**< pieces by kv heads */
    int64_t spread;   /**< chips that share a kv head */
    bool by_sequence; /**< they cut sequences, not heads of queries */
} attention_cut;

/** Sequences of a chip that do the same. */
typedef struct infer_part {
    int64_t sequences;
    int64_t queries; /**< tokens of each in the step */
    int64_t keys;    /**< that the last of them sees */
    bool decode;     /**< the token is not among the keys: it sees all of them */
    bool paged;      /**< keys come from the cache */
} infer_part;

enum { PARTS_MAX = 2 };

typedef struct infer {
    pod_tf *tf;
    infer_part part[PARTS_MAX];
    int nparts;
    int64_t context; /**< chips that the tokens of a prompt lie on */
    int64_t fsdp;    /**< pieces of d_model */
    int64_t d;       /**< d_model on this chip */
    bool parallel;   /**< attention and MLP side by side */
    int32_t pending; /**< the last collective */
    pod_tf_infer_numbers numbers;
} infer;

/** How attention of a layer is cut, of each part. */
typedef struct layer_cut {
    attention_cut part[PARTS_MAX];
    int64_t q_width;  /**< columns of queries on this chip, after the products */
    int64_t kv_width; /**< of keys and values */
    bool everywhere;  /**< some keys and values are on all chips that share a kv head */
} layer_cut;

static int32_t infer_activation(infer *in, const char *name, int64_t width)
{
    return pod_tf_buffer(in->tf, name, POD_MEMORY_ACTIVATIONS, POD_DTYPE_BF16, in->tf->tokens,
                         width);
}

/** A collective after those before it; the next core op waits for it. */
static int32_t cross_of(infer *in, pod_dtype dtype, pod_coll_op op, const char *name,
                        const pod_axis_list *axes, int64_t elements, int32_t buffer)
{
    in->pending = pod_tf_collective(in->tf, op, name, axes, elements, dtype, in->pending,
                                    TOUCH(buffer, NONE, NONE, NONE));
    pod_tf_wait(in->tf, in->pending);
    return in->pending;
}

static int32_t cross(infer *in, pod_coll_op op, const char *name, const pod_axis_list *axes,
                     int64_t elements, int32_t buffer)
{
    return cross_of(in, POD_DTYPE_BF16, op, name, axes, elements, buffer);
}

/** Elementwise work on `elements`, `passes` of them read or written. */
static void elementwise(infer *in, const char *name, int64_t elements, int64_t passes,
                        int32_t buffer)
{
    pod_tf_vector(in->tf, name, (double)elements, passes * elements * BYTES,
                  TOUCH(buffer, NONE, NONE, NONE));
}

/* ---- the residual path ---- */

/** The norm of rows that fsdp cuts: of each row the sum of squares (layer norm: and of the elements) over its chips. */
static void norm_sum(infer *in, int64_t tokens, int32_t x)
{
    pod_tf *tf = in->tf;
    const int64_t sums = tf->model->positions > 0 ? 2 : 1;
    elementwise(in, "fwd.norm.squares", tokens * in->d, 1, x);
    pod_tf_infer_squares(tf, &in->numbers);
    pod_tf_infer_squares_sum(tf, &in->numbers,
                             cross_of(in, POD_DTYPE_F32, POD_ALL_REDUCE, "fwd.sum.norm",
                                      &tf->layout->fsdp, tokens * sums, x));
}

/** The input of products of some tokens: whole over tensor. */
static void residual_gather(infer *in, int64_t tokens, int32_t x)
{
    if (in->fsdp > 1) {
        const int32_t before = in->pending;
        const int32_t op =
            cross(in, POD_ALL_GATHER, "fwd.gather.x", &in->tf->layout->tensor, tokens * in->d, x);
        pod_tf_infer_gather_x(in->tf, &in->numbers, op != before ? op : NONE);
        norm_sum(in, tokens, x);
    }
    elementwise(in, "fwd.norm", tokens * in->d, 2, x);
    pod_tf_infer_norm(in->tf, &in->numbers);
}

static void residual_sum(infer *in, const char *name, int32_t x)
{
    const int32_t before = in->pending;
    const int32_t op = cross(in, in->fsdp > 1 ? POD_REDUCE_SCATTER : POD_ALL_REDUCE, name,
                             &in->tf->layout->tensor, in->tf->tokens * in->d, x);
    pod_tf_infer_sum(in->tf, &in->numbers, op != before ? op : NONE);
}

/* ---- attention ---- */

static layer_cut cut_find(const infer *in, const pod_layer *layer)
{
    const pod_tf *tf = in->tf;
    const int64_t pieces = tf->tensor * in->fsdp;
    const bool latent = tf->model->kv_lora > 0;
    layer_cut cut = {.q_width = 0};
    for (int p = 0; p < in->nparts; p++) {
        attention_cut *part = &cut.part[p];
        part->kv = latent ? 1 : layer->kv_heads;
        part->groups = pod_min_i64(part->kv, pieces);
        part->spread = pod_ceil_div(pieces, part->groups);
        part->by_sequence = in->part[p].sequences >= part->spread;
        cut.everywhere = cut.everywhere || (!part->by_sequence && part->spread > 1);
    }
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const bool query = m->kept == 1U << POD_KEEP_QUERY;
        int64_t *width = query ? &cut.q_width : &cut.kv_width;
        *width += m->role == POD_ROLE_PROJECTION ? pod_layer_matmul_n(m, tf->tensor) * m->count : 0;
    }
    return cut;
}

/** Attention of one chip, and its part of the cache. */
static pod_attention_args infer_attention_args(infer *in, const infer_part *part,
                                               const pod_layer *layer, const attention_cut *cut)
{
    pod_tf *tf = in->tf;
    const pod_dtype dtype = pod_step_cache_dtype(tf->stage.request);
    const bool local = layer->window > 0;
    const int64_t kept = local ? pod_min_i64(part->keys, layer->window) : part->keys;
    const int64_t before = part->keys - part->queries;
    const int64_t seen = layer->chunked ? part->keys - before / layer->window * layer->window
                         : local        ? pod_min_i64(part->keys, layer->window - 1 + part->queries)
                                        : part->keys;
    const int64_t kv = pod_ceil_div(cut->kv, cut->groups);
    const int64_t heads =
        pod_ceil_div(layer->heads, cut->by_sequence ? cut->groups : tf->tensor * in->fsdp);
    pod_attention_args args = {
        .sequences =
            cut->by_sequence ? pod_ceil_div(part->sequences, cut->spread) : part->sequences,
        .heads = heads,
        .kv_heads = pod_min_i64(heads, pod_ceil_div(layer->kv_heads, cut->groups)),
        .queries = part->queries,
        .keys = seen,
        .window = layer->chunked ? 0 : layer->window,
        .chunk = layer->chunked ? layer->window : 0,
        .qk_dim = layer->qk_dim,
        .v_dim = layer->v_dim,
        .causal = true,
        .shared_kv = tf->model->shared_kv > 0 && layer->window == 0,
        .cache = dtype,
        .paged = part->paged};
    if (part->decode) {
        args.heads = kv;
        args.kv_heads = kv;
        args.queries = pod_ceil_div(heads, kv);
        args.keys = kept;
        args.window = 0;
        args.chunk = 0;
        args.causal = false;
    }
    if (part->decode && tf->model->kv_lora > 0) {
        args.qk_dim = layer->kv_width;
        args.v_dim = tf->model->kv_lora;
        args.shared_kv = true;
    }
    const int64_t page = pod_step_page(tf->stage.request);
    (void)pod_tf_buffer(tf, "cache", POD_MEMORY_CACHE, dtype,
                        args.sequences
                            * pod_round_up(pod_ceil_div(kept, in->context), page > 0 ? page : 1),
                        pod_ceil_div(layer->kv_width, cut->groups));
    return args;
}

static int64_t part_tokens(const infer *in, const infer_part *part)
{
    return part->sequences * part->queries / in->context;
}

/** Rows of `width` columns of a part to where their sequences are, or back. */
static void infer_rows_exchange(infer *in, const char *name, const infer_part *part,
                                const attention_cut *cut, int64_t width, int32_t buffer)
{
    pod_tf *tf = in->tf;
    const int64_t elements = pod_ceil_div(part_tokens(in, part), in->fsdp) * width;
    const int64_t sharing = pod_ceil_div(tf->tensor, pod_min_i64(cut->groups, tf->tensor));
    if (!cut->by_sequence || sharing == 1) {
        return;
    }
    if (sharing == tf->tensor) {
        (void)cross(in, POD_ALL_TO_ALL, name, &tf->layout->tensor, elements, buffer);
        return;
    }
    const int32_t op = cross(in, POD_PERMUTE, name, &tf->layout->tensor,
                             pod_ceil_div(elements * (sharing - 1), sharing), buffer);
    if (op != NONE) {
        tf->program->ops[op].shift = 1;
    }
}

/** Partial sums over fsdp of queries, keys and values, and of `more` columns beside them. */
static void qkv_sum(infer *in, const pod_layer *layer, const layer_cut *cut, int64_t more,
                    int32_t qkv)
{
    pod_tf *tf = in->tf;
    const int64_t width = cut->q_width + (cut->everywhere ? 0 : cut->kv_width) + more;
    pod_tf_infer_scatter_qkv(
        tf, &in->numbers, layer,
        cross(in, POD_REDUCE_SCATTER, "fwd.sum.qkv", &tf->layout->fsdp, tf->tokens * width, qkv));
    if (cut->everywhere) {
        (void)cross(in, POD_ALL_REDUCE, "fwd.sum.kv", &tf->layout->fsdp, tf->tokens * cut->kv_width,
                    qkv);
    }
}

static void qkv_products(infer *in, const pod_layer *layer, int32_t x, int32_t qkv)
{
    pod_tf *tf = in->tf;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        if (m->role == POD_ROLE_PROJECTION) {
            pod_tf_matmul(tf, "fwd.matmul.qkv",
                          (const int64_t[3]){tf->tokens, pod_ceil_div(m->k, in->fsdp),
                                             pod_layer_matmul_n(m, tf->tensor)},
                          m->count, TOUCH(x, qkv, NONE, NONE));
            pod_tf_infer_project(tf, &in->numbers, layer, m);
        }
    }
}

/** In place of attention: a prompt in chunks; in decode each sequence reads and writes its state, in f32. */
static void delta_rule(infer *in, const pod_layer *layer, int32_t qkv)
{
    enum { F32 = 4 };
    static const char *const names[2] = {"fwd.convolution", "fwd.delta.rule"};
    pod_tf *tf = in->tf;
    const int64_t heads = pod_ceil_div(layer->heads, tf->tensor * in->fsdp);
    for (int p = 0; p < in->nparts; p++) {
        const infer_part *part = &in->part[p];
        const int64_t state = part->sequences * heads * layer->qk_dim * layer->v_dim;
        (void)pod_tf_buffer(tf, "cache", POD_MEMORY_CACHE, POD_DTYPE_F32, state, 1);
        if (part->decode) {
            pod_tf_vector(tf, names[1], (double)state, 2 * state * F32,
                          TOUCH(qkv, NONE, NONE, NONE));
        } else {
            pod_tf_delta_rule(tf, names, layer,
                              &(pod_tf_delta){.sequences = part->sequences, .seq = part->queries},
                              TOUCH(qkv, NONE, NONE, NONE));
        }
    }
}

/** From queries, keys and values to the context of this chip's heads. @return its columns */
static int64_t attend(infer *in, const pod_layer *layer, const layer_cut *cut, int32_t qkv)
{
    pod_tf *tf = in->tf;
    const int64_t context = pod_ceil_div(layer->heads, tf->tensor) * layer->v_dim;
    if (layer->delta_chunk > 0) {
        delta_rule(in, layer, qkv);
        return context;
    }
    const int64_t width = cut->q_width + cut->kv_width;
    for (int p = 0; p < in->nparts; p++) {
        infer_rows_exchange(in, "fwd.exchange.qkv", &in->part[p], &cut->part[p], width, qkv);
    }
    elementwise(in, "fwd.rotate", pod_ceil_div(tf->tokens, in->fsdp) * width, 2, qkv);
    pod_tf_infer_rotate(tf, &in->numbers, layer, qkv);
    for (int p = 0; p < in->nparts; p++) {
        const infer_part *part = &in->part[p];
        const pod_attention_args args = infer_attention_args(in, part, layer, &cut->part[p]);
        if (in->context > 1) {
            const int64_t elements = args.sequences * args.keys * args.kv_heads
                                     * (args.qk_dim + (args.shared_kv ? 0 : args.v_dim));
            const int32_t all =
                pod_tf_buffer(tf, "kv", POD_MEMORY_ACTIVATIONS, POD_DTYPE_BF16, elements, 1);
            pod_tf_infer_bring(tf, &in->numbers, layer, qkv);
            pod_tf_infer_gather(
                tf, &in->numbers,
                cross(in, POD_ALL_GATHER, "fwd.gather.kv", &tf->sequence, elements, all));
        }
        pod_tf_attention_pieces(tf, "fwd.attention", &args, in->context,
                                TOUCH(qkv, NONE, NONE, NONE));
        pod_tf_infer_attend(tf, &in->numbers, layer, qkv);
    }
    for (int p = 0; p < in->nparts; p++) {
        infer_rows_exchange(in, "fwd.exchange.context", &in->part[p], &cut->part[p], context, qkv);
    }
    return context;
}

/* ---- MLP ---- */

static int64_t hidden_of(const infer *in, const pod_layer *layer)
{
    return layer->d_ff / in->tf->tensor;
}

static int64_t matrices_of(const infer *in)
{
    return in->tf->model->mlp_matrices - 1;
}

static void in_products(infer *in, const pod_layer *layer, int32_t x, int32_t h)
{
    pod_tf *tf = in->tf;
    if (layer->d_ff > 0) {
        pod_tf_matmul(tf, "fwd.matmul.in",
                      (const int64_t[3]){tf->tokens, in->d, hidden_of(in, layer)}, matrices_of(in),
                      TOUCH(x, h, NONE, NONE));
        pod_tf_infer_in(tf, &in->numbers, layer);
    }
}

static void down_product(infer *in, const pod_layer *layer, int32_t h, int32_t x)
{
    pod_tf *tf = in->tf;
    if (layer->d_ff > 0) {
        pod_tf_matmul(tf, "fwd.matmul.down",
                      (const int64_t[3]){tf->tokens, hidden_of(in, layer), in->d}, 1,
                      TOUCH(h, x, NONE, NONE));
        pod_tf_infer_down(tf, &in->numbers, layer);
    }
}

/** From what experts give to d_model, where that is narrower. */
static void widen_product(infer *in, const pod_layer *layer, int32_t x)
{
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_WIDEN);
    if (m != NULL) {
        pod_tf_matmul(in->tf, "fwd.matmul.widen",
                      (const int64_t[3]){in->tf->tokens, pod_ceil_div(m->k, in->fsdp), m->n}, 1,
                      TOUCH(x, NONE, NONE, NONE));
    }
}

static void function(infer *in, const pod_layer *layer, bool of_experts, int64_t elements,
                     int32_t h)
{
    elementwise(in, "fwd.function", pod_ceil_div(elements, in->fsdp), matrices_of(in) + 1, h);
    if (of_experts) {
        pod_tf_infer_experts_function(in->tf, layer);
    } else {
        pod_tf_infer_function(in->tf, &in->numbers, layer);
    }
}

/** Partial sums of the hidden rows over fsdp, the function, and all of its results. */
static void hidden_sum(infer *in, const pod_layer *layer, bool of_experts, int64_t elements,
                       int32_t h)
{
    pod_tf *tf = in->tf;
    const pod_axis_list *fsdp = &tf->layout->fsdp;
    pod_tf_infer_scatter_hidden(
        tf, &in->numbers, of_experts,
        cross(in, POD_REDUCE_SCATTER, "fwd.sum.in", fsdp, matrices_of(in) * elements, h));
    function(in, layer, of_experts, elements, h);
    pod_tf_infer_gather_hidden(tf, &in->numbers, of_experts,
                               cross(in, POD_ALL_GATHER, "fwd.gather.hidden", fsdp, elements, h));
}

/** Gate and up of an expert lie side by side, as servers keep them: one kernel. */
static void experts(infer *in, const pod_layer *layer, int32_t x, int32_t h)
{
    pod_tf *tf = in->tf;
    const int64_t rows = pod_tf_busiest(tf, tf->tokens * layer->top_k);
    const int64_t here = layer->experts / tf->expert;
    const int64_t f = layer->moe_d_ff / tf->tensor;
    const int64_t d = pod_ceil_div(layer->expert_d_model, in->fsdp);
    pod_tf_matmul(tf, "fwd.matmul.router", (const int64_t[3]){tf->tokens, d, layer->experts}, 1,
                  TOUCH(x, NONE, NONE, NONE));
    pod_tf_infer_router(tf, &in->numbers, layer);
    pod_tf_infer_router_sum(tf, &in->numbers,
                            cross_of(in, POD_DTYPE_F32, POD_ALL_REDUCE, "fwd.sum.router",
                                     &tf->layout->fsdp, tf->tokens * layer->experts, x));
    if (tf->expert > 1) {
        if (in->fsdp > 1) { /* only now a token knows its experts */
            elementwise(in, "fwd.send.rows", rows * d, 2, h);
        }
        pod_tf_infer_route(tf, &in->numbers, layer);
    }
    pod_tf_infer_exchange(
        tf, layer, false,
        cross(in, POD_ALL_TO_ALL, "fwd.exchange.rows", &tf->layout->expert, rows * d, h));
    pod_tf_experts_product(tf, "fwd.matmul.experts.in", POD_ROLE_EXPERTS_UP, POD_GROUPED_FORWARD,
                           here, (const int64_t[3]){rows, d, matrices_of(in) * f},
                           TOUCH(h, NONE, NONE, NONE));
    pod_tf_infer_experts_in(tf, &in->numbers, layer);
    hidden_sum(in, layer, true, rows * f, h);
    pod_tf_experts_product(tf, "fwd.matmul.experts.out", POD_ROLE_EXPERTS_DOWN, POD_GROUPED_FORWARD,
                           here, (const int64_t[3]){rows, f, d}, TOUCH(h, NONE, NONE, NONE));
    pod_tf_infer_experts_out(tf, &in->numbers, layer);
    pod_tf_infer_exchange(
        tf, layer, true,
        cross(in, POD_ALL_TO_ALL, "fwd.exchange.results", &tf->layout->expert, rows * d, h));
    if (tf->expert > 1 && tf->tensor > 1) { /* before the sum over tensor; else the norm does it */
        const int64_t elements = tf->tokens * d;
        elementwise(in, "fwd.return.rows", elements, layer->top_k + 1, h);
        pod_tf_infer_return(tf, &in->numbers);
    }
}

/* ---- layers ---- */

static void layer_weights(infer *in, const pod_layer *layer)
{
    pod_tf *tf = in->tf;
    const int64_t all = pod_layer_weights(tf->model, layer, false);
    const int64_t of_experts =
        layer->experts * tf->model->mlp_matrices * layer->expert_d_model * layer->moe_d_ff;
    const int64_t cut = tf->tensor * in->fsdp;
    (void)pod_tf_buffer(
        tf, "weights", POD_MEMORY_WEIGHTS, tf->stage.build.compute,
        pod_ceil_div(all - of_experts, cut) + pod_ceil_div(of_experts, cut * tf->expert), 1);
}

static void out_product(infer *in, const pod_layer *layer, int64_t context, int32_t qkv, int32_t x)
{
    const int64_t n = pod_ceil_div(pod_layer_find(layer, POD_ROLE_OUT)->n, in->fsdp);
    pod_tf_matmul(in->tf, "fwd.matmul.out", (const int64_t[3]){in->tf->tokens, context, n}, 1,
                  TOUCH(qkv, x, NONE, NONE));
    pod_tf_infer_out(in->tf, &in->numbers, layer);
}

/** Attention, then the MLP. */
static void layer_in_turn(infer *in, const pod_layer *layer, const layer_cut *cut, int32_t x)
{
    pod_tf *tf = in->tf;
    const pod_axis_list *fsdp = &tf->layout->fsdp;
    const int32_t qkv = infer_activation(in, "qkv", cut->q_width + cut->kv_width);
    residual_gather(in, tf->tokens, x);
    qkv_products(in, layer, x, qkv);
    qkv_sum(in, layer, cut, 0, qkv);
    const int64_t context = attend(in, layer, cut, qkv);
    pod_tf_infer_gather_context(
        tf, &in->numbers,
        cross(in, POD_ALL_GATHER, "fwd.gather.context", fsdp, tf->tokens * context, qkv));
    out_product(in, layer, context, qkv, x);
    residual_sum(in, "fwd.sum.out", x);
    const int64_t of_experts = pod_tf_busiest(tf, layer->top_k * (layer->moe_d_ff / tf->tensor));
    const int64_t f = hidden_of(in, layer) + of_experts;
    const int32_t h = infer_activation(in, "hidden", matrices_of(in) * f);
    residual_gather(in, tf->tokens, x);
    in_products(in, layer, x, h);
    if (layer->d_ff > 0) {
        hidden_sum(in, layer, false, tf->tokens * hidden_of(in, layer), h);
    }
    down_product(in, layer, h, x);
    if (layer->experts > 0) {
        experts(in, layer, x, h);
    }
    widen_product(in, layer, x);
    residual_sum(in, "fwd.sum.mlp", x);
}

/** Both at once. */
static void layer_side_by_side(infer *in, const pod_layer *layer, const layer_cut *cut, int32_t x)
{
    pod_tf *tf = in->tf;
    const int64_t f = hidden_of(in, layer);
    const int32_t qkv =
        infer_activation(in, "qkv", cut->q_width + cut->kv_width + matrices_of(in) * f);
    residual_gather(in, tf->tokens, x);
    qkv_products(in, layer, x, qkv);
    in_products(in, layer, x, qkv);
    qkv_sum(in, layer, cut, matrices_of(in) * f, qkv);
    function(in, layer, false, tf->tokens * f, qkv);
    const int64_t context = attend(in, layer, cut, qkv);
    pod_tf_infer_gather_context(tf, &in->numbers,
                                cross(in, POD_ALL_GATHER, "fwd.gather.context", &tf->layout->fsdp,
                                      tf->tokens * (context + f), qkv));
    out_product(in, layer, context, qkv, x);
    down_product(in, layer, qkv, x);
    residual_sum(in, "fwd.sum.mlp", x);
}

/** Tables, and the logits of one token of each sequence. */
static void ends(infer *in, int32_t x)
{
    pod_tf *tf = in->tf;
    const int64_t vocab = pod_ceil_div(tf->model->vocab, tf->tensor);
    const int64_t tables = tf->model->tied ? 1 : 2;
    (void)pod_tf_buffer(tf, "tables", POD_MEMORY_WEIGHTS, tf->stage.build.compute, tables * vocab,
                        in->d);
    tf->layer = -1;
    if (in->fsdp > 1) {
        elementwise(in, "fwd.last.rows", tf->sequences * in->d, 2, x);
        pod_tf_infer_last(tf, &in->numbers);
        residual_gather(in, tf->sequences, x);
    }
    pod_tf_matmul(tf, "fwd.matmul.head", (const int64_t[3]){tf->sequences, in->d, vocab}, 1,
                  TOUCH(x, NONE, NONE, NONE));
    pod_tf_infer_head(tf, &in->numbers);
    pod_tf_infer_head_sum(
        tf, &in->numbers,
        cross(in, POD_ALL_REDUCE, "fwd.sum.head", &tf->layout->fsdp, tf->sequences * vocab, x));
}

/* ---- sizes ---- */

static pod_status divisors_check(const pod_tf *tf, pod_error *err)
{
    const pod_work_layout *layout = tf->layout;
    const pod_model *model = tf->model;
    const struct {
        const char *what;
        int64_t size;
        const pod_axis_list *axes;
    } sizes[] = {
        {"d_model",     model->d_model,     &layout->fsdp  },
        {"d_ff",        model->d_ff,        &layout->tensor},
        {"moe_d_ff",    model->moe_d_ff,    &layout->tensor},
        {"shared_d_ff", model->shared_d_ff, &layout->tensor},
    };
    pod_axis_list rows = {0};
    for (int i = 0; i < layout->rows.count; i++) {
        const pod_mesh_axis axis = layout->rows.axis[i];
        if (axis == POD_MESH_DATA || axis == POD_MESH_EXPERT) {
            rows.axis[rows.count++] = axis;
        }
    }
    POD_TRY(pod_work_divides(layout, "batch", tf->stage.request->batch, &rows, err));
    POD_TRY(pod_work_divides(layout, "prefill-tokens", tf->stage.request->serving.prefill_tokens,
                             &rows, err));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        POD_TRY(pod_work_divides(layout, sizes[i].what, sizes[i].size, sizes[i].axes, err));
    }
    return POD_OK;
}

/** Sequences and tokens of a chip. @param pieces  that the sequences of the step are cut into */
static void parts_find(infer *in, int64_t pieces)
{
    pod_tf *tf = in->tf;
    const pod_step_request *request = tf->stage.request;
    const pod_step_serving *serving = &request->serving;
    const bool paged = pod_step_page(request) > 0;
    const int64_t batch = request->batch / pieces;
    const int64_t prompts = pod_max_i64(serving->prompts, 1);
    const int64_t prompt = serving->prefill_tokens / pieces / prompts;
    const infer_part prefill = {.sequences = batch,
                                .queries = request->seq,
                                .keys = serving->cached + request->seq,
                                .paged = paged && serving->cached > 0};
    const infer_part decode = {
        .sequences = batch, .queries = 1, .keys = request->seq, .decode = true, .paged = paged};
    const infer_part piece = {.sequences = prompts,
                              .queries = prompt,
                              .keys = serving->cached + prompt,
                              .paged = paged && serving->cached > 0};
    in->nparts = 0;
    if (batch > 0) {
        in->part[in->nparts++] = request->mode == POD_STEP_PREFILL ? prefill : decode;
    }
    if (prompt > 0) {
        in->part[in->nparts++] = piece;
    }
    for (int p = 0; p < in->nparts; p++) {
        tf->sequences += in->part[p].sequences;
        tf->tokens += part_tokens(in, &in->part[p]);
    }
}

static pod_status infer_sizes_find(infer *in, pod_error *err)
{
    pod_tf *tf = in->tf;
    const pod_work_layout *layout = tf->layout;
    in->context = layout->size[POD_MESH_SEQUENCE];
    const pod_step_request *request = tf->stage.request;
    const bool decode = request->mode >= POD_STEP_DECODE;
    if (tf->stage.count > 1 || (in->context > 1 && decode)) {
        return pod_fail(err, POD_E_INVALID,
                        "%s has no use for %s; use tensor, fsdp (the second dimension of weights), "
                        "expert and data%s",
                        !decode                           ? "prefill"
                        : request->mode == POD_STEP_SERVE ? "serve"
                                                          : "decode",
                        tf->stage.count > 1 ? "pipeline" : "sequence",
                        decode ? "" : ", and sequence");
    }
    if (in->context > 1) {
        tf->sequence = (pod_axis_list){.count = 1, .axis = {POD_MESH_SEQUENCE}};
        const pod_status divides =
            pod_work_divides(layout, "seq", request->seq, &tf->sequence, err);
        if (divides != POD_OK) {
            return divides;
        }
    }
    if (request->microbatches > 1) {
        return pod_fail(err, POD_E_USAGE,
                        "inference takes its batch as a whole; leave --microbatches out");
    }
    in->fsdp = layout->size[POD_MESH_FSDP];
    in->d = pod_ceil_div(tf->model->d_model, in->fsdp);
    in->parallel = tf->model->parallel > 0;
    tf->tensor = layout->size[POD_MESH_TENSOR];
    tf->expert = layout->size[POD_MESH_EXPERT];
    parts_find(in, layout->size[POD_MESH_DATA] * tf->expert);
    return divisors_check(tf, err);
}

static pod_status numbers_begin(infer *in, pod_error *err)
{
    pod_tf *tf = in->tf;
    POD_TRY(pod_tf_infer_numbers_check(tf->stage.request, tf->layout, err));
    POD_TRY(pod_tf_numbers_begin(tf));
    const infer_part *part = &in->part[0];
    in->numbers = (pod_tf_infer_numbers){.sequences = part->sequences,
                                         .queries = part->queries / in->context,
                                         .keys = part->keys + (part->decode ? 1 : 0),
                                         .fsdp = in->fsdp};
    const pod_layer first = pod_model_layer(tf->model, 0);
    in->numbers.cut = pod_tf_infer_shares_of(&first, tf->layout);
    pod_tf_infer_begin(tf, &in->numbers);
    return tf->stage.build.st;
}

pod_status pod_tf_infer(pod_tf *tf, pod_error *err)
{
    infer in = {.tf = tf, .pending = NONE};
    tf->stage.build.st = infer_sizes_find(&in, err);
    if (tf->stage.build.st != POD_OK) {
        return tf->stage.build.st;
    }
    if (tf->stage.request->numbers) {
        POD_TRY(numbers_begin(&in, err));
    }
    pod_build_input(&tf->stage.build, &tf->stage.request->input, 1);
    const int32_t x = infer_activation(&in, "x", in.d);
    for (int32_t l = 0; l < tf->stage.layers; l++) {
        const pod_layer layer = pod_model_layer(tf->model, l);
        const layer_cut cut = cut_find(&in, &layer);
        tf->layer = l;
        layer_weights(&in, &layer);
        pod_tf_infer_layer(tf, &in.numbers, &layer);
        if (in.parallel) {
            layer_side_by_side(&in, &layer, &cut, x);
        } else {
            layer_in_turn(&in, &layer, &cut, x);
        }
    }
    ends(&in, x);
    return tf->stage.build.st;
}
