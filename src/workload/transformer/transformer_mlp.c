/* SPDX-License-Identifier: Apache-2.0 */
/* The MLP of a layer: dense, or experts with what all tokens share. Of T tokens with k experts each, R = k·T
 * rows go to experts, evenly: R / E each. With a capacity of c % of that, room for c/100 · R rows is there, and
 * rows are sent and brought back by products with 0-1 masks (MaxText's dropping); without, rows are sorted
 * and copied, and a product of all experts visits a tile of 512 rows twice where two experts meet in it.
 * Elementwise work moves (elements, 2 bytes each), with F columns of hidden width:
 *
 *      function     forward m·R·F, m matrices before it and its result       backward 2·m·R·F
 *      sort rows    forward 2·R·d and, back, R·d + T·d                       backward the same
 */
#include "workload/transformer/transformer_mlp.h"

#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

enum { NONE = POD_OP_NONE, BYTES = 2, PERCENT = 100, TILE_ROWS = 512 };

static int32_t activation(pod_tf *tf, const char *name, int64_t rows, int64_t width)
{
    return pod_tf_buffer(tf, name, POD_MEMORY_ACTIVATIONS, tf->build.dtype, rows, width);
}

/* ---- experts ---- */

typedef enum expert_side { ROWS_K, ROWS_M } expert_side;

/** A product of all experts: [rows, k] · [k, n], or, for gradients of weights, [k, rows] · [rows, n]. */
static void experts_matmul(pod_tf *tf, const char *name, const pod_layer *layer, expert_side side,
                           const int64_t kn[2], int64_t count,
                           const int32_t touch[POD_OP_TOUCHES_MAX])
{
    const int64_t experts = layer->experts / tf->expert;
    const int64_t boundary = tf->model->capacity_percent > 0 ? 0 : TILE_ROWS;
    const int64_t rows = (pod_tf_expert_rows(tf, layer) + experts - 1) / experts + boundary;
    const int64_t by_rows[3] = {rows, kn[0], kn[1]};
    const int64_t by_weights[3] = {kn[0], rows, kn[1]};
    pod_tf_matmul(tf, name, side == ROWS_M ? by_rows : by_weights, count * experts, touch);
}

/** Tokens to their experts, or the derivatives of what came back: R rows from T tokens. */
static int32_t rows_send(pod_tf *tf, const char *const names[2], const pod_layer *layer, int32_t x)
{
    const int64_t d = tf->model->d_model;
    const int64_t rows = pod_tf_expert_rows(tf, layer);
    int32_t sent = activation(tf, "rows", rows, d);
    if (tf->model->capacity_percent > 0) {
        pod_tf_matmul(tf, names[0], (const int64_t[3]){rows / tf->sequences, tf->seq, d},
                      tf->sequences, TOUCH(x, sent, NONE, NONE));
    } else {
        pod_tf_vector(tf, names[0], (double)(rows * d), 2 * rows * d * BYTES,
                      TOUCH(x, sent, NONE, NONE));
    }
    if (tf->expert > 1) {
        const int32_t here = activation(tf, "rows", rows, d);
        pod_tf_wait(tf,
                    pod_tf_collective(tf, POD_ALL_TO_ALL, names[1], &tf->layout->expert, rows * d,
                                      POD_DTYPE_BF16, NONE, TOUCH(sent, here, NONE, NONE)));
        sent = here;
    }
    return sent;
}

/** And back: T tokens from R rows. */
static void rows_return(pod_tf *tf, const char *const names[2], const pod_layer *layer,
                        int32_t rows_buffer, int32_t y)
{
    const int64_t d = tf->model->d_model;
    const int64_t rows = pod_tf_expert_rows(tf, layer);
    if (tf->expert > 1) {
        pod_tf_wait(tf,
                    pod_tf_collective(tf, POD_ALL_TO_ALL, names[1], &tf->layout->expert, rows * d,
                                      POD_DTYPE_BF16, NONE, TOUCH(rows_buffer, NONE, NONE, NONE)));
    }
    if (tf->model->capacity_percent > 0) {
        pod_tf_matmul(tf, names[0], (const int64_t[3]){tf->seq, rows / tf->sequences, d},
                      tf->sequences, TOUCH(rows_buffer, y, NONE, NONE));
    } else {
        pod_tf_vector(tf, names[0], (double)(rows * d), (rows + tf->tokens) * d * BYTES,
                      TOUCH(rows_buffer, y, NONE, NONE));
    }
}

/* ---- forward ---- */

