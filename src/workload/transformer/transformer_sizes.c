/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_sizes.h"

#include "workload/transformer/transformer_ops.h"

enum { PERCENT = 100 };

int64_t pod_tf_qkv_width(const pod_tf *tf, const pod_layer *layer)
{
    return pod_layer_projection_width(layer, tf->tensor);
}

int64_t pod_tf_context_width(const pod_tf *tf, const pod_layer *layer)
{
    return pod_layer_matmul_k(pod_layer_find(layer, POD_ROLE_OUT), tf->tensor);
}

/** Of an expert's fair share of tokens: what it has room for. */
static int64_t capacity_percent(const pod_tf *tf)
{
    return tf->model->capacity_percent > 0 ? tf->model->capacity_percent : PERCENT;
}

int64_t pod_tf_busiest(const pod_tf *tf, int64_t mean)
{
    const double balance = tf->stage.request->settings.expert_balance;
    return tf->expert > 1 && balance > 1 ? (int64_t)((double)mean * balance + 0.5) : mean;
}

int64_t pod_tf_expert_rows(const pod_tf *tf, const pod_layer *layer)
{
    return pod_tf_busiest(tf, (tf->tokens * layer->top_k * capacity_percent(tf) + PERCENT - 1)
                                  / PERCENT);
}

int64_t pod_tf_function_width(const pod_tf *tf, const pod_layer *layer)
{
    int64_t width = 0;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const int64_t columns = pod_layer_matmul_n(m, tf->tensor);
        if (m->role == POD_ROLE_UP) {
            width += columns;
        } else if (m->part == POD_PART_EXPERTS_IN) {
            width += layer->top_k * columns * capacity_percent(tf) / PERCENT;
        }
    }
    return width;
}

int64_t pod_tf_hidden_width(const pod_tf *tf, const pod_layer *layer)
{
    return (tf->model->mlp_matrices - 1) * pod_tf_function_width(tf, layer);
}

int32_t pod_tf_activation(pod_tf *tf, const char *name, int64_t width)
{
    return pod_tf_buffer(tf, name, POD_MEMORY_ACTIVATIONS, tf->stage.build.dtype, tf->tokens,
                         width);
}
