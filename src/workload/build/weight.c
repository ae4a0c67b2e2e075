/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/weight.h"

#include "workload/build/product.h"

#include <stdio.h>
#include <string.h>

static void moments_make(pod_stage *stage, pod_weight *weight, const int64_t size[2])
{
    static const char suffix[2] = {'m', 'v'};
    const int moments = pod_optimizer_moments(stage->request->optimizer);
    for (int i = 0; i < moments; i++) {
        char name[POD_TENSOR_NAME_MAX];
        (void)snprintf(name, sizeof name, "%s.%c.%d", weight->name, suffix[i], (int)weight->layer);
        weight->moments[i] = pod_build_array(&stage->build, name, POD_MEMORY_OPTIMIZER, true,
                                             POD_DTYPE_F32, &weight->stored.sharding, size);
        pod_stage_tensor(stage, name, POD_TENSOR_MOMENT, &weight->moments[i], false);
    }
}

/** The copy in the model's dtype of a weight that is stored in f32. */
static pod_array weight_cast(pod_stage *stage, const pod_weight *weight)
{
    char name[POD_TENSOR_NAME_MAX];
    (void)snprintf(name, sizeof name, "%s.cast", weight->name);
    const pod_array empty =
        pod_build_array(&stage->build, name, POD_MEMORY_COPIES, false, stage->build.dtype,
                        &weight->stored.sharding, weight->stored.size);
    const pod_elementwise cast = {.name = "cast",
                                  .layer = weight->layer,
                                  .function = POD_VEC_COPY,
                                  .in = {&weight->stored},
                                  .flops = 1,
                                  .bytes = pod_dtype_size(POD_DTYPE_F32)
                                           + pod_dtype_size(stage->build.dtype)};
    return pod_build_vector(&stage->build, &cast, &empty);
}

void pod_weight_make(pod_stage *stage, pod_weight *weight, int32_t layer,
                     const pod_sharding *sharding, const int64_t size[2])
{
    const bool train = stage->request->mode == POD_STEP_TRAIN;
    const bool wide = train && stage->request->optimizer != POD_OPTIMIZER_SGD;
    char name[POD_TENSOR_NAME_MAX];
    *weight = (pod_weight){.layer = layer};
    memcpy(weight->name, sharding->array, sizeof weight->name);
    (void)snprintf(name, sizeof name, "%s.%d", weight->name, (int)layer);
    weight->stored = pod_build_array(&stage->build, name, POD_MEMORY_WEIGHTS, true,
                                     wide ? POD_DTYPE_F32 : stage->build.dtype, sharding, size);
    weight->compute = weight->stored;
    pod_stage_tensor(stage, name, POD_TENSOR_WEIGHT, &weight->stored, false);
    if (wide) {
        moments_make(stage, weight, size);
        weight->compute = weight_cast(stage, weight);
    }
}

/** Axes whose gradients are summed once, after the last microbatch. */
static pod_axis_list late_axes(const pod_stage *stage)
{
    pod_axis_list late = {0};
    const pod_axis_list *rows = &stage->build.layout->rows;
    for (int i = 0; i < rows->count; i++) {
        if (rows->axis[i] != POD_MESH_FSDP) {
            late.axis[late.count++] = rows->axis[i];
        }
    }
    return late;
}

static void gradient_add(pod_stage *stage, pod_weight *weight, const pod_array *more)
{
    const pod_elementwise add = {
        .name = "bwd.add",
        .layer = weight->layer,
        .function = POD_VEC_ADD,
        .in = {&weight->gradient, more},
        .flops = 1,
        .bytes = 3 * pod_dtype_size(more->dtype)
    };
    weight->gradient = pod_build_vector(&stage->build, &add, &weight->gradient);
}

/** What a product is to become: until the last piece partial sums over all row axes, whole over fsdp;
 *  then as the weight is stored, but for sums that wait for the last microbatch. */
static pod_sharding gradient_sharding(const pod_stage *stage, const pod_weight *weight,
                                      pod_gradient_piece which)
{
    pod_sharding sharding = weight->stored.sharding;
    (void)snprintf(sharding.array, sizeof sharding.array, "d%.*s", POD_SHARDED_NAME_MAX - 2,
                   weight->name);
    if (which.piece == which.pieces - 1) {
        if (stage->request->microbatches > 1) {
            sharding.partial = late_axes(stage);
        }
        return sharding;
    }
    sharding.partial = stage->build.layout->rows;
    for (int d = 0; d < 2; d++) {
        pod_axis_list *cut = &sharding.dim[d].cut;
        cut->count -= cut->count > 0 && cut->axis[cut->count - 1] == POD_MESH_FSDP;
    }
    return sharding;
}

