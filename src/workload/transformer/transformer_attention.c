/* SPDX-License-Identifier: Apache-2.0 */
/* Plain attention: of A sequences' heads with S queries and K keys all A·S·K scores lie in HBM, masked ones too. Bytes
 * of a score that vector work moves:
 *
 *      softmax    4 read for the maximum, 4 for the sum, 4 for the result; 4 written in f32, 2 in bf16      18
 *      backward   4 + 4 read for the sum over dP·P, again for the result; 2 written: dS in bf16             18
 */
#include "workload/transformer/transformer_attention.h"

#include "workload/transformer/transformer_context.h"
#include "workload/transformer/transformer_heads.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_pieces.h"
#include "workload/transformer/transformer_ring.h"
#include "workload/transformer/transformer_sizes.h"

enum { SOFTMAX_BYTES = 18, PROBABILITY_BF16S = 3 };

/* ---- sizes ---- */

/** Heads of keys and values on a chip. */
static int64_t kv_heads(const pod_tf *tf, const pod_layer *layer)
{
    const bool latent = tf->model->kv_lora > 0; /* each head has its own */
    return pod_ceil_div(latent ? layer->heads : layer->kv_heads, tf->tensor);
}

static pod_attention_block block_of(const pod_tf *tf, const pod_layer *layer, bool backward)
{
    const pod_step_settings *settings = &tf->stage.request->settings;
    const pod_attention_blocks *local = &settings->local_blocks;
    const bool own = layer->window > 0 && local->forward.queries > 0;
    const pod_attention_blocks *blocks = own ? local : &settings->blocks;
    return backward ? blocks->backward : blocks->forward;
}

/** Of all queries of a sequence. */
static pod_attention_args attention_args(const pod_tf *tf, const pod_layer *layer, bool backward)
{
    return (pod_attention_args){.sequences = tf->sequences,
                                .heads = layer->heads / tf->tensor,
                                .kv_heads = kv_heads(tf, layer),
                                .queries = tf->stage.request->seq,
                                .keys = tf->stage.request->seq,
                                .window = layer->chunked ? 0 : layer->window,
                                .chunk = layer->chunked ? layer->window : 0,
                                .qk_dim = layer->qk_dim,
                                .v_dim = layer->v_dim,
                                .causal = !layer->encoder,
                                .backward = backward,
                                .split = backward && tf->stage.request->settings.split_backward,
                                .serial = tf->stage.request->settings.serial_attention,
                                .megacore = tf->stage.request->settings.megacore_backward,
                                .max_estimate = tf->stage.request->settings.max_estimate,
                                .cache = POD_DTYPE_BF16,
                                .block = block_of(tf, layer, backward)};
}

/** Columns of keys and values of a token. */
static int64_t kv_width(const pod_tf *tf, const pod_layer *layer)
{
    return kv_heads(tf, layer) * (layer->qk_dim + layer->v_dim);
}

/* ---- kernels ---- */

void pod_tf_attention_pieces(pod_tf *tf, const char *name, const pod_attention_args *args,
                             int64_t pieces, const int32_t touch[POD_OP_TOUCHES_MAX])
{
    pod_attention_args part = *args;
    if (pieces == 1) {
        pod_tf_attention(tf, name, args, touch);
        return;
    }
    const int64_t tokens = args->queries / pieces;
    const int64_t half = tokens / 2;
    if (!args->causal || tf->stage.request->settings.context_unbalanced || half == 0) {
        part.queries = tokens;
        pod_tf_attention(tf, name, &part, touch);
        return;
    }
    part.queries = half;
    part.keys = args->keys - args->queries + 2 * half;
    pod_tf_attention(tf, name, &part, touch);
    part.queries = tokens - half;
    part.keys = args->keys - half;
    pod_tf_attention(tf, name, &part, touch);
}

/* ---- in place of attention, and before it ---- */

/** MXU time of `count` products, 0 without a chip. */
static double products_s(const pod_tf *tf, int64_t m, int64_t k, int64_t n, double count)
{
    const pod_chip_spec *chip = tf->stage.request->chip;
    const pod_matmul_args args = {.m = m, .k = k, .n = n, .dtype = POD_DTYPE_BF16};
    return chip != NULL ? count * pod_matmul_mxu_s(chip, &args) : 0;
}

