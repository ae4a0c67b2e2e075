/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of an MLP:  X ← relu(X[rows, d_model] · W1[d_model, d_ff]) · W2[d_ff, d_model].
 *
 *      forward   H  = relu(X · W1)          backward  dH = (H > 0) · (dY · W2ᵀ)   dW2 = Hᵀ · dY
 *                Y  = H · W2, over tensor             dX = dH · W1ᵀ, over tensor  dW1 = Xᵀ · dH
 *
 * Order of backward: dX before dW1, so that the sum of dX over tensor overlaps with dW1; dW2 before dH,
 * so that its sum overlaps with the rest, unless dX is summed: then what leads to dX comes first. */
#include "workload/mlp/mlp.h"

#include "workload/build/product.h"
#include "workload/build/uses.h"

#include <stdio.h>
#include <string.h>

enum { SAVED_X, SAVED_H, SAVED };

pod_sharding pod_mlp_activations(const pod_mlp *mlp, const char *name, bool hidden)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    const pod_axis_list whole = {0};
    return hidden ? pod_build_sharding(name, "rows", layout->rows, "d_ff", layout->tensor)
                  : pod_build_sharding(name, "rows", layout->rows, "d_model", whole);
}

static pod_sharding mlp_input(const pod_mlp *mlp, int64_t size[2])
{
    size[0] = mlp->rows;
    size[1] = mlp->stage.request->model->d_model;
    return pod_mlp_activations(mlp, "X", false);
}

void pod_mlp_weight_make(pod_mlp *mlp, int32_t layer, int index, pod_weight *weight)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    const pod_model *model = mlp->stage.request->model;
    if (index == POD_MLP_W1) {
        const int64_t size[2] = {model->d_model, model->d_ff};
        const pod_sharding sharding =
            pod_build_sharding("W1", "d_model", layout->fsdp, "d_ff", layout->tensor);
        pod_weight_make(&mlp->stage, weight, layer, &sharding, size);
        return;
    }
    const int64_t size[2] = {model->d_ff, model->d_model};
    const pod_axis_list whole = {0};
    const pod_sharding sharding = pod_build_sharding(
        "W2", "d_ff", pod_axis_list_join(layout->tensor, &layout->fsdp), "d_model", whole);
    pod_weight_make(&mlp->stage, weight, layer, &sharding, size);
}

int pod_mlp_use(int use, bool backward)
{
    return backward ? POD_MLP_WEIGHTS - 1 - use : use;
}

/** A product with a weight. Sums of forward are waited for at once and write over their input; those of
 *  backward run beside the next product. */
static pod_array multiply(pod_mlp *mlp, const char *phase, int32_t layer, const char *name,
                          const pod_array *a, const pod_array *w, bool hidden)
{
    char buffer[POD_BUILD_NAME_MAX];
    const pod_product product = {.phase = phase,
                                 .layer = layer,
                                 .name = buffer,
                                 .a = a,
                                 .b = w,
                                 .result = pod_mlp_activations(mlp, name, hidden),
                                 .kind = POD_MEMORY_ACTIVATIONS,
                                 .sum_in_place = strcmp(phase, "fwd") == 0};
    (void)snprintf(buffer, sizeof buffer, "%s.%d", name, (int)layer);
    return pod_build_matmul(&mlp->stage.build, &product);
}

pod_array pod_mlp_relu(pod_mlp *mlp, int32_t layer, const pod_array *h)
{
    const pod_elementwise relu = {.name = "fwd.relu",
                                  .layer = layer,
                                  .function = POD_VEC_RELU,
                                  .in = {h},
                                  .flops = 1}; /* fused into the product: no bytes of its own */
    return pod_build_vector(&mlp->stage.build, &relu, h);
}

static int mlp_saved(const pod_mlp *mlp)
{
    (void)mlp;
    return SAVED;
}

static pod_array mlp_forward(pod_mlp *mlp, int32_t layer, const pod_array *x)
{
    pod_array *saved_x = pod_mlp_saved(mlp, layer, SAVED_X);
    pod_array *h = pod_mlp_saved(mlp, layer, SAVED_H);
    *saved_x = *x;
    pod_mlp_keep(mlp, x);
    *h = multiply(mlp, "fwd", layer, "H", x, pod_build_use(&mlp->stage.build), true);
    *h = pod_mlp_relu(mlp, layer, h);
    pod_mlp_keep(mlp, h);
    return multiply(mlp, "fwd", layer, "X", h, pod_build_use(&mlp->stage.build), false);
}

pod_array pod_mlp_relu_backward(pod_mlp *mlp, int32_t layer, const pod_array *h,
                                const pod_array *dh)
{
    const pod_elementwise grad = {
        .name = "bwd.relu",
        .layer = layer,
        .function = POD_VEC_RELU_GRAD,
        .in = {h, dh},
        .flops = 1,
        .bytes = pod_dtype_size(h->dtype)
    }; /* fused but for the mask */
    return pod_build_vector(&mlp->stage.build, &grad, dh);
}

static pod_array mlp_backward(pod_mlp *mlp, int32_t layer, const pod_array *dy)
{
    const bool input_first = mlp->stage.build.layout->tensor.count > 0;
    const pod_array *x = pod_mlp_saved(mlp, layer, SAVED_X);
    const pod_array *h = pod_mlp_saved(mlp, layer, SAVED_H);
    pod_weight *w1 = pod_mlp_weight(mlp, layer, POD_MLP_W1);
    pod_weight *w2 = pod_mlp_weight(mlp, layer, POD_MLP_W2);
    const pod_gradient_piece which = {.pieces = 1};
    const pod_array *use = pod_build_use(&mlp->stage.build);
    if (!input_first) {
        pod_weight_gradient(&mlp->stage, w2, which, h, dy);
    }
    pod_array dh = multiply(mlp, "bwd", layer, "dH", dy, use, true);
    if (input_first) {
        pod_weight_gradient(&mlp->stage, w2, which, h, dy);
    }
    dh = pod_mlp_relu_backward(mlp, layer, h, &dh);
    use = pod_build_use(&mlp->stage.build);
    const pod_array dx = multiply(mlp, "bwd", layer, "dX", &dh, use, false);
    pod_weight_gradient(&mlp->stage, w1, which, x, &dh);
    return dx;
}

const pod_mlp_ops pod_mlp_whole_ops = {.weights_per_layer = POD_MLP_WEIGHTS,
                                       .saved = mlp_saved,
                                       .input = mlp_input,
                                       .output = mlp_input,
                                       .weight = pod_mlp_weight_make,
                                       .use = pod_mlp_use,
                                       .forward = mlp_forward,
                                       .backward = mlp_backward};
