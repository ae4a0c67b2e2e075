/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of a transformer: prefill (all tokens of a prompt, logits of the last) and decode (one token for each
 * sequence, whose `seq` earlier tokens are in a KV cache). Weights stay where they are (Pope et al. 2022,
 * "Efficiently scaling transformer inference"): cut over tensor along heads and d_ff, and over fsdp along
 * d_model, the second dimension of 2D weight-stationary layouts. Sequences are cut over data only.
 *
 *      [T, d/fsdp] · [d/fsdp, n/tensor]  summed over fsdp     [T, n/tensor] · [n/tensor, d/fsdp]  over tensor
 *
 * The cache is cut over tensor by heads as far as there are kv heads, then, like attention itself, by sequences,
 * if there are enough. Weights and cache have the dtype of the step: int8 halves both. */
#include "workload/transformer.h"

#include <stdlib.h>

#define TOUCH(...) ((const int32_t[POD_OP_TOUCHES_MAX]){__VA_ARGS__})
enum { NONE = POD_OP_NONE, BYTES = 2 };

typedef struct infer {
    pod_tf *tf;
    int64_t fsdp; /**< pieces of d_model */
    int64_t d;    /**< d_model on this chip */
    bool decode;
} infer;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int32_t activation(infer *in, const char *name, int64_t width)
{
    return pod_tf_buffer(in->tf, name, POD_MEMORY_ACTIVATIONS, POD_DTYPE_BF16, in->tf->tokens,
                         width);
}

static void sum(infer *in, const char *name, const pod_axis_list *axes, int32_t buffer,
                int64_t width)
{
    pod_tf_wait(in->tf,
                pod_tf_collective(in->tf, POD_ALL_REDUCE, name, axes, in->tf->tokens * width,
                                  POD_DTYPE_BF16, NONE, TOUCH(buffer, NONE, NONE, NONE)));
}

/** Elementwise work on `width` columns, `passes` of them read or written. */
static void elementwise(infer *in, const char *name, int64_t width, int passes, int32_t buffer)
{
    const int64_t elements = in->tf->tokens * width;
    pod_tf_vector(in->tf, name, (double)elements, passes * elements * BYTES,
                  TOUCH(buffer, NONE, NONE, NONE));
}

static int64_t columns_of(const pod_tf *tf, const pod_layer_projection *p)
{
    return p->heads > 0 ? p->n / p->heads * ceil_div(p->heads, tf->tensor) : p->n;
}

/** Weights and cache of a layer. */
static void layer_store(infer *in, const pod_layer *layer, pod_attention_args *args)
{
    pod_tf *tf = in->tf;
    const int64_t weights = ceil_div(pod_layer_weights(tf->model, layer, false),
                                     tf->tensor * in->fsdp * (layer->experts > 0 ? tf->expert : 1));
    const int64_t groups = layer->kv_heads < tf->tensor ? layer->kv_heads : tf->tensor;
    const int64_t spread = in->fsdp * ceil_div(tf->tensor, groups);
    const bool by_sequence = tf->sequences >= spread;
    *args = (pod_attention_args){.sequences =
                                     by_sequence ? ceil_div(tf->sequences, spread) : tf->sequences,
                                 .heads = ceil_div(layer->heads, by_sequence ? groups : tf->tensor),
                                 .kv_heads = ceil_div(layer->kv_heads, groups),
                                 .queries = in->decode ? 1 : tf->seq,
                                 .keys = tf->request->seq,
                                 .window = layer->window,
                                 .qk_dim = layer->qk_dim,
                                 .v_dim = layer->v_dim,
                                 .causal = true,
                                 .cache = tf->build.compute};
    const int64_t tokens = args->sequences * tf->request->seq;
    (void)pod_tf_buffer(tf, "weights", POD_MEMORY_WEIGHTS, tf->build.compute, weights, 1);
    (void)pod_tf_buffer(tf, "cache", POD_MEMORY_OTHER, tf->build.compute, tokens,
                        ceil_div(layer->kv_width, groups));
}

static void attention(infer *in, const pod_layer *layer, int32_t x)
{
    pod_tf *tf = in->tf;
    pod_attention_args args;
    layer_store(in, layer, &args);
    const int64_t context = ceil_div(layer->heads, tf->tensor) * layer->v_dim;
    const int32_t qkv = activation(in, "qkv", pod_tf_qkv_width(tf, layer));
    int64_t width = 0;
    elementwise(in, "fwd.norm", in->d, 2, x);
    for (int i = 0; i < layer->nprojections; i++) {
        const pod_layer_projection *p = &layer->projection[i];
        pod_tf_matmul(tf, "fwd.matmul.qkv",
                      (const int64_t[3]){tf->tokens, ceil_div(p->k, in->fsdp), columns_of(tf, p)},
                      p->count, TOUCH(x, qkv, NONE, NONE));
        width += columns_of(tf, p) * p->count;
    }
    sum(in, "fwd.sum.qkv", &tf->layout->fsdp, qkv, width);
    elementwise(in, "fwd.rotate", width, 2, qkv);
    pod_tf_attention(tf, "fwd.attention", &args, TOUCH(qkv, NONE, NONE, NONE));
    pod_tf_matmul(tf, "fwd.matmul.out", (const int64_t[3]){tf->tokens, context, in->d}, 1,
                  TOUCH(qkv, x, NONE, NONE));
    sum(in, "fwd.sum.out", &tf->layout->tensor, x, in->d);
}

