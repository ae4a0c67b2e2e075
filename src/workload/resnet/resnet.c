/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/resnet/resnet.h"

#include "models/resnet.h"
#include "workload/build/uses.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_update.h"
#include "workload/transformer/transformer_weights.h"

#include <stdlib.h>

/** What a convolution reads, gives, and what its norm makes of that; buffers. */
typedef struct conv_kept {
    int32_t in;
    int32_t out;
    int32_t normed;
} conv_kept;

typedef struct block_kept {
    conv_kept conv[POD_RESNET_CONVS];
    int32_t out;
} block_kept;

typedef struct resnet {
    pod_tf tf;          /**< first: pod_stage_ops get it; tokens are pictures */
    conv_kept *stem;    /**< stem[part] */
    block_kept *blocks; /**< blocks[part · layers + layer] */
    int32_t features;   /**< that the head reads */
} resnet;

enum { LAST = 2, SHORTCUT = 3, POOL = 4 };

static resnet *resnet_of(pod_stage *stage)
{
    return (resnet *)(void *)stage; /* the first member of its first member */
}

static block_kept *net_kept(const resnet *net, int32_t layer)
{
    const pod_stage *stage = &net->tf.stage;
    return &net->blocks[stage->part * stage->layers + layer];
}

/** Of all pictures of the chip. */
static pod_conv_shape net_conv_of(const resnet *net, pod_conv_shape conv)
{
    conv.n = net->tf.tokens;
    return conv;
}

static int32_t net_activation(resnet *net, const char *name, int64_t elements)
{
    return pod_tf_buffer(&net->tf, name, POD_MEMORY_ACTIVATIONS, POD_DTYPE_BF16, elements, 1);
}

static void net_vector(resnet *net, const char *name, int64_t elements, int64_t passes,
                       const int32_t touch[POD_OP_TOUCHES_MAX])
{
    pod_tf_vector(&net->tf, name, (double)elements, passes * elements * BYTES, touch);
}

/* ---- norms ---- */

/** The sums of a norm over the chips that share it: what follows waits for them. */
static void net_norm_sum(resnet *net, const char *name, int64_t channels)
{
    enum { SUMS = 2 };
    const unsigned mask = net->tf.stage.request->settings.norm_axes;
    pod_axis_list axes = {0};
    for (int axis = POD_MESH_DATA; axis <= POD_MESH_FSDP; axis++) {
        if ((mask >> axis & 1U) != 0 && net->tf.layout->size[axis] > 1) {
            axes.axis[axes.count++] = (pod_mesh_axis)axis;
        }
    }
    pod_tf_wait(&net->tf, pod_tf_collective(&net->tf, POD_ALL_REDUCE, name, &axes, SUMS * channels,
                                            POD_DTYPE_F32, NONE, TOUCH(NONE, NONE, NONE, NONE)));
}

/** A convolution and the sums of its norm. */
static void net_conv(resnet *net, const pod_conv_shape *conv, int32_t weights, conv_kept *kept)
{
    const int64_t elements = pod_resnet_elements(conv);
    kept->out = net_activation(net, "conv", elements);
    pod_tf_conv(&net->tf, "fwd.conv", POD_CONV_FORWARD, conv,
                TOUCH(kept->in, weights, kept->out, NONE));
    net_vector(net, "fwd.norm.sums", elements, 1, TOUCH(kept->out, NONE, NONE, NONE));
    net_norm_sum(net, "fwd.sum.norm", conv->cout);
}

static void net_norm(resnet *net, const pod_conv_shape *conv, conv_kept *kept)
{
    const int64_t elements = pod_resnet_elements(conv);
    kept->normed = net_activation(net, "norm", elements);
    net_vector(net, "fwd.norm", elements, 2, TOUCH(kept->out, kept->normed, NONE, NONE));
}

/** The derivative by what a convolution gives.
 *  @param more  a further array that is read: what the maximum let through */
static int32_t net_norm_back(resnet *net, const pod_conv_shape *conv, const conv_kept *kept,
                             int32_t dy, int32_t more)
{
    const int64_t elements = pod_resnet_elements(conv);
    const int64_t read = more != NONE ? 1 : 0;
    const int32_t dconv = net_activation(net, "dconv", elements);
    net_vector(net, "bwd.norm.sums", elements, 2 + read, TOUCH(dy, kept->out, more, NONE));
    net_norm_sum(net, "bwd.sum.norm", conv->cout);
    net_vector(net, "bwd.norm", elements, 3 + read, TOUCH(dy, kept->out, more, dconv));
    return dconv;
}

