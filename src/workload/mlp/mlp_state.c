/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/mlp/mlp_state.h"

pod_weight *pod_mlp_weight(const pod_mlp *mlp, int32_t layer, int index)
{
    return &mlp->weights[(layer - mlp->stage.first_layer) * mlp->ops->weights_per_layer + index];
}

pod_array *pod_mlp_saved(const pod_mlp *mlp, int32_t layer, int i)
{
    const pod_stage *stage = &mlp->stage;
    const int32_t place = stage->part * stage->layers + layer - stage->first_layer;
    return &mlp->saved[place * mlp->ops->saved(mlp) + i];
}

void pod_mlp_keep(pod_mlp *mlp, const pod_array *array)
{
    const pod_stage *stage = &mlp->stage;
    if (stage->build.st == POD_OK && stage->request->mode == POD_STEP_TRAIN) {
        pod_buffer *buffer = &stage->build.program->buffers[array->buffer];
        buffer->stack = buffer->persistent ? -1 : stage->part;
    }
}
