/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/sharding.h"

#include <string.h>

static int dim_find(const pod_sharding *sharding, const char *name)
{
    for (int d = 0; d < sharding->ndims; d++) {
        if (strcmp(sharding->dim[d].name, name) == 0) {
            return d;
        }
    }
    return -1;
}

static bool list_has(const pod_axis_list *list, pod_mesh_axis axis)
{
    for (int i = 0; i < list->count; i++) {
        if (list->axis[i] == axis) {
            return true;
        }
    }
    return false;
}

static void list_append(pod_axis_list *list, const pod_axis_list *more)
{
    for (int i = 0; i < more->count; i++) {
        list->axis[list->count++] = more->axis[i];
    }
}

static void list_remove(pod_axis_list *list, pod_mesh_axis axis)
{
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        if (list->axis[i] != axis) {
            list->axis[kept++] = list->axis[i];
        }
    }
    list->count = kept;
}

/** How many outer axes two lists have in common. */
static int list_common(const pod_axis_list *a, const pod_axis_list *b)
{
    int common = 0;
    while (common < a->count && common < b->count && a->axis[common] == b->axis[common]) {
        common++;
    }
    return common;
}

/** The axes from position `from` on. */
static pod_axis_list list_tail(const pod_axis_list *list, int from)
{
    pod_axis_list tail = {.count = list->count - from};
    for (int i = 0; i < tail.count; i++) {
        tail.axis[i] = list->axis[from + i];
    }
    return tail;
}

/** Cut `from` and all axes after it off the list of a dim: an all-gather. */
static void gather_tail(pod_sharding *array, int dim, int from, pod_reshard_step *steps,
                        int *nsteps)
{
    pod_axis_list *cut = &array->dim[dim].cut;
    if (from == cut->count) {
        return;
    }
    pod_reshard_step *step = &steps[(*nsteps)++];
    *step = (pod_reshard_step){
        .op = POD_RESHARD_ALL_GATHER, .dim = dim, .to_dim = -1, .axes = list_tail(cut, from)};
    memcpy(step->array, array->array, sizeof step->array);
    cut->count = from;
}

