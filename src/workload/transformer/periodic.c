/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/periodic.h"

#include "models/model_layer.h"

#include <stdlib.h>
#include <string.h>

/* Layers of a stage, so that the middle is steady: the same, or of several kinds or with experts. */
enum { LEAST_ALIKE = 4, LEAST_MIXED = 8 };
/* The same for memory: what lives in the first and last layers of a stage differs from the middle. */
enum { LEAST_MEMORY = 4 };

/** @param periods  of the pattern in one of *periodic; @param least  layers of a stage */
static bool find(const pod_model *model, int32_t stages, int64_t periods, int64_t least,
                 pod_periodic *periodic)
{
    if (model->kind != POD_MODEL_TRANSFORMER) {
        return false;
    }
    const pod_layer_pattern pattern = pod_model_pattern(model);
    if (!pattern.periodic || (stages > 1 && (pattern.prefix > 0 || pattern.period > 1))) {
        return false;
    }
    *periodic = (pod_periodic){.layers = model->layers,
                               .stages = stages,
                               .prefix = pattern.prefix,
                               .period = periods * pattern.period * stages};
    periodic->few = periodic->prefix + (model->layers - periodic->prefix) % periodic->period;
    while (periodic->few < periodic->prefix + least * stages) {
        periodic->few += periodic->period;
    }
    periodic->more = periodic->few + periodic->period;
    periodic->times = (model->layers - periodic->more) / periodic->period;
    return periodic->times >= 1;
}

bool pod_periodic_repeats(const pod_model *model, int32_t stages)
{
    const bool same = pod_model_pattern(model).period == 1 && model->experts == 0;
    pod_periodic ignored;
    return find(model, stages, 2, same ? LEAST_ALIKE : LEAST_MIXED, &ignored);
}

bool pod_periodic_memory_find(const pod_model *model, int32_t stages, pod_periodic *periodic)
{
    const int64_t twice = 2 * pod_model_pattern(model).period;
    return find(model, stages, 1, twice > LEAST_MEMORY ? twice : LEAST_MEMORY, periodic)
           && periodic->few + periodic->more < periodic->layers;
}

/** Ops of a program layer by layer, in order: those of layer l are op[first[l + 1] … first[l + 2]); -1 is none. */
typedef struct layer_table {
    int32_t *first;
    int32_t *op;
} layer_table;

static bool table_init(layer_table *table, const pod_program *program, int64_t layers)
{
    table->first = calloc((size_t)layers + 3, sizeof *table->first);
    table->op = calloc((size_t)program->nops + 1, sizeof *table->op);
    if (table->first == NULL || table->op == NULL) {
        return false;
    }
    for (int32_t i = 0; i < program->nops; i++) {
        table->first[program->ops[i].layer + 2]++;
    }
    for (int64_t l = 0; l <= layers; l++) {
        table->first[l + 1] += table->first[l];
    }
    for (int32_t i = program->nops - 1; i >= 0;
         i--) { /* the ends of all layers come down to their starts */
        table->op[--table->first[program->ops[i].layer + 2]] = i;
    }
    /* now first[l + 2] is where layer l starts: move it to first[l + 1] */
    memmove(table->first, table->first + 1, ((size_t)layers + 2) * sizeof *table->first);
    table->first[layers + 1] = program->nops;
    return true;
}

/** Layer of the larger model that a layer of the smaller is, the further ones between a stage's halves. */
static int64_t twin_of(const pod_periodic *p, int64_t layer)
{
    const int64_t few = p->few / p->stages;
    const int64_t more = p->more / p->stages;
    const int64_t at = layer % few;
    const int64_t front = p->prefix + (few - p->prefix) / 2;
    return layer / few * more + (at < front ? at : at + more - few);
}

/* ---- memory ---- */

/** A program of few layers and one of a period more, and what lives in them. */
typedef struct memory_pair {
    const pod_program *few;
    const pod_program *more;
    layer_table few_ops;
    layer_table more_ops;
    pod_liveness few_live;
    pod_liveness more_live;
    int64_t periods; /**< from few layers to all */
    int64_t peak_bytes;
    int32_t few_peak; /**< op, or nops: after all */
    int32_t more_peak;
} memory_pair;

