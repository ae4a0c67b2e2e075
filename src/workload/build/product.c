/* SPDX-License-Identifier: Apache-2.0 */
/* Products of sharded arrays, and the collectives that bring arrays to another sharding. */
#include "workload/build/product.h"

#include <stdio.h>
#include <string.h>

static void list_drop(pod_axis_list *list, pod_mesh_axis axis)
{
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        if (list->axis[i] != axis) {
            list->axis[kept++] = list->axis[i];
        }
    }
    list->count = kept;
}

/** A collective from one array to another, maybe the same. */
typedef struct transfer {
    pod_coll_op op;
    const char *phase;
    const char *verb; /**< "gather", "scatter", "sum", "pass" */
    int32_t layer;
    int dim;
    int32_t shift;
    const pod_axis_list *axes;
    int32_t after; /**< one more op to wait for, or POD_OP_NONE */
} transfer;

static void transfer_add(pod_build *build, const transfer *t, const pod_array *in, pod_array *out)
{
    char name[POD_BUILD_NAME_MAX];
    const int32_t group = pod_build_group(build, t->axes);
    if (build->st != POD_OK) {
        return;
    }
    pod_build_name(name, t->phase, t->verb, in->sharding.array);
    pod_op op = pod_op_make(POD_OP_COLLECTIVE, name, t->layer);
    const pod_array *full = t->op == POD_ALL_GATHER ? out : in;
    const int32_t deps[2] = {in->op, t->after};
    op.op = t->op;
    op.group = group;
    op.dim = t->dim;
    op.shift = t->shift;
    op.dtype = in->dtype;
    op.in[0] = in->buffer;
    op.out = out->buffer;
    op.bytes = pod_buffer_bytes(&build->program->buffers[full->buffer]);
    out->op = pod_program_op(build->program, &op, deps, 2);
}

/** An array like `like` but with another sharding, in memory of the same kind or `kind`. */
static pod_array array_like(pod_build *build, const pod_array *like, const pod_sharding *sharding,
                            const char *name, pod_memory_kind kind)
{
    return pod_build_array(build, name, kind, false, like->dtype, sharding, like->size);
}

pod_array pod_build_gather(pod_build *build, const char *phase, int32_t layer,
                           const pod_array *array, int dim, const char *name, int32_t after)
{
    pod_sharding sharding = array->sharding;
    pod_axis_list *cut = &sharding.dim[dim].cut;
    if (build->st != POD_OK) {
        return *array;
    }
    const pod_axis_list axes = {.count = 1, .axis = {cut->axis[cut->count - 1]}};
    const transfer t = {.op = POD_ALL_GATHER,
                        .phase = phase,
                        .verb = "gather",
                        .layer = layer,
                        .dim = dim,
                        .axes = &axes,
                        .after = after};
    cut->count--;
    const pod_memory_kind kind = build->program->buffers[array->buffer].kind;
    const bool weights = kind == POD_MEMORY_WEIGHTS || kind == POD_MEMORY_COPIES;
    pod_array whole =
        array_like(build, array, &sharding, name, weights ? POD_MEMORY_GATHERED : kind);
    transfer_add(build, &t, array, &whole);
    return whole;
}

pod_array pod_build_scatter(pod_build *build, const char *phase, int32_t layer,
                            const pod_array *array, int dim, pod_mesh_axis axis, const char *name)
{
    pod_sharding sharding = array->sharding;
    pod_axis_list *cut = &sharding.dim[dim].cut;
    if (build->st != POD_OK) {
        return *array;
    }
    const pod_axis_list axes = {.count = 1, .axis = {axis}};
    const transfer t = {.op = POD_REDUCE_SCATTER,
                        .phase = phase,
                        .verb = "scatter",
                        .layer = layer,
                        .dim = dim,
                        .axes = &axes,
                        .after = POD_OP_NONE};
    list_drop(&sharding.partial, axis);
    cut->axis[cut->count++] = axis;
    pod_array shard =
        array_like(build, array, &sharding, name, build->program->buffers[array->buffer].kind);
    transfer_add(build, &t, array, &shard);
    return shard;
}