void pod_tf_delta_rule(pod_tf *tf, const char *const names[2], const pod_layer *layer,
                       const pod_tf_delta *of, const int32_t touch[POD_OP_TOUCHES_MAX])
{
    enum { READ_WRITE = 2, CONV_PASSES = 3, BACKWARD = 2 };
    const int64_t tokens = of->sequences * of->seq / pod_tf_context_chips(tf);
    const int64_t chunk = pod_min_i64(layer->delta_chunk, of->seq);
    const int64_t heads = pod_ceil_div(layer->heads, tf->tensor);
    const int64_t keys = layer->qk_dim;
    const int64_t values = layer->v_dim;
    const double count = (double)of->sequences * (double)heads
                         * (double)pod_ceil_div(of->seq, chunk) / (double)pod_tf_context_chips(tf);
    const int64_t width = 2 * kv_heads(tf, layer) * keys + heads * values;
    const int64_t times = of->backward ? BACKWARD : 1;
    /* K·Kᵀ and Q·Kᵀ; half of a square for the triangular system; the scores' product with the values; Q·S, K·S, Kᵀ·V */
    const double unit_s = 2 * products_s(tf, chunk, keys, chunk, count)
                          + products_s(tf, chunk, pod_ceil_div(chunk, 2), keys + values, count)
                          + products_s(tf, chunk, chunk, values, count)
                          + 3 * products_s(tf, chunk, keys, values, count);
    pod_tf_vector(tf, names[0], (double)(tokens * width * layer->delta_conv),
                  times * CONV_PASSES * tokens * width * BYTES, touch);
    pod_tf_compute(tf, names[1], (double)times * unit_s,
                   times * READ_WRITE * tokens * (width + heads * values) * BYTES, touch);
}

/** The indexer: products of its heads with one key over all pairs that the mask leaves, and the best of each query's
 *  scores, in f32. */
static void index_scores(pod_tf *tf, const char *const names[2], const pod_layer *layer,
                         const int32_t touch[POD_OP_TOUCHES_MAX])
{
    enum { SCORE_BYTES = 8 }; /* written and read */
    const int64_t seq = tf->stage.request->seq;
    const int64_t heads = pod_ceil_div(layer->index_heads, tf->tensor);
    const int64_t mean = pod_ceil_div(seq + 1, 2);
    if (layer->index_heads == 0 || seq <= layer->window) {
        return;
    }
    pod_tf_compute(tf, names[0], products_s(tf, tf->tokens, layer->index_dim, mean, (double)heads),
                   tf->tokens * mean * SCORE_BYTES / 2, touch);
    pod_tf_vector(tf, names[1], (double)(tf->tokens * mean), tf->tokens * mean * SCORE_BYTES,
                  touch);
}

/* ---- keys and values of other chips ---- */

/** Of the whole sequence. @return the gather, under way */
static int32_t kv_gather(pod_tf *tf, const pod_layer *layer, int32_t qkv,
                         const pod_tf_gathering *how)
{
    static const char *const names[2][4] = {
        {"", "fwd.gather.keys", "fwd.gather.values", "fwd.gather.kv"},
        {"", "bwd.gather.keys", "bwd.gather.values", "bwd.gather.kv"}
    };
    const int64_t heads = kv_heads(tf, layer);
    const int64_t width = ((how->what & POD_TF_KEYS) != 0 ? heads * layer->qk_dim : 0)
                          + ((how->what & POD_TF_VALUES) != 0 ? heads * layer->v_dim : 0);
    const int64_t elements = tf->tokens * pod_tf_context_chips(tf) * width;
    const int32_t all =
        pod_tf_buffer(tf, "kv", POD_MEMORY_ACTIVATIONS, tf->stage.build.dtype, elements, 1);
    const int32_t op =
        pod_tf_collective(tf, POD_ALL_GATHER, names[how->backward][how->what], &tf->sequence,
                          elements, POD_DTYPE_BF16, tf->keys_gather, TOUCH(qkv, all, NONE, NONE));
    pod_tf_context_gather(tf, layer, op, qkv, how);
    return op;
}