/** Both derivatives of a convolution. @return that by its input */
static int32_t net_conv_back(resnet *net, const pod_conv_shape *conv, const conv_kept *kept,
                             int32_t dconv, int32_t weights, int32_t partial)
{
    const int32_t dx = net_activation(net, "dx", conv->n * conv->h * conv->w * conv->cin);
    pod_tf_conv(&net->tf, "bwd.conv.weights", POD_CONV_WEIGHTS, conv,
                TOUCH(kept->in, dconv, partial, NONE));
    pod_tf_conv(&net->tf, "bwd.conv.input", POD_CONV_INPUT, conv, TOUCH(dconv, weights, dx, NONE));
    return dx;
}

/* ---- the ends ---- */

static pod_array net_array(const resnet *net, int32_t buffer)
{
    return (pod_array){.buffer = buffer, .op = net->tf.last_core, .dtype = POD_DTYPE_BF16};
}

static pod_array resnet_input(pod_stage *stage)
{
    resnet *net = resnet_of(stage);
    const pod_conv_shape conv = net_conv_of(net, pod_resnet_stem(net->tf.model));
    const int64_t elements = pod_resnet_elements(&conv);
    conv_kept *kept = &net->stem[stage->part];
    net->tf.layer = -1;
    kept->in = pod_tf_buffer(&net->tf, "pixels", POD_MEMORY_INPUT, POD_DTYPE_BF16,
                             conv.n * conv.h * conv.w, conv.cin);
    net_conv(net, &conv, pod_tf_use_begin(&net->tf)->gathered, kept);
    net_norm(net, &conv, kept);
    const int32_t pooled = net_activation(net, "pool", elements / POOL);
    pod_tf_vector(&net->tf, "fwd.pool", (double)elements, (elements + elements / POOL) * BYTES,
                  TOUCH(kept->normed, pooled, NONE, NONE));
    return net_array(net, pooled);
}

/** From the pool back to the stem's weights. */
static void resnet_finish(pod_stage *stage, const pod_array *derivative)
{
    resnet *net = resnet_of(stage);
    const pod_conv_shape conv = net_conv_of(net, pod_resnet_stem(net->tf.model));
    const int64_t elements = pod_resnet_elements(&conv);
    const conv_kept *kept = &net->stem[stage->part];
    pod_tf_bundle *bundle = pod_tf_bundle_of(&net->tf, 0, POD_TF_EMBEDDING);
    net->tf.layer = -1;
    const int32_t dpool = net_activation(net, "dpool", elements);
    pod_tf_vector(&net->tf, "bwd.pool", (double)elements, (2 * elements + elements / POOL) * BYTES,
                  TOUCH(derivative->buffer, kept->normed, dpool, NONE));
    const int32_t dconv = net_norm_back(net, &conv, kept, dpool, NONE);
    const int32_t partial = pod_tf_gradient_buffer(&net->tf, bundle);
    pod_tf_conv(&net->tf, "bwd.conv.weights", POD_CONV_WEIGHTS, &conv,
                TOUCH(kept->in, dconv, partial, NONE));
    pod_tf_gradient(&net->tf, bundle, partial);
}

