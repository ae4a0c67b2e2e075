/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/transformer_data.h"

#include "base/rng.h"
#include "models/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what sizes leave open ---- */

pod_transformer_form pod_transformer_form_of(const pod_model *model)
{
    static const double base = 10000;
    static const double epsilon = 1e-6;
    const bool learned = model->positions > 0;
    const pod_transformer_function plain = learned ? POD_FUNCTION_GELU : POD_FUNCTION_RELU2;
    return (pod_transformer_form){
        .norm = learned ? POD_NORM_LAYER : POD_NORM_RMS,
        .epsilon = epsilon,
        .function = model->mlp_matrices > 2 ? POD_FUNCTION_SILU : plain,
        .rotary_base = learned ? 0 : base,
    };
}

double pod_transformer_angle(const pod_transformer_form *form, int64_t position, int64_t pair,
                             int64_t dim)
{
    return (double)position * pow(form->rotary_base, -2.0 * (double)pair / (double)dim);
}

double pod_transformer_rate(pod_optimizer optimizer)
{
    static const double rates[POD_OPTIMIZERS] = {
        [POD_OPTIMIZER_SGD] = 0x1p4,   [POD_OPTIMIZER_MOMENTUM] = 0x1p4,
        [POD_OPTIMIZER_ADAM] = 0x1p-6, [POD_OPTIMIZER_LARS] = 0x1p6, /* times 0.001 */
        [POD_OPTIMIZER_LAMB] = 0x1p-4, [POD_OPTIMIZER_MUON] = 0x1p-6,
    };
    return rates[optimizer];
}

/* ---- arrays ---- */

int64_t pod_transformer_pixels(const pod_model *model)
{
    return POD_PICTURE_CHANNELS * model->patch * model->patch;
}

/** Values are odd numbers of up to seven bits; their root mean square. */
static const double odd_rms = 73.9;

static int exponent_for(double rms)
{
    return (int)lrint(log2(rms / odd_rms));
}

/** Experts that columns are marked for, and which these are. */
static void mark(const pod_model *model, pod_transformer_array *array)
{
    enum { STRIDE = 4 };
    if (model->experts > 0 && model->experts <= model->d_model) {
        const int64_t most = model->d_model / model->experts;
        array->experts = model->experts;
        array->stride = most < STRIDE ? most : STRIDE;
        array->marks = most / array->stride;
        array->top_k = model->top_k;
    }
}

/** The expert that a column of d_model stands for, or -1: the sum of the digits of the marked column's number, to the
 *  base `experts`. Of `experts` columns one after the other each has another one, and blocks of them differ. */
static int64_t marked_for(const pod_transformer_array *array, int64_t column)
{
    if (array->experts == 0 || column % array->stride != 0
        || column / array->stride >= array->experts * array->marks) {
        return -1;
    }
    int64_t sum = 0;
    for (int64_t i = column / array->stride; i > 0 && array->experts > 1; i /= array->experts) {
        sum += i % array->experts;
    }
    return sum % array->experts;
}

static pod_transformer_array table(const pod_model *model, const char *name, int64_t rows,
                                   int64_t columns, double rms)
{
    pod_transformer_array array = {.layer = -1,
                                   .matmul = -1,
                                   .groups = 1,
                                   .rows = rows,
                                   .columns = columns,
                                   .exponent = exponent_for(rms)};
    mark(model, &array);
    (void)snprintf(array.name, sizeof array.name, "%s", name);
    return array;
}

static pod_transformer_fill fill_of(const pod_layer_matmul *m)
{
    switch (m->role) {
    case POD_ROLE_OUT:
    case POD_ROLE_EXPERTS_DOWN:
    case POD_ROLE_DOWN:
    case POD_ROLE_WIDEN:
        return POD_FILL_RESIDUAL;
    case POD_ROLE_ROUTER:
        return POD_FILL_ROUTER;
    case POD_ROLE_PROJECTION:
    case POD_ROLE_UP:
    case POD_ROLE_EXPERTS_UP:
        break;
    }
    return POD_FILL_EVEN;
}