bool pod_tf_attend_gathers(const pod_tf *tf, const pod_layer *layer)
{
    return pod_tf_context_chips(tf) > 1 && layer->delta_chunk == 0
           && (tf->stage.request->attention == POD_ATTENTION_PLAIN
               || tf->stage.request->settings.context == POD_CONTEXT_ALL_GATHER);
}

void pod_tf_attend_gather_begin(pod_tf *tf, const pod_layer *layer, int32_t qkv, unsigned what,
                                bool backward)
{
    const pod_tf_gathering how = {.what = what, .backward = backward};
    if (pod_tf_attend_gathers(tf, layer)) {
        tf->keys_gather = kv_gather(tf, layer, qkv, &how);
    }
}

int32_t pod_tf_attend_gather(pod_tf *tf, const pod_layer *layer, int32_t qkv, bool backward)
{
    const pod_tf_gathering how = {
        .what = POD_TF_KEYS | POD_TF_VALUES, .rotated = true, .backward = backward};
    const int32_t begun = tf->keys_gather;
    tf->keys_gather = NONE;
    return begun != NONE || !pod_tf_attend_gathers(tf, layer) ? begun
                                                              : kv_gather(tf, layer, qkv, &how);
}

/** Heads against tokens, or back: `columns` of each token of this chip. @return the op, which the core waits for */
static int32_t exchange(pod_tf *tf, const char *name, int64_t columns, int32_t buffer)
{
    const int32_t op =
        pod_tf_collective(tf, POD_ALL_TO_ALL, name, &tf->sequence, tf->tokens * columns,
                          POD_DTYPE_BF16, NONE, TOUCH(buffer, NONE, NONE, NONE));
    pod_tf_wait(tf, op);
    return op;
}

/** Columns of queries, keys and values that ulysses exchanges; keys are copied to as many heads as chips. */
static int64_t exchanged_width(const pod_tf *tf, const pod_layer *layer)
{
    const int64_t chips = pod_tf_context_chips(tf);
    const int64_t kv = kv_heads(tf, layer) > chips ? kv_heads(tf, layer) : chips;
    return layer->heads / tf->tensor * layer->qk_dim + kv * (layer->qk_dim + layer->v_dim);
}

/** Of a share of the heads. */
static pod_attention_args ulysses_args(const pod_tf *tf, const pod_layer *layer, bool backward)
{
    pod_attention_args args = attention_args(tf, layer, backward);
    args.heads = pod_ceil_div(args.heads, pod_tf_context_chips(tf));
    args.kv_heads = pod_ceil_div(args.kv_heads, pod_tf_context_chips(tf));
    return args;
}

/* ---- plain ---- */

typedef struct plain {
    int64_t matrices; /**< heads of all sequences */
    int64_t queries;
    int64_t keys;
    int64_t scores;
} plain;

static plain plain_sizes(const pod_tf *tf, const pod_attention_args *args)
{
    const int64_t matrices = args->sequences * args->heads;
    return (plain){.matrices = matrices,
                   .queries = tf->seq,
                   .keys = args->keys,
                   .scores = matrices * tf->seq * args->keys};
}

static int32_t plain_buffer(pod_tf *tf, const char *name, pod_dtype dtype, int64_t scores,
                            int64_t each)
{
    return pod_tf_buffer(tf, name, POD_MEMORY_ACTIVATIONS, dtype, scores, each);
}

/** Probabilities in f32, for the way back, and in bf16, for the product with values. */
static int32_t plain_forward(pod_tf *tf, const pod_attention_args *args, int32_t qkv,
                             int32_t context)
{
    const plain p = plain_sizes(tf, args);
    const int32_t scores = plain_buffer(tf, "scores", POD_DTYPE_F32, p.scores, 1);
    pod_tf_matmul(tf, "fwd.matmul.scores", (const int64_t[3]){p.queries, args->qk_dim, p.keys},
                  p.matrices, TOUCH(qkv, scores, NONE, NONE));
    const int32_t probabilities =
        plain_buffer(tf, "probabilities", POD_DTYPE_BF16, p.scores, PROBABILITY_BF16S);
    pod_tf_vector(tf, "fwd.softmax", (double)p.scores, SOFTMAX_BYTES * p.scores,
                  TOUCH(scores, probabilities, NONE, NONE));
    pod_tf_matmul(tf, "fwd.matmul.context", (const int64_t[3]){p.queries, p.keys, args->v_dim},
                  p.matrices, TOUCH(probabilities, qkv, context, NONE));
    return probabilities;
}