static void function_forward(pod_tf *tf, const char *name, const pod_layer *layer, int32_t wi,
                             int32_t h)
{
    const int64_t elements = tf->tokens * pod_tf_function_width(tf, layer);
    pod_tf_vector(tf, name, (double)elements, tf->model->mlp_matrices * elements * BYTES,
                  TOUCH(wi, h, NONE, NONE));
}

static const char *const send_names[2] = {"fwd.send.rows", "fwd.exchange.rows"};
static const char *const return_names[2] = {"fwd.return.rows", "fwd.exchange.results"};
static const char *const send_again_names[2] = {"bwd.send.rows", "bwd.exchange.rows"};
static const char *const send_back_names[2] = {"bwd.send.results", "bwd.exchange.results"};
static const char *const return_back_names[2] = {"bwd.return.rows", "bwd.exchange.derivatives"};

/** Up to the function. */
static int32_t hidden_forward(pod_tf *tf, const pod_layer *layer, int32_t xn)
{
    const int64_t d = tf->model->d_model;
    const int64_t matrices = tf->model->mlp_matrices - 1;
    const int32_t wi = activation(tf, "hidden", tf->tokens, pod_tf_hidden_width(tf, layer));
    const int32_t weights = pod_tf_use_part(tf, POD_PART_IN);
    if (layer->d_ff > 0) {
        pod_tf_matmul(tf, "fwd.matmul.in",
                      (const int64_t[3]){tf->tokens, d, layer->d_ff / tf->tensor}, matrices,
                      TOUCH(xn, weights, wi, NONE));
    }
    if (layer->experts > 0) {
        pod_tf_matmul(tf, "fwd.matmul.router", (const int64_t[3]){tf->tokens, d, layer->experts}, 1,
                      TOUCH(xn, weights, NONE, NONE));
        const int32_t rows = rows_send(tf, send_names, layer, xn);
        const int32_t in = pod_tf_use_part(tf, POD_PART_EXPERTS_IN);
        experts_matmul(tf, "fwd.matmul.experts.in", layer, ROWS_M,
                       (const int64_t[2]){d, layer->moe_d_ff / tf->tensor}, matrices,
                       TOUCH(rows, in, wi, NONE));
    }
    return wi;
}

/** The function and the down projection, summed over tensor. */
static int32_t output_forward(pod_tf *tf, const pod_layer *layer, int32_t wi)
{
    const int64_t d = tf->model->d_model;
    const int32_t h = activation(tf, "h", tf->tokens, pod_tf_function_width(tf, layer));
    function_forward(tf, "fwd.function", layer, wi, h);
    const int32_t y = activation(tf, "y", tf->tokens, d);
    if (layer->experts > 0) {
        const int32_t out = pod_tf_use_part(tf, POD_PART_EXPERTS_OUT);
        const int32_t rows = activation(tf, "rows", pod_tf_expert_rows(tf, layer), d);
        experts_matmul(tf, "fwd.matmul.experts.out", layer, ROWS_M,
                       (const int64_t[2]){layer->moe_d_ff / tf->tensor, d}, 1,
                       TOUCH(h, out, rows, NONE));
        rows_return(tf, return_names, layer, rows, y);
    }
    if (layer->d_ff > 0) {
        const int32_t out = pod_tf_use_part(tf, POD_PART_OUT);
        pod_tf_matmul(tf, "fwd.matmul.down",
                      (const int64_t[3]){tf->tokens, layer->d_ff / tf->tensor, d}, 1,
                      TOUCH(h, out, y, NONE));
    }
    pod_tf_wait(tf, pod_tf_sum(tf, "fwd.sum.mlp", y, d));
    return y;
}

bool pod_tf_mlp_reads_output(const pod_tf *tf)
{
    return tf->model->post_norms > 0;
}

int32_t pod_tf_mlp_forward(pod_tf *tf, const pod_layer *layer, int32_t xn)
{
    const int32_t wi = hidden_forward(tf, layer, xn);
    pod_tf_keep(tf, POD_TF_SLOT_MLPWI, 1U << POD_KEEP_MLPWI, wi);
    const int32_t y = output_forward(tf, layer, wi);
    if (pod_tf_mlp_reads_output(tf)) {
        pod_tf_keep(tf, POD_TF_SLOT_MLPWO, 1U << POD_KEEP_MLPWO, y);
    }
    return y;
}

