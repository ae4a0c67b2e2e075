/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of an MLP with its gathers and sums over tensor taken apart (mlp_pieces.h). Between layers, rows are cut
 * over tensor as well. Backward gathers dY and scatters dX the same way; the pieces of dW fill the gaps. */
#include "workload/mlp/mlp_ring.h"

#include "workload/build/uses.h"
#include "workload/mlp/mlp.h"
#include "workload/mlp/mlp_pieces.h"

#include <string.h>

static pod_sharding mlp_ring_input(const pod_mlp *mlp, int64_t size[2])
{
    const pod_sharding x = pod_mlp_activations(mlp, "X", false);
    size[0] = mlp->rows;
    size[1] = mlp->stage.request->model->d_model;
    return pod_pieces_cut(mlp, &x);
}

static pod_array mlp_ring_forward(pod_mlp *mlp, int32_t layer, const pod_array *x)
{
    const pod_piece_ring ring = pod_pieces_of(mlp).ring;
    pod_array *xs = pod_mlp_saved(mlp, layer, 0);
    pod_array *hs = pod_mlp_saved(mlp, layer, ring.n);
    const pod_sharding h = pod_mlp_activations(mlp, "H", true);
    const pod_sharding y = pod_mlp_activations(mlp, "X", false);
    const pod_piece_product up = {
        .phase = "fwd", .layer = layer, .result = &h, .w = pod_build_use(&mlp->stage.build)};
    pod_pieces_gather(mlp, "fwd", layer, x, xs);
    for (int32_t k = 0; k < ring.n; k++) {
        const int32_t s = pod_piece_ring_arrival(&ring, k);
        hs[s] = pod_pieces_multiply(mlp, &up, &xs[s], NULL);
        hs[s] = pod_mlp_relu(mlp, layer, &hs[s]);
        pod_mlp_keep(mlp, &xs[s]);
        pod_mlp_keep(mlp, &hs[s]);
    }
    const pod_piece_scatter scatter = {
        .product = {.phase = "fwd",
                    .layer = layer,
                    .result = &y,
                    .w = pod_build_use(&mlp->stage.build)},
        .pieces = hs
    };
    return pod_pieces_scatter(mlp, &scatter);
}

static pod_array mlp_ring_backward(pod_mlp *mlp, int32_t layer, const pod_array *dy)
{
    const pod_piece_ring ring = pod_pieces_of(mlp).ring;
    pod_array *xs = pod_mlp_saved(mlp, layer, 0);
    pod_array *hs = pod_mlp_saved(mlp, layer, ring.n);
    pod_array named = *dy;
    pod_array *dys = mlp->scratch;
    pod_array *dhs = mlp->scratch + ring.n;
    const pod_sharding dh = pod_mlp_activations(mlp, "dH", true);
    const pod_sharding dx = pod_mlp_activations(mlp, "dX", false);
    const pod_piece_product down = {
        .phase = "bwd", .layer = layer, .result = &dh, .w = pod_build_use(&mlp->stage.build)};
    memcpy(named.sharding.array, "dY", sizeof "dY");
    pod_pieces_gather(mlp, "bwd", layer, &named, dys);
    for (int32_t k = 0; k < ring.n; k++) {
        const int32_t s = pod_piece_ring_arrival(&ring, k);
        const pod_gradient_piece which = {.piece = k, .pieces = ring.n};
        dhs[s] = pod_pieces_multiply(mlp, &down, &dys[s], NULL);
        pod_weight_gradient(&mlp->stage, pod_mlp_weight(mlp, layer, POD_MLP_W2), which, &hs[s],
                            &dys[s]);
        dhs[s] = pod_mlp_relu_backward(mlp, layer, &hs[s], &dhs[s]);
    }
    const pod_piece_scatter scatter = {
        .product = {.phase = "bwd",
                    .layer = layer,
                    .result = &dx,
                    .w = pod_build_use(&mlp->stage.build)},
        .pieces = dhs,
        .weight = pod_mlp_weight(mlp, layer, POD_MLP_W1),
        .x = xs
    };
    return pod_pieces_scatter(mlp, &scatter);
}

const pod_mlp_ops pod_mlp_ring_ops = {.weights_per_layer = POD_MLP_WEIGHTS,
                                      .saved = pod_pieces_saved,
                                      .input = mlp_ring_input,
                                      .output = mlp_ring_input,
                                      .weight = pod_mlp_weight_make,
                                      .use = pod_mlp_use,
                                      .forward = mlp_ring_forward,
                                      .backward = mlp_ring_backward};
