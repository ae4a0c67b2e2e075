/* SPDX-License-Identifier: Apache-2.0 */
/* The MLP of a layer: dense, or experts (transformer_experts.h) with what all tokens share. Its function moves
 * (elements, 2 bytes each), of T tokens with F columns of hidden width and m matrices:
 *
 *      function     forward m·T·F, m - 1 matrices before it and its result       backward 2·m·T·F
 */
#include "workload/transformer/transformer_mlp.h"

#include "workload/transformer/transformer_experts.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_pieces.h"
#include "workload/transformer/transformer_routes.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

/* ---- forward ---- */

/** A buffer whose numbers are those of the dense part, beside experts' of their own. @param columns  times d_ff */
static int32_t dense_activation(pod_tf *tf, const char *name, const pod_layer *layer, int64_t width,
                                int64_t columns)
{
    const int32_t buffer = pod_tf_activation(tf, name, width);
    if (layer->experts > 0) {
        pod_tf_number_set(tf, buffer,
                          pod_tf_number_new(tf, name, tf->stage.build.dtype, tf->tokens,
                                            columns * layer->d_ff / tf->tensor));
    }
    return buffer;
}

static void function_forward(pod_tf *tf, const char *name, const pod_layer *layer, int32_t wi,
                             int32_t h)
{
    const int64_t elements = tf->tokens * pod_tf_function_width(tf, layer);
    pod_tf_vector(tf, name, (double)elements, tf->model->mlp_matrices * elements * BYTES,
                  TOUCH(wi, h, NONE, NONE));
    if (layer->d_ff > 0) {
        pod_tf_number_function(tf, wi, h);
    }
    pod_tf_routes_function(tf, layer);
}

/** Up to the function. */
static int32_t hidden_forward(pod_tf *tf, const pod_layer *layer, int32_t xn, bool again)
{
    const int64_t d = tf->model->d_model;
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const int32_t wi =
        dense_activation(tf, "hidden", layer, pod_tf_hidden_width(tf, layer), matrices);
    const int32_t weights = pod_tf_use_part(tf, POD_PART_IN);
    const bool gather = tf->rows_cut && tf->model->parallel == 0; /* else attention gathered them */
    if (layer->d_ff > 0) {
        const pod_tf_products products = {
            .pass = "fwd.pass.in",
            .buffer = xn,
            .count = 1,
            .product = {{"fwd.matmul.in",
                         d,
                         layer->d_ff / tf->tensor,
                         matrices,
                         {xn, weights, wi, NONE},
                         pod_tf_factor_forward(tf, TOUCH(xn, weights, wi), 0, 0)}}};
        pod_tf_quantize(tf, tf->tokens * d, xn);
        pod_tf_multiply(tf, &products, gather);
    } else if (gather) {
        (void)pod_tf_gather_rows(tf, "fwd.gather.rows", xn);
    }
    if (layer->experts > 0) {
        pod_tf_experts_hidden(tf, layer, xn, wi, again);
    }
    return wi;
}

/** From what experts give to d_model, in place of a sum over tensor's chips each: linear either way. */
static void widen_forward(pod_tf *tf, const pod_layer *layer, int32_t y)
{
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_WIDEN);
    if (m != NULL) {
        const int32_t weights = pod_tf_use_part(tf, POD_PART_OUT);
        pod_tf_matmul(tf, "fwd.matmul.widen", (const int64_t[3]){tf->tokens, m->k, m->n}, 1,
                      TOUCH(y, weights, NONE, NONE));
    }
}

/** And back, with the derivative by the weights. */
static void widen_backward(pod_tf *tf, const pod_layer *layer, const pod_tf_mlp *mlp, int32_t dy)
{
    const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_WIDEN);
    if (m != NULL) {
        pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, POD_PART_OUT);
        const int32_t weights =
            mlp->out_used ? bundle->gathered : pod_tf_use_part(tf, POD_PART_OUT);
        const int32_t partial = pod_tf_gradient_buffer(tf, bundle);
        pod_tf_matmul(tf, "bwd.matmul.widen", (const int64_t[3]){tf->tokens, m->n, m->k}, 1,
                      TOUCH(dy, weights, NONE, NONE));
        pod_tf_matmul(tf, "bwd.matmul.dwiden", (const int64_t[3]){m->k, tf->tokens, m->n}, 1,
                      TOUCH(dy, partial, NONE, NONE));
        pod_tf_gradient(tf, bundle, partial);
    }
}