/** The mean over pixels, the head and the loss. */
static pod_array resnet_output(pod_stage *stage, const pod_array *x)
{
    enum { LOSS_BYTES = 16 };
    resnet *net = resnet_of(stage);
    pod_tf *tf = &net->tf;
    const pod_model *model = tf->model;
    const pod_resnet_block last = pod_resnet_block_of(model, model->layers - 1);
    const pod_conv_shape conv = net_conv_of(net, last.conv[LAST]);
    const int64_t elements = pod_resnet_elements(&conv);
    const int64_t logits = tf->tokens * model->vocab;
    tf->layer = -1;
    const int32_t weights = pod_tf_use_begin(tf)->gathered;
    const int32_t mean = net_activation(net, "mean", tf->tokens * model->d_model);
    const int32_t scores = net_activation(net, "logits", logits);
    net_vector(net, "fwd.mean", elements, 1, TOUCH(x->buffer, mean, NONE, NONE));
    pod_tf_matmul(tf, "fwd.matmul.head",
                  (const int64_t[3]){tf->tokens, model->d_model, model->vocab}, 1,
                  TOUCH(mean, weights, scores, NONE));
    if (stage->request->mode != POD_STEP_TRAIN) {
        return net_array(net, scores);
    }
    pod_tf_bundle *head = pod_tf_bundle_of(tf, 0, POD_TF_HEAD);
    const int32_t partial = pod_tf_gradient_buffer(tf, head);
    const int32_t dmean = net_activation(net, "dmean", tf->tokens * model->d_model);
    const int32_t dx = net_activation(net, "dx", elements);
    pod_tf_vector(tf, "loss", (double)logits, LOSS_BYTES * logits, TOUCH(scores, NONE, NONE, NONE));
    pod_tf_matmul(tf, "bwd.matmul.dhead",
                  (const int64_t[3]){model->d_model, tf->tokens, model->vocab}, 1,
                  TOUCH(mean, scores, partial, NONE));
    pod_tf_gradient(tf, head, partial);
    pod_tf_matmul(tf, "bwd.matmul.head",
                  (const int64_t[3]){tf->tokens, model->vocab, model->d_model}, 1,
                  TOUCH(scores, weights, dmean, NONE));
    net_vector(net, "bwd.mean", elements, 1, TOUCH(dmean, dx, NONE, NONE));
    return net_array(net, dx);
}

/* ---- blocks ---- */

static pod_array resnet_forward(pod_stage *stage, int32_t layer, const pod_array *x)
{
    resnet *net = resnet_of(stage);
    const pod_resnet_block block = pod_resnet_block_of(net->tf.model, layer);
    block_kept *kept = net_kept(net, layer);
    net->tf.layer = layer;
    const int32_t weights = pod_tf_use_begin(&net->tf)->gathered;
    int32_t in = x->buffer;
    for (int i = 0; i <= LAST; i++) {
        const pod_conv_shape conv = net_conv_of(net, block.conv[i]);
        kept->conv[i].in = in;
        net_conv(net, &conv, weights, &kept->conv[i]);
        if (i < LAST) {
            net_norm(net, &conv, &kept->conv[i]);
            in = kept->conv[i].normed;
        }
    }
    int32_t shortcut = x->buffer;
    if (block.nconvs > SHORTCUT) {
        const pod_conv_shape conv = net_conv_of(net, block.conv[SHORTCUT]);
        kept->conv[SHORTCUT].in = x->buffer;
        net_conv(net, &conv, weights, &kept->conv[SHORTCUT]);
        shortcut = kept->conv[SHORTCUT].out;
    }
    const pod_conv_shape last = net_conv_of(net, block.conv[LAST]);
    const int64_t elements = pod_resnet_elements(&last);
    kept->out = net_activation(net, "block", elements);
    net_vector(net, "fwd.residual", elements, 3,
               TOUCH(kept->conv[LAST].out, shortcut, kept->out, NONE));
    return net_array(net, kept->out);
}

static pod_array resnet_backward(pod_stage *stage, int32_t layer, const pod_array *dy)
{
    resnet *net = resnet_of(stage);
    const pod_resnet_block block = pod_resnet_block_of(net->tf.model, layer);
    const block_kept *kept = net_kept(net, layer);
    pod_tf_bundle *bundle = pod_tf_bundle_of(&net->tf, layer, POD_PART_ATTENTION);
    net->tf.layer = layer;
    const int32_t weights = pod_tf_use_begin(&net->tf)->gathered;
    const int32_t partial = pod_tf_gradient_buffer(&net->tf, bundle);
    int32_t d = dy->buffer;
    for (int i = LAST; i >= 0; i--) {
        const pod_conv_shape conv = net_conv_of(net, block.conv[i]);
        const int32_t dconv =
            net_norm_back(net, &conv, &kept->conv[i], d, i == LAST ? kept->out : NONE);
        d = net_conv_back(net, &conv, &kept->conv[i], dconv, weights, partial);
    }
    int32_t around = dy->buffer;
    if (block.nconvs > SHORTCUT) {
        const pod_conv_shape conv = net_conv_of(net, block.conv[SHORTCUT]);
        const int32_t dconv =
            net_norm_back(net, &conv, &kept->conv[SHORTCUT], dy->buffer, kept->out);
        around = net_conv_back(net, &conv, &kept->conv[SHORTCUT], dconv, weights, partial);
    }
    pod_tf_gradient(&net->tf, bundle, partial);
    const pod_conv_shape first = block.conv[0];
    const int64_t elements = net->tf.tokens * first.h * first.w * first.cin;
    /* adds what came by the shortcut; of a shortcut without a convolution by what the maximum let through */
    net_vector(net, "bwd.residual", elements, block.nconvs > SHORTCUT ? 3 : 4,
               TOUCH(d, around, kept->out, NONE));
    return net_array(net, d);
}

