/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_update.h"

#include "workload/transformer/transformer_muon.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_stages.h"
#include "workload/transformer/transformer_update_numbers.h"

enum { GRADIENT_BYTES = 2, NEWTON_STEPS = 5 };

/** Elementwise work of a pass over a chip's shard of a bundle. @param bytes  of each weight */
static void update_pass(pod_tf *tf, const char *name, const pod_tf_bundle *bundle, int64_t bytes)
{
    tf->layer = bundle->layer;
    pod_tf_vector(tf, name, (double)bundle->shard, bundle->shard * bytes,
                  TOUCH(bundle->gradient, bundle->weights, bundle->moments, NONE));
}

/** What a pass over each bundle moves, of one optimizer; 0 bytes: none. */
typedef int64_t pass_bytes(pod_optimizer optimizer, const pod_tf_states *states);

static int64_t norm_bytes(pod_optimizer optimizer, const pod_tf_states *states)
{
    switch (optimizer) {
    case POD_OPTIMIZER_ADAM:
    case POD_OPTIMIZER_LAMB:
        return GRADIENT_BYTES;
    case POD_OPTIMIZER_LARS:
        return states->weight + GRADIENT_BYTES;
    case POD_OPTIMIZER_MUON:
        return 2 * states->mu + GRADIENT_BYTES + BYTES;
    case POD_OPTIMIZER_SGD:
    case POD_OPTIMIZER_MOMENTUM:
    case POD_OPTIMIZERS:
        break;
    }
    return 0;
}

static int64_t moments_bytes(pod_optimizer optimizer, const pod_tf_states *states)
{
    return optimizer == POD_OPTIMIZER_LAMB
               ? states->weight + 2 * (states->mu + states->nu) + GRADIENT_BYTES
               : 0;
}

static int64_t update_bytes(pod_optimizer optimizer, const pod_tf_states *states)
{
    switch (optimizer) {
    case POD_OPTIMIZER_SGD:
        return 2 * BYTES + GRADIENT_BYTES;
    case POD_OPTIMIZER_LAMB:
        return 2 * states->weight + states->mu + states->nu;
    case POD_OPTIMIZER_MUON:
        return 2 * states->weight + BYTES;
    case POD_OPTIMIZER_ADAM:
    case POD_OPTIMIZER_MOMENTUM:
    case POD_OPTIMIZER_LARS:
    case POD_OPTIMIZERS:
        break;
    }
    return 2 * (states->weight + states->mu + states->nu) + GRADIENT_BYTES;
}

/** What the pass computes. */
static void pass_compute(pod_tf *tf, pass_bytes *bytes_of, pod_tf_bundle *bundle)
{
    const bool lamb = tf->stage.request->optimizer == POD_OPTIMIZER_LAMB;
    if (bytes_of == update_bytes) {
        pod_tf_update_numbers_weights(tf, bundle);
    } else if (bytes_of == moments_bytes) {
        pod_tf_update_numbers_moments(tf, bundle);
        pod_tf_update_numbers_norms(tf, bundle);
    } else if (!lamb) {
        pod_tf_update_numbers_norms(tf, bundle);
    }
}

/** A pass over all bundles, from the last. @return whether there was one */
static bool pass_all(pod_tf *tf, const char *name, pass_bytes *bytes_of, bool first)
{
    bool done = false;
    for (int32_t i = tf->nbundles - 1; i >= 0; i--) {
        pod_tf_bundle *bundle = &tf->bundles[i];
        const pod_tf_states states = pod_tf_states_of(tf, bundle);
        const int64_t bytes = bytes_of(pod_tf_optimizer_of(tf, bundle), &states);
        if (bundle->there && bytes > 0) {
            pod_tf_wait(tf, first ? bundle->gradient_op : NONE);
            update_pass(tf, name, bundle, bytes);
            if (first) {
                pod_tf_stages_end(tf, bundle);
            }
            pass_compute(tf, bytes_of, bundle);
            done = true;
        }
    }
    return done;
}

/** Chips that share a layer's weights. */
static pod_axis_list sharers(const pod_tf *tf, const pod_axis_list *cut)
{
    return pod_axis_list_join(*cut, &tf->layout->tensor);
}

/** Pairs of sums: of each bundle, of muon of each matrix. */
static int64_t norms_count(const pod_tf *tf)
{
    const bool matrices = tf->stage.request->optimizer == POD_OPTIMIZER_MUON;
    int64_t count = 0;
    for (int32_t i = 0; i < tf->nbundles; i++) {
        const pod_tf_bundle *bundle = &tf->bundles[i];
        count += !bundle->there ? 0 : matrices ? pod_tf_muon_matrices(tf, bundle) : 1;
    }
    return count;
}

/** Norms of all layers, added up. */
static void norms_sum(pod_tf *tf)
{
    pod_axis_list axes = sharers(tf, &tf->bundles[0].cut);
    tf->layer = -1;
    const int32_t op = pod_tf_collective(tf, POD_ALL_REDUCE, "update.sum.norms", &axes,
                                         POD_TF_NORMS * norms_count(tf), POD_DTYPE_F32, NONE,
                                         TOUCH(NONE, NONE, NONE, NONE));
    pod_tf_update_numbers_sum(tf, op);
    pod_tf_wait(tf, op);
}

/* ---- Newton and Schulz ---- */

