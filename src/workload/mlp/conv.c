/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution of pixels as rows:  Y[m, n] = X[m, k] * F[k, n],  m the pixels, k the channels of X (of F, of all
 * taps), n those of Y; backward  dX over tensor, dF. Pictures are cut over data and fsdp, Y's channels over tensor, so
 * that shards and collectives are those of a matmul with these dims. */
#include "workload/mlp/conv.h"

#include "workload/build/product.h"
#include "workload/build/uses.h"

static pod_conv_shape conv_shape(const pod_mlp *mlp)
{
    pod_conv_shape shape = pod_model_conv(mlp->stage.request->model);
    shape.n = mlp->rows;
    return shape;
}

static pod_sharding conv_pixels(const pod_mlp *mlp, const char *name, int64_t size[2])
{
    const pod_conv_shape s = conv_shape(mlp);
    const pod_axis_list whole = {0};
    size[0] = s.n * s.h * s.w;
    size[1] = s.cin;
    return pod_build_sharding(name, "m", mlp->stage.build.layout->rows, "k", whole);
}

static pod_sharding conv_input(const pod_mlp *mlp, int64_t size[2])
{
    return conv_pixels(mlp, "X", size);
}

static pod_sharding conv_output(const pod_mlp *mlp, int64_t size[2])
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    const pod_conv_shape s = conv_shape(mlp);
    size[0] = s.n * pod_conv_out(s.h, s.stride) * pod_conv_out(s.w, s.stride);
    size[1] = s.cout;
    return pod_build_sharding("Y", "m", layout->rows, "n", layout->tensor);
}

static void conv_weight(pod_mlp *mlp, int32_t layer, int index, pod_weight *weight)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    const pod_conv_shape s = conv_shape(mlp);
    const int64_t size[2] = {s.kh * s.kw * s.cin, s.cout};
    const pod_sharding sharding = pod_build_sharding("F", "k", layout->fsdp, "n", layout->tensor);
    (void)index;
    pod_weight_make(&mlp->stage, weight, layer, &sharding, size);
    weight->of_conv = true;
    weight->conv = s;
}

static int conv_use(int use, bool backward)
{
    (void)backward;
    return use;
}

static int conv_saved(const pod_mlp *mlp)
{
    (void)mlp;
    return 1;
}

static pod_array conv_forward(pod_mlp *mlp, int32_t layer, const pod_array *x)
{
    const pod_conv_shape shape = conv_shape(mlp);
    pod_product product = {.phase = "fwd",
                           .layer = layer,
                           .name = "Y",
                           .a = x,
                           .b = pod_build_use(&mlp->stage.build),
                           .kind = POD_MEMORY_ACTIVATIONS,
                           .conv = &shape,
                           .conv_op = POD_CONV_FORWARD,
                           .sum_in_place = true};
    product.result = conv_output(mlp, product.size);
    *pod_mlp_saved(mlp, layer, 0) = *x;
    pod_mlp_keep(mlp, x);
    return pod_build_matmul(&mlp->stage.build, &product);
}

static pod_array conv_backward(pod_mlp *mlp, int32_t layer, const pod_array *dy)
{
    const pod_conv_shape shape = conv_shape(mlp);
    const bool input_first = mlp->stage.build.layout->tensor.count > 0;
    const pod_array *x = pod_mlp_saved(mlp, layer, 0);
    pod_weight *weight = pod_mlp_weight(mlp, layer, 0);
    const pod_gradient_piece which = {.pieces = 1};
    pod_product product = {.phase = "bwd",
                           .layer = layer,
                           .name = "dX",
                           .a = dy,
                           .b = pod_build_use(&mlp->stage.build),
                           .kind = POD_MEMORY_ACTIVATIONS,
                           .conv = &shape,
                           .conv_op = POD_CONV_INPUT};
    product.result = conv_pixels(mlp, "dX", product.size);
    if (!input_first) {
        pod_weight_gradient(&mlp->stage, weight, which, x, dy);
    }
    const pod_array dx = pod_build_matmul(&mlp->stage.build, &product);
    if (input_first) {
        pod_weight_gradient(&mlp->stage, weight, which, x, dy);
    }
    return dx;
}

const pod_mlp_ops pod_conv_ops = {.weights_per_layer = 1,
                                  .saved = conv_saved,
                                  .input = conv_input,
                                  .output = conv_output,
                                  .weight = conv_weight,
                                  .use = conv_use,
                                  .forward = conv_forward,
                                  .backward = conv_backward};
