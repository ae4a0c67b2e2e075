/* SPDX-License-Identifier: Apache-2.0 */
/* The MLP of a layer: dense, or experts (transformer_experts.h) with what all tokens share. Its function moves
 * (elements, 2 bytes each), of T tokens with F columns of hidden width and m matrices:
 *
 *      function     forward m·T·F, m - 1 matrices before it and its result       backward 2·m·T·F
 */
#include "workload/transformer/transformer_mlp.h"

#include "workload/transformer/transformer_experts.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

enum { NONE = POD_OP_NONE, BYTES = 2 };

static int32_t activation(pod_tf *tf, const char *name, int64_t rows, int64_t width)
{
    return pod_tf_buffer(tf, name, POD_MEMORY_ACTIVATIONS, tf->stage.build.dtype, rows, width);
}

/* ---- forward ---- */

static void function_forward(pod_tf *tf, const char *name, const pod_layer *layer, int32_t wi,
                             int32_t h)
{
    const int64_t elements = tf->tokens * pod_tf_function_width(tf, layer);
    pod_tf_vector(tf, name, (double)elements, tf->model->mlp_matrices * elements * BYTES,
                  TOUCH(wi, h, NONE, NONE));
}

/** Up to the function. */
static int32_t hidden_forward(pod_tf *tf, const pod_layer *layer, int32_t xn, bool again)
{
    const int64_t d = tf->model->d_model;
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const int32_t wi = activation(tf, "hidden", tf->tokens, pod_tf_hidden_width(tf, layer));
    const int32_t weights = pod_tf_use_part(tf, POD_PART_IN);
    if (layer->d_ff > 0) {
        pod_tf_quantize(tf, tf->tokens * d, xn);
        pod_tf_matmul(tf, "fwd.matmul.in",
                      (const int64_t[3]){tf->tokens, d, layer->d_ff / tf->tensor}, matrices,
                      TOUCH(xn, weights, wi, NONE));
    }
    if (layer->experts > 0) {
        pod_tf_experts_hidden(tf, layer, xn, wi, again);
    }
    return wi;
}

/** The function and the down projection, summed over tensor. */
static int32_t output_forward(pod_tf *tf, const pod_layer *layer, int32_t wi, bool again)
{
    const int64_t d = tf->model->d_model;
    const int64_t f = layer->d_ff / tf->tensor;
    const int32_t h = activation(tf, "h", tf->tokens, pod_tf_function_width(tf, layer));
    function_forward(tf, "fwd.function", layer, wi, h);
    const int32_t y = activation(tf, "y", tf->tokens, d);
    if (layer->experts > 0) {
        pod_tf_experts_output(tf, layer, h, y, again);
    }
    if (layer->d_ff > 0) {
        const int32_t out = pod_tf_use_part(tf, POD_PART_OUT);
        pod_tf_quantize(tf, tf->tokens * f, h);
        pod_tf_matmul(tf, "fwd.matmul.down", (const int64_t[3]){tf->tokens, f, d}, 1,
                      TOUCH(h, out, y, NONE));
    }
    pod_tf_wait(tf, pod_tf_sum(tf, "fwd.sum.mlp", y, d));
    return y;
}

/** Whether backward reads what the down projection gives: a norm follows it, or a weighted sum of experts' rows. */
static bool output_is_read(const pod_tf *tf, const pod_layer *layer)
{
    return tf->model->post_norms > 0 || (layer->experts > 0 && tf->model->capacity_percent == 0);
}

int32_t pod_tf_mlp_forward(pod_tf *tf, const pod_layer *layer, int32_t xn)
{
    const int32_t wi = hidden_forward(tf, layer, xn, false);
    pod_tf_keep(tf, POD_TF_SLOT_MLPWI, 1U << POD_KEEP_MLPWI, wi);
    const int32_t y = output_forward(tf, layer, wi, false);
    if (output_is_read(tf, layer) && layer->experts == 0) {
        /* y itself becomes the input of the next layer */
        pod_tf_keep(tf, POD_TF_SLOT_MLPWO, 1U << POD_KEEP_MLPWO,
                    activation(tf, "kept", tf->tokens, tf->model->d_model));
    }
    return y;
}

pod_tf_mlp pod_tf_mlp_again(pod_tf *tf, const pod_layer *layer, int32_t xn)
{
    const bool kept = pod_tf_is_kept(tf, 1U << POD_KEEP_MLPWI);
    pod_tf_mlp mlp = {.in_used = !kept};
    mlp.wi = kept ? pod_tf_kept(tf, POD_TF_SLOT_MLPWI) : hidden_forward(tf, layer, xn, true);
    if (!output_is_read(tf, layer)) {
        return mlp;
    }
    if (!pod_tf_is_kept(tf, 1U << POD_KEEP_MLPWO)) {
        (void)output_forward(tf, layer, mlp.wi, true);
        mlp.out_used = true;
    } else if (layer->experts > 0) {
        pod_tf_experts_kept(tf, layer);
    } else {
        (void)pod_tf_kept(tf, POD_TF_SLOT_MLPWO);
    }
    return mlp;
}

