/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of a transformer: core ops in order, communication beside them. */
#include "workload/transformer/transformer_ops.h"

#include "workload/transformer/transformer_numbers.h"

#include <string.h>

int32_t pod_tf_buffer(pod_tf *tf, const char *name, pod_memory_kind kind, pod_dtype dtype,
                      int64_t rows, int64_t columns)
{
    if (tf->stage.build.st != POD_OK) {
        return POD_OP_NONE;
    }
    const bool persistent = kind == POD_MEMORY_WEIGHTS || kind == POD_MEMORY_OPTIMIZER
                            || kind == POD_MEMORY_INPUT || kind == POD_MEMORY_CACHE;
    return pod_program_buffer(tf->program, name, kind, persistent, dtype, rows, columns);
}

void pod_tf_wait(pod_tf *tf, int32_t op)
{
    enum { WAITS_MAX = sizeof tf->waits / sizeof tf->waits[0] };
    if (op != POD_OP_NONE && op != tf->last_core && tf->stage.build.st == POD_OK) {
        POD_ASSERT(tf->nwaits < WAITS_MAX);
        tf->waits[tf->nwaits++] = op;
    }
}

static void core_op(pod_tf *tf, pod_op *op, const int32_t touch[POD_OP_TOUCHES_MAX])
{
    if (tf->stage.build.st != POD_OK) {
        return;
    }
    memcpy(op->touch, touch, sizeof op->touch);
    tf->last_core = pod_program_op(tf->program, op, tf->waits, tf->nwaits);
    tf->nwaits = 0;
    tf->came = POD_OP_NONE;
}

void pod_tf_matmul_of(pod_tf *tf, pod_dtype dtype, const char *name, const int64_t size[3],
                      int64_t count, const int32_t touch[POD_OP_TOUCHES_MAX])
{
    pod_op op = pod_op_make(POD_OP_MATMUL, name, tf->layer);
    op.m = size[0];
    op.k = size[1];
    op.n = size[2];
    op.count = count;
    op.sustained = true;
    op.dtype = dtype;
    core_op(tf, &op, touch);
}

void pod_tf_matmul(pod_tf *tf, const char *name, const int64_t size[3], int64_t count,
                   const int32_t touch[POD_OP_TOUCHES_MAX])
{
    /* the head and the embedding of a step that trains aren't quantised */
    const bool ends = tf->layer < 0 && tf->stage.request->mode <= POD_STEP_FORWARD;
    pod_tf_matmul_of(tf, ends ? POD_DTYPE_BF16 : tf->stage.build.compute, name, size, count, touch);
}

void pod_tf_conv(pod_tf *tf, const char *name, pod_conv_op what, const pod_conv_shape *shape,
                 const int32_t touch[POD_OP_TOUCHES_MAX])
{
    int64_t mkn[3];
    pod_op op = pod_op_make(POD_OP_CONV, name, tf->layer);
    pod_conv_product(what, shape, mkn);
    op.m = mkn[0];
    op.k = mkn[1];
    op.n = mkn[2];
    op.sustained = true;
    op.dtype = POD_DTYPE_BF16;
    const pod_conv_args args = {.op = what, .shape = *shape, .dtype = POD_DTYPE_BF16};
    op.conv = &args;
    core_op(tf, &op, touch);
}

void pod_tf_grouped(pod_tf *tf, const char *name, const pod_grouped_args *args,
                    const int32_t touch[POD_OP_TOUCHES_MAX])
{
    pod_op op = pod_op_make(POD_OP_MATMUL, name, tf->layer);
    op.m = args->m;
    op.k = args->k;
    op.n = args->n;
    op.sustained = true;
    op.dtype = args->dtype;
    op.grouped = args;
    core_op(tf, &op, touch);
}

/** HBM passes of an array of bf16 that becomes one byte an element: with fixed scales read and written, else its
 *  largest value is found first; bytes an element. */
static int64_t quantize_bytes(const pod_tf *tf, pod_quantization how)
{
    enum { STATIC = 3, DYNAMIC = 5 };
    const bool fixed =
        how == POD_QUANTIZATION_STATIC
        || (how == POD_QUANTIZATION_DEFAULT && tf->stage.build.compute == POD_DTYPE_FP8);
    return tf->stage.build.compute == POD_DTYPE_BF16 ? 0 : fixed ? STATIC : DYNAMIC;
}

static void quantize(pod_tf *tf, const char *name, int64_t bytes, int64_t elements, int32_t buffer)
{
    const int32_t touch[POD_OP_TOUCHES_MAX] = {buffer, POD_OP_NONE, POD_OP_NONE, POD_OP_NONE};
    if (bytes > 0) {
        pod_tf_vector(tf, name, (double)elements, bytes * elements, touch);
    }
}

