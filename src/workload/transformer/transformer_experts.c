/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_experts.h"

#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_routes.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

/** HBM passes over the rows: see the model. */
enum {
    SEND = 3,
    RETURN = 5,
    RETURN_NARROW = 3,
    KEPT = 2,
    BACK = 5,
    BACK_NARROW = 2,
    SEND_BACK = 5
};

static int32_t rows_buffer(pod_tf *tf, const char *name, int64_t rows, int64_t width)
{
    return pod_tf_buffer(tf, name, POD_MEMORY_ACTIVATIONS, tf->stage.build.dtype, rows, width);
}

static bool drops(const pod_tf *tf)
{
    return tf->model->capacity_percent > 0;
}

/* ---- matmuls ---- */

/** A tile by the names of MaxText's keys, or by their position where only that fits the matrix. */
static pod_matmul_block tile_of(const pod_tf *tf, pod_layer_role role, pod_grouped_op op, int64_t k,
                                int64_t n)
{
    enum { PAD = 128 };
    const pod_expert_tile *tile =
        &tf->stage.request->settings.expert_tile[role == POD_ROLE_EXPERTS_DOWN][op];
    const bool mlp_first = (role == POD_ROLE_EXPERTS_DOWN) != (op == POD_GROUPED_ROWS);
    const int64_t by_name[2] = {mlp_first ? tile->mlp : tile->embed,
                                mlp_first ? tile->embed : tile->mlp};
    const bool fits = by_name[0] < k + PAD && by_name[1] < n + PAD;
    return (pod_matmul_block){
        .m = tile->rows, .k = fits ? by_name[0] : tile->embed, .n = fits ? by_name[1] : tile->mlp};
}

void pod_tf_experts_product(pod_tf *tf, const char *name, pod_layer_role role, pod_grouped_op op,
                            int64_t experts, const int64_t size[3],
                            const int32_t touch[POD_OP_TOUCHES_MAX])
{
    const pod_chip_spec *chip = tf->stage.request->chip;
    const pod_grouped_args args = {.op = op,
                                   .groups = experts,
                                   .m = size[0],
                                   .k = size[1],
                                   .n = size[2],
                                   .dtype = tf->stage.build.compute,
                                   .megablox = tf->stage.request->settings.megablox,
                                   .split_groups = tf->stage.request->mode > POD_STEP_FORWARD,
                                   .cores = chip != NULL ? chip->cores : 0,
                                   .tile = tile_of(tf, role, op, size[1], size[2])};
    pod_tf_grouped(tf, name, &args, touch);
}

/** The matmul of one weight with the rows of all experts. @param m  its row of the table */
static void experts_matmul(pod_tf *tf, const char *name, const pod_layer *layer,
                           const pod_layer_matmul *m, pod_grouped_op op,
                           const int32_t touch[POD_OP_TOUCHES_MAX])
{
    const int64_t experts = layer->experts / tf->expert;
    const int64_t rows = pod_tf_expert_rows(tf, layer);
    const int64_t k = pod_layer_matmul_k(m, tf->tensor);
    const int64_t n = pod_layer_matmul_n(m, tf->tensor);
    if (drops(tf)) {
        const int64_t each = (rows + experts - 1) / experts;
        const int64_t sizes[3][3] = {
            {each, k,    n},
            {each, n,    k},
            {k,    each, n}
        };
        pod_tf_matmul(tf, name, sizes[op], experts, touch);
        return;
    }
    const bool back = op == POD_GROUPED_ROWS;
    pod_tf_experts_product(tf, name, m->role, op, experts,
                           (const int64_t[3]){rows, back ? n : k, back ? k : n}, touch);
}

/* ---- rows ---- */

static void rows_move(pod_tf *tf, const char *name, const pod_layer *layer, int64_t passes,
                      int32_t from, int32_t to)
{
    const int64_t elements = pod_tf_expert_rows(tf, layer) * layer->expert_d_model;
    pod_tf_vector(tf, name, (double)elements, passes * elements * BYTES,
                  TOUCH(from, to, NONE, NONE));
}