/* ---- backward ---- */

/** Derivatives by the input of an MLP, summed over tensor. @return the op or POD_OP_NONE */
static int32_t input_sum(pod_tf *tf, int32_t dxn)
{
    return tf->model->parallel > 0 /* summed with the derivative of attention's input */
               ? NONE
               : pod_tf_sum(tf, "bwd.sum.mlp", dxn, tf->model->d_model);
}

/** The two products of a dense part: by its input and by its weights.
 *  @param dxn  what the first gives, to be summed after the second; or NONE @return its sum */
static int32_t dense_backward(pod_tf *tf, const char *const names[2], const int64_t kn[2],
                              int64_t count, const int32_t touch[2][POD_OP_TOUCHES_MAX],
                              pod_tf_bundle *bundle, int32_t dxn)
{
    pod_tf_quantize(tf, tf->tokens * (2 * count * kn[1] + kn[0]), touch[0][0]);
    pod_tf_matmul(tf, names[0], (const int64_t[3]){tf->tokens, kn[1], kn[0]}, count, touch[0]);
    const int32_t sum = dxn == NONE ? NONE : input_sum(tf, dxn);
    const int32_t partial = pod_tf_gradient_buffer(tf, bundle);
    int32_t with[POD_OP_TOUCHES_MAX] = {touch[1][0], touch[1][1], partial, NONE};
    pod_tf_matmul(tf, names[1], (const int64_t[3]){kn[0], tf->tokens, kn[1]}, count, with);
    pod_tf_gradient(tf, bundle, partial);
    return sum;
}

int32_t pod_tf_mlp_backward(pod_tf *tf, const pod_layer *layer, int32_t xn, const pod_tf_mlp *mlp,
                            int32_t dy)
{
    static const char *const out_names[2] = {"bwd.matmul.down", "bwd.matmul.ddown"};
    static const char *const in_names[2] = {"bwd.matmul.in", "bwd.matmul.din"};
    const int64_t d = tf->model->d_model;
    const int64_t f = layer->d_ff / tf->tensor;
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const bool use = !mlp->in_used;
    const int32_t wi = mlp->wi;
    const int32_t dh = activation(tf, "dh", tf->tokens, pod_tf_function_width(tf, layer));
    if (layer->experts > 0) {
        pod_tf_experts_out_backward(tf, layer, mlp, dh, dy);
    }
    if (layer->d_ff > 0) {
        pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, POD_PART_OUT);
        const int32_t out = mlp->out_used ? bundle->gathered : pod_tf_use_part(tf, POD_PART_OUT);
        const int32_t touch[2][POD_OP_TOUCHES_MAX] = {
            {dy, out, dh,   NONE},
            {wi, dy,  NONE, NONE}
        };
        (void)dense_backward(tf, out_names, (const int64_t[2]){f, d}, 1, touch, bundle, NONE);
    }
    const int64_t elements = tf->tokens * pod_tf_function_width(tf, layer);
    /* in place of what is before the function, unless that is a slice of what a loop keeps */
    const int32_t dwi =
        mlp->in_used ? wi : activation(tf, "dhidden", tf->tokens, pod_tf_hidden_width(tf, layer));
    pod_tf_vector(tf, "bwd.function", (double)elements,
                  2 * tf->model->mlp_matrices * elements * BYTES, TOUCH(wi, dh, dwi, NONE));
    const int32_t dxn = activation(tf, "dnorm", tf->tokens, d);
    if (layer->experts > 0) {
        pod_tf_experts_in_backward(tf, layer, mlp, xn, dwi, dxn);
    }
    if (use) {
        (void)pod_tf_use_part(tf, POD_PART_IN);
    }
    pod_tf_bundle *in = pod_tf_bundle_of(tf, tf->layer, POD_PART_IN);
    if (layer->d_ff > 0) {
        const int32_t touch[2][POD_OP_TOUCHES_MAX] = {
            {dwi, in->gathered, dxn,  NONE},
            {xn,  dwi,          NONE, NONE}
        };
        pod_tf_wait(
            tf, dense_backward(tf, in_names, (const int64_t[2]){d, f}, matrices, touch, in, dxn));
        return dxn;
    }
    if (in->there) {
        pod_tf_gradient(tf, in, pod_tf_gradient_buffer(tf, in));
    }
    pod_tf_wait(tf, input_sum(tf, dxn));
    return dxn;
}
