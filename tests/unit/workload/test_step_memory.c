/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a step from few of its layers is that of its whole programs. */
#include "make.h"

#include "base/rng.h"
#include "tables.h"

#include "../sample.h"

typedef struct layout_row {
    const char *mesh;
    int32_t microbatches;
} layout_row;

static const pod_remat_plan plans[] = {
    {.hbm = 1U << POD_KEEP_INPUT                                             },
    {.host = 1U << POD_KEEP_INPUT,                                             .narrow = true},
    {.hbm = 1U << POD_KEEP_INPUT | 1U << POD_KEEP_MLPWI | 1U << POD_KEEP_OUT,
     .host = 1U << POD_KEEP_QUERY | 1U << POD_KEEP_KEY | 1U << POD_KEEP_VALUE},
    {.hbm = 1U << POD_KEEP_INPUT | 1U << POD_KEEP_CONTEXT | 1U << POD_KEEP_MLPWO},
};
enum { NPLANS = sizeof plans / sizeof plans[0] };

static void prepare(step_case *c, const pod_model *model, const layout_row *row)
{
    step_prepare(c, "v5p:4x4x4", "xyz", row->mesh, "mlp:layers=1,d_model=8,d_ff=8", 256);
    c->model = *model;
    c->request.seq = 128;
    c->request.optimizer = POD_OPTIMIZER_ADAM;
    c->request.microbatches = row->microbatches;
}

/** @return whether it was found without the programs of all layers */
static bool check(step_case *c, const char *mesh)
{
    pod_step_work measured;
    pod_error err = {0};
    const pod_status st = pod_step_measure(&c->request, &measured, &err);
    const bool few = measured.programs.stages == NULL;
    cr_assert_eq(pod_step_build(&c->request, &c->work, NULL), st, "%s: %s", mesh, err.text);
    cr_assert_eq(measured.memory.peak_bytes, c->work.memory.peak_bytes, "%s %s: %lld, not %lld",
                 c->model.name, mesh, (long long)measured.memory.peak_bytes,
                 (long long)c->work.memory.peak_bytes);
    cr_assert_eq(measured.stage, c->work.stage, "%s %s", c->model.name, mesh);
    for (int kind = 0; kind < POD_MEMORY_KINDS; kind++) {
        cr_assert_eq(measured.memory.by_kind[kind], c->work.memory.by_kind[kind], "%s %s %s",
                     c->model.name, mesh, pod_memory_kind_name((pod_memory_kind)kind));
    }
    pod_step_work_fini(&measured);
    pod_step_work_fini(&c->work);
    return st == POD_OK && few;
}

/** Every model of the table on layouts of all axes, with what is kept in HBM, on the host and nowhere. */
Test(step_memory, few_layers_and_microbatches_say_what_all_need)
{
    static const layout_row rows[] = {
        {"fsdp=64",                    1 },
        {"data=4,fsdp=16",             4 },
        {"fsdp=16,tensor=4",           16},
        {"data=32,tensor=2",           8 },
        {"fsdp=8,sequence=2,tensor=4", 1 },
        {"expert=8,fsdp=8",            2 },
        {"pipeline=2,fsdp=32",         4 },
        {"pipeline=4,fsdp=4,tensor=4", 16},
    };
    enum { NROWS = sizeof rows / sizeof rows[0] };
    int few = 0;
    int number = 0;
    for (int row = 0; row < MODELS_OF_ALL_KINDS; row++) {
        const pod_model model = model_named(models_of_all_kinds[row]);
        for (int i = 0; i < NROWS; i++) {
            if (!sample_takes(number++, 4)) {
                continue;
            }
            step_case c;
            prepare(&c, &model, &rows[i]);
            c.request.remat = POD_REMAT_LIST;
            c.request.plan = plans[(row + i) % NPLANS];
            few += check(&c, rows[i].mesh);
            step_free(&c);
        }
    }
    cr_expect_geq(few, 90 / (int)sample_of(4), "only %d steps from few layers", few);
}

/** Microbatches alone, where a stage has few layers, and a step that doesn't divide into them. */
Test(step_memory, few_microbatches_say_what_all_need)
{
    const pod_model model = model_named("llama3.1-8b");
    const layout_row rows[] = {
        {"pipeline=8,tensor=8",        128},
        {"pipeline=8,fsdp=8",          32 },
        {"pipeline=2,data=8,tensor=4", 32 },
        {"pipeline=2,data=8,tensor=4", 24 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        step_case c;
        prepare(&c, &model, &rows[i]);
        c.model.layers = i < 2 ? c.model.layers : 6;
        c.request.remat = POD_REMAT_LIST;
        c.request.plan = plans[i];
        cr_expect_eq(check(&c, rows[i].mesh), i < 3, "%s", rows[i].mesh);
        step_free(&c);
    }
}

/** Random numbers of a case, one after another. */
typedef struct draws {
    uint64_t number;
    uint64_t count;
} draws;

static int draw(draws *d, int bound)
{
    enum { SEED = 7 };
    return (int)pod_rng_below(SEED, d->number, d->count++, (uint64_t)bound);
}

static void settings_draw(draws *d, pod_step_request *request)
{
    pod_step_settings *settings = &request->settings;
    request->remat = (pod_remat)draw(d, POD_REMAT_LIST + 1);
    request->remat = request->remat == POD_REMAT_AUTO ? POD_REMAT_LIST : request->remat;
    request->plan = plans[draw(d, NPLANS)];
    request->gather_ahead = draw(d, 2);
    request->attention = draw(d, 4) == 0 ? POD_ATTENTION_PLAIN : POD_ATTENTION_FLASH;
    request->dtype = draw(d, 3) == 0 ? POD_DTYPE_INT8 : POD_DTYPE_BF16;
    request->optimizer = draw(d, 3) == 0 ? POD_OPTIMIZER_SGD : POD_OPTIMIZER_ADAM;
    request->collective_matmul = draw(d, 4) == 0;
    settings->context = (pod_context_parallel)draw(d, 3);
    settings->vocab_tiles = 4 * draw(d, 3);
    settings->narrow_mu = draw(d, 2) == 0;
    settings->narrow_weights = draw(d, 2) == 0;
    settings->narrow_gathers = draw(d, 2) == 0;
    settings->real_routing = draw(d, 2) == 0;
}

/** Whatever is kept, gathered, cut and quantised. */
Test(step_memory, settings_change_nothing)
{
    static const char *const names[] = {"llama3.1-8b",   "gemma3-12b",      "mixtral-8x7b",
                                        "deepseek2-16b", "llama4-maverick", "gpt-oss-120b"};
    static const char *const meshes[] = {"data=2,fsdp=8,tensor=4", "fsdp=16,sequence=4",
                                         "fsdp=8,expert=8", "pipeline=2,data=4,fsdp=8",
                                         "pipeline=4,sequence=2,tensor=8"};
    enum { NAMES = sizeof names / sizeof names[0], MESHES = sizeof meshes / sizeof meshes[0] };
    enum { CASES = 60, LEAST = 20, DOUBLINGS = 6 };
    int few = 0;
    for (int i = 0; i < CASES; i++) {
        draws d = {.number = (uint64_t)i};
        const pod_model model = model_named(names[draw(&d, NAMES)]);
        const layout_row row = {meshes[draw(&d, MESHES)], 1 << draw(&d, DOUBLINGS)};
        step_case c;
        prepare(&c, &model, &row);
        settings_draw(&d, &c.request);
        few += check(&c, row.mesh);
        step_free(&c);
    }
    cr_expect_geq(few, LEAST, "only %d steps from few layers", few);
}
