/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of an MLP with its gathers and sums over tensor taken apart (collective matmul: Wang et al.,
 * Overlap Communication with Dependent Computation via Decomposition, ASPLOS 2023). Between layers, rows
 * are cut over tensor as well: n chips of a tensor group hold a piece each.
 *
 *  Gather and multiply: each chip's piece travels both ways round the ring; a chip multiplies the pieces
 *  as they come. Piece s of a chip at position i is the one of position i - s (mod n), so all chips
 *  have the same program. n = 4:      s = 0        s = 1         s = 3        s = 2
 *                                     its own      from lower   from higher  from lower
 *
 *  Multiply and scatter: sums travel. For the piece of position p one sum comes from lower positions and one
 *  from higher ones, each chip on the way adding its product, and p adds its own. Sums from higher positions
 *  start n/2 chips away: chip i adds its product of piece s to the sum that is s chips from its goal.
 *
 *  Backward gathers dY and scatters dX the same way; the pieces of dW fill the gaps. */
#include "workload/mlp/mlp_ring.h"

#include "workload/build/product.h"
#include "workload/build/ring.h"
#include "workload/build/uses.h"
#include "workload/mlp/mlp.h"

#include <stdio.h>
#include <string.h>

typedef struct ring {
    const pod_axis_list *axes;
    pod_piece_ring of;
} ring;

static ring ring_of(const pod_mlp *mlp)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    return (ring){.axes = &layout->tensor,
                  .of = pod_piece_ring_of(pod_work_layout_pieces(layout, &layout->tensor))};
}

static pod_sharding whole_rows(const pod_mlp *mlp, const char *name)
{
    const pod_work_layout *layout = mlp->stage.build.layout;
    pod_sharding sharding = pod_mlp_activations(mlp, name, false);
    sharding.dim[0].cut = pod_axis_list_join(layout->rows, &layout->tensor);
    return sharding;
}

static pod_sharding ring_input(const pod_mlp *mlp, int64_t size[2])
{
    size[0] = mlp->rows;
    size[1] = mlp->stage.request->model->d_model;
    return whole_rows(mlp, "X");
}

/** The shard of an array that is cut over tensor as well, as a piece: an array of rows/n rows. */
static pod_array piece_of(const pod_mlp *mlp, const ring *r, const pod_array *array)
{
    pod_array piece = *array;
    piece.size[0] /= r->of.n;
    piece.sharding.dim[0].cut = mlp->stage.build.layout->rows;
    return piece;
}

static pod_array piece_back(const pod_mlp *mlp, const ring *r, const pod_array *piece,
                            const char *name)
{
    pod_array array = *piece;
    array.size[0] *= r->of.n;
    array.sharding = whole_rows(mlp, name);
    return array;
}

/* ---- gather and multiply ---- */

