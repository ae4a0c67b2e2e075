/* SPDX-License-Identifier: Apache-2.0 */
/* One product:  C[m, n] = A[m, k] · W[k, n];  backward  dA = dC · Wᵀ, over tensor,  dW = Aᵀ · dC. */
#include "workload/mlp/stage.h"

static pod_sharding matmul_input(const pod_stage *stage, int64_t size[2])
{
    const pod_axis_list whole = {0};
    size[0] = stage->rows;
    size[1] = stage->request->model->d_model;
    return pod_build_sharding("A", "m", stage->build.layout->rows, "k", whole);
}

static pod_sharding matmul_output(const pod_stage *stage, int64_t size[2])
{
    const pod_work_layout *layout = stage->build.layout;
    size[0] = stage->rows;
    size[1] = stage->request->model->d_ff;
    return pod_build_sharding("C", "m", layout->rows, "n", layout->tensor);
}

static void matmul_weight(pod_stage *stage, int32_t layer, int index, pod_weight *weight)
{
    const pod_work_layout *layout = stage->build.layout;
    const pod_model *model = stage->request->model;
    const int64_t size[2] = {model->d_model, model->d_ff};
    const pod_sharding sharding = pod_build_sharding("W", "k", layout->fsdp, "n", layout->tensor);
    (void)index;
    pod_weight_make(stage, weight, layer, &sharding, size);
}

static int matmul_use(int use, bool backward)
{
    (void)backward;
    return use;
}

static int matmul_saved(const pod_stage *stage)
{
    (void)stage;
    return 1;
}

static pod_array matmul_forward(pod_stage *stage, int32_t layer, int32_t part, const pod_array *x)
{
    int64_t size[2];
    const pod_product product = {.phase = "fwd",
                                 .layer = layer,
                                 .name = "C",
                                 .a = x,
                                 .b = pod_build_use(&stage->build),
                                 .result = matmul_output(stage, size),
                                 .kind = POD_MEMORY_ACTIVATIONS,
                                 .sum_in_place = true};
    *pod_stage_saved(stage, layer, part, 0) = *x;
    pod_stage_keep(stage, part, x);
    return pod_build_matmul(&stage->build, &product);
}

static pod_array matmul_backward(pod_stage *stage, int32_t layer, int32_t part, const pod_array *dy)
{
    const bool input_first = stage->build.layout->tensor.count > 0;
    const pod_array *x = pod_stage_saved(stage, layer, part, 0);
    pod_weight *w = pod_stage_weight(stage, layer, 0);
    const pod_gradient_piece which = {.part = part, .pieces = 1};
    int64_t size[2];
    pod_product product = {.phase = "bwd",
                           .layer = layer,
                           .name = "dA",
                           .a = dy,
                           .b = pod_build_use(&stage->build),
                           .result = matmul_input(stage, size),
                           .kind = POD_MEMORY_ACTIVATIONS};
    product.result.array[0] = 'd';
    product.result.array[1] = 'A';
    product.result.array[2] = '\0';
    if (!input_first) {
        pod_weight_gradient(stage, w, which, x, dy);
    }
    const pod_array dx = pod_build_matmul(&stage->build, &product);
    if (input_first) {
        pod_weight_gradient(stage, w, which, x, dy);
    }
    return dx;
}

const pod_stage_ops pod_matmul_ops = {.weights_per_layer = 1,
                                      .saved = matmul_saved,
                                      .input = matmul_input,
                                      .output = matmul_output,
                                      .weight = matmul_weight,
                                      .use = matmul_use,
                                      .forward = matmul_forward,
                                      .backward = matmul_backward};