static void plain_backward(pod_tf *tf, const pod_attention_args *args, int32_t qkv,
                           const pod_tf_scores *of, int32_t dcontext, int32_t dqkv)
{
    const plain p = plain_sizes(tf, args);
    const int32_t dp = plain_buffer(tf, "dprobabilities", POD_DTYPE_F32, p.scores, 1);
    pod_tf_matmul(tf, "bwd.matmul.scores", (const int64_t[3]){p.queries, args->v_dim, p.keys},
                  p.matrices, TOUCH(dcontext, qkv, dp, NONE));
    pod_tf_matmul(tf, "bwd.matmul.values", (const int64_t[3]){p.keys, p.queries, args->v_dim},
                  p.matrices, TOUCH(of->probabilities, dcontext, dqkv, NONE));
    const int32_t ds = plain_buffer(tf, "dscores", POD_DTYPE_BF16, p.scores, 1);
    pod_tf_vector(tf, "bwd.softmax", (double)p.scores, SOFTMAX_BYTES * p.scores,
                  TOUCH(of->probabilities, dp, ds, NONE));
    pod_tf_matmul(tf, "bwd.matmul.queries", (const int64_t[3]){p.queries, p.keys, args->qk_dim},
                  p.matrices, TOUCH(ds, qkv, dqkv, NONE));
    pod_tf_matmul(tf, "bwd.matmul.keys", (const int64_t[3]){p.keys, p.queries, args->qk_dim},
                  p.matrices, TOUCH(ds, qkv, dqkv, NONE));
}

/* ---- either ---- */

pod_tf_scores pod_tf_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv, bool again)
{
    static const char *const ring_names[3] = {"fwd.attention", "fwd.pass.kv", ""};
    static const char *const index_names[2] = {"fwd.index.scores", "fwd.index.best"};
    static const char *const index_again[2] = {"bwd.index.scores.again", "bwd.index.best.again"};
    pod_tf_scores of = {
        .context = pod_tf_activation(tf, "context", pod_tf_context_width(tf, layer)),
        .probabilities = NONE,
        .gather = NONE,
        .gathered = again,
    };
    const bool no_kernel = tf->stage.request->attention == POD_ATTENTION_PLAIN;
    const pod_context_parallel way =
        no_kernel ? POD_CONTEXT_ALL_GATHER : tf->stage.request->settings.context;
    const int64_t chips = pod_tf_context_chips(tf);
    const pod_attention_args args = attention_args(tf, layer, false);
    const int32_t touch[POD_OP_TOUCHES_MAX] = {qkv, of.context, NONE, NONE};
    if (layer->delta_chunk > 0) {
        static const char *const delta_names[2] = {"fwd.convolution", "fwd.delta.rule"};
        pod_tf_delta_rule(tf, delta_names, layer,
                          &(pod_tf_delta){.sequences = tf->sequences,
                                          .seq = tf->stage.request->seq,
                                          .backward = false},
                          touch);
        return of;
    }
    index_scores(tf, again ? index_again : index_names, layer, touch);
    if (chips > 1 && way == POD_CONTEXT_RING) {
        pod_tf_ring(tf, ring_names, layer, &args, touch);
        return of;
    }
    if (chips > 1 && way == POD_CONTEXT_ULYSSES) {
        const pod_attention_args share = ulysses_args(tf, layer, false);
        const int32_t sent = exchange(tf, again ? "bwd.exchange.qkv" : "fwd.exchange.qkv",
                                      exchanged_width(tf, layer), qkv);
        pod_tf_context_exchange(tf, layer, sent, qkv);
        pod_tf_attention(tf, "fwd.attention", &share, touch);
        pod_tf_context_share_attend(tf, layer);
        const int32_t back = exchange(tf, again ? "bwd.exchange.context" : "fwd.exchange.context",
                                      pod_tf_context_width(tf, layer), of.context);
        pod_tf_context_exchange_result(tf, layer, back, touch);
        return of;
    }
    pod_tf_wait(tf, pod_tf_attend_gather(tf, layer, qkv, again));
    if (no_kernel) {
        of.probabilities = plain_forward(tf, &args, qkv, of.context);
        return of;
    }
    pod_tf_attention_pieces(tf, "fwd.attention", &args, chips, touch);
    if (chips > 1) {
        pod_tf_context_attend(tf, layer, qkv, of.context);
    } else {
        pod_tf_number_attend(tf, layer, qkv, of.context);
    }
    return of;
}