static void rows_exchange(pod_tf *tf, const char *name, const pod_layer *layer, int32_t from,
                          int32_t to)
{
    const int64_t elements = pod_tf_expert_rows(tf, layer) * layer->expert_d_model;
    const int32_t op = pod_tf_collective(tf, POD_ALL_TO_ALL, name, &tf->layout->expert, elements,
                                         POD_DTYPE_BF16, NONE, TOUCH(from, to, NONE, NONE));
    pod_tf_routes_exchange(tf, op, from, to);
    pod_tf_wait(tf, op);
}

/** Tokens to their experts, or the derivatives of what came back: R rows from T tokens. */
static int32_t rows_send(pod_tf *tf, const char *const names[2], const pod_layer *layer,
                         int64_t passes, int32_t x, bool results)
{
    const int64_t d = layer->expert_d_model;
    const int64_t rows = pod_tf_expert_rows(tf, layer);
    const int32_t sent = rows_buffer(tf, "rows", rows, d);
    if (drops(tf)) {
        pod_tf_matmul(tf, names[0], (const int64_t[3]){rows / tf->sequences, tf->seq, d},
                      tf->sequences, TOUCH(x, sent, NONE, NONE));
    } else {
        rows_move(tf, names[0], layer, passes, x, sent);
    }
    if (results) {
        pod_tf_routes_send_back(tf, layer, x, sent);
    } else {
        pod_tf_routes_send(tf, layer, x, sent);
    }
    if (tf->expert == 1) {
        return sent;
    }
    const int32_t here = rows_buffer(tf, "rows", rows, d);
    rows_exchange(tf, names[1], layer, sent, here);
    return here;
}

/** And back: T tokens from R rows. */
static void rows_return(pod_tf *tf, const char *const names[2], const pod_layer *layer,
                        int64_t passes, const int32_t from_to[2], bool results)
{
    const int64_t d = layer->expert_d_model;
    const int64_t rows = pod_tf_expert_rows(tf, layer);
    if (tf->expert > 1) {
        rows_exchange(tf, names[1], layer, from_to[0], NONE);
    }
    if (drops(tf)) {
        pod_tf_matmul(tf, names[0], (const int64_t[3]){tf->seq, rows / tf->sequences, d},
                      tf->sequences, TOUCH(from_to[0], from_to[1], NONE, NONE));
    } else {
        rows_move(tf, names[0], layer, passes, from_to[0], from_to[1]);
    }
    if (results) {
        pod_tf_routes_return(tf, layer, from_to[0], from_to[1]);
    } else {
        pod_tf_routes_return_back(tf, layer, from_to[0], from_to[1]);
    }
}

/* ---- routing ---- */

/** R scalars gathered or scattered one by one. */
static void scalars(pod_tf *tf, const char *name, const pod_layer *layer)
{
    const pod_chip_spec *chip = tf->stage.request->chip;
    if (tf->stage.request->settings.real_routing && !drops(tf) && chip != NULL) {
        const double rows = (double)pod_tf_expert_rows(tf, layer);
        pod_tf_delay(tf, name, pod_time_from_s(rows * chip->scalar_gather_s / chip->devices));
    }
}

static void route(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t weights, bool again)
{
    enum { PASSES = 3, WIDE = 4 };
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_ROUTER);
    const int64_t choices = tf->tokens * m->n;
    pod_tf_matmul_of(tf, POD_DTYPE_F32, "fwd.matmul.router",
                     (const int64_t[3]){tf->tokens, m->k, m->n}, 1, TOUCH(xn, weights, NONE, NONE));
    pod_tf_routes_logits(tf, layer, xn, weights);
    if (!drops(tf)) {
        pod_tf_vector(tf, "fwd.route", (double)choices, PASSES * choices * WIDE,
                      TOUCH(NONE, NONE, NONE, NONE));
    }
    pod_tf_routes_choose(tf, layer, again);
    scalars(tf, "fwd.route.scalars", layer);
}

/* ---- forward ---- */

