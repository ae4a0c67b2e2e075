/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/mlp/stage.h"

pod_weight *pod_stage_weight(const pod_stage *stage, int32_t layer, int index)
{
    return &stage->weights[(layer - stage->first_layer) * stage->ops->weights_per_layer + index];
}

pod_array *pod_stage_saved(const pod_stage *stage, int32_t layer, int32_t part, int i)
{
    const int32_t place = part * stage->layers + layer - stage->first_layer;
    return &stage->saved[place * stage->ops->saved(stage) + i];
}

void pod_stage_keep(pod_stage *stage, int32_t part, const pod_array *array)
{
    if (stage->build.st == POD_OK && stage->request->mode == POD_STEP_TRAIN) {
        pod_buffer *buffer = &stage->build.program->buffers[array->buffer];
        buffer->stack = buffer->persistent ? -1 : part;
    }
}