static double rms_of(const pod_model *model, const pod_layer_matmul *m)
{
    static const double router_part = 0.25; /* beside the columns that steer it */
    const double even = 1 / sqrt((double)m->k);
    switch (fill_of(m)) {
    case POD_FILL_RESIDUAL:
        return even / sqrt(2 * (double)model->layers);
    case POD_FILL_ROUTER:
        return model->experts <= model->d_model ? router_part * even : even;
    case POD_FILL_EVEN:
    case POD_FILL_EMBEDDING:
        break;
    }
    return even;
}

/** The bias of a matmul's columns. */
static void bias_make(pod_transformer_array *array)
{
    enum { SHARE = 2 }; /* log2: a quarter of what it is added to */
    array->bias = true;
    array->exponent += (int)lrint(log2((double)array->rows) / 2) - SHARE;
    array->rows = 1;
    (void)strncat(array->name, ".bias", sizeof array->name - strlen(array->name) - 1);
}

static pod_transformer_array weight_of(const pod_model *model, int64_t index, int matmul,
                                       int64_t copy, bool bias)
{
    const pod_layer layer = pod_model_layer(model, index);
    const pod_layer_matmul *m = &layer.matmul[matmul];
    const char *name = m->part == POD_PART_EXPERTS_GATE ? "experts.gate" : m->name;
    pod_transformer_array array = {
        .layer = index,
        .matmul = matmul,
        .copy = copy,
        .groups = pod_layer_matmul_of_experts(m) ? layer.experts : 1,
        .rows = m->k,
        .columns = m->n,
        .fill = fill_of(m),
        .exponent = exponent_for(rms_of(model, m)),
    };
    mark(model, &array);
    (void)snprintf(array.name, sizeof array.name, m->count > 1 ? "layer.%d.%s.%d" : "layer.%d.%s",
                   (int)index, name, (int)copy);
    if (bias) {
        bias_make(&array);
    }
    return array;
}

pod_transformer_array pod_transformer_pictures(const pod_model *model, int64_t batch)
{
    const int64_t patches = pod_model_tokens(model) - 1;
    return table(model, "pictures", batch * patches, pod_transformer_pixels(model), 1);
}

/** Arrays of a matrix: itself, and its bias. */
static int64_t each_matrix(const pod_model *model)
{
    return model->biases > 0 ? 2 : 1;
}

static int64_t layer_arrays(const pod_model *model, const pod_layer *layer)
{
    int64_t count = 0;
    for (int i = 0; i < layer->nmatmuls; i++) {
        count += layer->matmul[i].count * each_matrix(model);
    }
    return count;
}

/** Arrays of the head's bundle: its matrix, unless that is the embedding, and what else there is. */
static int64_t head_arrays(const pod_model *model)
{
    return each_matrix(model) * (model->head_dense > 0 ? 2 : 1) - (model->tied > 0 ? 1 : 0);
}

/** Arrays before the layers: the table, or the patches' matrix with its bias, and positions. */
static int64_t embedding_arrays(const pod_model *model)
{
    return (model->image > 0 ? each_matrix(model) : 1) + (model->positions > 0 ? 1 : 0);
}

int64_t pod_transformer_arrays(const pod_model *model)
{
    int64_t count = embedding_arrays(model) + head_arrays(model);
    for (int64_t l = 0; l < model->layers; l++) {
        const pod_layer layer = pod_model_layer(model, l);
        count += layer_arrays(model, &layer);
    }
    return count;
}

/** log2 of the embedding's size. In models with many norms after attention or MLP it is half of all that they add to
 *  it, so that marked columns stay clear. Not where it is the head, too. */
static int embedding_growth(const pod_model *model)
{
    const double half = sqrt(2 * (double)model->layers) / 2;
    return model->experts > 0 && model->post_norms > 0 && model->tied == 0 && half > 1
               ? (int)lrint(log2(half))
               : 0;
}

