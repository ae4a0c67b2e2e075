/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a layer, by the kernel of chip/attention.h or plain. Plain: of A sequences' heads with S queries
 * and K keys all A·S·K scores lie in HBM, masked ones too. Bytes of a score that vector work moves:
 *
 *      softmax    4 read for the maximum, 4 for the sum, 4 for the result; 4 written in f32, 2 in bf16      18
 *      backward   4 + 4 read for the sum over dP·P, again for the result; 2 written: dS in bf16             18
 */
#include "workload/transformer/transformer_attention.h"

#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"

enum { NONE = POD_OP_NONE, SOFTMAX_BYTES = 18, PROBABILITY_BF16S = 3 };

static pod_attention_args attention_args(const pod_tf *tf, const pod_layer *layer, bool backward)
{
    const int64_t kv = (layer->kv_heads + tf->tensor - 1) / tf->tensor;
    return (pod_attention_args){.sequences = tf->sequences,
                                .heads = layer->heads / tf->tensor,
                                .kv_heads = kv,
                                .queries = tf->seq,
                                .keys = tf->request->seq,
                                .window = layer->window,
                                .qk_dim = layer->qk_dim,
                                .v_dim = layer->v_dim,
                                .causal = true,
                                .backward = backward,
                                .cache = POD_DTYPE_BF16};
}

/** Elements of keys and values of all tokens of this chip's sequences. */
static int64_t kv_elements(const pod_tf *tf, const pod_layer *layer)
{
    const int64_t kv = (layer->kv_heads + tf->tensor - 1) / tf->tensor;
    return tf->sequences * tf->request->seq * kv * (layer->qk_dim + layer->v_dim);
}

/** Keys and values of the whole sequence. */
static void kv_gather(pod_tf *tf, const char *name, const pod_layer *layer, int32_t qkv)
{
    if (tf->sequence.count > 0) {
        const int64_t elements = kv_elements(tf, layer);
        const int32_t all =
            pod_tf_buffer(tf, "kv", POD_MEMORY_ACTIVATIONS, tf->build.dtype, elements, 1);
        pod_tf_wait(tf, pod_tf_collective(tf, POD_ALL_GATHER, name, &tf->sequence, elements,
                                          POD_DTYPE_BF16, NONE, TOUCH(qkv, all, NONE, NONE)));
    }
}

/* ---- plain ---- */

typedef struct plain {
    int64_t matrices; /**< heads of all sequences */
    int64_t queries;
    int64_t keys;
    int64_t scores;
} plain;

static plain plain_sizes(const pod_attention_args *args)
{
    const int64_t matrices = args->sequences * args->heads;
    return (plain){.matrices = matrices,
                   .queries = args->queries,
                   .keys = args->keys,
                   .scores = matrices * args->queries * args->keys};
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
    const plain p = plain_sizes(args);
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
    const plain p = plain_sizes(args);
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

pod_tf_scores pod_tf_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv)
{
    pod_tf_scores of = {.context =
                            pod_tf_buffer(tf, "context", POD_MEMORY_ACTIVATIONS, tf->build.dtype,
                                          tf->tokens, pod_tf_context_width(tf, layer)),
                        .probabilities = NONE};
    const pod_attention_args args = attention_args(tf, layer, false);
    kv_gather(tf, "fwd.gather.kv", layer, qkv);
    if (tf->request->attention == POD_ATTENTION_PLAIN) {
        of.probabilities = plain_forward(tf, &args, qkv, of.context);
    } else {
        pod_tf_attention(tf, "fwd.attention", &args, TOUCH(qkv, of.context, NONE, NONE));
    }
    return of;
}

void pod_tf_attend_backward(pod_tf *tf, const pod_layer *layer, int32_t qkv,
                            const pod_tf_scores *of, int32_t dcontext, int32_t dqkv)
{
    const pod_attention_args args = attention_args(tf, layer, true);
    kv_gather(tf, "bwd.gather.kv", layer, qkv);
    if (tf->request->attention == POD_ATTENTION_PLAIN) {
        plain_backward(tf, &args, qkv, of, dcontext, dqkv);
    } else {
        pod_tf_attention(tf, "bwd.attention", &args, TOUCH(qkv, of->context, dcontext, dqkv));
    }
    if (tf->sequence.count > 0) {
        pod_tf_wait(tf, pod_tf_collective(tf, POD_REDUCE_SCATTER, "bwd.scatter.kv", &tf->sequence,
                                          kv_elements(tf, layer), POD_DTYPE_BF16, NONE,
                                          TOUCH(dqkv, NONE, NONE, NONE)));
    }
}
