/* SPDX-License-Identifier: Apache-2.0 */
/* One product:  C[m, n] = A[m, k] · W[k, n];  backward  dA = dC · Wᵀ, over tensor,  dW = Aᵀ · dC.
 *
 * Piece by piece, A comes round the ring and C, its loss and dC are as many products; dA goes round the other way as
 * sums, and the pieces of dW fill the gaps. */
#include "workload/mlp/matmul.h"

#include "workload/build/product.h"
#include "workload/build/uses.h"
#include "workload/mlp/mlp_pieces.h"

#include <string.h>

static pod_sharding matmul_input(const pod_mlp *mlp, int64_t size[2])
{
    const pod_axis_list whole = {0};
    size[0] = mlp->rows;
    size[1] = mlp->stage.request->model->d_model;
    return pod_build_sharding("A", "m", mlp->stage.build.layout->rows, "k", whole);
}

/** Of dA. */
static pod_sharding matmul_derivative(const pod_mlp *mlp)
{
    int64_t size[2];
    pod_sharding derivative = matmul_input(mlp, size);
    memcpy(derivative.array, "dA", sizeof "dA");
    return derivative;
}

static pod_sharding matmul_output(const pod_mlp *mlp, int64_t size[2])
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    size[0] = mlp->rows;
    size[1] = mlp->stage.request->model->d_ff;
    return pod_build_sharding("C", "m", layout->rows, "n", layout->tensor);
}

static void matmul_weight(pod_mlp *mlp, int32_t layer, int index, pod_weight *weight)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    const pod_model *model = mlp->stage.request->model;
    const int64_t size[2] = {model->d_model, model->d_ff};
    const pod_sharding sharding = pod_build_sharding("W", "k", layout->fsdp, "n", layout->tensor);
    (void)index;
    pod_weight_make(&mlp->stage, weight, layer, &sharding, size);
}

static int matmul_use(int use, bool backward)
{
    (void)backward;
    return use;
}

static int matmul_saved(const pod_mlp *mlp)
{
    (void)mlp;
    return 1;
}

static pod_array matmul_forward(pod_mlp *mlp, int32_t layer, const pod_array *x)
{
    int64_t size[2];
    const pod_product product = {.phase = "fwd",
                                 .layer = layer,
                                 .name = "C",
                                 .a = x,
                                 .b = pod_build_use(&mlp->stage.build),
                                 .result = matmul_output(mlp, size),
                                 .kind = POD_MEMORY_ACTIVATIONS,
                                 .sum_in_place = true};
    *pod_mlp_saved(mlp, layer, 0) = *x;
    pod_mlp_keep(mlp, x);
    return pod_build_matmul(&mlp->stage.build, &product);
}

static pod_array matmul_backward(pod_mlp *mlp, int32_t layer, const pod_array *dy)
{
    const bool input_first = mlp->stage.build.layout->tensor.count > 0;
    const pod_array *x = pod_mlp_saved(mlp, layer, 0);
    pod_weight *w = pod_mlp_weight(mlp, layer, 0);
    const pod_gradient_piece which = {.pieces = 1};
    const pod_product product = {.phase = "bwd",
                                 .layer = layer,
                                 .name = "dA",
                                 .a = dy,
                                 .b = pod_build_use(&mlp->stage.build),
                                 .result = matmul_derivative(mlp),
                                 .kind = POD_MEMORY_ACTIVATIONS};
    if (!input_first) {
        pod_weight_gradient(&mlp->stage, w, which, x, dy);
    }
    const pod_array dx = pod_build_matmul(&mlp->stage.build, &product);
    if (input_first) {
        pod_weight_gradient(&mlp->stage, w, which, x, dy);
    }
    return dx;
}

const pod_mlp_ops pod_matmul_ops = {.weights_per_layer = 1,
                                    .saved = matmul_saved,
                                    .input = matmul_input,
                                    .output = matmul_output,
                                    .weight = matmul_weight,
                                    .use = matmul_use,
                                    .forward = matmul_forward,
                                    .backward = matmul_backward};

/* ---- piece by piece ---- */

static pod_sharding ring_input(const pod_mlp *mlp, int64_t size[2])
{
    const pod_sharding whole = matmul_input(mlp, size);
    return pod_pieces_cut(mlp, &whole);
}

/** One of the pieces. */
static pod_sharding ring_output(const pod_mlp *mlp, int64_t size[2])
{
    const pod_sharding piece = matmul_output(mlp, size);
    size[0] /= pod_pieces_of(mlp).ring.n;
    return piece;
}

/** C, which the loss replaces by dC. */
static pod_array *ring_output_pieces(const pod_mlp *mlp)
{
    return pod_mlp_saved(mlp, mlp->stage.first_layer, pod_pieces_of(mlp).ring.n);
}

static pod_array ring_forward(pod_mlp *mlp, int32_t layer, const pod_array *x)
{
    const pod_piece_ring ring = pod_pieces_of(mlp).ring;
    pod_array *as = pod_mlp_saved(mlp, layer, 0);
    pod_array *cs = ring_output_pieces(mlp);
    int64_t size[2];
    const pod_sharding c = matmul_output(mlp, size);
    const pod_piece_product product = {
        .phase = "fwd", .layer = layer, .result = &c, .w = pod_build_use(&mlp->stage.build)};
    pod_pieces_gather(mlp, "fwd", layer, x, as);
    for (int32_t k = 0; k < ring.n; k++) {
        const int32_t s = pod_piece_ring_arrival(&ring, k);
        cs[s] = pod_pieces_multiply(mlp, &product, &as[s], NULL);
        pod_mlp_keep(mlp, &as[s]);
    }
    return cs[0];
}

static pod_array ring_backward(pod_mlp *mlp, int32_t layer, const pod_array *dy)
{
    const pod_sharding da = matmul_derivative(mlp);
    (void)dy; /* the first of the pieces */
    const pod_piece_scatter scatter = {
        .product = {.phase = "bwd",
                    .layer = layer,
                    .result = &da,
                    .w = pod_build_use(&mlp->stage.build)},
        .pieces = ring_output_pieces(mlp),
        .weight = pod_mlp_weight(mlp, layer, 0),
        .x = pod_mlp_saved(mlp, layer, 0)
    };
    return pod_pieces_scatter(mlp, &scatter);
}

const pod_mlp_ops pod_matmul_ring_ops = {.weights_per_layer = 1,
                                         .saved = pod_pieces_saved,
                                         .input = ring_input,
                                         .output = ring_output,
                                         .weight = matmul_weight,
                                         .use = matmul_use,
                                         .forward = ring_forward,
                                         .output_pieces = ring_output_pieces,
                                         .backward = ring_backward};