static pod_transformer_array end_at(const pod_model *model, int64_t index)
{
    static const double positions_rms = 0.5;
    const int64_t d = model->d_model;
    if (model->image > 0 && index < each_matrix(model)) {
        const int64_t pixels = pod_transformer_pixels(model);
        pod_transformer_array patches =
            table(model, "patches", pixels, d, 1 / sqrt((double)pixels));
        if (index > 0) {
            bias_make(&patches);
        }
        return patches;
    }
    if (index == 0) {
        const int growth = embedding_growth(model);
        pod_transformer_array embedding =
            table(model, "embedding", model->vocab, d, ldexp(1, growth));
        embedding.growth = growth;
        embedding.fill = POD_FILL_EMBEDDING;
        return embedding;
    }
    pod_transformer_array positions = table(model, "positions", model->positions, d, positions_rms);
    positions.fill = POD_FILL_RESIDUAL; /* are added to the embedding */
    return positions;
}

/** Array `at` of the head's bundle: head, head.bias, dense, dense.bias, as far as there are any. */
static pod_transformer_array head_at(const pod_model *model, int64_t at)
{
    const double rms = 1 / sqrt((double)model->d_model);
    const int64_t number = at + (model->tied > 0 ? 1 : 0);
    const bool dense = number >= each_matrix(model);
    pod_transformer_array array = table(model, dense ? "dense" : "head", model->d_model,
                                        dense ? model->d_model : model->vocab, rms);
    if (number % each_matrix(model) > 0) {
        bias_make(&array);
    }
    return array;
}

pod_transformer_array pod_transformer_array_at(const pod_model *model, int64_t index)
{
    int64_t at = index - embedding_arrays(model);
    if (at < 0) {
        return end_at(model, index);
    }
    for (int64_t l = 0; l < model->layers; l++) {
        const pod_layer layer = pod_model_layer(model, l);
        for (int i = 0; i < layer.nmatmuls; i++) {
            const int64_t each = each_matrix(model);
            if (at < layer.matmul[i].count * each) {
                return weight_of(model, l, i, at / each, at % each > 0);
            }
            at -= layer.matmul[i].count * each;
        }
    }
    return head_at(model, at);
}

bool pod_transformer_array_find(const pod_model *model, const char *name,
                                pod_transformer_array *array)
{
    const int64_t count = pod_transformer_arrays(model);
    for (int64_t i = 0; i < count; i++) {
        *array = pod_transformer_array_at(model, i);
        if (strcmp(array->name, name) == 0) {
            return true;
        }
    }
    return false;
}

int pod_transformer_part(const pod_model *model, const pod_transformer_array *array)
{
    if (array->layer >= 0) {
        const pod_layer layer = pod_model_layer(model, array->layer);
        return (int)layer.matmul[array->matmul].part;
    }
    const bool table = strcmp(array->name, "embedding") == 0;
    const bool before = (table && model->tied == 0) || strcmp(array->name, "positions") == 0
                        || strncmp(array->name, "patches", sizeof "patches" - 1) == 0;
    return before ? POD_PLACE_EMBEDDING : POD_PLACE_HEAD;
}

bool pod_transformer_cut_columns(const pod_model *model, const pod_transformer_array *array)
{
    if (array->layer >= 0) {
        const pod_layer layer = pod_model_layer(model, array->layer);
        return layer.matmul[array->matmul].n_units > 0;
    }
    return strncmp(array->name, "head", sizeof "head" - 1) == 0;
}

bool pod_transformer_cut_rows(const pod_model *model, const pod_transformer_array *array)
{
    if (array->layer >= 0) {
        const pod_layer layer = pod_model_layer(model, array->layer);
        return layer.matmul[array->matmul].k_units > 0 && !array->bias;
    }
    return strcmp(array->name, "embedding") == 0;
}

/* ---- values ---- */

enum { BYTE = 8, PER_NUMBER = 8, ODD_BITS = 127 };

/** The eight bits of an element; eight elements share a random number. */
typedef struct bits_at {
    uint64_t seed;
    uint64_t stream;
    int64_t known;
    uint64_t bits;
} bits_at;

static int bits_of(bits_at *at, int64_t element)
{
    if (element / PER_NUMBER != at->known) {
        at->known = element / PER_NUMBER;
        at->bits = pod_rng_u64(at->seed, at->stream, (uint64_t)at->known);
    }
    return (int)(at->bits >> (BYTE * (element % PER_NUMBER)) & 0xffU);
}