void pod_weight_gradient(pod_stage *stage, pod_weight *weight, pod_gradient_piece which,
                         const pod_array *a, const pod_array *b)
{
    const bool scattered = stage->build.layout->fsdp.count > 0;
    const bool first = which.piece == 0 && (stage->part == 0 || scattered);
    char name[POD_TENSOR_NAME_MAX];
    pod_product product = {
        .phase = "bwd",
        .layer = weight->layer,
        .name = name,
        .a = a,
        .b = b,
        .result = gradient_sharding(stage, weight, which),
        .kind = POD_MEMORY_GRADIENTS,
        .conv = weight->of_conv ? &weight->conv : NULL,
        .conv_op = POD_CONV_WEIGHTS,
        .size = {weight->stored.size[0], weight->stored.size[1]},
        .into = first ? NULL : &weight->partial
    };
    (void)snprintf(name, sizeof name, "%s.%d", product.result.array, (int)weight->layer);
    const pod_array gradient = pod_build_matmul(&stage->build, &product);
    weight->partial = gradient;
    if (which.piece < which.pieces - 1) {
        return;
    }
    if (stage->part > 0 && scattered) {
        gradient_add(stage, weight, &gradient);
    } else {
        weight->gradient = gradient;
    }
    if (stage->part == stage->request->microbatches - 1) {
        weight->gradient = pod_build_sum(&stage->build, "bwd", weight->layer, &weight->gradient);
        pod_stage_tensor(stage, name, POD_TENSOR_GRADIENT, &weight->gradient, false);
    }
}

/* A power of two, so that data of small integers stays exact. */
static const double learning_rate = 0.5;

static void update_adam(pod_stage *stage, pod_weight *weight, const char *name)
{
    static const struct {
        pod_vector_function function;
        double flops;
    } moments[2] = {
        {POD_VEC_ADAM_M, 3},
        {POD_VEC_ADAM_V, 4}
    };
    for (int i = 0; i < 2; i++) {
        const pod_elementwise moment = {
            .name = name,
            .layer = weight->layer,
            .function = moments[i].function,
            .in = {&weight->moments[i], &weight->gradient},
            .flops = moments[i].flops,
            .bytes = 9
        }; /* the moment twice, half of the gradient */
        weight->moments[i] = pod_build_vector(&stage->build, &moment, &weight->moments[i]);
    }
    const pod_elementwise step = {
        .name = name,
        .layer = weight->layer,
        .function = POD_VEC_ADAM_W,
        .in = {&weight->stored, &weight->moments[0], &weight->moments[1]},
        .rate = learning_rate,
        .flops = 6,
        .bytes = 8
    }; /* the moments are still at hand in the fused update */
    weight->stored = pod_build_vector(&stage->build, &step, &weight->stored);
}

/** The weight's moment: 0.9 of what it was, and the gradient. @return what the weight goes along */
static const pod_array *update_momentum(pod_stage *stage, pod_weight *weight, const char *name)
{
    const pod_elementwise moment = {
        .name = name,
        .layer = weight->layer,
        .function = POD_VEC_MOMENTUM,
        .in = {&weight->moments[0], &weight->gradient},
        .flops = 2,
        .bytes = 2 * pod_dtype_size(POD_DTYPE_F32) + pod_dtype_size(weight->gradient.dtype)
    };
    weight->moments[0] = pod_build_vector(&stage->build, &moment, &weight->moments[0]);
    return &weight->moments[0];
}

void pod_weight_update(pod_stage *stage, pod_weight *weight)
{
    char name[POD_TENSOR_NAME_MAX];
    (void)snprintf(name, sizeof name, "update.%s", weight->name);
    if (stage->request->optimizer == POD_OPTIMIZER_ADAM) {
        update_adam(stage, weight, name);
        return;
    }
    const bool momentum = stage->request->optimizer == POD_OPTIMIZER_MOMENTUM;
    const pod_array *along = momentum ? update_momentum(stage, weight, name) : &weight->gradient;
    /* the moment is still at hand in the fused update */
    const int passes = momentum ? 2 : 3;
    const pod_elementwise step = {
        .name = name,
        .layer = weight->layer,
        .function = POD_VEC_SGD,
        .in = {&weight->stored, along},
        .rate = learning_rate,
        .flops = 2,
        .bytes = passes * pod_dtype_size(weight->stored.dtype)
    };
    weight->stored = pod_build_vector(&stage->build, &step, &weight->stored);
}
