/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/periodic.h"

#include "models/model_layer.h"

#include <stdlib.h>
#include <string.h>

/* Layers of a stage, so that the middle is steady: the same, or of several kinds or with experts. */
enum { LEAST_ALIKE = 4, LEAST_MIXED = 8 };

bool pod_periodic_find(const pod_model *model, int32_t stages, pod_periodic *periodic)
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
                               .period = 2 * pattern.period * stages};
    periodic->few = periodic->prefix + (model->layers - periodic->prefix) % periodic->period;
    const int64_t least = pattern.period == 1 && model->experts == 0 ? LEAST_ALIKE : LEAST_MIXED;
    while (periodic->few < periodic->prefix + least * stages) {
        periodic->few += periodic->period;
    }
    periodic->more = periodic->few + periodic->period;
    periodic->times = (model->layers - periodic->more) / periodic->period;
    return periodic->times >= 1;
}

/** Layer of the larger model that stands for a layer of the full one. */
static int64_t layer_of(const pod_periodic *p, int64_t layer)
{
    const int64_t front = p->prefix + p->period;
    if (p->stages > 1) {
        return layer * p->more / p->layers;
    }
    if (layer < front) {
        return layer;
    }
    const int64_t from_end = p->layers - 1 - layer;
    if (from_end < p->more - front) {
        return p->more - 1 - from_end;
    }
    const int64_t middle = front + (layer - p->prefix) % p->period;
    return middle < p->more ? middle : p->more - 1;
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

/** The next op of a layer with a name from *at on, round and round; *at moves after it. */
static int32_t op_find(const layer_table *table, const pod_program *program, int64_t layer,
                       const char *name, int32_t *at)
{
    const int32_t first = table->first[layer + 1];
    const int32_t count = table->first[layer + 2] - first;
    for (int32_t k = 0; k < count; k++) {
        const int32_t place = (*at + k) % count;
        const int32_t op = table->op[first + place];
        if (strcmp(program->ops[op].name, name) == 0) {
            *at = place + 1;
            return op;
        }
    }
    return POD_OP_NONE;
}

pod_status pod_periodic_ops(const pod_periodic *periodic, const pod_program *full,
                            const pod_program *more, int32_t **stand_in, pod_error *err)
{
    layer_table table = {.first = NULL};
    int32_t *found = calloc((size_t)full->nops + 1, sizeof *found);
    int32_t *at = calloc((size_t)periodic->layers + 1, sizeof *at); /* in each layer's ops */
    const bool ok = table_init(&table, more, periodic->more) && found != NULL && at != NULL;
    for (int32_t i = 0; ok && i < full->nops; i++) {
        const int32_t layer = full->ops[i].layer;
        const int64_t like = layer < 0 ? -1 : layer_of(periodic, layer);
        found[i] = op_find(&table, more, like, full->ops[i].name, &at[layer + 1]);
    }
    free(table.first);
    free(table.op);
    free(at);
    *stand_in = found;
    return ok ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for the ops of a step");
}
