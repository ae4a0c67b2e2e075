/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_routes.h"

#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

enum { NOTHING = POD_OP_NONE };

static bool has_numbers(const pod_tf *tf, const pod_layer *layer)
{
    return pod_tf_numbers(tf) && layer->experts > 0;
}

static int64_t rows_of_all(const pod_tf *tf, const pod_layer *layer)
{
    return pod_tf_expert_rows(tf, layer);
}

static pod_number route_number(const pod_tf *tf, const pod_layer *layer,
                               pod_number_function function)
{
    pod_number number = pod_tf_number_begin(function);
    number.experts = layer->experts;
    number.room = rows_of_all(tf, layer) / layer->experts;
    number.sequences = tf->model->capacity_percent > 0 ? tf->sequences : 0; /* room of each */
    return number;
}

/* ---- routing ---- */

void pod_tf_routes_logits(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t weights)
{
    if (has_numbers(tf, layer)) {
        const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_ROUTER);
        pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        tf->rows.logits =
            pod_tf_number_new(tf, "logits", POD_DTYPE_F32, tf->tokens, layer->experts);
        product.in[0] = pod_tf_number_whole(tf, pod_tf_number(tf, xn));
        product.in[1] = pod_tf_number_matrix(tf, pod_tf_number(tf, weights),
                                             pod_tf_weights_first(tf, layer, m), m->k, m->n);
        product.out[0] = pod_tf_number_whole(tf, tf->rows.logits);
        pod_tf_number_compute(tf, &product);
    }
}

void pod_tf_routes_choose(pod_tf *tf, const pod_layer *layer, bool again)
{
    if (has_numbers(tf, layer)) {
        pod_number route = route_number(tf, layer, POD_NUMBER_ROUTE);
        tf->rows.row = pod_tf_number_new(tf, "row", POD_DTYPE_F32, tf->tokens, layer->top_k);
        tf->rows.share = pod_tf_number_new(tf, "share", POD_DTYPE_F32, tf->tokens, layer->top_k);
        route.in[0] = pod_tf_number_whole(tf, tf->rows.logits);
        route.out[0] = pod_tf_number_whole(tf, tf->rows.row);
        route.out[1] = pod_tf_number_whole(tf, tf->rows.share);
        if (!again) {
            const int32_t chosen =
                pod_tf_number_new(tf, "experts", POD_DTYPE_F32, tf->tokens, layer->top_k);
            route.out[3] = pod_tf_number_whole(tf, chosen);
            pod_tf_place(tf, POD_PLACE_CHOICES, chosen,
                         pod_tf_bundle_of(tf, tf->layer, POD_PART_IN), NULL);
        }
        pod_tf_number_compute(tf, &route);
    }
}

/** Derivatives by logits. @param dshare  by shares */
static int32_t logits_back(pod_tf *tf, const pod_layer *layer, int32_t dshare)
{
    pod_number route = route_number(tf, layer, POD_NUMBER_ROUTE_BACK);
    const int32_t dlogits =
        pod_tf_number_new(tf, "logits", POD_DTYPE_F32, tf->tokens, layer->experts);
    route.in[0] = pod_tf_number_whole(tf, tf->rows.row);
    route.in[1] = pod_tf_number_whole(tf, tf->rows.share);
    route.in[2] = pod_tf_number_whole(tf, dshare);
    route.out[0] = pod_tf_number_whole(tf, dlogits);
    pod_tf_number_compute(tf, &route);
    return dlogits;
}

void pod_tf_routes_router_back(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t weights,
                               int32_t dxn)
{
    if (!has_numbers(tf, layer)) {
        return;
    }
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_ROUTER);
    pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
    tf->rows.xn = pod_tf_number(tf, xn);
    product.in[0] = pod_tf_number_whole(tf, logits_back(tf, layer, tf->rows.dshare));
    product.in[1] = pod_tf_number_matrix(tf, pod_tf_number(tf, weights),
                                         pod_tf_weights_first(tf, layer, m), m->k, m->n);
    product.transpose_b = true;
    product.accumulate = true;
    product.untimed = true;
    product.out[0] = pod_tf_number_whole(tf, pod_tf_number(tf, dxn));
    pod_tf_number_compute(tf, &product);
}