static pod_status check_dims(const pod_sharding *a, const pod_sharding *b, const pod_sharding *c,
                             pod_error *err)
{
    const pod_sharding *const arrays[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        for (int d = 0; d < arrays[i]->ndims; d++) {
            const char *name = arrays[i]->dim[d].name;
            const int uses =
                (dim_find(a, name) >= 0) + (dim_find(b, name) >= 0) + (dim_find(c, name) >= 0);
            if (uses != 2) {
                return pod_fail(err, POD_E_INVALID,
                                "dim %s is in %d of %s, %s and %s; a matmul has each dim in two of "
                                "them",
                                name, uses, a->array, b->array, c->array);
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        if (arrays[i]->partial.count > 0) {
            return pod_fail(err, POD_E_INVALID,
                            "%s holds partial sums over %s; all-reduce or reduce-scatter it first",
                            arrays[i]->array, pod_mesh_axis_name(arrays[i]->partial.axis[0]));
        }
    }
    return POD_OK;
}

/** Cases 1 to 3: what the contracting dims need. */
static void align_contracting(pod_sharded_matmul *plan)
{
    for (int d = 0; d < plan->a.ndims; d++) {
        const int e = dim_find(&plan->b, plan->a.dim[d].name);
        if (e < 0) {
            continue;
        }
        const int common = list_common(&plan->a.dim[d].cut, &plan->b.dim[e].cut);
        gather_tail(&plan->a, d, common, plan->before, &plan->nbefore);
        gather_tail(&plan->b, e, common, plan->before, &plan->nbefore);
        list_append(&plan->product.partial, &plan->a.dim[d].cut);
    }
}

/** The sharding that the local products have, or case 4. */
static pod_status make_product(pod_sharded_matmul *plan, const pod_sharding *c, pod_error *err)
{
    pod_sharding *product = &plan->product;
    unsigned seen = 0;
    memcpy(product->array, c->array, sizeof product->array);
    product->ndims = c->ndims;
    for (int d = 0; d < c->ndims; d++) {
        const int in_a = dim_find(&plan->a, c->dim[d].name);
        const int in_b = dim_find(&plan->b, c->dim[d].name);
        product->dim[d] = in_a >= 0 ? plan->a.dim[in_a] : plan->b.dim[in_b];
        for (int i = 0; i < product->dim[d].cut.count; i++) {
            const pod_mesh_axis axis = product->dim[d].cut.axis[i];
            if ((seen >> axis & 1U) != 0 || list_has(&product->partial, axis)) {
                char a[POD_SHARDING_TEXT_MAX];
                char b[POD_SHARDING_TEXT_MAX];
                return pod_fail(err, POD_E_INVALID,
                                "%s · %s would cut the product twice by %s; all-gather one of them "
                                "over %s first",
                                pod_sharding_print(&plan->a, a, sizeof a),
                                pod_sharding_print(&plan->b, b, sizeof b), pod_mesh_axis_name(axis),
                                pod_mesh_axis_name(axis));
            }
            seen |= 1U << axis;
        }
    }
    return POD_OK;
}

/** C on its way from the product to what is wanted. */
typedef struct resharding {
    pod_sharding now;
    const pod_sharding *wanted;
    pod_reshard_step *steps;
    int *nsteps;
} resharding;

static bool cuts_some_dim(const pod_sharding *sharding, pod_mesh_axis axis)
{
    for (int d = 0; d < sharding->ndims; d++) {
        if (list_has(&sharding->dim[d].cut, axis)) {
            return true;
        }
    }
    return false;
}

/** Add `axis` to the step before if it does the same to the same dim, else to a new step. */
static void add_step(resharding *r, pod_reshard_op op, int dim, pod_mesh_axis axis)
{
    POD_ASSERT(r->steps != NULL);
    pod_reshard_step *last = *r->nsteps > 0 ? &r->steps[*r->nsteps - 1] : NULL;
    if (last == NULL || last->op != op || last->dim != dim) {
        last = &r->steps[(*r->nsteps)++];
        *last = (pod_reshard_step){.op = op, .dim = dim, .to_dim = -1};
        memcpy(last->array, r->now.array, sizeof last->array);
    }
    last->axes.axis[last->axes.count++] = axis;
}

/** Cut dim d further, as wanted, until an axis comes that still cuts another dim. */
static void extend_dim(resharding *r, int d)
{
    pod_axis_list *cut = &r->now.dim[d].cut;
    const pod_axis_list *wanted = &r->wanted->dim[d].cut;
    if (list_common(cut, wanted) != cut->count) {
        return;
    }
    while (cut->count < wanted->count) {
        const pod_mesh_axis axis = wanted->axis[cut->count];
        if (cuts_some_dim(&r->now, axis)) {
            return;
        }
        const bool summed = list_has(&r->now.partial, axis);
        add_step(r, summed ? POD_RESHARD_REDUCE_SCATTER : POD_RESHARD_KEEP_PIECE, d, axis);
        list_remove(&r->now.partial, axis);
        cut->axis[cut->count++] = axis;
    }
}

static void extend_all(resharding *r)
{
    for (int d = 0; d < r->now.ndims; d++) {
        extend_dim(r, d);
    }
}

/** Sum over the axes that are to cut nothing. */
static void reduce_rest(resharding *r)
{
    const pod_axis_list partial = r->now.partial;
    for (int i = 0; i < partial.count; i++) {
        const pod_mesh_axis axis = partial.axis[i];
        if (!list_has(&r->wanted->partial, axis) && !cuts_some_dim(r->wanted, axis)) {
            add_step(r, POD_RESHARD_ALL_REDUCE, -1, axis);
            list_remove(&r->now.partial, axis);
        }
    }
}

/** A dim that is next to be cut by exactly these axes, or -1. */
static int dim_waiting_for(const resharding *r, const pod_axis_list *axes)
{
    for (int d = 0; d < r->now.ndims; d++) {
        const pod_axis_list *cut = &r->now.dim[d].cut;
        const pod_axis_list *wanted = &r->wanted->dim[d].cut;
        if (list_common(cut, wanted) == cut->count && wanted->count >= cut->count + axes->count) {
            const pod_axis_list next = list_tail(wanted, cut->count);
            if (list_common(&next, axes) == axes->count) {
                return d;
            }
        }
    }
    return -1;
}

/** Axes that are no longer to cut dim d: to another dim, or gathered. */
static void release_dim(resharding *r, int d)
{
    pod_axis_list *cut = &r->now.dim[d].cut;
    const int common = list_common(cut, &r->wanted->dim[d].cut);
    if (common == cut->count) {
        return;
    }
    const pod_axis_list tail = list_tail(cut, common);
    const int to_dim = dim_waiting_for(r, &tail);
    gather_tail(&r->now, d, common, r->steps, r->nsteps);
    if (to_dim >= 0) {
        pod_reshard_step *step = &r->steps[*r->nsteps - 1];
        step->op = POD_RESHARD_ALL_TO_ALL;
        step->to_dim = to_dim;
        list_append(&r->now.dim[to_dim].cut, &tail);
    }
}

pod_status pod_sharded_matmul_plan(const pod_sharding *a, const pod_sharding *b,
                                   const pod_sharding *c, pod_sharded_matmul *plan, pod_error *err)
{
    POD_TRY(check_dims(a, b, c, err));
    *plan = (pod_sharded_matmul){.a = *a, .b = *b};
    align_contracting(plan);
    POD_TRY(make_product(plan, c, err));
    for (int i = 0; i < c->partial.count; i++) {
        if (!list_has(&plan->product.partial, c->partial.axis[i])) {
            return pod_fail(err, POD_E_INVALID,
                            "%s is wanted as partial sums over %s, but the product has none there",
                            c->array, pod_mesh_axis_name(c->partial.axis[i]));
        }
    }
    resharding r = {
        .now = plan->product, .wanted = c, .steps = plan->after, .nsteps = &plan->nafter};
    extend_all(&r);
    reduce_rest(&r);
    for (int d = 0; d < r.now.ndims; d++) {
        release_dim(&r, d);
    }
    extend_all(&r);
    return POD_OK;
}
