/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers and ops stand for all of a transformer's. */
#include "make.h"

#include "models/model_layer.h"
#include "tables.h"
#include "workload/transformer/periodic.h"

static pod_model model_of(const char *name, int64_t layers)
{
    pod_model model = model_named(name);
    model.layers = layers > 0 ? layers : model.layers;
    return model;
}

Test(periodic, few_layers_keep_the_pattern)
{
    static const struct {
        const char *name;
        int32_t stages;
        int64_t few;
        int64_t period;
    } rows[] = {
        {"llama3.1-8b",   1, 4,  2 }, /* 32 layers alike */
        {"llama3.1-405b", 1, 4,  2 },
        {"llama3.1-405b", 2, 10, 4 }, /* 126: alike modulo 4 */
        {"gemma3-12b",    1, 12, 12}, /* one in six is global */
        {"deepseek-v3",   1, 11, 2 }, /* three dense ones first */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pod_model model = model_of(rows[i].name, 0);
        pod_periodic p;
        cr_assert(pod_periodic_find(&model, rows[i].stages, &p), "%s", rows[i].name);
        cr_expect_eq(p.few, rows[i].few, "%s: %d", rows[i].name, (int)p.few);
        cr_expect_eq(p.period, rows[i].period, "%s", rows[i].name);
        cr_expect_eq(p.more + p.times * p.period, model.layers, "%s", rows[i].name);
    }
}

Test(periodic, the_fewest_layers_are_one_period)
{
    static const struct {
        const char *name;
        int32_t stages;
        int64_t few; /* 0: pod_periodic_find has no more */
    } rows[] = {
        {"llama3.1-8b",   1, 2},
        {"llama3.1-405b", 2, 6}, /* 126: two more than a multiple of 4 */
        {"gemma3-12b",    1, 0}, /* 12 of one period are enough for it */
        {"deepseek-v3",   1, 5}, /* three dense ones first */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pod_model model = model_of(rows[i].name, 0);
        pod_periodic p = {.few = 0};
        const bool fewer = pod_periodic_find_fewest(&model, rows[i].stages, &p);
        cr_expect_eq(fewer, rows[i].few > 0, "%s", rows[i].name);
        cr_expect(!fewer || p.few == rows[i].few, "%s: %d", rows[i].name, (int)p.few);
        cr_expect(!fewer || p.more + p.times * p.period == model.layers, "%s", rows[i].name);
    }
}

Test(periodic, nothing_repeats)
{
    const pod_model shallow = model_of("llama3.1-8b", 7);
    const pod_model uneven = model_of("gemma4-4b", 0); /* its last layers share keys and values */
    const pod_model deepseek = model_of("deepseek-v3", 0);
    pod_periodic p;
    cr_expect_not(pod_periodic_find(&shallow, 1, &p));
    cr_expect_not(pod_periodic_find(&uneven, 1, &p));
    cr_expect_not(pod_periodic_find(&deepseek, 2, &p));
}

static void built(step_case *c, const pod_model *model, int64_t layers)
{
    step_prepare(c, "v5p:2x2x2", "none", "fsdp=4,tensor=2", "mlp:layers=1,d_model=8,d_ff=8", 8);
    c->model = *model;
    c->model.layers = layers;
    c->request.seq = 128;
    c->request.optimizer = POD_OPTIMIZER_ADAM;
    c->request.remat = POD_REMAT_FULL;
    step_build(c);
}

/* Every op has one of its name, of its own layer in front, of the layer as far from the end behind, and of a layer of
 * its kind between. */
static void check_ops(const char *name)
{
    const pod_model model = model_of(name, 0);
    pod_periodic p;
    step_case full;
    step_case more;
    pod_error err = {0};
    int32_t *stand_in = NULL;
    cr_assert(pod_periodic_find(&model, 1, &p));
    built(&full, &model, model.layers);
    built(&more, &model, p.more);
    const pod_program *of = &full.work.programs.stages[0];
    const pod_program *by = &more.work.programs.stages[0];
    cr_assert_eq(pod_periodic_ops(&p, of, by, &stand_in, &err), POD_OK);
    for (int32_t i = 0; i < of->nops; i++) {
        cr_assert_neq(stand_in[i], POD_OP_NONE, "%s: %s", name, of->ops[i].name);
        const pod_op *op = &of->ops[i];
        const pod_op *like = &by->ops[stand_in[i]];
        cr_assert_str_eq(op->name, like->name);
        cr_assert_eq(op->layer < 0, like->layer < 0);
        if (op->layer >= 0) {
            const pod_layer a = pod_model_layer(&full.model, op->layer);
            const pod_layer b = pod_model_layer(&more.model, like->layer);
            cr_assert_eq(a.window, b.window, "%s: layer %d by %d", name, (int)op->layer,
                         (int)like->layer);
            cr_assert_eq(a.experts, b.experts, "%s: layer %d by %d", name, (int)op->layer,
                         (int)like->layer);
        }
        if (op->layer == model.layers - 1) {
            cr_assert_eq(like->layer, p.more - 1);
        }
        if (op->layer == 0) {
            cr_assert_eq(like->layer, 0);
        }
    }
    free(stand_in);
    step_free(&full);
    step_free(&more);
}

Test(periodic, ops_have_stand_ins)
{
    check_ops("llama3.1-8b");
    check_ops("gemma3-12b");
    check_ops("llama4-maverick");
    check_ops("deepseek2-16b");
}

/* The same op of the same layer from the front, or from the back. */
Test(periodic, ops_have_twins)
{
    const pod_model model = model_of("llama3.1-8b", 0);
    pod_periodic p;
    step_case few;
    step_case more;
    pod_error err = {0};
    int32_t *twin = NULL;
    cr_assert(pod_periodic_find_fewest(&model, 1, &p));
    built(&few, &model, p.few);
    built(&more, &model, p.more);
    const pod_program *of = &few.work.programs.stages[0];
    const pod_program *by = &more.work.programs.stages[0];
    cr_assert_eq(pod_periodic_twins(&p, of, by, &twin, &err), POD_OK);
    for (int32_t i = 0; i < of->nops; i++) {
        cr_assert_neq(twin[i], POD_OP_NONE, "%s", of->ops[i].name);
        cr_expect_str_eq(of->ops[i].name, by->ops[twin[i]].name);
        const int32_t layer = by->ops[twin[i]].layer;
        cr_expect_eq(layer, of->ops[i].layer == 1 ? 3 : of->ops[i].layer, "%s", of->ops[i].name);
    }
    free(twin);
    step_free(&few);
    step_free(&more);
}