/** All-reduce over `axes`, into the same buffer or a new one. */
static pod_array sum_over(pod_build *build, const char *phase, int32_t layer,
                          const pod_array *array, const pod_axis_list *axes, const char *name)
{
    pod_array sum = *array;
    const transfer t = {.op = POD_ALL_REDUCE,
                        .phase = phase,
                        .verb = "sum",
                        .layer = layer,
                        .axes = axes,
                        .after = POD_OP_NONE};
    if (build->st != POD_OK) {
        return sum;
    }
    for (int i = 0; i < axes->count; i++) {
        list_drop(&sum.sharding.partial, axes->axis[i]);
    }
    if (name != NULL) {
        sum = array_like(build, array, &sum.sharding, name,
                         build->program->buffers[array->buffer].kind);
    }
    transfer_add(build, &t, array, &sum);
    return sum;
}

pod_array pod_build_sum(pod_build *build, const char *phase, int32_t layer, const pod_array *array)
{
    const pod_axis_list axes = array->sharding.partial;
    return axes.count == 0 ? *array : sum_over(build, phase, layer, array, &axes, NULL);
}

pod_array pod_build_permute(pod_build *build, const char *phase, int32_t layer,
                            const pod_array *array, const pod_axis_list *axes, int32_t shift,
                            const char *name)
{
    const transfer t = {.op = POD_PERMUTE,
                        .phase = phase,
                        .verb = "pass",
                        .layer = layer,
                        .shift = shift,
                        .axes = axes,
                        .after = POD_OP_NONE};
    if (build->st != POD_OK) {
        return *array;
    }
    pod_array moved = array_like(build, array, &array->sharding, name,
                                 build->program->buffers[array->buffer].kind);
    transfer_add(build, &t, array, &moved);
    return moved;
}

/* ---- products ---- */

static int dim_find(const pod_sharding *sharding, const char *name)
{
    for (int d = 0; d < sharding->ndims; d++) {
        if (strcmp(sharding->dim[d].name, name) == 0) {
            return d;
        }
    }
    return -1;
}

/** The array that holds the local products: a new one, or product->into. */
static pod_array product_array(pod_build *build, const pod_product *product,
                               const pod_sharded_matmul *plan, const int64_t size[2])
{
    char name[POD_BUILD_NAME_MAX + 8];
    if (product->into != NULL) {
        return *product->into;
    }
    (void)snprintf(name, sizeof name, "%s%s", product->name, plan->nafter > 0 ? ".part" : "");
    return pod_build_array(build, plan->nafter > 0 && product->sum_in_place ? product->name : name,
                           product->kind, false, build->dtype, &plan->product, size);
}

/** The convolution of what is local: its pictures, and its columns of the weights.
 *  @param[out] args  the op's, until it is added */
static void conv_local(pod_build *build, const pod_product *product, pod_op *op,
                       pod_conv_args *args)
{
    const pod_buffer *in[2] = {&build->program->buffers[op->in[0]],
                               &build->program->buffers[op->in[1]]};
    pod_conv_shape s = *product->conv;
    int64_t mkn[3];
    const bool by_input = product->conv_op == POD_CONV_INPUT;
    const int64_t pixels =
        by_input ? pod_conv_out(s.h, s.stride) * pod_conv_out(s.w, s.stride) : s.h * s.w;
    s.n = in[0]->rows / pixels;
    s.cout = by_input ? in[0]->columns : in[1]->columns;
    pod_conv_product(product->conv_op, &s, mkn);
    op->kind = POD_OP_CONV;
    *args = (pod_conv_args){.op = product->conv_op, .shape = s, .dtype = build->compute};
    op->conv = args;
    op->m = mkn[0];
    op->k = mkn[1];
    op->n = mkn[2];
}