pod_tf_mlp pod_tf_mlp_again(pod_tf *tf, const pod_layer *layer, int32_t xn)
{
    const bool kept = pod_tf_is_kept(tf, 1U << POD_KEEP_MLPWI);
    pod_tf_mlp mlp = {.in_used = !kept};
    mlp.wi = kept ? pod_tf_kept(tf, POD_TF_SLOT_MLPWI) : hidden_forward(tf, layer, xn);
    if (pod_tf_mlp_reads_output(tf) && !pod_tf_is_kept(tf, 1U << POD_KEEP_MLPWO)) {
        (void)output_forward(tf, layer, mlp.wi);
        mlp.out_used = true;
    }
    return mlp;
}

/* ---- backward ---- */

static void experts_out_backward(pod_tf *tf, const pod_layer *layer, const pod_tf_mlp *mlp,
                                 int32_t dh, int32_t dy)
{
    const int64_t d = tf->model->d_model;
    const int64_t f = layer->moe_d_ff / tf->tensor;
    pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, POD_PART_EXPERTS_OUT);
    const int32_t weights =
        mlp->out_used ? bundle->gathered : pod_tf_use_part(tf, POD_PART_EXPERTS_OUT);
    const int32_t rows = rows_send(tf, send_back_names, layer, dy);
    experts_matmul(tf, "bwd.matmul.experts.out", layer, ROWS_M, (const int64_t[2]){d, f}, 1,
                   TOUCH(rows, weights, dh, NONE));
    const int32_t partial = pod_tf_gradient_buffer(tf, bundle);
    experts_matmul(tf, "bwd.matmul.experts.dout", layer, ROWS_K, (const int64_t[2]){f, d}, 1,
                   TOUCH(mlp->wi, rows, partial, NONE));
    pod_tf_gradient(tf, bundle, partial);
}

static void experts_in_backward(pod_tf *tf, const pod_layer *layer, bool use, int32_t xn,
                                int32_t dwi, int32_t dxn)
{
    const int64_t d = tf->model->d_model;
    const int64_t f = layer->moe_d_ff / tf->tensor;
    const int64_t matrices = tf->model->mlp_matrices - 1;
    pod_tf_bundle *bundle = pod_tf_bundle_of(tf, tf->layer, POD_PART_EXPERTS_IN);
    const int32_t weights = use ? pod_tf_use_part(tf, POD_PART_EXPERTS_IN) : bundle->gathered;
    const int32_t rows = use ? rows_send(tf, send_again_names, layer, xn)
                             : activation(tf, "rows", pod_tf_expert_rows(tf, layer), d);
    const int32_t drows = activation(tf, "rows", pod_tf_expert_rows(tf, layer), d);
    experts_matmul(tf, "bwd.matmul.experts.in", layer, ROWS_M, (const int64_t[2]){f, d}, matrices,
                   TOUCH(dwi, weights, drows, NONE));
    const int32_t partial = pod_tf_gradient_buffer(tf, bundle);
    experts_matmul(tf, "bwd.matmul.experts.din", layer, ROWS_K, (const int64_t[2]){d, f}, matrices,
                   TOUCH(rows, dwi, partial, NONE));
    pod_tf_gradient(tf, bundle, partial);
    rows_return(tf, return_back_names, layer, drows, dxn);
}

/** Derivatives by the input of an MLP, summed over tensor. @return the op or POD_OP_NONE */
static int32_t input_sum(pod_tf *tf, int32_t dxn)
{
    return tf->model->parallel > 0 /* summed with the derivative of attention's input */
               ? NONE
               : pod_tf_sum(tf, "bwd.sum.mlp", dxn, tf->model->d_model);
}

/** The two products of a dense part: by its input and by its weights.
 *  @param dxn  what the first gives, to be summed behind the second; or NONE @return its sum */
static int32_t dense_backward(pod_tf *tf, const char *const names[2], const int64_t kn[2],
                              int64_t count, const int32_t touch[2][POD_OP_TOUCHES_MAX],
                              pod_tf_bundle *bundle, int32_t dxn)
{
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
        experts_out_backward(tf, layer, mlp, dh, dy);
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
    const int32_t dwi = activation(tf, "dhidden", tf->tokens, pod_tf_hidden_width(tf, layer));
    pod_tf_vector(tf, "bwd.function", (double)elements,
                  2 * tf->model->mlp_matrices * elements * BYTES, TOUCH(wi, dh, dwi, NONE));
    const int32_t dxn = activation(tf, "dnorm", tf->tokens, d);
    if (layer->experts > 0) {
        experts_in_backward(tf, layer, use, xn, dwi, dxn);
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