/** The function and the down projection, summed over tensor. @param beside  what is added before, or NONE */
static int32_t output_forward(pod_tf *tf, const pod_layer *layer, int32_t wi, int32_t beside,
                              bool again)
{
    static const char *const scatter_names[2] = {"fwd.scatter.mlp", "fwd.sum.mlp"};
    const int64_t d = tf->model->d_model;
    const int64_t f = layer->d_ff / tf->tensor;
    const int32_t h = dense_activation(tf, "h", layer, pod_tf_function_width(tf, layer), 1);
    function_forward(tf, "fwd.function", layer, wi, h);
    const int32_t y = pod_tf_row_buffer(tf, "y", d);
    const bool apart = tf->pieces && layer->experts > 0;
    const int32_t partial = apart ? pod_tf_activation(tf, "y.partial", d) : y;
    if (layer->experts > 0) {
        pod_tf_experts_output(tf, layer, h, partial, again);
    }
    if (layer->d_ff == 0) {
        widen_forward(tf, layer, partial);
        pod_tf_sum_rows(tf, scatter_names, partial);
        pod_tf_number_set(tf, y, pod_tf_number(tf, partial));
        return y;
    }
    const int32_t out = pod_tf_use_part(tf, POD_PART_OUT);
    if (beside != NONE) {
        pod_tf_number_set(tf, partial, pod_tf_number(tf, beside));
    }
    pod_tf_factor factor = pod_tf_factor_forward(tf, TOUCH(h, out, partial), 0, 0);
    factor.add = layer->experts > 0 || beside != NONE;
    factor.partial = true;
    const pod_tf_products products = {
        .pass = "fwd.pass.mlp",
        .sum = scatter_names[1],
        .buffer = y,
        .count = 1,
        .product = {{"fwd.matmul.down", f, d, 1, {h, out, partial, NONE}, factor}}};
    pod_tf_quantize(tf, tf->tokens * f, h);
    pod_tf_summing sum = pod_tf_multiply_sum(tf, &products);
    pod_tf_multiply_sum_end(tf, &sum);
    return y;
}

/** Whether backward reads what the down projection gives: a norm follows it, or a weighted sum of experts' rows. */
static bool output_is_read(const pod_tf *tf, const pod_layer *layer)
{
    enum { OF_ATTENTION = 3 };
    return (tf->model->post_norms > 0 && tf->model->post_norms != OF_ATTENTION)
           || (layer->experts > 0 && tf->model->capacity_percent == 0);
}

int32_t pod_tf_mlp_forward(pod_tf *tf, const pod_layer *layer, int32_t xn, int32_t beside)
{
    const int32_t wi = hidden_forward(tf, layer, xn, false);
    pod_tf_keep(tf, POD_TF_SLOT_MLPWI, 1U << POD_KEEP_MLPWI, wi);
    const int32_t y = output_forward(tf, layer, wi, beside, false);
    if (pod_tf_numbers(tf)) {
        pod_tf_saved_of(tf, tf->layer)->rows = tf->rows;
        pod_tf_saved_of(tf, tf->layer)->raw[1] = pod_tf_number(tf, y);
    }
    if (output_is_read(tf, layer) && layer->experts == 0) {
        /* y itself becomes the input of the next layer */
        pod_tf_keep(tf, POD_TF_SLOT_MLPWO, 1U << POD_KEEP_MLPWO,
                    pod_tf_activation(tf, "kept", tf->model->d_model));
    }
    return y;
}

pod_tf_mlp pod_tf_mlp_again(pod_tf *tf, const pod_layer *layer, int32_t xn)
{
    const bool kept = pod_tf_is_kept(tf, 1U << POD_KEEP_MLPWI);
    pod_tf_mlp mlp = {.in_used = !kept};
    if (pod_tf_numbers(tf)) {
        tf->rows = pod_tf_saved_of(tf, tf->layer)->rows;
        mlp.y = pod_tf_saved_of(tf, tf->layer)->raw[1];
    }
    if (kept) {
        mlp.wi = pod_tf_kept(tf, POD_TF_SLOT_MLPWI);
        if (tf->model->parallel == 0) { /* else attention gathered them */
            (void)pod_tf_gather_rows(tf, "bwd.gather.rows.again",
                                     xn); /* the derivative by the weights reads them */
        }
    } else {
        mlp.wi = hidden_forward(tf, layer, xn, true);
    }
    if (!output_is_read(tf, layer)) {
        return mlp;
    }
    if (!pod_tf_is_kept(tf, 1U << POD_KEEP_MLPWO)) {
        mlp.y = pod_tf_number(tf, output_forward(tf, layer, mlp.wi, NONE, true));
        mlp.out_used = true;
    } else if (layer->experts > 0) {
        pod_tf_experts_kept(tf, layer);
    } else {
        (void)pod_tf_kept(tf, POD_TF_SLOT_MLPWO);
    }
    return mlp;
}