void pod_tf_routes_router_gradient(pod_tf *tf, const pod_tf_bundle *bundle, int32_t partial)
{
    const pod_layer layer = pod_model_layer(tf->model, tf->layer);
    if (!has_numbers(tf, &layer) || bundle != pod_tf_bundle_of(tf, tf->layer, POD_PART_IN)) {
        return;
    }
    const pod_layer_matmul *m = pod_layer_find(&layer, POD_ROLE_ROUTER);
    const int32_t dlogits = logits_back(tf, &layer, tf->rows.dshare_sum);
    pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
    product.in[0] = pod_tf_number_whole(tf, tf->rows.xn);
    product.transpose_a = true;
    product.in[1] = pod_tf_number_whole(tf, dlogits);
    product.untimed = true;
    product.out[0] = pod_tf_number_matrix(tf, pod_tf_number(tf, partial),
                                          pod_tf_weights_first(tf, &layer, m), m->k, m->n);
    pod_tf_number_compute(tf, &product);
}

/* ---- rows ---- */

void pod_tf_routes_send(pod_tf *tf, const pod_layer *layer, int32_t x, int32_t sent)
{
    if (has_numbers(tf, layer)) {
        pod_number send = route_number(tf, layer, POD_NUMBER_SEND);
        send.in[0] = pod_tf_number_whole(tf, tf->rows.row);
        send.in[1] = pod_tf_number_whole(tf, pod_tf_number(tf, x));
        send.out[0] = pod_tf_number_whole(tf, pod_tf_number(tf, sent));
        pod_tf_number_compute(tf, &send);
    }
}

void pod_tf_routes_send_back(pod_tf *tf, const pod_layer *layer, int32_t dy, int32_t sent)
{
    if (has_numbers(tf, layer)) {
        pod_number send = route_number(tf, layer, POD_NUMBER_RETURN_BACK);
        tf->rows.dshare = pod_tf_number_new(tf, "share", POD_DTYPE_F32, tf->tokens, layer->top_k);
        send.in[0] = pod_tf_number_whole(tf, tf->rows.row);
        send.in[1] = pod_tf_number_whole(tf, tf->rows.back);
        send.in[2] = pod_tf_number_whole(tf, tf->rows.share);
        send.in[3] = pod_tf_number_whole(tf, pod_tf_number(tf, dy));
        send.out[0] = pod_tf_number_whole(tf, pod_tf_number(tf, sent));
        send.out[1] = pod_tf_number_whole(tf, tf->rows.dshare);
        pod_tf_number_compute(tf, &send);
    }
}

void pod_tf_routes_shares_sum(pod_tf *tf, const pod_layer *layer, int32_t op)
{
    if (has_numbers(tf, layer)) {
        tf->rows.dshare_sum = tf->rows.dshare;
        if (op != NOTHING) {
            tf->rows.dshare_sum =
                pod_tf_number_new(tf, "share", POD_DTYPE_F32, tf->tokens, layer->top_k);
            pod_tf_number_move(tf, op, tf->rows.dshare, tf->rows.dshare_sum, (const int[2]){0, 0});
        }
    }
}

void pod_tf_routes_exchange(pod_tf *tf, int32_t op, int32_t from, int32_t to)
{
    if (pod_tf_numbers(tf)) {
        const int32_t before = pod_tf_number(tf, from);
        const int32_t after = to != NOTHING ? pod_tf_number(tf, to) : pod_tf_number_next(tf, from);
        pod_tf_number_move(tf, op, before, after, (const int[2]){0, 0});
    }
}

static void rows_add(pod_tf *tf, const pod_layer *layer, const int32_t row_rows_share[3], int32_t y)
{
    pod_number sum = route_number(tf, layer, POD_NUMBER_RETURN);
    for (int i = 0; i < 3; i++) {
        sum.in[i] = pod_tf_number_whole(tf, row_rows_share[i]);
    }
    sum.out[0] = pod_tf_number_whole(tf, pod_tf_number(tf, y));
    pod_tf_number_compute(tf, &sum);
}

void pod_tf_routes_return(pod_tf *tf, const pod_layer *layer, int32_t rows, int32_t y)
{
    if (has_numbers(tf, layer)) {
        tf->rows.back = pod_tf_number(tf, rows);
        rows_add(tf, layer, (const int32_t[3]){tf->rows.row, tf->rows.back, tf->rows.share}, y);
    }
}

