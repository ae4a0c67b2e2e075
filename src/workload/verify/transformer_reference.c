/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/transformer_reference.h"

#include "chip/numerics.h"
#include "workload/verify/reference_head.h"
#include "workload/verify/reference_layer.h"
#include "workload/verify/reference_muon.h"
#include "workload/verify/reference_update.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_TOKENS = 512,
    PREFIX_MAX = 24,
    RESULT_NAME_MAX = POD_TRANSFORMER_NAME_MAX + PREFIX_MAX
};

typedef struct result {
    char name[RESULT_NAME_MAX];
    int64_t rows;
    int64_t columns;
    int64_t first; /* element of the block */
} result;

struct pod_transformer_reference {
    pod_model model;
    pod_transformer_reference_args args;
    pod_reference_step step;
    int64_t nresults;
    result *results;
    int64_t elements; /* of all results */
    char *block;      /* [elements] doubles, [nresults] largest magnitudes, [elements] floats */
};

/* ---- results ---- */

static void result_add(pod_transformer_reference *ref, const char *prefix, const char *name,
                       int64_t rows, int64_t columns)
{
    result *r = &ref->results[ref->nresults++];
    (void)snprintf(r->name, sizeof r->name, "%s%s", prefix, name);
    r->rows = rows;
    r->columns = columns;
    r->first = ref->elements;
    ref->elements += rows * columns;
}

/** Whether the update needs norms. */
static bool sums_squares(const pod_transformer_reference *ref)
{
    return ref->args.optimizer == POD_OPTIMIZER_LARS || ref->args.optimizer == POD_OPTIMIZER_LAMB;
}

static bool trains(const pod_transformer_reference *ref)
{
    return ref->args.mode == POD_STEP_TRAIN;
}

static bool follows_layers(const pod_transformer_reference *ref)
{
    return ref->args.followed != NULL && ref->args.followed->input != NULL;
}

static bool follows_newton(const pod_transformer_reference *ref, const pod_transformer_array *array)
{
    return ref->args.followed != NULL && ref->args.followed->newton != NULL && array->layer >= 0;
}

static void results_list(pod_transformer_reference *ref)
{
    const int64_t tokens = ref->args.batch * ref->args.seq;
    const int64_t head = ref->args.batch * pod_reference_head_tokens(&ref->step);
    if (trains(ref)) {
        result_add(ref, "", "loss", 1, 1);
    }
    if (!trains(ref) || ref->args.hidden) {
        result_add(ref, "", "logits", head, ref->model.vocab);
    }
    for (int64_t l = -1; ref->args.hidden && l < ref->model.layers; l++) {
        char name[PREFIX_MAX];
        (void)snprintf(name, sizeof name, "%d", (int)l);
        result_add(ref, "hidden.", name, tokens, ref->model.d_model);
    }
    for (int64_t i = 0; ref->args.squares && i <= 2 * ref->model.layers; i++) {
        char name[PREFIX_MAX];
        (void)snprintf(name, sizeof name, "%d", (int)i);
        if (ref->model.parallel == 0 || i % 2 == 0) {
            result_add(ref, "squares.", name, tokens, ref->model.positions > 0 ? 2 : 1);
        }
    }
    for (int64_t l = 0; follows_layers(ref) && l < ref->model.layers; l++) {
        char name[PREFIX_MAX];
        (void)snprintf(name, sizeof name, "%d", (int)l);
        result_add(ref, "input.", name, tokens, ref->model.d_model);
        if (trains(ref)) {
            result_add(ref, "derivative.", name, tokens, ref->model.d_model);
        }
    }
    for (int64_t i = 0; trains(ref) && i < ref->step.nweights; i++) {
        const pod_transformer_array *array = &ref->step.weights[i].array;
        const int64_t rows = array->groups * array->rows;
        const int moments = pod_optimizer_moments(pod_reference_optimizer_of(&ref->step, array));
        for (int n = 0; follows_newton(ref, array) && n < POD_TRANSFORMER_NEWTON; n++) {
            char prefix[PREFIX_MAX];
            (void)snprintf(prefix, sizeof prefix, "newton%d.", n);
            result_add(ref, prefix, array->name, rows, array->columns);
        }
        result_add(ref, "gradient.", array->name, rows, array->columns);
        result_add(ref, "weight.", array->name, rows, array->columns);
        if (sums_squares(ref)) {
            result_add(ref, "norms.", array->name, 1, 2);
        }
        if (moments > 0) {
            result_add(ref, "moment1.", array->name, rows, array->columns);
        }
        if (moments > 1) {
            result_add(ref, "moment2.", array->name, rows, array->columns);
        }
    }
}