/** Matrices of one shape in a bundle, and the op that the next product of theirs waits for. */
typedef struct newton {
    int64_t count;
    int64_t rows;    /**< the shorter side */
    int64_t columns; /**< of a chip */
    int32_t pieces;
    pod_axis_list axes;
    int32_t op;
    pod_tf_newton numbers;
    int64_t begins; /**< the first of its sums of squares; NONE: it has begun */
} newton;

static newton newton_of(const pod_tf *tf, const pod_tf_bundle *bundle, const pod_layer *layer,
                        const pod_layer_matmul *m)
{
    const bool cut = m->k_units > 0 || m->n_units > 0;
    const int64_t experts = pod_layer_matmul_of_experts(m) ? layer->experts / tf->expert : 1;
    newton n = {.count = m->count * experts,
                .rows = pod_min_i64(m->k, m->n),
                .axes = cut ? sharers(tf, &bundle->cut) : bundle->cut,
                .op = NONE};
    n.pieces = pod_work_layout_pieces(tf->layout, &n.axes);
    n.columns = pod_ceil_div(pod_max_i64(m->k, m->n), n.pieces);
    return n;
}

/** One of the three products of a step, and what its chips exchange of the result.
 *  @param x  numbers before the step and after it */
static void newton_product(pod_tf *tf, const pod_tf_bundle *bundle, newton *n, int which,
                           const int32_t x[2])
{
    static const char *const names[] = {"update.matmul.gram", "update.matmul.square",
                                        "update.matmul.step"};
    const int64_t own = pod_ceil_div(n->rows, n->pieces);
    const int64_t sizes[3][3] = {
        {n->rows, n->columns, n->rows   },
        {own,     n->rows,    n->rows   },
        {n->rows, n->rows,    n->columns}
    };
    const int64_t elements = n->count * n->rows * n->rows;
    const int32_t *touch = TOUCH(bundle->moments, NONE, NONE, NONE);
    pod_tf_wait(tf, n->op);
    pod_tf_matmul_of(tf, POD_DTYPE_BF16, names[which], sizes[which], n->count, touch);
    if (n->begins != NONE) {
        pod_tf_newton_begin(tf, bundle, &n->numbers, n->begins, x[0]);
        n->begins = NONE;
    }
    pod_tf_newton_product(tf, &n->numbers, which, x);
    n->op = NONE;
    if (which < 2) {
        n->op = pod_tf_collective(tf, which == 0 ? POD_ALL_REDUCE : POD_ALL_GATHER,
                                  which == 0 ? "update.sum.gram" : "update.gather.square", &n->axes,
                                  elements, POD_DTYPE_BF16, NONE, touch);
        pod_tf_newton_exchange(tf, &n->numbers, which, n->op);
    }
}

static void newton_bundle(pod_tf *tf, pod_tf_bundle *bundle, pod_layer_part part)
{
    enum { PRODUCTS = 3 };
    const pod_layer layer = pod_model_layer(tf->model, bundle->layer);
    newton each[POD_LAYER_MATMULS_MAX];
    int count = 0;
    pod_tf_slices slices[POD_LAYER_MATMULS_MAX];
    (void)pod_tf_slices_of(tf, bundle, slices);
    int64_t row = bundle->norm_row;
    for (int i = 0; i < layer.nmatmuls; i++) {
        if (layer.matmul[i].part == part) {
            newton *n = &each[count];
            *n = newton_of(tf, bundle, &layer, &layer.matmul[i]);
            n->numbers = (pod_tf_newton){
                .slices = slices[count], .axes = n->axes, .pieces = n->pieces, .made = NONE};
            n->begins = row;
            row += POD_TF_NORMS * n->count;
            count++;
        }
    }
    tf->layer = bundle->layer;
    tf->newton = 0;
    int32_t x[2] = {pod_tf_newton_pieces(tf, bundle), NONE};
    for (int product = 0; product < NEWTON_STEPS * PRODUCTS; product++) {
        if (product % PRODUCTS == PRODUCTS - 1) {
            tf->newton++;
            x[1] = pod_tf_newton_pieces(tf, bundle);
        }
        for (int i = 0; i < count; i++) {
            newton_product(tf, bundle, &each[i], product % PRODUCTS, x);
        }
        x[0] = x[1] != NONE ? x[1] : x[0];
        x[1] = NONE;
    }
    bundle->direction = x[0];
}

static void newton_all(pod_tf *tf)
{
    for (int32_t i = tf->nbundles - 3; i >= 0; i--) {
        if (tf->bundles[i].there) {
            newton_bundle(tf, &tf->bundles[i], (pod_layer_part)(i % POD_LAYER_PARTS));
        }
    }
}

void pod_tf_update(pod_tf *tf)
{
    const pod_optimizer optimizer = tf->stage.request->optimizer;
    pod_tf_gradients_finish(tf);
    pod_tf_update_numbers_begin(tf, norms_count(tf));
    const bool begun = pass_all(tf, "update.norm", norm_bytes, true);
    const bool moments = pass_all(tf, "update.moments", moments_bytes, !begun);
    if (pod_optimizer_has_norms(optimizer)) {
        norms_sum(tf);
    }
    if (optimizer == POD_OPTIMIZER_MUON) {
        newton_all(tf);
    }
    (void)pass_all(tf, "update", update_bytes, !begun && !moments);
    tf->layer = -1;
}