static const pod_layer_part ups[2] = {POD_PART_EXPERTS_GATE, POD_PART_EXPERTS_IN};

/** The matmul of a part, or NULL: gate of MLPs of two matrices. */
static const pod_layer_matmul *matmul_of(const pod_layer *layer, pod_layer_part part)
{
    for (int i = 0; i < layer->nmatmuls; i++) {
        if (layer->matmul[i].part == part) {
            return &layer->matmul[i];
        }
    }
    return NULL;
}

void pod_tf_experts_hidden(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t wi, bool again)
{
    static const char *const names[2][2] = {
        {"fwd.send.rows",       "fwd.exchange.rows"},
        {"bwd.send.rows.again", "fwd.exchange.rows"}
    };
    route(tf, layer, xn, pod_tf_bundle_of(tf, tf->layer, POD_PART_IN)->gathered, again);
    const int32_t rows = rows_send(tf, names[again], layer, SEND, xn, false);
    pod_tf_quantize(tf, pod_tf_expert_rows(tf, layer) * layer->expert_d_model, rows);
    for (int i = 0; i < 2; i++) {
        const pod_layer_matmul *m = matmul_of(layer, ups[i]);
        if (m != NULL) {
            const int32_t weights = pod_tf_use_part(tf, ups[i]);
            experts_matmul(tf, "fwd.matmul.experts.in", layer, m, POD_GROUPED_FORWARD,
                           TOUCH(rows, weights, wi, NONE));
            pod_tf_routes_product(tf, layer, m, weights, rows);
        }
    }
}

void pod_tf_experts_output(pod_tf *tf, const pod_layer *layer, int32_t h, int32_t y, bool again)
{
    static const char *const names[2][2] = {
        {"fwd.return.rows",       "fwd.exchange.results"},
        {"bwd.return.rows.again", "fwd.exchange.results"}
    };
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_EXPERTS_DOWN);
    const int64_t passes = tf->stage.request->settings.narrow_weight_sum ? RETURN_NARROW : RETURN;
    const int32_t out = pod_tf_use_part(tf, POD_PART_EXPERTS_OUT);
    const int32_t rows = rows_buffer(tf, "rows", pod_tf_expert_rows(tf, layer), m->n);
    pod_tf_quantize(tf, pod_tf_expert_rows(tf, layer) * pod_layer_matmul_k(m, tf->tensor), h);
    experts_matmul(tf, "fwd.matmul.experts.out", layer, m, POD_GROUPED_FORWARD,
                   TOUCH(h, out, rows, NONE));
    pod_tf_routes_product(tf, layer, m, out, rows);
    if (!again && !drops(tf)) {
        pod_tf_keep(tf, POD_TF_SLOT_MLPWO, 1U << POD_KEEP_MLPWO, rows);
    }
    rows_return(tf, names[again], layer, passes, (const int32_t[2]){rows, y}, true);
}

void pod_tf_experts_kept(pod_tf *tf, const pod_layer *layer)
{
    rows_move(tf, "bwd.return.rows.again", layer, KEPT, pod_tf_kept(tf, POD_TF_SLOT_MLPWO), NONE);
}

/* ---- backward ---- */

/** Derivatives of a weight. */
static void weight_backward(pod_tf *tf, const pod_layer *layer, const char *name,
                            const pod_layer_matmul *m, const int32_t in_out[2], int32_t rows)
{
    pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, (int)m->part);
    const int32_t partial = pod_tf_gradient_buffer(tf, bundle);
    experts_matmul(tf, name, layer, m, POD_GROUPED_WEIGHTS,
                   TOUCH(in_out[0], in_out[1], partial, NONE));
    pod_tf_routes_by_weights(tf, layer, m, rows, partial);
    pod_tf_gradient(tf, bundle, partial);
}

/** Derivatives by shares are products of results with what is summed over tensor: so are they, beside the experts'
 *  matmuls. @return the sum, under way; NONE: there is none */