/** Gradients of keys and values to the chips of their tokens. @param numbers  of those of all
 *  @return the reduce-scatter, under way */
static int32_t kv_scatter(pod_tf *tf, const pod_layer *layer, int32_t dqkv, int32_t numbers)
{
    const int64_t elements = tf->tokens * pod_tf_context_chips(tf) * kv_width(tf, layer);
    const int32_t op =
        pod_tf_collective(tf, POD_REDUCE_SCATTER, "bwd.scatter.kv", &tf->sequence, elements,
                          POD_DTYPE_BF16, NONE, TOUCH(dqkv, NONE, NONE, NONE));
    pod_tf_context_scatter(tf, layer, op, numbers);
    return op;
}

void pod_tf_attend_backward(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t raw,
                            const pod_tf_scores *of, int32_t dcontext, int32_t dqkv)
{
    static const char *const ring_names[3] = {"bwd.attention", "bwd.pass.kv", "bwd.pass.dkv"};
    const bool no_kernel = tf->stage.request->attention == POD_ATTENTION_PLAIN;
    const pod_context_parallel way =
        no_kernel ? POD_CONTEXT_ALL_GATHER : tf->stage.request->settings.context;
    const int64_t chips = pod_tf_context_chips(tf);
    const pod_attention_args args = attention_args(tf, layer, true);
    const int32_t touch[POD_OP_TOUCHES_MAX] = {qkv, of->context, dcontext, dqkv};
    if (layer->delta_chunk > 0) {
        static const char *const delta_names[2] = {"bwd.convolution", "bwd.delta.rule"};
        pod_tf_delta_rule(tf, delta_names, layer,
                          &(pod_tf_delta){.sequences = tf->sequences,
                                          .seq = tf->stage.request->seq,
                                          .backward = true},
                          touch);
        return;
    }
    if (chips > 1 && way == POD_CONTEXT_RING) {
        pod_tf_ring(tf, ring_names, layer, &args, touch);
        return;
    }
    if (chips > 1 && way == POD_CONTEXT_ULYSSES) {
        const pod_attention_args share = ulysses_args(tf, layer, true);
        if (!of->gathered) {
            const int32_t sent = exchange(tf, "bwd.exchange.qkv", exchanged_width(tf, layer), qkv);
            pod_tf_context_exchange(tf, layer, sent, qkv);
        }
        const int32_t result =
            exchange(tf, "bwd.exchange.dcontext", pod_tf_context_width(tf, layer), dcontext);
        pod_tf_context_exchange_back(tf, layer, result, TOUCH(qkv, dcontext, dqkv));
        pod_tf_attention(tf, "bwd.attention", &share, touch);
        pod_tf_context_share_attend_back(tf, layer);
        const int32_t back = exchange(tf, "bwd.exchange.dqkv", exchanged_width(tf, layer), dqkv);
        pod_tf_context_exchange_dqkv(tf, layer, back);
        return;
    }
    int32_t numbers = NONE;
    pod_tf_wait(tf, of->gather);
    if (no_kernel) {
        plain_backward(tf, &args, qkv, of, dcontext, dqkv);
    } else {
        pod_tf_attention_pieces(tf, "bwd.attention", &args, chips, touch);
        if (chips > 1) {
            numbers = pod_tf_context_attend_back(tf, layer, TOUCH(qkv, dcontext, dqkv), raw);
        } else {
            pod_tf_number_attend_back(tf, layer, qkv, dcontext, dqkv);
        }
    }
    const int32_t scatter = chips > 1 ? kv_scatter(tf, layer, dqkv, numbers) : NONE;
    pod_tf_put_off_end(tf);
    pod_tf_wait(tf, scatter);
}