static const result *result_find(const pod_transformer_reference *ref, const char *prefix,
                                 const char *name)
{
    const size_t length = strlen(prefix);
    for (int64_t i = 0; i < ref->nresults; i++) {
        const char *of = ref->results[i].name;
        if (strncmp(of, prefix, length) == 0 && strcmp(of + length, name) == 0) {
            return &ref->results[i];
        }
    }
    return NULL;
}

/** A result as an array of values with errors; value NULL if it isn't kept. */
static pod_inexact result_array(const pod_transformer_reference *ref, const char *prefix,
                                const char *name)
{
    const result *r = result_find(ref, prefix, name);
    if (r == NULL) {
        return (pod_inexact){.rows = 0};
    }
    double *values = (double *)(void *)ref->block;
    float *bounds = (float *)(void *)(values + ref->elements + ref->nresults);
    return (pod_inexact){.rows = r->rows,
                         .columns = r->columns,
                         .stride = r->columns,
                         .value = values + r->first,
                         .square = bounds + r->first};
}

/* ---- life ---- */

/** Arrays of the weights, without values. */
static pod_status weights_list(pod_transformer_reference *ref, pod_error *err)
{
    enum { ENDS = 5, OF_LAYER = 5, EACH = 5 + POD_TRANSFORMER_NEWTON };
    pod_reference_step *step = &ref->step;
    step->nweights = pod_transformer_arrays(&ref->model);
    step->weights = calloc((size_t)step->nweights, sizeof *step->weights);
    ref->results = calloc((size_t)(ENDS + OF_LAYER * ref->model.layers + EACH * step->nweights),
                          sizeof *ref->results);
    if (step->weights == NULL || ref->results == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the reference");
    }
    for (int64_t i = 0; i < step->nweights; i++) {
        step->weights[i].array = pod_transformer_array_at(&ref->model, i);
    }
    return POD_OK;
}

pod_status pod_transformer_reference_new(const pod_transformer_reference_args *args,
                                         pod_transformer_reference **reference, pod_error *err)
{
    pod_transformer_reference *ref = calloc(1, sizeof *ref);
    *reference = ref;
    if (ref == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the reference");
    }
    POD_TRY(pod_reference_support_check(args, err));
    ref->model = *args->model;
    ref->args = *args;
    ref->args.model = &ref->model;
    ref->step.args = &ref->args;
    ref->step.form = pod_transformer_form_of(&ref->model);
    ref->step.ix.roundoff = args->dtype == POD_DTYPE_BF16 ? 0x1p-8 : 0x1p-24;
    ref->step.ix.emulation = args->emulation;
    POD_TRY(weights_list(ref, err));
    results_list(ref);
    const int64_t chunk = CHUNK_TOKENS / args->seq > 0 ? CHUNK_TOKENS / args->seq : 1;
    const bool whole = pod_dtype_size(args->operands) == 1; /* scales are of all tokens */
    ref->step.sequences = chunk < args->batch && !whole ? chunk : args->batch;
    return POD_OK;
}

void pod_transformer_reference_free(pod_transformer_reference *ref)
{
    if (ref != NULL) {
        for (int64_t i = 0; ref->step.weights != NULL && i < ref->step.nweights; i++) {
            free(ref->step.weights[i].value.value);
            free(ref->step.weights[i].rounded.value);
        }
        free(ref->step.weights);
        free(ref->step.ix.arena.data);
        free(ref->results);
        free(ref->block);
        free(ref);
    }
}

/* ---- sizes ---- */