static void resnet_declare(pod_stage *stage, int32_t layer, bool backward)
{
    pod_tf *tf = &resnet_of(stage)->tf;
    const char *phase = backward ? "bwd" : "fwd";
    if (layer == 0 && !backward) {
        pod_tf_use_declare(tf, pod_tf_bundle_of(tf, 0, POD_TF_EMBEDDING), phase);
    }
    pod_tf_use_declare(tf, pod_tf_bundle_of(tf, layer, POD_PART_ATTENTION), phase);
}

static void resnet_declare_output(pod_stage *stage)
{
    pod_tf *tf = &resnet_of(stage)->tf;
    pod_tf_use_declare(tf, pod_tf_bundle_of(tf, 0, POD_TF_HEAD), "fwd");
}

static void resnet_weights(pod_stage *stage)
{
    pod_tf_bundles_make(&resnet_of(stage)->tf);
}

static void resnet_update(pod_stage *stage)
{
    pod_tf_update(&resnet_of(stage)->tf);
}

static const pod_stage_ops resnet_stage_ops = {.weights = resnet_weights,
                                               .declare = resnet_declare,
                                               .declare_output = resnet_declare_output,
                                               .input = resnet_input,
                                               .forward = resnet_forward,
                                               .output = resnet_output,
                                               .backward = resnet_backward,
                                               .finish = resnet_finish,
                                               .update = resnet_update};

/* ---- the program ---- */

static pod_status net_check(const pod_step_request *request, const pod_work_layout *layout,
                            pod_error *err)
{
    for (int axis = POD_MESH_TENSOR; axis < POD_MESH_MEANINGS; axis++) {
        if (layout->size[axis] > 1) {
            return pod_fail(err, POD_E_INVALID,
                            "resnets are cut over data and fsdp; leave %s out of the mesh",
                            pod_mesh_axis_name((pod_mesh_axis)axis));
        }
    }
    if (request->dtype != POD_DTYPE_BF16) {
        return pod_fail(err, POD_E_USAGE, "resnets run in bf16; leave --dtype %s out",
                        pod_dtype_name(request->dtype));
    }
    return request->optimizer == POD_OPTIMIZER_MUON
               ? pod_fail(err, POD_E_USAGE,
                          "--optimizer muon is for the matrices of transformers; resnets have "
                          "sgd-momentum, lars and the others")
               : POD_OK;
}

static pod_status net_alloc(resnet *net, pod_error *err)
{
    const size_t parts = (size_t)net->tf.stage.request->microbatches;
    net->stem = calloc(parts, sizeof *net->stem);
    net->blocks = calloc(parts * (size_t)net->tf.stage.layers, sizeof *net->blocks);
    return net->stem != NULL && net->blocks != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "out of memory for %d blocks",
                          (int)net->tf.stage.layers);
}

pod_status pod_resnet_program(const pod_step_request *request, pod_step_work *work, int32_t number,
                              pod_error *err)
{
    const pod_work_layout *layout = &work->layout;
    resnet net = {
        .tf = {.model = request->model,
               .layout = layout,
               .program = &work->programs.stages[number],
               .tensor = 1,
               .expert = 1,
               .last_core = NONE,
               .keys_gather = NONE,
               .scatters = {NONE, NONE, NONE},
               .layer = -1}
    };
    pod_build *build = &net.tf.stage.build;
    POD_TRY(net_check(request, layout, err));
    pod_stage_init(&net.tf.stage, &resnet_stage_ops, request, work, number, err);
    net.tf.tokens =
        work->rows / pod_work_layout_pieces(layout, &layout->rows) / request->microbatches;
    net.tf.sequences = net.tf.tokens;
    build->dtype = POD_DTYPE_BF16;
    build->gather = pod_tf_use_gather;
    build->gather_context = &net.tf;
    build->st = net_alloc(&net, err);
    if (build->st == POD_OK) {
        build->st = pod_stage_build(&net.tf.stage);
    }
    const pod_status st = build->st;
    pod_stage_fini(&net.tf.stage);
    free(net.tf.bundles);
    free(net.stem);
    free(net.blocks);
    return st;
}