/** An odd number from -127 to 127. */
static int odd_of(int bits)
{
    return 2 * (bits & ODD_BITS) - ODD_BITS;
}

/** Whether a token takes an expert: top_k of them from that of its class on. */
static bool takes(const pod_transformer_array *array, int64_t token, int64_t expert)
{
    const int64_t first = token % array->experts;
    return (expert - first + array->experts) % array->experts < array->top_k;
}

/** The router's weight of a column for its expert: all of them together give 2. */
static float router_weight(const pod_transformer_array *array)
{
    return ldexpf(2, -(int)lrint(log2((double)array->marks)));
}

/** A marked column of the embedding: 1.5 or -0.5, and up to a half more or less. */
static float steer(bool taken, int bits)
{
    enum { HALF = 31 };
    static const float step = 0x1p-6F;
    static const float level[2] = {-0.5F, 1.5F};
    return level[taken] + (float)(2 * (bits & HALF) - HALF) * step;
}

static float value_of(const pod_transformer_array *array, int64_t row, int64_t column, int bits)
{
    static const float narrow = 0x1p-4F;
    const float even = ldexpf((float)odd_of(bits), array->exponent);
    const bool router = array->fill == POD_FILL_ROUTER;
    const int64_t expert =
        array->fill != POD_FILL_EVEN ? marked_for(array, router ? row : column) : -1;
    if (expert < 0) {
        return router ? narrow * even : even;
    }
    switch (array->fill) {
    case POD_FILL_EVEN:
        break;
    case POD_FILL_EMBEDDING:
        return ldexpf(steer(takes(array, row, expert), bits), array->growth);
    case POD_FILL_RESIDUAL:
        return narrow * even;
    case POD_FILL_ROUTER: /* other layers give a token other experts */
        return (expert + array->layer) % array->experts == column ? router_weight(array)
                                                                  : narrow * even;
    }
    return even;
}

void pod_transformer_fill_patch(const pod_transformer_array *array, uint64_t seed,
                                const pod_patch *patch, pod_dtype dtype, void *out)
{
    bits_at at = {.seed = seed, .stream = pod_data_stream(array->name), .known = -1};
    unsigned char *next = out;
    for (int64_t r = patch->row; r < patch->row + patch->rows; r++) {
        for (int64_t c = patch->column; c < patch->column + patch->columns; c++) {
            const int bits = bits_of(&at, r * array->columns + c);
            const float value = value_of(array, r, c, bits);
            pod_dtype_from_f32(dtype, next, &value, 1);
            next += pod_dtype_size(dtype);
        }
    }
}

static int32_t below_vocab(const pod_model *model, uint64_t seed, const char *name, int64_t index)
{
    return (int32_t)pod_rng_below(seed, pod_data_stream(name), (uint64_t)index,
                                  (uint64_t)model->vocab);
}

int32_t pod_transformer_token(const pod_model *model, uint64_t seed, int64_t index)
{
    const int64_t classes = model->experts <= model->d_model ? model->experts : 0;
    const int32_t any = below_vocab(model, seed, "tokens", index);
    if (classes == 0 || model->vocab < classes) {
        return any;
    }
    const int64_t token = any - any % classes + index % classes;
    return (int32_t)(token < model->vocab ? token : token - classes);
}

int32_t pod_transformer_target(const pod_model *model, uint64_t seed, int64_t index)
{
    return below_vocab(model, seed, "targets", index);
}

int64_t pod_transformer_head_position(const pod_model *model, uint64_t seed, int64_t seq,
                                      int64_t sequence, int64_t number)
{
    const int64_t masked = model->masked;
    if (masked == 0 || model->image > 0) {
        return number; /* of a picture the class comes first */
    }
    const int64_t first = seq * number / masked;
    const int64_t next = seq * (number + 1) / masked;
    return first
           + (int64_t)pod_rng_below(seed, pod_data_stream("masked"),
                                    (uint64_t)(sequence * masked + number),
                                    (uint64_t)(next - first));
}
