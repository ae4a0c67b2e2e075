/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_infer_state.h"

#include "workload/transformer/transformer_numbers.h"

void pod_tf_infer_place(pod_tf *tf, pod_place_role role, int32_t number, int32_t part)
{
    const pod_place place = {.role = role,
                             .stage = tf->stage.number,
                             .buffer = number,
                             .layer = tf->layer,
                             .part = part,
                             .across = tf->layout->fsdp};
    pod_buffer *buffer = &tf->program->buffers[number];
    const bool cache = role == POD_PLACE_CACHE || role == POD_PLACE_CACHE_SCALES;
    const bool taken =
        role == POD_PLACE_LAST_LOGITS || role == POD_PLACE_CHOICES || role == POD_PLACE_SQUARES;
    buffer->given = !taken;
    buffer->persistent = cache || taken;
    tf->stage.build.st = pod_tensors_place(tf->stage.build.tensors, &place, tf->stage.build.err);
}

int32_t pod_tf_infer_given(pod_tf *tf, const char *name, pod_place_role role, pod_dtype dtype,
                           int64_t rows, int64_t columns)
{
    const int32_t number = pod_tf_number_new(tf, name, dtype, rows, columns);
    if (number != POD_OP_NONE) {
        pod_tf_infer_place(tf, role, number, 0);
    }
    return number;
}

int32_t pod_tf_infer_rows(pod_tf *tf, const char *name, int64_t columns)
{
    return pod_tf_number_new(tf, name, POD_DTYPE_BF16, tf->tokens, columns);
}

int64_t pod_tf_infer_width(const pod_tf *tf, const pod_tf_infer_numbers *n)
{
    return tf->model->d_model / n->fsdp;
}