/** Experts that some token goes to, each with its share of the rows. */
static void experts(infer *in, const pod_layer *layer, int32_t h)
{
    pod_tf *tf = in->tf;
    const int64_t rows = tf->tokens * layer->top_k;
    const int64_t here = ceil_div(layer->experts, tf->expert);
    const int64_t used = here < rows ? here : rows;
    const int64_t f = ceil_div(layer->moe_d_ff, tf->tensor);
    const int64_t each = ceil_div(rows, used);
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const int32_t after =
        pod_tf_collective(tf, POD_ALL_TO_ALL, "fwd.exchange.rows", &tf->layout->expert,
                          rows * in->d, POD_DTYPE_BF16, NONE, TOUCH(h, NONE, NONE, NONE));
    pod_tf_wait(tf, after);
    pod_tf_matmul(tf, "fwd.matmul.experts.in", (const int64_t[3]){each, in->d, f}, matrices * used,
                  TOUCH(h, NONE, NONE, NONE));
    pod_tf_matmul(tf, "fwd.matmul.experts.out", (const int64_t[3]){each, f, in->d}, used,
                  TOUCH(h, NONE, NONE, NONE));
}

static void mlp(infer *in, const pod_layer *layer, int32_t x)
{
    pod_tf *tf = in->tf;
    const int64_t f = ceil_div(layer->d_ff, tf->tensor);
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const int32_t h = activation(in, "hidden", matrices * (f > 0 ? f : 1));
    elementwise(in, "fwd.norm", in->d, 2, x);
    if (f > 0) {
        pod_tf_matmul(tf, "fwd.matmul.in", (const int64_t[3]){tf->tokens, in->d, f}, matrices,
                      TOUCH(x, h, NONE, NONE));
        sum(in, "fwd.sum.in", &tf->layout->fsdp, h, matrices * f);
        elementwise(in, "fwd.function", f, (int)matrices + 1, h);
        pod_tf_matmul(tf, "fwd.matmul.down", (const int64_t[3]){tf->tokens, f, in->d}, 1,
                      TOUCH(h, x, NONE, NONE));
    }
    if (layer->experts > 0) {
        experts(in, layer, h);
    }
    sum(in, "fwd.sum.mlp", &tf->layout->tensor, x, in->d);
}

static void ends(infer *in, int32_t x)
{
    pod_tf *tf = in->tf;
    const int64_t vocab = ceil_div(tf->model->vocab, tf->tensor);
    const int64_t tables = tf->model->tied ? 1 : 2;
    (void)pod_tf_buffer(tf, "tables", POD_MEMORY_WEIGHTS, tf->build.compute, tables * vocab, in->d);
    tf->layer = -1;
    pod_tf_matmul(tf, "fwd.matmul.head", (const int64_t[3]){tf->sequences, in->d, vocab}, 1,
                  TOUCH(x, NONE, NONE, NONE));
    sum(in, "fwd.sum.head", &tf->layout->fsdp, x, 1);
}

static pod_status sizes_find(infer *in, pod_error *err)
{
    pod_tf *tf = in->tf;
    const pod_work_layout *layout = tf->layout;
    if (tf->count > 1 || layout->size[POD_MESH_SEQUENCE] > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "inference has no use for pipeline and sequence; use tensor, fsdp (the "
                        "second dimension of weights), expert and data");
    }
    const pod_axis_list data = {.count = layout->size[POD_MESH_DATA] > 1, .axis = {POD_MESH_DATA}};
    const pod_status st = pod_work_divides(layout, "batch", tf->request->batch, &data, err);
    in->fsdp = layout->size[POD_MESH_FSDP];
    in->d = ceil_div(tf->model->d_model, in->fsdp);
    in->decode = tf->request->mode == POD_STEP_DECODE;
    tf->tensor = layout->size[POD_MESH_TENSOR];
    tf->expert = layout->size[POD_MESH_EXPERT];
    tf->sequences = tf->request->batch / layout->size[POD_MESH_DATA];
    tf->seq = in->decode ? 1 : tf->request->seq;
    tf->tokens = tf->sequences * tf->seq;
    return st;
}

pod_status pod_tf_infer(pod_tf *tf, pod_error *err)
{
    infer in = {.tf = tf};
    tf->build.st = sizes_find(&in, err);
    if (tf->build.st != POD_OK) {
        return tf->build.st;
    }
    const int32_t x = activation(&in, "x", in.d);
    for (int32_t l = 0; l < tf->layers; l++) {
        const pod_layer layer = pod_model_layer(tf->model, l);
        tf->layer = l;
        attention(&in, &layer, x);
        mlp(&in, &layer, x);
    }
    ends(&in, x);
    return tf->build.st;
}