static size_t block_bytes(const pod_transformer_reference *ref)
{
    return (size_t)ref->elements * (sizeof(double) + sizeof(float))
           + (size_t)ref->nresults * sizeof(double);
}

static size_t weight_bytes(const pod_transformer_array *array)
{
    return (size_t)(array->groups * array->rows * array->columns) * sizeof(double);
}

/** Of a product of tokens with a weight, or of its gradient: squares of both operands, twice; a partial sum. */
static size_t product_bytes(const pod_transformer_reference *ref, int64_t rows, int64_t columns)
{
    enum { OPERANDS = 2, ALIGN = 1 << 10 };
    const int64_t tokens = pod_reference_tokens(&ref->step);
    const int64_t numbers = tokens * (rows + columns) + rows * columns;
    return OPERANDS * (size_t)numbers * sizeof(float) + ALIGN
           + (ref->args.emulation != NULL ? pod_inexact_bytes(1, numbers) : 0);
}

static size_t arena_bytes(const pod_transformer_reference *ref)
{
    enum { ENDS = 10, ONE = 1 };
    const pod_reference_step *step = &ref->step;
    const int64_t tokens = pod_reference_tokens(step);
    size_t layers = 0;
    size_t largest = 0;
    size_t product = 0;
    for (int64_t l = 0; l < ref->model.layers; l++) {
        const pod_layer layer = pod_model_layer(&ref->model, l);
        const pod_inexact_attention attention = {
            .seq = ref->args.seq, .qk_dim = layer.qk_dim, .v_dim = layer.v_dim};
        const size_t bytes = pod_reference_layer_bytes(step, l);
        const size_t back = bytes + pod_inexact_attention_bytes(&attention);
        layers += bytes;
        largest = back > largest ? back : largest;
    }
    for (int64_t i = 0; i < step->nweights; i++) {
        const pod_transformer_array *array = &step->weights[i].array;
        const size_t bytes = product_bytes(ref, array->rows, array->columns);
        product = bytes > product ? bytes : product;
        if (array->layer >= 0 && ref->args.optimizer == POD_OPTIMIZER_MUON && trains(ref)) {
            const size_t newton = pod_reference_newton_bytes(array);
            product = newton > product ? newton : product;
        }
    }
    const size_t pictures = ref->model.image > 0
                                ? pod_inexact_bytes(tokens, pod_transformer_pixels(&ref->model))
                                      + pod_inexact_bytes(tokens, ref->model.d_model)
                                : 0;
    return layers + largest + product + pictures
           + ENDS * pod_inexact_bytes(tokens, ref->model.d_model)
           + pod_inexact_bytes(tokens, ref->model.vocab) + pod_inexact_bytes(tokens, ONE)
           + (size_t)tokens * sizeof(int32_t);
}