/* ---- backward ---- */

static pod_tf_products one_product(const char *name, const int64_t kn[2], int64_t count,
                                   const int32_t touch[3])
{
    return (pod_tf_products){
        .count = 1, .product = {{name, kn[0], kn[1], count, {touch[0], touch[1], touch[2], NONE}}}};
}

/** @param kn  of the weights of a dense part, on this chip */
static void dense_quantize(pod_tf *tf, const int64_t kn[2], int64_t count, int32_t buffer)
{
    pod_tf_quantize(tf, tf->tokens * (2 * count * kn[1] + kn[0]), buffer);
}

/** The matmul of a dense part by its weights. @param product  without the buffer of its result */
static void weights_backward(pod_tf *tf, pod_tf_summing *sum, pod_tf_products product,
                             pod_tf_bundle *bundle)
{
    if (tf->puts_off) {
        pod_tf_put_off(tf, &product.product[0], true, bundle);
        return;
    }
    const int32_t partial = pod_tf_gradient_buffer(tf, bundle);
    product.product[0].touch[2] = partial;
    pod_tf_multiply_weights(tf, sum, &product);
    pod_tf_routes_router_gradient(tf, bundle, partial);
    pod_tf_gradient(tf, bundle, partial);
}

/** The derivative after the function of a dense part. @param all  by its output, on all chips of tensor */
static void down_backward(pod_tf *tf, const pod_layer *layer, int32_t dh, int32_t all, int32_t out)
{
    const int64_t kn[2] = {layer->d_ff / tf->tensor, tf->model->d_model};
    const int64_t nk[2] = {kn[1], kn[0]};
    pod_tf_products products =
        one_product("bwd.matmul.down", nk, 1, (const int32_t[3]){all, out, dh});
    products.product[0].factor = pod_tf_factor_by_input(tf, TOUCH(all, out, dh), 0, 0, false);
    products.pass = "bwd.pass.down";
    products.buffer = all;
    dense_quantize(tf, kn, 1, all);
    pod_tf_multiply(tf, &products, tf->rows_cut && layer->experts == 0);
}

bool pod_tf_mlp_begins_early(const pod_tf *tf, const pod_layer *layer)
{
    return tf->tensor > 1 && !tf->pieces && tf->model->parallel == 0 && layer->experts == 0
           && !pod_tf_is_kept(tf, 1U << POD_KEEP_OUT) && !output_is_read(tf, layer);
}

int32_t pod_tf_mlp_begin_early(pod_tf *tf, const pod_layer *layer, int32_t dy)
{
    const int32_t dh = dense_activation(tf, "dh", layer, pod_tf_function_width(tf, layer), 1);
    down_backward(tf, layer, dh, dy, pod_tf_use_part(tf, POD_PART_OUT));
    return dh;
}

/** From the derivative by the output, gathered over tensor, to that after the function. */
static int32_t out_backward(pod_tf *tf, const pod_layer *layer, const pod_tf_mlp *mlp, int32_t dh,
                            int32_t dy)
{
    const int64_t kn[2] = {layer->d_ff / tf->tensor, tf->model->d_model};
    const int32_t all = pod_tf_whole_buffer(tf, "dy", dy, tf->model->d_model);
    int32_t shares = NONE;
    if (layer->experts > 0) {
        (void)pod_tf_gather_rows(tf, "bwd.gather.rows", all);
        shares = pod_tf_experts_out_backward(tf, layer, mlp, dh, all);
    }
    if (layer->d_ff == 0) {
        widen_backward(tf, layer, mlp, all);
    } else {
        pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, POD_PART_OUT);
        const int32_t out = mlp->out_used ? bundle->gathered : pod_tf_use_part(tf, POD_PART_OUT);
        pod_tf_summing none = {.products = NULL};
        if (!mlp->dh_there) {
            down_backward(tf, layer, dh, all, out);
        }
        tf->whole_dy = pod_tf_number(tf, all);
        pod_tf_products by_weights =
            one_product("bwd.matmul.ddown", kn, 1, (const int32_t[3]){mlp->wi, all, NONE});
        by_weights.product[0].factor = pod_tf_factor_of_function(tf, mlp->wi, all);
        weights_backward(tf, &none, by_weights, bundle);
    }
    return shares;
}