void pod_tf_routes_return_back(pod_tf *tf, const pod_layer *layer, int32_t rows, int32_t dxn)
{
    if (has_numbers(tf, layer)) {
        rows_add(tf, layer, (const int32_t[3]){tf->rows.row, pod_tf_number(tf, rows), NOTHING},
                 dxn);
    }
}

/* ---- products ---- */

/** Of this chip: tensor cuts experts along moe_d_ff. */
static int64_t k_of(const pod_tf *tf, const pod_layer_matmul *m)
{
    return pod_layer_matmul_k(m, tf->tensor);
}

static int64_t n_of(const pod_tf *tf, const pod_layer_matmul *m)
{
    return pod_layer_matmul_n(m, tf->tensor);
}

static int64_t width_of(const pod_tf *tf, const pod_layer *layer)
{
    return layer->moe_d_ff / tf->tensor;
}

/** One expert's rows from one chip. */
typedef struct group {
    int64_t row;
    int64_t rows;
    int64_t first; /**< element of its weights */
    bool again;    /**< rows of other chips for this expert came before */
} group;

static group group_at(const pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                      int64_t i)
{
    const int64_t experts = layer->experts / tf->expert;
    const int64_t room = rows_of_all(tf, layer) / layer->experts;
    return (group){.row = i * room,
                   .rows = room,
                   .first = i % experts * k_of(tf, m) * n_of(tf, m),
                   .again = i >= experts};
}

/** First column of a matmul's results: gate comes before up. */
static int64_t column_of(const pod_tf *tf, const pod_layer_matmul *m)
{
    return tf->model->mlp_matrices > 2 && m->part == POD_PART_EXPERTS_IN ? n_of(tf, m) : 0;
}

static bool is_down(const pod_layer_matmul *m)
{
    return m->role == POD_ROLE_EXPERTS_DOWN;
}

static int32_t hidden_new(pod_tf *tf, const pod_layer *layer, int64_t matrices)
{
    return pod_tf_number_new(tf, "hidden", tf->stage.build.dtype, rows_of_all(tf, layer),
                             matrices * width_of(tf, layer));
}

void pod_tf_routes_product(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                           int32_t weights, int32_t rows)
{
    if (!has_numbers(tf, layer)) {
        return;
    }
    const int64_t column = column_of(tf, m);
    if (!is_down(m) && column == 0) {
        tf->rows.sent = pod_tf_number(tf, rows);
        tf->rows.wi = hidden_new(tf, layer, tf->model->mlp_matrices - 1);
    }
    const int32_t in = is_down(m) ? tf->rows.h : tf->rows.sent;
    const int32_t out = is_down(m) ? pod_tf_number(tf, rows) : tf->rows.wi;
    for (int64_t i = 0; i < layer->experts; i++) {
        const group g = group_at(tf, layer, m, i);
        pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        product.in[0] = pod_tf_number_part(tf, in, g.row, g.rows, 0, k_of(tf, m));
        product.in[1] =
            pod_tf_number_matrix(tf, pod_tf_number(tf, weights), g.first, k_of(tf, m), n_of(tf, m));
        product.out[0] = pod_tf_number_part(tf, out, g.row, g.rows, column, n_of(tf, m));
        pod_tf_number_compute(tf, &product);
    }
}

void pod_tf_routes_by_input(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                            int32_t weights, int32_t rows)
{
    if (!has_numbers(tf, layer)) {
        return;
    }
    const int64_t column = column_of(tf, m);
    if (is_down(m)) {
        tf->rows.dh = hidden_new(tf, layer, 1);
    }
    const int32_t in = is_down(m) ? pod_tf_number(tf, rows) : tf->rows.dwi;
    const int32_t out = is_down(m) ? tf->rows.dh : pod_tf_number(tf, rows);
    for (int64_t i = 0; i < layer->experts; i++) {
        const group g = group_at(tf, layer, m, i);
        pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        product.in[0] = pod_tf_number_part(tf, in, g.row, g.rows, column, n_of(tf, m));
        product.in[1] =
            pod_tf_number_matrix(tf, pod_tf_number(tf, weights), g.first, k_of(tf, m), n_of(tf, m));
        product.transpose_b = true;
        product.accumulate = column > 0;
        product.out[0] = pod_tf_number_part(tf, out, g.row, g.rows, 0, k_of(tf, m));
        pod_tf_number_compute(tf, &product);
    }
}