static pod_status pair_init(memory_pair *pair, const pod_periodic *periodic, pod_error *err)
{
    POD_TRY(pod_liveness_find(pair->few, &pair->few_live, err));
    POD_TRY(pod_liveness_find(pair->more, &pair->more_live, err));
    if ((!table_init(&pair->few_ops, pair->few, periodic->few)
         || !table_init(&pair->more_ops, pair->more, periodic->more))) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the ops of a step");
    }
    return POD_OK;
}

static void pair_fini(memory_pair *pair)
{
    free(pair->few_ops.first);
    free(pair->few_ops.op);
    free(pair->more_ops.first);
    free(pair->more_ops.op);
    pod_liveness_fini(&pair->few_live);
    pod_liveness_fini(&pair->more_live);
}

static int64_t extrapolate(const memory_pair *pair, int64_t few, int64_t more)
{
    return few + pair->periods * (more - few);
}

/** An op of few layers is the same as one of more: what lives at it grows with each period. The first op of the
 *  largest sum is the peak. */
static void ops_pair(memory_pair *pair, int32_t few, int32_t more)
{
    const int64_t bytes = extrapolate(pair, pair->few_live.bytes[few], pair->more_live.bytes[more]);
    if (bytes > pair->peak_bytes || (bytes == pair->peak_bytes && few < pair->few_peak)) {
        pair->peak_bytes = bytes;
        pair->few_peak = few;
        pair->more_peak = more;
    }
}

/** The ops of a layer of either one by one. @return false: they differ */
static bool layers_pair(memory_pair *pair, int64_t few, int64_t more)
{
    const int32_t at = pair->few_ops.first[few + 1];
    const int32_t like = pair->more_ops.first[more + 1];
    const int32_t count = pair->few_ops.first[few + 2] - at;
    if (pair->more_ops.first[more + 2] - like != count) {
        return false;
    }
    for (int32_t k = 0; k < count; k++) {
        const int32_t a = pair->few_ops.op[at + k];
        const int32_t b = pair->more_ops.op[like + k];
        if (strcmp(pair->few->ops[a].name, pair->more->ops[b].name) != 0) {
            return false;
        }
        ops_pair(pair, a, b);
    }
    return true;
}

/** All layers of a stage: the first half as far from the front, the others as far from the end. */
static bool pair_peak(memory_pair *pair, const pod_periodic *p)
{
    const int64_t layers = p->few / p->stages;
    const int64_t first = pair->few->stage * layers;
    bool same = layers_pair(pair, -1, -1);
    for (int64_t l = first; same && l < first + layers; l++) {
        same = layers_pair(pair, l, twin_of(p, l));
    }
    if (same) {
        ops_pair(pair, pair->few->nops, pair->more->nops);
    }
    return same;
}

static void pair_kinds(const memory_pair *pair, pod_memory_use *use)
{
    int64_t few[POD_MEMORY_KINDS];
    int64_t more[POD_MEMORY_KINDS];
    pod_liveness_kinds(pair->few, &pair->few_live, pair->few_peak, few);
    pod_liveness_kinds(pair->more, &pair->more_live, pair->more_peak, more);
    *use = (pod_memory_use){.peak_bytes = pair->peak_bytes, .peak_op = POD_OP_NONE};
    for (int kind = 0; kind < POD_MEMORY_KINDS; kind++) {
        use->by_kind[kind] = extrapolate(pair, few[kind], more[kind]);
    }
}

pod_status pod_periodic_memory(const pod_periodic *periodic, const pod_program *few,
                               const pod_program *more, bool *same, pod_memory_use *use,
                               pod_error *err)
{
    memory_pair pair = {.few = few, .more = more, .periods = periodic->times + 1};
    const pod_status status = pair_init(&pair, periodic, err);
    *same = status == POD_OK && pair_peak(&pair, periodic);
    if (*same) {
        pair_kinds(&pair, use);
    }
    pair_fini(&pair);
    return status;
}