void pod_tf_quantize(pod_tf *tf, int64_t elements, int32_t buffer)
{
    quantize(tf, "quantize", quantize_bytes(tf, tf->stage.request->settings.quantize_activations),
             elements, buffer);
}

void pod_tf_quantize_weights(pod_tf *tf, int64_t elements, int32_t buffer)
{
    quantize(tf, "quantize.weights",
             quantize_bytes(tf, tf->stage.request->settings.quantize_weights), elements, buffer);
}

void pod_tf_delay(pod_tf *tf, const char *name, pod_time_ps time_ps)
{
    static const int32_t nothing[POD_OP_TOUCHES_MAX] = {POD_OP_NONE, POD_OP_NONE, POD_OP_NONE,
                                                        POD_OP_NONE};
    pod_op op = pod_op_make(POD_OP_VECTOR, name, tf->layer);
    op.dtype = POD_DTYPE_BF16;
    op.fixed_ps = time_ps;
    core_op(tf, &op, nothing);
}

void pod_tf_vector(pod_tf *tf, const char *name, double elements, int64_t bytes,
                   const int32_t touch[POD_OP_TOUCHES_MAX])
{
    enum { OPS_PER_ELEMENT = 8 };
    pod_op op = pod_op_make(POD_OP_VECTOR, name, tf->layer);
    op.dtype = POD_DTYPE_BF16;
    op.flops = elements * OPS_PER_ELEMENT;
    op.hbm_bytes = bytes;
    core_op(tf, &op, touch);
}

void pod_tf_attention(pod_tf *tf, const char *name, const pod_attention_args *args,
                      const int32_t touch[POD_OP_TOUCHES_MAX])
{
    pod_op op = pod_op_make(POD_OP_ATTENTION, name, tf->layer);
    op.dtype = POD_DTYPE_BF16;
    op.attention = args;
    core_op(tf, &op, touch);
}

void pod_tf_compute(pod_tf *tf, const char *name, double unit_s, int64_t bytes,
                    const int32_t touch[POD_OP_TOUCHES_MAX])
{
    pod_op op = pod_op_make(POD_OP_COMPUTE, name, tf->layer);
    op.dtype = POD_DTYPE_BF16;
    op.unit_ps = pod_time_from_s(unit_s);
    op.hbm_bytes = bytes;
    core_op(tf, &op, touch);
}

int32_t pod_tf_collective(pod_tf *tf, pod_coll_op what, const char *name, const pod_axis_list *axes,
                          int64_t elements, pod_dtype dtype, int32_t after,
                          const int32_t touch[POD_OP_TOUCHES_MAX])
{
    const int32_t pieces = pod_work_layout_pieces(tf->layout, axes);
    if (pieces == 1 || tf->stage.build.st != POD_OK) {
        return after;
    }
    const int32_t group = pod_build_group(&tf->stage.build, axes);
    if (tf->stage.build.st != POD_OK) {
        return POD_OP_NONE;
    }
    const int32_t deps[2] = {tf->last_core, after};
    pod_op op = pod_op_make(POD_OP_COLLECTIVE, name, tf->layer);
    op.op = what;
    op.group = group;
    op.dtype = dtype;
    op.bytes = (elements + pieces - 1) / pieces * pieces * pod_dtype_size(dtype);
    memcpy(op.touch, touch, sizeof op.touch);
    return pod_program_op(tf->program, &op, deps, 2);
}

int32_t pod_tf_host(pod_tf *tf, const char *name, int64_t bytes, int32_t after, int32_t buffer)
{
    if (tf->stage.build.st != POD_OK) {
        return POD_OP_NONE;
    }
    const int32_t deps[2] = {tf->last_core, after};
    pod_op op = pod_op_make(POD_OP_HOST, name, tf->layer);
    op.bytes = bytes;
    op.touch[0] = buffer;
    return pod_program_op(tf->program, &op, deps, 2);
}

int32_t pod_tf_sum(pod_tf *tf, const char *name, int32_t buffer, int64_t width, int32_t after)
{
    const int32_t touch[POD_OP_TOUCHES_MAX] = {buffer, POD_OP_NONE, POD_OP_NONE, POD_OP_NONE};
    const int32_t op = pod_tf_collective(tf, POD_ALL_REDUCE, name, &tf->layout->tensor,
                                         tf->tokens * width, POD_DTYPE_BF16, after, touch);
    if (op != after) {
        const int32_t partial = pod_tf_number(tf, buffer);
        pod_tf_number_move(tf, op, partial, pod_tf_number_next(tf, buffer), (const int[2]){0, 0});
    }
    return op;
}