/** Emit the matmul of what is local. The first operand gives the rows of the result. */
static pod_array product_local(pod_build *build, const pod_product *product,
                               const pod_sharded_matmul *plan)
{
    const char *row_name = plan->product.dim[0].name;
    const bool swapped = dim_find(&product->a->sharding, row_name) < 0;
    const pod_array *a = swapped ? product->b : product->a;
    const pod_array *b = swapped ? product->a : product->b;
    const int a_row = dim_find(&a->sharding, row_name);
    const int b_column = dim_find(&b->sharding, plan->product.dim[1].name);
    const int64_t product_size[2] = {a->size[a_row], b->size[b_column]};
    const int64_t *size = product->conv != NULL ? product->size : product_size;
    char name[POD_BUILD_NAME_MAX];
    pod_array result = product_array(build, product, plan, size);
    if (build->st != POD_OK) {
        return result;
    }
    pod_build_name(name, product->phase, product->conv != NULL ? "conv" : "matmul",
                   plan->product.array);
    pod_op op = pod_op_make(POD_OP_MATMUL, name, product->layer);
    const pod_buffer *in = &build->program->buffers[a->buffer];
    const pod_buffer *out = &build->program->buffers[result.buffer];
    const int32_t deps[3] = {a->op, b->op, result.op};
    op.in[0] = a->buffer;
    op.in[1] = b->buffer;
    op.out = result.buffer;
    op.transpose_a = a_row == 1;
    op.transpose_b = b_column == 0;
    op.m = out->rows;
    op.n = out->columns;
    op.k = a_row == 0 ? in->columns : in->rows;
    op.dtype = build->compute;
    op.accumulate = product->into != NULL;
    pod_conv_args conv;
    if (product->conv != NULL) {
        conv_local(build, product, &op, &conv);
    }
    result.op = pod_program_op(build->program, &op, deps, 3);
    pod_use *use = build->next_use > 0 ? &build->uses[build->next_use - 1] : NULL;
    if (use != NULL && (use->gathered.buffer == op.in[0] || use->gathered.buffer == op.in[1])) {
        use->last_op = result.op;
    }
    return result;
}

/** Carry out the steps on the result. */
static pod_array product_after(pod_build *build, const pod_product *product,
                               const pod_sharded_matmul *plan, pod_array result)
{
    for (int i = 0; i < plan->nafter && build->st == POD_OK; i++) {
        const pod_reshard_step *step = &plan->after[i];
        switch (step->op) {
        case POD_RESHARD_ALL_REDUCE:
            result = sum_over(build, product->phase, product->layer, &result, &step->axes,
                              product->sum_in_place ? NULL : product->name);
            break;
        case POD_RESHARD_REDUCE_SCATTER:
            for (int k = 0; k < step->axes.count; k++) {
                result = pod_build_scatter(build, product->phase, product->layer, &result,
                                           step->dim, step->axes.axis[k], product->name);
            }
            break;
        case POD_RESHARD_ALL_GATHER:
        case POD_RESHARD_ALL_TO_ALL:
        case POD_RESHARD_KEEP_PIECE:
            build->st = pod_fail(build->err, POD_E_INTERNAL, "%s wants a cut that no step makes",
                                 product->name);
            break;
        }
    }
    return result;
}

pod_array pod_build_matmul(pod_build *build, const pod_product *product)
{
    pod_sharded_matmul plan;
    if (build->st != POD_OK) {
        return *product->a;
    }
    build->st = pod_sharded_matmul_plan(&product->a->sharding, &product->b->sharding,
                                        &product->result, &plan, build->err);
    if (build->st == POD_OK && plan.nbefore > 0) {
        build->st =
            pod_fail(build->err, POD_E_INTERNAL, "%s: gather its operands before", product->name);
    }
    if (build->st != POD_OK) {
        return *product->a;
    }
    return product_after(build, product, &plan, product_local(build, product, &plan));
}
