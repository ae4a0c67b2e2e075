/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/mlp/mlp_pieces.h"

#include "workload/build/product.h"

#include <stdio.h>

pod_pieces pod_pieces_of(const pod_mlp *mlp)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    return (pod_pieces){.axes = &layout->tensor,
                        .ring = pod_piece_ring_of(pod_work_layout_pieces(layout, &layout->tensor))};
}

pod_sharding pod_pieces_cut(const pod_mlp *mlp, const pod_sharding *sharding)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    pod_sharding cut = *sharding;
    cut.dim[0].cut = pod_axis_list_join(layout->rows, &layout->tensor);
    cut.partial = (pod_axis_list){0};
    return cut;
}

int pod_pieces_saved(const pod_mlp *mlp)
{
    return 2 * pod_pieces_of(mlp).ring.n;
}

pod_array pod_pieces_back(const pod_mlp *mlp, const pod_array *piece, int32_t s,
                          const pod_sharding *sharding)
{
    pod_array array = *piece;
    array.size[0] *= pod_pieces_of(mlp).ring.n;
    array.sharding = pod_pieces_cut(mlp, sharding);
    array.shift = s;
    return array;
}

/* ---- gather and multiply ---- */

void pod_pieces_gather(pod_mlp *mlp, const char *phase, int32_t layer, const pod_array *array,
                       pod_array *pieces)
{
    const pod_pieces p = pod_pieces_of(mlp);
    const int32_t n = p.ring.n;
    char name[POD_BUILD_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s.piece.%d", array->sharding.array, (int)layer);
    pieces[0] = *array;
    pieces[0].size[0] /= n;
    pieces[0].sharding.dim[0].cut = mlp->stage.build.layout->rows;
    for (int32_t s = 1; s <= p.ring.up; s++) {
        pieces[s] =
            pod_build_permute(&mlp->stage.build, phase, layer, &pieces[s - 1], p.axes, 1, name);
    }
    for (int32_t s = 1; s <= p.ring.down; s++) {
        pieces[n - s] = pod_build_permute(&mlp->stage.build, phase, layer, &pieces[(n - s + 1) % n],
                                          p.axes, n - 1, name);
    }
}

pod_array pod_pieces_multiply(pod_mlp *mlp, const pod_piece_product *product,
                              const pod_array *piece, const pod_array *into)
{
    char buffer[POD_BUILD_NAME_MAX];
    const pod_product whole = {.phase = product->phase,
                               .layer = product->layer,
                               .name = buffer,
                               .a = piece,
                               .b = product->w,
                               .result = *product->result,
                               .kind = POD_MEMORY_ACTIVATIONS,
                               .into = into};
    (void)snprintf(buffer, sizeof buffer, "%.*s.%d", POD_SHARDED_NAME_MAX - 1,
                   product->result->array, (int)product->layer);
    return pod_build_matmul(&mlp->stage.build, &whole);
}

/* ---- multiply and scatter ---- */

/** A piece of a weight's gradient, if there is one. */
static void fill_gap(pod_mlp *mlp, const pod_piece_scatter *sc, int32_t s, int32_t *done)
{
    if (sc->weight != NULL) {
        const pod_gradient_piece which = {.piece = (*done)++, .pieces = pod_pieces_of(mlp).ring.n};
        pod_weight_gradient(&mlp->stage, sc->weight, which, &sc->x[s], &sc->pieces[s]);
    }
}

/** Add the product of piece s to a sum and pass it on by `shift`. */
static void sum_pass(pod_mlp *mlp, const pod_piece_scatter *sc, int32_t s, int32_t shift,
                     bool first, pod_array *sum)
{
    const pod_piece_product *product = &sc->product;
    char name[POD_BUILD_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s.sum.%d", product->result->array, (int)product->layer);
    *sum = pod_pieces_multiply(mlp, product, &sc->pieces[s], first ? NULL : sum);
    *sum = pod_build_permute(&mlp->stage.build, product->phase, product->layer, sum,
                             pod_pieces_of(mlp).axes, shift, name);
}

pod_array pod_pieces_scatter(pod_mlp *mlp, const pod_piece_scatter *scatter)
{
    const pod_piece_ring ring = pod_pieces_of(mlp).ring;
    pod_sharding sums = *scatter->product.result;
    pod_piece_scatter partial = *scatter;
    pod_array from_higher = {0};
    pod_array from_lower = {0};
    int32_t done = 0;
    sums.partial = mlp->stage.build.layout->tensor;
    partial.product.result = &sums;
    for (int32_t away = ring.up; away >= 1; away--) {
        sum_pass(mlp, &partial, away, ring.n - 1, away == ring.up, &from_higher);
        if (away <= ring.down) {
            sum_pass(mlp, &partial, ring.n - away, 1, away == ring.down, &from_lower);
            fill_gap(mlp, &partial, ring.n - away, &done);
        }
        fill_gap(mlp, &partial, away, &done);
    }
    pod_array sum = pod_pieces_multiply(mlp, &partial.product, &partial.pieces[0], &from_higher);
    fill_gap(mlp, &partial, 0, &done);
    if (ring.down > 0) {
        const pod_elementwise add = {
            .name = "ring.add",
            .layer = partial.product.layer,
            .function = POD_VEC_ADD,
            .in = {&sum, &from_lower},
            .flops = 1,
            .bytes = pod_dtype_size(sum.dtype)
        }; /* fused but for one */
        sum = pod_build_vector(&mlp->stage.build, &add, &sum);
    }
    return pod_pieces_back(mlp, &sum, 0, scatter->product.result);
}