/** From the derivative before the function to that by the normed input, summed over tensor; where attention has the
 *  same input, with attention's. */
static void in_backward(pod_tf *tf, const pod_layer *layer, const int32_t in_out[2],
                        int32_t partial, int32_t dxn)
{
    static const char *const names[2] = {"bwd.scatter.mlp", "bwd.sum.mlp"};
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const int64_t kn[2] = {tf->model->d_model, layer->d_ff / tf->tensor};
    const int64_t nk[2] = {kn[1], kn[0]};
    const bool parallel = tf->model->parallel > 0;
    pod_tf_bundle *in = pod_tf_bundle_of(tf, tf->layer, POD_PART_IN);
    if (layer->d_ff == 0) {
        if (in->there) {
            const int32_t gradient = pod_tf_gradient_buffer(tf, in);
            pod_tf_routes_router_back(tf, layer, in_out[0], in->gathered, partial);
            pod_tf_routes_router_gradient(tf, in, gradient);
            pod_tf_gradient(tf, in, gradient);
        }
        if (!parallel) {
            pod_tf_sum_rows(tf, names, partial);
        }
        pod_tf_number_set(tf, dxn, pod_tf_number(tf, partial));
        return;
    }
    pod_tf_routes_router_back(tf, layer, in_out[0], in->gathered, partial);
    pod_tf_summing sum = {.products = NULL};
    pod_tf_products products = one_product("bwd.matmul.in", nk, matrices,
                                           (const int32_t[3]){in_out[1], in->gathered, partial});
    products.product[0].factor = pod_tf_factor_by_input(tf, TOUCH(in_out[1], in->gathered, partial),
                                                        0, 0, layer->experts > 0);
    products.pass = "bwd.pass.in";
    products.sum = names[1];
    products.buffer = dxn;
    dense_quantize(tf, kn, matrices, in_out[1]);
    if (parallel) {
        pod_tf_multiply(tf, &products, false);
        pod_tf_number_set(tf, dxn, pod_tf_number(tf, partial));
    } else {
        sum = pod_tf_multiply_sum(tf, &products);
    }
    pod_tf_products by_weights =
        one_product("bwd.matmul.din", kn, matrices, (const int32_t[3]){in_out[0], in_out[1], NONE});
    by_weights.product[0].factor = pod_tf_factor_by_weights(tf, in_out[0], in_out[1], 0, 0);
    weights_backward(tf, &sum, by_weights, in);
    pod_tf_multiply_sum_end(tf, &sum);
}

int32_t pod_tf_mlp_backward(pod_tf *tf, const pod_layer *layer, int32_t xn, const pod_tf_mlp *mlp,
                            int32_t dy)
{
    const int64_t d = tf->model->d_model;
    const bool use = !mlp->in_used;
    const int32_t wi = mlp->wi;
    const int32_t dh = mlp->dh_there
                           ? mlp->dh
                           : dense_activation(tf, "dh", layer, pod_tf_function_width(tf, layer), 1);
    const int32_t shares = out_backward(tf, layer, mlp, dh, dy);
    const int64_t elements = tf->tokens * pod_tf_function_width(tf, layer);
    /* in place of what is before the function, unless that is a slice of what a loop keeps */
    const int32_t dwi = mlp->in_used
                            ? wi
                            : dense_activation(tf, "dhidden", layer, pod_tf_hidden_width(tf, layer),
                                               tf->model->mlp_matrices - 1);
    pod_tf_wait(tf, shares);
    pod_tf_vector(tf, "bwd.function", (double)elements,
                  2 * tf->model->mlp_matrices * elements * BYTES, TOUCH(wi, dh, dwi, NONE));
    if (layer->d_ff > 0) {
        pod_tf_number_function_back(tf, wi, dh, dwi, mlp->in_used);
    }
    pod_tf_routes_function_back(tf, layer);
    const int32_t dxn = pod_tf_row_buffer(tf, "dnorm", d);
    const bool apart = tf->pieces && (layer->experts > 0 || tf->model->parallel > 0);
    const int32_t partial = apart ? pod_tf_activation(tf, "dnorm.partial", d) : dxn;
    if (layer->experts > 0) {
        pod_tf_experts_in_backward(tf, layer, mlp, xn, dwi, partial);
    }
    if (use) {
        (void)pod_tf_use_part(tf, POD_PART_IN);
    }
    in_backward(tf, layer, (const int32_t[2]){xn, dwi}, partial, dxn);
    return dxn;
}