/** @param a_b  what the weights multiplied, and the derivatives by results */
static void by_weights(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                       const int32_t a_b[2], int32_t partial)
{
    const int64_t experts = layer->experts / tf->expert;
    const int32_t sum =
        pod_tf_number_new(tf, "gradient", POD_DTYPE_F32, experts * k_of(tf, m) * n_of(tf, m), 1);
    for (int64_t i = 0; i < layer->experts; i++) {
        const group g = group_at(tf, layer, m, i);
        pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        product.in[0] = pod_tf_number_part(tf, a_b[0], g.row, g.rows, 0, k_of(tf, m));
        product.transpose_a = true;
        product.in[1] =
            pod_tf_number_part(tf, a_b[1], g.row, g.rows, column_of(tf, m), n_of(tf, m));
        product.accumulate = g.again;
        product.out[0] = pod_tf_number_matrix(tf, sum, g.first, k_of(tf, m), n_of(tf, m));
        pod_tf_number_compute(tf, &product);
    }
    pod_number rounded = pod_tf_number_begin(POD_NUMBER_COPY);
    rounded.in[0] = pod_tf_number_whole(tf, sum);
    rounded.out[0] = pod_tf_number_matrix(tf, pod_tf_number(tf, partial), 0,
                                          experts * k_of(tf, m) * n_of(tf, m), 1);
    pod_tf_number_compute(tf, &rounded);
}

void pod_tf_routes_by_weights(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                              int32_t rows, int32_t partial)
{
    if (!has_numbers(tf, layer)) {
        return;
    }
    if (is_down(m)) {
        pod_tf_routes_function(tf, layer); /* again: only what is before it is kept */
        by_weights(tf, layer, m, (const int32_t[2]){tf->rows.h, pod_tf_number(tf, rows)}, partial);
    } else {
        by_weights(tf, layer, m, (const int32_t[2]){pod_tf_number(tf, rows), tf->rows.dwi},
                   partial);
    }
}

/* ---- the function ---- */

void pod_tf_routes_function(pod_tf *tf, const pod_layer *layer)
{
    if (!has_numbers(tf, layer)) {
        return;
    }
    const bool gated = tf->model->mlp_matrices > 2;
    const int64_t rows = rows_of_all(tf, layer);
    const int64_t f = width_of(tf, layer);
    pod_number function = pod_tf_number_begin(POD_NUMBER_FUNCTION);
    tf->rows.h = hidden_new(tf, layer, 1);
    function.in[0] = pod_tf_number_part(tf, tf->rows.wi, 0, rows, 0, f);
    function.in[1] = gated ? pod_tf_number_part(tf, tf->rows.wi, 0, rows, f, f) : function.in[1];
    function.out[0] = pod_tf_number_whole(tf, tf->rows.h);
    function.activation = pod_tf_number_activation(tf);
    pod_tf_number_compute(tf, &function);
}

void pod_tf_routes_function_back(pod_tf *tf, const pod_layer *layer)
{
    if (!has_numbers(tf, layer)) {
        return;
    }
    const bool gated = tf->model->mlp_matrices > 2;
    const int64_t rows = rows_of_all(tf, layer);
    const int64_t f = width_of(tf, layer);
    pod_number function = pod_tf_number_begin(POD_NUMBER_FUNCTION_BACK);
    tf->rows.dwi = hidden_new(tf, layer, tf->model->mlp_matrices - 1);
    function.in[0] = pod_tf_number_part(tf, tf->rows.wi, 0, rows, 0, f);
    function.in[2] = pod_tf_number_whole(tf, tf->rows.dh);
    function.out[0] = pod_tf_number_part(tf, tf->rows.dwi, 0, rows, 0, f);
    if (gated) {
        function.in[1] = pod_tf_number_part(tf, tf->rows.wi, 0, rows, f, f);
        function.out[1] = pod_tf_number_part(tf, tf->rows.dwi, 0, rows, f, f);
    }
    function.activation = pod_tf_number_activation(tf);
    pod_tf_number_compute(tf, &function);
}