int64_t pod_transformer_reference_bytes(const pod_transformer_reference *ref)
{
    size_t bytes = block_bytes(ref) + arena_bytes(ref);
    for (int64_t i = 0; i < ref->step.nweights; i++) {
        bytes += (pod_dtype_size(ref->args.operands) == 1 ? 2 : 1)
                 * weight_bytes(&ref->step.weights[i].array);
    }
    return bytes < (size_t)INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

/* ---- weights ---- */

/** A row of a weight before the step. */
static void row_fill(const pod_transformer_reference *ref, int64_t number, const pod_patch *patch,
                     float *row)
{
    if (ref->args.before != NULL) {
        pod_place_state_get(ref->args.before, POD_STATE_WEIGHTS, number, patch, POD_DTYPE_F32, row);
    } else {
        pod_transformer_fill_patch(&ref->step.weights[number].array, ref->args.seed, patch,
                                   POD_DTYPE_F32, row);
    }
}

static pod_status weight_fill(pod_transformer_reference *ref, int64_t number, pod_error *err)
{
    pod_reference_weight *weight = &ref->step.weights[number];
    const pod_transformer_array *array = &weight->array;
    const int64_t rows = array->groups * array->rows;
    float *row = malloc((size_t)array->columns * sizeof *row);
    double *value = malloc(weight_bytes(array));
    weight->value =
        (pod_inexact){.rows = rows, .columns = array->columns, .stride = array->columns};
    weight->value.value = value;
    for (int64_t r = 0; row != NULL && value != NULL && r < rows; r++) {
        const pod_patch patch = {.row = r, .rows = 1, .columns = array->columns};
        row_fill(ref, number, &patch, row);
        for (int64_t c = 0; c < array->columns; c++) {
            value[r * array->columns + c] = (double)row[c];
        }
    }
    weight->gradient = result_array(ref, "gradient.", array->name);
    const pod_emulation *emulation = ref->args.emulation;
    if (emulation != NULL && emulation->stored != NULL && row != NULL && value != NULL) {
        emulation->stored(emulation->context, array->name, POD_EMULATE_WEIGHTS, value,
                          rows * array->columns);
    }
    const bool complete = row != NULL && value != NULL;
    free(row);
    return complete ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for the reference");
}

static pod_status memory_take(pod_transformer_reference *ref, pod_error *err)
{
    pod_status st = pod_gemm_ready(err);
    pod_arena *arena = &ref->step.ix.arena;
    arena->size = arena_bytes(ref);
    arena->data = malloc(arena->size);
    ref->block = ref->block != NULL ? ref->block : calloc(1, block_bytes(ref) + 1);
    if (st == POD_OK && (arena->data == NULL || ref->block == NULL)) {
        st = pod_fail(err, POD_E_NOMEM, "out of memory for the reference, %lld bytes",
                      (long long)pod_transformer_reference_bytes(ref));
    }
    for (int64_t i = 0; i < ref->step.nweights; i++) {
        POD_THEN(st, weight_fill(ref, i, err));
        POD_THEN(st, pod_reference_weight_round(&ref->step, &ref->step.weights[i], err));
    }
    return st;
}

/* ---- both ends of a model ---- */

static int32_t token_of(const pod_transformer_reference *ref, int64_t index)
{
    return ref->args.tokens != NULL ? ref->args.tokens[index]
                                    : pod_transformer_token(&ref->model, ref->args.seed, index);
}

/** Adds a row of a table to a token. */
static void row_take(const pod_inexact *table, int64_t row, const pod_inexact *x, int64_t token)
{
    for (int64_t c = 0; c < x->columns; c++) {
        x->value[token * x->stride + c] += table->value[row * table->stride + c];
    }
}

/** Patches of the chunk's pictures, exact. */
static pod_inexact pictures_take(pod_transformer_reference *ref)
{
    const int64_t patches = ref->args.seq - 1;
    const pod_transformer_array array = pod_transformer_pictures(&ref->model, ref->args.batch);
    const pod_inexact x =
        pod_inexact_make(&ref->step.ix, ref->step.sequences * patches, array.columns);
    pod_inexact_clear(&x);
    for (int64_t i = 0; i < x.rows * x.columns; i++) {
        const pod_patch patch = {.row = ref->step.sequence * patches + i / x.columns,
                                 .rows = 1,
                                 .column = i % x.columns,
                                 .columns = 1};
        float value;
        pod_transformer_fill_patch(&array, ref->args.seed, &patch, POD_DTYPE_F32, &value);
        x.value[i] = (double)value;
    }
    return x;
}

/** Rows of tokens that are patches, from or to rows of patches. */
static void patches_copy(const pod_transformer_reference *ref, const pod_inexact *x,
                         const pod_inexact *patches, bool back)
{
    const int64_t each = ref->args.seq - 1;
    for (int64_t r = 0; r < patches->rows; r++) {
        const pod_inexact token = pod_inexact_rows(x, r / each * ref->args.seq + 1 + r % each, 1);
        const pod_inexact row = pod_inexact_rows(patches, r, 1);
        const pod_inexact *from = back ? &token : &row;
        const pod_inexact *to = back ? &row : &token;
        memcpy(to->value, from->value, (size_t)x->columns * sizeof *to->value);
        memcpy(to->square, from->square, (size_t)x->columns * sizeof *to->square);
    }
}

/** Tokens of pictures, without their positions. */
static void patches_embed(pod_transformer_reference *ref, const pod_inexact *x)
{
    pod_reference_step *step = &ref->step;
    const pod_inexact pictures = pictures_take(ref);
    pod_reference_weight *weight = pod_reference_end_of(step, "patches");
    const pod_reference_weight *bias = pod_reference_bias_of(step, weight);
    const pod_inexact_product product = {.site = "fwd.patches", .accumulate = true, .terms = 1};
    const pod_inexact patches = pod_inexact_make(&step->ix, pictures.rows, x->columns);
    pod_inexact_clear(&patches);
    for (int64_t r = 0; bias != NULL && r < patches.rows; r++) {
        row_take(&bias->value, 0, &patches, r);
    }
    pod_inexact_matmul(&step->ix, &product, &pictures, &weight->value, &patches);
    patches_copy(ref, x, &patches, false);
}

/** Gradients of the weights that make them. */
static void patches_embed_back(pod_transformer_reference *ref, const pod_inexact *dx)
{
    pod_reference_step *step = &ref->step;
    const pod_inexact pictures = pictures_take(ref);
    pod_reference_weight *weight = pod_reference_end_of(step, "patches");
    const pod_inexact_product gradient = {.site = "patches",
                                          .transpose_a = true,
                                          .accumulate = true,
                                          .terms = ref->args.gradient_terms};
    const pod_inexact patches = pod_inexact_make(&step->ix, pictures.rows, dx->columns);
    patches_copy(ref, dx, &patches, true);
    pod_inexact_matmul(&step->ix, &gradient, &pictures, &patches, &weight->gradient);
    pod_reference_bias_back(step, pod_reference_bias_of(step, weight), &patches);
}

static pod_inexact embedding_take(pod_transformer_reference *ref)
{
    pod_reference_step *step = &ref->step;
    const pod_reference_weight *table = pod_reference_end_of(&ref->step, "embedding");
    const pod_reference_weight *positions = pod_reference_end_of(&ref->step, "positions");
    const int64_t tokens = pod_reference_tokens(step);
    const pod_inexact x = pod_inexact_make(&step->ix, tokens, ref->model.d_model);
    pod_inexact_clear(&x);
    const size_t mark = step->ix.arena.used;
    if (table == NULL) {
        patches_embed(ref, &x);
    }
    step->ix.arena.used = mark;
    for (int64_t t = 0; t < tokens; t++) {
        if (table != NULL) {
            row_take(&table->value, token_of(ref, step->sequence * ref->args.seq + t), &x, t);
        }
        if (positions != NULL) {
            row_take(&positions->value, t % ref->args.seq, &x, t);
        }
    }
    if (positions != NULL
        || ref->args.before != NULL) { /* weights in f32 come as they are stored */
        pod_inexact_store(&step->ix, "fwd.positions", &x, 1);
    }
    return x;
}

/** One token's derivative into a row of a table's gradient. */
static void row_add(const pod_inexact *gradient, int64_t row, const pod_inexact *dx, int64_t token,
                    double part)
{
    for (int64_t c = 0; c < dx->columns; c++) {
        const int64_t from = token * dx->stride + c;
        gradient->value[row * gradient->stride + c] += dx->value[from];
        gradient->square[row * gradient->stride + c] +=
            dx->square[from] + (float)(part * pod_square(dx->value[from]));
    }
}

static void embedding_take_back(pod_transformer_reference *ref, const pod_inexact *dx)
{
    const pod_reference_step *step = &ref->step;
    const pod_reference_weight *table = pod_reference_end_of(&ref->step, "embedding");
    const pod_reference_weight *positions = pod_reference_end_of(&ref->step, "positions");
    const double part = (double)ref->args.gradient_terms * pod_square(step->ix.roundoff);
    if (table == NULL) {
        patches_embed_back(ref, dx);
    }
    for (int64_t t = 0; t < dx->rows; t++) {
        const int64_t index = step->sequence * ref->args.seq + t;
        if (table != NULL) {
            row_add(&table->gradient, token_of(ref, index), dx, t, part);
        }
        if (positions != NULL) {
            row_add(&positions->gradient, t % ref->args.seq, dx, t, part);
        }
    }
}

/** Keep rows of a chunk in a result, if it is kept. */
static void keep_rows(const pod_transformer_reference *ref, const char *prefix, const char *name,
                      const pod_inexact *x)
{
    const pod_inexact all = result_array(ref, prefix, name);
    const int64_t first = ref->step.sequence * (x->rows / ref->step.sequences);
    if (all.value != NULL) {
        memcpy(all.value + first * all.stride, x->value,
               (size_t)(x->rows * x->columns) * sizeof(double));
        memcpy(all.square + first * all.stride, x->square,
               (size_t)(x->rows * x->columns) * sizeof(float));
    }
}

static void keep_layer(const pod_transformer_reference *ref, const char *prefix, int64_t layer,
                       const pod_inexact *x)
{
    char name[PREFIX_MAX];
    (void)snprintf(name, sizeof name, "%d", (int)layer);
    keep_rows(ref, prefix, name, x);
}

/** Keep sums of the rows that norm number `norm` reads. */
static void keep_squares(const pod_transformer_reference *ref, int64_t norm, const pod_inexact *x)
{
    char name[PREFIX_MAX];
    (void)snprintf(name, sizeof name, "%d", (int)norm);
    const pod_inexact all = result_array(ref, "squares.", name);
    if (all.value != NULL) {
        const pod_inexact sums =
            pod_inexact_rows(&all, ref->step.sequence * ref->args.seq, x->rows);
        pod_inexact_row_sums(x, &sums);
    }
}

/** Keep what comes into a layer, and go on with what chips had there, if they are followed. */
static void follow(const pod_transformer_reference *ref, const char *prefix, int64_t layer,
                   const float *theirs, const pod_inexact *x)
{
    const int64_t tokens = ref->args.batch * ref->args.seq;
    const int64_t first = (layer * tokens + ref->step.sequence * ref->args.seq) * x->columns;
    keep_layer(ref, prefix, layer, x);
    for (int64_t i = 0; i < x->rows * x->columns; i++) { /* arrays of their own: no stride */
        x->value[i] = (double)theirs[first + i];
        x->square[i] = 0;
    }
}

/* ---- a chunk of sequences ---- */

static void chunk_back(pod_transformer_reference *ref, const pod_reference_head *head,
                       const pod_inexact *dlogits, pod_reference_state *states)
{
    pod_reference_step *step = &ref->step;
    const pod_inexact dy = pod_reference_head_back(step, head, dlogits);
    for (int64_t l = ref->model.layers - 1; l >= 0; l--) {
        if (follows_layers(ref)) {
            follow(ref, "derivative.", l, ref->args.followed->derivative, &dy);
        }
        pod_reference_layer_back(step, &states[l], &dy);
    }
    embedding_take_back(ref, &dy);
}

static void chunk_compute(pod_transformer_reference *ref, pod_reference_state *states,
                          double loss_square[2])
{
    pod_reference_step *step = &ref->step;
    const int64_t tokens = step->sequences * pod_reference_head_tokens(&ref->step);
    const double share = 1 / (double)(ref->args.batch * pod_reference_head_tokens(&ref->step));
    int32_t *targets = pod_arena_take(&step->ix.arena, (size_t)tokens * sizeof *targets);
    pod_inexact x = embedding_take(ref);
    keep_layer(ref, "hidden.", -1, &x);
    for (int64_t l = 0; l < ref->model.layers; l++) {
        if (follows_layers(ref)) {
            follow(ref, "input.", l, ref->args.followed->input, &x);
        }
        x = pod_reference_layer(step, &states[l], l, &x);
        keep_layer(ref, "hidden.", l, &x);
        keep_squares(ref, 2 * l, &states[l].x);
        keep_squares(ref, 2 * l + 1, &states[l].x1);
    }
    keep_squares(ref, 2 * ref->model.layers, &x);
    pod_reference_head head;
    const pod_inexact logits = pod_reference_head_logits(step, &x, &head);
    keep_rows(ref, "", "logits", &logits);
    for (int64_t t = 0; t < tokens; t++) {
        targets[t] = pod_transformer_target(&ref->model, ref->args.seed,
                                            step->sequence * ref->args.seq
                                                + pod_reference_head_row(step, t));
    }
    if (trains(ref)) {
        pod_inexact_loss(&step->ix, &logits, targets, share, loss_square);
        chunk_back(ref, &head, &logits, states);
    }
    step->ix.arena.used = 0;
}

/* ---- update ---- */

/** Keep sums of squares. */
static void norms_result(const pod_transformer_reference *ref, const char *name,
                         const pod_reference_norms *norms)
{
    static const double sums = 0x1p-20; /* of f32 */
    const pod_inexact kept = result_array(ref, "norms.", name);
    const double up = norms->above - norms->directions;
    const double down = norms->directions - norms->below;
    kept.value[0] = norms->weights;
    kept.value[1] = norms->directions;
    kept.square[0] = (float)pod_square(sums * norms->weights / pod_transformer_lambda);
    kept.square[1] = (float)pod_square((up > down ? up : down) / pod_transformer_lambda);
}

/** A moment's elements before the step, in place of which those after it come. */
static void moment_fill(const pod_transformer_reference *ref, int64_t number,
                        const pod_inexact *moment)
{
    for (int64_t i = 0; ref->args.before != NULL && i < moment->rows * moment->columns; i++) {
        const pod_patch patch = {
            .row = i / moment->columns, .rows = 1, .column = i % moment->columns, .columns = 1};
        float value;
        pod_place_state_get(ref->args.before, POD_STATE_MOMENT, number, &patch, POD_DTYPE_F32,
                            &value);
        moment->value[i] = (double)value;
    }
}

/** The steps of Newton and Schulz, each from what chips had before it. */
static void muon_update(pod_transformer_reference *ref, int64_t number,
                        const pod_reference_moved *moved)
{
    const pod_reference_weight *weight = &ref->step.weights[number];
    const pod_transformer_array *array = &weight->array;
    const bool followed = follows_newton(ref, array);
    int64_t first = 0;
    for (int64_t i = 0; i < number; i++) {
        const pod_transformer_array *other = &ref->step.weights[i].array;
        first += other->layer >= 0 ? other->groups * other->rows * other->columns : 0;
    }
    const float *chips = NULL;
    for (int i = 0; followed && i < POD_TRANSFORMER_NEWTON; i++) {
        char prefix[PREFIX_MAX];
        (void)snprintf(prefix, sizeof prefix, "newton%d.", i);
        const pod_inexact kept = result_array(ref, prefix, array->name);
        if (i == 0) {
            pod_reference_newton_begin(&ref->step, weight, &kept);
        } else {
            pod_reference_newton_step(&ref->step, array, chips, &kept);
        }
        chips = ref->args.followed->newton + i * ref->args.followed->newton_elements + first;
    }
    pod_reference_muon(&ref->step, weight, chips, moved);
}

static void weight_update(pod_transformer_reference *ref, int64_t number)
{
    const pod_reference_weight *weight = &ref->step.weights[number];
    const char *name = weight->array.name;
    const pod_reference_moved moved = {
        .weight = result_array(ref, "weight.", name),
        .moment = {result_array(ref, "moment1.", name), result_array(ref, "moment2.", name)}
    };
    moment_fill(ref, number, &moved.moment[0]);
    if (pod_reference_optimizer_of(&ref->step, &weight->array) == POD_OPTIMIZER_MUON) {
        muon_update(ref, number, &moved);
        return;
    }
    if (sums_squares(ref)) {
        const pod_reference_norms norms = pod_reference_norms_of(&ref->step, &weight->array);
        norms_result(ref, name, &norms);
        pod_reference_update(&ref->step, weight, &norms, &moved);
    } else {
        pod_reference_update(&ref->step, weight, NULL, &moved);
    }
}

/* ---- compute ---- */

static pod_status choices_check(const pod_transformer_reference *ref, pod_error *err)
{
    enum { PERCENT = 100 };
    const int64_t choices = ref->args.batch * ref->args.seq * ref->model.layers;
    if (ref->step.differ > 0) {
        return pod_fail(err, POD_E_CHECK,
                        "the experts of %lld tokens differ from the reference's, whose scores are "
                        "farther apart than their error",
                        (long long)ref->step.differ);
    }
    if (ref->step.near * PERCENT > choices) {
        return pod_fail(err, POD_E_CHECK,
                        "%lld of %lld tokens have experts whose scores are nearer than their "
                        "error, too many to check a layout: use another --seed, fewer layers, or "
                        "more columns of d_model for each expert",
                        (long long)ref->step.near, (long long)choices);
    }
    return POD_OK;
}

/** Squares to bounds, the least float on top for squares that f32 doesn't hold; and largest magnitudes. */
static void bounds_make(const pod_transformer_reference *ref)
{
    double *values = (double *)(void *)ref->block;
    double *largest = values + ref->elements;
    float *bounds = (float *)(void *)(largest + ref->nresults);
    for (int64_t r = 0; r < ref->nresults; r++) {
        const result *of = &ref->results[r];
        for (int64_t i = of->first; i < of->first + of->rows * of->columns; i++) {
            largest[r] = fabs(values[i]) > largest[r] ? fabs(values[i]) : largest[r];
        }
    }
    for (int64_t i = 0; i < ref->elements; i++) {
        bounds[i] = (float)(pod_transformer_lambda * sqrt((double)bounds[i] + (double)FLT_MIN));
    }
}

static void loss_keep(const pod_transformer_reference *ref, const double loss_square[2])
{
    static const double wide = 0x1p-24;
    const pod_inexact loss = result_array(ref, "", "loss");
    const double tokens = (double)(ref->args.batch * pod_reference_head_tokens(&ref->step));
    if (loss.value != NULL) {
        loss.value[0] = loss_square[0];
        loss.square[0] = (float)(loss_square[1] + tokens * pod_square(wide * loss_square[0]));
    }
}

pod_status pod_transformer_reference_compute(pod_transformer_reference *ref, pod_error *err)
{
    pod_reference_step *step = &ref->step;
    const int64_t chunk = step->sequences;
    pod_reference_state *states = calloc((size_t)ref->model.layers, sizeof *states);
    double loss_square[2] = {0, 0};
    pod_status st = states != NULL ? memory_take(ref, err)
                                   : pod_fail(err, POD_E_NOMEM, "out of memory for the reference");
    for (int64_t s = 0; st == POD_OK && s < ref->args.batch; s += chunk) {
        step->sequence = s;
        step->sequences = ref->args.batch - s < chunk ? ref->args.batch - s : chunk;
        chunk_compute(ref, states, loss_square);
    }
    step->sequences = chunk;
    for (int64_t i = 0; st == POD_OK && trains(ref) && i < step->nweights; i++) {
        pod_inexact_store(&step->ix, "gradient", &step->weights[i].gradient,
                          (double)ref->args.gradient_terms);
    }
    for (int64_t i = 0; st == POD_OK && trains(ref) && i < step->nweights; i++) {
        weight_update(ref, i);
    }
    if (st == POD_OK) {
        loss_keep(ref, loss_square);
        bounds_make(ref);
        st = choices_check(ref, err);
    }
    free(states);
    return st;
}

int64_t pod_transformer_reference_near(const pod_transformer_reference *ref)
{
    return ref->step.near;
}

pod_status pod_transformer_reference_block(pod_transformer_reference *ref, void **data,
                                           size_t *size, pod_error *err)
{
    ref->block = ref->block != NULL ? ref->block : calloc(1, block_bytes(ref) + 1);
    *data = ref->block;
    *size = block_bytes(ref);
    return ref->block != NULL ? POD_OK
                              : pod_fail(err, POD_E_NOMEM, "out of memory for the reference");
}

/* ---- comparing ---- */

bool pod_transformer_reference_find(const pod_transformer_reference *ref, const char *name,
                                    pod_transformer_values *values)
{
    const pod_inexact array = result_array(ref, "", name);
    const result *r = result_find(ref, "", name);
    if (r == NULL) {
        return false;
    }
    *values = (pod_transformer_values){
        .value = array.value,
        .bound = array.square,
        .rows = array.rows,
        .columns = array.columns,
        .largest = ((const double *)(const void *)ref->block)[ref->elements + (r - ref->results)]};
    return true;
}