/** Let a piece travel: pieces[s] for all s. */
static void pieces_gather(pod_mlp *mlp, const ring *r, const char *phase, int32_t layer,
                          const pod_array *own, pod_array *pieces)
{
    char name[POD_BUILD_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s.piece.%d", own->sharding.array, (int)layer);
    pieces[0] = *own;
    for (int32_t s = 1; s <= r->of.up; s++) {
        pieces[s] =
            pod_build_permute(&mlp->stage.build, phase, layer, &pieces[s - 1], r->axes, 1, name);
    }
    for (int32_t s = 1; s <= r->of.down; s++) {
        pieces[r->of.n - s] =
            pod_build_permute(&mlp->stage.build, phase, layer, &pieces[(r->of.n - s + 1) % r->of.n],
                              r->axes, r->of.n - 1, name);
    }
}

/** Product of a piece: H or dH, or X or dX as partial sums over tensor, maybe added to `into`. */
static pod_array piece_multiply(pod_mlp *mlp, const char *phase, int32_t layer, const char *name,
                                const pod_array *piece, const pod_array *w, const pod_array *into)
{
    const bool hidden = strchr(name, 'H') != NULL;
    char buffer[POD_BUILD_NAME_MAX];
    pod_product product = {.phase = phase,
                           .layer = layer,
                           .name = buffer,
                           .a = piece,
                           .b = w,
                           .result = pod_mlp_activations(mlp, name, hidden),
                           .kind = POD_MEMORY_ACTIVATIONS,
                           .into = into};
    if (!hidden) {
        product.result.partial = mlp->stage.build.layout->tensor;
    }
    (void)snprintf(buffer, sizeof buffer, "%s.%d", name, (int)layer);
    return pod_build_matmul(&mlp->stage.build, &product);
}

/* ---- multiply and scatter ---- */

/** What is done beside each product of a scatter: a piece of a weight's gradient, if there is one. */
typedef struct filler {
    pod_weight *weight;
    int32_t done;
    const pod_array *x; /* pieces, like those of the scatter */
} filler;

typedef struct scatter {
    const ring *r;
    const char *phase;
    int32_t layer;
    const char *name;
    const pod_array *pieces; /* hidden */
    const pod_array *w;
    filler fill;
} scatter;

static void fill_gap(pod_mlp *mlp, scatter *sc, int32_t s)
{
    if (sc->fill.weight != NULL) {
        const pod_gradient_piece which = {.piece = sc->fill.done++, .pieces = sc->r->of.n};
        pod_weight_gradient(&mlp->stage, sc->fill.weight, which, &sc->fill.x[s], &sc->pieces[s]);
    }
}

/** Add the product of piece s to a sum and pass it on by `shift`. */
static void sum_pass(pod_mlp *mlp, const scatter *sc, int32_t s, int32_t shift, bool first,
                     pod_array *sum)
{
    char name[POD_BUILD_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s.sum.%d", sc->name, (int)sc->layer);
    *sum = piece_multiply(mlp, sc->phase, sc->layer, sc->name, &sc->pieces[s], sc->w,
                          first ? NULL : sum);
    *sum =
        pod_build_permute(&mlp->stage.build, sc->phase, sc->layer, sum, sc->r->axes, shift, name);
}

/** @return the chip's own piece of the sum over tensor */
static pod_array multiply_scatter(pod_mlp *mlp, scatter *sc)
{
    const ring *r = sc->r;
    pod_array from_higher = {0};
    pod_array from_lower = {0};
    for (int32_t away = r->of.up; away >= 1; away--) {
        sum_pass(mlp, sc, away, r->of.n - 1, away == r->of.up, &from_higher);
        if (away <= r->of.down) {
            sum_pass(mlp, sc, r->of.n - away, 1, away == r->of.down, &from_lower);
            fill_gap(mlp, sc, r->of.n - away);
        }
        fill_gap(mlp, sc, away);
    }
    pod_array sum =
        piece_multiply(mlp, sc->phase, sc->layer, sc->name, &sc->pieces[0], sc->w, &from_higher);
    fill_gap(mlp, sc, 0);
    if (r->of.down > 0) {
        const pod_elementwise add = {
            .name = "ring.add",
            .layer = sc->layer,
            .function = POD_VEC_ADD,
            .in = {&sum, &from_lower},
            .flops = 1,
            .bytes = pod_dtype_size(sum.dtype)
        }; /* fused but for one */
        sum = pod_build_vector(&mlp->stage.build, &add, &sum);
    }
    sum.sharding.partial = (pod_axis_list){0};
    return sum;
}

/* ---- the layer ---- */

static int ring_saved(const pod_mlp *mlp)
{
    return 2 * ring_of(mlp).of.n;
}

static pod_array ring_forward(pod_mlp *mlp, int32_t layer, const pod_array *x)
{
    const ring r = ring_of(mlp);
    pod_array *xs = pod_mlp_saved(mlp, layer, 0);
    pod_array *hs = pod_mlp_saved(mlp, layer, r.of.n);
    const pod_array own = piece_of(mlp, &r, x);
    const pod_array *w = pod_build_use(&mlp->stage.build);
    pieces_gather(mlp, &r, "fwd", layer, &own, xs);
    for (int32_t k = 0; k < r.of.n; k++) {
        const int32_t s = pod_piece_ring_arrival(&r.of, k);
        hs[s] = piece_multiply(mlp, "fwd", layer, "H", &xs[s], w, NULL);
        hs[s] = pod_mlp_relu(mlp, layer, &hs[s]);
        pod_mlp_keep(mlp, &xs[s]);
        pod_mlp_keep(mlp, &hs[s]);
    }
    scatter sc = {.r = &r,
                  .phase = "fwd",
                  .layer = layer,
                  .name = "X",
                  .pieces = hs,
                  .w = pod_build_use(&mlp->stage.build)};
    const pod_array y = multiply_scatter(mlp, &sc);
    return piece_back(mlp, &r, &y, "X");
}

static pod_array ring_backward(pod_mlp *mlp, int32_t layer, const pod_array *dy)
{
    const ring r = ring_of(mlp);
    pod_array *xs = pod_mlp_saved(mlp, layer, 0);
    pod_array *hs = pod_mlp_saved(mlp, layer, r.of.n);
    pod_array own = piece_of(mlp, &r, dy);
    pod_array *dys = mlp->scratch;
    pod_array *dhs = mlp->scratch + r.of.n;
    const pod_array *w = pod_build_use(&mlp->stage.build);
    memcpy(own.sharding.array, "dY", sizeof "dY");
    pieces_gather(mlp, &r, "bwd", layer, &own, dys);
    for (int32_t k = 0; k < r.of.n; k++) {
        const int32_t s = pod_piece_ring_arrival(&r.of, k);
        const pod_gradient_piece which = {.piece = k, .pieces = r.of.n};
        dhs[s] = piece_multiply(mlp, "bwd", layer, "dH", &dys[s], w, NULL);
        pod_weight_gradient(&mlp->stage, pod_mlp_weight(mlp, layer, POD_MLP_W2), which, &hs[s],
                            &dys[s]);
        dhs[s] = pod_mlp_relu_backward(mlp, layer, &hs[s], &dhs[s]);
    }
    scatter sc = {
        .r = &r,
        .phase = "bwd",
        .layer = layer,
        .name = "dX",
        .pieces = dhs,
        .w = pod_build_use(&mlp->stage.build),
        .fill = {.weight = pod_mlp_weight(mlp, layer, POD_MLP_W1), .x = xs}
    };
    const pod_array dx = multiply_scatter(mlp, &sc);
    return piece_back(mlp, &r, &dx, "dX");
}

const pod_mlp_ops pod_mlp_ring_ops = {.weights_per_layer = POD_MLP_WEIGHTS,
                                      .saved = ring_saved,
                                      .input = ring_input,
                                      .output = ring_input,
                                      .weight = pod_mlp_weight_make,
                                      .use = pod_mlp_use,
                                      .forward = ring_forward,
                                      .backward = ring_backward};