static int32_t shares_sum(pod_tf *tf, const pod_layer *layer)
{
    const int32_t op = pod_tf_collective(tf, POD_ALL_REDUCE, "bwd.sum.shares", &tf->layout->tensor,
                                         tf->tokens * layer->top_k, POD_DTYPE_F32, NONE,
                                         TOUCH(NONE, NONE, NONE, NONE));
    pod_tf_routes_shares_sum(tf, layer, op);
    return op;
}

int32_t pod_tf_experts_out_backward(pod_tf *tf, const pod_layer *layer, const pod_tf_mlp *mlp,
                                    int32_t dh, int32_t dy)
{
    static const char *const names[2] = {"bwd.send.results", "bwd.exchange.results"};
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_EXPERTS_DOWN);
    const int64_t passes = tf->stage.request->settings.narrow_weight_sum ? BACK_NARROW : BACK;
    const int64_t elements = pod_tf_expert_rows(tf, layer) * m->n;
    const int32_t weights = mlp->out_used
                                ? pod_tf_bundle_of(tf, tf->layer, POD_PART_EXPERTS_OUT)->gathered
                                : pod_tf_use_part(tf, POD_PART_EXPERTS_OUT);
    const int32_t rows = rows_send(tf, names, layer, passes, dy, true);
    const int32_t sum = shares_sum(tf, layer);
    scalars(tf, "bwd.route.scalars", layer);
    pod_tf_quantize(tf, 2 * elements, rows);
    experts_matmul(tf, "bwd.matmul.experts.out", layer, m, POD_GROUPED_ROWS,
                   TOUCH(rows, weights, dh, NONE));
    pod_tf_routes_by_input(tf, layer, m, weights, rows);
    pod_tf_quantize(tf, pod_tf_expert_rows(tf, layer) * pod_layer_matmul_k(m, tf->tensor), mlp->wi);
    weight_backward(tf, layer, "bwd.matmul.experts.dout", m, (const int32_t[2]){mlp->wi, rows},
                    rows);
    return sum;
}

void pod_tf_experts_in_backward(pod_tf *tf, const pod_layer *layer, const pod_tf_mlp *mlp,
                                int32_t xn, int32_t dwi, int32_t dxn)
{
    static const char *const send_names[2] = {"bwd.send.rows", "bwd.exchange.rows"};
    static const char *const return_names[2] = {"bwd.return.rows", "bwd.exchange.derivatives"};
    const int64_t d = layer->expert_d_model;
    const int64_t here = pod_tf_expert_rows(tf, layer);
    const int32_t rows = mlp->in_used ? rows_buffer(tf, "rows", here, d)
                                      : rows_send(tf, send_names, layer, SEND, xn, false);
    const int32_t drows = rows_buffer(tf, "rows", here, d);
    if (mlp->in_used) {
        pod_tf_number_set(tf, rows, tf->rows.sent);
    }
    for (int i = 0; i < 2; i++) {
        const pod_layer_matmul *m = matmul_of(layer, ups[i]);
        if (m != NULL) {
            const int32_t weights = mlp->in_used
                                        ? pod_tf_bundle_of(tf, tf->layer, (int)ups[i])->gathered
                                        : pod_tf_use_part(tf, ups[i]);
            pod_tf_quantize(tf, 2 * here * pod_layer_matmul_n(m, tf->tensor), dwi);
            experts_matmul(tf, "bwd.matmul.experts.in", layer, m, POD_GROUPED_ROWS,
                           TOUCH(dwi, weights, drows, NONE));
            pod_tf_routes_by_input(tf, layer, m, weights, drows);
        }
    }
    pod_tf_quantize(tf, here * d, rows);
    for (int i = 0; i < 2; i++) {
        const pod_layer_matmul *m = matmul_of(layer, ups[i]);
        if (m != NULL) {
            weight_backward(tf, layer, "bwd.matmul.experts.din", m, (const int32_t[2]){rows, dwi},
                            rows);
        }
    }
    rows_return(tf, return_names, layer, SEND_BACK, (const int32_t[2]){drows, dxn}, false);
}
